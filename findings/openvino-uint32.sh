#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO computes uint32 as int32 on CPUs: comparisons and shifts of numbers above 2^31 are those of negative ones.
# A good guess: unsigned types are computed unsigned.
# Found: 2^31 > 1 is false, and 2^31 shifted right by one is 3221225472 instead of 1073741824.
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

x = np.array([1, 2**31, 2**32 - 1], np.uint32)
ours, other = both([helper.make_node("Greater", ["x", "k"], ["y"])], x, TensorProto.BOOL, k=np.array([1], np.uint32))
print("openvino", openvino.__version__, "greater", other.tolist(), "ONNX Runtime", ours.tolist())
assert ours.tolist() == [False, True, True] and other.tolist() == [False, False, False]
ours, other = both([helper.make_node("BitShift", ["x", "k"], ["y"], direction="RIGHT")], x, k=np.array([1], np.uint32))
print("shift", other.tolist(), ours.tolist())
assert ours.tolist() == [0, 2**30, 2**31 - 1] and other[1] == 3221225472
PY
