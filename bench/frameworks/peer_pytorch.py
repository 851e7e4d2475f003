# SPDX-License-Identifier: Apache-2.0
"""PyTorch: eager, and torch.compile. Speaks the protocol of common.py.

Eager runs one operation at a time, so "one thread in each of several operations" does not exist there. Forms of the
recurrent networks: `fused` is torch.nn.LSTM; `layers` does a layer after the other, the input products of all steps at
once (phased-lstm's default); `cells` does one product of [x,h] a cell in time order. `frozen`: inference traced, its
weights constants in oneDNN's layouts (torch.jit.optimize_for_inference). `pages`: peer.h says what it does. The word
`bfloat16` after any of them: the forward pass under autocast, which is PyTorch's own mixed precision with float32
weights; losses are summed in float32."""
import contextlib

import common
import networks

IMAGE_SETTINGS = ["defaults", "one-thread", "channels-last", "channels-last pages", "compile", "compile channels-last pages"]
SETTINGS = {
    "lstm": ["defaults", "pages", "one-thread", "layers", "layers pages", "cells", "compile pages"],
    "phased-lstm": ["defaults", "pages", "one-thread", "cells", "cells pages", "compile pages"],
    "pathnet": IMAGE_SETTINGS,
    "googlenet": IMAGE_SETTINGS,
}


def settings(model, mode):
    frozen = mode == "inference" and not networks.is_recurrent(model)
    return SETTINGS.get(model, []) + (["frozen pages", "frozen channels-last pages"] if frozen else [])


def precision(torch, words):
    """What a forward pass runs under."""
    return torch.autocast("cpu", dtype=torch.bfloat16) if "bfloat16" in words else contextlib.nullcontext()


class Network:
    """One pass: `forward` gives the loss, `backward` does the rest of a training step."""

    def step(self):
        if not self.training:
            with self.torch.inference_mode(), self.precision:
                return self.forward().item()
        with self.precision:
            loss = self.forward()
        self.backward(loss)
        return loss.item()


class Recurrent(Network):
    def __init__(self, torch, request):
        self.torch, self.request = torch, request
        self.training = request["mode"] == "training"
        self.merged = networks.layers(request)
        words = request["setting"].split()
        self.precision = precision(torch, words)
        self.form = next((w for w in words if w in ("layers", "cells")), "layers")
        if request["model"] == "lstm" and words[0] in ("defaults", "pages", "one-thread"):
            self.form = "fused"
        x, time = networks.sequence(request)
        self.x = torch.from_numpy(x)
        self.time = None if time is None else torch.from_numpy(time)
        self.zero = torch.zeros(request["batch"], request["units"])
        self.make_parameters()
        self.forward = {"fused": self.fused, "layers": self.layer_major, "cells": self.time_major}[self.form]
        if "compile" in words:
            self.forward = torch.compile(self.forward)

    def make_parameters(self):
        torch, request = self.torch, self.request
        self.values = [layer.initial() for layer in self.merged]
        if self.form == "fused":
            n = request["units"]
            self.lstm = torch.nn.LSTM(n, n, request["layers"])
            with torch.no_grad():
                for l, v in enumerate(self.values):
                    getattr(self.lstm, f"weight_ih_l{l}").copy_(torch.from_numpy(v["w"]).t())
                    getattr(self.lstm, f"weight_hh_l{l}").copy_(torch.from_numpy(v["u"]).t())
                    getattr(self.lstm, f"bias_ih_l{l}").copy_(torch.from_numpy(v["b"]))
                    getattr(self.lstm, f"bias_hh_l{l}").zero_()
            self.states = torch.zeros(request["layers"], request["batch"], n)
            self.parameters = list(self.lstm.parameters())
        else:
            tensors = [{k: torch.from_numpy(a) for k, a in v.items()} for v in self.values]
            if self.form == "cells":
                for v in tensors:
                    v["wu"] = torch.cat([v.pop("w"), v.pop("u")])
            self.p = [{k: t.requires_grad_(self.training) for k, t in v.items()} for v in tensors]
            self.parameters = [t for v in self.p for t in v.values()]
        self.values = None

    def fused(self):
        r = self.request
        out, (h, c) = self.lstm(self.x.view(r["steps"], r["batch"], r["units"]), (self.states, self.states))
        return out.float().sum() + h.float().sum() + c.float().sum()

    def openness(self, p):
        """[steps*batch,units]: how far each unit is open at each step."""
        torch, tau, r = self.torch, p["period"], p["ratio"]
        phi = torch.remainder(self.time - p["shift"] * tau, tau) / tau
        slope = 2 * phi / r
        return torch.where(2 * phi < r, slope, torch.where(phi < r, 2 - slope, networks.LEAK * phi)).split(self.request["batch"])

    def cell(self, gates, h, c, k):
        torch = self.torch
        i, f, g, o = gates.chunk(4, 1)
        new_c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        new_h = torch.sigmoid(o) * torch.tanh(new_c)
        return (new_h, new_c) if k is None else (torch.lerp(h, new_h, k), torch.lerp(c, new_c, k))

    def layer_major(self):
        torch, batch, x, loss = self.torch, self.request["batch"], self.x, 0
        for p in self.p:
            products = torch.addmm(p["b"], x, p["w"]).split(batch)
            open_ = self.openness(p) if self.time is not None else [None] * len(products)
            h, c, outputs = self.zero, self.zero, []
            for xw, k in zip(products, open_):
                h, c = self.cell(torch.addmm(xw, h, p["u"]), h, c, k)
                outputs.append(h)
            x = torch.cat(outputs)
            loss = loss + h.float().sum() + c.float().sum()
        return loss + x.float().sum()

    def time_major(self):
        torch, loss = self.torch, 0
        open_ = [self.openness(p) if self.time is not None else None for p in self.p]
        h, c = [self.zero] * len(self.p), [self.zero] * len(self.p)
        tops = []
        for t, x in enumerate(self.x.split(self.request["batch"])):
            for l, p in enumerate(self.p):
                gates = torch.addmm(p["b"], torch.cat([x, h[l]], 1), p["wu"])
                h[l], c[l] = self.cell(gates, h[l], c[l], open_[l][t] if open_[l] else None)
                x = h[l]
            tops.append(x)
        return torch.cat(tops).float().sum() + torch.cat(h).float().sum() + torch.cat(c).float().sum()

    def backward(self, loss):
        self.gradients = self.torch.autograd.grad(loss, self.parameters)

    def check(self, rate):
        loss = self.step()
        return loss, self.named() if self.training else []

    def named(self):
        grads = iter(g.numpy() for g in self.gradients)
        n = self.request["units"]
        for layer in self.merged:
            if self.form == "fused":
                values = {"w": next(grads).T, "u": next(grads).T, "b": next(grads)}
                next(grads)  # of the second bias: the same
            elif self.form == "cells":
                values = {}
                for key in self.p[0]:
                    values[key] = next(grads)
                wu = values.pop("wu")
                values["w"], values["u"] = wu[:n], wu[n:]
            else:
                values = {key: next(grads) for key in self.p[0]}
            yield from layer.split(values)


