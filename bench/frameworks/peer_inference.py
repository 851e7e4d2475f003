# SPDX-License-Identifier: Apache-2.0
"""An ONNX model in ONNX Runtime or OpenVINO, for `graphi bench inference`. It reads one JSON object a line and answers each with one
line (common.py):

    {"cmd":"load","engine":E,"path":P,"threads":N,"inputs":[{"name":S,"dims":[..],"number":I},..]}
        -> {"ok":true,"version":"..","load_ms":X,"peak_bytes":B,"sums":[..],"squares":[..]}   of every output
    {"cmd":"step","n":N}  -> {"ok":true,"ms":[..]}

Floats are by formula, the name being the key; whole numbers are `number`. load_ms is from opening to the first result, peak_bytes what was
resident beyond what was there before."""
import json
import os
import sys
import time

import numpy as np

import common


def onnxruntime(r):
    import onnxruntime as ort

    def load():
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = r["threads"], 1
        session = ort.InferenceSession(r["path"], options, providers=["CPUExecutionProvider"])
        types = {i.name: i.type for i in session.get_inputs()}
        return types, lambda given: session.run(None, given)

    return ort.__version__, load


def openvino(r):
    import openvino as ov

    def load():
        core = ov.Core()
        model = core.read_model(r["path"])
        model.reshape({i["name"]: i["dims"] for i in r["inputs"]})
        types = {name: port.get_element_type().get_type_name() for port in model.inputs for name in port.get_names()}
        compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": r["threads"], "PERFORMANCE_HINT": "LATENCY",
                                                     "INFERENCE_PRECISION_HINT": "f32"})
        request = compiled.create_infer_request()
        outputs = list(compiled.outputs)

        def run(given):
            found = request.infer(given, share_inputs=True)
            return [found[port] for port in outputs]

        return types, run

    return ov.__version__.split("-")[0], load


ENGINES = {"onnxruntime": onnxruntime, "openvino": openvino}


def array(item, kind):
    if "int64" in kind or kind == "i64":
        return np.full(item["dims"], item["number"], np.int64)
    return common.filled(common.name_key(item["name"]), item["dims"], -1, 1)


class Peer:
    def do_load(self, r):
        version, load = ENGINES[r["engine"]](r)
        common.forget_peak()
        before, begin = common.status_bytes("VmRSS"), time.perf_counter()
        types, run = load()
        self.given = {item["name"]: array(item, types[item["name"]]) for item in r["inputs"]}
        results = run(self.given)
        load_ms = (time.perf_counter() - begin) * 1e3
        peak = common.status_bytes("VmHWM") - before
        self.run = lambda: run(self.given)
        results = [np.asarray(y, np.float64) for y in results]
        return {"version": version, "load_ms": load_ms, "peak_bytes": peak, "sums": [float(y.sum()) for y in results],
                "squares": [float((y * y).sum()) for y in results]}

    def do_step(self, r):
        ms = []
        for _ in range(r["n"]):
            begin = time.perf_counter()
            self.run()
            ms.append((time.perf_counter() - begin) * 1e3)
        return {"ms": ms}


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
