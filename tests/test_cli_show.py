#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stored results as people see them again: tables and pictures, whatever the file says.

usage: test_cli_show.py --build DIR [--only WORD] [--seed N]"""
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import main  # noqa: E402


SVG = "{http://www.w3.org/2000/svg}"


def drawn(cli, result):
    """The table of a result, the picture's root and its texts."""
    file = cli.folder / "drawn.json"
    file.write_text(json.dumps(result))
    table = cli.run("show", file).stdout
    cli.run("show", file, "--out", cli.folder / "drawn")
    root = ElementTree.parse(cli.folder / "drawn" / "drawn.svg").getroot()
    return table, root, ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def test_show(cli):
    """Stored results are read again by people: nothing may be lost in the picture, and a file that is none must not end in a crash."""
    result = cli.result("run", "pathnet", "--repeat", 2)
    row = result["rows"][0]
    ids = ["<a> small: fast", "<a> small: slow", "b large: fast", "b large: slow"]
    result["rows"] = [dict(row, id=ids[i], simulated=i == 3, time_ms=dict(row["time_ms"], p25=ms, median=ms, p75=ms), lower_bound_ms=None,
                           ratio=i == 1 and {"against": ids[0], "median": 2, "low": 2, "high": 2} or None)
                      for i, ms in enumerate([1, 2, 1000, 2000])]
    file, picture = cli.folder / "stored.json", cli.folder / "pictures" / "stored.svg"
    file.write_text(json.dumps(result))
    assert f"wrote {picture}" in cli.run("show", file, "--out", picture.parent).stdout
    table = cli.run("show", file).stdout
    assert all(name in table for name in ids), table
    both = subprocess.run([cli.program, "show", file, cli.folder / "none.json"], env=cli.environment, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    assert both.startswith(table) and both[len(table):].startswith("graphi: error: "), f"an error stood in what came before it: {both}"
    root = ElementTree.parse(picture).getroot()
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("fast") == 2 and all(texts.count(once) == 1 for once in ("<a> small", "b large", "slow", "slow (simulated)")), texts
    assert any("2000 ms" in text for text in texts) and any("speed-up 0.500 over fast" in text for text in texts), texts
    bars = [float(node.get("width")) for node in root.iter("{http://www.w3.org/2000/svg}rect") if node.get("height") == "17"]
    assert len(bars) == 4 and bars[0] == bars[2] == bars[1] / 2 == bars[3] / 2, f"each group has its own scale: {bars}"
    assert re.search(r"speed-up \(>1: faster\)", table) and re.search(r"<a> small: slow .* 0\.500 +fast", table), table
    spread = [dict(row, id=f"{ms} ms", time_ms=dict(row["time_ms"], p25=ms, median=ms, p75=ms), lower_bound_ms=None, ratio=None)
              for ms in (0.05, 0.5, 5, 40)]
    for times, logarithmic in ((spread, True), (spread[2:], False)):
        file.write_text(json.dumps({**result, "rows": times}))
        cli.run("show", file, "--out", picture.parent)
        root = ElementTree.parse(picture).getroot()
        texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
        bars = [float(node.get("width")) for node in root.iter("{http://www.w3.org/2000/svg}rect") if node.get("height") == "17"]
        assert ("logarithmic" in texts) == logarithmic and ("0.1 ms" in texts) == logarithmic, texts
        steps = [bars[i + 1] - bars[i] for i in range(len(bars) - 1)]
        assert not logarithmic or bars[0] > 20 and abs(steps[0] - steps[1]) < 0.3, f"as far for each factor of ten: {bars}"
        assert logarithmic or abs(bars[1] / bars[0] - 8) < 0.1, bars
    swept = [dict(row, id=f"b small: {name}", time_ms=ms and dict(row["time_ms"], p25=ms, median=ms, p75=ms), status="ok" if ms else "failed",
                  ratio=None) for name, ms in (("slow", 9), ("none", None), ("fast", 2), *((f"more {i}", 10 + i) for i in range(6)))]
    file.write_text(json.dumps({**result, "experiment": "sweep", "rows": swept}))
    table = cli.run("show", file).stdout
    lines = [line for line in table.splitlines() if line.startswith("b small")]
    assert [line.split()[2] for line in lines[:3]] == ["fast", "slow", "more"] and lines[-1].split()[2] == "none", table
    assert [line.rstrip().endswith("best") for line in lines] == [True] + [False] * 8 and table.count("graphi 0") == 1, table
    judged = [dict(row, id=f"N = 4: {name}", time_ms=None, ratio=None, lower_bound_ms=None, fraction_of_limit=None, accuracy=value,
                   paper_accuracy=paper)
              for name, value, paper in (("good", 0.8, 0.4), ("half", 0.4, None), ("worse than nothing", -3.5, None))]
    file.write_text(json.dumps({**result, "rows": judged}))
    cli.run("show", file, "--out", picture.parent)
    root = ElementTree.parse(picture).getroot()
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    bars = [float(node.get("width")) for node in root.iter("{http://www.w3.org/2000/svg}rect") if node.get("height") == "17"]
    assert any("more is better" in text for text in texts) and "80.0 % (paper 40 %)" in texts and texts.count("the paper") == 1, texts
    assert len(bars) == 3 and bars[0] == 2 * bars[1] > 0 and bars[2] == 0, f"models without times had no bars: {bars}"
    train = {"steps": 4, "epochs": 0, "loss": [8.0, 4.0, 2.0], "value": [0.25, None, 0.75], "metric": "accuracy", "state_sha256": None}
    file.write_text(json.dumps({**result, "train": train}))
    table = cli.run("show", file).stdout
    assert re.search(r"^ +2 +4\.0000 +inf$", table, re.MULTILINE) and "0.7500" in table and "pathnet small bench, units 16, batch 64" in table, table
    assert "arena" in table and "peak MB" in table, table
    for times, told in ((99, False), (100, True)):
        rows = [{**result["rows"][0], "n": times, "time_ms": {"median": 2, "p25": 1, "p75": 3, "p99": 23.25, "min": 1}}]
        file.write_text(json.dumps({**result, "rows": rows}))
        table = cli.run("show", file).stdout
        assert ("p99" in table and "23.250" in table) == told, f"how long the slowest executions took was in the JSON alone: {table}"
    file.write_text(json.dumps({**result, "train": train}))
    cli.run("show", file, "--out", picture.parent)
    lines = [node.get("points").split() for node in ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}polyline")]
    heights = [[float(point.split(",")[1]) for point in line] for line in lines]
    assert len(ElementTree.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}circle")) == 5, "one validation is no line"
    assert [len(line) for line in lines] == [3, 2] and heights[0] == sorted(heights[0]) and heights[1][0] > heights[1][1], lines
    for odd in ({**train, "loss": ["x", None]}, {**train, "value": 3}, "none", {"loss": [1e308, -1e308], "metric": 4}):
        file.write_text(json.dumps({**result, "train": odd, "model": {"name": "m", "size": 3}, "plan": {}}))
        for words in ([], ["--out", picture.parent]):
            assert subprocess.run([cli.program, "show", file, *words], env=cli.environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=60).returncode in (0, 3), odd
    faults = [lambda r: r.update(schema="other/1"), lambda r: r.pop("command"), lambda r: r.pop("rows"), lambda r: r.update(rows=[3]),
              lambda r: r["rows"][0].update(id=None), lambda r: r["rows"][1].update(time_ms=4), lambda r: r.update(machine="x"),
              lambda r: r["rows"][1]["ratio"].pop("against"), lambda r: r.update(notes=[None]), lambda r: r.update(goals=[{}])]
    for fault in faults:
        copy = json.loads(json.dumps(result))
        fault(copy)
        file.write_text(json.dumps(copy))
        cli.run("show", file, expect=3)
    cli.run("show", file, "--json", "-", expect=2)
    (cli.folder / "second").mkdir()
    file.write_text(json.dumps(result))
    (cli.folder / "second" / file.name).write_text(json.dumps(result))
    both = [file, cli.folder / "second" / file.name]  # the second picture would take the place of the first
    cli.run("show", *both)
    assert str(picture) in cli.run("show", *both, "--out", picture.parent, expect=2).stderr
    file.write_text("{")
    cli.run("show", file, expect=3)
    cli.run("show", cli.folder / "none.json", expect=5)
    file.write_text(json.dumps({**result, "rows": []}))
    assert f"{file}: nothing to draw\n" == cli.run("show", file, "--out", "unused").stdout
    assert not (cli.folder / "unused").exists(), "an empty folder was made without a word"


def test_ended_early(cli):
    """What an interrupted experiment had until then looks like all of it."""
    result = cli.result("run", "pathnet", "--repeat", 1)
    for ok in (True, False):
        table, _, texts = drawn(cli, {**result, "ok": ok})
        assert re.search("^ended early: ", table, re.MULTILINE) if not ok else "early" not in table, table
        assert texts[0].endswith("less is better" if ok else "less is better; ended early"), texts[0]


def test_mixed_measures(cli):
    """Under the title of accuracies, of which more is better, bars of times are read the wrong way."""
    result = cli.result("run", "pathnet", "--repeat", 1)
    row = {**result["rows"][0], "ratio": None, "lower_bound_ms": None, "fraction_of_limit": None}
    judged = {**row, "time_ms": None, "accuracy": 0.5}
    ratio = {"against": "g: b", "median": 1.3, "low": 1.3, "high": 1.3}
    rows = [{**judged, "id": "f: a"}, {**row, "id": "g: b"}, {**judged, "id": "g: c"}, {**row, "id": "h: d", "time_ms": None, "ratio": ratio}]
    _, root, texts = drawn(cli, {**result, "rows": rows})
    headings = ["".join(node.itertext()) for node in root.iter(f"{SVG}text") if node.get("font-weight") == "bold"]
    assert headings == ["f: accuracy, more is better", "g: median time, less is better", "g: accuracy, more is better", "h"], headings
    assert "better" not in texts[0] and "speed-up 0.769 over g: b" in texts, texts  # nothing stands before it
    lowest = max(float(node.get("y")) for node in root.iter(f"{SVG}text"))
    assert lowest < float(root.get("height")), "a heading that was not counted pushes the last row out"
    plain = [{**row, "id": "a"}, {**judged, "id": "b"}]
    _, root, texts = drawn(cli, {**result, "rows": plain})
    headings = ["".join(node.itertext()) for node in root.iter(f"{SVG}text") if node.get("font-weight") == "bold"]
    assert headings == ["median time, less is better", "accuracy, more is better"] and "a" in texts and "b" in texts, texts


def test_damaged_training(cli):
    """A loss that is none must not look like the best there is; a range beyond the largest number is still one."""
    result = cli.result("run", "pathnet", "--repeat", 1)
    train = {"steps": 4, "epochs": 0, "loss": ["NaN", None, 1e308, -1e308], "value": [0.5, None, "NaN"], "metric": "accuracy", "state_sha256": None}
    table, root, _ = drawn(cli, {**result, "train": train, "notes": []})
    cells = [line.split() for line in table.split("accuracy\n")[1].splitlines()[:4]]
    assert [cells[0], cells[1], cells[2][2:], cells[3][2:]] == [["1", "-", "0.5000"], ["2", "-", "inf"], ["-"], ["-"]], cells
    points = [point.split(",") for line in root.iter(f"{SVG}polyline") for point in line.get("points").split()]
    heights = [float(y) for _, y in points]
    assert len(heights) == 3 and heights[1] - heights[0] == 200, heights  # nan compares with nothing


def test_damaged_rows(cli):
    """Whatever a file says: no negative or endless bars, no half characters, no number that lost its last digits."""
    result = cli.result("run", "pathnet", "--repeat", 1)
    def row(name, median, **more):
        time = {"median": median, "p25": median, "p75": median, "p99": median, "min": median}
        return {**result["rows"][0], "id": name, "time_ms": time, "lower_bound_ms": None, "ratio": None, **more}
    for times in ([-1, 3], [1e-320, 5e-324], [1e308, -1e308], [0, 0]):
        _, root, _ = drawn(cli, {**result, "rows": [row(str(i), ms, lower_bound_ms=-ms) for i, ms in enumerate(times)]})
        widths = [float(node.get("width")) for node in root.iter(f"{SVG}rect") if node.get("height") == "17"]
        ticks = [float(re.match(r"M(\S+) ", node.get("d")).group(1)) for node in root.iter(f"{SVG}path")]
        assert len(widths) == 2 and all(0 <= width <= 430 for width in widths), (times, widths)
        assert all(330 <= tick <= 760 for tick in ticks[1:]), (times, ticks)  # behind the legend's
    long = ["a" * odd + "\u00e4" * 2000 for odd in (0, 1)]  # one of both is cut within a character, however much room there is
    for text in long:
        table, _, texts = drawn(cli, {**result, "rows": [row(text, 1, reason=text)]})
        assert "\u00e4" * 60 in table and "?" not in table and "\ufffd" not in table, table
    _, _, texts = drawn(cli, {**result, "rows": [row("not\uffff\ufffea\ufffdcharacter", 1)]})
    assert "not??a\ufffdcharacter" in texts, texts  # a picture that no browser opens
    table, *_ = drawn(cli, {**result, "rows": [row("huge", 1e308, ratio={"against": "huge", "median": 1e308, "low": -1e308, "high": 1e308})]})
    assert table.count(f"{1e308:.3f}") >= 3, "digits were lost"
    table, *_ = drawn(cli, {**result, "plan": {}, "model": {"name": "m"}, "rows": [row("a", 1, gain={}, depth="x", backward_executors="x")]})
    assert not re.search(r"arena|operations|0\.00 x|ahead|backward", table), table  # what is not there is not 0


def test_pictures_of_stored_results(cli):
    """A picture that was drawn before its result was measured again shows numbers that are no longer there."""
    stored = cli.source / "docs" / "results"
    for folder in (stored, *(path for path in stored.iterdir() if path.is_dir())):
        drawn = cli.folder / folder.name
        cli.run("show", *sorted(folder.glob("*.json")), "--out", drawn)
        kept = [path for path in sorted(drawn.glob("*.svg")) if (folder / path.name).exists()]
        differ = [path.name for path in kept if (folder / path.name).read_bytes() != path.read_bytes()]
        assert not differ, f"{folder}: found {', '.join(differ)} of another result, expected what graphi show --out {folder} draws"
        assert kept or folder != stored, f"found no picture in {folder}, expected one beside most results"


if __name__ == "__main__":
    main(globals())
