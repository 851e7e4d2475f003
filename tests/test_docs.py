#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README.md and docs/ tell a reader to type, open or follow exists: commands, options, experiments, networks,
files and links; every experiment, policy and option is described, and the figures of README's table of networks are those of docs/results.
Without it the pages go stale one by one. `--self-test` plants a fault of each kind and expects it to be named."""

import argparse
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
# In code: after a backquote, or at the beginning of a line of a block.
COMMAND = re.compile(r"(?:^|`)graphi ([a-z][a-z-]*)([^`|#\n]*)", re.MULTILINE)
ROWS = {"sequential", "naive", "float32", "bfloat16", "direct"}  # `graphi naive` is the name of a row of results
WRITTEN = re.compile(r"NAME|STEP|\.\./|^(?:build|ptb|cifar|DIR)/")


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
        self.experiments = set(self.help("bench").split("EXPERIMENT [M...]:\n")[1].split("\n\n")[0].split())

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
            self.helps[command] = self.ask(command, "--help")
        return self.helps[command]


def check_commands(name, text, tool, problems):
    for command, rest in COMMAND.findall(text):
        words = rest.split()
        if command in ROWS:
            continue
        where = f"{name}: graphi {command}{rest.rstrip()}"
        if command not in tool.commands:
            problems.append(f"{where}: found {command}, expected a command of graphi --help")
            continue
        for option in re.findall(r"--[a-z-]+", rest):
            if not re.search(rf"^  {option}\b(?!-)", tool.help(command), re.MULTILINE):
                problems.append(f"{where}: found {option}, expected an option of graphi {command} --help")
        subject = words[0] if words and re.fullmatch(r"[a-z][a-z0-9-]*", words[0]) else None
        if subject and command == "bench" and subject not in tool.experiments:
            problems.append(f"{where}: found {subject}, expected an experiment of graphi bench --help")
        if subject and command in ("train", "eval", "profile", "run", "simulate") and subject not in tool.networks:
            problems.append(f"{where}: found {subject}, expected a network of graphi --help")


def check_files(name, text, folder, problems):
    for file in FILE.findall(text):
        if not WRITTEN.search(file) and not any((ROOT / at / file).exists() for at in (".", "src", "include")):
            problems.append(f"{name}: found `{file}`, expected a file of the repository")
    for link in LINK.findall(text):
        if "://" not in link and not (folder / link).exists():
            problems.append(f"{name}: found a link to {link}, expected a file")


def network_rows():
    """"NETWORK SIZE MODE" -> our row, and engine -> least ratio of its settings (compiled ones of PyTorch by themselves). Of several files
    the one of fewer networks counts, and that of inference alone."""
    ours, peers = {}, {}
    files = [file for what in ("frameworks-*", "frameworks-*-*", "inference-*") for file in sorted((ROOT / "docs/results").glob(what + ".json"))]
    for file in files:
        rows = [(*row["id"].split(": ", 1), row) for row in json.loads(file.read_text())["rows"]]
        for title in {title for title, _, _ in rows}:
            peers.pop(title, None)
        for title, setting, row in rows:
            if setting == "graphi":
                ours[title] = row
            elif row["engine"] != "graphi" and row["ratio"]:
                engine = "compiled" if " compile" in setting else row["engine"]
                ratios = peers.setdefault(title, {})
                ratios[engine] = min(ratios.get(engine, math.inf), row["ratio"]["median"])
    return ours, peers


def figures_of(network, ours, peers):
    """The numbers of a row of README's table in their order; those of a column that nothing was measured for are left out."""
    training, inference = peers.get(network + " training", {}), peers.get(network + " inference", {})
    gain = ours[network + " training"].get("gain", {})
    eager = [inference[name] for name in ("PyTorch", "compiled") if name in inference]
    columns = [training.get(name) for name in ("TensorFlow", "PyTorch", "compiled", "JAX")]
    columns += [gain.get(name) for name in ("kernels", "interference", "scheduling")]
    columns += [inference.get("TensorFlow"), min(eager, default=None), inference.get("JAX")]
    return [100 * ours[network + " training"]["fraction_of_limit"], *(value for value in columns if value is not None)]


def check_figures(name, text, problems):
    ours, peers = network_rows()
    for network, rest in re.findall(r"^\| ((?:lstm|phased-lstm|pathnet|googlenet) (?:small|medium|large)) \|(.*)$", text, re.MULTILINE):
        found = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", rest)]
        expected = figures_of(network, ours, peers)
        if len(found) != len(expected) or any(abs(a - b) > (0.51 if i == 0 else 0.0051) for i, (a, b) in enumerate(zip(found, expected))):
            told = ", ".join(f"{value:.3g}" for value in expected)
            problems.append(f"{name}: found {network} with {', '.join(map(str, found))}, expected {told} (docs/results)")


