# SPDX-License-Identifier: Apache-2.0
"""The schema graphi-result/1 of docs/results-schema.md as a table, and what checks a result against it.

usage: schema.py FILE...   (exit 1 and one line a problem)"""
import json
import math
import sys

NUMBER, TEXT, FLAG, WHOLE = (int, float), str, bool, int


class Maybe:
    """null: not measured, or not there for this command."""

    def __init__(self, inner):
        self.inner = inner


TIME = {"median": NUMBER, "p25": NUMBER, "p75": NUMBER, "p99": NUMBER, "min": NUMBER}
RATIO = {"against": TEXT, "median": NUMBER, "low": NUMBER, "high": NUMBER}
ROW = {
    "id": TEXT, "engine": TEXT, "engine_version": Maybe(TEXT), "policy": Maybe(TEXT), "driver": Maybe(TEXT),
    "executors": Maybe(WHOLE), "width": Maybe(WHOLE), "simulated": FLAG, "n": Maybe(WHOLE), "time_ms": Maybe(TIME),
    "ratio": Maybe(RATIO), "gflops": Maybe(NUMBER), "gbs": Maybe(NUMBER), "fraction_of_limit": Maybe(NUMBER),
    "peak_rss_bytes": Maybe(NUMBER), "lower_bound_ms": Maybe(NUMBER), "predicted_ms": Maybe(NUMBER), "load_ms": Maybe(NUMBER),
    "overhead_ns_per_op": Maybe(NUMBER), "status": ("ok", "missing", "failed"), "reason": TEXT,
}
GAIN = {"against": TEXT, "total": NUMBER, "kernels": NUMBER, "interference": NUMBER, "scheduling": NUMBER}
MEMORY = {"arena_bytes": WHOLE, "live_maximum_bytes": WHOLE, "sum_intermediate_bytes": WHOLE, "compile_ms": NUMBER,
          "allocations_in_step": WHOLE}
PORT = {"name": TEXT, "dtype": TEXT, "shape": Maybe([WHOLE])}
OPERATOR = {"domain": TEXT, "name": TEXT, "nodes": WHOLE, "supported": FLAG}
OF_A_MODEL = {"operators": [OPERATOR], "parameters": WHOLE, "units": WHOLE, "steps": Maybe(WHOLE), "inputs": [PORT], "outputs": [PORT]}  # not of older results, not of every command
OF_A_PLAN = {"isa": TEXT, "precision": ("float32", "bfloat16")}  # not of older results
SOMETIMES = {"level": TEXT, "operator": TEXT, "roof_of": ("bfloat16",), "join": FLAG, "backward_executors": WHOLE, "depth": WHOLE, "solvers": WHOLE, "leaves": WHOLE, "reduction": TEXT, "weights": TEXT, "lowering": TEXT, "gradient_bytes": WHOLE, "light": FLAG, "gain": GAIN, "memory": MEMORY, "first_page_faults": WHOLE, **dict.fromkeys((
    "utilization", "difference", "error", "accuracy", "accuracy_to_stop", "accuracy_with_extrapolation", "r2", "paper_accuracy", "paper_r2", "gap",
    "worst_gap", "one_valley", "measurements", "above_bound", "busy_fraction", "scheduling_fraction", "waiting_fraction",
    "team_fraction", "lost_fraction", "others_fraction", "roof_gflops", "first_system_ms",
    "peak_rss_absolute_bytes", "exposed", "us_per_vertex", "speedup", "peak_bytes"), NUMBER)}  # keys of a row that not every command has
RESULT = {
    "schema": ("graphi-result/1",), "command": TEXT, "experiment": Maybe(TEXT), "argv": [TEXT], "ok": FLAG,
    "graphi": {"version": TEXT, "commit": TEXT},
    "machine": Maybe({"cpu": TEXT, "cores": WHOLE, "quota": Maybe(NUMBER), "isa": TEXT, "roof_gflops": Maybe(NUMBER),
                      "bandwidth_gbs": Maybe(NUMBER), "hash": TEXT}),
    "model": Maybe({"name": TEXT, "size": Maybe(TEXT), "task": Maybe(TEXT), "batch": WHOLE, "graph_hash": TEXT, "nodes": WHOLE,
                    "flop": Maybe(NUMBER), "bytes": Maybe(NUMBER)}),
    "rows": [ROW],
    "train": Maybe({"steps": Maybe(WHOLE), "epochs": Maybe(WHOLE), "loss": [NUMBER], "metric": ("accuracy", "perplexity", "generator loss"),
                    "value": [Maybe(NUMBER)], "state_sha256": Maybe(TEXT)}),
    "plan": Maybe({"hash": TEXT, "compile_ms": NUMBER, "arena_bytes": WHOLE, "sum_intermediate_bytes": WHOLE,
                   "live_maximum_bytes": WHOLE, "allocations_in_step": Maybe(WHOLE)}),
    "goals": [{"name": TEXT, "value": NUMBER, "goal": NUMBER, "met": FLAG}], "files": [TEXT], "notes": [TEXT],
}


