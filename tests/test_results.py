#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/results.py: what readers of docs/results see of a result, and that a file which is none says so."""
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent.parent / "tools" / "results.py"
WRITTEN = ("measured.md", "reasons.md", "simulated.md")  # pages of docs/results that people write
sys.path.insert(0, str(PROGRAM.parent))
import results  # noqa: E402
import schema  # noqa: E402

EMPTY = ["engine_version", "policy", "driver", "executors", "width", "n", "time_ms", "ratio", "gflops", "gbs", "fraction_of_limit",
         "peak_rss_bytes", "lower_bound_ms", "predicted_ms", "load_ms", "overhead_ns_per_op"]


def row(name, engine, **given):
    return {**dict.fromkeys(EMPTY), "id": name, "engine": engine, "simulated": False, "status": "ok", "reason": "", **given}


def result(command, **given):
    return {"schema": "graphi-result/1", "command": "bench", "experiment": None, "argv": ["sweep", *command.split()], "ok": True,
            "graphi": {"version": "9.8.7", "commit": "abc1234"}, "machine": None, "model": None, "rows": [], "train": None, "plan": None,
            "goals": [], "files": [], "notes": [], **given}


MACHINE = {"cpu": "a CPU", "cores": 2, "quota": None, "isa": "avx2", "roof_gflops": None, "bandwidth_gbs": 12.34, "hash": "0"}
TIMES = {"median": 1.5, "p25": 1, "p75": 2, "p99": 3, "min": 1}
RATIO = {"against": "only", "median": 0.5, "low": 0.5, "high": 0.5}
FIRST = result("bench kernels --quick", machine=MACHINE, notes=["a note"],
               rows=[row("one | two", "graphi", engine_version="9.8.7", time_ms=TIMES, gflops=100.04, fraction_of_limit=0.5, load_ms=7.25, peak_rss_bytes=3.4e7,
                         gain={"against": "three", "total": 2, "kernels": 2.5, "interference": 1, "scheduling": 0.8},
                         ratio={"against": "three", "median": 0.5, "low": 0.25, "high": 0.75}),
                     row("one | two naive", "graphi", ratio={"against": "one | two", "median": 0.8, "low": 0.8, "high": 0.8}),
                     row("one | two sequential", "graphi", ratio={"against": "one | two", "median": 0.8, "low": 0.8, "high": 0.8}),
                     row("three", "peer", engine_version="1 NO_AVX", status="missing", reason="not\nthere")],
               goals=[{"name": "speed", "value": 1, "goal": 2, "met": False}, {"name": "size", "value": 1, "goal": 1, "met": True}])
SECOND = result("bench table-2 --quiet --out out", files=["out/second-a.svg", "out/second.svg", "out/second-b.svg"],
                rows=[row("only", "graphi", simulated=True, ratio=RATIO)])
LONG = result("bench long", rows=[row(f"row {i}", "graphi") for i in range(41)])
README = """| result | goals met | command |
|---|---|---|
| [first](first.md) | 1 of 2 | `graphi bench kernels --quick` |
| [second](second.md) |  | `graphi bench table-2` |
"""
PAGES = {"first.md": """# first

`graphi bench kernels --quick`, version 9.8.7, commit abc1234; a CPU, 2 cores, avx2, memory 12.3 GB/s

[All results](README.md)

- speed: 1 against 2: **missed**
- size: 1 against 1: met

![first](first.svg)

| what | engine | ms (median) | speed-up [quartiles] | GFLOP/s | of limit | first ms | peak MB | kernels × no interference × scheduling |  |
|---|---|---|---|---|---|---|---|---|---|
| one / two | graphi 9.8.7 | 1.500 | 2.000 [1.333, 4.000] | 100.0 | 50.0 % | 7.2 | 34.0 | 2.50 × 1.00 × 0.80 |  |
| one / two naive | graphi |  | 1.250 |  |  |  |  |  |  |
| one / two sequential | graphi |  | 1.250 |  |  |  |  |  |  |
| three | peer 1 |  |  |  |  |  |  |  | missing: not there |

- note: a note
""", "second.md": """# second

`graphi bench table-2 --quiet --out out`, version 9.8.7, commit abc1234

[All results](README.md)

![second](second.svg)

![second-a](second-a.svg)

| what | engine | speed-up [quartiles] |
|---|---|---|
| only (simulated) | graphi | 2.000 |
"""}


