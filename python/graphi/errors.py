# SPDX-License-Identifier: Apache-2.0
"""Every status of the library is a class below Error; the message is the library's, "CODE: WHERE: found X, expected Y"."""
from __future__ import annotations

import difflib
from typing import Iterable, Type

from ._native import ffi, lib


class Error(Exception):
    """What the library, or the use of it, refused. `code` is the status's name."""

    code = "UNKNOWN"


class MissedError(Error):
    """A comparison or goal was missed."""

    code = "MISSED"


class UsageError(Error, ValueError):
    """A setting, option or name that there is not."""

    code = "USAGE"


class InvalidError(Error, ValueError):
    """Bad input: shapes, types, names, files that are not what they should be."""

    code = "INVALID"


class UnsupportedError(Error, NotImplementedError):
    """What is sound and not supported: an operation without a gradient, an instruction set that this CPU lacks."""

    code = "UNSUPPORTED"


class FileError(Error, OSError):
    """Files that cannot be read or written."""

    code = "IO"


class OutOfMemoryError(Error, MemoryError):
    """No memory was left."""

    code = "MEMORY"


class RefusedError(Error):
    """A stored plan, or curves, of another graph, machine or version."""

    code = "REFUSED"


class NonFiniteError(Error, ArithmeticError):
    """NaN or infinities where numbers are checked."""

    code = "NONFINITE"


class InterruptedError(Error):
    """What was asked to stop."""

    code = "INTERRUPTED"


class DtypeError(InvalidError, TypeError):
    """An array of another element type than is expected."""


class UnknownNameError(InvalidError, KeyError):
    """A name that does not exist; the message tells the nearest."""

    def __str__(self) -> str:  # KeyError would show its argument quoted
        return str(self.args[0])


class ClosedError(Error, RuntimeError):
    """An object that was closed."""

    code = "CLOSED"


class BusyError(Error, RuntimeError):
    """An object of one thread at a time, used by another thread meanwhile."""

    code = "BUSY"


_CLASSES = {kind.code: kind for kind in (MissedError, UsageError, InvalidError, UnsupportedError, FileError, OutOfMemoryError, RefusedError,
                                         NonFiniteError, InterruptedError)}


def text_of(pointer: object) -> str:
    """A text of the library; "" for NULL."""
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else ""


def error_of(status: int) -> Error:
    """The exception for a status, with the message of this thread's last failure."""
    name = text_of(lib.graphi_status_name(status))
    kind: Type[Error] = _CLASSES.get(name, Error)
    return kind(text_of(lib.graphi_message()) or name)


def check(status: int) -> None:
    """Raises what a status other than 0 stands for. Called right after the library was, by the same thread."""
    if status:
        raise error_of(status)


def unknown(where: str, name: object, names: Iterable[str]) -> UnknownNameError:
    """A name that does not exist, with the nearest of those that do."""
    known = list(names)
    near = difflib.get_close_matches(str(name), known, 1, 0.5)
    expected = f"expected one of {', '.join(known[:20])}{', ...' if len(known) > 20 else ''}" if known else "expected none: there are no names"
    return UnknownNameError(f"INVALID: {where}: found '{name}', {expected}" + (f"; did you mean '{near[0]}'?" if near else ""))
