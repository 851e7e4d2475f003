#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README.md and docs/ tell a reader to type, open or follow exists: commands, options, experiments, networks,
files, functions and links; every experiment, policy, pass, option and cited paper is described, and the figures of README and of the
tables and sentences below are those of docs/results. No sentence is longer than a reader can hold.
Without it the pages go stale one by one. `--self-test` plants a fault of each kind and expects it to be named."""

import argparse
import fnmatch
import functools
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Files are named from the root, from src/ or from include/.
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:c|h|py|sh|md|json|txt|inc))`")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
# A link to a section, of this page where it names none.
SECTION = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
# In code: after a backquote, or at the beginning of a line of a block.
COMMAND = re.compile(r"(?:^|`)graphi ([a-z][a-z-]*)([^`|#\n]*)", re.MULTILINE)
ROWS = {"sequential", "naive", "float32", "bfloat16", "direct"}  # `graphi naive` is the name of a row of results
# A function with the file that it is in.
FUNCTION = re.compile(r"`(\w+)` \(\*\*`([\w./]+)`\*\*\)")
# A paper by its file's name, with a part of it: graphi.txt 5.1.
CITATION = re.compile(r"\b([a-z][a-z-]*\.txt)`?[),]?[\s*]+(?:§|\d|Alg|Fig|Table|[IVX]+\b)")
# Requirements that only those who wrote them down know.
REQUIREMENT = re.compile(r"\([GBR]\d+[,)]")
WRITTEN = re.compile(r"NAME|STEP|\.\./|^(?:build|ptb|cifar|DIR)/")


@functools.cache
def found_in(pattern, text):
    """All that the pattern finds. A planted fault changes one of some hundred texts."""
    return pattern.findall(text)


class Tool:
    """What the command says of itself."""

    def __init__(self, build):
        self.binary = build / "graphi"
        self.helps = {}
        overview = self.ask("--help")
        self.commands = set(re.findall(r"^  ([a-z]+) ", overview, re.MULTILINE))
        self.networks = set(re.search(r"^networks: (.*)$", overview, re.MULTILINE).group(1).split())
        self.policies = set(re.search(r"--policy NAME +one of (.*)$", self.help("run"), re.MULTILINE).group(1).split())
        self.description = self.described()
        passes = re.search(r"^  --disable PASSES +.*; all, none or (.*)$", self.help("run"), re.MULTILINE).group(1)
        self.passes = {name.lstrip("+") for name in passes.split()}
        listed = self.help("bench").split("EXPERIMENT [M...]:\n")[1].split("\n\n")[0]
        self.experiments = {line.split()[0] for line in listed.splitlines()}

    def ask(self, *words):
        return subprocess.run([self.binary, *words], capture_output=True, text=True, check=True).stdout

    def described(self):
        """The keys of a machine description."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "machine.json"
            self.ask("info", "--quiet", "--out", path)
            return sorted(json.loads(path.read_text()))

    def options(self):
        helps = (self.help(command) for command in ("train", "run", "simulate", "bench", "inspect"))
        return {option for text in helps for option in re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE)} - {"--help", "--version"}

    def help(self, command):
        if command not in self.helps:
            self.helps[command] = self.ask(*command.split(), "--help")
        return self.helps[command]


def check_commands(name, text, tool, problems):
    for command, rest in found_in(COMMAND, text):
        words = rest.split()
        if command in ROWS:
            continue
        where = f"{name}: graphi {command}{rest.rstrip()}"
        if command not in tool.commands:
            problems.append(f"{where}: found {command}, expected a command of graphi --help")
            continue
        asked = f"bench {words[0]}" if command == "bench" and words and words[0] in tool.experiments else command
        for option in re.findall(r"--[a-z-]+", rest):
            if not re.search(rf"^  {option}\b(?!-)", tool.help(asked), re.MULTILINE):
                problems.append(f"{where}: found {option}, expected an option of graphi {asked} --help")
        subject = words[0] if words and re.fullmatch(r"[a-z][a-z0-9-]*", words[0]) else None
        if subject and command == "bench" and subject not in tool.experiments:
            problems.append(f"{where}: found {subject}, expected an experiment of graphi bench --help")
        if subject and command in ("train", "eval", "profile", "run", "simulate") and subject not in tool.networks:
            problems.append(f"{where}: found {subject}, expected a network of graphi --help")


def check_files(name, text, folder, problems):
    for file in found_in(FILE, text):
        if not WRITTEN.search(file) and not any((ROOT / at / file).exists() for at in (".", "src", "include")):
            problems.append(f"{name}: found `{file}`, expected a file of the repository")
    for link in found_in(LINK, text):
        if "://" not in link and not (folder / link).exists():
            problems.append(f"{name}: found a link to {link}, expected a file")