def run(folder):
    return subprocess.run([sys.executable, PROGRAM, folder], capture_output=True, text=True)


def misplaced(path, argv):
    """A stored command that does not write the file that it is stored in: it was edited, or the file copied."""
    folder = "docs/results" + ("" if path.parent.name == "results" else f"/{path.parent.name}")
    places = {"--json": f"{folder}/{path.name}", "--out": folder}
    told = {option: word for option, word in zip(argv, argv[1:]) if option in places}
    return [f"{path.name}: found {option} {word}, expected {places[option]}" for option, word in told.items() if word != places[option]] + \
        ([] if told else [f"{path.name}: found neither --json nor --out, expected one"])


def unexplained(stored, page):
    """Goals that results in this folder and its folders miss, and that the last table of reasons.md does not have as they are; and
    rows of it that no result misses."""
    table = page.split("\n## Every missed goal\n")[-1]
    rows = [line.rsplit("|", 2)[0] for line in table.splitlines() if line.startswith("| [") and "](#" in line.rsplit("|", 2)[1]]
    missed = []
    for path in sorted(stored.rglob("*.json")):
        name = path.relative_to(stored).with_suffix("")
        missed += [f"| [{name}]({name}.md) | {goal['name']} | {goal['value']:.4g} | {goal['goal']:.4g} "
                   for goal in json.loads(path.read_text())["goals"] if not goal["met"]]
    return [f"found no {row}| with a link to its reason, expected one" for row in missed if row not in rows] + \
        [f"found {row}|, which no result misses" for row in rows if row not in missed]


def check_schema(folder):
    """A file that is missing, or no JSON, is a line as any other problem is, and keeps nobody from the files behind it."""
    (folder / "text").write_text("none")
    (folder / "list").write_text("[1]")
    done = subprocess.run([sys.executable, schema.__file__, "missing", "text", "list"], cwd=folder, capture_output=True, text=True, timeout=60)
    told = [line.split(" (")[0] for line in done.stdout.splitlines()]
    assert told == ["missing: found no readable file", "text: found no JSON", "list: result: found [1], expected an object"], done.stdout
    assert done.returncode == 1 and not done.stderr, done.stderr


