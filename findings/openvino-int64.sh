#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO computes int64 in 32 bits on CPUs, without a word, behind ports that stay int64.
# A good guess: a model with int64 inputs and outputs computes in int64, or compiling it says that it does not.
# Found: 2^40 + 1 is 1, 2^31 * 1 is -2^31, three times 2^30 add up to -2^30, and 2^40 = 2^40 is false. Hashed ids and time stamps are such
# numbers.
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

x = np.array([2**40, 2**31, -2**33, 7], np.int64)
ours, other = both([helper.make_node("Add", ["x", "k"], ["y"])], x, k=np.array([1], np.int64))
print("openvino", openvino.__version__, other.dtype, other.tolist(), "ONNX Runtime", ours.tolist())
assert other.dtype == np.int64 and other.tolist() == [1, -2**31 + 1, 1, 8] and ours.tolist() == (x + 1).tolist()
ours, other = both([helper.make_node("Equal", ["x", "k"], ["y"])], x, TensorProto.BOOL, k=np.array([2**40], np.int64))
print("equal", other.tolist(), ours.tolist())
assert ours.tolist() == [True, False, False, False] and not other.any()
PY
