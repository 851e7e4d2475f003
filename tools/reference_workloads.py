#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference_workloads.json: as reference.py, for the networks of the second paper.

    pip install torch==2.13.0 numpy
    python3 tools/reference_workloads.py > tests/data/reference_workloads.json

Each training uses torch.optim's own optimizer, so the updates are compared too."""
import json
import sys

import torch
import torch.nn.functional as F

from reference import Parameters, case, dense, integers, statistics, uniform


def images(o, step, side, channels):
    return uniform(f"images#{step}", (o["batch"], side, side, channels), -1, 1).permute(0, 3, 1, 2)


def labels(o, step, classes):
    return integers(f"labels#{step}", (o["batch"],), classes)


def norm(p, scope, y, eps, statistics):
    """Channels are dimension 1. Statistics: "train" (the batch's; running ones follow by a tenth), "batch", "running"."""
    n, axes = y.shape[1], [0, 2, 3][:y.dim() - 1]
    scale, shift = p(f"{scope}/scale", n), p(f"{scope}/shift", n)
    if statistics == "batch":
        return F.batch_norm(y, None, None, scale, shift, training=True, eps=eps)
    mean, variance = p(f"{scope}/mean", n, trained=False), p(f"{scope}/variance", n, trained=False)
    if statistics == "train":
        p.all[f"{scope}/mean"] = (0.9 * mean + 0.1 * y.mean(axes)).detach()
        p.all[f"{scope}/variance"] = (0.9 * variance + 0.1 * y.var(axes, unbiased=False)).detach()
    return F.batch_norm(y, mean.clone(), variance.clone(), scale, shift, training=statistics == "train", eps=eps)


