#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training and other long commands that are killed or interrupted at random moments: what was written is whole, training
goes on bit for bit, and a part of the work is not given as the whole.

usage: test_cli_signals.py --build DIR [--only WORD] [--seed N]"""
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import USUAL, idx, main, safetensors_header, safetensors_is_whole, schema, start, training, write_images  # noqa: E402


def wait_for(process, happened):
    deadline = time.monotonic() + 60
    while not happened() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)


def steps_of(checkpoint):
    return int(safetensors_header(checkpoint)[2]["__metadata__"]["graphi.step"])


def check_killed(cli, words, steps, times, apart):
    """Trains to `steps`, killed up to so many times, at most `apart` steps one after the other."""
    words = [*words, "--steps", steps, "--tune", 0, "--quiet", "--every", 1]
    whole = cli.folder / "whole.safetensors"
    expected = cli.result(*words, "--checkpoint", whole, "--overwrite")["train"]["state_sha256"]
    checkpoint = cli.folder / "killed.safetensors"
    words += ["--checkpoint", checkpoint]
    resume = ["train", "--resume", checkpoint, "--tune", 0, "--quiet"]  # the file says the rest
    for _ in range(10):  # on a busy machine training may be over before a kill: again from the beginning
        checkpoint.unlink(missing_ok=True)
        kills = [0]  # the steps that were done
        for _ in range(times):  # by steps, not by seconds: a disk of any speed, beside any load
            process = start(cli, resume if checkpoint.exists() else words)
            goal = kills[-1] + cli.random.randint(1, apart)
            wait_for(process, lambda: checkpoint.exists() and steps_of(checkpoint) >= goal)
            time.sleep(cli.random.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            assert safetensors_is_whole(checkpoint)
            if process.returncode == -signal.SIGKILL:
                kills.append(steps_of(checkpoint))
        before_the_last = [done for done in kills[1:] if done < steps]
        if len(before_the_last) > 1:
            break
    assert len(before_the_last) > 1, f"found kills after {kills[1:]} steps, expected two before the last"
    last = cli.result(*resume)["train"]
    assert last["state_sha256"] == expected and last["steps"] == steps
    assert checkpoint.read_bytes() == whole.read_bytes()


def test_killed(cli):
    """kill -9 at random moments, also while a checkpoint is being written: the last whole checkpoint stays, and
    training that goes on from it ends with the bits of one that was never killed."""
    check_killed(cli, training(cli, 120), 120, 6, 15)


def test_killed_with_more_state(cli):
    """PathNet's plain descent has no state beside its weights: slots of Adam and momentum, states and time that windows carry on,
    masks of dropout."""
    text = cli.folder / "text.txt"
    text.write_text(" ".join(cli.random.choice("the quick brown fox jumps over a lazy dog .".split()) for _ in range(3000)))
    of_text = ["--data", text, "--units", 8, "--unroll", 5, "--batch", 4, "--seed", 3]
    for network in "lstm", "phased-lstm":
        check_killed(cli, ["train", network, *of_text], 40, 3, 8)
    images = ["--data", write_images(cli.folder / "images"), "--image", 32, "--batch", 2]
    check_killed(cli, ["train", "googlenet", *images], 10, 2, 3)


def test_interrupted(cli):
    """Ctrl-C writes a checkpoint and exits with 130; training that goes on ends with the same bits."""
    words = training(cli, 1000)  # over in half a second, the signal comes within a tenth
    expected = cli.result(*words)["train"]["state_sha256"]
    checkpoint, log = cli.folder / "interrupted.safetensors", cli.folder / "interrupted.csv"
    for number, name in ((signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP")):
        loud = [w for w in words if w != "--quiet"] + ["--checkpoint", checkpoint, "--explain"]
        for _ in range(10):  # on a busy machine training may be over before the signal
            checkpoint.unlink(missing_ok=True)
            log.unlink(missing_ok=True)
            process = start(cli, loud, stdout=subprocess.PIPE)
            process.stderr.readline()  # the first line of progress: training has begun
            time.sleep(cli.random.uniform(0, 0.1))
            process.send_signal(number)
            printed, errors = process.communicate()
            if process.returncode:
                break
        cli.judge(loud, process.returncode, errors, 130)
        assert f"found {name} at step" in errors, errors
        assert re.search(r"^\d+ executions under policy", printed, re.M), printed  # what was asked for is said before
        assert safetensors_is_whole(checkpoint)
        assert cli.result(*words, "--checkpoint", checkpoint, "--resume")["train"]["state_sha256"] == expected
    gan = ["train", "dcgan", "--data", cli.folder / "images", "--batch", 4, "--tune", 0, "--steps", 100000, "--out", cli.folder / "gan"]
    process = start(cli, gan)
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    cli.judge(gan, process.returncode, errors, 130)
    loud = [w for w in training(cli, 200) if w != "--quiet"]
    process = start(cli, loud, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # as nohup does
    process.stderr.readline()
    process.send_signal(signal.SIGHUP)
    cli.judge(loud, process.wait(60), process.stderr.read(), 0)
    process = start(cli, ["run", "pathnet", "--repeat", 100000])
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    cli.judge(["run"], process.wait(), process.stderr.read(), 130)


def test_interrupted_validation(cli):
    """Stopped in its last validation, training said that the last step was still to be reached, and without a log the score
    was never made. It is owed: made once, as it would have been."""
    data, count = cli.folder / "many", 30000
    data.mkdir()
    for name in ("train", "t10k"):
        (data / f"{name}-images-idx3-ubyte").write_bytes(idx(os.urandom(count * 64), (count, 8, 8)))
        (data / f"{name}-labels-idx1-ubyte").write_bytes(idx(bytes(i % 4 for i in range(count)), (count,)))
    checkpoint, log = cli.folder / "owes.safetensors", cli.folder / "owes.csv"
    words = ["train", "pathnet", "--data", data, "--image", 8, "--batch", 8, "--tune", 0, "--steps", 1]
    expected = cli.result(*words, "--quiet")["train"]
    for _ in range(10):  # on a busy machine it may be over before the signal
        process = start(cli, [*words, "--checkpoint", checkpoint, "--overwrite"])
        process.stderr.readline()  # the first step is done
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
        if process.returncode:
            break
    cli.judge(words, process.returncode, errors, 130)
    assert "found Ctrl-C at step 1 before its validation was over, expected to reach 1; the checkpoint is written" in errors, errors
    owes = checkpoint.read_bytes()

    def resume(*more):
        checkpoint.write_bytes(owes)
        all_of_it = cli.result("train", "--resume", checkpoint, "--tune", 0, "--quiet", *more)
        found = all_of_it["train"]
        nothing = any("nothing was left to do" in note for note in all_of_it["notes"])  # and nothing is written then
        assert nothing or "train.owes" not in safetensors_header(checkpoint)[2]["__metadata__"]
        return found["value"], found["loss"], nothing
    made = expected["value"], expected["loss"], False
    assert resume() == resume("--log", log) == made
    assert resume("--log", log) == ([], [], True) and log.read_text().count("\n") == 2, "the row was in the log"
    owes = checkpoint.read_bytes()  # no more, but for a log that ends before
    log.write_text(log.read_text().split("\n")[0] + "\n")
    assert resume("--log", log) == made
    again = cli.result("train", "--resume", checkpoint, "--tune", 0, "--quiet")
    assert again["train"]["value"] == [] and any("nothing was left to do" in note for note in again["notes"]), again


def test_interrupted_at_the_end(cli):
    """Stopped when all was done, but for writing it, training said that the last step was still to be reached."""
    words = ["train", "pathnet", "--data", write_images(cli.folder / "images"), "--image", 16, "--batch", 8, "--size", "large", "--tune", 0]
    for steps in range(1, 6):
        process = start(cli, [*words, "--steps", steps, "--checkpoint", cli.folder / "end.safetensors", "--overwrite"])
        while not process.stderr.readline().startswith(f"step {steps}: loss"):  # the last validation is over
            assert process.poll() is None, steps
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
        assert process.returncode == 0, errors


def test_slow_reader(cli):
    """A signal cut what a slow reader had not taken yet, and the exit status was that of a place that cannot be written."""
    files = sorted((cli.source / "docs" / "results").glob("*.json"))[:40]
    whole = cli.run("show", *files).stdout
    for number in (signal.SIGINT, signal.SIGTERM):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        process = subprocess.Popen([cli.program, "show", *map(str, files)], stdout=writer, env=cli.environment)
        os.close(writer)
        time.sleep(0.5)
        process.send_signal(number)
        time.sleep(0.2)
        with os.fdopen(reader, encoding="utf-8") as pipe:
            assert pipe.read() == whole
        assert process.wait(60) == 0


def test_interrupted_without_result(cli):
    """A part of the work must not be given as the whole: evaluation once said "accuracy 0.0000 over 0 samples" with exit
    0, and what cannot stop in its midst (simulate, info) went on to the end and said nothing."""
    data = write_images(cli.folder / "images")
    count = 30000
    (data / "t10k-images-idx3-ubyte").write_bytes(idx(os.urandom(count * 144), (count, 12, 12)))
    (data / "t10k-labels-idx1-ubyte").write_bytes(idx(bytes(i % 4 for i in range(count)), (count,)))
    checkpoint, out = cli.folder / "c.safetensors", cli.folder / "eval.json"
    words = ["pathnet", "--data", data, "--image", 16, "--batch", 8, "--tune", 0, "--checkpoint", checkpoint]
    cli.run("train", *words, "--steps", 1)
    def stop(words, ready):
        process = start(cli, words)
        ready(process)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
        cli.judge(words, process.returncode, errors, 130)
    stop(["eval", *words, "--json", out], lambda process: process.stderr.readline())
    found = json.loads(out.read_text())
    assert found["ok"] is False and found["train"] is None and "accuracy" not in " ".join(found["notes"])
    assert not schema.more_problems(found)
    def catches(process):  # SIGINT has a handler
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None:
            mask = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text(), re.M)
            if int(mask.group(1), 16) >> (signal.SIGINT - 1) & 1:
                return
            time.sleep(0.001)
    stop(["simulate", "lstm", "--size", "large"], catches)
    cli.environment |= USUAL
    for _ in range(10):  # on a busy machine it may be over before the signal
        process = start(cli, ["info"])
        catches(process)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
        if process.returncode:
            break
    cli.judge(["info"], process.returncode, errors, 130)


def test_interrupted_run(cli):
    """What was measured until then is kept, and says that it is a part."""
    out = cli.folder / "run.json"
    words = ["run", "pathnet", "--image", 16, "--batch", 8, "--tune", 0, "--repeat", 10**9, "--json", out]
    process = start(cli, words)
    while not re.search(r"execution [1-9]", process.stderr.readline()):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    cli.judge(words, process.returncode, errors, 130)
    found = json.loads(out.read_text())
    assert found["ok"] is False and found["rows"][0]["n"] >= 1, found["rows"]


def test_interrupted_tuning(cli):
    """Ctrl-C ends a measurement at once, with 130."""
    for words in (["profile", "pathnet", "--tune", 600], training(cli, 40)[:-3] + ["--tune", 600]):
        words = [w for w in words if w != "--quiet"]
        process = start(cli, words)
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=30)[1]
        cli.judge(words, process.returncode, errors, 130)
        assert "INTERRUPTED: tuning" in errors, errors


def test_interrupted_experiment(cli):
    """Ctrl-C ends an experiment at once, with 130; it keeps the rows that it has. So do others, which are named."""
    cli.bench("sweep")
    words = ["bench", "sweep", "pathnet", "--size", "small", "--tune", 600, "--json", "stopped.json"]
    for number, name in ((signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP")):
        process = start(cli, words)
        time.sleep(1.5)
        process.send_signal(number)
        errors = process.communicate(timeout=30)[1]
        cli.judge(words, process.returncode, errors, 130)
        if "is kept" in errors:  # it had begun
            assert f"found {name}, expected" in errors, errors
            assert json.loads((cli.folder / "stopped.json").read_text())["ok"] is False, errors


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup, which the command heeds
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in a shell's background
    main(globals())
