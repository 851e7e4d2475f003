#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# onnxoptimizer and onnxsim fail on a Softmax without `axis` that a Log follows.
# A good guess: an attribute that is left out has its default, -1, when the two become LogSoftmax.
# Found: both raise RuntimeError from an assertion about a required attribute, since onnxsim runs onnxoptimizer's passes. With `axis=-1` written
# out both succeed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6 onnxoptimizer==0.4.2 onnxsim==0.8.1
"$work/env/bin/python" - <<'PY'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper
import onnxoptimizer, onnxsim
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

x = np.arange(4, dtype=np.float32)
told = {}
for attributes in ({}, {"axis": -1}):
    old = model([helper.make_node("Softmax", ["x"], ["s"], **attributes), helper.make_node("Log", ["s"], ["y"])], x, (4,), 17)
    for name, tool in (("onnxoptimizer", onnxoptimizer.optimize), ("onnxsim", lambda m: onnxsim.simplify(m)[0])):
        try:
            told[name, bool(attributes)] = [n.op_type for n in tool(old).graph.node]
        except RuntimeError as error:
            told[name, bool(attributes)] = "RuntimeError"
            print(name, str(error)[-120:])
print(told)
for name in ("onnxoptimizer", "onnxsim"):
    assert told[name, False] == "RuntimeError" and told[name, True] == ["LogSoftmax"]
PY
