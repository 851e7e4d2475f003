#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO turns NaN into a number in Relu, Max, Clip and ReduceMax on CPUs.
# A good guess: NaN stays NaN, as in ONNX Runtime, PyTorch and NumPy's maximum, so that a broken sensor is seen in the result.
# Found: Relu(NaN) and Clip(NaN) are 0, Max(NaN, 1) is 1, and the largest of NaN, -1 and 2 is 2. A network with a Relu gives clean numbers for
# inputs that are not.
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

x = np.array([np.nan, -1, 2], np.float32)
zero, one = np.array(0, np.float32), np.array(1, np.float32)
for node, constants, told in ((helper.make_node("Relu", ["x"], ["y"]), {}, 0), (helper.make_node("Max", ["x", "k"], ["y"]), {"k": one}, 1),
                              (helper.make_node("Clip", ["x", "a", "b"], ["y"]), {"a": zero, "b": one}, 0)):
    ours, other = both([node], x, **constants)
    print("openvino", openvino.__version__, node.op_type, other.tolist(), "ONNX Runtime", ours.tolist())
    assert np.isnan(ours[0]) and other[0] == told
PY
