#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Settings that are asked for and plans that are kept: what decides how a network runs.

usage: test_cli_plans.py --build DIR [--only WORD] [--seed N]"""
import fcntl
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import USUAL, main, training, write_images  # noqa: E402


def test_shared_curves(cli):
    """What one network measured would be measured again for the next, or a file that is not ours believed, or a user's overwritten."""
    small = ["--image", 16, "--policy", "critical-path", "--tune", 30, "--explain"]  # ends early: the setting is given
    folder = cli.folder / "shared"
    env = {"GRAPHI_PLAN_DIR": str(folder)}
    def measured(*words):
        text = cli.run("profile", "pathnet", *small, *words, env=env).stdout
        of = re.search(r"operations measured: (\d+) of (\d+) classes.* (\d+) known before", text)
        assert of, text
        assert not isinstance(words[-1], Path) or f"wrote {words[-1]}\n" in text  # --curves
        assert text.count("; curve stored") > 0 or not int(of.group(3))
        return tuple(map(int, of.groups()))
    def disturb(file, count):
        """As if others had used the cores while so many of the curves were measured; now they may have, or not."""
        content = json.loads(file.read_text())
        for i, curve in enumerate(content["curves"]):
            curve["disturbed"] = i < count
        file.write_text(json.dumps(content))
    first, classes, known = measured("--batch", 8)
    assert first == classes and known == 0
    stored = next(folder.glob("*.curves"))
    disturb(stored, 0)
    assert measured("--batch", 8) == (0, classes, classes), "stored curves were not used"
    disturb(stored, 3)
    assert measured("--batch", 8) == (3, classes, classes - 3), "what was measured under load was believed for ever"
    assert measured("--batch", 8, "--curves", "none") == (classes, classes, 0)
    assert json.loads(stored.read_text())["schema"] == "graphi-curves/1"
    stored.write_text("{")
    done = cli.run("profile", "pathnet", *small, "--batch", 8, env=env)
    assert "graphi: note: stored curves are not used but measured again: INVALID" in done.stderr
    assert len(json.loads(stored.read_text())["curves"]) == classes
    own = cli.folder / "own.curves"
    plans = len(list(folder.glob("*.plan")))
    measured("--batch", 4, "--curves", own)
    assert len(list(folder.glob("*.plan"))) == plans, "a plan that follows a file which was named became everybody's"
    own.unlink()
    done = cli.run("profile", "pathnet", "--tune", 1e-6, "--policy", "critical-path", "--curves", own)
    assert not own.exists() and f"note: {own} is not written" in done.stderr, done.stderr
    assert measured("--batch", 8, "--curves", own) == (classes, classes, 0)
    disturb(own, 0)
    assert measured("--batch", 8, "--curves", own)[0] == 0
    text = cli.run("run", "pathnet", "--image", 16, "--batch", 8, "--training", "--repeat", 1, "--curves", own, "--explain", env=env).stdout
    assert f"curves of {classes} of {classes} classes are stored" in text
    cli.run("simulate", "pathnet", "--image", 16, "--batch", 8, "--curves", own)
    words = ["simulate", "pathnet", "--curves", own, "--machine", cli.source / "machines" / "knl-7210.json"]
    assert "REFUSED" in cli.run(*words, expect=7).stderr
    assert "k-neighbours" in cli.run("simulate", "pathnet", "--curves", own, "--model", "k-neighbours", expect=3).stderr
    assert "--curves" in cli.run("run", "pathnet", "--model", "m", expect=2).stderr
    cli.run("run", "pathnet", "--curves", cli.folder / "none-such", expect=5)
    own.write_text("mine")
    cli.run("profile", "pathnet", *small, "--curves", own, expect=3)
    assert own.read_text() == "mine"


def test_plan_not_kept(cli):
    """A tuned plan that no folder takes was lost in silence, and each command measured again."""
    words = ["profile", "pathnet", "--image", 16, "--batch", 8, "--tune", 0.1]
    long = cli.folder / ("x" * 200)  # what fits of its name would be another folder
    for folder in ("/proc/none", "/proc", "/".join([str(long)] + ["y" * 200] * 19)):
        found = cli.result(*words, env={"GRAPHI_PLAN_DIR": folder})
        assert any(note.startswith("the plan is not kept: ") for note in found["notes"]), found["notes"]
        assert not found["files"] and not long.exists()
    found = cli.result(*words, "--save-plan", cli.folder / "mine.plan")
    assert len(found["files"]) == 2 and all(Path(file).exists() for file in found["files"]), found["files"]


def test_settings_tried(cli):
    """What the search weighed could be read, not computed with or drawn."""
    saved, pictures = cli.folder / "tried.plan", cli.folder / "pictures"
    found = cli.result("profile", "pathnet", "--image", 16, "--batch", 8, "--tune", 2, "--save-plan", saved, "--out", pictures)
    rows = found["rows"][1:]
    assert len(rows) >= 2 and [row["predicted_ms"] for row in rows] == sorted(row["predicted_ms"] for row in rows)
    raced = [row for row in rows if row["status"] == "ok"]
    assert raced and all(row["n"] >= 1 and row["ratio"] for row in raced)
    assert all(row["reason"].startswith("not raced: ") and not row["time_ms"] for row in rows if row not in raced)
    chosen, = {row["ratio"]["against"] for row in raced}
    best = next(row for row in raced if row["id"] == chosen)
    assert best["ratio"]["median"] == best["ratio"]["low"] == best["ratio"]["high"] == 1
    assert all(best[key] == found["rows"][0][key] for key in ("policy", "driver", "executors", "width"))
    cli.run("show", pictures / "profile.json", "--out", pictures)
    drawn = (pictures / "profile.svg").read_text()
    assert ">pathnet tried</text>" in drawn and len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        shape = f" {row['executors']}x{row['width']}" if row["executors"] and row["width"] else ""
        assert f". {row['policy']}{shape}" in drawn, row["id"]
    assert sum(" tried: " in line for line in cli.run("profile", "pathnet", "--image", 16, "--batch", 8, "--plan", saved).stdout.split("\n")) == len(rows)
    again = cli.result("profile", "pathnet", "--image", 16, "--batch", 8, "--plan", saved)["rows"][1:]
    assert [row["id"] for row in again] == [row["id"] for row in rows]
    plan = json.loads(saved.read_text())
    saved.write_text(json.dumps({key: value for key, value in plan.items() if key != "tried"}))  # as it was stored before
    assert len(cli.result("profile", "pathnet", "--image", 16, "--batch", 8, "--plan", saved, "--out", pictures)["rows"]) == 1
    cli.run("show", pictures / "profile.json", "--out", pictures)