@functools.cache
def anchors(text):
    """The sections of a page as links name them."""
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@functools.cache
def resolved(folder, link):
    return (folder / link).resolve()


def check_sections(page, pages, problems):
    for link, section in found_in(SECTION, pages[page]):
        target = resolved(page.parent, link) if link else page
        if "://" not in link and section not in anchors(pages.get(target, "")):
            problems.append(f"{page.relative_to(ROOT)}: found a link to {link}#{section}, expected a section there")


def check_functions(name, text, problems):
    for function, file in found_in(FUNCTION, text):
        path = ROOT / "src" / file
        if not path.exists() or not re.search(rf"^\w[\w *]*\b{function}\(", path.read_text(), re.MULTILINE):
            problems.append(f"{name}: found {function} in {file}, expected the file that it is in")


def check_citations(name, text, papers, problems):
    for paper in sorted(set(found_in(CITATION, text)) - papers):
        problems.append(f"{name}: found {paper}, expected a paper of docs/architecture.md")


@functools.cache
def problems_of_source(path, text, papers):
    name, problems = path.relative_to(ROOT), []
    check_citations(name, text, papers, problems)
    return problems + [f"{name}: found {number}, expected words" for number in found_in(REQUIREMENT, text)]


@functools.cache
def problems_of_page(page, text, tool, papers):
    """Those that other pages have nothing to do with: planted faults leave most pages as they are."""
    name, problems = page.relative_to(ROOT), []
    check_commands(name, text, tool, problems)
    check_files(name, text, page.parent, problems)
    check_functions(name, text, problems)
    check_citations(name, text, papers, problems)
    check_length(name, text, problems)
    return problems


@functools.cache
def rows_by_title(folder="docs/results", whats=("frameworks-*", "frameworks-*-*", "inference-*")):
    """"NETWORK SIZE MODE" -> its rows by name. Of several files that have an engine the last counts: that of fewer networks, or of inference
    alone."""
    titles = {}
    files = [file for what in whats for file in sorted((ROOT / folder).glob(what + ".json"))]
    for file in files:
        rows = [(*row["id"].split(": ", 1), row) for row in json.loads(file.read_text())["rows"]]
        for title in {title for title, _, _ in rows}:
            engines = {row["engine"] for of, _, row in rows if of == title and row["time_ms"]}
            titles[title] = {setting: row for setting, row in titles.get(title, {}).items() if row["engine"] not in engines}
        for title, setting, row in rows:
            titles[title][setting] = row
    return titles


def network_rows(*of):
    """"NETWORK SIZE MODE" -> our row, and engine -> least ratio of its settings (compiled ones of PyTorch by themselves)."""
    ours, peers = {}, {}
    for title, rows in rows_by_title(*of).items():
        for setting, row in rows.items():
            if setting == "graphi":
                ours[title] = row
            elif row["engine"] != "graphi" and row["ratio"]:
                engine = "compiled" if " compile" in setting else row["engine"]
                ratios = peers.setdefault(title, {})
                ratios[engine] = min(ratios.get(engine, math.inf), row["ratio"]["median"])
    return ours, peers


def figures_of(network, ours, peers, inference_too):
    """The numbers of a row of a table of networks in their order; those of a column that nothing was measured for are left out."""
    training, inference = peers.get(network + " training", {}), peers.get(network + " inference", {})
    gain = ours[network + " training"].get("gain", {})
    eager = [inference[name] for name in ("PyTorch", "compiled") if name in inference]
    columns = [training.get(name) for name in ("TensorFlow", "PyTorch", "compiled", "JAX")]
    columns += [gain.get(name) for name in ("kernels", "interference", "scheduling")]
    if inference_too:
        columns += [inference.get("TensorFlow"), min(eager, default=None), inference.get("JAX")]
    return [100 * ours[network + " training"]["fraction_of_limit"], *(value for value in columns if value is not None)]


FIGURES = re.compile(r"^\| ((?:lstm|phased-lstm|pathnet|googlenet) (?:small|medium|large)) \|(.*)$", re.MULTILINE)


def check_figures(name, text, expected_rows, inference_too, problems):
    """A table of networks says something else than docs/results, or lacks one of the rows."""
    ours, peers = network_rows()
    rows = FIGURES.findall(text)
    for network in sorted(expected_rows - {network for network, _ in rows}):
        problems.append(f"{name}: found no row of {network}, expected one (docs/results)")
    for network, rest in rows:
        found = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", rest)]
        expected = figures_of(network, ours, peers, inference_too)
        if len(found) != len(expected) or any(abs(a - b) > (0.51 if i == 0 else 0.0051) for i, (a, b) in enumerate(zip(found, expected))):
            told = ", ".join(f"{value:.3g}" for value in expected)
            problems.append(f"{name}: found {network} with {', '.join(map(str, found))}, expected {told} (docs/results)")


