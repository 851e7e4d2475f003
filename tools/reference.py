#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference.json: what PyTorch computes for the four networks, for tests/test_networks.c to compare with.

    pip install torch==2.13.0 numpy
    python3 tools/reference.py > tests/data/reference.json

The networks are written here a second time, from the papers' definitions, with torch.nn.functional and autograd in float64: what
the test sees as a difference is Graphi's float32 rounding or a mistake. Neither parameters nor inputs are stored: both sides fill
an array from its name by the formula of `uniform`, so the file holds losses and a few statistics of each parameter only.
Layout: Graphi's images are [N,H,W,C] and filters [H,W,I,O]; parameters here keep that layout and are permuted where used.
"""
import json
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)


# --- the formula that both sides fill arrays by ---------------------------------------------------------------------------


def unit(name, count):
    """Numbers of [0, 1) with 24 bits: splitmix64 at positions 1, 2, ... after the FNV-1a hash of the name."""
    key = 14695981039346656037
    for byte in name.encode():
        key = (key ^ byte) * 1099511628211 % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(key) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) / 2**24


def uniform(name, dims, low, high):
    """Float32 numbers of [low, high), held in the default type."""
    numbers = (low + (high - low) * unit(name, math.prod(dims))).astype(np.float32)
    return torch.from_numpy(numbers).to(torch.get_default_dtype()).reshape(dims)


def integers(name, dims, below):
    return torch.from_numpy(np.floor(unit(name, math.prod(dims)) * below).astype(np.int64)).reshape(dims)


# Last part of a parameter's name -> range. What is not here goes by rank: biases 0.1, others gain * sqrt(6 / fan).
RANGES = {"period": (1.5, 20), "shift": (1, 2), "ratio": (0.3, 0.6), "scale": (0.5, 1.5), "variance": (2, 5)}


def parameter_range(name, dims, gain):
    last = name.split("/")[-1]
    if name.startswith("state/") or name.startswith("eval/"):
        return 0, 0
    if last == "shift" and name.startswith("layer"):
        return 0, 1 # of a PhasedLSTM's rhythm; the other one is batch normalization's
    if last == "shift" and name.startswith(("discriminator/", "generator/")):
        return -0.5, 0.5 # so that no channel is always on one side of its ReLU: Adam would follow rounding there
    if last in RANGES:
        return RANGES[last]
    if len(dims) == 1:
        return -0.1, 0.1
    fan = dims[0] + dims[1] if len(dims) == 2 else dims[0] * dims[1] * dims[2]
    a = gain * math.sqrt(6 / fan)
    return -a, a


class Parameters:
    """Makes parameters by name on first use."""

    def __init__(self, gain):
        self.all, self.initial, self.gain = {}, {}, gain

    def __call__(self, name, *dims, trained=True):
        if name not in self.all:
            self.initial[name] = uniform(name, dims, *parameter_range(name, dims, self.gain))
            self.all[name] = self.initial[name].clone().requires_grad_(trained)
        return self.all[name]

    def trained(self):
        return {name: p for name, p in self.all.items() if p.requires_grad}


# --- recurrent networks -----------------------------------------------------------------------------------------------------

nearest = [1.0]  # least distance of a phase from a point where the gate has a kink


def turned(p, scope, units, time, before):
    """Turns of each unit at a time of the window, which began after so many."""
    return before + time / p(f"{scope}/period", units)


def openness(p, scope, units, time, before=None):
    """The gate k of a PhasedLSTM (Neil et al. 2016, eq. 7) with leak 0.001; periods, shifts and ratios are learned."""
    tau, s, r = (p(f"{scope}/{name}", units) for name in ("period", "shift", "ratio"))
    phi = torch.remainder(time - s * tau, tau) / tau if before is None else torch.remainder(turned(p, scope, units, time, before) - s, 1)
    for kink in (torch.zeros_like(r), r / 2, r, torch.ones_like(r)):
        nearest[0] = min(nearest[0], (phi - kink).abs().min().item())
    return torch.where(phi < r / 2, 2 * phi / r, torch.where(phi < r, 2 - 2 * phi / r, 0.001 * phi))


def cell(p, scope, units, x, h, c, time, before):
    i, f, g, o = (x @ p(f"{scope}/w_{k}", x.shape[1], units) + h @ p(f"{scope}/u_{k}", units, units) +
                  p(f"{scope}/b_{k}", units) for k in "ifgo")
    new_c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    new_h = torch.sigmoid(o) * torch.tanh(new_c)
    if time is None:
        return new_h, new_c
    k = openness(p, scope, units, time, before)
    return k * new_h + (1 - k) * h, k * new_c + (1 - k) * c


def stack(p, o, xs, times, h, c, before=(None,) * 4):
    """All layers over all steps; h and c are lists by layer and are replaced. Gives the top layer's outputs."""
    tops = []
    for x, time in zip(xs, times):
        for layer in range(4):
            h[layer], c[layer] = cell(p, f"layer{layer}", o["units"], x, h[layer], c[layer], time,
                                     before[layer])
            x = h[layer]
        tops.append(x)
    return tops


