# SPDX-License-Identifier: Apache-2.0
"""Networks over input graphs in DyNet and PyTorch, for `graphi bench dynamic`: a binary child-sum Tree-LSTM with a loss at every vertex,
and Tree-FC. It reads one JSON object a line and answers each with one line (common.py):

    {"cmd":"load","engine":E,"net":"treelstm"|"treefc","units":H,"features":F,"vocabulary":V,"classes":C,"threads":N,"rate":X,
     "batches":[{"sample_begin":[..],"child_begin":[..],"child":[..],"token":[..],"label":[..]}, ..]}
                          -> {"ok":true,"version":"..","start_rss":BYTES}
    {"cmd":"check"}       -> {"ok":true,"loss":X,"gradients":{NAME:[norm,probe]}}   of the first batch, nothing updated
    {"cmd":"step","n":N}  -> {"ok":true,"ms":[..]}   each: forward, backward and update of every batch
    {"cmd":"memory"}      -> {"ok":true,"peak_rss":BYTES}

Engines: "dynet" (a graph a batch, no batching), "dynet autobatch", "pytorch per sample" (vertex by vertex), "pytorch by hand" (level by
level: all vertices of one height at once). Graphs are built in every step, as data-dependent graphs are; what depends on a sample alone,
its heights, is made before. Parameters have our names and layouts, and weights by the formula of common.py.

Tree-LSTM: leaves i, o, u = x W + b; inner vertices i, o, u = (h_l + h_r) U + b, f_k = sigmoid(h_k U_f + b_f); c = i u + f_l c_l + f_r c_r;
h = o tanh(c); the loss is the mean cross-entropy of all vertices. Tree-FC: relu([l r] W + b), leaves are rows of a table, the loss is half
the squared length of the roots, a mean over samples."""
import json
import math
import os
import sys
import time

import numpy as np

import common


def shapes(r):
    """Our parameters: name -> shape, inputs first."""
    h, f = r["units"], r["features"]
    if r["net"] == "treefc":
        return {"table": (r["vocabulary"], h), "w": (2 * h, h), "b": (h,)}
    return {"embedding": (r["vocabulary"], f), "w": (f, 3 * h), "u": (h, 3 * h), "b": (3 * h,), "u_f": (h, h), "b_f": (h,),
            "w_class": (h, r["classes"]), "b_class": (r["classes"],)}


def weights(r):
    return {name: common.filled(common.name_key(name), dims, -0.1, 0.1) for name, dims in shapes(r).items()}


class Batch:
    """Flat arrays of one batch, and what depends on each sample alone: heights, and the height of whoever reads a vertex."""

    def __init__(self, arrays):
        self.sample_begin, self.child_begin, self.children, self.token, self.label = (
            np.array(arrays[key], np.int64) for key in ("sample_begin", "child_begin", "child", "token", "label"))
        self.vertices = len(self.token)
        self.pairs = [tuple(self.children[a:b]) for a, b in zip(self.child_begin, self.child_begin[1:])]
        self.height = np.zeros(self.vertices, np.int64)
        self.parent = np.full(self.vertices, -1, np.int64)
        for v, pair in enumerate(self.pairs):  # children come before parents
            self.height[v] = 1 + max((self.height[c] for c in pair), default=-1)
            for c in pair:
                self.parent[c] = v
        self.roots = np.flatnonzero(self.parent < 0)
        self.samples = len(self.roots)


# --- PyTorch ---

