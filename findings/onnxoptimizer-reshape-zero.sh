#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# onnxoptimizer drops a Reshape before another one although the second copies a dimension of the first one's result.
# A good guess: the last Reshape decides the shape unless it has a 0, which means "as in my input".
# Found: the default passes remove the first of two Reshapes whatever the second says. A result of 3 x 8 becomes one of 2 x 12, with the
# declared shape of the output left as it was.
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

x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
old = model([helper.make_node("Reshape", ["x", "a"], ["m"]), helper.make_node("Reshape", ["m", "b"], ["y"])], x, ("r", "c"), 17,
            a=np.array([3, 2, 4], np.int64), b=np.array([0, -1], np.int64))
new = onnxoptimizer.optimize(old)
before, after = run(old, x).shape, run(new, x).shape
print("onnxoptimizer", onnxoptimizer.__version__, [n.op_type for n in new.graph.node], before, after)
assert before == (3, 8) and after == (2, 12)
PY
