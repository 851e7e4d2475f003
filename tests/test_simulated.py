#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machines that are not at hand, as users meet them: `graphi simulate --machine` and the studies of `graphi bench`.

usage: test_simulated.py --build DIR [--only WORD]"""
import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import main  # noqa: E402


def test_described_machine(cli):
    """What a described machine takes must not depend on what this one has measured or how many cores it has, and a plan
    for it is its own: else a figure cannot be repeated, and options of the study fail on the machine at hand."""
    env = {"GRAPHI_PLAN_DIR": str(cli.folder / "described")}
    machine, small = cli.source / "machines" / "xeon-phi-7250.json", ["--image", 16, "--batch", 8]
    words, there = ["pathnet", *small], ["--machine", machine]

    def simulate(*more, **options):
        result = cli.result("simulate", *words, *there, *more, env={**env, **options})
        return result["rows"][0], " ".join(result["notes"])

    def ms(*more, **options):
        return simulate(*more, **options)[0]["time_ms"]["median"]

    row, notes = simulate()
    assert "durations are estimated" in notes and not (cli.folder / "described").exists(), "a simulation wrote a cache"
    cli.run("profile", *words, "--tune", 0.1, env=env)
    kept = sorted(path.name for path in (cli.folder / "described").iterdir())
    cores = str(cli.cores() + 6)
    for more, options in ([], {}), ([], {}), ([], {"GRAPHI_NUM_THREADS": cores}), (["--cores", 68], {}), (["--tune", 0], {}):
        assert ms(*more, **options) == row["time_ms"]["median"], "a simulation depends on what this machine has measured"
    assert sorted(path.name for path in (cli.folder / "described").iterdir()) == kept, "a simulation wrote into the cache"

    limited = cli.result("simulate", *words, *there, "--cores", 5, env=env)
    assert limited["machine"]["cores"] == 5 and limited["rows"][0]["executors"] * limited["rows"][0]["width"] <= 5
    assert "xeon-phi-7250: found 69 cores asked for, expected 1 to 68" in cli.run("simulate", *words, *there, "--cores", 69, expect=3).stderr
    one, _ = simulate("--executors", 1, "--width", 1)  # and one for small operations
    assert 0 < one["utilization"] < 2 / 68 and  row["utilization"] <= 1, one["utilization"]

    plan = cli.folder / "there.plan"
    asked, _ = simulate("--executors", 8, "--width", 8, "--save-plan", plan)
    setting = json.loads(plan.read_text())["setting"]
    assert (setting["executors"], setting["width"]) == (8, 8), setting
    again, notes = simulate("--plan", plan)
    assert (again["executors"], again["width"], again["time_ms"]["median"]) == (8, 8, asked["time_ms"]["median"]) and "stored plan" in notes
    assert ms("--plan", plan, "--executors", 2, "--width", 34) == ms("--executors", 2, "--width", 34)
    for other in ["--machine", cli.source / "machines" / "knl-7210.json"], [*there, "--cores", 67], []:
        cli.run("simulate", *words, *other, "--plan", plan, expect=7)

    text = cli.run("simulate", *words, *there, "--explain", env=env).stdout
    head = f"on simulated machine {cli.result('simulate', *words, *there)['machine']['hash']} (xeon-phi-7250, 68 cores), instruction set avx512"
    assert head in text and "durations simulated, estimated from the rates of xeon-phi-7250" in text, text[:500]
    text = cli.run("simulate", *words, *there, "--tune", 0.1, "--save-plan", plan, "--explain", env=env).stdout
    assert "durations simulated, scaled from measurements on " in text and "durations are scaled from measurements on this machine" in text
    assert "(xeon-phi-7250, 68 cores)" in text and " on 68 cores, policy critical-path" in text
    tuned, notes = simulate("--plan", plan)
    assert "scaled from stored measurements" in notes and tuned["time_ms"]["median"] != row["time_ms"]["median"]
    assert sorted(path.name for path in (cli.folder / "described").iterdir()) == kept, "curves that are scaled from here became everybody's"
    assert any(68 in curve["width"] for curve in json.loads(plan.read_text())["curves"]), "shares were not extended to 68 cores"
    for tune in ([], ["--tune", 20]):
        begin = time.monotonic()
        cli.run("simulate", "pathnet", "--machine", cli.folder / "missing.json", *tune, expect=5)
        assert time.monotonic() - begin < 5, "a missing file was noticed after measuring"
    cli.run("simulate", *words, "--timeline", "", expect=2)
    assert not (cli.folder / ".html").exists()


def test_bad_curves(cli):
    """A file of curves that is wrong in one place: the message has to say which curve and key, what is there and what should be."""
    machine = ["--machine", cli.source / "machines" / "knl-7210.json"]
    words, file = ["simulate", "pathnet", "--image", 16, "--batch", 8, *machine], cli.folder / "some.curves"
    cli.run(*words, "--tune", 0.1, "--curves", file)
    whole = json.loads(file.read_text())
    for key, value, message in (
            ("ns", [-1], 'key "ns": found a list of 1, expected a list of '),
            ("ns", None, 'key "ns": found null, expected a list of '),
            ("ns", [-1.0] * len(whole["curves"][1]["width"]), 'key "ns": found -1.0, expected durations from 1 to 1e14 ns'),
            ("ns", [0] * len(whole["curves"][1]["width"]), 'key "ns": found 0, expected durations from 1 to 1e14 ns'),
            ("spread_ns", [0.5] * len(whole["curves"][1]["width"]), 'key "spread_ns": found 0.5, expected durations from 1 to 1e14 ns, 0 where'),
            ("width", [2], 'key "ns": found a list of '),
            ("width", [], 'key "width": found a list of 0, expected a list of 1 to 72 widths'),
            ("interval", -1, 'key "interval": found -1, expected an integer from 0 to 65536'),
            ("beside", 1e9, 'key "beside": found 1000000000.0, expected 0 or a factor from 0.8 to 4'),
            ("moved", ["x", 1], 'key "moved": found "x", expected 0 or a factor from 0.8 to 16'),
            ("moved", 7, 'key "moved": found 7, expected a list of 2 factors'),
            ("moved", [1], 'key "moved": found a list of 1, expected a list of 2 factors'),
            ("key", "zz", 'key "key": found "zz", expected 16 hexadecimal digits'),
            ("source", "guessed", 'key "source": found "guessed", expected modelled, measured')):
        entry = {**whole["curves"][1], key: value}
        file.write_text(json.dumps({**whole, "curves": [whole["curves"][0], entry]}))
        errors = cli.run(*words, "--curves", file, expect=3).stderr
        assert f"some.curves: curves[1]: {message}" in errors, errors


def test_one_file_for_two(cli):
    """One name for two files: the one written last would take the other's place, and a result a plan's or a description's."""
    words, folder = ["simulate", "pathnet", "--image", 16, "--batch", 8], cli.folder
    copy, plan = folder / "copy.json", folder / "twice.plan"
    copy.write_text((cli.source / "machines" / "knl-7210.json").read_text())
    there = [*words, "--machine", copy]
    link = folder / "link.json"
    link.symlink_to(copy)
    for more in (["--json", copy], ["--json", f"{folder}/./copy.json"], ["--json", link], ["--timeline", folder / "copy"],
                 ["--save-plan", copy], ["--json", plan, "--save-plan", plan],
                 ["--json", folder / "t.html", "--timeline", folder / "t"], ["--curves", plan, "--save-plan", plan, "--tune", 0.1]):
        errors = cli.run(*there, *more, expect=2).stderr
        assert "expected another file than that of --" in errors and not plan.exists() and "graphi-machine" in copy.read_text(), errors
    text = folder / "text.txt"
    text.write_text("what is read")
    for more in (["inspect", "pathnet", "--out", plan, "--json", plan], ["train", "lstm", "--data", text, "--json", text]):
        errors = cli.run(*more, expect=2).stderr
        assert "expected another file than that of --" in errors and not plan.exists() and text.read_text() == "what is read", errors
    cli.run(*there, "--save-plan", plan)
    cli.run(*there, "--plan", plan, "--save-plan", plan)
    cli.run(*there, "--json", "/dev/null", "--save-plan", "/dev/null")


