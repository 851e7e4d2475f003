#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`train --resume FILE`: what was trained, how and on which data is in the checkpoint; nothing needs to be typed again, what is typed
and contradicts it is refused or told, and a file that lies is refused.

usage: test_cli_resume.py --build DIR [--only WORD] [--seed N]"""
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import CODES, ERROR, USUAL, main, safetensors_header, safetensors_is_whole, start, training, write_images  # noqa: E402

KEPT = ["train.lr", "train.schedule", "train.precision", "train.isa", "train.conv-error", "train.disable", "train.allow-rounding",
        "train.steps", "train.epochs", "train.validate", "train.every", "data.path"]


def change(path, values):
    """Strings of a checkpoint in place of its own; None: left out."""
    content, length, header = safetensors_header(path)
    header["__metadata__"] = {key: value for key, value in (header["__metadata__"] | values).items() if value is not None}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length:])


def strings(path):
    return safetensors_header(path)[2]["__metadata__"]


def stopped(cli, words, goal):
    """A checkpoint of a training that had further to go, as Ctrl-C leaves it."""
    checkpoint = cli.folder / "stopped.safetensors"
    cli.run(*words, "--checkpoint", checkpoint, "--overwrite")
    change(checkpoint, {"train.steps": str(goal)})
    return checkpoint


def length(words, steps):
    at = words.index("--steps") + 1
    return [*words[:at], steps, *words[at + 1:]]


GO = ["--tune", 0, "--quiet"]  # neither changes a bit


def test_nothing_typed(cli):
    """Rate, schedule, seed, precision and more had to be typed again: who left one out went on with another training, and nothing
    said so."""
    words = [*training(cli, 12), "--lr", 0.03, "--precision", "bfloat16", "--isa", "plain", "--conv-error", 1, "--disable", "cse,fusion"]
    whole = cli.result(*words)["train"]
    begun = stopped(cli, length(words, 5), 12)
    content = begun.read_bytes()
    given = ["--checkpoint", begun]
    for again in ([begun, "--resume"], ["--resume", begun], ["--resume", *given], ["pathnet", "--resume", *given]):
        begun.write_bytes(content)
        found = cli.result("train", *again, *GO)
        assert found["train"]["state_sha256"] == whole["state_sha256"] and found["train"]["steps"] == 12, again
        assert found["train"]["value"] == whole["value"], "validated at other steps"
        assert not any("until the checkpoint" in note or "nothing was left" in note for note in found["notes"]), found["notes"]
    again = cli.result("train", "--resume", begun, *GO)
    assert "nothing was left to do: 12 of 12 steps are done; --steps N or --epochs N says how far to go" in again["notes"]
    assert again["train"]["state_sha256"] == whole["state_sha256"]
    further = cli.result("train", "--resume", begun, *GO, "--steps", 14)
    assert further["train"]["state_sha256"] == cli.result(*length(words, 14))["train"]["state_sha256"]
    assert not any("until the checkpoint" in note for note in further["notes"]), further["notes"]


def test_foreign_log(cli):
    """The name of another file lost it without a word."""
    words = training(cli, 1)
    checkpoint, text, log = cli.folder / "kept.safetensors", cli.folder / "notes.txt", cli.folder / "kept.csv"
    for again in [], ["--overwrite"]:  # the same command typed again
        cli.run(*words, "--checkpoint", checkpoint, "--log", log, *again)
    assert len(log.read_text().splitlines()) == 2
    content = checkpoint.read_bytes()
    sheet = "step,loss of another program\n1,2\n"
    text.write_text(sheet)
    for path in (text, checkpoint):
        assert "expected a log whose first line is 'step,epoch,...', or none" in cli.run(*words, "--log", path, expect=3).stderr
    assert text.read_text() == sheet and checkpoint.read_bytes() == content
    log.write_text("step,epoch,real_loss,fake_loss,generator_loss\n")  # of dcgan: a log
    cli.run(*words, "--log", log)


def test_network_of_the_file(cli):
    """The file says which network it is of; only training believed it."""
    words = training(cli, 1)
    checkpoint = cli.folder / "named.safetensors"
    cli.run(*words, "--checkpoint", checkpoint)
    given = ["--checkpoint", checkpoint]
    assert cli.result("eval", *given)["train"]["value"] == cli.result("eval", "pathnet", *given)["train"]["value"]
    for command in ("run", "inspect"):
        assert cli.result(command, *given)["model"]["name"] == "pathnet"
    cli.run("eval", "--checkpoint", cli.folder / "absent.safetensors", expect=5)
    change(checkpoint, {"network": "unheard of"})
    assert "expected one of a network of this build" in cli.run("run", *given, expect=3).stderr


def test_defaults(cli):
    """What nobody typed is kept too: a later version may have other defaults. Epochs are the goal where they were asked for. From
    another folder than that of the training."""
    write_images(cli.folder / "images")
    words = ["train", "resnet20", "--image", 8, "--batch", 32, "--data", "images", *GO, "--epochs", 3]
    whole = cli.result(*words)["train"]
    checkpoint = cli.folder / "epochs.safetensors"
    cli.run(*words[:-2], "--steps", 2, "--checkpoint", checkpoint)
    kept = strings(checkpoint)
    assert kept["train.lr"] and kept["train.schedule"] and kept["train.precision"] == "float32" and kept["train.isa"], kept
    assert kept["train.steps"] == "2" and "train.epochs" not in kept and kept["data.path"] == str((cli.folder / "images").resolve()), kept
    change(checkpoint, {"train.steps": None, "train.epochs": "3"})
    elsewhere = cli.folder / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run([cli.program, "train", "--resume", "../epochs.safetensors", *map(str, GO), "--json", "-"], cwd=elsewhere,
                          env=cli.environment, capture_output=True, timeout=120)
    train = json.loads(done.stdout)["train"]
    assert train["state_sha256"] == whole["state_sha256"] and train["epochs"] == 3, done.stderr
    change(checkpoint, {"train.lr": "0.5"})
    assert any(note.startswith("--lr: 0.5 until the checkpoint, 0.25 from there on")
               for note in cli.result("train", "--resume", checkpoint, *GO, "--epochs", 4, "--lr", 0.25)["notes"])
    assert strings(checkpoint)["train.lr"] == "0.25" and strings(checkpoint)["train.epochs"] == "4"


def test_other_networks(cli):
    """A text's form, states that are carried, and the two networks of a DCGAN."""
    text = cli.folder / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog . " * 200)
    images = write_images(cli.folder / "images")
    for words in (["ptb", "--data", text, "--level", "character", "--units", 8, "--unroll", 5, "--batch", 4, "--seed", 3],
                  ["lstm", "--data", text, "--merged", "--units", 8, "--unroll", 4, "--batch", 4, "--lr", 0.5],
                  ["googlenet", "--lrn", "--auxiliary", "--image", 32, "--data", images, "--batch", 4, "--classes", 5],
                  ["dcgan", "--data", images, "--batch", 4, "--out", cli.folder]):
        train = ["train", *words, *GO, "--steps"]
        whole = cli.result(*train, 4)["train"]
        begun = stopped(cli, [*train, 2], 4)
        found = cli.result("train", "--resume", begun, *GO)["train"]
        assert found["state_sha256"] == whole["state_sha256"] and found["steps"] == 4, words


