#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`train --solvers`: bits, checkpoints and refusals of groups. Solvers take turns on the cores, so it runs on any machine.

usage: test_cli_solvers.py --build DIR [--only WORD] [--seed N]"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import main, safetensors_header, write_images  # noqa: E402

TURNS = ["--quiet", "--oversubscribe"]


def words(cli, *more, network="resnet20", steps=4, batch=16):
    data = write_images(cli.folder / "images")
    return ["train", network, "--data", data, "--image", 16, "--units", 4, "--batch", batch, "--steps", steps, *TURNS, *more]


def sha(cli, *typed):
    return cli.result(*typed)["train"]["state_sha256"]


def test_deterministic(cli):
    """Batch normalization takes the statistics of a leaf, whoever computes it; leaves are kept, the number of solvers is free."""
    whole = sha(cli, *words(cli, "--deterministic", "--leaves", 4))
    for solvers in (2, 3, 4):
        assert sha(cli, *words(cli, "--deterministic", "--leaves", 4, "--solvers", solvers)) == whole, solvers
    assert sha(cli, *words(cli, "--deterministic")) != whole  # 8 leaves
    begun = cli.folder / "begun.safetensors"
    cli.run(*words(cli, "--deterministic", "--leaves", 4, "--solvers", 2, "--checkpoint", begun, "--every", 1, steps=2))
    said = safetensors_header(begun)[2]["__metadata__"]
    assert said["group.leaves"] == "4" and said["group.deterministic"] == "yes" and said["group.solvers"] == "2", said
    assert sha(cli, "train", "--resume", begun, "--steps", 4, "--solvers", 3, *TURNS) == whole


def test_default(cli):
    """Sums in another order: another training than that of one solver, to rounding, and the same each time."""
    typed = words(cli, network="cifar10-quick")
    one, two = cli.result(*typed), cli.result(*typed, "--solvers", 2)
    a, b = one["train"]["loss"][-1], two["train"]["loss"][-1]
    assert abs(a - b) < 1e-4 * abs(a), (a, b)
    assert two["rows"][0]["solvers"] == 2 and two["rows"][0]["reduction"] == "pair" and two["rows"][0]["n"] == 4, two["rows"]
    assert sha(cli, *typed, "--solvers", 3) == sha(cli, *typed, "--solvers", 3)
    for how in ("owner", "tree", "tree:3", "ring", "flat"):
        c = cli.result(*typed, "--solvers", 3, "--reduction", how)["train"]["loss"][-1]
        assert abs(a - c) < 1e-4 * abs(a), (how, a, c)


def test_text(cli):
    """What a text carries from window to window is rows of the whole batch's."""
    (cli.folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 60)
    typed = ["train", "lstm", "--data", cli.folder / "text.txt", "--level", "character", "--units", 12, "--unroll", 5, "--batch", 8,
             "--steps", 6, "--deterministic", *TURNS]
    whole = sha(cli, *typed)
    begun = cli.folder / "text.safetensors"
    assert sha(cli, *typed, "--solvers", 3) == whole
    cli.run(*typed[:-4], 3, *typed[-3:], "--solvers", 4, "--checkpoint", begun)
    assert sha(cli, "train", "--resume", begun, "--steps", 6, "--solvers", 2, *TURNS) == whole


def test_refused(cli):
    cli.run(*words(cli, "--solvers", 17), expect=3)
    cli.run(*words(cli, "--solvers", 2, "--deterministic", "--leaves", 3), expect=3)
    for more in (["--solvers", 0], ["--solvers", "2x"], ["--solvers", "two"], ["--leaves", 4], ["--reduction", "circle"],
                 ["--reduction", "ring:2"], ["--reduction", "tree:0"], ["--must-place"], ["--solvers", 2, "--timeline", "t"],
                 ["--solvers", 3, "--reduction", "pair"], ["--deterministic", "--reduction", "ring"], ["--plan", "p.json"]):
        cli.run(*words(cli, *more), expect=2)
    assert "1 to 256" in cli.run(*words(cli, "--solvers", 4096), expect=2).stderr
    typed = [word for word in words(cli, "--solvers", 64, batch=64) if word != "--oversubscribe"]
    assert "or --oversubscribe" in cli.run(*typed, "--cores", 1, expect=2).stderr
    cli.run("train", "dcgan", "--data", cli.folder, "--solvers", 2, expect=2)


def test_failure_is_told(cli):
    """A loss that is not finite ends the training of all; nobody waits."""
    done = cli.run(*words(cli, "--solvers", 4, "--lr", 1e6, network="cifar10-quick", steps=30), expect=8)
    assert "finite" in done.stderr, done.stderr


if __name__ == "__main__":
    main(globals())
