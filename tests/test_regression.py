#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fits of `graphi bench regression` on records whose times follow a law that features determine: every model answers, good ones are
good, and predictions fit the records that they belong to. Needs scikit-learn and fails without: `make test` installs Debian's, for
/usr/bin/python3, which need not be the first python3 of the path; the environment that the benchmark makes (build/peers/sklearn)
does as well. What the engine does with predictions is tested without Python (test_curves.c).

usage: test_regression.py --build DIR"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTHS = (1, 2, 4, 6, 8, 12, 16, 20, 24)


def record(network, i, draw=None):
    """Work grows with i; its serial part is a tenth. With `draw` times are no matter of the work or of each other."""
    flops, shares = 1e5 * (i + 1), 64
    times = [{"width": w, "spread": False, "ns": draw() if draw else flops / 10 * (0.1 + 0.9 / w)} for w in WIDTHS]
    return {"network": network, "batch": 16, "key": f"{i:016x}", "kind": "matmul", "shapes": "", "operations": 1, "flops": flops,
            "bytes": flops / 8, "phases": 1, "shares": shares, "times": times, "counters": {}}


def has_sklearn(python):
    return python.exists() and subprocess.run([python, "-c", "import sklearn"], stderr=subprocess.DEVNULL).returncode == 0


def answer_to(python, script, records):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.json"
        path.write_text(json.dumps({"test": "dcgan", "predict": "k-neighbours", "records": records}))
        done = subprocess.run([python, script], input=json.dumps({"records": str(path)}) + "\n", stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout)
    return answer, {(f["model"], f["samples"]): f for f in answer["fits"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    own = parser.parse_args().build.parent / "peers" / "sklearn" / "bin" / "python"
    pythons = (own, Path("/usr/bin/python3"), Path(sys.executable))
    python = next(filter(has_sklearn, pythons), None)
    if not python:
        print("found no scikit-learn in " + ", ".join(map(str, pythons)) + "; expected it: tools/setup.sh test")
        return 1
    script = Path(__file__).resolve().parent.parent / "bench" / "frameworks" / "regression_sklearn.py"
    draw = random.Random(3).uniform
    blind, fits = answer_to(python, script, [record("dcgan" if i < 20 else "a", i, lambda: draw(1e5, 1e6)) for i in range(60)])
    assert blind["fits"] and all(f["accuracy"] < 0.99 for f in fits.values() if "accuracy" in f), "a model was asked for a time that it was given"
    records = [record(network, 3 * i + n) for n, network in enumerate(("a", "b", "dcgan")) for i in range(20)]
    answer, fits = answer_to(python, script, records)
    assert len({model for model, _ in fits}) == 14 and {n for _, n in fits} == {1, 4, 8}, sorted(fits)
    assert fits["least squares", 4]["accuracy"] > 0.99 and fits["least squares", 4]["r2"] > 0.99, "a line was not found"
    assert fits["k-neighbours", 4]["accuracy"] > 0.7, fits["k-neighbours", 4]
    assert len(answer["predictions"]) == len(records)
    errors = []
    for r, predicted in zip(records, answer["predictions"]):
        true = [t["ns"] for t in r["times"]]
        assert len(predicted) == len(true) and min(predicted) > 0
        assert all(abs(predicted[i] / true[i] - 1) < 1e-9 for i in (0, -1)), "sampled widths keep what was measured"
        assert predicted != true, "a network was predicted from its own records"
        errors += [abs(p / t - 1) for p, t in zip(predicted, true)]
    assert sum(errors) / len(errors) < 0.2, "predictions belong to other records"
    for r in records:  # cycles tell the time; one record lacks the accesses, which are then no feature of any
        r["counters"] = {"instructions": 100.0, "cycles": r["flops"], "llc_accesses": 7.0}
    del records[5]["counters"]["llc_accesses"]
    answer, _ = answer_to(python, script, records)
    chosen = next(note for note in answer["notes"] if note.startswith("features chosen"))
    assert "cycles" in chosen and "llc_accesses" not in chosen and len(chosen.split(", ")) == 4, chosen
    records[5]["counters"] = {}
    answer, _ = answer_to(python, script, records)
    assert any(note.startswith("counters left out: 1 of 60") for note in answer["notes"]), answer["notes"]
    print("ten models in fourteen forms fitted; predictions fit their records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
