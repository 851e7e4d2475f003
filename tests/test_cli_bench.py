#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What experiments do with options and words: what has no effect is refused, and a result says what it was measured on."""
import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import PATIENCE, Skipped, main, schema, training  # noqa: E402
from test_regression import has_sklearn  # noqa: E402

REFUSED = [["policies", "--plan", "x"], ["policies", "--executors", 2], ["pinning", "--policy", "fifo"], ["options", "--tune", 1],
           ["options", "--machine", "MACHINE", "--seconds", 1], ["strategies", "--seconds", 1], ["simulator-error", "--machine", "x"],
           ["sweep", "--explain"], ["table-2", "--size", "small"], ["kernels", "--save-plan", "x"], ["loss-curves", "--size", "small"],
           ["figure-3", "--timeline", "x"], ["regression", "--batch", 8], ["op-scaling", "--interval", 3], ["table-2", "lstm"],
           ["figure-1", "lstm"], ["regression", "lstm"], ["scheduling-cost", "lstm"], ["table-2", "--quick"], ["sweep", "--quick"],
           ["memory", "--quick"], ["options", "--quick"], ["bfloat16", "--inference"], ["bfloat16", "lstm", "ptb"],
           ["figure-6", "lstm", "lstm"], ["frameworks", "lstm", "jax", "pathnet", "jax"]]


def machine(cli):
    return cli.source / "machines" / "xeon-phi-7250.json"


def judged(cli, *words):
    """The result of an experiment whose goals are a matter of the minute."""
    written = cli.folder / "judged.json"
    written.unlink(missing_ok=True)
    words = [str(cli.program), "bench", *map(str, words), "--quiet", "--json", written.name]
    done = subprocess.run(words, cwd=cli.folder, env=cli.environment, capture_output=True, timeout=PATIENCE)
    assert done.returncode in (0, 1) and written.exists(), done.stderr
    result = json.loads(written.read_text())
    assert not schema.more_problems(result), schema.more_problems(result)
    assert result["ok"], done.stderr
    return result


# What experiments are asked for that is least of them, parts of rows' names that they give, and of a goal's.
LSTM = ["lstm", "--size", "small", "--batch", 2, "--unroll", 2, "--seconds", 0.01]
LEAST = {"scheduler": (LSTM, ["naive", "critical-path", "fifo", "random"], None),
         "pinning": (LSTM, [" pinned", "placed by the system"], None),
         "waiting": (LSTM, ["chosen", "an executor a core"], "scheduling and waiting"),
         "simulator-error": (LSTM, ["sequential", "fifo combining", "s123", "malleable", "dedicated"],
                             "mean error of the predicted makespan"),
         "op-scaling": (["--seconds", 0.01], ["product 64x512x512: width 1", "multiply 32768 elements: width 1", "empty: width 1"], None),
         "scheduling-cost": (["--quick"], ["0 ns: scheduled", "1000 ns: inlining on", "10000 ns: plain loops"], "1 us operations"),
         "table-2": ([], ["Conv2D (32,8,8,384): 68 threads", "Conv2DBackpropFilter (32,8,8,2048): best",
                          "Conv2DBackpropInput (32,17,17,384), paper: best"], None),
         "concurrency": (["--quick"], ["1 thread", "8 threads"], "throughput of eight threads"),
         "events": (["--quick"], ["round trip of two words", "round trip of two runs"], "round trip of messages"),
         "leases": (["--quick"], ["a lease an execution", "a lease that is held", "a lease that is entered"], None),
         "places": (["--quick"], [", "], None),
         "table-5": (["lstm", "--quick", "--batch", 2], ["x = 2", "x = 16"], None)}


def check_rows(rows, part):
    found = [row for row in rows if part in row["id"]]
    assert found, (part, [row["id"] for row in rows])
    for row in found:
        number = row["accuracy"] if row["time_ms"] is None else row["time_ms"]["median"]
        assert row["status"] == "ok" and 0 < number < 1e5, row


def test_least(cli):
    """Experiments that nothing ran to their end could have given no rows, or none at all of a kind, for months."""
    cli.bench("scheduler")
    for name, (words, parts, goal) in LEAST.items():
        result = judged(cli, name, *words)
        assert result["experiment"] == name, result["experiment"]
        for part in parts:
            check_rows(result["rows"], part)
        told = [about["name"] for about in result["goals"]]
        assert not goal or any(goal in about for about in told), (goal, told)


