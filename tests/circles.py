# SPDX-License-Identifier: Apache-2.0
"""Who needs whom among the files of src/: by calls, as the object files of a build tell, and by includes. A file is a .c with
the header of its name; a header without a .c is passed through: whoever includes it includes what it includes."""
import json
import re
import shlex
import subprocess
from collections import defaultdict
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def objects_of(build, root):
    """(object, file of src/ without suffix), of every compilation of the build that is at hand."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(entry["file"])
        if root / "src" in file.parents:
            words = shlex.split(entry["command"])
            path = Path(entry["directory"]) / words[words.index("-o") + 1]
            if path.exists():
                yield path, str(file.relative_to(root / "src").with_suffix(""))


def symbols(pairs):
    """Of object files: symbol -> file that defines it, file -> symbols that it uses."""
    owner, uses = {}, defaultdict(set)
    names = {str(path): file for path, file in pairs}
    lines = subprocess.run(["nm", "-A", *names], check=True, capture_output=True, text=True).stdout.splitlines() if names else []
    for line in lines:
        path, rest = line.split(":", 1)
        kind, symbol = rest.split()[-2:]
        if kind == "U":
            uses[names[path]].add(symbol)
        elif kind in "TDRBCGS":
            owner[symbol] = names[path]
    return owner, uses


def calls(pairs):
    """file -> files whose functions or tables it names."""
    owner, uses = symbols(pairs)
    return {file: {owner[symbol] for symbol in uses[file] if symbol in owner} - {file} for file in set(owner.values()) | set(uses)}


def headers_of(path, root):
    for header in INCLUDE.findall(path.read_text()):
        for base in (root / "src", path.parent):
            if (base / header).exists():
                yield base / header
                break


def includes(root):
    """file -> files whose headers it includes."""
    direct, units = defaultdict(set), set()
    for path in sorted((root / "src").rglob("*.[ch]")):
        file = str(path.relative_to(root / "src").with_suffix(""))
        direct[file] |= {str(h.relative_to(root / "src").with_suffix("")) for h in headers_of(path, root)}
        if path.suffix == ".c":
            units.add(file)

    def reached(file):
        seen, todo, found = set(), list(direct[file]), set()
        while todo:
            name = todo.pop()
            if name in units:
                found.add(name)
            elif name not in seen:
                seen.add(name)
                todo += direct[name]
        return found - {file}
    return {file: reached(file) for file in units}


def circles(edges):
    """Sets of two and more files that all reach each other (Tarjan, without recursion)."""
    index, low, stack, found = {}, {}, [], []
    for root in sorted(edges):
        work = [] if root in index else [(root, iter(sorted(edges[root])))]
        if work:
            index[root] = low[root] = len(index)
            stack.append(root)
        while work:
            file, rest = work[-1]
            for to in rest:
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    work.append((to, iter(sorted(edges.get(to, ())))))
                    break
                if to in stack:
                    low[file] = min(low[file], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[file])
                if low[file] == index[file]:
                    at = stack.index(file)
                    if len(stack) - at > 1:
                        found.append(frozenset(stack[at:]))
                    del stack[at:]
    return found
