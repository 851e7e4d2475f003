# SPDX-License-Identifier: Apache-2.0
"""Machines: the one at hand, or a description for the simulator."""
from __future__ import annotations

import os
import threading
from typing import Any, Optional, Union

from ._native import ffi, lib
from .errors import UsageError, check
from .graph import taken
from .handles import Handle, Using
from .structs import Info, as_info, text

_default: Optional["Machine"] = None
_lock = threading.Lock()


def threads_wanted() -> int:
    """GRAPHI_NUM_THREADS, as the command takes it; 0: it is not set."""
    variable = os.environ.get("GRAPHI_NUM_THREADS", "")
    if not variable:
        return 0
    if not variable.isdecimal() or not 1 <= int(variable) <= 65536:
        raise UsageError(f"USAGE: GRAPHI_NUM_THREADS: found '{variable}', expected a whole number from 1 to 65536")
    return int(variable)


class Machine(Handle):
    """The machine at hand, of `cores` (0: as many as GRAPHI_NUM_THREADS says, or all that are usable)."""

    def __init__(self, cores: int = 0) -> None:
        out = ffi.new("graphi_machine **")
        check(lib.graphi_machine_create(cores or self._usable(threads_wanted()), out))
        self._own(out[0], lib.graphi_machine_destroy)

    @staticmethod
    def _usable(wanted: int) -> int:
        """Of more cores than there are, those that there are."""
        return min(wanted, len(os.sched_getaffinity(0)))

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"], cores: int = 0) -> "Machine":
        """A description from JSON: whatever runs on it is simulated."""
        out = ffi.new("graphi_machine **")
        check(lib.graphi_machine_load(text(path, "machine"), cores, out))
        machine = cls.__new__(cls)
        machine._own(out[0], lib.graphi_machine_destroy)
        return machine

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        with Using(self) as (pointer,):
            check(lib.graphi_machine_save(pointer, text(path, "machine")))

    def measure(self, seconds: float = 1.0) -> "Machine":
        """Measures rates and costs of synchronization. Not while runs execute."""
        with Using(self) as (pointer,):
            check(lib.graphi_machine_measure(pointer, seconds))
        return self

    @property
    def info(self) -> Info:
        out = ffi.new("graphi_machine_info *")
        with Using(self) as (pointer,):
            lib.graphi_machine_get_info(pointer, out)
        return as_info(out)

    def __str__(self) -> str:
        out = ffi.new("char **")
        with Using(self) as (pointer,):
            check(lib.graphi_machine_print(pointer, out))
        return taken(out)


def default_machine() -> Machine:
    """The machine at hand, captured once a process."""
    global _default
    with _lock:
        if _default is None or _default.closed:
            _default = Machine()
        return _default


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def machine_or_default(machine: Optional[Any]) -> Machine:
    return default_machine() if machine is None else machine
