#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what a compiler does not: that layers include only what they know, that the exported symbols are those of the
public headers, that generated files are current, that files are short, licensed, that messages have their one form, and that
what is written past the caches is; that rooms have one direction and that no files need each other in a circle (circles.py).

Each check takes the tree as an argument; --self-test gives each a copy of the tree with one planted fault and fails
unless the check finds it. The table KNOWS below is the table of layers of docs/architecture.md.

usage: test_structure.py --source DIR --build DIR [--self-test]"""
import argparse
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import circles

# Folder under src/ -> layers whose headers it may include, and through them whatever those know.
KNOWS = {
    "base": [],
    "kernels": ["base"],
    "machine": ["base"],
    "schedule": ["machine"],
    "graph": ["base"],
    "ops": ["graph", "kernels"],
    "passes": ["graph", "ops"],
    "engine": ["passes", "schedule"],
    "train": ["engine"],
    "dynamic": ["train"],
    "group": ["train"],
    "mpi": ["group"],  # what a transport is
    "value": ["base"],
    "onnx": ["value"],
    "flow": ["onnx"],  # and the engine by its public API
    "session": ["flow"],
    "models": [],  # the public API only, the macros of base/status.h, and the floating-point mode
    "tool": [],    # the public API only, the names of temporary files, and what text is
    "cli": ["tool"],
}
# Folders inside a layer: each may include and call those before it, and itself.
ROOMS = {"engine": ["cost", "compile", "choose", "run", "tune", "show"]}
EXTRA = {"models": {"base/status.h", "base/float_mode.h"}, "tool": {"base/temporary.h", "base/utf8.h"}, "cli": {"base/temporary.h"}}
# Folders beside src/: benchmarks use the public API and what they share with the command, examples what is installed.
OUTSIDE = {"bench": re.compile(r"^(graphi/|tool/|peers/|frameworks/|rows/|lib/)"),
           "examples": re.compile(r"^graphi/")}
# Writes a table that the kernels include, so it measures kernels, not the library.
INSIDE = {"bench/conv_table.c"}

# A program that builds, trains, feeds and serves needs the core alone. Every binding wraps each of its functions by hand, and
# 110 contracts are an afternoon's reading: what would make it more is a companion, or one function too many. The inline builders
# of ops.h are not counted.
CORE_MOST = 110
# For who studies or steers schedules, trains by the library's loop, builds recurrent networks, or runs models of others. Each is one
# concept on one page: 12 functions at most.
COMPANIONS = {"attention.h", "checkpoint.h", "curves.h", "event.h", "generate.h", "group.h", "profile.h", "simulate.h", "lease.h", "place.h",
              "recurrent.h", "train.h", "session.h", "tensor.h", "trees.h", "frontier.h", "dynamic.h"}
COMPANION_MOST = 12
LINES_MOST = 800
COLUMNS_MOST = 120  # of C and C++: as .clang-format says
PAGE_COLUMNS_MOST = 140  # of pages, in characters; their tables aside
GENERATED = {"include/graphi/ops.h"}
FOLDERS = ("src", "include", "tests", "tools", "bench", "cmake", "examples", "python", ".ci")
COPIED = ("src", "include", "bench", "docs", "examples")  # what faults are planted in
SUFFIXES = {".c", ".h", ".cpp", ".py", ".sh", ".cmake", ".html", ".in"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def known(layer):
    """The layer, what it knows, and what those know."""
    seen, todo = set(), [layer]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += KNOWS[name]
    return seen


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES and "__pycache__" not in path.parts:
                yield path
    for name in ("CMakeLists.txt", "Makefile"):
        if (root / name).exists():
            yield root / name


def check_layers(root, build):
    """A layer that includes upwards makes the lower one impossible to build, test and understand alone."""
    problems = []
    for layer in sorted(p.name for p in (root / "src").iterdir() if p.is_dir()):
        if layer not in KNOWS:
            problems.append(f"src/{layer}: found a layer without a line in KNOWS, expected one")
            continue
        allowed = known(layer) | {"graphi"}
        for path in sorted((root / "src" / layer).rglob("*.[ch]")):
            for header in INCLUDE.findall(path.read_text()):
                if header in EXTRA.get(layer, ()) or header.split("/")[0] in allowed and "/" in header:
                    continue
                if (path.parent / header).exists() and ".." not in header:
                    continue
                problems.append(f"{path.relative_to(root)}: found \"{header}\", expected a header of {', '.join(sorted(allowed))}")
    for folder, pattern in OUTSIDE.items():
        for path in sorted((root / folder).rglob("*.[ch]*")):
            if str(path.relative_to(root)) in INSIDE:
                continue
            for header in INCLUDE.findall(path.read_text()):
                if not pattern.match(header) and "/" in header or ".." in header:
                    problems.append(f"{path.relative_to(root)}: found \"{header}\", expected public headers")
    return problems


def room_of(file):
    """The place of its room in the layer's order; -1: it is in none."""
    layer, *inner = file.split("/")
    return ROOMS[layer].index(inner[0]) if layer in ROOMS and len(inner) > 1 and inner[0] in ROOMS[layer] else -1


