# SPDX-License-Identifier: Apache-2.0
"""What callbacks share with the call of the library that they belong to: an exception in one, Ctrl-C too, ends the call and is raised when
it has returned.

The library's pointers are numbers here, looked up in a table that keeps nothing alive, so that a function which refers to its trainer is
collected with it."""
from __future__ import annotations

import itertools
import os
import threading
import weakref
from typing import Any, List, Optional

from ._native import ffi
from .errors import check


class Watcher:
    """One call, or one object, that has callbacks."""

    def __init__(self) -> None:
        self.error: Optional[BaseException] = None
        self.number = next(_numbers)
        _watchers[self.number] = self

    @property
    def context(self) -> Any:
        return ffi.cast("void *", self.number)

    def note(self, error: BaseException) -> None:
        self.error = self.error or error

    def finish(self, status: int) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error
        check(status)

    def __enter__(self) -> "Watcher":
        _stack().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stack().remove(self)


_numbers = itertools.count(1)
_watchers: "weakref.WeakValueDictionary[int, Watcher]" = weakref.WeakValueDictionary()
_local = threading.local()


def _stack() -> List[Watcher]:
    """The calls that this thread is in."""
    if not hasattr(_local, "stack"):
        _local.stack = []
    return _local.stack  # type: ignore[no-any-return]


def of(context: Any) -> Any:
    return _watchers[int(ffi.cast("uintptr_t", context))]


def noted(kind: Any, error: BaseException, trace: Any) -> None:
    """An exception outside of a callback's own care, also one that a signal raises as it begins."""
    if _stack():
        _stack()[-1].note(error)


def stopped(kind: Any, error: BaseException, trace: Any) -> bool:
    noted(kind, error, trace)
    return True


class Running:
    """Calls that the interpreter's exit stops and waits for: those in threads that it does not wait for by itself."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0
        self.ending = False

    def __enter__(self) -> None:
        with self._condition:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._count -= 1
            self._condition.notify_all()

    def end(self, seconds: float) -> None:
        self.ending = True
        with self._condition:
            self._condition.wait_for(lambda: self._count == 0, seconds)

    def forked(self) -> None:
        """Other threads are not in the child."""
        self.__init__()  # type: ignore[misc]


running = Running()
os.register_at_fork(after_in_child=running.forked)
