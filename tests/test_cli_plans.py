#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans and curves that one command keeps for the next.

usage: test_cli_plans.py --build DIR [--only WORD] [--seed N]"""
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from test_cli import main  # noqa: E402


def test_shared_curves(cli):
    """What one network measured would be measured again for the next, or a file that is not ours believed, or a user's overwritten."""
    small = ["--image", 16, "--policy", "critical-path", "--tune", 30, "--explain"]  # ends early: the setting is given
    folder = cli.folder / "shared"
    env = {"GRAPHI_PLAN_DIR": str(folder)}
    def measured(*words):
        text = cli.run("profile", "pathnet", *small, *words, env=env).stdout
        of = re.search(r"operations measured: (\d+) of (\d+) classes.* (\d+) known before", text)
        assert of, text
        assert text.count("; curve stored") > 0 or not int(of.group(3))
        return tuple(map(int, of.groups()))
    first, classes, known = measured("--batch", 8)
    assert first == classes and known == 0
    assert measured("--batch", 8) == (0, classes, classes), "stored curves were not used"
    assert measured("--batch", 8, "--curves", "none") == (classes, classes, 0)
    stored = next(folder.glob("*.curves"))
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
    assert measured("--batch", 8, "--curves", own) == (classes, classes, 0)
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
    for folder in ("/proc/none", "/proc"):
        found = cli.result(*words, env={"GRAPHI_PLAN_DIR": folder})
        assert any(note.startswith("the plan is not kept: ") for note in found["notes"]), found["notes"]
        assert not found["files"]
    found = cli.result(*words, "--save-plan", cli.folder / "mine.plan")
    assert len(found["files"]) == 2 and all(Path(file).exists() for file in found["files"]), found["files"]


def test_plan_slots(cli):
    """A plan under other compile options took the place of the default one, and the next command measured again."""
    words = ["pathnet", "--image", 16, "--batch", 8]
    special = (["--disable", "fusion"], ["--isa", "plain"], ["--conv-error", 1], ["--streaming"], [])
    for options in special:
        cli.run("profile", *words, "--tune", 0.1, *options)
    assert len(list((cli.folder / "plans").glob("*.plan"))) == len(special)
    for options in (*special, ["--disable", "cse"]):
        notes = " ".join(cli.result("run", *words, "--training", "--repeat", 1, *options)["notes"])
        assert ("the stored plan was used" in notes) == (options in special), (options, notes)


if __name__ == "__main__":
    main(globals())
