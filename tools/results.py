#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders each FOLDER/NAME.json as FOLDER/NAME.md, with a list of them in FOLDER/README.md: python3 tools/results.py [FOLDER],
docs/results by default. Folders in it, docs/results/MACHINE, are rendered alike: results of other machines. A file that is no result
(docs/results-schema.md) stops it with a line that names file and place, and the old pages stay. Pictures that lie beside (graphi show FOLDER/*.json --out FOLDER) are shown."""
import json
import shlex
import sys
from pathlib import Path

import schema

ROOT = Path(__file__).resolve().parent.parent
HEADS = ["what", "engine", "ms (median)", "speed-up [quartiles]", "GFLOP/s", "GB/s", "of limit", "first ms", "peak MB",
         "kernels × no interference × scheduling", "predicted ms", "error", "accuracy", "R²", "gap", ""]
INTRODUCTION = """# Results
What was measured, and the command that measures it. [measured.md]({results}measured.md) sums it up by question, [reasons.md]({results}reasons.md) tells
why goals are missed, [simulated.md]({results}simulated.md) how simulations compare with the papers, [benchmarks.md]({docs}benchmarks.md) what each
experiment is.

- Each page is made by `python3 tools/results.py` from the JSON file of its name, which its command wrote (`--out docs/results{of}` or `--json`).
- The machine is shared: times are medians of alternating runs, speed-ups have quartiles.
- A speed-up above 1 means less time than the row it is compared with (the JSON has `ratio`, time over time).
- What the columns say: [results-schema.md]({docs}results-schema.md).
"""
FOLDED = 40  # a longer table is opened by a click


def number(value, form):
    return "" if value is None else form % value


def quartiles(ratio):
    """Nothing for a single pair: a simulated ratio, or a paper's."""
    return f" [{1 / ratio['high']:.3f}, {1 / ratio['low']:.3f}]" if 0 < ratio["low"] < ratio["high"] else ""


def pictures(name, root, folder):
    """The bars, and what the experiment drew itself, as far as they were stored."""
    names = [f"{name}.svg"] + [Path(file).name for file in root["files"] if file.endswith(".svg")]
    return [line for file in dict.fromkeys(names) if (folder / file).exists() for line in (f"![{Path(file).stem}]({file})", "")]


def accuracy(r):
    """Of a performance model, with what a paper reports."""
    own, paper = r.get("accuracy"), r.get("paper_accuracy")
    return number(None if own is None else 100 * own, "%.1f %%") + number(None if paper is None else 100 * paper, " (paper %.1f)")


def row(r):
    time, ratio, limit, peak, gain = r["time_ms"] or {}, r["ratio"], r["fraction_of_limit"], r["peak_rss_bytes"], r.get("gain")
    cells = [r["id"] + (" (simulated)" if r["simulated"] else ""),
             f"{r['engine']} {(r['engine_version'] or '').split(' NO_')[0]}".strip(), number(time.get("median"), "%.3f"),
             f"{1 / ratio['median']:.3f}{quartiles(ratio)}" if ratio and ratio["median"] > 0 else "",
             number(r["gflops"], "%.1f"), number(r["gbs"], "%.1f"), number(None if limit is None else 100 * limit, "%.1f %%"),
             number(r["load_ms"], "%.1f"), number(None if peak is None else peak / 1e6, "%.1f"),
             f"{gain['kernels']:.2f} × {gain['interference']:.2f} × {gain['scheduling']:.2f}" if gain else "",
             number(r["predicted_ms"] if "error" in r else None, "%.3f"), number(100 * r["error"] if "error" in r else None, "%.1f %%"),
             accuracy(r), number(r.get("r2"), "%.3f"), number(100 * r["gap"] if "gap" in r else None, "%.2f %%"),
             r["reason"] if r["status"] == "ok" else f"{r['status']}: {r['reason']}"]
    return [cell.replace("|", "/").replace("\n", " ") for cell in cells]


def table(rows):
    kept = [c for c in range(len(HEADS)) if any(r[c] for r in rows)]
    lines = ["| " + " | ".join(HEADS[c] for c in kept) + " |", "|" + "---|" * len(kept)]
    return lines + ["| " + " | ".join(r[c] for c in kept) + " |" for r in rows]


def curve(train):
    """What training told each time it was judged; a score of eval is one such time."""
    percent = train["metric"] == "accuracy"
    lines = [f"| | loss | {train['metric']} |", "|---|---|---|"]
    for i, (loss, value) in enumerate(zip(train["loss"], train["value"])):
        lines.append(f"| {i + 1} | {loss:.4f} | {number(value if not percent or value is None else 100 * value, '%.1f %%' if percent else '%.4g')} |")
    return lines


def typed(words):
    return f"`graphi {shlex.join(words)}`"


def essential(words):
    """Without where it wrote and how loud it was."""
    return [word for before, word in zip(["", *words], words) if word not in ("--quiet", "--json", "--out") and before not in ("--json", "--out")]


def contents(results):
    lines = ["| result | goals met | command |", "|---|---|---|"]
    for name, root in results:
        met, goals = sum(goal["met"] for goal in root["goals"]), len(root["goals"])
        ended = "" if root["ok"] else "ended early"
        state = ", ".join(filter(None, [f"{met} of {goals}" if goals else "", ended]))
        lines.append(f"| [{name}]({name}.md) | {state} | {typed(essential(root['argv'][1:])).replace('|', '/')} |")
    return lines + [""]


def page(name, root, folder):
    m, g = root["machine"], root["graphi"]
    about = f"{typed(root['argv'][1:])}, version {g['version']}, commit {g['commit']}"
    if m:
        about += f"; {m['cpu']}, {m['cores']} cores, {m['isa']}"
        about += number(m["roof_gflops"], ", roof %.1f GFLOP/s") + number(m["bandwidth_gbs"], ", memory %.1f GB/s")
        about += ", simulated" if m.get("simulated") else ""
    lines = [f"# {name}", "", about, "", "[All results](README.md)", ""]
    lines += [] if root["ok"] else ["**Ended early**: rows and goals are those that it had until then.", ""]
    for goal in root["goals"]:
        lines.append(f"- {goal['name']}: {goal['value']:.4g} against {goal['goal']:.4g}: {'met' if goal['met'] else '**missed**'}")
    lines += [""] if root["goals"] else []
    lines += pictures(name, root, folder)
    lines += [*curve(root["train"]), ""] if root["train"] else []
    fold = len(root["rows"]) > FOLDED
    lines += [f"<details><summary>{len(root['rows'])} rows</summary>", ""] if fold else []
    lines += [*table([row(r) for r in root["rows"]]), ""] if root["rows"] else []
    lines += ["</details>", ""] if fold else []
    lines += [f"- note: {note}" for note in root["notes"]]
    return "\n".join(lines).rstrip("\n") + "\n"


def load(path):
    """The result in a file. ValueError: one line that says where it is none."""
    try:
        root = json.loads(path.read_text())
    except ValueError as problem:
        raise ValueError(f"{path}: found no JSON ({problem}), expected a result") from None
    problems = schema.more_problems(root)
    if problems:
        raise ValueError(f"{path}: {problems[0]}" + (f" (and {len(problems) - 1} more)" if problems[1:] else ""))
    return root


def introduction(folder, machine):
    """`machine`: the folder is one of docs/results, of another machine."""
    others = [] if machine else [f"[{path.name}]({path.name}/README.md)" for path in machines(folder)]
    text = INTRODUCTION.format(docs="../../" if machine else "../", results="../" if machine else "", of=f"/{folder.name}" if machine else "")
    return text + "".join(f"- Results of other machines: {', '.join(others)}.\n" if others else "")


def machines(folder):
    return sorted(path for path in folder.iterdir() if path.is_dir() and any(path.glob("*.json")))


def render(folder, machine=False):
    """File name -> text, of every page."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise ValueError(f"{folder}: found no *.json, expected results")
    results = [(path.stem, load(path)) for path in paths]
    return {"README.md": "\n".join([introduction(folder, machine), *contents(results)]), **{f"{name}.md": page(name, root, folder) for name, root in results}}


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "results"
    try:
        for place, pages in [(folder, render(folder))] + [(path, render(path, machine=True)) for path in machines(folder)]:
            for name, text in pages.items():
                (place / name).write_text(text)
    except (OSError, ValueError) as problem:
        sys.exit(f"results: {problem}")


if __name__ == "__main__":
    main()
