#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference_solvers.json: as reference.py, for the networks that NUMA-Caffe is measured with.

    pip install torch==2.13.0 numpy
    python3 tools/reference_solvers.py > tests/data/reference_solvers.json

Gains are so large that normalization changes activations by more than rounding does."""
import json
import sys

import torch
import torch.nn.functional as F

from reference import case, dense
from reference_workloads import images, labels, train


def conv(p, scope, x, kernel, channels, stride=1, pad=0, groups=1):
    weight = p(f"{scope}/weight", kernel, kernel, x.shape[1] // groups, channels).permute(3, 2, 0, 1)
    return F.conv2d(x, weight, p(f"{scope}/bias", channels), stride=stride, padding=pad, groups=groups)


def largest(x):
    return F.max_pool2d(x, 3, 2, ceil_mode=True)


def average(x):
    return F.avg_pool2d(x, 3, 2, ceil_mode=True)


def flat(x):
    return x.permute(0, 2, 3, 1).flatten(1)


def within(x):
    """Caffe's LRN with norm_region WITHIN_CHANNEL: an average of squares, zeros around counted."""
    return x * (1 + 5e-5 * F.avg_pool2d(x * x, 3, 1, 1, count_include_pad=True)) ** -0.75


def cifar10(name, p, o, step, evaluation):
    full, units = name == "cifar10-full", o["units"]
    norm = within if full else lambda x: x
    x = images(o, step, o["image"], 3)
    x = norm(F.relu(largest(conv(p, "conv1", x, 5, units, 1, 2))))
    x = norm(average(F.relu(conv(p, "conv2", x, 5, units, 1, 2))))
    x = flat(average(F.relu(conv(p, "conv3", x, 5, 2 * units, 1, 2))))
    if not full:
        x = dense(p, "dense1", x, 2 * units)
    logits = dense(p, "dense1" if full else "dense2", x, o["classes"])
    return F.cross_entropy(logits, labels(o, step, o["classes"]))


def alexnet(name, p, o, step, evaluation):
    def count(published):
        return (published * o["units"] + 191) // 192 * 2

    def lrn(x):
        return F.local_response_norm(x, 5, 1e-4, 0.75, 1.0)

    x = images(o, step, o["image"], 3)
    x = largest(lrn(F.relu(conv(p, "conv1", x, 11, count(96), 4))))
    x = largest(lrn(F.relu(conv(p, "conv2", x, 5, count(256), 1, 2, 2))))
    x = F.relu(conv(p, "conv3", x, 3, count(384), 1, 1))
    x = F.relu(conv(p, "conv4", x, 3, count(384), 1, 1, 2))
    x = flat(largest(F.relu(conv(p, "conv5", x, 3, count(256), 1, 1, 2))))
    for layer in ("dense6", "dense7"):
        x = F.relu(dense(p, layer, x, count(4096)))
    return F.cross_entropy(dense(p, "dense8", x, o["classes"]), labels(o, step, o["classes"]))


def caffe(decay, multipliers):
    """torch.optim.SGD, each parameter with its own rate and decay; `multipliers` by name, else (1, 1), of a bias (2, 1)."""
    def make(parameters, rate):
        groups = []
        for name, value in parameters.items():
            times = multipliers.get(name) or ((2, 1) if name.endswith("bias") else (1, 1))
            groups.append({"params": [value], "lr": rate * times[0], "weight_decay": decay * times[1]})
        return torch.optim.SGD(groups, lr=rate, momentum=0.9)
    return make


LAYERS = ["conv1", "conv2", "conv3", "conv4", "conv5", "dense6", "dense7", "dense8"]
FULL = {"conv3/bias": (1, 1), "dense1/weight": (1, 250), "dense1/bias": (2, 0)}
CIFAR = {"image": 16, "units": 8, "batch": 6, "classes": 10}
CASES = (("cifar10-full", cifar10, CIFAR, caffe(0.004, FULL), 2e-6, 8, 4),
         ("cifar10-quick", cifar10, CIFAR, caffe(0.004, {}), 0.001, 1, 4),
         ("alexnet", alexnet, {"image": 99, "units": 12, "batch": 4, "classes": 20},
          caffe(5e-4, {f"{layer}/bias": (2, 0) for layer in LAYERS}), 1e-4, 2, 3))


def main():
    wanted = sys.argv[1:]
    cases = [case(name, o, train, name, network, o, make, rate, gain, steps, rate=rate, gain=gain)
             for name, network, o, make, rate, gain, steps in CASES if not wanted or name in wanted]
    json.dump({"torch": torch.__version__, "cases": cases}, sys.stdout, indent=0, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
