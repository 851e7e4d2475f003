#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Words and names that nobody should type and somebody does, and what a run that was stopped finds when it goes on.

usage: test_cli_words.py --build DIR [--only WORD] [--seed N]"""
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import main, training  # noqa: E402


def test_empty_words(cli):
    """A shell variable that is not set makes an empty name: found when the checkpoint is written, hours are lost."""
    for option in ("--checkpoint", "--json", "--log", "--save-plan", "--data", "--plan", "--timeline"):
        assert f"{option}: found ''" in cli.run("train", "pathnet", option, "", expect=2).stderr
    cli.run("run", "pathnet", "--timeline", f"{cli.folder}/", expect=2)  # hidden files in it


def test_no_use(cli):
    """An option that a command has no use for is refused: a mistyped policy of `info` was taken without a word, and so was an
    instruction set, which its heading then did not name."""
    for words in (["info"], ["inspect", "pathnet"], ["show", "x.json"]):
        for option in (["--seed", 3], ["--isa", "plain"], ["--precision", "float32"]):
            errors = cli.run(*words, *option, expect=2).stderr
            assert f"found '{option[0]}', expected an option that '{words[0]}' has" in errors, errors
        assert not {"--seed", "--isa", "--precision"} & set(cli.run(words[0], "--help").stdout.split()), words
    cli.run("--isa", "plain", "info", expect=2)
    for words in (["info", "--policy", "fifo"], ["info", "--executors", 1], ["run", "pathnet", "--depth", 9],
                  ["--checkpoint", "x", "info"], ["--quiet", "--policy", "fifo", "info"], ["train", "pathnet", "--level", "word"],
                  ["train", "pathnet", "--epochs", 2, "--steps", 3], ["run", "pathnet", "--conv-error", 0],
                  ["bench", "op-scaling", "--seconds", 0], ["run", "pathnet", "--size", "small|medium"]):
        cli.run(*words, expect=2)
    for option in (["--log", "l.csv"], ["--resume"], ["--every", 3], ["--epochs", 2], ["--lr", 0.1], ["--schedule", "constant"],
                   ["--validate", 3]):
        cli.run("eval", "pathnet", "--checkpoint", "c", *option, expect=2)
    plan, other = cli.folder / "random.plan", cli.folder / "other.plan"
    cli.run("simulate", "pathnet", "--policy", "random", "--seed", 3, "--save-plan", plan)
    for words, seed in (([], 3), (["--seed", 4], 4), (["--seed", 0], 0)):
        cli.run("simulate", "pathnet", "--plan", plan, *words, "--save-plan", other)
        assert json.loads(other.read_text())["setting"]["seed"] == seed
    words = training(cli, 1)
    learnt, *still = (cli.result(*words, *more)["train"]["state_sha256"] for more in ([], ["--lr", 0], ["--lr", 0, "--steps", 2]))
    assert still[0] == still[1] != learnt
    assert "machine options\n  --cores" in cli.run("info", "--help").stdout
    assert cli.run("run", "--help").stdout.count("machine options") == 1


def test_help_lists_what_is_taken(cli):
    """Help of the commands that train or evaluate listed --training and --inference, that of the demonstration what other networks
    than PathNet have: all of them were refused whenever they were typed."""
    listed = {name: set(cli.run(name, "--help").stdout.split()) for name in ("demo", "train", "eval", "run")}
    modes, networks = ["--training", "--inference"], ["--merged", "--lrn", "--unroll", "--level", "--role", "--bottleneck"]
    for words, options in ((["train", "ptb"], modes), (["eval", "ptb"], modes), (["demo"], modes + networks)):
        for option in options:
            assert option in listed["run"] and option not in listed[words[0]], (words, option)
            errors = cli.run(*words, option, expect=2).stderr
            assert f"found '{option}', expected an option that '{words[0]}' has" in errors, errors
    assert set(networks) <= listed["train"] & listed["eval"]


def test_mistyped(cli):
    """What was probably meant is said: who is used to another program's names need not read all of --help."""
    for words, meant in ((["trian", "pathnet"], "trian', expected train, or another of"), (["nothing"], "expected one of"),
                         (["train", "pathnet", "--epoch", 2], "expected --epochs, or another of"),
                         (["train", "pathnet", "--batch-size=3"], "expected --batch, or another of"),
                         (["info", "--device", "cuda"], "expected one of"), (["info", "--epoch"], "expected one of"),
                         (["train"], "expected a network: lstm, "),
                         (["train", "--resume"], "--resume: found nothing, expected FILE, or a network beside --checkpoint FILE"),
                         (["inspect", "p.safetensors"], ", ptb, or --checkpoint FILE"),
                         (["-"], "expected"), (["train", "pathnet", "--"], "expected one of"),
                         (["train", "pathnet", "-e", 3], "expected one of")):
        errors = cli.run(*words, expect=2).stderr
        assert meant in errors, errors
    nowhere = cli.run("train", "lstm", "--data", cli.folder / "nowhere", expect=5).stderr
    folder = cli.run("train", "lstm", "--data", cli.folder, expect=3).stderr
    assert "mnist" not in nowhere + folder and "train.txt" in folder, nowhere + folder
    text = cli.folder / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog . " * 400)
    words = ["lstm", "--data", text, "--batch", 8, "--units", 8, "--unroll", 4, "--checkpoint", "small.safetensors"]
    cli.run("train", *words, "--tune", 0, "--steps", 1, "--quiet")
    alone = cli.run("eval", *words, "--split", "test", expect=4).stderr
    assert "expected a folder with train.txt and test.txt" in alone, alone
    for words, meant in ((["lstm", "--image", 8], "image: found it for lstm, expected one of pathnet, googlenet"),
                         (["ptb", "--merged"], "merged: found it for ptb, expected one of lstm, phased-lstm"),
                         (["lstm", "--repeat", " 2"], "--repeat: found ' 2', expected a whole number")):
        errors = cli.run("run", *words, expect=2).stderr
        assert meant in errors, errors
    assert "quota 0" not in cli.run("run", "pathnet", "--cores", 60000, expect=3).stderr