def test_studies(cli):
    """On a machine with few cores a study must not stop with a setting that nobody typed, call a row what it is not, or give
    a paper's ratio against a simulated row; --cores is about the described machine."""
    cli.bench("table_1")
    machine = ["--machine", cli.source / "machines" / "xeon-phi-7250.json", "--cores", 4]

    def study(*words, expect=0, more=[*machine, "--size", "small"]):
        result = cli.result("bench", *words, *more, "--quiet", expect=expect, env={"GRAPHI_NUM_THREADS": "4096"})
        rows = {row["id"]: row for row in result["rows"]}
        for name, row in rows.items():
            against = (row["ratio"] or {}).get("against", "")
            assert (", paper" in name) == (", paper" in against) or not against, f"{name} is compared with {against}"
            if row["simulated"]:
                assert (row["executors"] or 1) * (row["width"] or 1) <= result["machine"]["cores"], row
        return result, rows

    for words in ["table-2"], ["table-1", "resnet50"], ["table-2", "--tune", 0]:  # every width is estimated alike
        told = cli.run("bench", *words, "--interval", 4, expect=2).stderr
        assert "--interval: found 'nothing to measure', expected --tune SECONDS" in told, told
    result, rows = study("table-3", more=machine)
    assert result["machine"]["cores"] == 4 and {"two gradients: serial 4", "two gradients: co-run 2+2"} <= rows.keys(), rows.keys()
    assert "one thread a core" in rows["two gradients: co-run 4+4"]["reason"]
    rows = study("table-3", more=["--machine", cli.source / "machines" / "xeon-phi-7250-smt.json", "--cores", 4])[1]
    assert "alone on sibling threads" in rows["two gradients: co-run 4+4"]["reason"], rows
    rows = study("table-6", "ptb")[1]
    assert any(name.endswith(" 4 threads") for name in rows) and not any(r["simulated"] and "68" in n for n, r in rows.items())
    for words in (["table-1", "resnet50"], ["table-graphi", "lstm"], ["figure-6", "lstm"], ["wavefront", "--quick"], ["figure-2"]):
        rows = study(*words, more=machine if words == ["figure-2"] else [*machine, "--size", "small"])[1]
        assert any(row["status"] == "missing" and "more threads" in row["reason"] for row in rows.values()), words
    rows = study("figure-1", more=machine)[1]
    assert rows["Conv2D, paper: 45 threads"]["ratio"]["against"] == "Conv2D, paper: 68 threads"
    rows = study("search", "ptb", "--quick", more=[*machine[:2], "--cores", 1, "--size", "small"])[1]  # nothing to search for
    assert len({round(row["time_ms"]["median"], 6) for row in rows.values()}) == 1, rows
    papers = study("figure-3", "dcgan", more=[])
    ours = study("figure-3", "dcgan", "--disable", "none", more=[])
    assert "--disable none" in " ".join(papers[0]["notes"]) and "--disable" not in " ".join(ours[0]["notes"])
    one = "dcgan medium: 1x68"  # the paper's operations are smaller and more
    assert papers[1][one]["time_ms"]["median"] > 1.1 * ours[1][one]["time_ms"]["median"], (papers[1][one], ours[1][one])
    rows = study("figure-3", "ptb")[1]
    assert "ptb small: 1x4" in rows and "ptb small, paper: manual optimization" in rows, rows.keys()
    assert rows["ptb small, paper: s1234"]["ratio"]["median"] == 1 and "ptb small, paper: all strategies" not in rows
    study("wavefront", "--out", "order", "--timeline", "order", more=["--size", "small", "--quick"])
    assert "simulated" in (cli.folder / "order" / "wavefront-order.svg").read_text()
    assert "(simulated)</title>" in (cli.folder / "order.html").read_text()
    events = json.loads((cli.folder / "order.json").read_text())["traceEvents"]
    assert events[0]["args"]["name"].endswith("(simulated)")
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names[9] == "executor 1.1 (simulated)" and names[64] == "light executor (simulated)", names
    cli.run("simulate", "pathnet", *machine[:2], "--executors", 6, "--width", 3, "--policy", "sequential", "--timeline", "one")
    alone = json.loads((cli.folder / "one.json").read_text())["traceEvents"]
    names_alone = {event["tid"]: event["args"]["name"] for event in alone if event["name"] == "thread_name"}
    assert names_alone[17] == "executor 0.17 (simulated)", names_alone
    for event in events:  # a lane of one executor has operations of its own alone
        if event["ph"] == "X" and event["tid"] < 64:
            assert event["args"]["leader"] // 8 == event["tid"] // 8, event