def check_rooms(root, build):
    """A room that knows a later one cannot be built, tested and understood before it, as layers."""
    problems, climbing = [], set()
    needs = circles.calls(list(circles.objects_of(build, root)))
    for path in sorted((root / "src").rglob("*.[ch]")):
        file = str(path.relative_to(root / "src"))
        needs.setdefault(file, set()).update(str(h.relative_to(root / "src")) for h in circles.headers_of(path, root))
    for file, others in needs.items():
        climbing |= {f"{file}:{to}" for to in others if to.split("/")[0] == file.split("/")[0] and room_of(to) > room_of(file)}
    for pair in sorted(climbing):
        problems.append(f"src/{pair.replace(':', ': found that it calls or includes ')}, expected rooms before its own alone")
    for layer, rooms in ROOMS.items():
        for path in sorted((root / "src" / layer).iterdir()):
            if path.name not in rooms:
                problems.append(f"{path.relative_to(root)}: found outside of the rooms, expected one of {', '.join(rooms)}")
    return problems


def check_circles(root, build):
    """Files that need each other cannot be understood, tested or replaced one at a time."""
    problems = []
    relations = {"calls": circles.calls(list(circles.objects_of(build, root))), "includes": circles.includes(root)}
    for relation, edges in relations.items():
        inside = {file: {to for to in edges[file] if to.split("/")[0] == file.split("/")[0]} for file in edges}
        for circle in sorted(map(sorted, circles.circles(inside))):
            problems.append(f"src/: found that {', '.join(circle)} need each other by {relation}, expected no circle")
    return problems


def check_headers(root, build):
    """What others call is told in the header of its file: else a reader has to search for it, and a file has many contracts."""
    problems, called = [], {}
    public = "".join(path.read_text() for path in (root / "include").rglob("*.h"))
    owner, uses = circles.symbols(list(circles.objects_of(build, root)))
    for file, names in uses.items():
        for name in names:
            if owner.get(name, file) != file and owner[name].split("/")[0] in ROOMS and not re.search(rf"\b{name}\b", public):
                called.setdefault(owner[name], set()).add(name)
    for file, names in sorted(called.items()):
        header = root / "src" / f"{file}.h"
        text = header.read_text() if header.exists() else ""
        problems += [f"src/{file}.c: found no {name} in {header.name}, expected its contract, since others call it"
                     for name in sorted(names) if not re.search(rf"\b{name}\b", text)]
    return problems


def check_table_of_layers(root, build):
    """What the page says that a layer knows is what is checked above; else a reader learns another architecture."""
    problems, page = [], (root / "docs" / "architecture.md").read_text()
    for layer, rooms in ROOMS.items():
        told = re.findall(rf"^\| `{layer}/(\w+)/` \|", page, re.M)
        if told != rooms:
            problems.append(f"docs/architecture.md: found the rooms {told} of {layer}, expected {rooms}")
    table = {layer: told for layer, told in re.findall(r"^\| `(\w+)/` \|[^|]*\| ([^|]*) \|$", page, re.M)}
    for layer in sorted(KNOWS.keys() | table.keys()):
        expected = KNOWS.get(layer, []) or (["public API"] if layer in EXTRA else ["nothing"])
        expected = ", ".join([*expected, *(f"`{header}`" for header in sorted(EXTRA.get(layer, ())))])
        if layer not in KNOWS or table.get(layer) != expected:
            problems.append(f"docs/architecture.md: found layer {layer} that knows {table.get(layer)}, expected {expected}")
    return problems


