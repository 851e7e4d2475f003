# SPDX-License-Identifier: Apache-2.0
"""What tests of the Python package have in common. A test file calls `enter`: started with --build it makes an environment with the
packages that are needed, builds the package into BUILD/python, and starts the file again in it with --inside; there `enter` returns.

Environments are kept, build/python-venv and those of further packages beside it."""
import argparse
import fcntl
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDS = ("cffi", "numpy", "ml_dtypes")


def environment(build, needs=NEEDS, name="python-venv", python=sys.executable):
    """The environment's Python, made when it is not there. 77: the packages cannot be had."""
    folder = build.parent / name
    inside = folder / "bin" / "python"
    done = folder / "done"
    if done.exists() and done.read_text().split() == list(needs):
        return inside
    for command in ([python, "-m", "venv", folder], [inside, "-m", "pip", "install", "-q", *needs]):
        made = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if made.returncode:
            print(f"{Path(sys.argv[0]).stem}: left out, {made.stderr.strip().splitlines()[-1:] or command}")
            sys.exit(77)
    done.write_text(" ".join(needs))
    return inside


def built(build, needs=NEEDS, name="python-venv"):
    """The environment's Python, and the folder that has the package. Tests that run at once build it one after another."""
    package = build / "python"
    package.mkdir(exist_ok=True)
    with open(build / "python.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        python = environment(build, needs, name)
        library, module = build / "libgraphi.a", package / "graphi" / "_native.abi3.so"
        files = [library, *(ROOT / "python").rglob("*.py")]
        if not module.exists() or any(file.stat().st_mtime > module.stat().st_mtime for file in files):
            subprocess.run([ROOT / "python" / "build.sh", build, environment(build), package], check=True)
    return python, package


def enter(file, needs=NEEDS, name="python-venv", warnings="error"):
    """Returns inside of the environment alone."""
    if "--inside" in sys.argv:
        sys.argv.remove("--inside")
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("tests", nargs="*")
    how = parser.parse_args()
    build = how.build.resolve()
    python, package = built(build, needs, name)
    sys.exit(subprocess.run([python, "-B", "-W", warnings, file, "--inside", *how.tests],
                            env={**os.environ, "PYTHONPATH": str(package), "GRAPHI_BIN": str(build / "graphi")}).returncode)
