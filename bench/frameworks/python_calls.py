# SPDX-License-Identifier: Apache-2.0
"""The part of `graphi bench python` that is Python: calls of the graph of bench/lib/five_nodes.c through the package and through ONNX
Runtime, training steps of the LSTM, and what importing the package costs beyond NumPy.

The package is built beside the program that asks, from its library, so that it is of the same commit. One JSON object a line, each answered
with one line, as common.py describes:
    {"cmd":"open","lstm":{..}}          -> {"ok":true,"versions":{ENGINE:".."}}   (lstm: options of graphi_model_options)
    {"cmd":"check"}                     -> {"ok":true,"y":{ENGINE:[..]}}
    {"cmd":"step","engine":E,"n":N}     -> {"ok":true,"ms":X}    (of N calls together)
    {"cmd":"import"}                    -> {"ok":true,"ms":X}
"""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

from run_cost_onnxruntime import SIDE, model, numbers

IMPORT = """
import time
import numpy
begin = time.perf_counter()
import graphi
print(1e3 * (time.perf_counter() - begin))
"""


def package():
    """The folder that has the package."""
    build = Path(os.readlink(f"/proc/{os.getppid()}/exe")).parent.parent
    source = Path(__file__).resolve().parent.parent.parent / "python" / "build.sh"
    folder = build / "python-bench"
    if not source.exists() or not (build / "libgraphi.a").exists():
        import graphi  # installed: pip install
        return str(Path(graphi.__file__).parent.parent)
    subprocess.run([source, build, sys.executable, folder], check=True, stdout=sys.stderr)
    return str(folder)


class Calls:
    """A function of no argument for each engine."""

    def __init__(self, lstm):
        import graphi
        self.x = numbers(0)
        graph = graphi.Graph()
        y = graph.input("x", "float32", (SIDE, SIDE))
        for k in (1, 2, 3):
            y = y @ graph.parameter(f"w{k}", "float32", (SIDE, SIDE), init=numbers(k))
            y = graphi.tanh(y) if k < 3 else y
        graph.output("y", y)
        run = graphi.Run(graphi.Plan(graph))
        session = graphi.InferenceSession(model())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        theirs = onnxruntime.InferenceSession(model(), options, providers=["CPUExecutionProvider"])
        x = self.x
        self.results = {"run": lambda: run(x=x)["y"], "session": lambda: session.run(None, {"x": x})[0],
                        "onnxruntime": lambda: theirs.run(None, {"x": x})[0]}
        step = graphi.Run(graphi.Plan(graphi.models.lstm(**lstm)))
        for port in step.plan.graph.inputs:
            step.set(port.name, np.zeros(port.shape, port.dtype))
        self.calls = {**self.results, "lstm": step.execute}
        self.versions = {"graphi": graphi.__version__, "onnxruntime": onnxruntime.__version__}

    def timed(self, engine, n):
        call = self.calls[engine]
        begin = time.perf_counter()
        for _ in range(n):
            call()
        return 1e3 * (time.perf_counter() - begin)


def answered(request, calls, folder):
    if request["cmd"] == "check":
        return {"y": {engine: call().reshape(-1).astype(float).tolist() for engine, call in calls.results.items()}}
    if request["cmd"] == "step":
        return {"ms": calls.timed(request["engine"], request["n"])}
    done = subprocess.run([sys.executable, "-c", IMPORT], check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": folder})
    return {"ms": float(done.stdout)}


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    folder, calls = "", None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["cmd"] == "open":
                folder = package()
                sys.path.insert(0, folder)
                calls = Calls(request["lstm"])
                answer = {"versions": calls.versions}
            else:
                answer = answered(request, calls, folder)
            answer["ok"] = True
        except Exception as error:
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
