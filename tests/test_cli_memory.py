#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of the command from outside: it is that of the network, whatever the caches of the machine.

usage: test_cli_memory.py --build DIR [--only WORD] [--seed N]"""
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import Skipped, main, start  # noqa: E402

MOST = 40 << 20  # resident bytes of a small training


def words(cli):
    text = cli.folder / "words.txt"
    generator = random.Random(2)
    text.write_text(" ".join(generator.choice("sun moon star rain wind snow leaf tree".split()) for _ in range(4000)))
    return ["lstm", "--units", 16, "--tune", 0, "--quiet"], ["--data", text]


def instrumented(cli):
    """Sanitizers map terabytes and keep what was freed."""
    return int(os.environ.get("LIMIT_SCALE") or 1) > 1


def peak(process):
    """The most that was ever seen resident: the process may make the system forget its own peak."""
    most, page = 0, os.sysconf("SC_PAGESIZE")
    while process.poll() is None:
        try:
            most = max(most, int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * page)
        except (OSError, IndexError):
            pass
        time.sleep(0.001)
    return most


def test_small_training_is_small(cli):
    """Buffers to measure the machine took 525 MB beside a network of 3 MB."""
    if instrumented(cli):
        raise Skipped("memory of an instrumented build")
    network, data = words(cli)
    for command in ["train", *network, *data, "--steps", 30, "--checkpoint", cli.folder / "small.safetensors"], \
                   ["run", *network, "--unroll", 20, "--batch", 8]:
        process = start(cli, command, stderr=subprocess.DEVNULL)
        most = peak(process)
        assert process.returncode == 0 and 1 << 20 < most <= MOST, f"{command[0]}: found {most} bytes resident, expected at most {MOST}"


def test_unmeasured(cli):
    """Whatever needs no limit of the machine says none."""
    network, data = words(cli)
    result = cli.result("train", *network, *data, "--steps", 3)
    assert result["machine"]["roof_gflops"] is None and result["rows"][0]["fraction_of_limit"] is None
    assert not any("measured" in note for note in result["notes"]), result["notes"]
    assert cli.result("profile", *network, "--unroll", 5, "--batch", 4)["machine"]["roof_gflops"] > 0


def test_limited_addresses(cli):
    """With `ulimit -v 300000` training ended for want of memory (exit 6); rates read from a cache are none of memory."""
    if instrumented(cli):
        raise Skipped("memory of an instrumented build")
    network, data = words(cli)
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (300000 << 10, before[1]))  # of what is started, too
    try:
        cli.run("train", *network, *data, "--steps", 30)
        done = cli.run("train", *network[:-3], *data, "--steps", 30)  # with a search
        info = cli.result("info")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert "found" not in done.stderr
    told = [note for note in info["notes"] if note.startswith("memory bandwidth is not measured")]
    assert bool(told) == (info["machine"]["bandwidth_gbs"] is None) and info["machine"]["roof_gflops"] > 0, info
    assert not cli.result("info")["machine"]["bandwidth_gbs"] is None


if __name__ == "__main__":
    main(globals())