def test_demo(cli):
    """The demonstration went on with the network's usual rate, wrote that into the checkpoint and said nothing."""
    words = ["demo", "--data", write_images(cli.folder / "images"), "--image", 16, "--batch", 8, "--lr", 0.05, "--seed", 5, *GO, "--steps"]
    whole = cli.result(*words, 4)["train"]
    checkpoint = cli.folder / "demo.safetensors"
    cli.run(*words, 2, "--checkpoint", checkpoint)
    content = checkpoint.read_bytes()
    resume = ["demo", "--resume", "--checkpoint", checkpoint, *GO]
    found = cli.result(*resume, "--steps", 4)
    assert found["train"]["state_sha256"] == whole["state_sha256"] and strings(checkpoint)["train.lr"] == "0.05"
    assert not any("until the checkpoint" in note for note in found["notes"]), found["notes"]
    checkpoint.write_bytes(content)
    assert any(note.startswith("--lr: 0.05 until the checkpoint, 0.02 from") for note in cli.result(*resume, "--lr", 0.02)["notes"])
    change(checkpoint, {"network": "lstm"})
    assert "found a checkpoint of 'lstm', expected one of 'pathnet'" in cli.run(*resume, expect=3).stderr
    cli.run("demo", "--resume", *GO, expect=2)