def test_plan_slots(cli):
    """A plan under other compile options took the place of the default one, and the next command measured again."""
    words = ["pathnet", "--image", 16, "--batch", 8]
    special = (["--disable", "fusion"], ["--isa", "plain"], ["--conv-error", 1], ["--streaming", "on"], ["--streaming", "off"], [])
    for options in special:
        cli.run("profile", *words, "--tune", 0.1, *options)
    assert len(list((cli.folder / "plans").glob("*.plan"))) == len(special)
    for options in (*special, ["--disable", "cse"]):
        notes = " ".join(cli.result("run", *words, "--training", "--repeat", 1, *options)["notes"])
        assert ("the stored plan was used" in notes) == (options in special), (options, notes)
    notes = " ".join(cli.result("run", *words, "--training", "--repeat", 1, "--streaming", "auto")["notes"])
    assert "the stored plan was used" in notes, notes
    for precision, usual in ("float32", 4), ("bfloat16", 8):  # said or not, it is the same plan
        chosen = ["--precision", precision]
        cli.run("profile", *words, "--tune", 0.1, *chosen)
        notes = " ".join(cli.result("run", *words, "--training", "--repeat", 1, *chosen, "--conv-error", usual)["notes"])
        assert "the stored plan was used" in notes, notes


def test_executors_beside_plan(cli):
    """A plan whose policy runs one operation after the other, or chooses widths itself, had executors that were asked
    for wait, in silence."""
    cores, words = cli.cores(), ["lstm", "--units", 8, "--batch", 2, "--unroll", 2]
    asked = ["--executors", cores, "--width", 1]
    expected = cli.result("run", *words, "--repeat", 1, *asked)["rows"][0]
    assert (expected["policy"], expected["executors"]) == ("critical-path", cores)
    for policy in ("sequential", "malleable"):
        cli.run("profile", *words, "--inference", "--tune", 0.1, "--policy", policy)
        kept = cli.result("run", *words, "--repeat", 1)["rows"][0]
        row = cli.result("run", *words, "--repeat", 1, *asked)["rows"][0]
        assert [row[key] for key in ("policy", "executors", "width")] == [expected[key] for key in ("policy", "executors", "width")], row
        assert policy != "sequential" or kept["policy"] == policy, kept


def test_plan_origin(cli):
    """A network that was profiled ran by a static choice, since another graph had been measured or the stored plan was refused, and
    nothing said so."""
    small, checkpoint = ["--image", 16, "--batch", 8], cli.folder / "of a user's.safetensors"
    def notes(*words):
        return cli.result(*words)["notes"]
    def words_told(found):
        told = [re.search(r"^chosen statically(.*) \(`graphi (profile .*)` stores one\)$", note) for note in found]
        told = [match for match in told if match]
        assert len(told) == 1, found
        return told[0].group(1), shlex.split(told[0].group(2))
    def used(*words):
        found = notes(*words)
        assert not any("statically" in note or "not used" in note for note in found), found
        return [note.removeprefix("the stored plan was used: ") for note in found if "the stored plan was used" in note]
    cli.run(*training(cli, 2), "--checkpoint", checkpoint)
    evaluation = ["eval", "pathnet", "--data", cli.folder / "images", *small, "--checkpoint", checkpoint]
    for command in (["run", "pathnet", *small], ["run", "pathnet", *small, "--training", "--disable", "fusion,+merge", "--conv-error", 1.5],
                    ["run", "pathnet", *small, "--task", "real", "--cores", 1], ["run", "pathnet", *small, "--checkpoint", checkpoint],
                    ["run", "lstm", "--batch", 2, "--unroll", 2, "--merged"],
                    ["simulate", "pathnet", *small, "--inference"], evaluation):
        words = command if command[0] == "simulate" else [*command, "--steps" if command[0] == "eval" else "--repeat", 1]
        if command[0] == "simulate":
            assert used(*words), "run and simulate --inference have one graph"
            continue
        if command is evaluation:
            assert used(*words), "eval has the graph of run --checkpoint"
            next((cli.folder / "plans").glob(Path(used(*words)[0]).name)).unlink()
        why, profile = words_told(notes(*words))
        assert why == ": no plan is stored for this graph"
        cli.run(*profile, "--tune", 0.1)
        stored = used(*words)
        assert len(stored) == 1 and Path(stored[0]).exists(), stored
    file = Path(stored[0])
    plan = json.loads(file.read_text())
    file.write_text(json.dumps({**plan, "version": "0.0.9"}))
    found = notes(*words)
    assert any(note.startswith("the stored plan is not used: ") and "0.0.9" in note for note in found), found
    why, profile = words_told(found)
    assert not why
    cli.run(*profile, "--tune", 0.1)
    assert used(*words) == stored
    for more in ["--tune", 0], ["--executors", 1], ["--curves", "none", "--tune", 0]:  # as asked for
        assert not any("statically" in note for note in notes("run", "pathnet", "--repeat", 1, "--batch", 4, "--image", 16, *more)), more


