# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions as PyTorch runs them with its own oneDNN: a child process of `graphi bench kernels`, asked
by lines of JSON like the peers of common.py. Products are oneDNN's linear layer on weights that were reordered once;
convolutions are channels-last.

    {"cmd":"version"}                                                                       -> {"ok":true,"version":".."}
    {"cmd":"gemm","m":..,"n":..,"k":..,"trans_a":..,"trans_b":..,"threads":..,"repeat":..,"copies":..}  -> {"ok":true,"ms":X}
    {"cmd":"conv","n":..,"h":..,"w":..,"c":..,"k":..,"kernel":[h,w],"stride":..,"pad":[h,w],"groups":..,"direction":0|1|2, as above}  -> the same

ms: the median of `repeat` rounds of one execution, out of `copies` whose results are all kept."""
import ctypes
import json
import os
import sys
import time

import common

common.prepare_threads()
ctypes.CDLL(None).mallopt(-3, 1 << 30)  # results come from the heap and go back to it: new pages each time are not what is compared
ctypes.CDLL(None).mallopt(-1, (1 << 31) - 1)
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
import torch  # noqa: E402


def gemm(r):
    a = torch.rand((r["k"], r["m"]) if r["trans_a"] else (r["m"], r["k"]))
    a = a.t() if r["trans_a"] else a
    weight = torch.ops.mkldnn._reorder_linear_weight(torch.rand(r["n"], r["k"]), r["m"])
    return lambda: torch.ops.mkldnn._linear_pointwise(a, weight, None, "none", [], "")


def conv(r):
    x = torch.rand(r["n"], r["c"], r["h"], r["w"]).to(memory_format=torch.channels_last)
    weight = torch.rand(r["k"], r["c"] // r["groups"], *r["kernel"]).to(memory_format=torch.channels_last)
    stride, pad, groups = [r["stride"]] * 2, r["pad"], r["groups"]
    if r["direction"] == 0:
        return lambda: torch.conv2d(x, weight, None, stride, pad, 1, groups)
    dy, wanted = torch.rand_like(torch.conv2d(x, weight, None, stride, pad, 1, groups)), [r["direction"] == 1, r["direction"] == 2, False]
    return lambda: torch.ops.aten.convolution_backward(dy, x, weight, None, stride, pad, [1, 1], False, [0, 0], groups, wanted)


def measure(make, r):
    torch.set_num_threads(r["threads"])
    call, ms, kept = make(r), [], [None] * r["copies"]
    for i in range(-2, r["repeat"]):
        begin = time.perf_counter()
        for copy in range(r["copies"]):
            kept[copy] = call()
        if i >= 0:
            ms.append((time.perf_counter() - begin) * 1e3 / r["copies"])
    return {"ms": sorted(ms)[len(ms) // 2]}


COMMANDS = {"version": lambda r: {"version": torch.__version__}, "gemm": lambda r: measure(gemm, r), "conv": lambda r: measure(conv, r)}

with torch.no_grad():
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": True, **COMMANDS[request["cmd"]](request)}
        except Exception as error:  # the benchmark says which row it was
            answer = {"ok": False, "error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        answers.write(json.dumps(answer) + "\n")