def declared(root, headers="*.h"):
    names = set()
    for header in sorted((root / "include" / "graphi").glob(headers)):
        text = re.sub(r"/\*.*?\*/|^[ \t]*#[^\n]*", "", header.read_text(), flags=re.S | re.M)
        names.update(re.findall(r"GRAPHI_API\s+[^;(]*?\b(\w+)\s*\(", text))
    return names


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1].split("@")[0] for line in lines.splitlines()}
    return {n for n in names if not n.startswith(("__odr_asan", "__asan", "__tsan", "__ubsan", "__sanitizer"))}


def check_exports(root, build):
    """A symbol that no header declares is an accident that users come to rely on; a declared one that is not exported
    does not link."""
    found, expected = exported(build / "libgraphi.so"), declared(root)
    problems = [f"libgraphi.so: found {name}, expected only what include/graphi declares" for name in sorted(found - expected)]
    problems += [f"libgraphi.so: found no {name}, expected what include/graphi declares" for name in sorted(expected - found)]
    companions = {header: declared(root, header) for header in COMPANIONS}
    core = expected.difference(*companions.values())
    if len(core) > CORE_MOST:
        problems.append(f"include/graphi: found {len(core)} functions of the core, expected at most {CORE_MOST}")
    for header, names in sorted(companions.items()):
        if len(names) > COMPANION_MOST:
            problems.append(f"include/graphi/{header}: found {len(names)} functions, expected at most {COMPANION_MOST}")
    return problems


def check_nulls(root, build):
    """A function that test_nulls.c does not call with NULLs may crash on them, and nobody would know."""
    text = (Path(__file__).parent / "test_nulls.c").read_text()
    return [f"tests/test_nulls.c: found no call of {name}, expected it with NULL for each of its pointers"
            for name in sorted(declared(root)) if not re.search(rf"\b{name}\(", text)]


def check_generated(root, build):
    """Builders or documents that lag behind the table of operations."""
    problems = []
    for what, name in (("header", "include/graphi/ops.h"), ("docs", "docs/operations.md")):
        fresh = subprocess.run([build / "generate_ops", what], check=True, capture_output=True, text=True).stdout
        path = root / name
        if not path.exists() or path.read_text() != fresh:
            problems.append(f"{name}: found other text than generate_ops {what} prints, expected the same (make docs)")
    return problems


def check_files(root, build):
    """Files that hold two ideas, and files without a licence."""
    problems = []
    for path in sources(root):
        name = str(path.relative_to(root))
        text = path.read_text()
        lines = text.count("\n")
        if lines > LINES_MOST and name not in GENERATED:
            problems.append(f"{name}: found {lines} lines, expected at most {LINES_MOST}")
        if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.split("\n")[:4]):
            problems.append(f"{name}: found no SPDX line, expected one on top")
    return problems


def check_columns(root, build):
    """Lines that a reader must scroll, or that wrap in a review."""
    problems = []
    for path in sources(root):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if path.suffix in {".c", ".h", ".cpp"} and len(line) > COLUMNS_MOST:
                problems.append(f"{path.relative_to(root)}:{number}: found {len(line)} columns, expected at most {COLUMNS_MOST}")
    for path in [*sorted((root / "docs").glob("*.md")), root / "README.md", root / "CHANGES.md"]:
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if len(line) > PAGE_COLUMNS_MOST and not line.startswith("|"):  # a row of a table is one line
                problems.append(f"{path.relative_to(root)}:{number}: found {len(line)} columns, expected at most {PAGE_COLUMNS_MOST}")
    return problems


WALL_CLOCK = re.compile(r"\b(time\(NULL\)|CLOCK_REALTIME|gettimeofday)")


def check_clocks(root, build):
    """A clock that somebody sets must not hold up or hasten anything: progress stayed away for the hour it was set back."""
    problems = []
    for path in sorted((root / "src").rglob("*.[ch]")):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if WALL_CLOCK.search(line):
                problems.append(f"{path.relative_to(root)}:{number}: found the time of day, expected clock_ns() or report_seconds()")
    return problems


