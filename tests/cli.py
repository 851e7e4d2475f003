# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: the command in a folder of its own with what is true of every run (status, error
line, schema), small data to train on, and the loop over a file's tests. Programs: test_cli*.py, test_simulated.py."""
import argparse
import gzip
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import schema  # noqa: E402

ERROR = re.compile(r"^graphi: error: ([A-Z]+): (.+?): found (.+), expected (.+)$")
CODES = {"MISSED": 1, "USAGE": 2, "INVALID": 3, "UNSUPPORTED": 4, "IO": 5, "MEMORY": 6, "REFUSED": 7, "NONFINITE": 8,
         "INTERRUPTED": 130}


PATIENCE = 120 * int(os.environ.get("LIMIT_SCALE") or 1)  # seconds of a command


USUAL = {"GRAPHI_MEASURE_SECONDS": ""}  # a command measures the machine for as long as a user's does


class Skipped(Exception):
    """What is tested is no part of this build."""


class Cli:
    def __init__(self, build, folder, seed):
        self.program, self.folder, self.source = str(build / "graphi"), folder, Path(__file__).resolve().parent.parent
        self.random = random.Random(seed)
        # What the machine can do is no matter but where it is measured for as long as usual: env=USUAL.
        self.environment = dict(os.environ, HOME=str(folder), GRAPHI_PLAN_DIR=str(folder / "plans"), GRAPHI_MEASURE_SECONDS="0.05")
        self.environment.pop("GRAPHI_NUM_THREADS", None)

    def run(self, *words, expect=0, env=None, stdout=subprocess.PIPE):
        done = subprocess.run([self.program, *map(str, words)], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                              cwd=self.folder, env=dict(self.environment, **(env or {})))
        self.judge(words, done.returncode, done.stderr, expect)
        return done

    @staticmethod
    def judge(words, status, errors, expect):
        text = "graphi " + " ".join(map(str, words))
        assert status == expect, f"{text}: found status {status}, expected {expect}\n{errors}"
        last = errors.rstrip("\n").split("\n")[-1]
        match = ERROR.match(last)
        if expect == 0:
            assert "graphi: error" not in errors, f"{text}: found '{last}', expected no error"
            return
        assert match, f"{text}: found the last line '{last}', expected 'graphi: error: CODE: WHERE: found X, expected Y'"
        assert CODES[match.group(1)] == expect, f"{text}: found {match.group(1)} beside status {expect}"

    def result(self, *words, **options):
        """Runs with --json -; standard output must be one valid result and nothing else."""
        done = self.run(*words, "--json", "-", **options)
        found = json.loads(done.stdout)
        problems = schema.more_problems(found)
        assert not problems, f"graphi {' '.join(map(str, words))}: {problems}"
        return found

    def has_bench(self):
        return (Path(self.program).parent / "bench").exists()

    def bench(self, name):
        """The program of an experiment. A build has all of them or none: one that alone is missing is no reason to skip."""
        path = Path(self.program).parent / "bench" / name
        if not self.has_bench():
            raise Skipped("a build without benchmarks")
        assert path.exists(), f"found no {path}, expected the experiment beside the others"
        return path

    def cores(self):
        """Of the machine at hand as the command counts them: neither hardware threads nor what a quota takes."""
        return self.result("info")["machine"]["cores"]


def idx(values, dims):
    return struct.pack(">BBBB", 0, 0, 8, len(dims)) + b"".join(struct.pack(">I", d) for d in dims) + bytes(values)


def write_images(folder, compressed=False, train=96, test=32, side=12, classes=4):
    """IDX files whose classes differ by which quarter of the image is bright."""
    generator = random.Random(7)
    folder.mkdir(exist_ok=True)
    for name, count in (("train", train), ("t10k", test)):
        labels = [i % classes for i in range(count)]
        pixels = [generator.randrange(60) + (180 if (y * 2 // side) * 2 + x * 2 // side == label else 0)
                  for label in labels for y in range(side) for x in range(side)]
        for kind, content in (("images-idx3", idx(pixels, (count, side, side))), ("labels-idx1", idx(labels, (count,)))):
            path = folder / f"{name}-{kind}-ubyte"
            if compressed:
                (folder / (path.name + ".gz")).write_bytes(gzip.compress(content))
            else:
                path.write_bytes(content)
    return folder


def training(cli, steps):
    data = write_images(cli.folder / "images")
    return ["train", "pathnet", "--data", data, "--image", 16, "--batch", 8, "--tune", 0, "--steps", steps, "--seed", 5,
            "--schedule", "cosine:40", "--quiet", "--validate", 7]


def start(cli, words, **more):
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen([cli.program, *map(str, words)], **streams, text=True, cwd=cli.folder, env=cli.environment)


def safetensors_header(path):
    """The content, the length of its header, the header."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    return content, length, json.loads(content[8:8 + length])


def drop_metadata(path, key):
    """A checkpoint as one without that string, as older ones are."""
    content, length, header = safetensors_header(path)
    del header["__metadata__"][key]
    path.write_bytes(content[:8] + json.dumps(header, separators=(",", ":")).encode().ljust(length) + content[8 + length:])


def safetensors_is_whole(path):
    content, length, header = safetensors_header(path)
    return 8 + length + max(e["data_offsets"][1] for k, e in header.items() if k != "__metadata__") == len(content)


def main(tests):
    """Runs every function of `tests`, the globals of a file, whose name begins with test_."""
    parser = argparse.ArgumentParser(description="tests of the command line")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    failures = ran = 0
    print(f"seed {arguments.seed}")
    for name, test in list(tests.items()):
        if not name.startswith("test_") or arguments.only not in name:
            continue
        ran += 1
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="graphi-cli-") as folder:
            try:
                test(Cli(arguments.build.resolve(), Path(folder), arguments.seed))
                print(f"passed {name}, {time.monotonic() - started:.1f} s", flush=True)
            except Skipped as reason:
                print(f"skipped {name}: {reason}", flush=True)
            except Exception as problem:  # one that nobody thought of must not hide the tests behind it
                failures += 1
                print(f"FAILED {name}: {type(problem).__name__} {problem}", flush=True)
    if not ran:
        print(f"found no test of the name '{arguments.only}', expected one")
    sys.exit(1 if failures or not ran else 0)