def test_names(cli):
    """File names are any bytes, JSON is not: the work was done and its result lost for want of "memory"."""
    name = os.fsdecode(b"\xff\xc3 \xc3\xa9.safetensors")
    result = cli.result(*training(cli, 2), "--checkpoint", name)
    assert result["files"] == ["?? \u00e9.safetensors"] and "?? \u00e9.safetensors" in result["argv"], result["files"]
    assert (cli.folder / name).exists()


def test_one_line(cli):
    """The error is the last line of standard error, whatever bytes a file or a word brings in."""
    folder = cli.folder / "arrays"
    folder.mkdir()
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (-1,\n\033[31m), }"
    (folder / "images.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    for words, expect in ((["--data", folder], 3), (["--data", "no\nfile"], 5), (["--size", "a\n\033b"], 2)):
        errors = cli.run("train", "pathnet", *words, expect=expect).stderr
        assert errors.count("\n") == 1 and "\033" not in errors, errors
    # those above 0x7f too, as UTF-8 and as bytes; what only has such a byte in it stays
    word = os.fsdecode(b"no\xc2\x9b31m \x9b31m \xe2\x82\x9b \xc3\x9b")
    for words, expect in ((["--data", word], 5), (["--size", word], 2)):
        assert "no??31m ?31m \u209b \u00db" in cli.run("train", "pathnet", *words, expect=expect).stderr


def test_going_on(cli):
    """What a resumed run reports is what one that was not stopped does: the mean of the losses began anew, lines of the
    log that the checkpoint knows nothing of stayed and came twice, and a new log had no line of columns."""
    words = [word if word != 7 else 1 for word in training(cli, 6)]  # validates each step
    log, other, checkpoint = cli.folder / "log.csv", cli.folder / "other.csv", cli.folder / "c.safetensors"
    whole = cli.result(*words, "--log", other)["train"]
    first = cli.result(*words, "--steps", 3, "--log", log, "--checkpoint", checkpoint)["train"]
    with log.open("a") as file:
        file.write("4,0,1,1,1,1\n5,0,1,")
    rest = cli.result(*words, "--log", log, "--checkpoint", checkpoint, "--resume")["train"]
    assert first["loss"] + rest["loss"] == whole["loss"] and first["value"] + rest["value"] == whole["value"]
    assert log.read_text() == other.read_text()
    # stopped while it validated: the checkpoint has a step whose row is missing
    cli.run(*words, "--steps", 3, "--log", log, "--checkpoint", checkpoint, "--overwrite")
    log.write_text("".join(log.read_text().splitlines(True)[:-1]))
    cli.run(*words, "--log", log, "--checkpoint", checkpoint, "--resume")
    assert log.read_text() == other.read_text()
    log.write_text("a file of somebody\n" + "else " * 100)
    kept = log.read_text()
    cli.run(*words, "--steps", 7, "--log", log, "--checkpoint", checkpoint, "--resume", expect=3)
    assert log.read_text() == kept
    lines = other.read_text().splitlines(True)  # one of a perplexity of 300 digits, behind which all rows were cut off
    log.write_text("".join([*lines[:2], lines[2].replace("\n", "0" * 300 + "\n"), *lines[3:]]))
    kept = log.read_text()
    cli.run(*words, "--log", log, "--checkpoint", checkpoint, "--resume")
    assert log.read_text() == kept
    log.unlink()
    cli.run(*words, "--steps", 7, "--log", log, "--checkpoint", checkpoint, "--resume")
    assert [line.split(",")[0] for line in log.read_text().splitlines()] == ["step", "7"]
    # the validation of the last step, which is not one of every second
    words = [word if word != 7 else 2 for word in training(cli, 3)] + ["--log", log, "--checkpoint", checkpoint]
    cli.run(*words, "--overwrite")
    whole = log.read_text()
    log.write_text("".join(whole.splitlines(True)[:-1]))
    cli.run(*words, "--resume")
    assert log.read_text() == whole and len(whole.splitlines()) == 3


if __name__ == "__main__":
    main(globals())
