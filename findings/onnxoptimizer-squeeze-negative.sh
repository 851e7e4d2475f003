#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# onnxoptimizer adds the axes of two Squeezes although the second one counts from the end.
# A good guess: negative axes are made positive by the rank before two lists of axes are joined.
# Found: [-1] after [-1] becomes another pair of axes, and a result of 1 x 3 becomes one of 3 x 1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6 onnxoptimizer==0.4.2
"$work/env/bin/python" - <<'PY'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper
import onnxoptimizer
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

x = np.arange(3, dtype=np.float32).reshape(1, 3, 1, 1)
old = model([helper.make_node("Squeeze", ["x", "a"], ["m"]), helper.make_node("Squeeze", ["m", "a"], ["y"])], x, ("r", "c"), 17,
            a=np.array([-1], np.int64))
new = onnxoptimizer.optimize(old)
before, after = run(old, x).shape, run(new, x).shape
axes = [numpy_helper.to_array(t).tolist() for t in new.graph.initializer]
print("onnxoptimizer", onnxoptimizer.__version__, [n.op_type for n in new.graph.node], "axes", axes, before, after)
assert before == (1, 3) and after == (3, 1)
PY