class Torch:
    def __init__(self, r, by_hand):
        import torch

        self.start_rss = common.status_bytes("VmRSS")
        self.torch, self.r, self.by_hand = torch, r, by_hand
        self.version = torch.__version__.split("+")[0]
        torch.set_num_threads(r["threads"])
        self.p = {name: torch.nn.Parameter(torch.from_numpy(value)) for name, value in weights(r).items()}
        self.optimizer = torch.optim.SGD(self.p.values(), lr=r["rate"])

    def rows(self, name, token):
        return self.torch.nn.functional.embedding(self.torch.as_tensor(token), self.p[name], sparse=True)

    def gates(self, pre):
        i, o, u = pre.chunk(3, -1)
        return self.torch.sigmoid(i), self.torch.sigmoid(o), self.torch.tanh(u)

    def leaves(self, token):
        if self.r["net"] == "treefc":
            return (self.rows("table", token),)
        i, o, u = self.gates(self.torch.addmm(self.p["b"], self.rows("embedding", token), self.p["w"]))
        c = i * u
        return o * self.torch.tanh(c), c

    def inner(self, left, right):
        """States [n, h] of the vertices whose children have these."""
        torch, p = self.torch, self.p
        if self.r["net"] == "treefc":
            return (torch.relu(torch.addmm(p["b"], torch.cat((left[0], right[0]), 1), p["w"])),)
        i, o, u = self.gates(torch.addmm(p["b"], left[0] + right[0], p["u"]))
        f = torch.sigmoid(torch.addmm(p["b_f"], torch.cat((left[0], right[0])), p["u_f"]))
        c = i * u + f[:len(left[0])] * left[1] + f[len(left[0]):] * right[1]
        return o * torch.tanh(c), c

    def loss(self, h, batch, order):
        """h: of the vertices `order`, all of them; of Tree-FC the roots."""
        if self.r["net"] == "treefc":
            return 0.5 * (h * h).sum() / batch.samples
        logits = self.torch.addmm(self.p["b_class"], h, self.p["w_class"])
        return self.torch.nn.functional.cross_entropy(logits, self.torch.as_tensor(batch.label[order]))

    def forward_vertices(self, batch):
        state = []
        for v, pair in enumerate(batch.pairs):
            state.append(self.inner(state[pair[0]], state[pair[1]]) if pair else self.leaves(batch.token[v:v + 1]))
        order = batch.roots if self.r["net"] == "treefc" else np.arange(batch.vertices)
        return self.loss(self.torch.cat([state[v][0] for v in order]), batch, order)

    def forward_levels(self, batch):
        """Vertices of a level lie by the level that reads them, so that each is copied once, whatever lies between."""
        torch, levels = self.torch, int(batch.height.max()) + 1
        reader = np.where(batch.parent < 0, levels, batch.height[batch.parent])
        order = np.lexsort((reader, batch.height))
        bounds = np.searchsorted(batch.height[order], np.arange(levels + 1))
        arrived, waiting, place = [0] * (levels + 1), [[] for _ in range(levels + 1)], np.empty(batch.vertices, np.int64)
        child = batch.children.reshape(-1, 2) if len(batch.children) else np.empty((0, 2), np.int64)
        pair = (batch.child_begin[:-1] // 2)  # of an inner vertex, its row of `child`
        results = []
        for level in range(levels):
            vertices = order[bounds[level]:bounds[level + 1]]
            if level == 0:
                state = self.leaves(batch.token[vertices])
            else:
                both = place[child[pair[vertices]].T.reshape(-1)]
                index = torch.as_tensor(both)
                given = [torch.cat(parts)[index] for parts in zip(*waiting[level])]
                n = len(vertices)
                state = self.inner([g[:n] for g in given], [g[n:] for g in given])
                waiting[level] = None
            results.append(state[0])
            counts = np.bincount(reader[vertices], minlength=levels + 1)
            first = 0
            for to in np.flatnonzero(counts):
                part = vertices[first:first + counts[to]]
                place[part] = arrived[to] + np.arange(counts[to])
                arrived[to] += counts[to]
                waiting[to].append([s[first:first + counts[to]] for s in state])
                first += counts[to]
        if self.r["net"] == "treefc":
            return self.loss(torch.cat([w[0] for w in waiting[levels]]), batch, None)
        return self.loss(torch.cat(results), batch, order)

    def gradients(self, batch):
        self.optimizer.zero_grad()
        loss = (self.forward_levels if self.by_hand else self.forward_vertices)(batch)
        loss.backward()
        return loss

    def check(self, batch):
        loss = float(self.gradients(batch).detach())
        return loss, {name: (p.grad.to_dense() if p.grad.is_sparse else p.grad).numpy() for name, p in self.p.items()}

    def step(self, batch):
        loss = self.gradients(batch)
        self.optimizer.step()
        return float(loss.detach())


# --- DyNet ---

class Dynet:
    """Column vectors: its matrices are ours transposed."""

    def __init__(self, r, autobatch):
        import dynet_config

        numbers = sum(len(b["token"]) for b in r["batches"][:1]) * r["units"]
        # 512 MB at first, which grow; not with batching: what a large batch needs has to be there before.
        dynet_config.set(random_seed=1, mem="4096" if autobatch and numbers > 4e6 else "512")
        import dynet as dy

        self.start_rss = common.status_bytes("VmRSS")
        self.dy, self.r, self.autobatch, self.version = dy, r, autobatch, getattr(dy, "__version__", "2.2")
        self.collection, self.p = dy.ParameterCollection(), {}
        for name, value in weights(r).items():
            if name in ("table", "embedding"):
                self.p[name] = self.collection.lookup_parameters_from_numpy(value)
            else:
                self.p[name] = self.collection.parameters_from_numpy(np.ascontiguousarray(value.T))
        self.trainer = dy.SimpleSGDTrainer(self.collection, learning_rate=r["rate"])
        self.trainer.set_sparse_updates(True)

    def gates(self, pre):
        dy, h = self.dy, self.r["units"]
        return (dy.logistic(dy.pick_range(pre, 0, h)), dy.logistic(dy.pick_range(pre, h, 2 * h)), dy.tanh(dy.pick_range(pre, 2 * h, 3 * h)))

    def vertex(self, token, children):
        dy, p = self.dy, self.p
        if self.r["net"] == "treefc":
            if not children:
                return (dy.lookup(p["table"], token),)
            return (dy.rectify(dy.affine_transform([p["b"], p["w"], dy.concatenate([c[0] for c in children])])),)
        if not children:
            i, o, u = self.gates(dy.affine_transform([p["b"], p["w"], dy.lookup(p["embedding"], token)]))
            c = dy.cmult(i, u)
        else:
            i, o, u = self.gates(dy.affine_transform([p["b"], p["u"], dy.esum([s[0] for s in children])]))
            c = dy.cmult(i, u)
            for s in children:
                c = c + dy.cmult(dy.logistic(dy.affine_transform([p["b_f"], p["u_f"], s[0]])), s[1])
        return dy.cmult(o, dy.tanh(c)), c

    def forward(self, batch):
        dy, p, state, losses = self.dy, self.p, [], []
        dy.renew_cg(autobatching=self.autobatch)
        for v, pair in enumerate(batch.pairs):
            state.append(self.vertex(int(batch.token[v]), [state[c] for c in pair]))
            if self.r["net"] == "treelstm":
                logits = dy.affine_transform([p["b_class"], p["w_class"], state[v][0]])
                losses.append(dy.pickneglogsoftmax(logits, int(batch.label[v])))
        if self.r["net"] == "treefc":
            losses = [dy.squared_norm(state[v][0]) * 0.5 for v in batch.roots]
        return dy.esum(losses) * (1 / len(losses))

    def gradients(self, batch):
        loss = self.forward(batch)
        value = loss.value()
        loss.backward()
        return value

    def check(self, batch):
        """It has no call that forgets gradients: an update at a rate of 0 does."""
        loss, gradients = self.gradients(batch), {}
        for name, p in self.p.items():
            value = np.array(p.grad_as_array())
            gradients[name] = value if name in ("table", "embedding") else value.T
        self.trainer.learning_rate = 0
        self.trainer.update()
        self.trainer.learning_rate = self.r["rate"]
        return loss, gradients

    def step(self, batch):
        value = self.gradients(batch)
        self.trainer.update()
        return value


ENGINES = {"dynet": lambda r: Dynet(r, False), "dynet autobatch": lambda r: Dynet(r, True),
           "pytorch per sample": lambda r: Torch(r, False), "pytorch by hand": lambda r: Torch(r, True)}


class Peer:
    def do_load(self, r):
        self.network = ENGINES[r["engine"]](r)
        self.batches = [Batch(b) for b in r["batches"]]
        common.forget_peak()
        return {"version": self.network.version, "start_rss": self.network.start_rss}

    def do_check(self, r):
        loss, gradients = self.network.check(self.batches[0])
        return {"loss": loss, "gradients": {name: common.statistics(name, value) for name, value in gradients.items()}}

    def do_step(self, r):
        ms = []
        for _ in range(r["n"]):
            begin = time.perf_counter()
            for batch in self.batches:
                loss = self.network.step(batch)
            ms.append((time.perf_counter() - begin) * 1e3)
        return {"ms": ms, "loss": loss if math.isfinite(loss) else None}

    def do_memory(self, r):
        return {"peak_rss": common.status_bytes("VmHWM")}


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    common.prepare_threads()
    peer = Peer()
    for line in sys.stdin:
        request = json.loads(line)
        if request["cmd"] == "quit":
            break
        try:
            answer = {"ok": True, **getattr(peer, "do_" + request["cmd"])(request)}
        except Exception as error:  # whatever a framework raises is an answer
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(answer) + "\n")
    os._exit(0)
