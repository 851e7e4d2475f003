#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# onnx.version_converter takes a Resize of opset 10 to opset 11 and newer with other numbers, without a warning.
# A good guess: the converter keeps what a model computes, or says that it cannot. Opset 10 places samples at x / scale, so the converted
# node has coordinate_transformation_mode "asymmetric".
# Found: the attribute stays unset, which means "half_pixel" from opset 11 on, and linear interpolation gives other values. Nearest keeps
# its values at whole scales. Upsample of opset 9 goes the same way through 10.
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

x = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
old = model([helper.make_node("Resize", ["x", "scales"], ["y"], mode="linear")], x, (1, 1, 1, 8), 10,
            scales=np.array([1, 1, 1, 2], np.float32))
new = version_converter.convert_version(old, 11)
node = next(n for n in new.graph.node if n.op_type == "Resize")
before, after = run(old, x).ravel().tolist(), run(new, x).ravel().tolist()
print("onnx", onnx.__version__, "attributes", [a.name for a in node.attribute])
print("opset 10", before)
print("opset 11", after)
assert before == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3]
assert after == [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]
assert not any(a.name == "coordinate_transformation_mode" for a in node.attribute)
PY