def main():
    with tempfile.TemporaryDirectory(prefix="graphi-results-") as name:
        folder, readme = Path(name), Path(name) / "README.md"
        check_schema(folder)
        done = run(folder)
        assert done.returncode == 1 and "found no *.json" in done.stderr and not readme.exists(), done.stderr
        (folder / "first.json").write_text(json.dumps(FIRST))
        (folder / "first.svg").write_text("a picture beside a result is shown")
        (folder / "second.json").write_text(json.dumps(SECOND))
        for name in ("second.svg", "second-a.svg"):  # once each; of the others that a result lists nothing was kept
            (folder / name).write_text("<svg/>")
        done = run(folder)
        assert done.returncode == 0 and not done.stderr, done.stderr
        def pages():
            return {path.name: path.read_text() for path in folder.glob("*.md")}

        stood = pages()
        assert stood["README.md"].startswith("# Results\n") and stood["README.md"].endswith("\n\n" + README), stood["README.md"]
        assert {**stood, "README.md": ""} == {**PAGES, "README.md": ""}, stood
        # A missed goal without a reason; a reason whose result was measured again.
        reason = "| [first](first.md) | speed | 1 | 2 | [why](#speed) |\n"
        assert not unexplained(folder, "\n## Every missed goal\n" + reason)
        for page in "", reason.replace("(#speed)", ""), reason.replace("| 1 |", "| 1.5 |"):
            assert "| speed | 1 | 2 |" in unexplained(folder, page)[0], page
        assert "| speed | 1.5 | 2 |" in unexplained(folder, reason + reason.replace("| 1 |", "| 1.5 |"))[0]
        # What was interrupted says so, in the contents too.
        (folder / "stopped.json").write_text(json.dumps({**SECOND, "ok": False}))
        run(folder)
        assert "| [stopped](stopped.md) | ended early |" in readme.read_text() and "**Ended early**" in pages()["stopped.md"]
        # A long table is folded.
        (folder / "long.json").write_text(json.dumps(LONG))
        run(folder)
        assert "<details><summary>41 rows</summary>\n\n| what" in pages()["long.md"] and "| row 40 |" in pages()["long.md"]
        # What a training told, one line each time.
        train = {"steps": 9, "epochs": 3, "loss": [2.5, 1.25, 1], "metric": "accuracy", "value": [0.5, None, 0.625], "state_sha256": None}
        (folder / "train.json").write_text(json.dumps({**SECOND, "train": train}))
        run(folder)
        told = "| | loss | accuracy |\n|---|---|---|\n| 1 | 2.5000 | 50.0 % |\n| 2 | 1.2500 |  |\n| 3 | 1.0000 | 62.5 % |\n\n| what"
        assert told in pages()["train.md"], pages()["train.md"]
        (folder / "train.json").write_text(json.dumps({**SECOND, "train": {**train, "metric": "perplexity"}}))
        run(folder)
        assert "| 3 | 1.0000 | 0.625 |" in pages()["train.md"], pages()["train.md"]
        for name in ("stopped", "long", "train"):
            (folder / f"{name}.json").unlink()
            (folder / f"{name}.md").unlink()
        run(folder)
        # A malformed file: one line that names it and the place, and the pages as they were.
        faults = {"{\"schema\": ": "found no JSON", "[]": "expected an object", json.dumps({**SECOND, "rows": [{}]}): "rows[0]: found no id",
                  json.dumps({**SECOND, "schema": "other/1"}): "result.schema: found 'other/1'",
                  json.dumps({**SECOND, "rows": 2 * SECOND["rows"]}): "row only: found it twice, expected unique ids",
                  json.dumps({**SECOND, "rows": [row("a", "graphi", ratio={**RATIO, "against": "b"})]}): "found ratio against 'b'",
                  json.dumps({**SECOND, "rows": [row("a", "graphi", new=1)]}): "row a: found key new"}
        for content, expected in faults.items():
            (folder / "third.json").write_text(content)
            done = run(folder)
            assert done.returncode == 1 and pages() == stood, content
            assert expected in done.stderr and "third.json" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    # Rows that another row stands against by its id: the measurements of peers, say, had the id of ours.
    twice = {**SECOND, "rows": 2 * SECOND["rows"]}
    assert [line for line in schema.more_problems(twice) if "twice" in line] == ["row only: found it twice, expected unique ids"]
    assert not schema.more_problems(FIRST) and not schema.more_problems(SECOND)
    # A gain of medians that are no pairs does not follow from the rows beside it.
    for key in ("total", "kernels", "interference", "scheduling"):
        first = copy.deepcopy(FIRST)
        first["rows"][0]["gain"][key] *= 1.01
        assert f"gain.{key}: found" in schema.more_problems(first)[0], key
    first = copy.deepcopy(FIRST)
    del first["rows"][1]
    assert "'one | two naive'" in schema.more_problems(first)[0], schema.more_problems(first)
    page = (PROGRAM.parent.parent / "docs" / "results-schema.md").read_text()
    untold = [key for key in (*schema.RESULT, *schema.ROW, *schema.SOMETIMES) if f"`{key}`" not in page and f"`{key}[]`" not in page]
    assert not untold, f"docs/results-schema.md: found nothing on {untold}, expected every key"
    # What is stored has the form, its pages are of these files, and no page is left of one that went.
    stored = PROGRAM.parent.parent / "docs" / "results"
    for folder in (stored, *results.machines(stored)):
        rendered = results.render(folder, machine=folder != stored)
        found = {path.name: path.read_text() for path in folder.glob("*.md") if path.name not in WRITTEN}
        differ = sorted(name for name in {*found, *rendered} if found.get(name) != rendered.get(name))
        assert not differ, f"{folder}: found {', '.join(differ)} of other files, expected what python3 tools/results.py writes"
    for argv, wrong in (["--out", "DIR", "--json", "DIRs.json"], 2), (["--quiet"], 1), (["--json", "docs/results/b.json"], 1):
        assert len(misplaced(Path("results/a.json"), argv)) == wrong, argv
    assert not misplaced(Path("results/zen/a.json"), ["--out", "docs/results/zen"])
    wrong = [line for path in sorted(stored.rglob("*.json")) for line in misplaced(path, json.loads(path.read_text())["argv"])]
    assert not wrong, "\n".join(wrong)
    missing = unexplained(stored, (stored / "reasons.md").read_text())
    assert not missing, "docs/results/reasons.md: " + "\n".join(missing)
    print(f"rendered as expected, {len(faults)} malformed files named, planted gains found, docs/results as stored")


if __name__ == "__main__":
    main()