def test_siblings_are_named(cli):
    """What strategy 4 runs on a core's other hardware thread looked like a core in timelines, and in explanations like nothing."""
    words = ["dcgan", "--machine", "xeon-phi-7250-papers", "--disable", "fusion,epilogue", "--executors", 68, "--width", 1]
    for policy, siblings in ("s1234", True), ("s123", False):
        text = cli.run("simulate", *words, "--policy", policy, "--explain", "--timeline", policy).stdout
        events = json.loads((cli.folder / f"{policy}.json").read_text())["traceEvents"]
        lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        on = sorted(event["args"]["leader"] for event in events if event["ph"] == "X" and event["args"]["leader"] >= 68)
        told = sorted(int(core) for core in re.findall(r" on a sibling of core (\d+)", text))
        assert bool(on) == siblings and told == [leader - 68 for leader in on], (policy, on, told)
        assert all(lanes[leader] == f"sibling of core {leader - 68} (simulated)" for leader in on) and lanes[67] == "worker 67 (simulated)", lanes


def test_table_1(cli):
    """A training step of DCGAN is one update of the discriminator and two of the generator: its rows were of the first alone,
    and nothing said so."""
    cli.bench("table_1")
    result = cli.result("bench", "table-1", "dcgan", "--quiet")
    assert "dcgan: the discriminator's update alone" in " ".join(result["notes"]), result["notes"]
    ms = {row["id"]: row["time_ms"]["median"] for row in result["rows"] if row["simulated"]}
    for setting in "inter 1 intra 34", "inter 1 intra 68", "inter 2 intra 34":
        discriminator, generator, step = (ms[f"dcgan{of} medium: {setting}"] for of in ("", " generator", " step"))
        assert abs(step - discriminator - 2 * generator) < 1e-6 * step, (setting, ms)
    result = cli.result("bench", "table-1", "dcgan", "--role", "generator", "--quiet")
    assert not any("discriminator" in note for note in result["notes"]) and not any("step" in row["id"] for row in result["rows"])