def mean_of(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def check_means(name, text, problems):
    """The geometric means over that table: of the best peer where TensorFlow was timed too (all, small, medium, large), of PyTorch
    eager, of JAX."""
    line = re.search(r"\| by this table: ([^|]*)\|", text)
    if not line:
        return
    networks = re.findall(r"^\| ((?:lstm|phased-lstm|pathnet|googlenet) (?:small|medium|large)) \|", text, re.MULTILINE)
    peers = network_rows()[1]
    training = {network: peers.get(network + " training", {}) for network in networks}
    best = {network: min(ratios.values()) for network, ratios in training.items() if "TensorFlow" in ratios}
    expected = [mean_of([value for network, value in best.items() if network.endswith(size)]) for size in ("", "small", "medium", "large")]
    expected += [mean_of([ratios[engine] for ratios in training.values() if engine in ratios]) for engine in ("PyTorch", "JAX")]
    found = re.findall(r"\d+\.\d+", line.group(1))
    if len(found) != len(expected) or any(abs(float(a) - b) > 0.6 * 0.1 ** len(a.split(".")[1]) for a, b in zip(found, expected)):
        problems.append(f"{name}: found means {', '.join(found)}, expected {', '.join(f'{value:.3g}' for value in expected)} (docs/results)")


def check(tool, pages):
    problems = []
    check_figures("README.md", pages[ROOT / "README.md"], problems)
    check_means("README.md", pages[ROOT / "README.md"], problems)
    for page, text in pages.items():
        name = page.relative_to(ROOT)
        check_commands(name, text, tool, problems)
        check_files(name, text, page.parent, problems)
    linked = {(page.parent / link).resolve() for page, text in pages.items() for link in LINK.findall(text)}
    for page in pages:
        if page.name != "README.md" and page not in linked:
            problems.append(f"{page.relative_to(ROOT)}: found no link to it, expected one from README.md or another page")
    undocumented = tool.experiments - set(re.findall(r"[a-z0-9-]+", (ROOT / "docs/benchmarks.md").read_text()))
    problems += [f"docs/benchmarks.md: found nothing on {name}, expected a word on every experiment" for name in sorted(undocumented)]
    profiler = pages[ROOT / "docs/profiler.md"]
    problems += [f"docs/profiler.md: found nothing on {name}, expected every policy" for name in sorted(tool.policies) if f"`{name}`" not in profiler]
    text = "\n".join(pages.values())
    problems += [f"docs/: found nothing on {option}, expected a word on every option" for option in sorted(tool.options())
                 if not re.search(rf"{option}\b(?!-)", text)]
    simulator = pages[ROOT / "docs/simulator.md"]
    problems += [f"docs/simulator.md: found nothing on key {key}, expected every key of a machine description"
                 for key in tool.description if f"`{key}`" not in simulator]
    return problems


FAULTS = ("`graphi nocommand lstm`", "`graphi run lstm --nonsense`", "`graphi bench no-such`", "`graphi train nonet`", "`src/engine/nothing.c`",
          "[gone](nothing.md)", "| lstm small | 99 % | 1.39 | 1.89 / 1.74 | 2.49 | 1.29 × 1.09 × 0.99 | 1.23, 1.12, 1.93 |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    tool = Tool(arguments.build)
    pages = {page: page.read_text() for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}
    problems = check(tool, pages)
    if arguments.self_test:
        for fault in FAULTS:
            readme = ROOT / "README.md"
            found = set(check(tool, {**pages, readme: pages[readme] + "\n" + fault + "\n"})) - set(problems)
            assert len(found) == 1, f"planted {fault}: found {found}, expected one problem"
        profiler = ROOT / "docs/profiler.md"
        found = set(check(tool, {**pages, profiler: pages[profiler].replace("`malleable`", "")})) - set(problems)
        assert len(found) == 1, f"no malleable in profiler.md: found {found}, expected one problem"
        found = set(check(tool, {page: text.replace("--light", "") for page, text in pages.items()})) - set(problems)
        assert len(found) == 1, f"no --light anywhere: found {found}, expected one problem"
        simulator = ROOT / "docs/simulator.md"
        found = set(check(tool, {**pages, simulator: pages[simulator].replace("`wake_ns`", "")})) - set(problems)
        assert len(found) == 1, f"no wake_ns in simulator.md: found {found}, expected one problem"
        print(f"{len(FAULTS) + 3} planted faults found")
        return 0
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(pages)} pages, {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
