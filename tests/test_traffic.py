#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory traffic of a fused element-wise node is its external inputs plus outputs: counted by an emulated cache
(valgrind's cachegrind), whose last level is smaller than any of the arrays and larger than a block. A line that is read
or written for the first time, or again after it was thrown out, is a miss of 64 bytes; runs that differ only in how
often the node runs differ by its misses.
Without the fusion pass every operation reads and writes whole arrays: that must be seen, or the count means nothing.

usage: test_traffic.py --build DIR     exit 77: skipped, valgrind is not there"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROWS, COLUMNS, LINE = 64, 4096, 64  # arrays of 1 MiB
CACHES = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=131072,16,64"]
RUNS = 3


def misses(program, runs, folder, *disabled):
    done = subprocess.run([shutil.which("valgrind"), "--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={folder}/out", *CACHES,
                           program, str(runs), str(ROWS), str(COLUMNS), *disabled], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    found = re.search(r"LLd misses:\s+([\d,]+)", done.stderr)
    assert found, f"found no count of misses, expected one in: {done.stderr[-2000:]}"
    return int(found.group(1).replace(",", "")), int(done.stdout)


def share(program, folder, *disabled):
    """Bytes that one run moves over the bytes of its inputs and outputs. The first runs of a process differ: pages are
    new."""
    few, bytes_ = misses(program, 1, folder, *disabled)
    more, _ = misses(program, 1 + RUNS, folder, *disabled)
    return (more - few) * LINE / RUNS / bytes_


def main():
    parser = argparse.ArgumentParser(description="memory traffic of a fused element-wise node")
    parser.add_argument("--build", required=True)
    program = Path(parser.parse_args().build).resolve() / "traffic"
    if not shutil.which("valgrind"):
        print("skipped: found no valgrind (tools/setup.sh long installs it)")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="graphi-traffic-") as folder:
        fused, unfused = share(program, folder), share(program, folder, "fusion")
    print(f"traffic over inputs and outputs: fused {fused:.3f}, without fusion {unfused:.3f}")
    assert 0.95 <= fused <= 1.1, f"found {fused:.3f} of the inputs' and outputs' bytes, expected them within 10 %"
    assert unfused >= 1.5, f"found {unfused:.3f} without fusion, expected much more: the count does not see traffic"


if __name__ == "__main__":
    main()