HEAP = re.compile(r"\b(malloc|calloc|realloc|reallocarray|strn?dup|v?asprintf|aligned_alloc|posix_memalign|getline|open_memstream) *\(")


def check_heap(root, build):
    """What the library allocates past its own allocator is neither counted nor made to fail by tests. The command links the C library's."""
    problems = []
    for path in sorted((root / "src").rglob("*.[ch]")):
        layer = path.relative_to(root / "src").parts[0]
        if layer in ("tool", "cli") or path == root / "src/base/memory.c":
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if HEAP.search(line):
                problems.append(f"{path.relative_to(root)}:{number}: found {HEAP.search(line).group(1)}, expected base/memory.h")
    return problems


TEMPORARY = re.compile(r"\b(mkd?s?temps?|mkostemps?|tmpfile|tmpnam|tempnam) *\(")


def check_temporary(root, build):
    """A test that makes a temporary file by itself leaves it where TMPDIR does not point, and behind when it fails half-way."""
    problems = []
    for path in sorted((root / "tests").glob("*.[ch]")):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if path.name != "folder.h" and TEMPORARY.search(line):
                problems.append(f"tests/{path.name}:{number}: found {TEMPORARY.search(line).group(1)}, expected folder_make() of folder.h")
    return problems


CALL = re.compile(r'\b(?:fail|report_error)\(\s*(GRAPHI_\w+),')
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def arguments_of(text, start):
    """The text up to the parenthesis that closes the call whose arguments begin at `start`."""
    depth, at, quoted = 1, start, False
    while at < len(text) and depth:
        c = text[at]
        if quoted and c == "\\":
            at += 1
        elif c == '"':
            quoted = not quoted
        elif not quoted:
            depth += (c == "(") - (c == ")")
        at += 1
    return text[start:at - 1]


