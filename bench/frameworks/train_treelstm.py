# SPDX-License-Identifier: Apache-2.0
"""The accuracy that PyTorch reaches with the Tree-LSTM of `graphi train treelstm`: the same network, trained alike, on trees as
s-expressions (DIR/*train*.txt, *dev*.txt, *test*.txt). Vertices of one height are computed at once; --per-sample takes them one by one,
which gives the same numbers in fifty times the time.

usage: train_treelstm.py --data DIR [--epochs N] [--rate X] [--batch N] [--units H] [--features F] [--seed N] [--threads N] [--per-sample]"""
import argparse
import collections
import re
import time
from pathlib import Path

import numpy as np

import peer_dynamic

TOKEN = re.compile(rb"[()]|[^()\s]+")


def read(path, words):
    """Samples as flat arrays: children before parents, words as bytes."""
    for line in path.read_bytes().split(b"\n"):
        if not line.strip():
            continue
        open_, done, arrays = [], [], {"child_begin": [0], "child": [], "token": [], "label": []}
        for token in TOKEN.findall(line):
            if token == b"(":
                open_.append([None, None, len(done)])
            elif token != b")":
                node = open_[-1]
                node[0 if node[0] is None else 1] = token
            else:
                label, word, first = open_.pop()
                arrays["child"] += done[first:]
                del done[first:]
                done.append(len(arrays["token"]))
                arrays["token"].append(word)
                arrays["label"].append(int(label))
                arrays["child_begin"].append(len(arrays["child"]))
        if words is not None:
            words.update(word for word in arrays["token"] if word is not None)
        yield arrays


def batch_of(samples, ids):
    joined = {"sample_begin": [0], "child_begin": [0], "child": [], "token": [], "label": []}
    for s in samples:
        first, edge = len(joined["token"]), len(joined["child"])
        joined["child"] += [first + c for c in s["child"]]
        joined["child_begin"] += [edge + c for c in s["child_begin"][1:]]
        joined["token"] += [-1 if word is None else ids.get(word, 0) for word in s["token"]]
        joined["label"] += s["label"]
        joined["sample_begin"].append(len(joined["token"]))
    return peer_dynamic.Batch(joined)


class Network(peer_dynamic.Torch):
    """Keeps the logits of the last batch, in the order of its vertices."""
    def loss(self, h, batch, order):
        self.logits = np.empty((batch.vertices, self.r["classes"]), np.float32)
        logits = self.torch.addmm(self.p["b_class"], h, self.p["w_class"])
        self.logits[order] = logits.detach().numpy()
        return self.torch.nn.functional.cross_entropy(logits, self.torch.as_tensor(batch.label[order]))

    def forward(self, batch):
        return (self.forward_levels if self.by_hand else self.forward_vertices)(batch)

    def accuracy(self, batches):
        right = total = 0
        with self.torch.no_grad():
            for batch in batches:
                self.forward(batch)
                right += int((self.logits[batch.roots].argmax(1) == batch.label[batch.roots]).sum())
                total += len(batch.roots)
        return 100 * right / total


def begin(network, seed, rate):
    torch = network.torch
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in network.p.items():
            p.zero_() if name.startswith("b") else p.uniform_(-0.1, 0.1)
    return torch.optim.Adagrad(network.p.values(), lr=rate)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--per-sample", action="store_true")
    for name, kind, value in (("epochs", int, 6), ("rate", float, 0.05), ("batch", int, 25), ("units", int, 150), ("features", int, 300),
                              ("seed", int, 1), ("threads", int, 1)):
        parser.add_argument(f"--{name}", type=kind, default=value)
    o = parser.parse_args()
    words = collections.Counter()
    find = lambda split: next(p for p in sorted(o.data.glob("*.txt")) if split in p.name)
    train = list(read(find("train"), words))
    ids = {word: 1 + i for i, (word, _) in enumerate(sorted(words.items(), key=lambda item: (-item[1], item[0])))}
    held = {split: [batch_of(samples[i:i + 256], ids) for i in range(0, len(samples), 256)]
            for split in ("dev", "test") for samples in [list(read(find(split), None))]}
    network = Network({"net": "treelstm", "units": o.units, "features": o.features, "vocabulary": len(ids) + 1, "classes": 5,
                       "threads": o.threads, "rate": o.rate}, not o.per_sample)
    optimizer = begin(network, o.seed, o.rate)
    random = np.random.default_rng(o.seed)
    best = (0, 0)
    for epoch in range(o.epochs):
        start, total = time.time(), 0.0
        order = random.permutation(len(train))
        for first in range(0, len(order) - o.batch + 1, o.batch):
            batch = batch_of([train[i] for i in order[first:first + o.batch]], ids)
            optimizer.zero_grad()
            loss = network.forward(batch)
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
        dev, test = network.accuracy(held["dev"]), network.accuracy(held["test"])
        best = max(best, (dev, test))
        print(f"epoch {epoch + 1}: loss {total / (len(order) // o.batch):.4f}, dev {dev:.2f} %, test {test:.2f} %, {time.time() - start:.0f} s",
              flush=True)
    print(f"test accuracy of the epoch that is best on dev: {best[1]:.2f} % (dev {best[0]:.2f} %)")


if __name__ == "__main__":
    main()
