# SPDX-License-Identifier: Apache-2.0
"""Structs of the library from keywords, and as mappings. Names of fields and enumerations come from the headers, so that a new option or
figure of the library needs no Python."""
from __future__ import annotations

import os
from typing import Any, Dict, List

from ._native import ffi
from .errors import DtypeError, InvalidError, UsageError, text_of, unknown


class Info(Dict[str, Any]):
    """A mapping whose names are attributes, too: a row for pandas."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(str(unknown(type(self).__name__, name, self))) from None


def words_of(kind: Any) -> Dict[str, int]:
    """The words of an enumeration as the command has them: {"critical-path": 0, ...}. What only counts them is none."""
    names = kind.relements
    stem = kind.cname.replace("enum ", "").upper()
    for prefix in (stem + "_", stem.rsplit("_", 1)[0] + "_", "GRAPHI_"):
        words = {name[len(prefix):].lower().replace("_", "-"): value for name, value in names.items() if name.startswith(prefix)}
        if words and (len(words) >= len(names) - 1):
            return words
    raise TypeError(f"{kind.cname}: found constants without a common name")


def _enumerated(kind: Any, value: Any, where: str) -> int:
    if not isinstance(value, str):
        return int(value)
    if kind.cname.endswith("graphi_dtype"):
        from .arrays import dtype_number
        return dtype_number(value)
    words = words_of(kind)
    word = value.lower().replace("_", "-")
    if word not in words:
        raise unknown(where, value, words)
    return words[word]


def _bytes(value: Any) -> bytes:
    text = os.fsencode(value)
    if b"\0" in text:
        raise InvalidError("INVALID: text: found a zero byte, expected none")
    return text


def text(value: Any, where: str) -> Any:
    """A text or path for the library, kept by who holds the result."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise InvalidError(f"INVALID: {where}: found {value!r}, expected a text")
    return ffi.new("char[]", _bytes(value))


def fill(struct: Any, values: Dict[str, Any], where: str, kept: List[Any]) -> Any:
    """Sets fields by name; what they point to is added to `kept`, which must live as long as the struct is used."""
    fields = dict(ffi.typeof(struct).item.fields if ffi.typeof(struct).kind == "pointer" else ffi.typeof(struct).fields)
    for name, value in values.items():
        if name not in fields:
            raise UsageError(str(unknown(where, name, fields)).replace("INVALID", "USAGE", 1))
        if value is not None:
            _set(struct, name, fields[name].type, value, f"{where}: {name}", kept)
    return struct


def _set(struct: Any, name: str, kind: Any, value: Any, where: str, kept: List[Any]) -> None:
    try:
        if kind.kind == "struct":
            fill(getattr(struct, name), value, where, kept)
        elif kind.kind == "enum":
            setattr(struct, name, _enumerated(kind, value, where))
        elif kind.cname in ("char *", "char const *") or kind.kind == "pointer" and kind.item.cname == "char":
            kept.append(text(value, where))
            setattr(struct, name, kept[-1])
        elif kind.kind == "array" and kind.item.kind == "struct":
            if len(value) > kind.length:
                raise UsageError(f"USAGE: {where}: found {len(value)}, expected at most {kind.length}")
            for place, (key, number) in enumerate(dict(value).items()):
                fill(getattr(struct, name)[place], {"name": key, "value": number}, where, kept)
        else:
            setattr(struct, name, value)
    except (TypeError, OverflowError, AttributeError) as error:
        if isinstance(error, DtypeError):
            raise
        raise UsageError(f"USAGE: {where}: {error}, expected {kind.cname}") from error


def as_info(struct: Any) -> Info:
    """A copy of a struct as a mapping; texts are str, enumerations their words."""
    kind = ffi.typeof(struct)
    if kind.kind == "pointer":
        struct, kind = struct[0], kind.item
    return Info((name, _value(getattr(struct, name), field.type)) for name, field in kind.fields)


def _value(value: Any, kind: Any) -> Any:
    if kind.kind == "struct":
        return as_info(value)
    if kind.kind == "enum":
        words = {number: word for word, number in words_of(kind).items()}
        if kind.cname.endswith("graphi_dtype"):
            from .arrays import NAMES
            words = NAMES
        return words.get(value, value)
    if kind.kind == "pointer":
        return (text_of(value) if value else None) if kind.item.cname == "char" else None
    if kind.kind == "array":
        if kind.item.cname == "char":
            return text_of(value)
        if kind.item.kind == "struct" and {"name", "value"} == {name for name, _ in kind.item.fields}:
            return {text_of(entry.name): entry.value for entry in value if entry.name}
        return [_value(entry, kind.item) for entry in value]
    return value
