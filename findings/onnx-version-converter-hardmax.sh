#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# onnx.version_converter takes Hardmax of opset 11 to opset 13 as it is, though the operator means something else there.
# A good guess: Softmax, LogSoftmax and Hardmax changed in opset 13 in the same way, from a matrix made by flattening at `axis` to that axis
# alone, so all three are converted alike.
# Found: Softmax and LogSoftmax get a Flatten before and a Reshape after them; Hardmax does not, and marks one element a vector of the axis
# where there was one of the whole matrix row.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$work/env/bin/python" - <<'PY'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx import version_converter
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

x = np.array([[[1, 2], [3, 9]], [[8, 1], [2, 3]]], np.float32)
count = {}
for kind in ("Softmax", "Hardmax"):
    old = model([helper.make_node(kind, ["x"], ["y"], axis=1)], x, x.shape, 11)
    new = version_converter.convert_version(old, 13)
    before, after = run(old, x), run(new, x)
    print("onnx", onnx.__version__, kind, [n.op_type for n in new.graph.node], "same" if np.allclose(before, after) else "other values")
    print("opset 11", before.ravel().round(3).tolist(), "opset 13", after.ravel().round(3).tolist())
    count[kind] = (round(float(before.sum())), round(float(after.sum())), np.allclose(before, after))
assert count["Softmax"] == (2, 2, True)
assert count["Hardmax"] == (2, 4, False)
PY