def conv(p, scope, x, kernel, channels, stride=1, same=True):
    h, w = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    weight = p(f"{scope}/weight", h, w, x.shape[1], channels).permute(3, 2, 0, 1)
    return F.conv2d(x, weight, stride=stride, padding=(h // 2, w // 2) if same else 0)


# --- residual networks ------------------------------------------------------------------------------------------------------

STAGES = {("resnet20", False): (3, 3, 3), ("resnet20", True): (2, 2, 2), ("resnet50", True): (3, 4, 6, 3)}


def resnet(name, p, o, step, evaluation):
    bottleneck = o.get("bottleneck", False)
    how = "running" if evaluation else "train"

    def act(scope, x):
        return F.relu(norm(p, scope, x, 1e-5, how))

    width = o["units"] * (4 if name == "resnet50" and bottleneck else 1)
    x = conv(p, "stem/conv", images(o, step, o["image"], 3), 3, width)
    for stage, blocks in enumerate(STAGES[name, bottleneck]):
        for i in range(blocks):
            s, stride = f"stage{stage}/block{i}", 2 if stage and not i else 1
            y = act(f"{s}/norm1", x)
            shortcut = x if i else conv(p, f"{s}/project", y, 1, width * (4 if bottleneck else 1), stride)
            if bottleneck:
                y = conv(p, f"{s}/conv1", y, 1, width)
                y = conv(p, f"{s}/conv2", act(f"{s}/norm2", y), 3, width, stride)
                y = conv(p, f"{s}/conv3", act(f"{s}/norm3", y), 1, 4 * width)
            else:
                y = conv(p, f"{s}/conv1", y, 3, width, stride)
                y = conv(p, f"{s}/conv2", act(f"{s}/norm2", y), 3, width)
            x = y + shortcut
        width *= 2
    logits = dense(p, "output", act("output/norm", x).mean((2, 3)), o["classes"])
    return F.cross_entropy(logits, labels(o, step, o["classes"]))


# --- Inception-v3 (Szegedy et al. 2016, as in slim) ---------------------------------------------------------------------------

FIVE, SIX = {"5b": 32, "5c": 64, "5d": 64}, {"6b": 128, "6c": 160, "6d": 160, "6e": 192}


def inception_v3(name, p, o, step, evaluation):
    def c(scope, x, kernel, channels, stride=1, same=True):
        y = conv(p, scope, x, kernel, channels, stride, same)
        return F.relu(norm(p, scope, y, 1e-3, "running" if evaluation else "train"))

    def average(x):
        return F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)

    def reduce(scope, x, channels):
        return c(scope, x, 3, channels, 2, False)

    row, column = (1, 7), (7, 1)
    x = images(o, step, o["image"], 3)
    x = c("stem/branch0/1", reduce("stem/branch0/0", x, 32), 3, 32, 1, False)
    x = F.max_pool2d(c("stem/branch0/2", x, 3, 64), 3, 2)
    x = c("stem/branch0/5", c("stem/branch0/4", x, 1, 80), 3, 192, 1, False)
    x = F.max_pool2d(x, 3, 2)
    for m, pooled in FIVE.items():
        b = [f"{m}/branch{i}" for i in range(4)]
        x = torch.cat([c(f"{b[0]}/0", x, 1, 64), c(f"{b[1]}/1", c(f"{b[1]}/0", x, 1, 48), 5, 64),
                       c(f"{b[2]}/2", c(f"{b[2]}/1", c(f"{b[2]}/0", x, 1, 64), 3, 96), 3, 96),
                       c(f"{b[3]}/1", average(x), 1, pooled)], 1)
    double = c("6a/branch1/1", c("6a/branch1/0", x, 1, 64), 3, 96)
    x = torch.cat([reduce("6a/branch0/0", x, 384), reduce("6a/branch1/2", double, 96), F.max_pool2d(x, 3, 2)], 1)
    for m, d in SIX.items():
        b = [f"{m}/branch{i}" for i in range(4)]
        y = c(f"{b[1]}/1", c(f"{b[1]}/0", x, 1, d), row, d)
        z = c(f"{b[2]}/2", c(f"{b[2]}/1", c(f"{b[2]}/0", x, 1, d), column, d), row, d)
        z = c(f"{b[2]}/4", c(f"{b[2]}/3", z, column, d), row, 192)
        x = torch.cat([c(f"{b[0]}/0", x, 1, 192), c(f"{b[1]}/2", y, column, 192), z, c(f"{b[3]}/1", average(x), 1, 192)], 1)
    side = x
    y = c("7a/branch1/2", c("7a/branch1/1", c("7a/branch1/0", x, 1, 192), row, 192), column, 192)
    x = torch.cat([reduce("7a/branch0/1", c("7a/branch0/0", x, 1, 192), 320), reduce("7a/branch1/3", y, 192),
                   F.max_pool2d(x, 3, 2)], 1)
    for m in ("7b", "7c"):
        b = [f"{m}/branch{i}" for i in range(4)]
        y, z = c(f"{b[1]}/0", x, 1, 384), c(f"{b[2]}/1", c(f"{b[2]}/0", x, 1, 448), 3, 384)
        x = torch.cat([c(f"{b[0]}/0", x, 1, 320), c(f"{b[1]}/1", y, (1, 3), 384), c(f"{b[1]}/2", y, (3, 1), 384),
                       c(f"{b[2]}/2", z, (1, 3), 384), c(f"{b[2]}/3", z, (3, 1), 384), c(f"{b[3]}/1", average(x), 1, 192)], 1)
    target = labels(o, step, o["classes"])
    loss = F.cross_entropy(dense(p, "output", x.mean((2, 3)), o["classes"]), target)
    if evaluation or not o.get("auxiliary"):
        return loss
    side = c("auxiliary/conv1", F.avg_pool2d(side, min(5, side.shape[2]), 3), 1, 128)
    side = c("auxiliary/conv2", side, min(5, side.shape[2]), 768, 1, False)
    return loss + 0.4 * F.cross_entropy(dense(p, "auxiliary", side.mean((2, 3)), o["classes"]), target)


# --- DCGAN (Radford et al. 2016, with labels) ---------------------------------------------------------------------------------


def join(x, y):
    maps = y.reshape(*y.shape, 1, 1).expand(*y.shape, *x.shape[2:]) if x.dim() == 4 else y
    return torch.cat([x, maps], 1)


def linear(p, scope, x, outputs):
    return x @ p(f"{scope}/weight", x.shape[1], outputs)


def generate(p, o, z, y, how):
    u, side = o["units"], 7

    def up(scope, x, channels):
        """The gradient of the 5x5 convolution with stride 2 and padding 1 before, 2 after."""
        w = p(f"{scope}/weight", 5, 5, channels, x.shape[1]).permute(3, 2, 0, 1)
        return F.conv_transpose2d(x, w, stride=2)[:, :, 1:-2, 1:-2]

    x = F.relu(norm(p, "generator/dense1", linear(p, "generator/dense1", join(z, y), 16 * u), 1e-5, how))
    x = linear(p, "generator/dense2", join(x, y), side * side * 2 * u)
    x = F.relu(norm(p, "generator/dense2", x, 1e-5, how)).reshape(-1, side, side, 2 * u).permute(0, 3, 1, 2)
    x = F.relu(norm(p, "generator/conv1", up("generator/conv1", join(x, y), 2 * u), 1e-5, how))
    return torch.sigmoid(up("generator/conv2", join(x, y), 1) + p("generator/conv2/bias", 1))


def judge(p, o, x, y):
    def down(scope, v, channels):
        w = p(f"{scope}/weight", 5, 5, v.shape[1], channels).permute(3, 2, 0, 1)
        return F.conv2d(F.pad(v, (1, 2, 1, 2)), w, stride=2)

    classes, u = y.shape[1], o["units"]
    x = down("discriminator/conv1", join(x, y), 1 + classes)
    x = F.leaky_relu(x + p("discriminator/conv1/bias", 1 + classes).view(1, -1, 1, 1), 0.2)
    x = down("discriminator/conv2", join(x, y), u + classes)
    x = F.leaky_relu(norm(p, "discriminator/conv2", x, 1e-5, "batch"), 0.2).permute(0, 2, 3, 1).flatten(1)
    x = linear(p, "discriminator/dense1", join(x, y), 16 * u)
    x = F.leaky_relu(norm(p, "discriminator/dense1", x, 1e-5, "batch"), 0.2)
    return dense(p, "discriminator/dense2", join(x, y), 1)


def dcgan(name, p, o, step, evaluation):
    y = F.one_hot(labels(o, step, 10), 10).to(torch.get_default_dtype())
    z = uniform(f"z#{step}", (o["batch"], 100), -1, 1)

    def verdict(x, truth):
        logits = judge(p, o, x, y)
        return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, truth))

    if o["role"] == "generator":
        return verdict(generate(p, o, z, y, "batch" if evaluation else "train"), 1)
    return verdict(images(o, step, 28, 1), 1) + verdict(generate(p, o, z, y, "batch"), 0)