def test_stored_but_unread(cli):
    """A stored file that could not be read for another reason than its content was made anew, and a sound one lost."""
    env = {"GRAPHI_PLAN_DIR": str(cli.folder / "unread")}
    words = ["profile", "pathnet", "--image", 16, "--batch", 2, "--inference", "--policy", "critical-path", "--tune", 30]  # ends early
    cli.run(*words, env=env)
    for kind, command in (("curves", words), ("plan", ["run", "pathnet", "--image", 16, "--batch", 2, "--inference", "--repeat", 1])):
        file = next((cli.folder / "unread").glob(f"*.{kind}"))
        file.rename(cli.folder / "sound")
        os.mknod(file, stat.S_IFSOCK | 0o600)  # there, and no open succeeds, root's neither
        done = cli.run(*command, env=env)
        assert f"{file}: found no readable file" in done.stdout + done.stderr
        assert stat.S_ISSOCK(file.stat().st_mode), f"{file} was made anew"
        (cli.folder / "sound").rename(file)
        cli.run(*command, env=env)


def test_network_of_data(cli):
    """The network that a user trains could be trained alone: profile, simulate, run and inspect had no data to fit it to, and train
    never found a plan for a text of other than 10,000 words."""
    def graph(*words):
        return cli.result(*words)["model"]["graph_hash"]
    (cli.folder / "text").mkdir()
    for name in "t.txt", "text/train.txt", "text/test.txt":
        (cli.folder / name).write_text("the quick brown fox jumps over a lazy dog and so on " * 300)
    write_images(cli.folder / "four", classes=4)
    checkpoint = ["--checkpoint", cli.folder / "data.safetensors"]
    for network, shape, data in (("lstm", ["--batch", 4], ["--data", "text"]), ("lstm", ["--batch", 4], ["--data", "text", "--level", "character"]),
                                 ("pathnet", ["--batch", 8, "--image", 16], ["--data", "four"]),
                                 ("pathnet", ["--batch", 8, "--image", 16], ["--data", "four", "--classes", 5])):
        words = [network, *shape, *data]
        cli.run("profile", *words, "--task", "real", "--tune", 1)
        trained = cli.result("train", *words, "--steps", 1, *checkpoint, "--overwrite")
        found = [note for note in trained["notes"] if note.startswith("the stored plan was used: ") or "is therefore tuned again: " in note]
        assert found, (words, trained["notes"])  # the latter where others used the cores in profile, and not in train
        found = trained["model"]["graph_hash"]
        for form in words, [network, *shape, *checkpoint]:
            assert found == graph("inspect", *form) == graph("simulate", *form) == graph("run", *form, "--training", "--repeat", 1), form
        assert graph("inspect", network, *shape, "--task", "real") != found, "the data made no difference"
        evaluated = cli.result("run", *words, "--repeat", 1)
        assert evaluated["model"]["graph_hash"] == graph("eval", *words, *checkpoint, "--steps", 1)
        told = next(note for note in evaluated["notes"] if "statically" in note).split("`")[1]
        assert shlex.split(told) == ["graphi", "profile", network, "--inference", "--task", "real", *map(str, shape + data)], told
    assert graph("inspect", network, *shape, "--classes", 5) == found, "--classes alone needs no data"
    assert graph("inspect", "lstm", "--data", "t.txt") == graph("inspect", "lstm", "--data", "text")
    assert "--data" in cli.run("profile", "lstm", "--level", "character", expect=2).stderr
    assert "made for timing" in cli.run("run", "lstm", "--data", "t.txt", "--task", "bench", expect=2).stderr
    assert "--classes" in cli.run("inspect", "lstm", "--data", "t.txt", "--classes", 5, expect=2).stderr
    assert "--classes" in cli.run("inspect", "lstm", "--classes", 5, expect=2).stderr
    assert "--level" in cli.run("inspect", "pathnet", "--level", "word", expect=2).stderr
    cli.run("simulate", "lstm", "--data", "none-such", expect=5)


def test_interval_alone(cli):
    """How widths are climbed means nothing where none is measured, and was dropped without a word."""
    for words in (["simulate", "pathnet"], ["simulate", "pathnet", "--machine", cli.source / "machines" / "knl-7210.json"],
                  ["simulate", "pathnet", "--tune", 0], ["run", "pathnet", "--tune", 0]):
        assert "--interval: " in cli.run(*words, "--interval", 2, expect=2).stderr


def test_setting(cli):
    """More executors than cores must be refused, not run slowly."""
    cores = cli.cores()
    for executors, width in ((cores + 1, 1), (1, cores + 1), (cores, 2), (65536, 65536)):
        cli.run("run", "pathnet", "--executors", executors, "--width", width, "--repeat", 1, expect=2)
    cli.run("run", "pathnet", "--cores", 1, "--executors", 2, "--repeat", 1, expect=2)
    row = cli.result("run", "pathnet", "--executors", cores, "--width", 1, "--repeat", 1, "--policy", "fifo")["rows"][0]
    assert (row["executors"], row["width"], row["policy"]) == (cores, 1, "fifo")
    assert cli.result("info", env={"GRAPHI_NUM_THREADS": "1"})["machine"]["cores"] == 1
    assert f"found {cores + 6} cores asked for" in cli.run("run", "pathnet", "--cores", cores + 6, expect=3).stderr
    beyond, told = {"GRAPHI_NUM_THREADS": str(cores + 6)}, f"GRAPHI_NUM_THREADS asks for {cores + 6} cores; all that are there are used: {cores}"
    done = cli.run("run", "pathnet", "--repeat", 1, env=beyond)  # exported in a profile, it was refused unnamed
    assert done.stderr.count(told) == 1, done.stderr
    assert told not in cli.run("run", "pathnet", "--repeat", 1, "--cores", 1, env=beyond).stderr


