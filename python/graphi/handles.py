# SPDX-License-Identifier: Apache-2.0
"""Who owns what: objects of the library live until whoever needs them is gone, in whatever order Python lets go of them.

A run needs its plan and state, a plan its graph and machine. Closing an object ends its use from Python at once; the library's object
goes when nothing that needs it, and no call in another thread, is left. So neither a late thread nor a collector that ends objects in
odd order can reach freed memory."""
from __future__ import annotations

import os
import threading
from typing import Any, Callable, Optional, Sequence, Tuple

from .errors import BusyError, ClosedError

_lock = threading.RLock()  # for the counts of all Owned; reentrant since a collector may run inside


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


class Owned:
    """A counted object of the library. `needs` are kept until it is destroyed."""

    __slots__ = ("pointer", "_destroy", "_needs", "_count")

    def __init__(self, pointer: Any, destroy: Callable[[Any], None], needs: Sequence["Owned"] = ()) -> None:
        self.pointer, self._destroy, self._needs, self._count = pointer, destroy, tuple(needs), 1
        for need in self._needs:
            need.hold()

    def hold(self) -> None:
        with _lock:
            self._count += 1

    def need(self, other: "Owned") -> None:
        """One more that is kept until this one is destroyed."""
        other.hold()
        self._needs = (*self._needs, other)

    def drop(self) -> None:
        with _lock:
            self._count -= 1
            last = self._count == 0
        if last:
            self._destroy(self.pointer)
            for need in self._needs:
                need.drop()


class Handle:
    """What Python objects of the library have in common: they can be closed, once or more, and used as contexts."""

    _owned: Optional[Owned] = None

    def _own(self, pointer: Any, destroy: Callable[[Any], None], needs: Sequence["Handle"] = ()) -> None:
        self._owned = Owned(pointer, destroy, [need._live() for need in needs])

    def _live(self) -> Owned:
        owned = self._owned
        if owned is None:
            raise ClosedError(f"CLOSED: {type(self).__name__}: found an object that was closed, expected an open one")
        return owned

    def _held(self) -> Owned:
        """The object, kept during a call that other threads may close it in: whoever calls this drops it."""
        with _lock:
            owned = self._owned
            if owned is None:
                owned = self._live()
            owned._count += 1
        return owned

    @property
    def closed(self) -> bool:
        return self._owned is None

    def close(self) -> None:
        """Ends the use of this object. What was made of it goes on."""
        with _lock:
            owned, self._owned = self._owned, None
        if owned is not None:
            owned.drop()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class Using:
    """A call of the library on objects that must not go meanwhile."""

    __slots__ = ("_handles", "_owned")

    def __init__(self, *handles: Handle) -> None:
        self._handles = handles

    def __enter__(self) -> Tuple[Any, ...]:
        self._owned = []
        try:
            for handle in self._handles:
                self._owned.append(handle._held())
        except ClosedError:
            self.__exit__()
            raise
        return tuple(owned.pointer for owned in self._owned)

    def __exit__(self, *_: object) -> None:
        for owned in self._owned:
            owned.drop()


class OneThread:
    """For objects of one thread at a time: another one that comes meanwhile is refused rather than left to guess."""

    __slots__ = ("_lock", "_what")

    def __init__(self, what: str) -> None:
        self._lock, self._what = threading.Lock(), what

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            raise BusyError(f"BUSY: {self._what}: found a second use while the first goes on, expected one thread at a time")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Shared:
    """Many readers or one writer. A thread that has a part in it already is refused what it would wait for in vain.

    A reader enters the list and then looks for a writer, a writer enters and then looks at the list: Python's lock orders the two, so
    that a reader needs no other one. Who waits is counted before it looks, so that whoever leaves later wakes it."""

    __slots__ = ("_condition", "_waiting", "_readers", "_writer")

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._waiting = 0
        self._readers: list[int] = []
        self._writer: Optional[int] = None

    def acquire(self, writes: bool) -> None:
        me = threading.get_ident()
        if not writes:
            self._readers.append(me)
            if self._writer is None:
                return
            self._readers.remove(me)
        with self._condition:
            if self._writer == me or (writes and me in self._readers):
                raise BusyError("BUSY: State: found a use from a callback, expected none while its own thread changes or reads it")
            self._waiting += 1
            try:
                self._condition.notify_all()  # a writer may have seen this thread in the list
                self._wait(me, writes)
            finally:
                self._waiting -= 1

    def _wait(self, me: int, writes: bool) -> None:
        if not writes and me in self._readers:  # it reads already, and a writer waits for it
            self._readers.append(me)
            return
        while self._writer is not None:
            self._condition.wait()
        if not writes:
            self._readers.append(me)
            return
        self._writer = me
        try:
            while self._readers:
                self._condition.wait()
        except BaseException:
            self._writer = None
            self._condition.notify_all()
            raise

    def release(self, writes: bool) -> None:
        if writes:
            self._writer = None
        else:
            self._readers.remove(threading.get_ident())
        if self._waiting:
            with self._condition:
                self._condition.notify_all()

    def reading(self) -> "_Part":
        return _Part(self, False)

    def writing(self) -> "_Part":
        return _Part(self, True)


class _Part:
    __slots__ = ("_shared", "_writes")

    def __init__(self, shared: Shared, writes: bool) -> None:
        self._shared, self._writes = shared, writes

    def __enter__(self) -> None:
        self._shared.acquire(self._writes)

    def __exit__(self, *_: object) -> None:
        self._shared.release(self._writes)