def test_table_6(cli):
    """Rows of strategy 2 were of the width of another operation of the kind, and of neighbours alone, not of what s12 runs."""
    cli.bench("table_6")
    words = ["inception-v3", "--size", "small", "--disable", "none", "--machine", cli.source / "machines" / "xeon-phi-7250.json"]
    rows = {row["id"]: row for row in cli.result("bench", "table-6", *words, "--quiet")["rows"]}
    cli.run("simulate", *words, "--policy", "s12", "--executors", 68, "--width", 1, "--timeline", "s12")
    spent = {}
    for event in json.loads((cli.folder / "s12.json").read_text())["traceEvents"]:
        if event["ph"] == "X" and event["args"].get("leader") == event["tid"]:
            spent.setdefault(event["name"], []).append((event["dur"] / 1e3, event["args"]["width"]))
    judged = 0
    for name, row in rows.items():
        kind = name.removesuffix(" s12").split(": ")[-1]
        if name.endswith(" s12") and kind in spent and row["simulated"]:
            assert {width for _, width in spent[kind]} == {row["width"]}, (kind, row["width"], spent[kind])
            assert abs(sum(ms for ms, _ in spent[kind]) / row["time_ms"]["median"] - 1) < 0.01, (kind, row["time_ms"], spent[kind])
            judged += 1
    assert judged == 5, (rows.keys(), spent.keys())


def test_hill_climb(cli):
    """A curve has room for 72 widths: on a thousand cores a climb at x = 16 was one at x = 22, and one without any width
    between those that it measured was 100 % accurate."""
    cli.bench("hill_climb")
    for name, cores in (("synthetic-1024.json", 1024), ("synthetic-1024.json", 300), ("xeon-phi-7250.json", 68), ("xeon-phi-7250.json", 2)):
        words = ["lstm", "--quick", "--machine", cli.source / "machines" / name, "--cores", cores, "--quiet"]
        rows = cli.result("bench", "hill-climb", *words)["rows"]
        judged = [int(row["id"].split(" = ")[1]) for row in rows if row["status"] == "ok"]
        assert judged == {1024: [], 300: [8, 16], 68: [2, 4, 8, 16], 2: []}[cores], (cores, rows)
        assert all(row["accuracy"] < 1 for row in rows if row["status"] == "ok"), rows
        assert all(row["accuracy"] != row["accuracy_to_stop"] for row in rows if row["status"] == "ok"), rows  # the paper's is of all
        assert all("interval" in row["reason"] or "measured" in row["reason"] for row in rows if row["status"] != "ok"), rows


def test_figure_4(cli):
    """The average in the picture was of another line than the one drawn: an operation that ends counts once as running; and
    with more than six side by side a line left the picture."""
    cli.bench("figure_4")
    result = cli.result("bench", "figure-4", "dcgan", "--size", "small", "--out", "figure", "--quiet")
    picture = (cli.folder / "figure" / "figure-4-dcgan.svg").read_text()
    told = re.search(r": ([0-9.]+) operations side by side with strategy 3, ([0-9.]+) with 4", " ".join(result["notes"]))
    averages = {"s123": float(told[1]), "s1234": float(told[2])}
    scale = float(re.search(r"text-anchor='end'>([0-9.]+)<", picture)[1])
    lines = re.findall(r"points='(.*?)'", picture)
    for line, (policy, average) in zip(lines, re.findall(r">(s[0-9]*), average ([0-9.]*)<", picture), strict=True):
        heights = [float(point.split(",")[1]) for point in line.split()]
        mean = sum(scale * (300 - y) / 270 for y in heights) / len(heights)
        assert len(heights) < 6000 and min(heights) >= 30 and abs(mean - averages[policy]) < 0.02 and abs(mean - float(average)) < 0.02, (policy, mean, averages, average)


if __name__ == "__main__":
    main(globals())