def test_policy_measured(cli):
    """Strategies and the malleable policy live on measured curves: with --tune they are measured for the policy that
    was asked for, and a stored plan's durations serve the setting that is asked for beside it, which once was dropped
    without a word."""
    cores = cli.cores()
    plan, data = cli.folder / "s.plan", write_images(cli.folder / "images")
    small = ["--image", 16, "--batch", 8]
    for policy in ("s1234", "malleable"):
        done = cli.run("profile", "pathnet", *small, "--policy", policy, "--tune", 0.2, "--explain", "--save-plan", plan)
        begins = [line.split(":")[0] for line in done.stdout.splitlines()[:3]]
        assert begins == ["conclusion", "others", "bound"], done.stdout[:400]
        assert "durations measured" in done.stdout and "operations measured: " in done.stdout, done.stdout
        stored = json.loads(plan.read_text())
        assert stored["measured"] and stored["setting"]["policy"] == policy
        lines = [line for line in done.stdout.splitlines() if f", policy {policy}, " in line]
        assert ("uniform: critical path first" in lines[0]) == bool(stored["setting"]["uniform"]), (lines, "searched widths or not")
    assert cli.result("run", "pathnet", *small, "--training", "--repeat", 1)["rows"][0]["policy"] == "malleable", "not stored"
    text = cli.run("run", "pathnet", *small, "--policy", "s123", "--tune", 0.2, "--explain", "--repeat", 1).stdout
    assert "durations measured" in text and "policy s123" in text
    assert cli.result("run", "pathnet", *small, "--repeat", 1)["rows"][0]["policy"] == "critical-path", "a trial became the default"
    checkpoint = cli.folder / "c"
    trained = training(cli, 2)
    trained[trained.index("--tune") + 1] = 0.2
    assert "durations measured" in cli.run(*trained, "--policy", "s12", "--explain", "--checkpoint", checkpoint).stdout
    text = cli.run("eval", "pathnet", "--data", data, *small, "--policy", "s1", "--tune", 0.2, "--explain", "--checkpoint",
                   checkpoint).stdout
    assert "durations measured" in text and "policy s1," in text
    words = ["run", "pathnet", *small, "--training", "--repeat", 1, "--plan", plan]
    row = cli.result(*words)["rows"][0]
    assert row["policy"] == "malleable"
    row = cli.result(*words, "--policy", "s123")["rows"][0]
    assert row["policy"] == "s123"
    assert "durations measured" in cli.run(*words, "--policy", "s123", "--explain").stdout
    row = cli.result(*words, "--executors", 1, "--width", 1)["rows"][0]
    assert (row["policy"], row["executors"], row["width"]) == ("critical-path", 1, 1)  # as without a plan
    cli.run(*words, "--executors", cores + 1, expect=2)
    assert "--tune" in cli.run(*words, "--tune", 1, expect=2).stderr


def test_simulated_setting(cli):
    """A simulation whose setting is null cannot be repeated or compared; an explanation of the plan at hand would be of
    another one."""
    words = ["simulate", "pathnet", "--machine", cli.source / "machines" / "knl-7210.json", "--tune", 0]
    row = cli.result(*words)["rows"][0]
    assert row["executors"] >= 1 and row["width"] >= 1 and row["driver"] in ("dedicated", "combining"), row
    text = cli.run(*words, "--policy", "malleable", "--explain").stdout
    assert "knl-7210, 64 cores" in text and "policy malleable" in text and re.search(r"predicted step [0-9.]+ ms \([+-][0-9.]+ % from the bound\)", text)


def test_strategy_constants(cli):
    """The constants of the strategies reach the plan, also a stored one's; the climb goes by the interval asked for."""
    plan, cores = cli.folder / "constants.plan", cli.cores()
    words = ["pathnet", "--image", 16, "--batch", 8]
    for interval in (1, cores, 2):
        stored = cli.run("profile", *words, "--policy", "s123", "--candidates", 2, "--tolerance", 7, "--interval", interval, "--tune", 0.1,
                         "--save-plan", plan)
        assert f"widths climbed by {min(interval, cores)}, " in stored.stdout, stored.stdout
        curves = json.loads(plan.read_text())["curves"]
        if "neighbours only" in stored.stdout:  # no two cores share a cache: any width
            assert all(c["width"] == sorted({*range(1, cores, interval), cores})[:len(c["width"])] for c in curves), curves
    setting = json.loads(plan.read_text())["setting"]
    assert (setting["candidates"], setting["tolerance"]) == (2, 7)
    cli.run("run", *words, "--training", "--repeat", 1, "--plan", plan, "--tolerance", 0, "--save-plan", plan)
    assert json.loads(plan.read_text())["setting"]["tolerance"] == 0  # none
    cli.run("run", *words, "--training", "--repeat", 1, "--plan", plan, "--tolerance", 1, "--save-plan", plan)
    setting = json.loads(plan.read_text())["setting"]
    assert (setting["policy"], setting["candidates"], setting["tolerance"]) == ("s123", 2, 1)
    for asked in ("off", "on", "auto"):  # 1 and -1: decided, for uniform teams or for the strategy's own
        text = cli.run("run", *words, "--training", "--repeat", 1, "--plan", plan, "--keep-uniform", asked, "--save-plan", plan, "--explain").stdout
        setting = json.loads(plan.read_text())["setting"]
        assert setting["keep_uniform"] == (1 if setting["uniform"] else -1) and not (asked == "off" and setting["uniform"]), setting
        assert ("s123: widths of its own predicted" in text) == (asked != "off"), text
    cli.run("run", *words, "--training", "--repeat", 1, "--plan", plan, "--policy", "critical-path", "--depth", 5, "--save-plan", plan)
    cli.run("run", *words, "--training", "--repeat", 1, "--plan", plan, "--candidates", 2, "--save-plan", plan)
    assert json.loads(plan.read_text())["setting"]["depth"] == 5, "what only strategies heed changed another policy's plan"
    for option in ("--candidates", "--tolerance", "--interval", "--keep-uniform"):
        assert option in cli.run("train", "--help").stdout
        cli.run("run", "pathnet", option, -1 if option == "--tolerance" else 0, expect=2)
    cli.run("run", "pathnet", "--candidates", 9, expect=2)