class Images(Network):
    """conv, pool ... are what networks.py calls; PyTorch's own layout of images is [N,C,H,W]."""

    def __init__(self, torch, request):
        self.torch, self.request = torch, request
        self.training = request["mode"] == "training"
        words = request["setting"].split()
        self.precision = precision(torch, words)
        self.format = torch.channels_last if "channels-last" in words else torch.contiguous_format
        images, labels = networks.image_batch(request)
        self.x = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(memory_format=self.format)
        self.labels = torch.from_numpy(labels).long()
        self.dims = networks.image_parameters(request)
        self.p = {name: self.convert(name).requires_grad_(self.training) for name in self.dims}
        self.forward = self.loss
        if "compile" in words:
            self.forward = torch.compile(self.loss)
        elif "frozen" in words:
            self.forward = self.frozen()
        self.optimizer = torch.optim.SGD(self.p.values(), lr=request["rate"], fused=True)  # the update of one pass

    def convert(self, name):
        value = self.torch.from_numpy(common.parameter_array(name, self.dims[name]))
        return value.permute(3, 2, 0, 1).contiguous(memory_format=self.format) if value.dim() == 4 else value

    def conv(self, scope, x, kernel, stride, channels):
        f = self.torch.nn.functional
        return f.relu(f.conv2d(x, self.p[f"{scope}/weight"], self.p[f"{scope}/bias"], stride, kernel // 2))

    def pool(self, x, kernel, stride, pad):
        return self.torch.nn.functional.max_pool2d(x, kernel, stride, pad)

    def add(self, parts):
        return sum(parts)

    def concat(self, parts):
        return self.torch.cat(parts, 1)

    def flatten(self, x):
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)

    def mean(self, x):
        return x.mean((2, 3))

    def dense(self, scope, x, outputs):
        return self.torch.addmm(self.p[f"{scope}/bias"], x, self.p[f"{scope}/weight"])

    def logits(self, x):
        return networks.IMAGES[self.request["model"]](self, x, self.request)

    def loss(self, logits=None):
        logits = (logits or self.logits)(self.x)
        return self.torch.nn.functional.cross_entropy(logits.float(), self.labels)

    def frozen(self):
        torch = self.torch

        class Logits(torch.nn.Module):
            def forward(_, x):
                return self.logits(x)

        with torch.no_grad():
            run = torch.jit.optimize_for_inference(torch.jit.trace(Logits().eval(), self.x, check_trace=False))
        return lambda: self.loss(run)

    def backward(self, loss):
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def current(self, name):
        value = self.p[name].detach()
        return (value.permute(2, 3, 1, 0) if value.dim() == 4 else value).numpy()

    def check(self, rate):
        group = self.optimizer.param_groups[0]
        self.restore()
        group["lr"] = rate
        loss = self.step()
        gradients = list(networks.update_gradients(self.dims, self.current, rate)) if self.training else []
        group["lr"] = self.request["rate"]
        self.restore()
        return loss, gradients

    def restore(self):
        with self.torch.no_grad():
            for name, value in self.p.items():
                value.copy_(self.convert(name))


def load(request):
    import torch
    torch.set_num_threads(1 if "one-thread" in request["setting"].split() else request["cores"])
    request["started"]()
    network = (Recurrent if networks.is_recurrent(request["model"]) else Images)(torch, request)
    network.version = torch.__version__
    return network


if __name__ == "__main__":
    common.Server(settings, load).run()