def check_networks(pages, problems):
    """README has three rows, the page of measurements all."""
    trained = {title.removesuffix(" training") for title in network_rows()[0] if title.endswith(" training")}
    check_figures("README.md", pages[ROOT / "README.md"], {"lstm small", "pathnet small", "googlenet small"}, False, problems)
    check_figures("docs/results/measured.md", pages[ROOT / "docs/results/measured.md"], trained, True, problems)


NETWORKS, SIZES = ("lstm", "phased-lstm", "pathnet", "googlenet"), ("small", "medium", "large")
MODES = ("training", "inference")


def rows_of_zen3(*whats):
    return network_rows("docs/results/zen3", whats)


def networks_of_zen3():
    """Of each network: per cent of the limit in the better hour; the times of TensorFlow, PyTorch and its compiled form over ours in training,
    then in inference."""
    ours, peers = rows_of_zen3("frameworks-small")[0], rows_of_zen3("frameworks-small-compile")[1]
    return [value for network in NETWORKS
            for value in (100 * ours[f"{network} small training"]["fraction_of_limit"],
                          *(peers[f"{network} small {mode}"][name] for mode in MODES
                            for name in ("TensorFlow", "PyTorch", "compiled")))]


def medium_of_zen3():
    """PyTorch's time over ours, training and inference: of LSTM in its best setting, in an hour before, of PhasedLSTM and GoogLeNet; then
    compiled in training."""
    peers, before = rows_of_zen3("frameworks-medium-compile")[1], rows_of_zen3("frameworks-medium-lstm")[1]
    recurrent, phased, convolutions = ([min(peers[f"{network} medium {mode}"].values()) for mode in MODES]
                                       for network in ("lstm", "phased-lstm", "googlenet"))
    return [*recurrent, *(before[f"lstm medium {mode}"]["PyTorch"] for mode in MODES), *phased, *convolutions,
            *(peers[f"{network} medium training"]["compiled"] for network in ("lstm", "phased-lstm", "googlenet"))]


def compiled_of_zen3():
    """The least and the most time of torch.compile over ours."""
    ratios = [ratios["compiled"] for ratios in rows_of_zen3("frameworks-*-compile")[1].values()]
    return [min(ratios), max(ratios)]


def googlenet_of_zen3():
    """TensorFlow's time over ours in training at medium size, per cent of the limit with direct convolutions alone."""
    ratios = rows_of_zen3("frameworks-medium")[1]["googlenet medium training"]
    return [ratios["TensorFlow"], *goals("zen3/frameworks-medium", "direct convolutions alone")]


def few_samples():
    """PyTorch's time over ours on LSTM medium, training and inference, by batch."""
    peers = network_rows("docs/results/zen3")[1]
    return [min(peers[f"lstm medium, batch {batch}, {mode}"].values()) for batch in (1, 8) for mode in MODES]