def recurrent_bench(p, o, timed):
    rows, units = o["steps"] * o["batch"], o["units"]
    xs = uniform("x", (rows, units), -1, 1).split(o["batch"])
    times = uniform("time", (rows, 1), 0, 20).split(o["batch"]) if timed else [None] * o["steps"]
    h = [uniform(f"h0/{layer}", (o["batch"], units), -1, 1) for layer in range(4)]
    c = [uniform(f"c0/{layer}", (o["batch"], units), -1, 1) for layer in range(4)]
    tops = stack(p, o, xs, times, h, c)
    return sum(t.sum() for t in tops + h + c)


def language_model(p, o, timed, step, state):
    batch, units, vocabulary = o["batch"], o["units"], o["vocabulary"]
    tokens = integers(f"tokens#{step}", (batch, o["steps"]), vocabulary)
    targets = integers(f"targets#{step}", (batch, o["steps"]), vocabulary)
    table = p("embedding/table", vocabulary, units)
    xs = [table[tokens[:, t]] for t in range(o["steps"])]
    times = [torch.tensor([[float(t)]]) if timed else None for t in range(o["steps"])]
    before = [state.get(f"state/turns{layer}") for layer in range(4)]
    h = [state[f"state/h{layer}"] for layer in range(4)]
    c = [state[f"state/c{layer}"] for layer in range(4)]
    top = torch.cat(stack(p, o, xs, times, h, c, before))
    for layer in range(4):
        state[f"state/h{layer}"], state[f"state/c{layer}"] = h[layer].detach(), c[layer].detach()
    for layer in range(4 if timed else 0):
        state[f"state/turns{layer}"] = torch.remainder(turned(p, f"layer{layer}", units, o["steps"], before[layer]), 1).detach()
    logits = top @ p("output/weight", units, vocabulary) + p("output/bias", vocabulary)
    return F.cross_entropy(logits, targets.t().reshape(-1))


# --- image networks ---------------------------------------------------------------------------------------------------------


def conv(x, w, stride, pad):
    return F.conv2d(x, w.permute(3, 2, 0, 1), stride=stride, padding=pad)


def dense(p, scope, x, outputs):
    return x @ p(f"{scope}/weight", x.shape[1], outputs) + p(f"{scope}/bias", outputs)


def pathnet(p, o, x):
    for layer in range(3):
        outputs = []
        for module in range(6):
            scope = f"layer{layer}/module{module}"
            y = conv(x, p(f"{scope}/weight", 3, 3, x.shape[1], o["units"]), 1, 1)
            y = F.relu(y + p(f"{scope}/bias", o["units"]).view(1, -1, 1, 1))
            outputs.append(F.max_pool2d(y, 2))
        x = sum(outputs)
    return [dense(p, "output", x.permute(0, 2, 3, 1).flatten(1), o["classes"])]