def test_one_size(cli):
    """A size that has no effect, as a note says, made the command fail: it was taken for one that has other units."""
    words = ["resnet20", "--image", 8, "--batch", 8, "--data", write_images(cli.folder / "images")]
    checkpoint = cli.folder / "one.safetensors"
    cli.run("train", *words, "--units", 8, *GO, "--steps", 1, "--checkpoint", checkpoint)
    for older in ({}, {"network.size": None, "network.text": None}):
        change(checkpoint, older)
        for command in (["eval", *words], ["run", "resnet20"], ["simulate", "resnet20"], ["profile", "resnet20"]):
            tune = ["--tune", 0] if command[0] != "simulate" else []
            found = cli.result(*command, *tune, "--size", "large", "--checkpoint", checkpoint)
            assert found["model"]["units"] == 8 and "--size has no effect: resnet20 has one size" in found["notes"], (command, found)
        cli.run("inspect", "resnet20", "--size", "small", "--checkpoint", checkpoint)
        cli.run("train", "--resume", checkpoint, *GO, "--size", "medium", "--steps", 2)
    assert "found a checkpoint of --units 8, expected 9" in cli.run("eval", *words, "--units", 9, "--checkpoint", checkpoint, expect=3).stderr


def test_contradictions(cli):
    """What is typed beside --resume: another network, its form, data or their order is refused, another way to learn is told, and
    how far to go is heeded."""
    words = training(cli, 3)
    begun = stopped(cli, words, 6)
    content = begun.read_bytes()
    resume = ["train", "--resume", "--checkpoint", begun, *GO]
    for typed, told in ((["--batch", 16], "--batch 8, expected 16"), (["--seed", 6], "--seed 5, expected 6"),
                        (["--image", 24], "--image 16', expected one of '--task real --image 24"), (["--units", 9], "expected 9"),
                        (["--classes", 3], "--classes 4, expected 3"), (["--task", "bench"], "'--task real --image 16', expected"),
                        (["--level", "word"], "--level")):
        errors = cli.run(*resume, *typed, expect=2 if typed[0] == "--level" else 3).stderr
        assert told in errors, errors
    assert "found a checkpoint of 'pathnet', expected one of 'lstm'" in cli.run("train", "lstm", *resume[1:], expect=3).stderr
    other = write_images(cli.folder / "other", classes=3)
    cli.run(*resume, "--data", other, expect=3)
    assert "expected a network" in cli.run("train", "pathnte", *resume[1:], expect=2).stderr
    assert "expected a checkpoint, or a network" in cli.run("train", "pathnte", "--resume", expect=5).stderr
    cli.run("train", "pathnet", "--resume", expect=2)
    cli.run("train", "--resume", expect=2)
    cli.run("train", begun, expect=2)
    cli.run("train", begun, "--resume", "--checkpoint", begun, expect=2)
    assert begun.read_bytes() == content, "a refused command wrote"
    for typed, now in ((["--lr", 0.001], "0.001"), (["--schedule", "constant"], "constant"), (["--precision", "bfloat16"], "bfloat16"),
                       (["--isa", "plain"], "plain"), (["--conv-error", 1], "1"), (["--disable", "cse"], "cse")):
        begun.write_bytes(content)
        same = typed[0] == "--isa" and strings(begun)["train.isa"] == "plain"  # no other is here
        notes = cli.result(*resume, *typed)["notes"]
        told = [note for note in notes if "until the checkpoint" in note]
        assert same or len(told) == 1 and told[0].startswith(typed[0]) and f", {now} from there on" in told[0], (typed, notes)
        assert strings(begun)["train." + typed[0].strip("-")] == now
    begun.write_bytes(content)
    for goal, steps in ((["--steps", 4], 4), (["--epochs", 1], 96 * 9 // 10 // 8)):
        found = cli.result(*resume, *goal)
        assert found["train"]["steps"] == steps and not any("until" in note for note in found["notes"]), (found["train"], found["notes"])


def test_elsewhere(cli):
    """Of another machine: an instruction set that is not here is no reason to refuse, but is told. Data that are gone are asked for,
    and may lie elsewhere."""
    words = training(cli, 3)
    begun = stopped(cli, words, 5)
    whole = cli.result(*length(words, 5))["train"]
    here = strings(begun)["train.isa"]
    resume = ["train", "--resume", begun, *GO]
    content = begun.read_bytes()
    if here != "bf16":
        change(begun, {"train.isa": "bf16"})
        assert any(note.startswith(f"--isa: bf16 until the checkpoint, {here} from there on") for note in cli.result(*resume)["notes"])
        begun.write_bytes(content)
    (cli.folder / "images").rename(cli.folder / "moved")
    errors = cli.run(*resume, expect=5).stderr
    assert f"{cli.folder}/images: found No such file" in errors and "or --data PATH" in errors, errors
    assert cli.result(*resume, "--data", "moved")["train"]["state_sha256"] == whole["state_sha256"]
    assert strings(begun)["data.path"] == str((cli.folder / "moved").resolve())


def test_older(cli):
    """A file of a version that kept none of it goes on as ever: what was typed is typed again."""
    words = training(cli, 6)
    whole = cli.result(*words)["train"]
    begun = stopped(cli, length(words, 3), 6)
    change(begun, dict.fromkeys(KEPT))
    found = cli.result(*words, "--checkpoint", begun, "--resume")
    assert found["train"]["state_sha256"] == whole["state_sha256"] and not any("until" in note for note in found["notes"])
    change(begun, {"data.path": None})
    nowhere = cli.run("train", "--resume", begun, *GO, expect=3).stderr
    assert "found no data.path, expected one, or --data PATH" in nowhere, nowhere
    change(begun, {"network": None})
    assert "found a checkpoint of no network that it says" in cli.run("train", "--resume", begun, expect=3).stderr


def refused(cli, key, value, checkpoint):
    """Its message, whatever it is refused for: no crash, no success, one last line that says what was expected."""
    words = ["train", "--resume", checkpoint, *GO]
    done = subprocess.run([cli.program, *map(str, words)], capture_output=True, cwd=cli.folder, env=cli.environment, timeout=60)
    last = done.stderr.decode().rstrip("\n").split("\n")[-1]
    match = ERROR.match(last)
    assert match and done.returncode == CODES[match.group(1)] and 2 <= done.returncode <= 6, (key, value[:99], done.returncode, last)
    return last


def test_hostile(cli):
    """A file from anywhere: what it says is read as what is typed, by range and kind, and nothing of it is a file that is written."""
    begun = stopped(cli, training(cli, 2), 4)
    content = begun.read_bytes()
    os.mkfifo(cli.folder / "pipe")
    lies = {"train.lr": ["nan", "-1", "inf", "1e9", "x", "0x"], "train.steps": ["0", "-3", "1e99", "9" * 30, "3 4"], "train.epochs": ["x"],
            "train.schedule": ["nonsense", "step:0.1", "cosine:" + "1" * 3000], "train.precision": ["float99"],
            "train.isa": ["sse", "plain|avx2"],
            "train.conv-error": ["0", "nan"], "train.disable": ["nothing", "inline", "cse,+", "cse,fus"], "train.allow-rounding": ["no", "yes "],
            "train.validate": ["0"], "train.every": ["-1"],
            "data.path": ["/dev/zero", "gone", str(cli.folder / "pipe"), "/proc/self/mem", "a\nb\x1b[31m"],
            "network": ["nothing", "pathnet2", "lstm", "path", "x" * 5000, "%s%n"], "network.trained": ["--task real --image 99999999"],
            "data.batch": ["-1", "9" * 18], "data.epoch": ["-3"], "data.index": ["12345"], "data.hash": ["0"],
            "network.units": ["4294967297"], "network.classes": ["3"], "graphi.step": ["x", "-1"]}
    for key, values in lies.items():
        for value in values:
            begun.write_bytes(content)
            change(begun, {key: value} | ({"train.steps": None} if key == "train.epochs" else {}))
            before = begun.read_bytes()
            message = refused(cli, key, value, begun)
            assert begun.read_bytes() == before and "\x1b" not in message, message
            if key.startswith("train."):
                assert f"INVALID: {begun}: found {key} '" in message, message
    begun.write_bytes(content)
    change(begun, {"train.schedule": "multi-step:0.5:2e:5"})  # wrong only once the length of an epoch is known
    late = refused(cli, "train.schedule", "multi-step:0.5:2e:5", begun)
    assert f"INVALID: {begun}: found train.schedule 'multi-step:0.5:2e:5' over epochs of " in late and "expected marks that rise" in late, late
    typed = cli.run("train", "--resume", begun, *GO, "--schedule", "multi-step:0.5:3e:5", expect=3).stderr
    assert "INVALID: learning-rate schedule: found mark" in typed
    begun.write_bytes(content)
    change(begun, {"train.epochs": "3"})
    assert f"INVALID: {begun}: found train.steps '4' beside train.epochs, expected one of the two" in refused(cli, "train.epochs", "3", begun)
    for goal in (["--steps", 3], ["--epochs", 1]):  # which is typed over both
        cli.run("train", "--resume", begun, *GO, *goal)
        change(begun, {"train.steps": "4", "train.epochs": "3"})
    for typed in (["--lr", 0.1], ["--schedule", "constant"], ["--precision", "float32"], ["--isa", "plain"], ["--conv-error", 1],
                  ["--disable", "cse"], ["--allow-rounding"], ["--steps", 3], ["--validate", 2], ["--every", 2]):
        begun.write_bytes(content)  # what is typed over is told, but not to the terminal
        change(begun, {"train." + typed[0].strip("-"): "\x1b]0;x\x07\x1b[2J\x7f\x9b"})
        done = cli.run("train", "--resume", begun, *GO, *typed)
        assert not set("\x1b\x07\x7f\x9b") & set(done.stdout + done.stderr), done.stdout + done.stderr
        assert (f"note: {typed[0]}: ?]0;x??[2J??? until the checkpoint, " in done.stdout) == (typed[0] not in ("--steps", "--validate", "--every"))
    begun.write_bytes(content)  # what it does not say, or too long to be a path, is a default
    change(begun, {"data.path": "/" + "x" * 5000})
    cli.run("train", "--resume", begun, *GO, "--data", cli.folder / "images")
    change(begun, {"train.log": "written", "train.out": "written", "train.json": "written", "--log": "written"})
    cli.run("train", "--resume", begun, *GO)
    assert not (cli.folder / "written").exists()


def test_interrupted(cli):
    """Ctrl-C at any moment of a training that goes on, while the file is read and the machine is measured too: the file stays whole,
    and the end is that of one that was not stopped."""
    words = length(training(cli, 60), 60) + ["--every", 3]
    whole = cli.result(*words, "--checkpoint", "whole.safetensors")["train"]
    begun = stopped(cli, length(words, 2), 60)
    resume = ["train", "--resume", begun, *GO]
    cli.environment |= USUAL
    for _ in range(8):
        process = start(cli, resume)
        time.sleep(cli.random.uniform(0, 0.8))
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
        assert process.returncode in (0, 130, -signal.SIGINT), errors
        assert safetensors_is_whole(begun)
    assert cli.result(*resume)["train"]["state_sha256"] == whole["state_sha256"]


def test_full_disk(cli):
    """A disk that fills up in the midst: the checkpoint before stays, alone, and training goes on from it, its log too."""
    words, checkpoint, log = training(cli, 100000), cli.folder / "full.safetensors", cli.folder / "full.csv"
    process = start(cli, [*words, "--every", 1, "--checkpoint", checkpoint, "--log", log])
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    errors = process.communicate(timeout=60)[1]
    cli.judge(words, process.returncode, errors, 5)
    assert safetensors_is_whole(checkpoint) and not list(cli.folder.glob("*.tmp")), errors
    steps = int(strings(checkpoint)["graphi.step"]) + 9
    whole = cli.result(*length(words, steps), "--log", "whole.csv")["train"]
    found = cli.result("train", "--resume", checkpoint, *GO, "--steps", steps, "--log", log)["train"]
    assert found["state_sha256"] == whole["state_sha256"] and log.read_text() == (cli.folder / "whole.csv").read_text()


def test_work_is_not_lost(cli):
    """A name typed again lost what was trained, another network, or a text; a shorter goal than was reached lost the goal."""
    words, checkpoint, text = training(cli, 4), cli.folder / "kept.safetensors", cli.folder / "notes.txt"
    cli.run(*words, "--checkpoint", checkpoint)
    content = checkpoint.read_bytes()
    errors = cli.run(*length(words, 2), "--checkpoint", checkpoint, expect=3).stderr
    assert "found a checkpoint of step 4, expected --resume to go on from it, --overwrite to lose it" in errors
    shorter = cli.result("train", "--resume", checkpoint, "--steps", 2, *GO)
    assert any(note.startswith("nothing was left to do: 4 of 2 steps") for note in shorter["notes"]), shorter["notes"]
    assert checkpoint.read_bytes() == content and str(checkpoint) not in shorter["files"]
    text.write_text("a text of some words\n" * 9)
    foreign = cli.folder / "foreign.safetensors"  # of another program: no string says that we wrote it
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    foreign.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    for other in text, foreign:
        before = other.read_bytes()
        for more in [], ["--overwrite"]:
            assert "no checkpoint of Graphi" in cli.run(*words, "--checkpoint", other, *more, expect=3).stderr
        assert other.read_bytes() == before
    cli.run(*length(words, 2), "--checkpoint", checkpoint, "--overwrite")
    assert strings(checkpoint)["graphi.step"] == "2"
    for wrong in ["--overwrite"], ["--overwrite", "--resume", "--checkpoint", checkpoint]:
        cli.run(*words, *wrong, expect=2)


def test_schedule_that_ended(cli):
    """Twenty steps at rate 0 passed for training."""
    words = ["train", "pathnet", "--data", write_images(cli.folder / "images"), "--image", 16, "--batch", 8, "--tune", 0]
    checkpoint = cli.folder / "ended.safetensors"
    assert "rate is 0" not in cli.run(*words, "--schedule", "cosine:5", "--steps", 5, "--checkpoint", checkpoint).stderr
    errors = cli.run("train", "--resume", checkpoint, "--steps", 7, "--tune", 0).stderr
    assert errors.count("warning: the rate is 0 from step 6 on, the schedule 'cosine:5' has ended") == 1, errors
    assert "rate is 0" not in cli.run("train", "--resume", checkpoint, "--steps", 9, "--schedule", "constant", "--tune", 0).stderr
    assert "rate is 0" not in cli.run(*words, "--lr", 0, "--steps", 1).stderr  # as it was asked for


def test_two_at_once(cli):
    """Two trainings wrote one file, each over the other's, and none was told. The file is whole all the same, and of one of them."""
    words, checkpoint = training(cli, 10**9), cli.folder / "both.safetensors"
    output = cli.folder / "first.json"
    loud = [word for word in words if word != "--quiet"]
    told, errors = f"{checkpoint} was written by another process meanwhile, and is written over", cli.folder / "errors"
    with errors.open("w") as file:
        first = start(cli, [*loud, "--every", 20, "--checkpoint", checkpoint, "--json", output], stderr=file)
    deadline, seed = time.monotonic() + 60, 6
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    while told not in errors.read_text() and time.monotonic() < deadline:  # a file that it replaces at once it has not seen
        cli.run(*length(words, 1), "--seed", seed, "--checkpoint", checkpoint, "--overwrite")
        assert safetensors_is_whole(checkpoint)
        seed += 1
    time.sleep(0.1)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert errors.read_text().count(f"graphi: warning: {told}") == 1
    assert json.loads(output.read_text())["notes"].count(told) == 1
    assert strings(checkpoint)["data.seed"] == "5"
    alone = cli.result(*length(words, 8), "--every", 1, "--checkpoint", checkpoint, "--overwrite")
    assert told not in alone["notes"]
    loud = [word for word in length(words, 9) if word != "--quiet"]
    assert "another process" not in cli.run(*loud, "--every", 1, "--checkpoint", checkpoint, "--resume").stderr


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background
    main(globals())
