#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX files by the command: run, inspect, conformance. Models and arrays are written here, without packages.

usage: test_cli_onnx.py --build DIR [--only WORD] [--seed N]"""
import struct
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import main  # noqa: E402
from onnx_bytes import message, model, node, port, tensor  # noqa: E402


def doubling(kind="Add"):
    """y = x + x, or another operator of two inputs."""
    return model((1, node(kind, ["x", "x"], ["y"])), (11, port("x", ["n"])), (12, port("y", ["n"])))


def npy(numbers):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(numbers)},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(numbers)}f", *numbers)


def npz(path, compression, **arrays):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, numbers in arrays.items():
            archive.writestr(name + ".npy", npy(numbers))


def test_run(cli):
    file, x, out = cli.folder / "double.onnx", cli.folder / "x.npy", cli.folder / "out"
    file.write_bytes(doubling())
    x.write_bytes(npy([1, 2.5, -3]))
    out.mkdir(exist_ok=True)
    done = cli.run("run", file, "--input", f"x={x}", "--output", out, "--repeat", 3)
    assert "y: float32 [3]" in done.stdout and "3 executions" in done.stdout
    assert (out / "y.npy").read_bytes()[-12:] == struct.pack("<3f", 2, 5, -6)
    result = cli.result("run", file, "--input", f"x={x}")
    assert result["rows"][0]["n"] == 1
    assert "y: float32 [7]" in cli.run("run", file, "--shape", "x=7").stdout
    assert "y: float32 [1]" in cli.run("run", file).stdout


def test_compare(cli):
    """Archives of both kinds; a difference is told and ends with 1."""
    file, given, expected = cli.folder / "double.onnx", cli.folder / "in.npz", cli.folder / "out.npz"
    file.write_bytes(doubling())
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        npz(given, compression, x=[1, 2], other=[0])
        npz(expected, compression, y=[2, 4.01])
        assert "all outputs equal" in cli.run("run", file, "--inputs", given, "--compare", expected, "--atol", 0.1).stdout
        done = cli.run("run", file, "--inputs", given, "--compare", expected, expect=1)
        assert "found 4 at element 1" in done.stderr
    npz(given, zipfile.ZIP_STORED, z=[1])
    assert "no member x.npy" in cli.run("run", file, "--inputs", given, expect=3).stderr


def test_refusals(cli):
    file = cli.folder / "other.onnx"
    file.write_bytes(doubling("NoSuch"))
    assert "NoSuch of domain" in cli.run("run", file, expect=4).stderr
    file.write_bytes(doubling()[:-5])
    cli.run("run", file, expect=3)
    cli.run("run", cli.folder / "none.onnx", expect=5)
    file.write_bytes(doubling())
    for words in (["--input", "z=f.npy"], ["--shape", "x=1x"], ["--shape", "q=1"], ["--tune", "1"]):
        cli.run("run", file, *words, expect=2)
    cli.run("run", "lstm", "--compare", "x.npz", expect=2)


def test_inspect(cli):
    file = cli.folder / "double.onnx"
    file.write_bytes(model((1, node("Add", ["x", "w"], ["a"])), (1, node("NoSuch", ["a"], ["y"])), (5, tensor("w", [1, 2])),
                           (11, port("x", ["n", 2])), (12, port("y", []))))
    done = cli.run("inspect", file).stdout
    assert "input x: float32 [n, 2]" in done and "operator Add: 1\n" in done and "operator NoSuch: 1, UNSUPPORTED" in done
    found = cli.result("inspect", file)["model"]
    assert found["nodes"] == 2 and found["parameters"] == 2 and found["inputs"][0]["shape"] == [-1, 2]
    assert [op["supported"] for op in found["operators"]] == [True, False]
    assert [op["planned"] for op in found["operators"]] == [True, False]
    assert found["plan"]["nodes"] == 1 and found["plan"]["host"] == 1 and "NoSuch" in found["plan"]["hosts"][0]
    assert "on the host: " in done
    wide = cli.result("inspect", file, "--shape", "x=50x2")["model"]
    assert wide["plan"]["arena_bytes"] >= found["plan"]["arena_bytes"]
    cli.run("inspect", "lstm", "--shape", "x=1", expect=2)


def test_profile(cli):
    file, prefix = cli.folder / "double.onnx", cli.folder / "time"
    file.write_bytes(doubling())
    done = cli.run("profile", file, "--timeline", prefix)
    assert "1 nodes in 1 plans" in done.stdout and "10 executions" in done.stdout
    assert "traceEvents" in prefix.with_suffix(".json").read_text() and prefix.with_suffix(".html").exists()
    cli.run("run", file, "--timeline", prefix)
    cli.run("run", file, "--timeline", prefix, "--host", expect=3)
    cli.run("profile", "lstm", "--input", "x=f.npy", expect=2)


def test_bench(cli):
    """What there is to time is found before anything is timed."""
    assert "--data" in cli.run("bench", "inference", expect=2).stderr
    cli.run("bench", "inference", "--data", cli.folder / "none", expect=5)
    (cli.folder / "models").mkdir()
    (cli.folder / "models/double.onnx").write_bytes(doubling())
    assert "such models" in cli.run("bench", "inference", "nothing-of-that", "--data", cli.folder / "models", expect=2).stderr


def write_test(folder, content, expected):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(content)
    (data / "input_0.pb").write_bytes(tensor("x", [1, 2]))
    (data / "output_0.pb").write_bytes(tensor("y", expected))


def test_conformance(cli):
    """What passes, fails and is not supported is counted by operator."""
    suite = cli.folder / "suite"
    write_test(suite / "node" / "test_add", doubling(), [2, 4])
    write_test(suite / "node" / "test_mul", doubling("Mul"), [1, 5])
    write_test(suite / "simple" / "test_none", doubling("NoSuch"), [1, 1])
    done = cli.run("conformance", suite, expect=1)
    assert "| Add | 1 | 0 | 0 |" in done.stdout and "| Mul | 0 | 1 | 0 |" in done.stdout and "| NoSuch | 0 | 0 | 1 |" in done.stdout
    assert "FAILED test_mul (Mul)" in done.stderr
    write_test(suite / "node" / "test_mul", doubling("Mul"), [1, 4])
    rows = cli.result("conformance", suite)["rows"]
    assert [row["status"] for row in rows] == ["ok", "ok", "missing"]
    cli.run("conformance", cli.folder / "empty", expect=5)


if __name__ == "__main__":
    main(globals())
