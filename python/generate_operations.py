# SPDX-License-Identifier: Apache-2.0
"""Writes graphi/operations.py, a function for each operation, from what `generate_ops json` tells of the table of operations.

So a new operation of the library needs no Python. Operands come first and by position; attributes follow by name, since their order is
no one's to remember.

usage: generate_operations.py TABLE.json OUT.py"""
import json
import keyword
import sys
from pathlib import Path

HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The operations, generated from the library's table. Operands are values, or numbers and arrays, which become constants.

Each function adds one operation to the graph of its operands. A mistake raises InvalidError, which names the node, the shapes and what was
expected; the graph keeps it and takes nothing more."""
from __future__ import annotations

from typing import Sequence

from .graph import Graph, Operand, Value, add_operation

'''
TYPES = {"int": "int", "float": "float", "ints": "Sequence[int]"}


def default(attribute):
    return "()" if attribute["type"] == "ints" else repr(attribute["default"])


def kind(attribute):
    return "int | str" if attribute["name"] == "dtype" else TYPES[attribute["type"]]


def wrapped(text, width=110, indent="    "):
    lines, line = [], indent
    for word in text.split():
        if len(line) + len(word) + 1 > width:
            lines.append(line)
            line = indent + "    "
        line += word if line.isspace() else " " + word
    return "\n".join([*lines, line])


def docstring(operation):
    paragraphs = [operation["summary"], f"Shapes: {operation['shapes']}."]
    for attribute in operation["attributes"]:
        given = "required" if attribute["required"] else f"default {default(attribute)}"
        paragraphs.append(f"{attribute['name']} ({kind(attribute)}, {given}): {attribute['meaning']}")
    paragraphs.append("Gradient: " + ("yes." if operation["gradient"] else "no."))
    paragraphs.append("Raises InvalidError for shapes, types or attributes that do not fit.")
    text = "\n".join(wrapped(paragraph) for paragraph in paragraphs).replace("\\", "\\\\")
    return f'    """{text.strip()}\n    """'


def function(operation):
    name = operation["name"] + ("_" if keyword.iskeyword(operation["name"]) else "")
    letters = "abcdefgh"[:operation["inputs"]]
    if operation["list"]:
        parameters, operands = ["*operands: Operand"], "operands"
    elif letters:
        parameters, operands = [f"{letter}: Operand" for letter in letters], f"({', '.join(letters)},)"
    else:
        parameters, operands = ["graph: Graph"], "()"
    # Required ones first: the attributes are given by name alone.
    attributes = sorted(operation["attributes"], key=lambda attribute: not attribute["required"])
    if attributes and not operation["list"]:
        parameters.append("*")
    parameters += [f"{a['name']}: {kind(a)}" + ("" if a["required"] else f" = {default(a)}") for a in attributes]
    several = operation["outputs"] != 1
    count = "outputs" if operation["outputs"] < 0 else operation["outputs"]
    values = ", ".join(f'("{a["name"]}", "{a["type"]}", {a["name"]})' for a in operation["attributes"])
    # On one line each, as who reads them is a program.
    return (f"def {name}({', '.join(parameters)}) -> {'tuple[Value, ...]' if several else 'Value'}:\n{docstring(operation)}\n"
            f"    results = add_operation({'None' if letters or operation['list'] else 'graph'}, \"{operation['name']}\", {operands}, "
            f"[{values}], {count})\n"
            f"    return {'results' if several else 'results[0]'}\n")


def main():
    table, out = sys.argv[1:]
    operations = json.loads(Path(table).read_text())
    names = [operation["name"] + ("_" if keyword.iskeyword(operation["name"]) else "") for operation in operations]
    text = HEAD + "__all__ = [" + ", ".join(f'"{name}"' for name in names) + "]\n\n\n"
    Path(out).write_text(text + "\n\n".join(function(operation) for operation in operations))


if __name__ == "__main__":
    main()