def unit_conv(p, o, scope, x, kernel, stride, channels, evaluation):
    channels *= o["units"]
    y = conv(x, p(f"{scope}/weight", kernel, kernel, x.shape[1], channels), stride, kernel // 2)
    if not o.get("batch_norm"):
        return F.relu(y + p(f"{scope}/bias", channels).view(1, -1, 1, 1))
    scale, shift = p(f"{scope}/scale", channels), p(f"{scope}/shift", channels)
    mean, variance = p(f"{scope}/mean", channels, trained=False), p(f"{scope}/variance", channels, trained=False)
    if not evaluation: # running statistics: the biased variance, a tenth a step
        p.all[f"{scope}/mean"] = (0.9 * mean + 0.1 * y.mean((0, 2, 3))).detach()
        p.all[f"{scope}/variance"] = (0.9 * variance + 0.1 * y.var((0, 2, 3), unbiased=False)).detach()
    return F.relu(F.batch_norm(y, mean.clone(), variance.clone(), scale, shift, training=not evaluation, eps=1e-5))


INCEPTION = {"3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64), "4a": (192, 96, 208, 16, 48, 64),
             "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
             "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)}


def googlenet(p, o, x, evaluation=False):
    """Szegedy et al. 2015, table 1. Gives the logits, then those of the auxiliary classifiers."""
    def c(scope, y, kernel, stride, channels):
        return unit_conv(p, o, scope, y, kernel, stride, channels, evaluation)

    def pool(y, stride):
        return F.max_pool2d(y, 3, stride, 1)

    def lrn(y):
        return F.local_response_norm(y, 5, 1e-4, 0.75, 1.0) if o.get("lrn") else y

    auxiliary = []
    x = lrn(pool(c("conv1", x, 7, 2, 64), 2))
    x = c("conv2", c("conv2/reduce", x, 1, 1, 64), 3, 1, 192)
    x = pool(lrn(x), 2)
    for name, (one, reduce3, three, reduce5, five, project) in INCEPTION.items():
        if name in ("4a", "5a"):
            x = pool(x, 2)
        x = torch.cat([c(f"{name}/one", x, 1, 1, one),
                       c(f"{name}/three", c(f"{name}/three/reduce", x, 1, 1, reduce3), 3, 1, three),
                       c(f"{name}/five", c(f"{name}/five/reduce", x, 1, 1, reduce5), 5, 1, five),
                       c(f"{name}/pool/project", pool(x, 1), 1, 1, project)], 1)
        if o.get("auxiliary") and not evaluation and name in ("4a", "4d"):
            side = f"auxiliary{len(auxiliary) + 1}"
            y = c(f"{side}/conv", F.avg_pool2d(x, min(5, x.shape[2]), 3), 1, 1, 128)
            y = F.relu(dense(p, f"{side}/dense", y.permute(0, 2, 3, 1).flatten(1), 1024 * o["units"]))
            auxiliary.append(dense(p, side, y, o["classes"]))
    return [dense(p, "output", x.mean((2, 3)), o["classes"])] + auxiliary


def image_loss(p, o, network, step, **more):
    images = uniform(f"images#{step}", (o["batch"], o["image"], o["image"], 3), -1, 1)
    labels = integers(f"labels#{step}", (o["batch"],), o["classes"])
    logits, *auxiliary = network(p, o, images.permute(0, 3, 1, 2), **more)
    return F.cross_entropy(logits, labels) + sum(0.3 * F.cross_entropy(a, labels) for a in auxiliary)


# --- cases ------------------------------------------------------------------------------------------------------------------


def statistics(tensor):
    """Sum, sum of magnitudes, the first elements; last the number of elements."""
    flat = tensor.detach().reshape(-1)
    return [float(f"{v:.9g}") for v in (flat.sum().item(), flat.abs().sum().item(), *flat[:4].tolist(), flat.numel())]


def bench_case(name, o):
    p = Parameters(1)
    loss = recurrent_bench(p, o, name == "phased-lstm")
    loss.backward()
    return {"loss": [loss.item()], "gradients": {n: statistics(v.grad) for n, v in p.all.items()}}


def evaluation_case(p, o, loss):
    with torch.no_grad():
        return loss().item()


def train_text(name, o, rate, gain, steps):
    p, losses, norms = Parameters(gain), [], []
    state = {f"state/{kind}{layer}": torch.zeros(o["batch"], o["units"]) for layer in range(4) for kind in "hc"}
    if name == "phased-lstm":
        state |= {f"state/turns{layer}": torch.zeros(o["units"]) for layer in range(4)}
    optimizer = None
    for step in range(steps):
        loss = language_model(p, o, name == "phased-lstm", step, state)
        if optimizer is None:
            optimizer = torch.optim.Adam(p.all.values(), lr=rate)
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(p.all.values(), 5).item())
        optimizer.step()
        losses.append(loss.item())
    assert max(norms) > 5 or name != "lstm", "clipping is not exercised"
    zero = {key: torch.zeros_like(value) for key, value in state.items()}
    evaluation = evaluation_case(p, o, lambda: language_model(p, o, name == "phased-lstm", steps, zero))
    return {"loss": losses, "evaluation": evaluation,
            "changes": {n: statistics(v - p.initial.get(n, 0)) for n, v in (p.all | state).items()}}


def train_images(network, o, rate, gain, steps):
    p, losses = Parameters(gain), []
    for step in range(steps):
        loss = image_loss(p, o, network, step)
        gradients = torch.autograd.grad(loss, list(p.trained().values()))
        with torch.no_grad():
            for value, gradient in zip(p.trained().values(), gradients):
                value -= rate * gradient
        losses.append(loss.item())
    more = {"evaluation": True} if network is googlenet else {}
    evaluation = evaluation_case(p, o, lambda: image_loss(p, o, network, steps, **more))
    return {"loss": losses, "evaluation": evaluation,
            "changes": {n: statistics(v - p.initial[n]) for n, v in p.all.items()}}


def error(found, expected, scale):
    return 0 if found == expected else abs(found - expected) / max(abs(expected), scale)


def case(network, options, run, *how, **more):
    """Runs in float64, and in float32 to see what rounding does (it makes a ReLU or a maximum fall the other way): the worst
    relative errors, measured as the test does, are stored: of losses one for all, of statistics behind each parameter's."""
    results = []
    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        results.append(run(*how))
    wanted, found = results
    losses = [error(x, y, 0) for x, y in zip(found["loss"] + [found.get("evaluation", 1)],
                                             wanted["loss"] + [wanted.get("evaluation", 1)])]
    kind = "gradients" if "gradients" in wanted else "changes"
    worst = 0
    for name, y in wanted[kind].items():
        count = y.pop() # the number of elements is not stored, the rounding is
        scales = [y[1], y[1]] + [y[1] / count] * (len(y) - 2)
        y.append(float(f"{max(map(error, found[kind][name], y, scales)):.1g}"))
        worst = max(worst, y[-1])
    print(f"{network} {options}: float32 is off by {max(losses):.1e}, {worst:.1e}", file=sys.stderr)
    return {"network": network, "options": options} | more | {"rounding": float(f"{max(losses):.1g}")} | wanted


TEXT = {"task": "real", "units": 16, "steps": 5, "batch": 4, "vocabulary": 30}
BENCH = {"task": "bench", "units": 16, "steps": 5, "batch": 4}
PATHNET = {"task": "bench", "image": 16, "units": 4, "batch": 4, "classes": 10}
GOOGLENET = {"task": "bench", "image": 32, "units": 1, "batch": 2, "classes": 10}
GOOGLENET_ALL = GOOGLENET | {"image": 64, "batch": 4, "batch_norm": True, "lrn": True, "auxiliary": True}
GOOGLENET_SIDE = GOOGLENET | {"image": 128, "auxiliary": True}  # from 113 on the side classifiers see more than one window


def main():
    cases = []
    for name, rate, gain in (("lstm", 0.002, 6), ("phased-lstm", 0.002, 6)):
        cases.append(case(name, BENCH, bench_case, name, BENCH, gain=1))
        cases.append(case(name, TEXT, train_text, name, TEXT, rate, gain, 10, rate=rate, gain=gain))
    for name, network, o, rate, gain, steps in (("pathnet", pathnet, PATHNET, 0.02, 0.45, 10),
                                                ("googlenet", googlenet, GOOGLENET, 0.01, 0.9, 10),
                                                ("googlenet", googlenet, GOOGLENET_ALL, 0.0003, 1, 3),
                                                ("googlenet", googlenet, GOOGLENET_SIDE, 0.003, 0.9, 2)):
        cases.append(case(name, o, train_images, network, o, rate, gain, steps, rate=rate, gain=gain))
    assert nearest[0] > 1e-5, "a phase is so close to a kink of its gate that float32 could take another branch"
    json.dump({"torch": torch.__version__, "cases": cases}, sys.stdout, indent=0, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