def test_no_effect(cli):
    """A number of executors for the backward pass, or a driver, that the policy has no use for went unsaid, and the result named what
    did not run; more executors than threads ran as fewer."""
    words = ["simulate", "pathnet", "--training", "--machine", cli.source / "machines" / "knl-7210.json", "--cores", 32, "--executors", 4,
             "--width", 4]
    assert "expected at most the 16 threads of 4 executors x 4" in cli.run(*words, "--backward-executors", 17, expect=2).stderr
    for policy in ("naive", "sequential", "s12", "s1234", "malleable"):
        found = cli.result(*words, "--backward-executors", 8, "--policy", policy)
        assert any(f"--backward-executors has no effect: {policy} " in note for note in found["notes"]), found["notes"]
    found = cli.result(*words, "--backward-executors", 8)
    assert not any("no effect" in note for note in found["notes"]) and found["rows"][0]["backward_executors"] == 8, found
    assert "4x4 critical-path dedicated, 8 backward" in cli.run(*words, "--backward-executors", 8).stdout
    found = cli.result(*words, "--depth", 3)
    assert found["rows"][0]["depth"] == 3 and "backward_executors" not in found["rows"][0], found
    assert ", 3 ahead" in cli.run(*words, "--depth", 3).stdout
    few = cli.result("simulate", "pathnet", "--training", "--machine", words[4], "--cores", 2, "--executors", 2, "--width", 1, "--policy", "asymmetric")
    assert "--policy asymmetric runs as critical-path: on 2 executors x 1 threads all teams are of one size" in few["notes"], few["notes"]
    notes = cli.result(*words, "--backward-executors", 8, "--policy", "locality")["notes"]
    assert "--policy locality runs as critical-path: beside --backward-executors its order alone counts" in notes, notes
    assert cli.result(*words, "--disable", "none")["plan"]["hash"] == cli.result(*words)["plan"]["hash"]
    for policy in ("naive", "sequential"):
        assert cli.result(*words, "--policy", policy)["rows"][0]["driver"] == "combining"
        notes = cli.result(*words, "--policy", policy, "--driver", "dedicated")["notes"]
        assert any(f"--driver dedicated has no effect: {policy} " in note for note in notes), notes
    for asked, why in ((["--policy", "naive"], "naive has no scheduling step"),
                       (["--backward-executors", 8], "critical-path changes teams beside --backward-executors")):
        found = cli.result(*words, "--driver", "static", *asked)
        assert found["rows"][0]["driver"] == "combining" and f"--driver static has no effect: {why}" in found["notes"], found
    for asked in ([], ["--policy", "s12"], ["--policy", "locality"], ["--policy", "malleable"]):
        found = cli.result(*words, "--driver", "static", *asked)
        assert found["rows"][0]["driver"] == "static" and not any("no effect" in note for note in found["notes"]), found
    used = {"--depth": (4, ["critical-path", "fifo", "asymmetric"]), "--candidates": (2, ["s123", "s1234"]),
            "--tolerance": (0, ["s123", "s1234"]), "--keep-uniform": ("off", ["s1", "s12", "s123", "s1234"])}
    asked = [word for option, (value, _) in used.items() for word in (option, value)]
    for policy in ("critical-path", "fifo", "asymmetric", "naive", "sequential", "s1", "s12", "s123", "s1234", "malleable"):
        notes = [note for note in cli.result(*words, *asked, "--policy", policy)["notes"] if "has no effect" in note]
        told = {note.split()[0] for note in notes}
        if policy == "malleable":
            told.discard("--depth")  # where all teams are of one width it has buffers
        idle = {option for option, (_, policies) in used.items() if policy not in policies}
        assert told == idle - ({"--depth"} if policy == "malleable" else set()), (policy, notes)
    inference = [*(word for word in words if word != "--training"), "--inference"]
    notes = cli.result(*inference, "--backward-executors", 1)["notes"]
    assert "--backward-executors has no effect: inference has no backward pass" in notes, notes
    for network in ("resnet20", "resnet50", "dcgan", "inception-v3", "ptb"):
        one_size = network != "ptb"
        for command in ("inspect", "simulate"):
            found = cli.result(command, network, "--size", "medium")
            assert (f"--size has no effect: {network} has one size" in found["notes"]) == one_size, (command, network, found["notes"])
            assert found["model"]["size"] == (None if one_size else "medium"), (command, network, found["model"])
        assert not any("--size" in note for note in cli.result("inspect", network)["notes"]), network
    assert "\nnote: --size has no effect: resnet20 has one size\n" in cli.run("inspect", "resnet20", "--size", "medium").stdout


def test_kernels_named(cli):
    """A result of --isa plain named the machine's instruction set alone, in its heading too, beside rates that are not of it."""
    words, asked = ["pathnet", "--batch", 2, "--image", 16], ["--isa", "plain", "--precision", "bfloat16"]
    checkpoint = cli.folder / "c.safetensors"
    trained = [*training(cli, 1), *asked, "--checkpoint", checkpoint]
    evaluated = ["eval", "pathnet", "--data", cli.folder / "images", "--checkpoint", checkpoint, "--tune", 0]
    for command in (["run", *words, "--tune", 0], ["simulate", *words], ["profile", *words, "--tune", 0], trained, evaluated):
        plan = cli.result(*command, *asked, "--quiet")["plan"]
        assert (plan["isa"], plan["precision"]) == ("plain", "bfloat16"), (command, plan)
    plain = cli.result("run", *words, "--tune", 0)
    assert (plain["plan"]["isa"], plain["plan"]["precision"]) == (plain["machine"]["isa"], "float32"), plain["plan"]
    assert ", kernels plain, multiplicands bfloat16\n" in cli.run("run", *words, *asked, "--tune", 0, "--quiet").stdout
    cli.bench("memory")
    notes = cli.result("bench", "memory", "lstm", "--size", "small", "--batch", 2, "--unroll", 2, "--isa", "plain")["notes"]
    assert "our kernels: instruction set plain, multiplicands float32" in notes, notes