def test_regression(cli):
    """`table-4`, which is `regression`, to its end: records, fits, predictions and schedules directed by them, each in the result. Its
    environment is one with scikit-learn that is here, in place of the one that it would make."""
    pythons = Path(cli.program).parent.parent / "peers" / "sklearn" / "bin" / "python", Path("/usr/bin/python3"), Path(sys.executable)
    python = next(filter(has_sklearn, pythons), None)
    if not python:
        raise Skipped("no scikit-learn is here")
    program = Path(shutil.copy(cli.bench("table_4"), cli.folder / "table_4"))  # no build's: the environment lies in the cache
    environment = cli.folder / "cache" / "graphi" / "peers" / "sklearn" / "bin"
    environment.mkdir(parents=True)
    (environment / "python").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    (environment / "python").chmod(0o755)
    words = ["--quick", "--seconds", "0.01", "--machine", machine(cli), "--cores", "16", "--quiet", "--out", "out"]
    done = subprocess.run([program, *words], cwd=cli.folder, env=cli.environment | {"XDG_CACHE_HOME": str(cli.folder / "cache")},
                          capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert not schema.more_problems(result) and result["experiment"] == "table-4", schema.more_problems(result)
    rows = {row["id"]: row for row in result["rows"]}
    fits = [row for row in rows.values() if row["engine"] == "scikit-learn"]
    models = {row["id"].split(": ")[1] for row in fits}
    assert len(models) == 14 and {row["id"].split(":")[0] for row in fits} >= {f"N = {n}" for n in (1, 4, 8)}, rows.keys()
    assert all(row["accuracy"] <= 1 and row["r2"] <= 1 for row in fits if row["status"] == "ok"), fits
    assert rows["N = 4: k-neighbours"]["paper_accuracy"] == 0.67 and rows["N = 4: k-neighbours"]["simulated"]
    directed = [name.split(": directed by ") for name in rows if rows[name]["engine"] == "graphi"]
    assert directed and {by for _, by in directed} == {"every width", "hill climbing", "k-neighbours"}, rows.keys()
    for network, by in directed:
        row = rows[f"{network}: directed by {by}"]
        assert row["time_ms"]["median"] > 0 and (by == "every width") == (row["ratio"] is None), row
    assert {Path(file).name for file in result["files"]} >= {"regression-records.json", "regression-curves.json"}, result["files"]
    assert all((cli.folder / file).exists() for file in result["files"])


def test_predicted_settings(cli):
    """What was called every setting left out the dedicated driver, random order, locality, strategy 4 and fewer threads than cores."""
    cli.bench("sweep")
    cli.bench("simulator_error")
    result = judged(cli, "simulator-error", *LSTM)
    predicted, swept, cores = result["rows"], judged(cli, "sweep", *LSTM, "--tune", 0)["rows"], result["machine"]["cores"]
    for what in (["policy"], ["driver"]):
        found, expected = ({tuple(row[key] for key in what) for row in rows} for rows in (predicted, swept))
        assert found >= expected, (expected - found, what)
    if cores == 2:
        first = [{(row["executors"], row["width"], row["driver"]) for row in rows if row["policy"] == "critical-path"}
                 for rows in (predicted, swept)]
        assert first[0] == first[1] and len(first[0]) == 9, first
    joining = [row["id"] for row in predicted if row["join"]]
    assert len(joining) == (cores > 1) and all(name.endswith(", joining") for name in joining), joining
    shared = [row for row in predicted if row["driver"] == "dedicated" and row["executors"] * row["width"] == cores]
    in_goal = [row["error"] for row in predicted if row not in shared]
    assert shared and abs(100 * sum(in_goal) / len(in_goal) - result["goals"][0]["value"]) < 1e-6, (shared, result["goals"])
    assert any(note.startswith("not in the goal, a dedicated driver that shares a core: ") for note in result["notes"]), result["notes"]


def test_loss_curves(cli):
    """Trainings whose curves are compared, by a command that trains less: each seed in both precisions, and the picture."""
    folder, command = cli.folder / "build", cli.folder / "build" / "graphi"
    (folder / "bench").mkdir(parents=True)
    program = shutil.copy(cli.bench("loss_curves"), folder / "bench")
    words = [*training(cli, 4), "--validate", 1]  # in place of the steps between that are asked for
    command.write_text(f"""#!/bin/sh
echo "$@" >> {cli.folder}/asked
shift 6
exec {cli.program} {' '.join(map(str, words))} "$@"
""")
    command.chmod(0o755)
    done = subprocess.run([program, "--quiet", "--out", "."], cwd=cli.folder, env=cli.environment, capture_output=True, timeout=PATIENCE)
    assert done.returncode in (0, 1), done.stderr
    asked = [line.split() for line in (cli.folder / "asked").read_text().splitlines()]
    seeds = {(line[line.index("--seed") + 1], line[line.index("--precision") + 1]) for line in asked}
    assert len(asked) == len(seeds) == 6 and {precision for _, precision in seeds} == {"float32", "bfloat16"}, asked
    result = json.loads(done.stdout)
    assert not schema.more_problems(result) and len(result["goals"]) == 2, result
    assert any("step 160: loss" in note for note in result["notes"]) and (cli.folder / "loss-curves-pathnet.svg").exists(), result


def test_refused(cli):
    """Hours of measuring something else than was asked for: options of other experiments had no effect and no message."""
    cli.bench("policies")
    for words in REFUSED:
        option = next((word for word in reversed(words) if str(word).startswith("--")), words[-1])
        words = [machine(cli) if word == "MACHINE" else word for word in words]
        errors = cli.run("bench", *words, expect=2).stderr.splitlines()
        assert f"USAGE: {words[0]}: found '{option}'" in errors[-1], errors  # the last line
    assert "expected a network" in cli.run("bench", "frameworks", "alone-training", expect=2).stderr
    cli.bench("wavefront")
    assert "expected a network of cells in time" in cli.run("bench", "wavefront", "googlenet", expect=2).stderr
    typed = ["bench", "wavefront", "--size", "small", "--quick"]
    result = cli.result(*typed)
    assert result["argv"][1:len(typed) + 1] == typed
    off = [note for note in result["notes"] if note.startswith("passes stages are off")]
    assert len(off) == 1, ("whole gates without a word", result["notes"])


def test_other_sizes(cli):
    """What bench knows of a network's form it takes of the command line: a plan of 64 neurons is smaller than one of 128."""
    cli.bench("memory")
    words = ["memory", "lstm", "--size", "small", "--batch", 2, "--unroll", 3]
    own, other = (judged(cli, *words, *more)["rows"][0]["memory"]["arena_bytes"] for more in ([], ["--units", 64]))
    assert 0 < other < 0.6 * own, (other, own)


def test_one_size(cli):
    """A network of one size ran once for each size, all the same."""
    cli.bench("memory")
    assert len(judged(cli, "memory", "resnet20", "--image", 8, "--batch", 2)["rows"]) == 1


def test_rows_of_kernels(cli):
    """All rows are named before one is measured: a word that chooses none is told then, and would be two rows of one name."""
    cli.bench("kernels")
    errors = cli.run("bench", "kernels", "no row has this", expect=2).stderr.splitlines()
    assert "found 'no row has this', expected a part of a row's name; they begin with lstm, " in errors[-1], errors
    errors = cli.run("bench", "kernels", "two groups", "--quick", expect=2).stderr.splitlines()  # no rows and exit 0 once
    assert "found 'two groups', expected a part of the name of a row that --quick does not leave out" in errors[-1], errors


def test_cores_described(cli):
    """Where too few cores are at hand for an experiment it is about a described machine, and so is --cores: it was refused beyond
    those at hand, or limited nothing. --interval speaks of the shares that --tune times."""
    cli.bench("hill_climb")
    if cli.cores() >= 8:
        raise Skipped("enough cores are at hand")
    for cores, more in (34, []), (3, ["--tune", 0.1, "--interval", 2]):
        machine = cli.result("bench", "hill-climb", "lstm", "--quick", "--batch", 2, "--cores", cores, "--quiet", *more)["machine"]
        assert machine["simulated"] and machine["cores"] == cores, machine


def test_size_asked(cli):
    """--quick left out the size that was asked for; networks that the figure lacks had no rows."""
    cli.bench("figure_6")
    for network in ("lstm", "dcgan"):
        rows = cli.result("bench", "figure-6", network, "--size", "medium", "--quick", "--quiet")["rows"]
        assert rows and all(row["id"].startswith(f"{network} medium") for row in rows)


def test_words_before(cli):
    """Options may stand before the command: the experiment took the word `bench` for a network. The picture is one of the
    result's files."""
    cli.bench("figure_6")
    folder = cli.folder / "out"
    found = cli.result("--quiet", "--size", "small", "bench", "figure-6", "lstm", "--quick", "--out", folder)
    assert found["files"] == [str(folder / "figure-6.svg")] and (folder / "figure-6.svg").exists(), found["files"]
    assert json.loads((folder / "figure-6.json").read_text()) == found


def test_turns(cli):
    """Rows of waiting were measured one after the other: what disturbed one of them, another program for a minute, stood as what
    the setting takes."""
    cli.bench("waiting")
    result = judged(cli, "waiting", *LSTM)
    chosen, each = result["rows"]
    assert chosen["n"] == each["n"] >= 6 and each["ratio"]["against"] == chosen["id"], result["rows"]
    assert all(0 <= row["others_fraction"] <= 1 for row in result["rows"]), result["rows"]
    notes = " / ".join(result["notes"])
    assert "alternating turns, interval of 95 %" in notes and notes.count("others had") == 2, notes


def test_compared(cli):
    """Rows are compared with rows that are there, under the same options but one."""
    cli.bench("options")
    words = ["lstm", "--size", "small", "--batch", 2, "--seconds", 0.01, "--quiet"]
    for more in ([], ["--machine", machine(cli)], ["--machine", machine(cli), "--cores", 3]):
        result = cli.result("bench", "options", *(word for word in words if not more or word not in ("--seconds", 0.01)), *more)
        names = [row["id"] for row in result["rows"]]
        assert len(set(names)) == len(names)
        assert {row["ratio"]["against"] for row in result["rows"] if row["ratio"]} <= set(names)
        rows = {row["id"].removeprefix("lstm small: "): row for row in result["rows"]}
        if more:
            assert abs(result["machine"]["roof_gflops"] / result["machine"]["cores"] - 89.6) < 1, "rates of the machine at hand for the described one's"
        row = next(row for row in result["rows"] if row["id"].endswith(": asymmetric teams"))
        few = result["machine"]["cores"] < 4
        assert row["policy"] == ("critical-path" if few else "asymmetric")
        assert (row["status"], bool(row["n"])) == (("missing", False) if few else ("ok", True)), "measured against itself"
        room = more and not few
        lights = [name for name in rows if "light executor" in name]
        assert lights == ["no light executor" if room else "a light executor in place of one"] or result["machine"]["cores"] < 2, rows.keys()
        for name in lights:
            assert rows[name]["executors"] == rows["as the paper's engine"]["executors"] - (not room)
            assert not more or rows[name]["time_ms"] != rows["as the paper's engine"]["time_ms"]


def test_compiled_otherwise(cli):
    """Two compilations were timed under two settings: what 1x2 and 2x1 differ by stood as the effect of merged gates. The static
    settings of these two differ on two cores."""
    cli.bench("options")
    rows = {row["id"].split(": ")[1]: row for row in judged(cli, "options", "lstm", "--size", "small", "--seconds", 0.01)["rows"]}
    pairs = [name for name in rows if f"without {name}" in rows]
    assert len(pairs) == 4, rows.keys()
    for name in pairs:
        settings = [[row[key] for key in ("policy", "driver", "executors", "width")] for row in (rows[name], rows[f"without {name}"])]
        assert settings[0] == settings[1], f"{name}: {settings}"


def test_paired_goals(cli):
    """A ratio of medians of different rounds stood in goals, beside the paired one of the row."""
    cli.bench("kernels")
    result = judged(cli, "kernels", "lstm medium, one gate 64x512x512", "--quick", "--cores", 1)
    rows, goals = {row["id"]: row for row in result["rows"]}, {goal["name"]: goal["value"] for goal in result["goals"]}
    told = [name for name in rows if rows[name]["ratio"] and f"{name}: oneDNN's time over ours" in goals]
    assert told or all(row["status"] == "missing" for row in rows.values() if row["engine"] == "oneDNN"), (rows.keys(), goals)
    for name in told:
        assert abs(goals[f"{name}: oneDNN's time over ours"] * rows[name]["ratio"]["median"] - 1) < 1e-9, name


def test_goals_of_bfloat16(cli):
    """Fractions of what multiplies bfloat16 stood against the float32 roof, and goals compared ours in bfloat16 with peers in
    float32; goals about all convolutions were stated of some."""
    cli.bench("kernels")
    words = ["kernels", "lstm small, one gate", "pathnet small, layer 3 forward", "--cores", 1]
    goals = ["lstm medium, one gate 64x512x512"]  # in float32 alone
    for precision, more in ("float32", []), ("bfloat16", goals):
        result = judged(cli, *words, *more, "--precision", precision)
        known = precision == "bfloat16" and result["machine"]["roof_bf16_gflops"]
        rows = [row for row in result["rows"] if row["n"]]
        assert not result["goals"] and rows, result["goals"]
        for row in rows:
            rounds = known and (row["engine"] == "graphi" or row["id"].startswith("bfloat16"))  # peers, of a row that asks for it
            assert row.get("roof_of") == ("bfloat16" if rounds else None), row
            assert row["roof_gflops"] == result["machine"]["roof_bf16_gflops" if rounds else "roof_gflops"], row


def test_static_choice(cli):
    """What --tune 0 runs was no row of the sweep, so that nobody saw what tuning gains."""
    cli.bench("sweep")
    result = judged(cli, "sweep", "lstm", "--size", "small", "--batch", 2, "--tune", 0.1, "--seconds", 0.2)
    row = next(row for row in result["rows"] if row["id"] == "lstm small: static")
    assert row["policy"] == "critical-path" and 0 < row["executors"] * row["width"] <= result["machine"]["cores"] and row["n"] >= 3, row
    assert len([note for note in result["notes"] if "static choice (--tune 0) over best" in note]) == 1, result["notes"]


def test_papers_policies(cli):
    """"Better than every policy of the papers" was held against four strategies and critical path first alone."""
    cli.bench("strategies")
    result = judged(cli, "strategies", "ptb", "--size", "small", "--machine", machine(cli), "--cores", 20)
    ms = {row["id"].split(": ")[1]: row["time_ms"]["median"] for row in result["rows"]}
    papers = {"best uniform", "asymmetric", "locality", "fifo", "naive", "s1", "s12", "s123", "s1234"}
    ahead = {row["id"].split(": ")[1]: row["time_ms"]["median"] for row in result["rows"] if row["driver"] == "static"}
    assert papers == ms.keys() - {"uniform", "malleable"} - ahead.keys(), ms.keys()
    longest = max(ahead[f"{policy}, static"] / ms[policy] for policy in ("s1", "s12", "s123"))
    told = next(goal["value"] for goal in result["goals"] if "decided before the step" in goal["name"])
    assert len(ahead) == 3 and abs(told / longest - 1) < 1e-6, (ahead, told)
    costs = [row["overhead_ns_per_op"] for row in result["rows"]
             if row["policy"] in ("s1", "s12", "s123", "s1234", "malleable") and row["driver"] != "static"]
    told = next(goal["value"] for goal in result["goals"] if goal["name"].startswith("cost of simulation"))
    assert len(costs) == 5 and abs(told / (sum(costs) / 5) - 1) < 1e-9, "the goal is of executions that have no row"
    note = next(note for note in result["notes"] if "best of the papers' policies" in note)
    assert f"best of the papers' policies {min(ms[name] for name in papers):.3f} ms" in note, (note, ms)


PEER = """import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {{"ok": True, "settings": {settings}[asked["model"]]}} if asked["cmd"] == "settings" else {{"ok": False, "error": "plays one"}}
    print(json.dumps(answer), flush=True)
"""


def beside_pytorch(cli, program):
    """What runs an experiment beside a PyTorch that names its settings and fails in all of them, and these settings."""
    tree, names = ast.parse((cli.source / "bench/frameworks/peer_pytorch.py").read_text()), {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            exec(compile(ast.Module([node], []), "settings", "exec"), names)
    own, python = cli.folder / program.name, cli.folder / "graphi/peers/pytorch/bin/python"
    shutil.copy(program, own)
    (cli.folder / "frameworks-peers").mkdir()
    (cli.folder / "frameworks-peers/peer_pytorch.py").write_text(PEER.format(settings=names["SETTINGS"]))
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)

    def run(*words):
        done = subprocess.run([own, *map(str, words), "--size", "small", "--seconds", "0.001", "--quiet"], capture_output=True, timeout=PATIENCE,
                              env={**cli.environment, "XDG_CACHE_HOME": str(cli.folder)})
        assert done.returncode in (0, 1), done.stderr  # goals are a matter of the minute
        return json.loads(done.stdout)
    return run, names["SETTINGS"]


def test_bfloat16_settings(cli):
    """PyTorch's best setting has to be among those that are timed: bfloat16 lacked the allocator's forms that float32 had."""
    program = cli.bench("bfloat16")
    run, settings = beside_pytorch(cli, program)
    for words in (["lstm", "--batch", 2], ["pathnet", "--batch", 2, "--image", 16]):
        timed = []
        for more in ([], ["--quick"]):
            rows = [row for row in run(*words, *more)["rows"] if row["engine"] == "PyTorch"]
            assert all(row["reason"] == "plays one" for row in rows), rows
            timed.append([row["id"].split(": PyTorch ")[1] for row in rows])
        assert sorted(timed[0]) == sorted(f"{setting} bfloat16" for setting in settings[words[0]]), timed
        assert timed[1] == timed[0][:1] and "pages" in timed[1][0], timed


def test_timed_rate(cli):
    """The row `direct` trained the weights that the peers' turns are timed beside, at a rate of 0.01."""
    program = cli.bench("frameworks")
    result = beside_pytorch(cli, program)[0]("pathnet", "pytorch", "--batch", 2, "--image", 16, "--tune", 0)
    assert any(row["id"] == "pathnet small, batch 2, training: graphi direct" for row in result["rows"])
    goals = {goal["name"]: goal for goal in result["goals"]}
    drift = goals["pathnet small, batch 2, training: our loss after all turns from the checked one"]
    assert drift["met"] and drift["value"] < 1e-3, drift
    assert not any("per cent of the limit" in name for name in goals), "limits are of the network's own batch"


def test_policies(cli):
    """A setting that tuning kept was timed against itself, and the noise between the two counted as a loss."""
    cli.bench("policies")

    def policies(seconds, *more):
        return judged(cli, "policies", "lstm", "--batch", 2, "--seconds", seconds, *more)

    few = policies(0.001, "--quick")
    told = [goal["name"] for goal in few["goals"] if goal["name"].startswith("lstm")]
    assert few["rows"][0]["n"] < 6 and len(told) == 1 and "decisions of strategies" in told[0], ("judged by three rounds", told)
    assert any("strategies over" in note and "too few rounds for an interval" in note for note in few["notes"]), few["notes"]
    assert policies(0.001)["rows"][0]["n"] >= 8
    # What profiling costs was told as the training of which it would be little, whatever the papers' trainings take.
    ptb = judged(cli, "policies", "ptb", "--batch", 2, "--seconds", 0.001, "--quick")
    goal = next(goal for goal in ptb["goals"] if "profiling once" in goal["name"])
    steps = float(next(note.split()[-2] for note in ptb["notes"] if "profiling once" in note))
    assert goal["name"].endswith("% of a training of 13 epochs, 302107 steps") and goal["goal"] == 0.05, goal
    assert steps > 1 and abs(goal["value"] * 302107 / 100 - steps) < 0.06 and goal["met"] == (goal["value"] <= 0.05), (goal, steps)
    result = policies(0.3)
    untold = [note for note in result["notes"] if "strategies over" in note]
    assert not untold or max(row["n"] for row in result["rows"]) >= 8 + 3, ("given up at the first look", untold)
    rows = {row["id"].removeprefix("lstm small: "): row for row in result["rows"]}
    # strategies that kept a uniform setting were never compared with it
    for policy in "s1", "s12", "s1234":
        assert (f"{policy}, own widths" in rows) == rows[policy]["reason"].startswith("kept"), rows.keys()
    malleable = rows["malleable"]
    told = [note for note in result["notes"] + [goal["name"] for goal in result["goals"]] if note.startswith("malleable over")]
    assert malleable["policy"] == "malleable" and len(told) == 1
    if malleable["reason"].startswith("kept"):
        kept = malleable["reason"].removeprefix("kept ").split(":")[0]
        assert malleable["time_ms"] == rows[kept]["time_ms"] and "(of 1 networks 0 run widths that were searched, 0 " in told[0]
        if not rows[kept]["ratio"]:
            assert malleable["ratio"]["low"] == malleable["ratio"]["high"] == 1
    else:
        joins = bool(malleable.get("join"))
        assert joins == malleable["reason"].startswith("joining"), malleable
        assert malleable["time_ms"] not in [row["time_ms"] for name, row in rows.items() if name != "malleable"]
        assert f"(of 1 networks {int(not joins)} run widths that were searched, {int(joins)} executors that join)" in told[0]


if __name__ == "__main__":
    main(globals())
