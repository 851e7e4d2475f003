# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's part of `graphi bench run-cost`: the graph of bench/lib/five_nodes.c on one thread, input and output bound.

Reads one JSON object a line and answers each with one line, as common.py describes:
    {"cmd":"check"}       -> {"ok":true,"y":[...],"version":".."}
    {"cmd":"step","n":N}  -> {"ok":true,"ms":X}   (of N executions together)
    {"cmd":"quit"}
"""
import json
import os
import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SIDE = 16


def numbers(matrix):
    i = np.arange(SIDE * SIDE)
    return ((((i * 7919 + matrix * 104729) % 1009) - 504) / 2018).astype(np.float32).reshape(SIDE, SIDE)


def model():
    nodes, at = [], "x"
    for k in (1, 2, 3):
        nodes.append(helper.make_node("MatMul", [at, f"w{k}"], [f"m{k}" if k < 3 else "y"]))
        if k < 3:
            nodes.append(helper.make_node("Tanh", [f"m{k}"], [f"t{k}"]))
        at = f"t{k}"
    weights = [numpy_helper.from_array(numbers(k), f"w{k}") for k in (1, 2, 3)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [SIDE, SIDE]) for name in "xy")
    made = helper.make_model(helper.make_graph(nodes, "five", [x], [y], weights), opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    onnx.checker.check_model(made)
    return made.SerializeToString()


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model(), options, providers=["CPUExecutionProvider"])
    x, y = onnxruntime.OrtValue.ortvalue_from_numpy(numbers(0)), onnxruntime.OrtValue.ortvalue_from_shape_and_type([SIDE, SIDE], np.float32)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    call, bound = session._sess.run_with_iobinding, binding._iobinding  # without the layer of Python around it
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"ok": True, "version": onnxruntime.__version__}
        if request["cmd"] == "check":
            call(bound, None)
            answer["y"] = y.numpy().reshape(-1).astype(float).tolist()
        elif request["cmd"] == "step":
            begin = time.perf_counter()
            for _ in range(request["n"]):
                call(bound, None)
            answer["ms"] = 1e3 * (time.perf_counter() - begin)
        else:
            break
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