def test_shared_driver(cli):
    """The simulated driver had a core of its own where executors take all: no note, and at most the time of combining."""
    words = ["simulate", "lstm", "--machine", cli.source / "machines" / "knl-7210.json", "--width", 16]
    told = "the dedicated driver shares a core with an executor, since executors take all 64: combining needs none"
    for executors in (3, 4):
        found = {driver: cli.result(*words, "--executors", executors, "--driver", driver) for driver in ("combining", "dedicated")}
        times = {driver: result["rows"][0]["time_ms"]["median"] for driver, result in found.items()}
        assert told not in found["combining"]["notes"]
        assert (told in found["dedicated"]["notes"]) == (times["dedicated"] > 1.5 * times["combining"]) == (executors == 4), (times, found)
    there = cli.result("info")["machine"]["cores"]
    notes = cli.result("run", "pathnet", "--executors", there, "--width", 1, "--driver", "dedicated", "--tune", 0, "--repeat", 1)["notes"]
    assert there == 1 or any(note.endswith(told.replace("64", str(there))) for note in notes), notes  # perhaps beside another
    study = ["bench", "figure-6", "lstm", "--size", "small", "--machine", words[3], "--cores", 64]
    assert told in cli.result(*study)["notes"]


def test_join(cli):
    """Executors join where it was asked for and they can, in virtual time too; that they cannot went unsaid; a stored plan forgot it."""
    def simulated(*words, cores=4):
        machine = cli.source / "machines" / "knl-7210.json"
        return cli.run("simulate", "pathnet", "--machine", machine, "--cores", cores, "--explain", *words).stdout
    joining, told = "idle executors join", "note: --join on has no effect: "
    text = simulated("--executors", 4, "--width", 1, "--join", "on")
    assert joining in text and told not in text
    file, took = cli.folder / "join-simulated.json", {}
    for join in ("on", "auto", "off", "on"):
        simulated("--executors", 4, "--width", 1, "--join", join, "--json", file)
        ms = json.loads(file.read_text())["rows"][0]["time_ms"]["median"]
        assert took.setdefault(join, ms) == ms, (join, ms, took)
    assert took["on"] < took["off"] == took["auto"], took
    assert joining not in simulated("--executors", 4, "--width", 1) + simulated("--executors", 4, "--width", 1, "--join", "off")
    text = simulated("--executors", 4, "--width", 1, "--driver", "static", "--join", "on")
    assert "critical-path static, joining" in text and told not in text, text
    for words in (("--executors", 1, "--width", 1), ("--executors", 2, "--width", 2), ("--policy", "naive"), ("--policy", "s123")):
        text = simulated(*words, "--join", "on")
        assert joining not in text and told in text and "(no executors that could join)" in text, (words, text)
    for executors, width, can in ((2, 4, False), (4, 2, True)):  # asymmetric teams of 4, 2 and 2 threads, or 4, 2, 1 and 1
        text = simulated("--policy", "asymmetric", "--executors", executors, "--width", width, "--join", "on", cores=8)
        assert (joining in text, told in text) == (can, not can), text
    if cli.cores() > 1:
        plan, words = cli.folder / "join.plan", ["run", "pathnet", "--image", 16, "--batch", 8, "--repeat", 1]
        for join in ("on", "off"):
            file = cli.folder / f"join-{join}.json"
            cli.run(*words, "--executors", 2, "--width", 1, "--join", join, "--json", file)
            row, = json.loads(file.read_text())["rows"]
            assert row["join"] == (join == "on") == (", joining" in cli.run("show", file).stdout), row
        cli.run(*words, "--executors", 2, "--width", 1, "--join", "on", "--save-plan", plan)
        assert json.loads(plan.read_text())["setting"]["join"] == 1
        assert joining in cli.run(*words, "--plan", plan, "--explain").stdout
        assert joining in cli.run(*words, "--plan", plan, "--join", "auto", "--explain").stdout
        cli.run(*words, "--plan", plan, "--join", "off", "--save-plan", plan)
        assert json.loads(plan.read_text())["setting"]["join"] == -1


def test_never_joins(cli):
    """`--join off` switched the search off that it is to keep from joining."""
    def tried(*words):
        rows = cli.result("profile", "pathnet", "--image", 16, "--batch", 8, "--tune", 1, *words)["rows"][1:]
        return len(rows), sum(row["join"] for row in rows), sum(", joining" in row["id"] for row in rows)
    (count, *joining), (others, *none) = tried(), tried("--join", "off")
    assert count > 2 and others > 2 and joining == [cli.cores() > 1] * 2 and none == [0, 0], (count, joining, others, none)


def test_auto(cli):
    """What is left open by `auto` was taken for a setting that is asked for: nothing was searched."""
    plan = cli.folder / "auto.plan"
    left_open = [word for option in ("--join", "--light", "--driver", "--keep-uniform") for word in (option, "auto")]
    def tried(*words):
        cli.run("profile", "pathnet", "--image", 16, "--batch", 8, "--tune", 0.5, *words, "--save-plan", plan)
        return len(json.loads(plan.read_text())["tried"])
    assert tried(*left_open) > 1 and tried("--light", "off") == 1


