#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streaming models against stored outputs of another engine, window by window with the state fed back. Needs the data: a folder with
onnx/, golden/ and audio/speech.wav.

usage: streams.py --build DIR --data DIR [--windows N]"""
import argparse
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy

TOLERANCE = 1e-4


def run(program, model, folder, inputs):
    words = [program, "run", model, "--output", folder]
    for name, array in inputs.items():
        path = folder / f"in-{name}.npy"
        numpy.save(path, array)
        words += ["--input", f"{name}={path}"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{model}: {done.stderr}")
    return lambda name: numpy.load(folder / f"{name}.npy")


def differs(found, expected):
    """Over the limit where above 1."""
    return float(numpy.abs(found - expected).max() / (TOLERANCE * max(float(numpy.abs(expected).max()), 1e-3)))


def silero(program, data, name, folder, windows):
    with wave.open(str(data / "audio/speech.wav")) as file:
        sound = numpy.frombuffer(file.readframes(file.getnframes()), numpy.int16).astype(numpy.float32) / 32768
    expected, state = numpy.load(data / f"golden/stream_{name}/prob.npy"), numpy.zeros((2, 1, 128), numpy.float32)
    sound, worst = numpy.concatenate([numpy.zeros(64, numpy.float32), sound]), 0
    count = min(windows, len(expected))
    for step in range(count):
        window = sound[step * 512:step * 512 + 576]
        outputs = run(program, data / f"onnx/silero_vad/{name}.onnx", folder,
                      {"input": window[None], "state": state, "sr": numpy.array(16000, numpy.int64)})
        state = outputs("stateN")
        worst = max(worst, differs(outputs("output").ravel(), expected[step:step + 1].ravel()))
    if count == len(expected):
        worst = max(worst, differs(state, numpy.load(data / f"golden/stream_{name}/state_final.npy")))
    return count, worst


def dtln(program, data, number, folder, windows):
    names = {1: ("input_2", "input_3", "activation_2", "tf_op_layer_stack_2"), 2: ("input_4", "input_5", "conv1d_3", "tf_op_layer_stack_5")}
    x, x_state, y, y_state = names[number]
    inputs, expected = (numpy.load(data / f"golden/stream_dtln_model_{number}/{kind}_20steps.npy") for kind in ("inputs", "outputs"))
    state, worst = numpy.zeros((1, 2, 128, 2), numpy.float32), 0
    count = min(windows, len(inputs))
    for step in range(count):
        outputs = run(program, data / f"onnx/dtln/model_{number}.onnx", folder,
                      {x: inputs[step].reshape(1, 1, -1), x_state: state})
        state = outputs(y_state)
        worst = max(worst, differs(outputs(y).ravel(), expected[step].ravel()))
    if count == len(inputs):
        worst = max(worst, differs(state.ravel(), numpy.load(data / f"golden/stream_dtln_model_{number}/state_final.npy").ravel()))
    return count, worst


def main():
    parser = argparse.ArgumentParser(description="streaming models against stored outputs")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--windows", type=int, default=1 << 30)
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="graphi-streams-") as folder:
        common = arguments.build / "graphi", arguments.data
        jobs = [(name, silero, name) for name in ("silero_vad", "silero_vad_16k_op15", "silero_vad_op18_ifless")]
        jobs += [(f"dtln model_{number}", dtln, number) for number in (1, 2)]
        for title, job, which in jobs:
            count, worst = job(*common, which, Path(folder), arguments.windows)
            print(f"{title}: {count} windows, difference {worst:.3f} of the limit")
            failures += worst > 1
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
