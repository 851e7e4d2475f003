#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of src/ that the programs of a coverage build have run, by gcov alone: a table of folders; with --files also of files; with
--lines also each line that was never run. A file that is compiled for several instruction sets counts as run where one of them ran it.

usage: tools/coverage.py [--build build/coverage] [--files] [--lines] [FOLDER-OR-FILE...]      e.g. --lines src/train
The build: cmake --preset coverage && cmake --build build/coverage, then tests: ctest --test-dir build/coverage -LE long
Counts add up from run to run; --reset makes them zero."""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent


def gcov(notes):
    """What gcov says of some objects: one JSON document a line."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", *map(str, notes)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line]


def counts(build):
    """{file: {line: times run}} of the files below src/."""
    notes = sorted(path for path in build.rglob("*.gcno") if "/src/" in str(path))
    if not notes:
        sys.exit(f"coverage: found no .gcno below {build}, expected a build of cmake --preset coverage")
    parts = [notes[i:i + 16] for i in range(0, len(notes), 16)]
    found = collections.defaultdict(lambda: collections.defaultdict(int))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for documents in pool.map(gcov, parts):
            for file in (file for document in documents for file in document["files"]):
                path = Path(file["file"]) # absolute, by -fprofile-abs-path
                if path.is_relative_to(SOURCE / "src"):
                    lines = found[path.relative_to(SOURCE)]
                    for line in file["lines"]:
                        lines[line["line_number"]] += line["count"]
    return found


def row(name, lines):
    ran = sum(1 for count in lines if count)
    print(f"{name:<40} {len(lines):>7} {len(lines) - ran:>8} {100 * ran / len(lines):>7.1f} %")


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words.add_argument("--build", type=Path, default=SOURCE / "build/coverage")
    words.add_argument("--files", action="store_true", help="a row a file")
    words.add_argument("--lines", action="store_true", help="and the lines that were never run")
    words.add_argument("--reset", action="store_true", help="forget what has run")
    words.add_argument("paths", nargs="*", type=Path, default=[Path("src")])
    chosen = words.parse_args()
    if chosen.reset:
        for path in chosen.build.rglob("*.gcda"):
            path.unlink()
        return
    found = {path: lines for path, lines in sorted(counts(chosen.build).items())
             if any(path.is_relative_to(wanted) for wanted in chosen.paths)}
    if not found:
        sys.exit(f"coverage: found no source below {', '.join(map(str, chosen.paths))}, expected some of src/")
    print(f"{'':<40} {'lines':>7} {'not run':>8} {'run':>9}")
    folders = collections.defaultdict(list)
    for path, lines in found.items():
        folders[path.parent].extend(lines.values())
        if chosen.files or chosen.lines:
            row(str(path), lines.values())
        if chosen.lines:
            text = (SOURCE / path).read_text().splitlines()
            for number in sorted(number for number, count in lines.items() if not count):
                print(f"{number:>7}  {text[number - 1] if number <= len(text) else '(changed since it was built)'}")
    for folder, lines in folders.items():
        row(f"{folder}/", lines)
    row("all", [count for lines in folders.values() for count in lines])


if __name__ == "__main__":
    main()