def test_light(cli):
    """The executor for small operations could be reached from C alone; on a core that is not left it must not go unsaid."""
    def text(cores, *words):
        machine = cli.source / "machines" / "knl-7210.json"
        return cli.run("simulate", "pathnet", "--machine", machine, "--cores", cores, "--executors", 4, "--width", 1, *words).stdout
    def explained(*words):
        return text(*words, "--explain")
    told = "note: --light on has no effect: critical-path on 4 executors x 1 threads has no core, or no use, for a light one"
    assert "4 executors x 1 threads and a light one on 5 cores" in explained(5, "--light", "on")
    assert "4 executors x 1 threads on 5 cores" in explained(5) and "4 executors x 1 threads on 5 cores" in explained(5, "--light", "off")
    assert "15 executors x 1 threads and a light one on 16 cores" in explained(16, "--executors", 15, "--driver", "combining")
    assert "15 executors x 1 threads on 16 cores" in explained(16, "--executors", 15), "a dedicated thread has the core"
    assert "(no core is left for a light one) on 4 cores" in explained(4, "--light", "on")
    assert "and a light one on 16 cores" in explained(16) and "4 executors x 1 threads on 16 cores" in explained(16, "--light", "off")
    assert "(the policy has no light one) on 8 cores" in explained(8, "--light", "on", "--policy", "s123")
    assert told.replace("critical-path", "s123") in text(8, "--light", "on", "--policy", "s123")
    assert told in text(4, "--light", "on") and told not in text(5, "--light", "on") and told not in text(4)
    cores = cli.cores()
    notes = cli.result("run", "pathnet", "--image", 16, "--batch", 8, "--repeat", 1, "--light", "on", "--executors", cores, "--width", 1)["notes"]
    assert any("--light on has no effect" in note for note in notes), notes
    if cores > 1:
        words = ["run", "pathnet", "--image", 16, "--batch", 8, "--repeat", 2, "--no-inline", "--executors", 1, "--width", 1]
        plan = cli.folder / "light.plan"
        cli.run(*words, "--light", "on", "--save-plan", plan)
        assert json.loads(plan.read_text())["setting"]["light"] == 1
        cli.run("run", "pathnet", "--image", 16, "--batch", 8, "--repeat", 1, "--plan", plan, "--light", "off", "--save-plan", plan)
        assert json.loads(plan.read_text())["setting"]["light"] == -1
    cli.run("run", "pathnet", "--light", "some", expect=2)


def test_explained(cli):
    """The choice of every operation: one width printed for all of them, whatever the policy, explains nothing."""
    words = ["pathnet", "--size", "medium", "--explain", "--repeat", 1]
    cores = cli.cores()
    def lines(*more):
        text = cli.run("run", *words, *more).stdout
        assert re.search(r"\d executions under policy", text), text
        found = [line for line in text.split("\n") if re.match(r" +\d+ \S+ '", line)]
        assert len(found) == int(re.search(r"(\d+) operations, \d+ packed", text).group(1))
        assert all("; fastest x" in line or ", inline" in line for line in found)
        return found
    assert all(" us x1 at " in line for line in lines("--executors", cores, "--width", 1))
    if cores > 1:
        assert any("; runs beside " in line for line in lines("--executors", 2, "--width", 1))
        assert not any("; runs beside " in line for line in lines("--policy", "sequential"))
    assert all("; alone, weighed x" in line for line in lines("--policy", "s1", "--keep-uniform", "off") if ", inline" not in line)
    assert all("; alone, its kind's x" in line for line in lines("--policy", "s12", "--keep-uniform", "off") if ", inline" not in line)
    assert all("; weighed x" in line and "; its kind's x" in line for line in lines("--policy", "s1234", "--keep-uniform", "off") if ", inline" not in line)
    text = cli.run("run", "pathnet", "--explain", "--policy", "s123", "--keep-uniform", "off", "--repeat", 20).stdout
    assert re.search(r"^  operations alone: \S+ times as long|^  \S+ beside \S+: \S+ times as long", text, re.M), text
    assert any("; allotted x" in line or "paths end together" in line for line in lines("--policy", "malleable"))


def test_others(cli):
    """A plan tuned beside other processes, or a machine captured so, looked like one of a quiet machine."""
    cli.environment |= USUAL
    words = ["profile", "pathnet", "--image", 16, "--batch", 8, "--tune", 1, "--explain"]
    spin = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    def share():  # of the cores that are busy, in a second
        def read():
            rows = [row.split()[1:] for row in Path("/proc/stat").read_text().split("\n") if re.match(r"cpu\d", row)]
            return sum(int(row[3]) for row in rows), sum(int(n) for row in rows for n in row[:8])
        (idle, all_), _, (idle2, all2) = read(), time.sleep(1), read()
        return 1 - (idle2 - idle) / max(1, all2 - all_)
    try:
        if not Path("/proc/stat").exists() or share() < 0.5:
            return  # a quota, or no counters
        done = cli.run(*words)
        assert re.search(r"^measured while others used \d+ % of the cores$", done.stdout, re.M), done.stdout
        assert re.search(r"graphi: warning: others used \d+ % of the cores while pathnet was measured", done.stderr), done.stderr
        if "inferred statically" not in done.stdout:  # it raced: how sure is the choice?
            assert re.search(r"^chosen in \d+ alternating rounds", done.stdout, re.M), done.stdout
            assert re.search(r"^nobody who was left is likely to be faster by|^not certain: one that was left", done.stdout, re.M), done.stdout
            assert re.search(r" \(\d+ runs\) \d+\.\d{3} \+- \d+\.\d{3} of the chosen one", done.stdout), done.stdout
        assert "warning" not in cli.run(*words, "--quiet").stderr
        done = cli.run("info", "--out", cli.folder / "loaded.json")
        assert re.search(r"graphi: warning: others used \d+ % of the cores while the machine was measured", done.stderr), done.stderr
        found = " ".join(cli.result("info", "--quiet")["notes"])  # a roof that is half the machine's
        assert re.search(r"others used \d+ % of the cores while the machine was measured: its rates may be higher", found), found
    finally:
        for process in spin:
            process.kill()
            process.wait()
    cli.run("simulate", "pathnet", "--machine", cli.folder / "loaded.json")  # a description like any other