def problems(value, form=None, where="result"):
    """One line for each place where `value` is not of the form; further keys are allowed."""
    form = RESULT if form is None else form
    if isinstance(form, Maybe):
        return [] if value is None else problems(value, form.inner, where)
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return [f"{where}: found {value!r}, expected an object"]
        found = [f"{where}: found no {key}, expected one" for key in form if key not in value]
        for key in form:
            if key in value:
                found += problems(value[key], form[key], f"{where}.{key}")
        return found
    if isinstance(form, list):
        if not isinstance(value, list):
            return [f"{where}: found {value!r}, expected an array"]
        return [line for i, item in enumerate(value) for line in problems(item, form[0], f"{where}[{i}]")]
    if isinstance(form, tuple) and isinstance(form[0], str):
        return [] if value in form else [f"{where}: found {value!r}, expected one of {', '.join(form)}"]
    if form is not bool and isinstance(value, bool) or not isinstance(value, form):
        return [f"{where}: found {value!r}, expected {'a number' if form == NUMBER else form.__name__}"]
    return []


def gain_problems(row, rows):
    """The factors of a gain follow from the paired ratios of the rows of our run modes, and make the total."""
    gain, name = row["gain"], row["id"]
    naive, sequential = (rows.get(f"{name} {mode}") for mode in ("naive", "sequential"))
    if not naive or not sequential or not row["ratio"] or not naive["ratio"] or not sequential["ratio"]:
        return [f"row {name}: found a gain, expected ratios here and of the rows '{name} naive' and '{name} sequential'"]
    factor = {"total": 1 / row["ratio"]["median"], "scheduling": naive["ratio"]["median"],
              "interference": sequential["ratio"]["median"] / naive["ratio"]["median"], "kernels": gain["total"] / sequential["ratio"]["median"]}
    lines = [f"row {name}: gain.{key}: found {gain[key]:.6g}, expected {value:.6g} of the rows' ratios"
             for key, value in factor.items() if not math.isclose(gain[key], value, rel_tol=1e-9)]
    if gain["against"] != row["ratio"]["against"]:
        lines.append(f"row {name}: gain.against: found {gain['against']!r}, expected {row['ratio']['against']!r}")
    return lines


def more_problems(result):
    """What the form alone does not say."""
    lines = problems(result)
    if lines:
        return lines
    ids = [row["id"] for row in result["rows"]]
    lines += [f"row {name}: found it twice, expected unique ids" for name in sorted(set(ids)) if ids.count(name) > 1]
    model = result["model"] or {}
    lines += [line for key, form in OF_A_MODEL.items() if key in model for line in problems(model[key], form, f"model.{key}")]
    plan = result["plan"] or {}
    lines += [line for key, form in OF_A_PLAN.items() if key in plan for line in problems(plan[key], form, f"plan.{key}")]
    for row in result["rows"]:
        wrong = [line for key in SOMETIMES if key in row for line in problems(row[key], Maybe(SOMETIMES[key]), f"row {row['id']}: {key}")]
        lines += wrong + [f"row {row['id']}: found key {key}, expected one of SOMETIMES" for key in row if key not in ROW and key not in SOMETIMES]
        if row.get("gain") and not wrong:
            lines += gain_problems(row, {other["id"]: other for other in result["rows"]})
        if row["ratio"] and row["ratio"]["against"] not in ids:
            lines.append(f"row {row['id']}: found ratio against {row['ratio']['against']!r}, expected the id of a row")
        if row["status"] != "ok" and not row["reason"]:
            lines.append(f"row {row['id']}: found status {row['status']} without a reason, expected one")
        if row["time_ms"] and not row["time_ms"]["min"] <= row["time_ms"]["median"] <= row["time_ms"]["p99"]:
            lines.append(f"row {row['id']}: found times out of order, expected min <= median <= p99")
    train = result["train"]
    if train and len(train["value"]) != len(train["loss"]):
        lines.append(f"train: found {len(train['loss'])} losses and {len(train['value'])} values, expected as many")
    return lines


def file_problems(name):
    try:
        with open(name, encoding="utf-8") as file:
            return more_problems(json.load(file))
    except OSError as error:
        return [f"found no readable file ({error.strerror}), expected a result"]
    except ValueError as error:  # of JSON and of UTF-8
        return [f"found no JSON ({error}), expected a result"]


if __name__ == "__main__":
    lines = [f"{name}: {line}" for name in sys.argv[1:] for line in file_problems(name)]
    print(*lines, sep="\n", end="\n" * bool(lines))
    sys.exit(bool(lines))