def check_messages(root, build):
    """Scripts and people read `CODE: WHERE: found X, expected Y`; a message that says less helps nobody."""
    problems = []
    for folder in ("src", "bench"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            text = path.read_text()
            for match in CALL.finditer(text):
                inside = arguments_of(text, match.end())
                words = " ".join(STRING.findall(inside))
                if match.group(1) == "GRAPHI_INTERRUPTED" or not words:
                    continue
                if "found" not in words or "expected" not in words:
                    line = text.count("\n", 0, match.start()) + 1
                    problems.append(f"{path.relative_to(root)}:{line}: found the message '{words}', expected 'found X, expected Y'")
    return problems


CLASS = re.compile(r"^\s+\{(\d+), (\d+), (\d+), (\d+), (\d+)\},$", re.M)
LINE = re.compile(r"^\{(CONV_FORWARD|CONV_BACKWARD_DATA|CONV_BACKWARD_WEIGHTS), (\d+), (\d+), (\d+), (\d+), (\d+), "
                  r"\{\{0, 100, (\d+), (\d+), (\d+)\}, \{0, (\d+), (\d+), (\d+), (\d+)\}\}\},$")


def check_table(root, build):
    """Convolutions whose class is missing would take the algorithm of some other shape, and nobody would see it."""
    name = "src/kernels/conv_table.inc"
    classes = CLASS.findall((root / "bench/conv_table.c").read_text())
    heading, _, rest = (root / name).read_text().partition("*/\n{")
    problems = [] if "Graphi " in heading else [f"{name}: found no version in the heading, expected what bench/conv_table.c writes"]
    found = []
    for number, line in enumerate(("{" + rest).splitlines(), heading.count("\n") + 2):
        match = LINE.match(line)
        if not match:
            problems.append(f"{name}:{number}: found '{line}', expected a line of bench/conv_table.c")
            continue
        found.append(match.groups()[:6])
        times = [int(t) for t in match.groups()[6:]]
        points4 = match.group(2) == "3"  # tiles of 4 points are for 3 x 3 windows alone
        if any((time == 0) != (i in (0, 4) and not points4) or time > 1000 for i, time in enumerate(times)):
            problems.append(f"{name}:{number}: found times {times}, expected per cent where the algorithm exists")
    wanted = [(d, *c) for d in ("CONV_FORWARD", "CONV_BACKWARD_DATA", "CONV_BACKWARD_WEIGHTS") for c in classes]
    if found != wanted:
        differs = sorted(set(found) ^ set(wanted)) or ["another order"]
        problems.append(f"{name}: found {len(found)} classes, expected the {len(wanted)} of bench/conv_table.c; first: {differs[0]}")
    return problems


BENCH = re.compile(r'`graphi bench ([\w-]+)([^`]*)`')


def check_benchmarks(root, build):
    """Comments that say which benchmark shows what a constant does, where there is no such benchmark or row."""
    problems = []
    rows = "".join(p.read_text() for p in [root / "bench/kernels.c", *sorted((root / "bench/rows").glob("*.c"))])
    for path in sorted((root / "src").rglob("*.[ch]")):
        for name, words in BENCH.findall(re.sub(r"\n *\* *", " ", path.read_text())):
            where = path.relative_to(root)
            if name != "inference" and not (root / "bench" / f"{name.replace('-', '_')}.c").exists():
                problems.append(f"{where}: found the benchmark '{name}', expected one of bench/")
            for word in re.findall(r'[^\s"]+', words) if name == "kernels" else []:
                if word not in rows:
                    problems.append(f"{where}: found the word '{word}', expected a part of the name of a row of bench kernels")
    return problems


def check_quoted(root, build):
    """The linker splits the lines of its file of objects at blanks: in a path with one the build would fail at its end."""
    lines = (build / "merged/objects.rsp").read_text().splitlines()
    return [f"merged/objects.rsp:{number}: found {line}, expected one path in quotes" for number, line in enumerate(lines, 1)
            if not re.fullmatch(r'"[^"]+"', line)]


STREAMED = {**{f"isa_{isa}.dir/src/kernels/isa/{name}.c.o": "vstream" for isa in ("avx2", "avx512")
               for name in ("norm_run", "pool_run", "program_run", "softmax_run")}, "layer_kernels.dir/src/kernels/copy.c.o": "_mm_stream_si128"}
STREAMING = re.compile(r"\tv?movnt(ps|dq|pd|i)\b")
X86 = platform.machine() in ("x86_64", "AMD64")
STREAMS = X86 and shutil.which("objdump")


def check_streaming(root, build):
    """An ordinary store in place of a streaming one gives the same bits: nothing but time would tell."""
    problems = []
    for name, function in STREAMED.items() if STREAMS else ():
        done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", build / "CMakeFiles" / name], capture_output=True, text=True)
        if done.returncode or not STREAMING.search(done.stdout):
            problems.append(f"CMakeFiles/{name}: found no store past the caches, expected {function}'s")
    return problems


def check_bfloat16(root, build):
    """A file with bfloat16's instructions that is compiled without them computes as before, only slower."""
    def uses(path):
        text = path.read_text()
        return "ISA_IS_bf16" in text or any(uses(root / "src" / name) for name in re.findall(r'#include "(kernels/isa/\w+\.h)"', text))
    commands = json.loads((build / "compile_commands.json").read_text())
    compiled = {Path(command["file"]).name for command in commands if "/isa_bf16.dir/" in command["command"]}
    return [f"src/kernels/isa/{path.name}: found {'ISA_IS_bf16' if uses(path) else 'no ISA_IS_bf16'}, expected it where CMakeLists.txt compiles for bf16"
            for path in sorted((root / "src/kernels/isa").glob("*.c")) if compiled and uses(path) != (path.name in compiled)]


POLICY_TESTED = re.compile(r"GRAPHI_POLICY_[A-Z0-9_]+ *[=!<>]=?|[=!<>]=? *\(?GRAPHI_POLICY_[A-Z0-9_]+ *(?=[)&|?;])|case GRAPHI_POLICY_"
                           r"|[=!]= *&policy_\w+|policy\w*, \"\w+\"\) *[=!]= *0")


def check_policies(root, build):
    """A policy that others know by name cannot be added in one file: its table says what it is like."""
    problems = []
    for path in sorted((root / "src").rglob("*.[ch]")):
        if path.parent.name == "schedule" and path.name.startswith("policy"):
            continue
        text = path.read_text()
        for match in POLICY_TESTED.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
            if match.group().startswith("=") and not match.group().startswith("=="):
                continue  # given, not asked
            problems.append(f"{path.relative_to(root)}:{line}: found the test '{before.strip()}{match.group()}', expected a trait of the table")
    return problems


def check_operations(root, build):
    """A list whose order or default nobody tells, a result whose shape must be guessed: found by reading the source alone."""
    problems = []
    for line in (root / "docs/operations.md").read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 5 and "†" not in cells[1] and not cells[4]:
            problems.append(f"docs/operations.md: found no meaning of {cells[1]} of {cells[0]}, expected one (.meaning)")
        if len(cells) == 5 and cells[2] == "list" and cells[3] == "empty" and "†" not in cells[1] and "empty: " not in cells[4]:
            problems.append(f"docs/operations.md: found nothing on {cells[1]} of {cells[0]} when it is empty, expected it (.meaning)")
        if len(cells) == 6 and not cells[2]:
            problems.append(f"docs/operations.md: found no shapes of {cells[0]}, expected them (.shapes)")
    return problems


CHECKS = {"layers": check_layers, "rooms": check_rooms, "circles": check_circles, "headers": check_headers, "page of layers": check_table_of_layers, "exports": check_exports, "nulls": check_nulls,
          "generated": check_generated, "files": check_files, "columns": check_columns, "clocks": check_clocks,
          "heap": check_heap, "temporary": check_temporary, "messages": check_messages, "table": check_table, "benchmarks": check_benchmarks,
          "quoted": check_quoted, "policies": check_policies, "operations": check_operations, "streaming": check_streaming, "bfloat16": check_bfloat16}


def append(name, text):
    def plant(root):
        with open(root / name, "a") as file:
            file.write(text)
    return plant


def replace(name, old, new):
    def plant(root):
        text = (root / name).read_text()
        if old not in text:
            raise AssertionError(f"{name} has changed: plant another fault")
        (root / name).write_text(text.replace(old, new, 1))
    return plant


def remove_export(root):
    """A function that the library has loses its declaration."""
    for header in sorted((root / "include" / "graphi").glob("*.h")):
        text = header.read_text()
        if "GRAPHI_API const char *graphi_version(void);" in text:
            header.write_text(text.replace("GRAPHI_API const char *graphi_version(void);", ""))
            return
    raise AssertionError("graphi_version has moved: plant another fault")


def remove_licence(root):
    path = root / "src/base/arena.c"
    path.write_text(path.read_text().split("\n", 1)[1])


def own_temporary(root):
    (root / "tests").mkdir()
    (root / "tests/test_planted.c").write_text('int f(void)\n{\n    return mkstemp("/tmp/graphi-XXXXXX");\n}\n')


def unquoted(root):
    """Gives the folder of a build, as the check wants it."""
    (root / "build/merged").mkdir(parents=True)
    (root / "build/merged/objects.rsp").write_text('"/a b/c.o"\n/a b/d.o\n')
    return root / "build"


def calling(*files):
    """Gives the folder of a build of files that call each other: the first the second, that the third, the last the first."""
    def plant(root):
        (root / "build").mkdir()
        commands = []
        for number, name in enumerate(files):
            path, to = root / "src" / name, (number + 1) % len(files)
            path.write_text(f"int f{to}(void);\nint f{number}(void)\n{{\n    return f{to}();\n}}\n")
            commands.append({"directory": str(root / "build"), "file": str(path), "command": f"cc -c {path} -o {number}.o"})
            subprocess.run(shlex.split(commands[-1]["command"]), cwd=root / "build", check=True)
        (root / "build/compile_commands.json").write_text(json.dumps(commands))
        return root / "build"
    return plant


def including(root):
    append("src/base/arena.h", '#include "base/index.h"\n')(root)
    append("src/base/index.c", '#include "base/arena.h"\n')(root)


def ordinary_stores(root):
    """Gives the folder of a build, whose objects have nothing but a return."""
    for name in STREAMED:
        (root / "build/CMakeFiles" / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-c", "-x", "c", "-", "-o", root / "build/CMakeFiles" / name], input="void f(void) {}", text=True, check=True)
    return root / "build"


# check, what is planted, what the message must name
FAULTS = [
    ("page of layers", replace("docs/architecture.md", "| engine |", "| engine, models |"), "layer train"),
    ("layers", append("src/base/arena.c", '#include "engine/compile/plan.h"\n'), "src/base/arena.c"),
    ("layers", append("src/kernels/gemm.c", '#include "graph/graph.h"\n'), "src/kernels/gemm.c"),
    ("layers", append("src/machine/team.h", '#include "../kernels/gemm.h"\n'), "src/machine/team.h"),
    ("layers", append("src/schedule/scheduler.c", '#include "engine/compile/plan.h"\n'), "src/schedule/scheduler.c"),
    ("layers", append("src/cli/info.c", '#include "base/memory.h"\n'), "src/cli/info.c"),
    ("layers", append("src/models/lstm.c", '#include "graph/graph.h"\n'), "src/models/lstm.c"),
    ("layers", append("src/tool/job.c", '#include "cli/commands.h"\n'), "src/tool/job.c"),
    ("layers", append("bench/kernels.c", '#include "engine/compile/plan.h"\n'), "bench/kernels.c"),
    ("layers", append("bench/kernels.c", '#include "cli/commands.h"\n'), "bench/kernels.c"),
    ("layers", append("examples/train.c", '#include "base/memory.h"\n'), "examples/train.c"),
    ("layers", lambda root: (root / "src/surplus").mkdir(), "src/surplus"),
    ("rooms", append("src/engine/cost/origin.c", '#include "engine/show/timeline.h"\n'), "src/engine/cost/origin.c: found"),
    ("rooms", calling("engine/cost/planted.c", "engine/show/planted.c"), "src/engine/cost/planted: found"),
    ("headers", calling("engine/cost/planted.c", "engine/show/second.c"), "src/engine/cost/planted.c: found no f0"),
    ("circles", calling("base/planted.c", "base/second.c", "base/third.c"), "base/planted, base/second, base/third need"),
    ("circles", including, "base/arena, base/index need"),
    ("rooms", lambda root: (root / "src/engine/planted.c").write_text(""), "src/engine/planted.c: found outside"),
    ("page of layers", replace("docs/architecture.md", "| `engine/tune/` |", "| `engine/tried/` |"), "the rooms"),
    ("exports", append("include/graphi/run.h", "GRAPHI_API int graphi_planted(int a,\n  int b);\n"), "no graphi_planted"),
    ("exports", remove_export, "graphi_version"),
    ("exports", append("include/graphi/curves.h", "".join(f"GRAPHI_API int graphi_curves_{i}(void);\n" for i in range(12))), "curves.h: found 17"),
    ("exports", append("include/graphi/run.h", "".join(f"GRAPHI_API int graphi_run_{i}(void);\n" for i in range(111))), "functions of the core"),
    ("nulls", append("include/graphi/run.h", "GRAPHI_API int graphi_planted(int a);\n"), "no call of graphi_planted"),
    ("generated", append("include/graphi/ops.h", "/* */\n"), "ops.h"),
    ("generated", append("docs/operations.md", "more\n"), "operations.md"),
    ("files", append("src/base/arena.c", "\n" * LINES_MOST), "lines"),
    ("files", remove_licence, "SPDX"),
    ("clocks", append("src/cli/info.c", "/* time(NULL) */\n"), "src/cli/info.c"),
    ("heap", append("src/train/npy.c", "/* strdup(text) */\n"), "src/train/npy.c"),
    ("temporary", own_temporary, "test_planted.c:3"),
    ("columns", append("src/base/arena.c", "/* " + 40 * "abc " + "*/\n"), "165 columns"),
    ("columns", append("docs/tour.md", 40 * "abc " + "\n"), "160 columns"),
    ("table", replace("src/kernels/conv_table.inc", "{CONV_BACKWARD_DATA, 5, 4, 32, 48, 128", "{CONV_FORWARD, 5, 4, 32, 48, 128"),
     "found 132 classes"),
    ("table", replace("bench/conv_table.c", "    {3, 24, 64, 32, 32},\n", ""), "the 129 of"),
    ("table", replace("src/kernels/conv_table.inc", "{CONV_FORWARD, 5, 16, 32, 16, 32, {{0, 100, 0,", "{CONV_FORWARD, 5, 16, 32, 16, 32, {{0, 100, 7,"),
     "found times"),
    ("table", append("src/kernels/conv_table.inc", "{CONV_FORWARD, 3},\n"), "expected a line"),
    ("benchmarks", append("src/kernels/gemm.c", "/* `graphi bench kernels\n * nosuchrow` */\n"), "nosuchrow"),
    ("benchmarks", append("src/kernels/gemm.c", "/* `graphi bench nosuch` */\n"), "nosuch"),
    ("messages", append("src/base/arena.c", 'int f(void) { return fail(GRAPHI_IO, "x(", "cannot"); }\n'), "'x( cannot'"),
    ("policies", append("src/tool/plan.c", "bool planted(graphi_policy p) { return p == GRAPHI_POLICY_S12; }\n"), "src/tool/plan.c"),
    ("policies", append("src/engine/run/run.c", "bool planted(graphi_policy p) { return p >= GRAPHI_POLICY_S1 && p; }\n"), "run.c"),
    *([("bfloat16", append("src/kernels/isa/norm_run.c", "/* ISA_IS_bf16 */\n"), "norm_run.c: found ISA_IS_bf16"),
       ("bfloat16", replace("src/kernels/isa/micro_pairs.c", "ISA_IS_bf16", "ISA_IS_none"), "micro_pairs.c: found no")] if X86 else []),
    ("operations", replace("docs/operations.md", "empty: as the kernel", ""), "`strides` of `max_pool` when"),
    ("operations", replace("docs/operations.md", "| [height, width] of w |", "| |"), "no meaning of `kernel`"),
    ("operations", replace("docs/operations.md", "| [N,H,W,C] to [N,C] |", "| |"), "no shapes of `global_avg_pool`"),
    ("quoted", unquoted, "objects.rsp:2"),
    *([("streaming", ordinary_stores, "isa_avx2.dir/src/kernels/isa/norm_run.c.o")] if STREAMS else []),
]


def times(folder):
    """Of every file below it: when it was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def restore(copy, root, before):
    """What a fault added or changed becomes what it was: faults share a copy, since copying takes longer than looking."""
    for path in sorted(copy.iterdir()):
        if path.is_dir() and path.name not in COPIED:
            shutil.rmtree(path)
    after = times(copy)
    for path in after.keys() - before.keys():
        path.unlink()
    for path, written in before.items():
        if after.get(path) != written:
            shutil.copy2(root / path.relative_to(copy), path)
    for path in sorted((copy / "src").iterdir()):
        if path.is_dir() and not (root / path.relative_to(copy)).exists():
            path.rmdir()


def self_test(root, build):
    failures = 0
    with tempfile.TemporaryDirectory(prefix="graphi-structure-") as folder:
        copy = Path(folder)
        for name in COPIED:
            shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("*.json", "*.svg"))
        for name in ("README.md", "CHANGES.md"):
            shutil.copy2(root / name, copy / name)
        before = times(copy)
        for number, (check, plant, naming) in enumerate(FAULTS):
            problems = CHECKS[check](copy, plant(copy) or build)
            good = any(naming in problem for problem in problems)
            print(f"{'found' if good else 'MISSED'}: fault {number} of {check}: {problems[0] if problems else 'nothing reported'}")
            failures += not good
            restore(copy, root, before)
        failures += times(copy) != before
    return failures


def main():
    parser = argparse.ArgumentParser(description="structure of the source tree")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    root, build = arguments.source.resolve(), arguments.build.resolve()
    if arguments.self_test:
        sys.exit(1 if self_test(root, build) else 0)
    failures = 0
    for name, check in CHECKS.items():
        problems = check(root, build)
        print(f"{name}: {len(problems)} problems")
        for problem in problems:
            print("  " + problem)
        failures += len(problems)
    companions = set().union(*(declared(root, header) for header in COMPANIONS))
    print(f"{len(declared(root) - companions)} exported functions, {len(companions)} in companion headers")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
