#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command as users and scripts meet it: help, the error line and exit status of every kind of mistake, results in
their schema, completion and manual, training and experiments.

usage: test_cli.py --build DIR [--only WORD] [--seed N]"""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import PATIENCE, USUAL, idx, main, safetensors_is_whole, schema, start, training, write_images  # noqa: E402

COMMANDS = "info demo train eval generate profile run inspect simulate bench show conformance help".split()


def test_help(cli):
    """A command whose help fails, or that its overview forgets, cannot be found."""
    overview = cli.run("--help").stdout
    assert overview == cli.run("help").stdout == cli.run("-h").stdout
    for command in COMMANDS:
        assert re.search(rf"^  {command}\b", overview, re.M), f"{command} is not in the overview"
        text = cli.run(command, "--help").stdout
        assert text.startswith(f"usage: graphi {command}") and "--json" in text
    cli.run("train", "pathnet", "--help")  # with a subject too
    version = r"graphi \d+\.\d+\.\d+, commit \S+, instruction set (plain|avx2|avx512|bf16)\n"
    assert re.fullmatch(version, cli.run("--version").stdout), "--version does not say what was built for what"
    cli.run(expect=2)


def test_commit(cli):
    """A build after a commit kept the commit of the last configuring, and results said so; changed sources were not told."""
    with tempfile.TemporaryDirectory() as name:
        tree, header = Path(name) / "tree", Path(name) / "commit.h"
        (tree / "src").mkdir(parents=True)
        source, page = tree / "src" / "a.c", tree / "page.md"

        def git(*words):
            return subprocess.run(["git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True,
                                  text=True).stdout.strip()

        def built():
            script = Path(__file__).resolve().parent.parent / "cmake" / "commit.cmake"
            subprocess.run(["cmake", f"-DSOURCE={tree}", f"-DHEADER={header}", "-P", script], check=True, capture_output=True,
                           env=os.environ | {"GIT_CEILING_DIRECTORIES": name})
            return re.fullmatch(r'#define GRAPHI_COMMIT "(\S+)"\n', header.read_text())[1]

        assert built() == "unknown"
        git("init")
        for text in ("one", "two"):
            source.write_text(text)
            page.write_text(text)
            git("add", ".")
            git("commit", "-m", text)
            assert built() == git("rev-parse", "--short", "HEAD")
        made = header.stat().st_mtime_ns
        page.write_text("three")  # a result that was stored, say
        assert built() == git("rev-parse", "--short", "HEAD") and header.stat().st_mtime_ns == made, "all would be linked again"
        source.write_text("three")
        assert built() == git("rev-parse", "--short", "HEAD") + "-modified"


def test_usage(cli):
    """Each wrong word gives exit 2 and says what was found and expected."""
    for command in COMMANDS:
        subject = {"train": ["pathnet"], "bench": ["sweep"]}.get(command, [])
        cli.run(command, *subject, "--bogus", expect=2)
    cli.run("train", "lstm", expect=2)  # a text network has no data of its own
    cli.run("train", "lstm", "--task", "bench", "--data", "x", expect=2)
    for words in ("--bogus", "nothing", "info word", "info -x", "info --steps 3", "train", "train nothing", "train pathnet more",
                  "train pathnet --steps", "train pathnet --steps 0", "train pathnet --steps x",
                  "train pathnet --steps 3.5", "train pathnet --lr x", "train pathnet --quiet=1", "train pathnet --resume",
                  "train pathnet --every 3", "run lstm --size huge", "run lstm --task x",
                  "run lstm --driver x", "run lstm --policy x", "run lstm --isa x", "run lstm --precision x", "run lstm --pin x",
                  "run lstm --size=", "run lstm --disable x", "info --cores 0", "info --cores 999999999999999999999",
                  "eval pathnet", "help nothing", "--cores", "run lstm --tolerance -1"):
        cli.run(*words.split(), expect=2)
    cli.run("info", env={"GRAPHI_NUM_THREADS": "some"}, expect=2)
    for seconds in "some", "0", "-1", "nan", "61", "0.1s":
        assert f"found '{seconds}', expected seconds" in cli.run("info", env={"GRAPHI_MEASURE_SECONDS": seconds}, expect=2).stderr


def test_network_options(cli):
    """An option that the network does not have is told: it was ignored, and the result looked like one of it."""
    for network, option in (("lstm", "--bottleneck"), ("lstm", "--image=64"), ("pathnet", "--merged"), ("ptb", "--merged"), ("resnet20", "--lrn"),
                            ("pathnet", "--batch-norm"), ("ptb", "--auxiliary"), ("pathnet", "--unroll=4"), ("lstm", "--role=sample")):
        name = option.strip("-").split("=")[0]
        assert f"USAGE: {name}: found it for {network}, expected one of " in cli.run("simulate", network, option, expect=2).stderr


def test_network_sizes(cli):
    """Only three widths and lengths could be had: --units and --unroll give any, and the result says which."""
    result = cli.result("inspect", "lstm", "--units", 256, "--unroll", 10)["model"]
    assert (result["units"], result["steps"], result["batch"]) == (256, 10, 64)
    shapes = {port["name"]: port["shape"] for port in result["inputs"] + result["outputs"]}
    assert shapes["x"] == [640, 256] and shapes["h0/3"] == [64, 256] and shapes["gradient/layer0/w_i"] == [256, 256]
    result = cli.result("inspect", "pathnet", "--size", "medium", "--units", 4)["model"]
    assert result["units"] == 4 and result["steps"] is None
    printed = cli.run("simulate", "lstm", "--units", 8, "--unroll", 2, "--machine", "xeon-phi-7250").stdout
    assert "lstm small bench, units 8, steps 2, batch 64, " in printed
    cli.run("train", "ptb", "--unroll", 257, "--data", "any", "--steps", 1, expect=3)


def test_what_does_not_exist(cli):
    """What no build has is no command and no option: it stood in the help, and answered that it is not available."""
    told = cli.run("--help").stdout + cli.run("help", "man").stdout + cli.run("help", "completion").stdout
    for word in "export", "--onnx", "--port", "not available":
        assert word not in told, word
    for words in "serve .", "export lstm", "export lstm --onnx f", "run lstm --compare x.npz":
        cli.run(*words.split(), expect=2)
    for words in ("bench nothing", "bench ../graphi", "bench ."):
        assert "expected an experiment that graphi bench --help lists" in cli.run(*words.split(), expect=2).stderr


def test_bad_files(cli):
    """Files that are not what they should be: exit 3 naming the file; files that are not there: exit 5."""
    folder = cli.folder / "bad"
    def case(change, expect=3):
        shutil.rmtree(folder, ignore_errors=True)
        change(write_images(folder))
        done = cli.run("train", "pathnet", "--data", folder, "--steps", 1, "--image", 16, "--batch", 8, "--tune", 0, expect=expect)
        assert str(folder) in done.stderr
    images, labels = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
    case(lambda d: (d / images).write_bytes((d / images).read_bytes()[:-5]))
    case(lambda d: (d / images).write_bytes(b""))
    case(lambda d: (d / images).write_bytes(b"\x01\x02\x03\x04" + (d / images).read_bytes()[4:]))
    case(lambda d: (d / labels).write_bytes((d / labels).read_bytes()[:20]))
    case(lambda d: (d / labels).unlink(), 5)
    write_images(folder)
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx([200] * 32, (32,)))
    (cli.folder / "any").write_bytes(b"\x02\0\0\0\0\0\0\0{}")  # says nothing of what it is
    assert "label 200" in cli.run("eval", "pathnet", "--data", folder, "--checkpoint", "any", expect=3).stderr
    shutil.rmtree(folder)
    folder.mkdir()
    cli.run("train", "pathnet", "--data", folder, expect=3)
    cli.run("train", "pathnet", "--data", folder / "missing", expect=5)
    os.mkfifo(cli.folder / "pipe")  # nobody writes into it: to wait would be for ever
    cli.run("train", "lstm", "--data", cli.folder / "pipe", "--steps", 1, expect=3)
    if os.geteuid():
        folder.chmod(0)
        cli.run("train", "pathnet", "--data", folder, expect=5)
        folder.chmod(0o755)
    text = cli.folder / "empty.txt"
    text.write_text("")
    cli.run("train", "lstm", "--data", text, "--steps", 1, expect=3)
    data = write_images(cli.folder / "good", compressed=True)
    torn = cli.folder / "torn.safetensors"
    torn.write_bytes(b"\x10\0\0\0\0\0\0\0{")
    words = ["pathnet", "--data", data, "--image", 16, "--batch", 8, "--tune", 0]
    cli.run("train", *words, "--steps", 1, "--checkpoint", torn, "--resume", expect=3)
    cli.run("eval", *words, "--checkpoint", torn, expect=3)
    cli.run("eval", *words, "--checkpoint", cli.folder / "missing", expect=5)
    cli.run("train", *words, "--steps", 1, "--checkpoint", cli.folder / "missing", "--resume", expect=5)
    cli.run("train", *words, "--schedule", "sometimes", expect=3)
    (cli.folder / "torn.plan").write_text('{"schema": ')
    def used():
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    before = used()
    for _ in range(5):
        cli.run("--version")
    start, before = used() - before, used()
    for text in ("[]", "3", "null"):
        (cli.folder / "other.plan").write_text(text)
        cli.run("run", "pathnet", "--plan", cli.folder / "other.plan", expect=3)
    cli.run("run", "pathnet", "--plan", cli.folder / "torn.plan", expect=3)
    cli.run("run", "pathnet", "--plan", cli.folder / "missing.plan", expect=5)
    spent = used() - before - start
    assert spent < 0.2, f"found {spent:.2f} s of CPU time, expected no measurement of the machine before the plan is refused"
    os.mkfifo(cli.folder / "fifo.plan")
    cli.run("run", "pathnet", "--plan", cli.folder / "fifo.plan", expect=3)
    cli.run("simulate", "pathnet", "--machine", cli.folder / "missing.json", expect=5)
    (cli.folder / "torn.json").write_text('{"cores": ')
    cli.run("simulate", "pathnet", "--machine", cli.folder / "torn.json", expect=3)


def test_outputs(cli):
    """What cannot be written is said at once with exit 5, before the work; a full disk at the end."""
    nowhere = cli.folder / "no" / "folder" / "file"
    for words in (["info", "--json", nowhere], ["run", "pathnet", "--timeline", nowhere], ["run", "pathnet", "--save-plan", nowhere],
                  ["train", "pathnet", "--checkpoint", nowhere], ["train", "pathnet", "--log", nowhere],
                  ["train", "pathnet", "--checkpoint", "/proc/x.safetensors"],
                  ["inspect", "pathnet", "--out", nowhere], ["run", "pathnet", "--out", nowhere]):
        started = time.monotonic()
        cli.run(*words, expect=5)
        assert time.monotonic() - started < 5
    for taken in ("line.json", "line.html"):  # both parts of a timeline, before anything ran
        (cli.folder / taken).mkdir()
        result = cli.run("run", "pathnet", "--repeat", 1, "--timeline", cli.folder / "line", expect=5)
        assert taken in result.stderr and "execution" not in result.stdout + result.stderr, result
        (cli.folder / taken).rmdir()
    with open("/dev/full", "w") as full:
        for words in (["--help"], ["info"], ["inspect", "pathnet"], ["run", "pathnet", "--repeat", 1, "--json", "-"]):
            assert "IO: standard output: " in cli.run(*words, stdout=full, expect=5).stderr
    cli.run("run", "pathnet", "--repeat", 1, "--out", cli.folder / "out", "--timeline", cli.folder / "line")
    assert not schema.more_problems(json.loads((cli.folder / "out" / "run.json").read_text()))
    assert json.loads((cli.folder / "line.json").read_text()) and (cli.folder / "line.html").stat().st_size > 1000


def test_special_outputs(cli):
    """Renaming over a name that is no plain file would replace the user's pipe, link or device by a file."""
    pipe, file, link = cli.folder / "pipe", cli.folder / "file", cli.folder / "link"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    cli.run("info", "--json", pipe)
    assert not schema.more_problems(json.loads(os.read(reader, 1 << 16))) and pipe.is_fifo()
    os.close(reader)
    file.write_text("old")
    link.symlink_to(file.name)
    cli.run("info", "--json", link)
    assert link.is_symlink() and json.loads(file.read_text())["command"] == "info"
    data, checkpoint = write_images(cli.folder / "images"), cli.folder / "checkpoint"
    words = ["train", "pathnet", "--data", data, "--image", 16, "--batch", 8, "--tune", 0, "--steps", 1]
    checkpoint.symlink_to("real.safetensors")
    cli.run(*words, "--checkpoint", checkpoint)  # what the link names is made, then replaced
    assert checkpoint.is_symlink() and safetensors_is_whole(cli.folder / "real.safetensors")
    cli.run(*words, "--checkpoint", checkpoint, "--overwrite")
    assert checkpoint.is_symlink() and safetensors_is_whole(cli.folder / "real.safetensors")
    link.unlink()
    link.symlink_to("new.json")
    one = "another file than that of --checkpoint"
    assert one in cli.run(*words, "--checkpoint", link, "--json", cli.folder / "new.json", expect=2).stderr
    assert link.is_symlink() and not (cli.folder / "new.json").exists()
    cli.run("info", "--json", link)
    assert link.is_symlink() and json.loads((cli.folder / "new.json").read_text())["command"] == "info"
    folder = cli.folder / "folder"
    folder.mkdir()
    for words in ([*words, "--checkpoint", folder], [*words, "--log", folder], ["run", "pathnet", "--json", folder],
                  ["run", "pathnet", "--save-plan", folder], ["run", "pathnet", "--out", file], ["bench", "memory", "--out", file],
                  ["run", "pathnet", "--output", file], ["inspect", "pathnet", "--out", folder]):
        started = time.monotonic()
        cli.run(*words, expect=5)
        assert time.monotonic() - started < 5
    assert not list(folder.iterdir()) and not list(cli.folder.glob("*.tmp"))