def mean_of(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def means(sizes=("", *SIZES)):
    """Geometric means over training steps of these sizes: of the best peer where TensorFlow was timed too, PyTorch eager, JAX."""
    training = {title: ratios for title, ratios in network_rows()[1].items() if title.endswith(" training")}
    found = []
    for size in sizes:
        rows = [ratios for title, ratios in training.items() if size in title]
        found.append([min(ratios.values()) for ratios in rows if "TensorFlow" in ratios])
        found += [[ratios[engine] for ratios in rows if engine in ratios] for engine in ("PyTorch", "JAX")]
    return [mean_of(values) for values in found if values]


def agreement():
    """The greatest difference of a loss or gradient: of recurrent networks, of the others."""
    found = {True: 0, False: 0}
    for title, rows in rows_by_title().items():
        recurrent = "lstm" in title
        found[recurrent] = max(found[recurrent], *(row.get("difference") or 0 for row in rows.values()))
    return [found[True], found[False]]


def grid(values):
    """In the order of a table with a row a network and a column a size; what was not measured is left out."""
    return [values[network, size] for network in NETWORKS for size in SIZES if (network, size) in values]


def first_step():
    """Seconds beyond a later step."""
    titles = {title: rows["graphi"]["load_ms"] / 1000 for title, rows in rows_by_title().items() if title.endswith(" training")}
    return grid({tuple(title.split()[:2]): value for title, value in titles.items()})


def memory():
    """Our peak memory over the leanest peer's, least and most over networks: training and inference of each size."""
    ratios = {}
    for title, rows in rows_by_title().items():
        _, size, mode = title.split()
        peers = [row["peak_rss_bytes"] for row in rows.values() if row["engine"] != "graphi" and row.get("peak_rss_bytes")]
        if peers and rows["graphi"].get("peak_rss_bytes"):
            ratios.setdefault((size, mode), []).append(rows["graphi"]["peak_rss_bytes"] / min(peers))
    groups = [ratios[size, mode] for size in SIZES for mode in ("training", "inference")]
    return [bound(group) for group in groups for bound in (min, max)]


@functools.cache
def stored(file):
    return json.loads((ROOT / f"docs/results/{file}.json").read_text())


def arena():
    """Of each network: over the live maximum, small and medium, and over the sum of intermediates."""
    plans = {row["id"].split(":")[0]: row["memory"] for size in SIZES[:2] for row in stored(f"memory-{size}")["rows"]}
    return [plans[f"{network} {size}"]["arena_bytes"] / plans[f"{network} {size}"][over]
            for network in NETWORKS for over in ("live_maximum_bytes", "sum_intermediate_bytes") for size in SIZES[:2]]


def goals(file, *parts):
    """Values of a stored result's goals that have these in their names, in the order of the parts."""
    found = [(goal["name"], goal["value"]) for goal in stored(file)["goals"]]
    return [value for part in parts for name, value in found if part in name]


def goals_of_networks(part, *files):
    found = [(goal["name"], goal["value"]) for file in files for goal in stored(file)["goals"]]
    return grid({tuple(name.split(":")[0].split()): value for name, value in found if part in name})


def waiting():
    return [100 * value for value in goals_of_networks("waiting", "waiting-medium", "waiting-large")]


def choice():
    return goals_of_networks("chosen setting over best", "sweep-small", "sweep-medium", "sweep-large-lstm", "sweep-large-phased-lstm",
                             "sweep-large-pathnet", "sweep-large-googlenet")


def short_operations():
    """Per cent of the lower bound, at 1 and 10 us: ours, OpenMP's tasks, oneTBB's flow graph, plain loops."""
    rows = {row["id"]: row for row in stored("scheduling-cost")["rows"]}
    return [100 * rows[f"{ns} ns: {what}"]["fraction_of_limit"] for ns in (1000, 10000) for what in ("scheduled", "tasks", "flow graph", "plain loops")]


def product():
    """A row a peer, a column a number of threads."""
    return goals("kernels-products", "oneDNN's time over ours", "OpenBLAS's time over ours")


def convolutions():
    algorithms, directions = ("direct convolutions", "convolutions as chosen"), ("forward", "backward data", "backward weights")
    return [value for ours in algorithms for direction in directions for value in goals("kernels", f"{ours} {direction}, one thread")]


def updates():
    """Per cent of the limit, on one thread and two: from level 3, then from memory, an optimizer each."""
    limit = {row["id"]: 100 * row["fraction_of_limit"] for row in stored("kernels-parts")["rows"] if row["id"].startswith("update")}
    return [limit[f"update, {kind} {matrix} medium, {threads}"] for kind in ("SGD", "momentum", "Adam") for matrix in ("lstm", "ptb")
            for threads in ("1 thread", "2 threads")]


def waiting_large():
    """Per cent that is lost at large size, a network each."""
    return [100 * value for value in goals("waiting-large", "scheduling and waiting")]


def waiting_joined():
    """Of PathNet medium: per cent that is lost where executors join and where they do not, the ratio of their steps, its interval."""
    result = stored("waiting-medium")
    joined, apart = (row for row in result["rows"] if row["id"].startswith("pathnet "))
    told = next(note for note in result["notes"] if note.startswith("pathnet ") and "interval" in note)
    interval = [float(number) for number in re.search(r"95 % (\S+) to (\S+)$", told).groups()]
    return [100 * joined["lost_fraction"], 100 * apart["lost_fraction"], apart["ratio"]["median"], *interval]


def kernels_behind():
    """Of kernels bound by memory that are behind oneDNN by more than 2 %, on one thread or two, the farthest first: both ratios."""
    ratios = {}
    for row in (row for file in ("kernels-memory", "kernels-parts") for row in stored(file)["rows"]):
        if row["engine"] == "graphi" and row["ratio"] and row["ratio"]["against"].endswith("oneDNN"):
            name, threads = row["id"].rsplit(", ", 1)
            ratios.setdefault(name, {})[threads] = row["ratio"]["median"]
    ratios = {name: list(both.values()) for name, both in ratios.items()}
    return [value for both in sorted(ratios.values(), key=max, reverse=True) if max(both) > 1.02 for value in both]


def sharing_driver():
    """A dedicated driver's time over combining, least and most over policies, where executors have both cores: of each size."""
    found = []
    for size in SIZES:
        times = {}
        for file in sorted((ROOT / "docs/results").glob(f"sweep-{size}*.json")):
            for row in stored(file.stem)["rows"]:
                setting = row["id"].rsplit(" ", 1)[0], row["executors"], row["width"]
                if row["time_ms"] and row["id"].endswith(row["driver"]) and row["executors"] * row["width"] == 2:
                    times.setdefault(setting, {})[row["driver"]] = row["time_ms"]["median"]
        ratios = [time["dedicated"] / time["combining"] for time in times.values() if {"dedicated", "combining"} <= time.keys()]
        found += [min(ratios), max(ratios)]
    return found


def backward_executors():
    """Ratios of the simulated machine, then those of two cores."""
    return [row["ratio"]["median"] for file in ("options-phi", "options-small") for row in stored(file)["rows"]
            if row["id"].endswith("in the backward pass")]


def inert_strategy_4():
    """Networks on which the rows s123 and s1234 of strategies are equal, and all of them."""
    rows = {row["id"]: row["time_ms"]["median"] for row in stored("strategies")["rows"] if row["time_ms"]}
    pairs = [(ms, rows[name.replace("s123", "s1234")]) for name, ms in rows.items() if name.endswith(": s123")]
    return [sum(before == after for before, after in pairs), len(pairs)]


def malleable_told():
    """What the result says of the mean over networks: a goal, or a note if there were too few rounds."""
    found = stored("policies-small")
    return next(text for text in [goal["name"] + f": {goal['value']}" for goal in found["goals"]] + found["notes"] if text.startswith("malleable over"))


def malleable_mean():
    told = malleable_told()
    return [float((re.search(r"median ([\d.]+)[:,]", told) or re.search(r": ([\d.]+)$", told)).group(1))]


def malleable_spread():
    """The interval of the mean over networks, and the least and the most that one takes."""
    found, mean = stored("policies-small"), malleable_told()
    each = [float(of.group(1)) for of in (re.search(r": malleable kept .*?, ([\d.]+) of the better", note) for note in found["notes"]) if of]
    return [float(end) for end in re.search(r"interval ([\d.]+) to ([\d.]+)", mean).groups()] + [min(each), max(each)]


# Of docs/results/measured.md: the heading of a table, and the numbers in it, row by row, without its first column.
MEASURED = {
    "Means over networks": means,
    "Do they compute the same?": agreement,
    "The first step": first_step,
    "Peak memory": memory,
    "The arena": arena,
    "A product of 64×512×512": product,
    "Convolutions": convolutions,
    "Optimizer updates": updates,
    "bfloat16": lambda: goals("bfloat16-medium", "training: times"),
    "Empty operations": lambda: goals("scheduling-cost", "inlining off", "inlining on"),
    "Short operations": short_operations,
    "Teams": lambda: goals("op-scaling", "team of two"),
    "Waiting": waiting,
    "Its choice over the best of all settings": choice,
    "Predictions": lambda: goals("simulator-error", "mean error"),
    "And without AVX-512?": networks_of_zen3,
    "Few samples": few_samples,
    "On two cores": malleable_mean,
    "On the simulated Xeon Phi": lambda: goals("strategies", "better than all", "within 5 %"),
}
TABLES = {
    "docs/results/measured.md": MEASURED,
    "docs/results/simulated.md": {"The search of the malleable policy": lambda: [100 * row["above_bound"] for row in stored("search")["rows"]]},
    "docs/results/reasons.md": {"Kernels bound by memory": kernels_behind},
}
# A page, what stands around the numbers of a sentence (a blank is also the end of a line), and the numbers in it.
SENTENCES = tuple((page, sentence.replace(" ", r"\s+"), numbers) for page, sentence, numbers in (
    ("README.md", r"geometric means are: ([^(]*)\(", lambda: means(("",))),
    ("docs/results/measured.md", r"#and-without-avx-512\):(.*?) times our time", compiled_of_zen3),
    ("docs/results/reasons.md", r"of medium size \(\[zen3/frameworks-medium-compile\]\(zen3/frameworks-medium-compile\.md\)\): it takes(.*?) times",
     compiled_of_zen3),
    ("docs/results/measured.md", r"on both of two cores \(\S+\) that took(.*?) at large", sharing_driver),
    ("docs/results/measured.md", r"twice as many executors there take(.*?), small\.", backward_executors),
    ("docs/results/simulated.md", r"are equal on(.*?)networks", inert_strategy_4),
    ("docs/results/reasons.md", r"At large size LSTM loses(.*?)[.]\n", waiting_large),
    ("docs/results/reasons.md", r"what the other one runs:(.*?)- 0\.8 of", waiting_joined),
    ("docs/results/measured.md", r"The interval of the mean is(.*?)\n", malleable_spread),
    ("docs/results/measured.md", r"Simulating costs(.*?) µs an operation",
     lambda: [ns / 1000 for ns in goals("strategies", "cost of simulation")]),
    ("docs/results/measured.md", r"direct convolutions alone \(row `graphi direct`\):(.*?) % of the limit",
     lambda: [value for result in ("frameworks-small", "frameworks-medium-googlenet")
              for value in goals(result, "direct convolutions alone")]),
    ("docs/results/measured.md", r"On average the best peer takes(.*?) in the better hour",
     lambda: [value for run in ("frameworks-small-compile", "frameworks-small") for value in goals(f"zen3/{run}", "the best peer's time over ours")]),
    ("docs/results/measured.md", r"PyTorch's best takes(.*?)TensorFlow", medium_of_zen3),
    ("docs/results/measured.md", r"TensorFlow takes(.*?) % of the limit", googlenet_of_zen3),
    ("docs/results/measured.md", r"With direct convolutions alone GoogLeNet reaches(.*?) % of the limit there",
     lambda: goals("zen3/frameworks-small", "direct convolutions alone")),
    ("docs/results/measured.md", r"with widths of their own, at most(.*?) % of a step",
     lambda: [max(goals("policies-small", "decisions of strategies"))]),
    ("docs/results/measured.md", r"on 1,024 cores at most(.*?) %",
     lambda: goals("strategies-1024", "decisions, at most")),
    ("docs/results/measured.md", r"decisions of strategies 1 to 4 take at most(.*?) % of it",
     lambda: goals("strategies", "decisions, at most")),
))


def within(told, value):
    """Is the number rounded to its last digit, or up to it?"""
    digits = re.fullmatch(r"\d+(?:\.(\d+))?(?:e(-?\d+))?", told)
    unit = 10.0 ** (int(digits.group(2) or 0) - len(digits.group(1) or ""))
    return abs(float(told) - value) <= (1 if digits.group(2) else 0.6) * unit


def compare_numbers(where, text, expected, problems):
    found = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", text)
    if len(found) != len(expected) or not all(map(within, found, expected)):
        told = ", ".join(f"{value:.3g}" for value in expected)
        problems.append(f"{where}: found {', '.join(found) or 'nothing'}, expected {told} (docs/results)")


def rows_below(heading, text):
    """The rows of the first table of a section."""
    section = re.search(rf"^#+ {re.escape(heading)}\n((?:(?!#).*\n?)*)", text, re.MULTILINE)
    table = section and re.search(r"(?:^\|.*\|\n)+", section.group(1), re.MULTILINE)
    return table.group().splitlines()[2:] if table else []


def check_tables(pages, problems):
    for name, tables in TABLES.items():
        for heading, expected in tables.items():
            cells = [cell for row in rows_below(heading, pages[ROOT / name]) for cell in row.split("|")[2:]]
            compare_numbers(f"{name}: {heading}", " ".join(cells), expected(), problems)


def check_sentences(pages, problems):
    for name, sentence, expected in SENTENCES:
        said = re.search(sentence, pages[ROOT / name], re.DOTALL)
        compare_numbers(f"{name}: {sentence}", said.group(1) if said else "", expected(), problems)


MACHINES = re.compile(r"on `machines/([\w-]+)\.json`, `([\w-]+)` and `([\w-]+)` on `…(-\w+)\.json`, figures and tables of the papers\s+"
                      r"on\s+`…(-\w+)\.json`")


def check_machines(benchmarks, problems):
    """The description that a stored result was simulated on is not the one that the page names for its experiment."""
    named = MACHINES.search(benchmarks)
    if not named:
        problems.append("docs/benchmarks.md: found no sentence on the machines of studies, expected one")
        return
    usual, first, second, siblings, papers = named.groups()
    for path in sorted((ROOT / "docs/results").glob("*.json")):
        result = stored(path.stem)
        experiment, machine = result["experiment"], result["machine"]
        if machine.get("simulated") and "--machine" not in result["argv"]:
            of_papers = re.match("figure-|table-", experiment)
            told = usual + (siblings if experiment in (first, second) else papers if of_papers else "")
            if machine["name"] != told:
                problems.append(f"docs/benchmarks.md: found {told} for {experiment}, expected {machine['name']} ({path.name})")


@functools.cache
def stems_in(folder):
    """Of its files, and of those that are C."""
    paths = list((ROOT / "src" / folder).rglob("*.*"))
    return [path.stem for path in paths], sorted({path.stem for path in paths if path.suffix in (".c", ".h")})


def check_parts(folder, architecture, problems):
    """A file of one of the folders that newcomers find hardest, in no row of its table."""
    stems, of_c = stems_in(folder)
    section = architecture.partition(f"\n## What is in `{folder}/`\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[2] for row in re.findall(r"^\|.*\|$", section, re.MULTILINE)]
    told = [name.removesuffix(".h") for row in rows for name in re.findall(r"`([\w.*]+)`", row)]
    for stem in of_c:
        if not any(fnmatch.fnmatch(stem, name) for name in told):
            problems.append(f"docs/architecture.md: found nothing on {folder}/{stem}, expected it in a row of {folder}'s files")
    problems += [f"docs/architecture.md: found `{name}` among {folder}'s files, expected one of that name" for name in told
                 if not fnmatch.filter(stems, name)]


LONGEST = 30
GENERATED = "docs/operations.md"  # its cells are summaries of src/ops, which the structure test asks for


def prose(text, cells):
    """The paragraphs, items and cells of a page; a stretch of code is one word, a link its text."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) |[#|])|(?<=\|)\n", re.sub(r"^(#.*)$", r"\n\1\n", text, flags=re.MULTILINE)):
        if part.startswith("|"):
            yield from part.split("|") if cells else ()
        elif not part.startswith("    "):
            yield part


@functools.cache
def long_sentences(text, cells=True):
    """Sentences of more than LONGEST words, their beginnings."""
    sentences = (" ".join(sentence.split()) for part in prose(text, cells)
                 for sentence in re.split(r"(?<=[.!?])[)*\"]*\s+(?=[\"(*A-Z0-9]|code)", part))
    return [sentence[:60] for sentence in sentences if len(re.findall(r"\S*\w\S*", sentence)) > LONGEST]


def check_length(name, text, problems):
    """A sentence that a newcomer reads twice. Pages of results are tables with their reasons, and left out."""
    if not name.is_relative_to("docs/results"):
        problems += [f"{name}: found a sentence of more than {LONGEST} words, expected two: {beginning}…"
                     for beginning in long_sentences(text, str(name) != GENERATED)]


def check(tool, pages, sources):
    problems = []
    architecture = pages[ROOT / "docs/architecture.md"]
    papers = frozenset(re.findall(r"^\| `([\w-]+\.txt)` \|", architecture, re.MULTILINE))
    problems += [problem for path, text in sources.items() for problem in problems_of_source(path, text, papers)]
    problems += [f"docs/architecture.md: found nothing on {name}, expected a row of every pass" for name in sorted(tool.passes)
                 if f"\n| `{name}`" not in architecture]
    for folder in ("schedule", "engine"):
        check_parts(folder, architecture, problems)
    check_networks(pages, problems)
    check_sentences(pages, problems)
    check_tables(pages, problems)
    check_machines(pages[ROOT / "docs/benchmarks.md"], problems)
    for page, text in pages.items():
        problems += problems_of_page(page, text, tool, papers)
        check_sections(page, pages, problems)
    linked = {resolved(page.parent, link) for page, text in pages.items() for link in found_in(LINK, text)}
    for page in pages:
        if page.name != "README.md" and page not in linked:
            problems.append(f"{page.relative_to(ROOT)}: found no link to it, expected one from README.md or another page")
    benchmarks = pages[ROOT / "docs/benchmarks.md"]
    described = {word for row in re.findall(r"^\| ((?:`[a-z0-9-]+`[ ,=]*)+)", benchmarks, re.MULTILINE) for word in re.findall(r"[a-z0-9-]+", row)}
    undocumented = tool.experiments - described - set(re.findall(r"`graphi bench ([a-z0-9-]+)", benchmarks))
    problems += [f"docs/benchmarks.md: found nothing on {name}, expected a word on every experiment" for name in sorted(undocumented)]
    policies = pages[ROOT / "docs/policies.md"]
    problems += [f"docs/policies.md: found nothing on {name}, expected every policy" for name in sorted(tool.policies) if f"`{name}`" not in policies]
    text = "\n".join(pages.values())
    problems += [f"docs/: found nothing on {option}, expected a word on every option" for option in sorted(tool.options())
                 if not re.search(rf"{option}\b(?!-)", text)]
    simulator = pages[ROOT / "docs/simulator.md"]
    problems += [f"docs/simulator.md: found nothing on key {key}, expected every key of a machine description"
                 for key in tool.description if f"`{key}`" not in simulator]
    return problems


FAULTS = ("`graphi nocommand lstm`", "`graphi run lstm --nonsense`", "`graphi bench no-such`", "`graphi train nonet`", "`src/engine/nothing.c`",
          " ".join(["A", *LONGEST * ["word"]]) + ".", "| a | " + " ".join(["The", *LONGEST * ["cell"]]) + " |",
          "[gone](nothing.md)", "[gone](docs/tour.md#nothing)", "`schedule_run` (**`machine/team.c`**)", "nothing.txt §3", 
          "| lstm small | 99 % | 1.39 | 1.89 / 1.74 | 2.49 | 1.29 × 1.09 × 0.99 |")

# Page, what is taken out of it.
MISSING = (("docs/policies.md", "`malleable`"), ("docs/simulator.md", "`wake_ns`"), ("docs/architecture.md", "| `recompute`"),
           ("docs/architecture.md", "`race`, "), ("docs/architecture.md", "`heap`, "))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    tool = Tool(arguments.build)
    pages = {page: page.read_text() for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]}
    sources = {path: path.read_text() for folder in ("include", "src", "bench", "tests") for path in sorted((ROOT / folder).rglob("*"))
               if path.suffix in (".c", ".h") and "external" not in path.parts}
    problems = check(tool, pages, sources)
    if arguments.self_test:
        def surplus(pages_of_it, sources_of_it=sources):
            return set(check(tool, pages_of_it, sources_of_it)) - set(problems)

        def without(page, text):
            return {**pages, ROOT / page: pages[ROOT / page].replace(text, "")}

        for fault in FAULTS:
            readme = ROOT / "README.md"
            found = surplus({**pages, readme: pages[readme] + "\n" + fault + "\n"})
            assert len(found) == 1, f"planted {fault}: found {found}, expected one problem"
        for page, text in MISSING:
            found = surplus(without(page, text))
            assert len(found) == 1, f"no {text} in {page}: found {found}, expected one problem"
        found = surplus({page: text.replace("--light", "") for page, text in pages.items()})
        assert len(found) == 1, f"no --light anywhere: found {found}, expected one problem"
        readme, benchmarks, architecture = ROOT / "README.md", ROOT / "docs/benchmarks.md", ROOT / "docs/architecture.md"
        lone = ROOT / "docs/lone.md"
        measured = ROOT / "docs/results/measured.md"
        tables = [(ROOT / name, heading) for name, headings in TABLES.items() for heading in headings]
        others = (*({page: pages[page].replace(f" {heading}\n", " gone\n")} for page, heading in tables),
                  *({page: pages[page].replace(rows_below(heading, pages[page])[-1] + "\n", "")} for page, heading in tables),
                  *({ROOT / name: re.sub(f"(?s){sentence}", "gone", pages[ROOT / name])} for name, sentence, _ in SENTENCES),
                  {measured: pages[measured].replace("0.96 and 0.97", "0.94 and 0.97")},
                  {measured: re.sub(r"(that took [\d.]+\s+to) [\d.]+", r"\1 9.99", pages[measured])},
                  {measured: re.sub(r"\| 1\.4e-4 \|", "| 1e-9 |", pages[measured])},
                  {measured: re.sub(r"^\| all \| [\d.]+", "| all | 9.99", pages[measured], flags=re.MULTILINE)},
                  {readme: pages[readme].replace("eometric means are: ", "eometric means are: 9.99 ")},
                  {measured: re.sub(r"^\| googlenet large \|.*\n", "", pages[measured], flags=re.MULTILINE)},
                  {architecture: pages[architecture].replace("`race`, ", "`race`, `gone`, ")},
                  {benchmarks: pages[benchmarks].replace("`strategies` and `search` on", "`strategies` and `options` on")},
                  {benchmarks: pages[benchmarks].replace("| `memory` |", "| |")}, {lone: "nobody leads here"},
                  {readme: re.sub(r"^\| lstm small \|.*\n", "", pages[readme], flags=re.MULTILINE)})
        for change in others:
            found = surplus({**pages, **change})
            assert found, f"planted a change of {', '.join(str(page.name) for page in change)}: found no problem, expected one"
        header = ROOT / "include/graphi/plan.h"
        for fault in ("/* Tuning (G3). */", "/* nothing.txt 3.2 */"):
            found = surplus(pages, {**sources, header: sources[header] + fault})
            assert len(found) == 1, f"planted {fault}: found {found}, expected one problem"
        print(f"{len(FAULTS) + len(MISSING) + 3 + len(others)} planted faults found")
        return 0
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(pages)} pages, {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
