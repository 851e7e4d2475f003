#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# onnxoptimizer fuses a Pad of zeros into the MaxPool behind it, which changes the maximum.
# A good guess: only an average pool that counts its padding can take over zeros; a max-pool pads with minus infinity.
# Found: `fuse_pad_into_pool` takes both. Where a window at the border has negative numbers alone, 0 becomes the largest of them.
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

x = -np.arange(1, 5, dtype=np.float32).reshape(1, 1, 4)
old = model([helper.make_node("Pad", ["x", "pads"], ["p"]), helper.make_node("MaxPool", ["p"], ["y"], kernel_shape=[3])], x, (1, 1, 4), 17,
            pads=np.array([0, 0, 1, 0, 0, 1], np.int64))
new = onnxoptimizer.optimize(old, ["fuse_pad_into_pool"])
before, after = run(old, x).ravel().tolist(), run(new, x).ravel().tolist()
print("onnxoptimizer", onnxoptimizer.__version__, [n.op_type for n in new.graph.node], before, after)
assert before == [0, -1, -2, 0] and after == [-1, -1, -2, -3]
PY
