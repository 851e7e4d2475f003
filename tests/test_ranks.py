#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`train --transport mpi`: ranks under mpirun give the bits of one process, resume each other, and are named where they differ, hang or
die. Skipped where there is no mpirun, or no plugin was built.

usage: test_ranks.py --build DIR [--only WORD] [--seed N]"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import Skipped, main, write_images  # noqa: E402

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def ranks(cli, *programs, wait=True):
    """One mpirun of several (count, words)."""
    if not shutil.which("mpirun") or not (Path(cli.program).parent / "graphi-mpi.so").exists():
        raise Skipped("no mpirun, or no plugin")
    words = ["mpirun", "--oversubscribe"]
    for count, typed in programs:
        words += [":"] * (len(words) > 2) + ["-n", str(count), cli.program, *map(str, typed)]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cli.folder,
                               env=dict(cli.environment, **ROOT))
    if not wait:
        return started
    output, errors = started.communicate(timeout=120)
    return started.returncode, output, errors


def words(cli, *more, steps=4, batch=24, network="resnet20"):
    data = write_images(cli.folder / "images")
    return ["train", network, "--data", data, "--image", 16, "--units", 4, "--batch", batch, "--steps", steps, "--quiet",
            "--oversubscribe", *more]


def mpi(*typed):
    return [*typed, "--transport", "mpi", "--rank-timeout", 20]


def test_bits(cli):
    """Ranks add in an order of their own, divide leaves wrong, or a checkpoint is not the whole state's."""
    typed = words(cli, "--deterministic")
    whole = cli.result(*typed)["train"]
    for count, solvers in ((2, 1), (3, 1), (2, 2)):
        result = cli.folder / "ranks.json"
        status, _, errors = ranks(cli, (count, mpi(*typed, "--solvers", solvers, "--json", result)))
        assert status == 0, errors
        found = json.loads(result.read_text())["train"]
        assert found["state_sha256"] == whole["state_sha256"] and found["loss"] == whole["loss"], (count, solvers, found, whole)
    begun = cli.folder / "begun.safetensors"
    status, _, errors = ranks(cli, (2, mpi(*words(cli, "--deterministic", "--checkpoint", begun, steps=2))))
    assert status == 0, errors
    resumed = cli.result("train", "--resume", begun, "--steps", 4, "--quiet", "--oversubscribe", "--solvers", 3)["train"]
    assert resumed["state_sha256"] == whole["state_sha256"]


def test_default(cli):
    """Without leaves ranks have the bits of as many solvers of one process that add by owners, whatever their shares."""
    typed = words(cli, network="cifar10-quick", batch=20)
    result = cli.folder / "default.json"
    status, _, errors = ranks(cli, (3, mpi(*typed, "--json", result)))
    assert status == 0, errors
    one = cli.result(*typed, "--solvers", 3, "--reduction", "owner")["train"]
    assert json.loads(result.read_text())["train"]["state_sha256"] == one["state_sha256"]


def test_others_are_refused(cli):
    """Ranks of other graphs add numbers that have nothing to do with each other."""
    one, other = mpi(*words(cli)), mpi(*words(cli))
    other[other.index("--units") + 1] = 8
    status, _, errors = ranks(cli, (1, one), (1, other))
    assert status and "rank 1: found" in errors and "that of rank 0" in errors, errors
    status, _, errors = ranks(cli, (2, mpi(*words(cli, "--reduction", "ring"))))
    assert status and "expected owner" in errors, errors
    status, _, errors = ranks(cli, (2, mpi(*words(cli, batch=1))))
    assert status and "2 solvers for 1 samples" in errors, errors


def test_hanging_rank_is_named(cli):
    """A rank that stands still is waited for without end, or nobody says which one."""
    typed = words(cli, "--rank-timeout", 2, steps=100000)
    started = ranks(cli, (2, [*typed, "--transport", "mpi"]), wait=False)
    time.sleep(3)
    own = subprocess.run(["pgrep", "-P", str(started.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
    assert len(own) == 2, own
    os.kill(int(own[1]), signal.SIGSTOP)
    _, errors = started.communicate(timeout=60)
    assert started.returncode and "found nothing for 2 s" in errors and "rank " in errors, errors


if __name__ == "__main__":
    main(globals())