def test_left_files(cli):
    """What killed commands left beside results would pile up; what a living one writes would be lost."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    result = cli.folder / "left.json"
    for name, process, age in (("left", dead.pid, 7200), ("fresh", dead.pid, 60), ("own", os.getpid(), 7200)):
        path = cli.folder / f"{result.name}.graphi-{process}-{len(name):08x}.tmp"
        path.write_text(name)
        os.utime(path, (time.time() - age,) * 2)
    november = cli.folder / f"{result.name}.2024-11.tmp"  # somebody's: no process has that number on most days
    november.write_text("november")
    os.utime(november, (time.time() - 7200,) * 2)
    cli.run("inspect", "pathnet", "--json", result)
    assert sorted(path.read_text() for path in cli.folder.glob("left.json.*.tmp")) == ["fresh", "november", "own"]
    for path in cli.folder.glob("left.json.*.tmp"):
        path.unlink()


def test_streams(cli):
    """Closed streams: what is opened next would get their numbers, and messages would land in a checkpoint."""
    words = training(cli, 4)
    words.remove("--quiet")
    expected, checkpoint = cli.folder / "expected.safetensors", cli.folder / "closed.safetensors"
    cli.run(*words, "--checkpoint", expected)
    for closed, status in (((2,), 0), ((1,), 5), ((0, 1, 2), 5)):
        checkpoint.unlink(missing_ok=True)
        done = subprocess.run([cli.program, *map(str, words), "--checkpoint", checkpoint], timeout=PATIENCE, cwd=cli.folder,
                              env=cli.environment, preexec_fn=lambda: [os.close(fd) for fd in closed])
        assert done.returncode == status, f"streams {closed} closed: found status {done.returncode}, expected {status}"
        assert checkpoint.read_bytes() == expected.read_bytes()
    checkpoint.unlink()
    process = subprocess.Popen([cli.program, *map(str, words), "--checkpoint", checkpoint], cwd=cli.folder, env=cli.environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    process.stderr.close()
    assert process.wait(120) == 5, "a reader that goes away must not kill training"
    assert checkpoint.read_bytes() == expected.read_bytes()


def test_limits(cli):
    """Limits of the system are errors with a message, not signals, and leave the old file."""
    words = training(cli, 2)
    checkpoint = cli.folder / "limited.safetensors"
    cli.run(*words, "--checkpoint", checkpoint)
    keep, words = checkpoint.read_bytes(), [*words, "--overwrite"]
    def limited(what, value, *words, expect):
        done = subprocess.run([cli.program, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE, cwd=cli.folder,
                              env=cli.environment, preexec_fn=lambda: resource.setrlimit(what, (value, value)))
        cli.judge(words, done.returncode, done.stderr, expect)
    limited(resource.RLIMIT_FSIZE, 1000, *words, "--checkpoint", checkpoint, expect=5)
    assert checkpoint.read_bytes() == keep and not list(cli.folder.glob("*.tmp"))
    stored, picture = cli.folder / "limited.json", cli.folder / "limited" / "limited.svg"
    stored.write_text(json.dumps(cli.result("run", "pathnet", "--repeat", 1)))
    cli.run("show", stored, "--out", picture.parent)
    whole = picture.read_bytes()
    limited(resource.RLIMIT_FSIZE, 500, "show", stored, "--out", picture.parent, expect=5)
    assert picture.read_bytes() == whole and list(picture.parent.iterdir()) == [picture]
    graph = cli.folder / "limited.dot"
    cli.run("inspect", "pathnet", "--out", graph)
    whole = graph.read_bytes()
    limited(resource.RLIMIT_FSIZE, 500, "inspect", "pathnet", "--out", graph, expect=5)
    assert graph.read_bytes() == whole
    limited(resource.RLIMIT_STACK, 64 << 10, "run", "pathnet", "--repeat", 1, expect=6)
    limited(resource.RLIMIT_STACK, 512 << 10, "run", "pathnet", "--training", "--repeat", 1, expect=0)
    full = cli.run(*words, "--checkpoint", checkpoint, "--log", "/dev/full", expect=5)  # written in place, never renamed over
    assert "No space left on device" in full.stderr and "wrote /dev/full" not in full.stdout + full.stderr, full
    assert safetensors_is_whole(checkpoint)


def test_results(cli):
    """Scripts read these; each command fills the same schema."""
    machine = cli.source / "machines" / "knl-7210.json"
    told = "the machine was measured for 0.05 s (GRAPHI_MEASURE_SECONDS): its rates may be higher"
    assert told in cli.result("info")["notes"] and not any("was measured for" in note for note in cli.result("info", env=USUAL)["notes"])
    assert not any("was measured for" in note for note in cli.result("simulate", "lstm", "--machine", machine)["notes"])
    assert cli.result("inspect", "googlenet")["model"]["nodes"] > 100
    result = cli.result("run", "pathnet", "--repeat", 3, "--quiet")
    assert result["rows"][0]["n"] == 3 and result["plan"]["allocations_in_step"] == 0
    result = cli.result("profile", "pathnet", "--tune", 0, "--quiet")
    row = result["rows"][0]
    rated = row["fraction_of_limit"] * result["machine"]["roof_gflops"]  # Winograd's fewer FLOPs are not what a step is rated by
    assert abs(row["gflops"] / rated - 1) < 0.01, (row["gflops"], rated)
    result = cli.result("profile", "pathnet", "--tune", 0, "--quiet", "--precision", "bfloat16")
    row, known = result["rows"][0], result["machine"]["roof_bf16_gflops"]
    assert row.get("roof_of") == ("bfloat16" if known and row.get("roof_gflops") else None), row
    rated = row["fraction_of_limit"] * (known or result["machine"]["roof_gflops"])
    assert not row.get("roof_gflops") or abs(row["gflops"] / rated - 1) < 0.01, (row["gflops"], rated)
    result = cli.result("simulate", "pathnet", "--machine", machine, "--executors", 8, "--width", 4)
    assert result["rows"][0]["simulated"] and result["machine"]["simulated"]
    for command in ("simulate", "inspect", "run"):
        cli.run(command, "lstm", "--training", "--inference", expect=2)
    row = cli.result("simulate", "lstm", "--executors", 1, "--width", 1, "--policy", "fifo")["rows"][0]
    assert (row["policy"], row["executors"]) == ("fifo", 1)
    saved = cli.folder / "saved.plan"
    cli.result("profile", "pathnet", "--tune", 1, "--save-plan", saved)
    assert any("stored plan" in note for note in cli.result("run", "pathnet", "--training", "--repeat", 1, "--plan", saved)["notes"])
    cli.run("run", "lstm", "--repeat", 1, "--plan", saved, expect=7)
    file = cli.folder / "file.json"
    table = cli.run("run", "pathnet", "--repeat", 1, "--json", file).stdout
    assert "pathnet" in table and not schema.more_problems(json.loads(file.read_text()))
    here = str(cli.folder / "here.json")
    assert cli.result("info", "--out", here)["files"] == [here] and cli.run("info", "--out", here).stdout
    assert cli.result("simulate", "pathnet", "--save-plan", saved)["files"] == [str(saved)]
    assert cli.result("simulate", "pathnet", "--machine", cli.folder / "here.json", "--executors", 1, "--width", 1)


def test_peak_memory(cli):
    result = cli.result("run", "pathnet", "--training", "--repeat", 2)
    row = result["rows"][0]
    assert row["peak_rss_bytes"] > result["plan"]["arena_bytes"], "a step fills the arena"
    assert row["peak_rss_absolute_bytes"] > row["peak_rss_bytes"]


def test_machines_by_name(cli):
    """Descriptions that come with Graphi are found from any folder; a file of that name goes first."""
    empty = cli.folder / "empty"
    empty.mkdir()
    def at(*words):
        return subprocess.run([cli.program, "simulate", "pathnet", *words, "--json", "-"], cwd=empty, env=cli.environment, text=True,
                              capture_output=True, timeout=60)
    for name in "knl-7210", "knl-7210.json":
        found = at("--machine", name)
        assert found.returncode == 0 and json.loads(found.stdout)["machine"]["cores"] == 64, found.stderr
    missing = at("--machine", "knl-7211")
    assert missing.returncode == 5 and "xeon-phi-7250" in missing.stderr, missing.stderr
    assert at("--machine", "./knl-7210").returncode == 5
    (empty / "knl-7210").write_text((cli.source / "machines" / "e5-2650v4-x2.json").read_text())
    assert json.loads(at("--machine", "knl-7210").stdout)["machine"]["cores"] == 24


def test_schema(cli):
    """A validator that lets everything pass finds nothing: each planted fault must be found."""
    good = cli.result("run", "pathnet", "--repeat", 2)
    plants = [lambda r: r.pop("machine"), lambda r: r.update(schema="graphi-result/0"), lambda r: r.update(ok=1),
              lambda r: r["rows"][0].update(width="2"), lambda r: r["rows"][0].pop("ratio"), lambda r: r.update(notes=[1]),
              lambda r: r["rows"][0].update(status="missing"), lambda r: r["rows"][0]["time_ms"].update(min=1e9),
              lambda r: r["rows"][0].update(ratio={"against": "?", "median": 1, "low": 1, "high": 1})]
    for number, plant in enumerate(plants):
        copy = json.loads(json.dumps(good))
        plant(copy)
        assert schema.more_problems(copy), f"planted fault {number} was not found"


def check_shells(cli):
    """zsh and fish have the same words, from the same tables; where the shells are here they must take them."""
    scripts = {shell: cli.folder / f"completion.{shell}" for shell in ("zsh", "fish")}
    for shell, path in scripts.items():
        path.write_text(cli.run("help", shell).stdout)
        told = path.read_text()
        assert all(re.search(rf"\b{command}\b", told) for command in COMMANDS) and "malleable" in told and "checkpoint" in told, shell
        if shutil.which(shell):
            done = subprocess.run([shell, "-n", path], capture_output=True, text=True)
            assert done.returncode == 0 and not done.stderr, done.stderr
    if shutil.which("fish"):
        for line, expected in ("graphi tr", "train"), ("graphi train --check", "--checkpoint"), ("graphi run --size me", "medium"):
            done = subprocess.run(["fish", "--no-config", "-c", f"source {scripts['fish']}; complete -C '{line}'"], capture_output=True, text=True)
            assert expected in [word.split("\t")[0] for word in done.stdout.splitlines()], (line, done)
    if shutil.which("zsh"):
        completions = "compdef() { :; }; compadd() { print -l -- $@; }; _files() { print FILES; }; _describe() { print -l -- ${(P)2}; };"
        for words, expected in (["graphi", "tr"], "train"), (["graphi", "run", "--size", ""], "medium"), (["graphi", "train", "--x"], "--checkpoint"):
            line = f"{completions} source {scripts['zsh']}; words=({' '.join(map(repr, words))}); CURRENT={len(words)}; _graphi"
            done = subprocess.run(["zsh", "-fc", line], capture_output=True, text=True)
            assert any(word.split(":")[0] == expected for word in done.stdout.split("\n")) and not done.stderr, (words, done)


def test_manual(cli):
    """The completion must complete in bash, the manual must render without complaints."""
    completion = cli.folder / "completion"
    completion.write_text(cli.run("help", "completion").stdout)
    def complete(*words):
        script = f"source {completion}; COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; _graphi; " \
                 'echo "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, cwd=cli.folder)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout.split()
    assert complete("graphi", "tr") == ["train"]
    assert set(COMMANDS) <= set(complete("graphi", ""))
    assert complete("graphi", "train", "path") == ["pathnet"]
    assert complete("graphi", "train", "--check") == ["--checkpoint", "--check-numerics"]
    if cli.has_bench():
        assert complete("graphi", "bench", "wave") == ["wavefront"]
        offered = complete("graphi", "bench", "")  # files of the folder stood before
        assert "sweep" in offered and "age" in offered and not {"--json", "lstm", "completion"} & set(offered), offered
        assert "lstm" in complete("graphi", "bench", "sweep", "ls")
    assert complete("graphi", "run", "--size", "") == ["small", "medium", "large"]
    assert "malleable" in complete("graphi", "run", "--policy", "")
    assert "completion" in complete("graphi", "run", "--plan", "comp")
    check_shells(cli)
    page = cli.folder / "graphi.1"
    page.write_text(cli.run("help", "man").stdout)
    for command in COMMANDS:
        assert f".SS graphi {command}" in page.read_text()
    if shutil.which("man"):
        done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True,
                              env=dict(os.environ, MANPAGER="cat", MANWIDTH="80"))
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert "EXIT STATUS" in done.stdout and "--checkpoint" in done.stdout


def test_manual_sections(cli):
    """The manual was one list of options: which command takes what, examples and what variables mean were not in it."""
    def options(text):
        return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    page = re.sub(r"\\f[BR]", "", cli.run("help", "man").stdout.replace("\\-", "-"))
    sections = {part.split("\n", 1)[0]: part for part in re.split(r"^\.SH ", page, flags=re.M)[1:]}
    commands = {part.split()[1]: part for part in sections["COMMANDS"].split(".SS ")[1:]}
    assert list(commands) == COMMANDS
    for name, part in commands.items():
        told = re.findall(r"^  (--[a-z-]+)", cli.run(name, "--help").stdout, re.M)
        assert options(re.sub(r".*\n", "", part, count=2)) == set(told), (name, part)
    everything = set(re.findall(r"^\.B (--[a-z-]+)", sections["OPTIONS"], re.M))
    assert everything == set().union(*map(options, commands.values()))
    for line in cli.run("bench", "--help").stdout.split("EXPERIMENT [M...]:\n")[1].split("\n\n")[0].splitlines():
        name, summary = line.split(None, 1)
        assert name == "none" or f".B {name}\n{summary}\n" in sections["EXPERIMENTS"], line
    readme = (cli.source / "README.md").read_text().split("## The command")[1].split("```")[1]
    for line in readme.strip().splitlines():
        command, _, what = (part.strip() for part in line.partition("#"))
        assert f".B {command}\n{what}" in sections["EXAMPLES"], f"{line}: found it in README.md alone, expected it in the manual"
    assert "at most so many cores" in sections["ENVIRONMENT"] and "folder of stored plans" in sections["ENVIRONMENT"]
    assert ".B lstm\n4-layer LSTM" in sections["NETWORKS"]


def test_training(cli):
    """Loss falls, evaluation agrees with what training wrote, the log and the result say the same."""
    words = training(cli, 40)
    checkpoint, log = cli.folder / "t.safetensors", cli.folder / "t.csv"
    result = cli.result(*words, "--checkpoint", checkpoint, "--log", log)
    train = result["train"]
    assert train["steps"] == 40 and train["loss"][-1] < train["loss"][0] and len(train["loss"]) == len(train["value"]) == 6
    rows = log.read_text().strip().split("\n")
    assert rows[0] == "step,epoch,loss,rate,validation_loss,accuracy" and len(rows) == 7 and rows[-1].startswith("40,")
    steep = cli.folder / "steep.csv"  # the rate of a row is that of its steps, not of the one behind them
    cli.run(*training(cli, 7), "--schedule", "multi-step:0.1:7", "--lr", 0.01, "--log", steep)
    assert float(steep.read_text().strip().split("\n")[-1].split(",")[3]) == 0.01
    evaluated = cli.result("eval", "pathnet", "--data", cli.folder / "images", "--image", 16, "--batch", 8, "--tune", 0,
                           "--checkpoint", checkpoint)
    assert 0 <= evaluated["train"]["value"][0] <= 1
    row = result["rows"][0]  # how, and how fast
    assert row["n"] == 40 and row["policy"] and row["executors"] >= 1 and row["time_ms"]["median"] > 0, row
    assert set(result["files"]) == {str(checkpoint), str(log)} and evaluated["rows"][0]["n"] == 4
    cli.run(*words, "--checkpoint", checkpoint, "--resume", "--seed", 6, expect=3)   # another order of the data
    cli.run(*words, "--checkpoint", checkpoint, "--resume", "--batch", 16, expect=3)
    diverges, early = [*words, "--lr", "1e6", "--schedule", "constant"], cli.folder / "early.safetensors"
    cli.run(*diverges, "--check-numerics", expect=8)
    errors = cli.run(*diverges, "--policy", "s1234", "--explain", "--json", "-", expect=8).stderr  # after what is explained
    assert "policy s1234" in errors
    found = cli.result(*diverges, "--checkpoint", early, "--every", 1, expect=8)
    assert found["ok"] is False and found["files"] == [str(early)] and early.exists()  # what it wrote before it failed


def test_demo(cli):
    """What the demonstration promises: it learns, and its table says what each engine is and what is gained over the one
    that has as many cores. A result that names neither its plan nor its timeline cannot be repeated or looked into."""
    fashion = Path("/usr/share/datasets/fashion-mnist")
    data = fashion if fashion.exists() else write_images(cli.folder / "images", train=6400, test=400)
    file = cli.folder / "d.json"
    done = cli.run("demo", "--data", data, "--image", 16, "--tune", 0.2, "--steps", 120, "--validate", 40, "--json", file,
                   "--save-plan", cli.folder / "d.plan")
    printed = done.stdout
    found = json.loads(file.read_text())
    loss, accuracy, rows, cores = *(found["train"][key] for key in ("loss", "value")), found["rows"], found["machine"]["cores"]
    assert not schema.more_problems(found) and len(loss) == 3 and found["plan"]["hash"]
    scores = re.findall(r"^step \d+: loss \d+\.\d{4}, test loss \d+\.\d{4}, test accuracy (\d+\.\d\d) %$", done.stderr, re.M)
    assert [float(score) for score in scores] == [round(100 * value, 2) for value in accuracy], (scores, accuracy)
    assert "accuracy: of the test split" in found["notes"], found["notes"]
    assert loss[2] < loss[1] < loss[0] and accuracy[2] > 0.3 and accuracy[2] >= accuracy[0], (loss, accuracy)
    assert [(row["id"], row["executors"], row["width"]) for row in rows[:3]] == [
        ("one thread", 1, 1), ("sequential", 1, cores), ("naive shared queue", cores, 1)] and rows[3]["id"] == "graphi", rows
    assert all(row["ratio"]["against"] == "sequential" for row in rows)
    (base,) = (row["time_ms"]["median"] for row in rows if row["id"] == "sequential")
    line = r"^%s +%dx%d %s +\d+\.\d{3} ms a step +speed-up over sequential +(\d+\.\d{2}) +\d+\.\d % of the limit$"
    for row in rows:
        columns = re.escape(row["id"]), row["executors"], row["width"], row["policy"]
        told = re.search(line.replace("\\d %", "\\d %%") % columns, printed, re.M)
        assert told and abs(float(told[1]) - base / row["time_ms"]["median"]) < 0.00501, (row, printed)
    assert {"timeline.html", "timeline.json", str(cli.folder / "d.plan")} <= set(found["files"]), found["files"]
    assert all((cli.folder / name).exists() for name in found["files"])
    errors = cli.run(*(word for word in training(cli, 1) if word != "--quiet")).stderr  # what is held out is no test
    assert re.search(r"validation loss \d+\.\d{4}, validation accuracy \d+", errors) and "test loss" not in errors, errors


def test_demo_options(cli):
    """What is typed holds: epochs gave way to the usual 1,200 steps, and the result took the place of the timeline."""
    words = ["demo", "--data", write_images(cli.folder / "images"), "--image", 16, "--batch", 8, "--tune", 0, "--quiet"]
    assert cli.result(*words, "--epochs", 2, "--log", "d.csv")["train"]["epochs"] == 2
    first = (cli.folder / "d.csv").read_text().split("\n")[0]  # what it is judged on is no validation set
    assert first == "step,epoch,loss,rate,test_loss,accuracy", first
    for result in ("timeline.json", "./timeline.html"):
        assert "--timeline" in cli.run(*words, "--steps", 1, "--json", result, expect=2).stderr
    assert "--timeline" in cli.run("run", "pathnet", "--out", "o", "--timeline", "o/run", expect=2).stderr


def test_text(cli):
    """A language model on a text file, its state carried from batch to batch and through a checkpoint."""
    text = cli.folder / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog . " * 400)
    words = ["train", "lstm", "--data", text, "--batch", 8, "--tune", 0, "--quiet", "--level", "word"]
    checkpoint = cli.folder / "text.safetensors"
    whole = cli.result(*words, "--steps", 6)["train"]
    assert whole["metric"] == "perplexity" and whole["value"][-1] > 1
    cli.result(*words, "--steps", 3, "--checkpoint", checkpoint)
    again = cli.result(*words, "--steps", 6, "--checkpoint", checkpoint, "--resume")["train"]
    assert again["state_sha256"] == whole["state_sha256"]
    file = cli.folder / "infinite.json"
    loud = [*words, "--steps", 3, "--lr", "1e6", "--checkpoint", checkpoint, "--overwrite"]
    printed = cli.run(*loud, "--json", file).stdout
    infinite = json.loads(file.read_text())
    assert not schema.more_problems(infinite) and re.search(r"^ +1 +\S+ +inf$", printed, re.M), printed
    assert infinite["train"]["value"] == [None] and any("infinite" in note for note in infinite["notes"]), infinite
    folder = cli.folder / "split"
    folder.mkdir()
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text(text.read_text())
    words[words.index(text)] = folder
    printed = cli.run("eval", *words[1:], "--checkpoint", checkpoint, "--json", file).stdout
    found = json.loads(file.read_text())
    assert found["train"]["value"] == [None] and re.search(r"^perplexity inf, loss \d+\.\d+$", printed, re.M), printed
    assert printed.index("perplexity inf") < printed.index("p25-p75"), "a result among the notes on times"
    scored, tokens, window, rows = map(int, re.search(r"over (\d+) of (\d+) tokens of the test split, windows of (\d+) in (\d+) rows",
                                                      " ".join(found["notes"])).groups())
    assert tokens - (rows + 1) * window < scored < tokens and scored % (rows * window) == 0 and rows == 8, found["notes"]


def test_gan(cli):
    """The options that training has hold for the two networks of a DCGAN too: --timeline and --explain once did
    nothing."""
    words = ["train", "dcgan", "--data", write_images(cli.folder / "images"), "--batch", 4, "--steps", 1, "--quiet", "--out", cli.folder / "out"]
    text = cli.run(*words, "--policy", "s12", "--tune", 0.2, "--explain", "--timeline", cli.folder / "gan").stdout
    assert "durations measured" in text and "policy s12" in text
    assert json.loads((cli.folder / "gan.json").read_text()) and (cli.folder / "gan.html").stat().st_size > 1000
    cli.run(*words, "--save-plan", cli.folder / "gan.plan")
    cli.run(*words, "--plan", cli.folder / "gan.plan")
    whole = [word for word in words if word not in ("--steps", 1)] + ["--tune", 0, "--epochs", 1]
    assert cli.result(*whole)["train"]["steps"] == 96 // 4, "images were held out that nobody looked at"


def test_gan_samples(cli):
    """A picture that cannot be written threw the training away."""
    words, checkpoint = ["train", "dcgan", "--data", write_images(cli.folder / "images"), "--batch", 4, "--quiet", "--tune", 0,
                         "--validate", 1, "--steps", 2], cli.folder / "gan.safetensors"
    picture = cli.folder / "out" / "samples-000001.png"
    picture.mkdir(parents=True)
    errors = cli.run(*words, "--out", picture.parent, "--checkpoint", checkpoint, expect=5).stderr
    assert str(picture) in errors and safetensors_is_whole(checkpoint)
    picture.rmdir()
    cli.run(*words, "--out", picture.parent, "--checkpoint", checkpoint, "--resume")
    assert [path.name for path in picture.parent.glob("*.png")] == ["samples-000002.png"]
    other = cli.folder / "images" / "train-images-idx3-ubyte"
    content = other.read_bytes()
    other.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    errors = cli.run(*words, "--steps", 3, "--out", picture.parent, "--checkpoint", checkpoint, "--resume", expect=3).stderr
    assert "other data" in errors, errors
    if os.geteuid():
        cli.folder.chmod(0o555)
        started = time.monotonic()
        try:
            cli.run(*words, "--tune", 600, expect=5)
        finally:
            cli.folder.chmod(0o755)
        assert time.monotonic() - started < 5


def test_bench_words(cli):
    """The same mistake has the same status in train and bench; a word that chooses nothing is one; Ctrl-C is no
    failure."""
    table = cli.bench("table_1")
    for experiment in ("pinning", "loss-curves"):
        assert "googlenet" in cli.run("bench", experiment, "nonet", expect=2).stderr
    for experiment in ("table-1", "table-6", "figure-4", "wavefront"):  # simulated; a row "missing" and exit 0 once
        assert "nonet" in cli.run("bench", experiment, "pathnet", "nonet", expect=2).stderr
        assert "--executors" in cli.run("bench", experiment, "--executors", 100, expect=2).stderr
    done = cli.run("bench", "kernels", "square", "nothing-of-that", expect=2)
    assert "nothing-of-that" in done.stderr and "streaming" in done.stderr
    assert not done.stdout and "1024" not in done.stderr  # nothing was measured before
    whole = cli.run("bench", "--help").stdout
    experiments = re.findall(r"^  ([a-z][a-z0-9-]*) {2,}\S", whole.split("EXPERIMENT [M...]:\n")[1].split("\n\n")[0], re.M)
    assert len(experiments) >= 30 and "inference" in experiments, experiments
    texts = {name: cli.run("bench", name, "--help").stdout for name in experiments}
    options = {name: set(re.findall(r"^  (--[a-z0-9-]+)", text, re.M)) for name, text in texts.items()}
    assert set().union(*options.values()) == set(re.findall(r"^  (--[a-z0-9-]+)", whole, re.M)), "all options of bench have an effect somewhere"
    assert "--executors" in options["waiting"] - options["table-1"] and "--machine" in options["table-1"] - options["waiting"]
    assert texts["table-1"] == subprocess.run([table, "--help"], capture_output=True, text=True, timeout=60).stdout
    for name in ("table-1", "wavefront", "kernels", "loss-curves"):  # what the help leaves out is refused
        missing = sorted(set().union(*options.values()) - options[name])[0]
        value = [] if re.search(rf"^  {missing} {{2,}}", whole, re.M) else ["1"]
        assert missing in cli.run("bench", name, missing, *value, expect=2).stderr
    process = start(cli, ["bench", "loss-curves", "--json", "stopped.json"], start_new_session=True)
    process.stderr.readline()
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does
    cli.judge(["bench", "loss-curves"], process.wait(60), process.stderr.read(), 130)


def test_bench_peers(cli):
    """A peer that is not there, or that has no form of a network, is a row that says so; our own rows stand without it. A
    mistyped network is found before anything is measured, and the process that measures memory gets every option."""
    program = cli.bench("frameworks")
    own, cache = cli.folder / "bench", cli.folder / "cache"
    (own / "frameworks-peers").mkdir(parents=True)
    own = Path(shutil.copy(program, own / "frameworks"))
    (own.parent / "frameworks-peers" / "setup.sh").write_text("exit 1\n")
    python = cache / "graphi" / "peers" / "tensorflow" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("""#!/bin/sh\nread x && echo '{"ok": true, "settings": []}'\n""")
    python.chmod(0o755)
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}

    def run(*words):
        return subprocess.run([own, *map(str, words)], env=environment, cwd=cli.folder, capture_output=True, text=True, timeout=PATIENCE)
    quick = ["--size", "small", "--batch", 2, "--tune", 0.1, "--seconds", 0.1]
    done = run("pathnet", "nonet", "pytorch", *quick)
    assert done.returncode == 2 and "nonet" in done.stderr and "warming" not in done.stderr and not done.stdout, done.stderr
    assert "ptb, or tensorflow, pytorch, jax" in done.stderr, done.stderr
    done = run("pathnet", "pytorch", "tensorflow", "--quiet", *quick)
    root = json.loads(done.stdout)
    assert not schema.problems(root)
    rows = {row["id"]: row for row in root["rows"]}
    for mode in ("training", "inference"):
        for peer, reason in (("PyTorch", "could not be made"), ("TensorFlow", "no form of this network")):
            row = rows[f"pathnet small, batch 2, {mode}: {peer}"]
            assert row["status"] == "missing" and reason in row["reason"], row
        assert rows[f"pathnet small, batch 2, {mode}: graphi"]["peak_rss_bytes"] > 0, done.stderr
    assert "ratio" in rows["pathnet small, batch 2, training: graphi direct"]
    # The process that measures memory has the plan of the times: without element-wise fusion it takes more.
    quick[3] = 32

    def peak(root):
        return next(row["peak_rss_bytes"] for row in root["rows"] if row["peak_rss_bytes"])
    slim, wide = (peak(json.loads(run("alone-training", "lstm", *quick, *words).stdout)) for words in ([], ["--disable", "fusion"]))
    here = peak(json.loads(run("lstm", "pytorch", "--quiet", "--disable", "fusion", *quick).stdout))
    sanitized = b"__asan_init" in own.read_bytes()  # whose shadow counts
    # And nothing that the benchmark needs itself.
    assert abs(here - wide) < abs(here - slim) and (sanitized or slim < 40e6), (slim, here, wide)


if __name__ == "__main__":
    main(globals())
