# SPDX-License-Identifier: Apache-2.0
"""A recurrent layer in ONNX Runtime, PyTorch or OpenVINO, for `graphi bench recurrent`: one layer, time-major input, zero
initial states, uniform weights. It reads one JSON object a line and answers each with one line (common.py):

    {"cmd":"load","engine":E,"cell":"lstm"|"gru","input":I,"units":H,"batch":B,"steps":T,"threads":N} -> {"ok":true,"version":".."}
    {"cmd":"step","n":N}  -> {"ok":true,"ms":[..]}
    {"cmd":"result"}      -> {"ok":true,"sum":X,"square":X}   of all outputs, so that both sides are known to compute the same

Serving is timed without gradients (PyTorch: no_grad), as its users serve."""
import json
import os
import sys
import tempfile
import time

import numpy as np

import common

GATES = {"lstm": 4, "gru": 3}
# Which of our gates (LSTM i, f, g, o; GRU r, z, n) comes in each place of ONNX's i, o, f, c and z, r, h.
ONNX_ORDER = {"lstm": [0, 3, 1, 2], "gru": [1, 0, 2]}


def weights(r):
    """In PyTorch's shapes and order, by the formula that the benchmark fills ours with."""
    gates, units = GATES[r["cell"]] * r["units"], r["units"]
    return [common.filled(common.name_key(name), dims, -0.1, 0.1) for name, dims in
            (("weight_ih_l0", (gates, r["input"])), ("weight_hh_l0", (gates, units)), ("bias_ih_l0", (gates,)), ("bias_hh_l0", (gates,)))]


def onnx_model(r):
    from onnx import TensorProto, helper, numpy_helper

    units, order = r["units"], ONNX_ORDER[r["cell"]]
    gate = lambda a: np.concatenate([a[g * units:(g + 1) * units] for g in order])
    w_ih, w_hh, b_ih, b_hh = (gate(a) for a in weights(r))
    more = {"linear_before_reset": 1} if r["cell"] == "gru" else {}
    node = helper.make_node(r["cell"].upper(), ["x", "w", "r", "b"], ["y"], hidden_size=units, **more)
    arrays = {"w": w_ih[None], "r": w_hh[None], "b": np.concatenate([b_ih, b_hh])[None]}
    shape = [r["steps"], r["batch"], r["input"]]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [r["steps"], 1, r["batch"], units])],
                              [numpy_helper.from_array(np.ascontiguousarray(a), n) for n, a in arrays.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8).SerializeToString()


def onnxruntime(r, x):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = r["threads"], 1
    session = ort.InferenceSession(onnx_model(r), options, providers=["CPUExecutionProvider"])
    return ort.__version__, lambda: session.run(None, {"x": x})[0]


def openvino(r, x):
    import openvino as ov

    core = ov.Core()
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(onnx_model(r))
        file.flush()
        model = core.compile_model(core.read_model(file.name), "CPU", {"INFERENCE_NUM_THREADS": r["threads"], "PERFORMANCE_HINT": "LATENCY",
                                                                       "INFERENCE_PRECISION_HINT": "f32"})
    request = model.create_infer_request()
    return ov.__version__.split("-")[0], lambda: request.infer({"x": x}, share_inputs=True)[0]


def pytorch(r, x):
    import torch

    torch.set_num_threads(r["threads"])
    layer = (torch.nn.LSTM if r["cell"] == "lstm" else torch.nn.GRU)(r["input"], r["units"])
    with torch.no_grad():
        for p, value in zip((layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0), weights(r)):
            p.copy_(torch.from_numpy(value))
    given = torch.from_numpy(x)

    def run():
        with torch.no_grad():
            return layer(given)[0].numpy()

    return torch.__version__, run


ENGINES = {"onnxruntime": onnxruntime, "openvino": openvino, "pytorch": pytorch}


class Peer:
    def do_load(self, r):
        x = common.filled(common.name_key("x"), (r["steps"], r["batch"], r["input"]), -1, 1)
        version, self.run = ENGINES[r["engine"]](r, x)
        self.result = self.run()
        return {"version": version}

    def do_step(self, r):
        ms = []
        for _ in range(r["n"]):
            begin = time.perf_counter()
            self.result = self.run()
            ms.append((time.perf_counter() - begin) * 1e3)
        return {"ms": ms}

    def do_result(self, r):
        y = self.result.astype(np.float64)
        return {"sum": float(y.sum()), "square": float((y * y).sum())}


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    common.prepare_threads()
    peer = Peer()
    for line in sys.stdin:
        request = json.loads(line)
        if request["cmd"] == "quit":
            break
        try:
            answer = {"ok": True, **getattr(peer, "do_" + request["cmd"])(request)}
        except Exception as error:  # whatever a framework raises is an answer
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
