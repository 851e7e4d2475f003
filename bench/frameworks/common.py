# SPDX-License-Identifier: Apache-2.0
"""What the peers share: the formula that arrays are filled by, statistics of gradients, and the line protocol.

A peer is a child process of `graphi bench frameworks`. It reads one JSON object a line on standard input and answers
each with one line; whatever a framework prints goes to standard error.

    {"cmd":"settings","model":M,"mode":MODE}           -> {"ok":true,"settings":[NAME, ...]}
    {"cmd":"load","model":M,"mode":MODE,"setting":NAME,"cores":N,"seed":N,"rate":X,"batch":..,"steps":..,"units":..,"image":..,
     "channels":..,"classes":..,"layers":..}           -> {"ok":true,"version":"..","start_rss":BYTES}
    {"cmd":"step","n":N}                               -> {"ok":true,"ms":[..],"loss":X}
    {"cmd":"memory"}                                   -> {"ok":true,"peak_rss":BYTES}   (highest since load)
    {"cmd":"check","rate":X}                           -> {"ok":true,"loss":X,"gradients":{NAME:[norm, probe]}}
    {"cmd":"quit"}

An error is {"ok":false,"error":".."}. MODE is training or inference. The first step after load compiles, where a
framework does.
Names, shapes and layouts of parameters are Graphi's (see networks.py); `check` does one step from the first weights, at
a rate of its own where the step updates them, and puts them back; the rate of `load` is tiny, so that timed steps all
do alike.
"""
import json
import math
import os
import sys
import time

import numpy as np

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15
CHUNK = 1 << 18


def mix(key, first, count):
    """`count` numbers of [0, 1) with 24 bits: splitmix64 of key at positions first + 1, first + 2, ..."""
    with np.errstate(over="ignore"):
        z = np.uint64(key) + np.arange(first + 1, first + 1 + count, dtype=np.uint64) * np.uint64(GAMMA)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def unit(key, first, count):
    return (mix(key, first, count) >> np.uint64(40)).astype(np.float64) / 2**24


def name_key(name):
    """FNV-1a."""
    key = 14695981039346656037
    for byte in name.encode():
        key = ((key ^ byte) * 1099511628211) & MASK
    return key


def input_key(name, seed):
    key = (seed * 1000003 + 17) & MASK
    for byte in name.encode():
        key = (key * 31 + byte) & MASK
    return key


def filled(key, dims, low, high):
    """Float32 array of [low, high); a piece at a time, so that little memory is used beside it."""
    out = np.empty(math.prod(dims), np.float32)
    for first in range(0, out.size, CHUNK):
        part = out[first : first + CHUNK]
        part[:] = low + (high - low) * unit(key, first, part.size)
    return out.reshape(dims)


def input_array(name, dims, seed):
    return filled(input_key(name, seed), dims, -1, 1)


def input_labels(name, count, below, seed):
    return (mix(input_key(name, seed), 0, count) % np.uint64(below)).astype(np.int32)


# Last part of a parameter's name -> range; biases +-0.1; gates' matrices as the bench task says; others +-sqrt(6 /
# inputs).
RANGES = {"period": (1.5, 20), "shift": (0, 1), "ratio": (0.3, 0.6)}


def parameter_array(name, dims):
    last = name.split("/")[-1]
    if last in RANGES:
        low, high = RANGES[last]
    elif len(dims) == 1:
        low, high = -0.1, 0.1
    elif last[:2] in ("w_", "u_"):
        low, high = -0.01, 0.01
    else:
        high = math.sqrt(6 / math.prod(dims[:-1]))
        low = -high
    return filled(name_key(name), dims, low, high)


def statistics(name, gradient):
    """Euclidean norm, and the product with a fixed vector of [-1, 1): the second sees permutations and signs."""
    flat = np.ascontiguousarray(gradient, dtype=np.float32).reshape(-1)
    key, squares, probe = name_key("probe/" + name), 0.0, 0.0
    for first in range(0, flat.size, CHUNK):
        part = flat[first : first + CHUNK].astype(np.float64)
        squares += float(part @ part)
        probe += float(part @ (2 * unit(key, first, part.size) - 1))
    return [math.sqrt(squares), probe]


def status_bytes(key):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    return 0


def forget_peak():
    """The highest resident set is counted from here on."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def prepare_threads():
    """Spinning between turns would disturb whoever's turn it is: 5 ms is longer than any pause inside a step."""
    os.environ.setdefault("KMP_BLOCKTIME", "5")


class Server:
    """Answers the protocol. `settings(model, mode)` lists setting names and must not import the framework;
    `load(request)` imports it, calls request["started"]() right after, and gives a network with version, step() ->
    loss, check(rate) -> (loss, [(name, array), ..])."""

    def __init__(self, settings, load):
        self.settings, self.load, self.network = settings, load, None
        self.answers = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        self.start_rss = 0

    def started(self):
        self.start_rss = status_bytes("VmRSS")

    def do_settings(self, request):
        return {"settings": self.settings(request["model"], request["mode"])}

    def do_load(self, request):
        prepare_threads()
        request["started"] = self.started
        self.network = self.load(request)
        forget_peak()
        return {"version": self.network.version, "start_rss": self.start_rss}

    def do_step(self, request):
        ms = []
        for _ in range(request["n"]):
            begin = time.perf_counter()
            loss = self.network.step()
            ms.append((time.perf_counter() - begin) * 1e3)
        return {"ms": ms, "loss": loss if math.isfinite(loss) else None}

    def do_memory(self, request):
        return {"peak_rss": status_bytes("VmHWM")}

    def do_check(self, request):
        loss, gradients = self.network.check(request["rate"])
        return {"loss": loss, "gradients": {name: statistics(name, value) for name, value in gradients}}

    def run(self):
        for line in sys.stdin:
            request = json.loads(line)
            if request["cmd"] == "quit":
                break
            try:
                answer = {"ok": True} | getattr(self, "do_" + request["cmd"])(request)
            except Exception as error:  # the driver makes a row of it
                text = " ".join(str(error).split())[:300]
                answer = {"ok": False, "error": f"{type(error).__name__}: {text}"}
            self.answers.write(json.dumps(answer) + "\n")
        os._exit(0)  # thread pools of some frameworks hang in their destructors