# --- language model -----------------------------------------------------------------------------------------------------------


def ptb(name, p, o, step, evaluation):
    batch, units, steps, vocabulary = o["batch"], o["units"], o["steps"], o["vocabulary"]
    tokens, targets = (integers(f"{what}#{step}", (batch, steps), vocabulary) for what in ("tokens", "targets"))
    state = {key: torch.zeros(batch, units) if evaluation or key not in p.all else p.all[key].detach()
             for key in (f"state/{kind}{layer}" for kind in "hc" for layer in range(2))}
    tops = []
    for t in range(steps):
        x = p("embedding/table", vocabulary, units)[tokens[:, t]]
        for layer in range(2):
            h, c = state[f"state/h{layer}"], state[f"state/c{layer}"]
            gates = x @ p(f"layer{layer}/w", units, 4 * units) + h @ p(f"layer{layer}/u", units, 4 * units)
            i, f, g, out = (gates + p(f"layer{layer}/b", 4 * units)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            x = h = torch.sigmoid(out) * torch.tanh(c)
            state[f"state/h{layer}"], state[f"state/c{layer}"] = h, c
        tops.append(x)
    if not evaluation:
        p.all |= {key: value.detach() for key, value in state.items()}
    return F.cross_entropy(dense(p, "output", torch.cat(tops), vocabulary), targets.t().reshape(-1))


# --- cases --------------------------------------------------------------------------------------------------------------------


def momentum(decay):
    def make(parameters, rate):
        matrices, vectors = ([v for v in parameters.values() if (v.dim() > 1) == big] for big in (True, False))
        return torch.optim.SGD([{"params": matrices, "weight_decay": decay}, {"params": vectors}], lr=rate, momentum=0.9)
    return make


def adam(only):
    def make(parameters, rate):
        return torch.optim.Adam([v for n, v in parameters.items() if n.startswith(only)], lr=rate, betas=(0.5, 0.999))
    return make


def sgd(parameters, rate):
    return torch.optim.SGD(parameters.values(), lr=rate)


def train(name, network, o, make, rate, gain, steps):
    p, losses, norms, optimizer = Parameters(gain), [], [], None
    for step in range(steps):
        loss = network(name, p, o, step, False)
        trained = p.trained()
        optimizer = optimizer or make(trained, rate)
        for value in trained.values():
            value.grad = None
        (loss * (o["steps"] if name == "ptb" else 1)).backward()
        if name == "ptb":
            norms.append(torch.nn.utils.clip_grad_norm_(trained.values(), 5).item())
        optimizer.step()
        losses.append(loss.item())
    assert not norms or max(norms) > 5, "clipping is not exercised"
    with torch.no_grad():
        evaluation = network(name, p, o, steps, True).item()
    return {"loss": losses, "evaluation": evaluation,
            "changes": {n: statistics(v - p.initial.get(n, 0)) for n, v in p.all.items()}}


RESNET = {"image": 16, "units": 4, "batch": 8, "classes": 10}
INCEPTION = {"image": 107, "batch": 4, "classes": 10, "auxiliary": True}
GAN = {"units": 4, "batch": 8}
PTB = {"units": 16, "steps": 5, "batch": 4, "vocabulary": 30}

CASES = (("resnet20", resnet, RESNET, momentum(2e-4), 0.02, 1, 5),
         ("resnet20", resnet, RESNET | {"bottleneck": True}, momentum(2e-4), 0.02, 1, 4),
         ("resnet50", resnet, RESNET | {"bottleneck": True, "units": 2}, momentum(2e-4), 0.005, 1, 2),
         ("inception-v3", inception_v3, INCEPTION, momentum(4e-5), 5e-4, 1, 2),
         ("dcgan", dcgan, GAN | {"role": "discriminator"}, adam("discriminator/"), 2e-4, 1, 5),
         ("dcgan", dcgan, GAN | {"role": "generator"}, adam("generator/"), 2e-4, 1, 5),
         ("ptb", ptb, PTB, sgd, 1, 6, 10))


def main():
    wanted = sys.argv[1:]
    # Single elements of Inception's early gradients: 94 normalizations of few values make much of a ReLU that falls the other way.
    cases = [case(name, o, train, name, network, o, make, rate, gain, steps, rate=rate, gain=gain,
                  **({"tolerance": 0.1} if name == "inception-v3" else {}))
             for name, network, o, make, rate, gain, steps in CASES if not wanted or name in wanted]
    json.dump({"torch": torch.__version__, "cases": cases}, sys.stdout, indent=0, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
