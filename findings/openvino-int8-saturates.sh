#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO saturates sums and products of 8-bit integers, where ONNX's reference and ONNX Runtime wrap around.
# A good guess: integer arithmetic is modulo 2^8, as in NumPy and in every other engine.
# Found: 250 + 10 is 255 in uint8, 100 * 10 is 127 in int8. Hashes and checksums in a graph differ; quantized models rarely do.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6 openvino==2026.4.1
"$work/env/bin/python" - <<'PY'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper
import openvino
onnxruntime.set_default_logger_severity(4)

def run(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]

def model(nodes, x, shape, opset, **constants):
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", kind, x.shape)],
                              [helper.make_tensor_value_info("y", kind, shape)],
                              [numpy_helper.from_array(a, n) for n, a in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made)
    return made

def both(nodes, x, y_kind=None, **constants):
    made = model(nodes, x, x.shape, 17, **constants)
    if y_kind is not None:
        made.graph.output[0].type.tensor_type.elem_type = y_kind
    core = openvino.Core()
    other = core.compile_model(core.read_model(made.SerializeToString()), "CPU")([x])[0]
    return run(made, x), other

x = np.array([1, 250, 255], np.uint8)
ours, other = both([helper.make_node("Add", ["x", "k"], ["y"])], x, k=np.array([10], np.uint8))
print("openvino", openvino.__version__, "uint8 + 10", other.tolist(), "ONNX Runtime", ours.tolist())
assert ours.tolist() == [11, 4, 9] and other.tolist() == [11, 255, 255]
x = np.array([1, 100, -100], np.int8)
ours, other = both([helper.make_node("Mul", ["x", "k"], ["y"])], x, k=np.array([10], np.int8))
print("int8 * 10", other.tolist(), ours.tolist())
assert ours.tolist() == [10, -24, 24] and other.tolist() == [10, 127, -128]
PY