def test_disturbed_plans(cli):
    """A plan that was tuned in a disturbed minute was everybody's for ever; one that is disturbed time and again would be tuned
    without end."""
    cli.environment |= USUAL
    train = training(cli, 1)
    del train[train.index("--tune"):train.index("--tune") + 2]
    cli.run(*train)
    file, = (cli.folder / "plans").glob("*.plan")
    cli.run(*train, "--policy", "sequential", "--save-plan", file)  # which a search without policies finds, too
    content = json.loads(file.read_text())
    tuned_so = "the stored plan was tuned while others used 50 % of the cores"
    again = re.compile(tuned_so + r", and is therefore tuned again: ")
    left = re.compile(tuned_so + r" \(`(graphi profile .*)` tunes it again\)")
    def notes(times, *words):
        """As if the plan were one that others disturbed so many times in a row."""
        file.write_text(json.dumps({**content, "others": 0.5, "disturbed": times}))
        told = " ".join(cli.result(*words)["notes"])
        assert bool(again.search(told)) != bool(left.search(told)), told
        kept = json.loads(file.read_text())
        if again.search(told):
            assert kept.get("disturbed", 0) in (0, times + 1) and kept.get("others") != 0.5, kept.get("disturbed")
            assert not any(row["setting"]["policy"] == "malleable" for row in kept["tried"]), "train searched policies"
        else:
            assert (kept["others"], kept["disturbed"]) == (0.5, times) and f"the stored plan was used: {file}" in told
            assert shlex.split(left.search(told).group(1))[:3] == ["graphi", "profile", "pathnet"]
        return bool(again.search(told))
    def quiet():
        return "warning: others used" not in cli.run("info").stderr
    assert not notes(3, *train), "a plan was tuned for ever"
    assert not notes(1, *train, "--executors", 1), "a setting was asked for"
    simulate = ["simulate", "pathnet", "--data", cli.folder / "images", "--image", 16, "--batch", 8]
    assert not notes(1, *simulate), "nothing is measured there"
    tuned = False
    for _ in range(3):
        was_quiet = quiet()
        tuned = notes(1, *train)
        if tuned or not (was_quiet and quiet()):
            break
    else:
        raise AssertionError("a quiet machine left a disturbed plan as it was")
    cli.run("profile", "pathnet", "--data", cli.folder / "images", "--image", 16, "--batch", 8, "--policy", "fifo", "--tune", 0.5)
    asked = json.dumps({**json.loads(file.read_text()), "others": 0.5, "disturbed": 1})
    file.write_text(asked)
    told = " ".join(cli.result(*train)["notes"])
    assert file.read_text() == asked, "a setting that was asked for was searched away"
    assert tuned_so in told and "tunes it again" not in told, told


def test_virtual_time_is_told_once(cli):
    """What --explain said an operation takes was its curve's time: neither what a thread without a core of its own takes, nor what
    it takes beside those who share its memory, nor in pieces; timelines of the same command had these."""
    machine = str(cli.source / "machines" / "xeon-phi-7250.json")
    setting = {"--pin": "off", "--executors": 8, "--width": 8}, {"--join": "on", "--executors": 20, "--width": 1, "--cores": 20}
    for options in setting:
        words = [x for pair in options.items() for x in pair]
        text = cli.run("simulate", "pathnet", "--machine", machine, *words, "--explain", "--timeline", cli.folder / "virtual").stdout
        events = json.loads((cli.folder / "virtual.json").read_text())["traceEvents"]
        lasts = {}
        for e in events:
            if e["ph"] == "X" and not e["args"]["joined"]:
                lasts.setdefault((e["args"]["node"], round(e["ts"], 1)), []).append(e["dur"])
        told = re.findall(r"^ +\d+ \S+ '([^']*)' .*?  ([\d.]+) us x\d+(?: spread)? at ([\d.]+) us, level", text, re.M)
        assert len(told) > 100, text
        for node, took, start in told:
            near = [d for shift in (-0.1, 0, 0.1) for d in lasts.get((node, round(float(start) + shift, 1)), [])]
            assert any(abs(d - float(took)) < 0.2 + 0.001 * d for d in near), (options, node, took, start, near)


def test_pin(cli):
    """Where another process has the cores `on` must say so and end, `auto` go on with a note; both once did the
    latter."""
    words = ["run", "pathnet", "--image", 16, "--batch", 8, "--repeat", 1, "--quiet"]
    cli.run(*words)  # makes the lock file
    file = next(f for f in (Path("/run/lock/graphi/cores"), Path(f"/tmp/graphi-{os.geteuid()}/cores")) if f.exists())
    with open(file, "r+b") as locks:
        for core in os.sched_getaffinity(0):
            for _ in range(200):  # who has it longer has it while this test runs
                try:
                    fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, core)
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                print(f"another process keeps core {core}: not tested")
                return
        for policy in ("critical-path", "sequential"):
            assert "not pinned" in cli.run(*words, "--pin", "on", "--policy", policy, "--width", 1, expect=4).stderr
        checkpoint = cli.folder / "pin.safetensors"
        train = [*training(cli, 2), "--checkpoint", checkpoint]
        evaluation = ["eval", *train[1:train.index("--steps")], "--checkpoint", checkpoint]
        gan = ["train", "dcgan", "--data", cli.folder / "images", "--batch", 4, "--steps", 1, "--tune", 0, "--out", cli.folder / "gan"]
        for these in ([*words, "--pin", "auto"], train, evaluation, gan):
            assert any("not pinned" in note for note in cli.result(*these)["notes"]), these


def test_places(cli):
    """A daemon's home, which is not there, was made; a relative cache (none, says its specification) appeared wherever one stood."""
    words = ["run", "pathnet", "--image", 16, "--batch", 2, "--repeat", 1, "--quiet"]
    before = set(os.listdir(cli.folder))
    for more in {"HOME": str(cli.folder / "nobody")}, {"HOME": "", "XDG_CACHE_HOME": "somewhere"}, {"HOME": str(cli.folder / "nobody" / "a")}:
        env = {"XDG_CACHE_HOME": "", "GRAPHI_PLAN_DIR": "", **more}
        notes = cli.result("profile", "pathnet", "--image", 16, "--batch", 2, "--tune", 0.1, env=env)["notes"]
        assert any("the plan is not kept: GRAPHI_PLAN_DIR, XDG_CACHE_HOME or HOME give no folder" in note for note in notes), notes
        cli.run(*words, env=env)
        assert set(os.listdir(cli.folder)) == before, more
    there = cli.folder / "cache"
    cli.run("profile", "pathnet", "--image", 16, "--batch", 2, "--tune", 0.1, "--quiet", env={"GRAPHI_PLAN_DIR": "", "XDG_CACHE_HOME": str(there)})
    assert list((there / "graphi").glob("*.plan"))


if __name__ == "__main__":
    main(globals())
