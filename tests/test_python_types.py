#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package's types: `mypy --strict` accepts the package and a user's program (typed_program.py), which runs; and it refuses mistakes, so
that a hint which became Any is found.

usage: test_python_types.py --build DIR      77: there is no venv, or the packages cannot be had"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from python_package import NEEDS, ROOT, built

# Lines that a type checker refuses; and what it says.
MISTAKES = (("graphi.relu(1.0).shapes", "has no attribute \"shapes\""), ("graphi.Plan('net')", "incompatible type"),
            ("graphi.conv2d(graphi.Graph().constant(1), 2, groups='two')", "incompatible type"),
            ("graphi.relo(1.0)", "has no attribute \"relo\""), ("graphi.Run(graphi.Graph())", "incompatible type"),
            ("graphi.Trainer(graphi.Graph(), [], evaluation=3)", "incompatible type"), ("graphi.InferenceSession(3)", "incompatible type"),
            ("graphi.Graph().input('x', shape=3.5)", "incompatible type"), ("graphi.State(graphi.Graph()).saves", "has no attribute"))


def check(python, environment, *words):
    done = subprocess.run([python, "-m", "mypy", "--strict", "--no-error-summary", *map(str, words)], capture_output=True, text=True,
                          env=environment)
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    build = parser.parse_args().build.resolve()
    python, package = built(build, (*NEEDS, "mypy"), "python-mypy-venv")
    environment = {**os.environ, "MYPY_CACHE_DIR": str(build / "mypy"), "MYPYPATH": str(package), "PYTHONPATH": str(package)}
    failed = 0
    program = ROOT / "tests" / "typed_program.py"
    # Packages that the package's modules of ONNX and PyTorch alone import are not in this environment.
    (build / "mypy.ini").write_text("[mypy]\n" + "".join(f"[mypy-{name}.*]\nignore_missing_imports = True\n" for name in ("onnx", "torch")))
    for words in ((program,), ("--config-file", build / "mypy.ini", "-p", "graphi")):
        code, told = check(python, environment, *words)
        failed += code != 0
        print(told, end="")
    ran = subprocess.run([python, "-B", program], capture_output=True, text=True, env=environment)
    if ran.returncode or ran.stdout != "INVALID\n":
        failed += 1
        print(f"typed_program.py: found {ran.returncode}: {ran.stdout}{ran.stderr}")
    with tempfile.TemporaryDirectory() as folder:
        wrong = Path(folder) / "wrong.py"
        wrong.write_text("import graphi\n" + "".join(f"{line}\n" for line, _ in MISTAKES))
        _, told = check(python, environment, wrong)
        for number, (line, says) in enumerate(MISTAKES, 2):
            if not any(f"wrong.py:{number}:" in each and says in each for each in told.splitlines()):
                failed += 1
                print(f"mypy: found no error in {line!r}, expected: {says}\n{told}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
