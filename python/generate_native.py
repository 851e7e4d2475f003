# SPDX-License-Identifier: Apache-2.0
"""Writes the C source of the extension `graphi._native` from the public headers.

The C compiler expands `graphi/graphi.h`; what stands in our headers becomes the declarations of cffi, so that no declaration is written
twice. Inline functions lose their bodies. Every pointer to a function, in options or arguments, gets a Python counterpart
`on_STRUCT_FIELD` or `on_FUNCTION_ARGUMENT`. Names of enumerations and numbers that the headers define are constants of the module.

usage: generate_native.py --include DIR --out FILE.c [--cc COMPILER]"""
import argparse
import re
import subprocess
import tempfile
from pathlib import Path

import cffi

NUMBER = re.compile(r"^#define (GRAPHI_[A-Z0-9_]+) \(?(-?\d+)\)?$", re.M)
POINTER = re.compile(r"^\s*(.+?)\(\*(\w+)\)\((.*)\)$", re.S)

ARGUMENT = re.compile(r"([\w ]+[ *])\(\*(\w+)\)\(([^()]*)\)")


def expanded(compiler, include, *options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.c"
        path.write_text("".join(f"#include <graphi/{header.name}>\n" for header in sorted(Path(include).glob("graphi/*.h"))))
        return subprocess.run([*compiler.split(), "-std=c11", "-E", *options, f"-I{include}", str(path)], check=True,
                              capture_output=True, text=True).stdout


def of_headers(text, include):
    """The lines that stand in our headers, by the compiler's marks of files."""
    inside, kept = False, []
    for line in text.splitlines():
        mark = re.match(r'# \d+ "(.*)"', line)
        if mark:
            inside = mark.group(1).startswith(str(include) + "/graphi/")
        elif inside:
            kept.append(line)
    return re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", "\n".join(kept))


def statements(text):
    """Top-level declarations, without the bodies of functions."""
    depth, start, found = 0, 0, []
    for place, letter in enumerate(text):
        if letter == "{":
            depth += 1
        elif letter == "}":
            depth -= 1
            head = text[start:place].split("{")[0].strip()
            if depth == 0 and head.endswith(")"):
                found.append(re.sub(r"\bstatic inline\b", "", head).strip())
                start = place + 1
        elif letter == ";" and depth == 0:
            found.append(text[start:place].strip())
            start = place + 1
    return [statement for statement in found if statement]


def callbacks(declarations):
    """A function of Python for each pointer to a function that a struct has or a function takes."""
    for declaration in declarations:
        function = re.match(r"[\w\s*]+?\bgraphi_(\w+)\((.*)\)$", declaration, re.S)
        for result, name, arguments in ARGUMENT.findall(function.group(2)) if function and "typedef" not in declaration else ():
            yield f'extern "Python" {result}on_{function.group(1)}_{name}({arguments})'
        struct = re.match(r"typedef struct graphi_(\w+)\s*\{(.*)\}", declaration, re.S)
        for field in struct.group(2).split(";") if struct else ():
            pointer = POINTER.match(field)
            if pointer:
                result, name, arguments = pointer.groups()
                yield f'extern "Python" {result}on_{struct.group(1)}_{name}({arguments})'


def definitions(compiler, include):
    declarations = statements(of_headers(expanded(compiler, include), include))
    names = "|".join(path.stem.upper() for path in include.glob("graphi/*.h"))
    numbers = [(name, value) for name, value in NUMBER.findall(expanded(compiler, include, "-dM"))
               if not re.fullmatch(rf"GRAPHI_({names})_H", name)]
    lines = [f"#define {name} {value}" for name, value in sorted(numbers)]
    return "\n".join(lines + [f"{statement};" for statement in [*declarations, *callbacks(declarations)]]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--include", type=Path, required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--cc", default="cc")
    how = parser.parse_args()
    include = how.include.resolve()
    headers = "".join(f"#include <graphi/{path.name}>\n" for path in sorted(include.glob("graphi/*.h")))
    ffi = cffi.FFI()
    ffi.cdef(definitions(how.cc, include))
    ffi.set_source("graphi._native", headers, py_limited_api=True)
    ffi.emit_c_code(how.out)


if __name__ == "__main__":
    main()
