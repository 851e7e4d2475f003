# SPDX-License-Identifier: Apache-2.0
"""Runs: one execution context of a plan over a state, for one thread at a time. Python's lock is released while one executes."""
from __future__ import annotations

import html
import os
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Union

import numpy as np

from . import handles
from ._native import ffi, lib
from .arrays import DTYPES, dense, empty, numpy_dtype, pointer_to
from .errors import DtypeError, InvalidError, check, unknown
from .graph import Port, taken
from .handles import Handle, OneThread, Using
from .plan import Plan
from .state import State
from .structs import Info, as_info, text

_SMALL = 1 << 16  # bytes of an input or output up to which copying is cheaper than telling the library of it


class Timeline:
    """The last traced execution: every operation on its executor. Jupyter shows it as it is."""

    def __init__(self, page: str, events: str) -> None:
        self.html, self.json = page, events

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="480" frameborder="0"></iframe>'

    def save(self, prefix: Union[str, "os.PathLike[str]"]) -> None:
        """Writes PREFIX.html, for a browser, and PREFIX.json, for Perfetto."""
        Path(f"{os.fspath(prefix)}.html").write_text(self.html, encoding="utf-8")
        Path(f"{os.fspath(prefix)}.json").write_text(self.json, encoding="utf-8")


class Run(Handle):
    """A run of `plan` over `state` (None: a fresh one of the plan's graph)."""

    def __init__(self, plan: Plan, state: Optional[State] = None) -> None:
        self.plan, self.state = plan, State(plan.graph) if state is None else state
        self._one = OneThread("Run")
        self._sizes: Dict[str, int] = {}
        self._names = {name: text(name, "run") for name in (*plan._inputs, *plan._outputs)}
        out = ffi.new("graphi_run **")
        with Using(plan, self.state) as (plan_pointer, state_pointer):
            check(lib.graphi_run_create(plan_pointer, state_pointer, out))
            bound: Dict[str, Any] = {}  # arrays that are bound live until the library's run is gone
            inner: Dict[str, Any] = {}  # and those of the run's own

            def destroy(pointer: Any) -> None:
                lib.graphi_run_destroy(pointer)
                bound.clear()
                inner.clear()

            self._bound, self._inner, self._prepared, self._feeding = bound, inner, False, False
            self._compiled = plan_pointer  # which the run keeps
            self._late: List[Any] = []  # the object, closed and not yet given back
            self._set: Set[str] = set()  # inputs that were set before the first call
            self._own(out[0], destroy, (plan, self.state))

    def _port(self, name: str, ports: Dict[str, Port], what: str) -> Port:
        port = ports.get(name)
        if port is None:
            raise unknown(f"run: {what}", name, ports)
        return port

    def _shape(self, name: str, port: Port, array: Any) -> None:
        """Refuses other shapes; the first size of an input that has a symbol becomes the symbol's."""
        symbol = self.plan._symbolic.get(name)
        if array.ndim != len(port.shape) or (array.shape[1:] if symbol else array.shape) != (port.shape[1:] if symbol else port.shape):
            raise InvalidError(f"INVALID: input '{name}': found shape {list(array.shape)}, expected {list(port.shape)}")
        if symbol and self._sizes.get(symbol.name, symbol.bound) != array.shape[0]:
            self._resize(symbol.name, array.shape[0])

    def _resize(self, symbol: str, size: int) -> None:
        check(lib.graphi_run_set_symbol(self._live().pointer, text(symbol, "run: symbol"), size))
        self._sizes[symbol] = size

    def _feed(self, name: str, data: Any) -> None:
        port = self._port(name, self.plan._inputs, "input")
        number = DTYPES[port.dtype]
        array = dense(data, number, f"input '{name}'")
        if array.shape != port.shape or name in self.plan._symbolic:
            self._shape(name, port, array)
        if name in self._inner:
            self._inner[name][...] = array
            return
        check(lib.graphi_run_set(self._live().pointer, self._names[name], number, pointer_to(array), array.nbytes))
        self._bound.pop(name, None)
        self._set.add(name)

    def _fetch(self, name: str, out: Any = None) -> Any:
        port = self._port(name, self.plan._outputs, "output")
        if out is None and name in self._bound and not self._sizes:
            return self._bound[name]
        number, failed = DTYPES[port.dtype], 0
        for shape in self._shapes(port):
            array = np.empty(shape, numpy_dtype(number)) if out is None else self._room(name, port, shape, out)
            if array is not None:
                failed = lib.graphi_run_get(self._live().pointer, self._names[name], number, pointer_to(array), array.nbytes)
                if not failed:
                    return array
        check(failed)
        raise InvalidError(f"INVALID: output '{name}': found room for shape {list(out.shape)}, expected {list(port.shape)}")

    def _room(self, name: str, port: Port, shape: Any, out: Any) -> Any:
        if not isinstance(out, np.ndarray) or not out.flags.c_contiguous or not out.flags.writeable:
            raise InvalidError(f"INVALID: output '{name}': found an array that cannot be written as it is, expected a dense, writable one")
        dense(out, DTYPES[port.dtype], f"output '{name}'")
        return out if out.shape == shape else None

    def _shapes(self, port: Port) -> List[Any]:
        """What the output's shape may be: its first size follows a symbol or does not, of which the library knows the one."""
        shapes = []
        for name, size in self._sizes.items():
            bound = self.plan._symbols[name].bound if name in self.plan._symbols else 0
            if port.shape and bound and port.shape[0] % bound == 0:
                shapes.append((port.shape[0] // bound * size, *port.shape[1:]))
        return [*shapes, port.shape]

    def _use(self) -> Any:
        return Using(self)

    def set(self, name: str, data: Any) -> None:
        """Copies an input's content in; it stays until it is set again."""
        with self._one, self._use():
            self._feed(name, data)

    def bind(self, name: str, array: Any) -> None:
        """Executions read an input, or write an output, in the array's memory, without copies; graphi.empty gives arrays whose address
        fits. The array lives as long as it is bound; its content may be changed between executions. A call gives the array itself."""
        ports = {**self.plan._inputs, **self.plan._outputs}
        port = self._port(name, ports, "port")
        writes = name in self.plan._outputs
        if not isinstance(array, np.ndarray) or not array.flags.c_contiguous or (writes and not array.flags.writeable):
            raise InvalidError(f"INVALID: bind '{name}': found an array that cannot be used as it is, expected a dense"
                               f"{', writable' if writes else ''} one")
        number = DTYPES[port.dtype]
        dense(array, number, f"bind '{name}'", port.shape)
        with self._one, self._use() as (pointer,):
            place = ffi.new("int *")
            check(lib.graphi_plan_port(self._compiled, self._names[name], place))
            check(lib.graphi_run_bind(pointer, place[0], number, pointer_to(array), array.nbytes))
            self._bound[name] = array
            self._inner.pop(name, None)

    def get(self, name: str, out: Any = None) -> Any:
        """An output of the last execution: a new array, or `out` filled."""
        with self._one, self.state._shared.reading(), self._use():
            return self._fetch(name, out)

    def set_symbol(self, name: str, size: int) -> None:
        """A bounded size, 1 to its bound, before the inputs that have it. Inputs whose first size it is set it themselves."""
        with self._one, self._use():
            self._resize(name, size)

    def set_first_sample(self, index: int) -> None:
        """Global index of the first sample of the next batch: random numbers are keyed by it."""
        with self._one, self._use() as (pointer,):
            lib.graphi_run_set_first_sample(pointer, index)

    def execute(self) -> None:
        """One iteration; of a graph with updates, one step."""
        shared, writes = self.state._shared, self.plan._writes
        with self._one, self._use() as (pointer,):
            self._execute(pointer, shared, writes)

    @staticmethod
    def _execute(pointer: Any, shared: Any, writes: bool) -> None:
        shared.acquire(writes)
        try:
            check(lib.graphi_run_execute(pointer))
        finally:
            shared.release(writes)

    def feed(self, inputs: Dict[str, Any]) -> Dict[str, Any]:
        """As run(...), inputs by names that need be no words of Python."""
        return self(**inputs)

    def __call__(self, /, **inputs: Any) -> Dict[str, Any]:
        """Feeds, executes, and gives all outputs by name."""
        lock = self._one._lock  # what `with self._one` does, at a quarter of its time
        if not lock.acquire(False):
            self._one.__enter__()
        self._feeding = True  # before the object is looked at: see close
        try:
            owned = self._owned
            pointer = self._live().pointer if owned is None else owned.pointer
            inner = self._inner if self._prepared else self._prepare(pointer)
            for name, data in inputs.items():
                room = inner.get(name)
                if room is not None and type(data) is np.ndarray and data.dtype == room.dtype and data.shape == room.shape:
                    room[...] = data
                else:
                    self._feed(name, data)
            return self._executed(pointer)
        finally:
            self._feeding = False
            lock.release()
            if self._late:
                self._drop_late()

    def close(self) -> None:
        """Ends the use of this run. Where another thread is in a call, the library's run goes when that call is over: the one sets
        `_feeding` and then looks for the object, the other takes the object and then looks at `_feeding`."""
        with handles._lock:
            owned, self._owned = self._owned, None
        if owned is not None:
            self._late.append(owned)
            if not self._feeding:
                self._drop_late()

    def _drop_late(self) -> None:
        while self._late:
            try:
                owned = self._late.pop()
            except IndexError:  # the other thread was faster
                return
            owned.drop()

    def _prepare(self, pointer: Any) -> Dict[str, Any]:
        """Small inputs and outputs of fixed sizes are bound to arrays of the run's own: a copy by NumPy takes a third of a call's time."""
        self._prepared = True
        if not self.plan._symbols:
            for name, port in (*self.plan._inputs.items(), *self.plan._outputs.items()):
                self._bind_own(pointer, name, port)
        return self._inner

    def _bind_own(self, pointer: Any, name: str, port: Port) -> None:
        try:
            room = empty(port.shape, port.dtype)
        except DtypeError:  # NumPy has no such type here
            return
        place, number = ffi.new("int *"), DTYPES[port.dtype]
        if name in self._bound or name in self._inner or room.nbytes > _SMALL or not room.nbytes:
            return
        if name in self.plan._inputs:  # what it was set to stays
            if name in self._set:
                return
            room[...] = 0
        if lib.graphi_plan_port(self._compiled, self._names[name], place) == 0 and not lib.graphi_run_bind(
                pointer, place[0], number, pointer_to(room), room.nbytes):
            self._inner[name] = room

    def _executed(self, pointer: Any) -> Dict[str, Any]:
        shared, writes = self.state._shared, self.plan._writes
        shared.acquire(writes)
        try:
            status = lib.graphi_run_execute(pointer)
            if status:
                check(status)
            inner, results = self._inner, {}
            for name in self.plan._outputs:
                room = inner.get(name)
                results[name] = self._fetch(name) if room is None else room.copy()
            return results
        finally:
            shared.release(writes)

    @property
    def info(self) -> Info:
        """Times and counts of executions, as graphi_run_info of graphi/run.h."""
        out = ffi.new("graphi_run_info *")
        with self._one, self._use() as (pointer,):
            lib.graphi_run_get_info(pointer, out)
        return as_info(out)

    def explain(self) -> str:
        """What the policy has learned from this run's executions."""
        out = ffi.new("char **")
        with self._one, self._use() as (pointer,):
            check(lib.graphi_run_explain(pointer, out))
        return taken(out)

    def trace(self, on: bool = True) -> None:
        """Keeps records of the operations of the following executions."""
        with self._one, self._use() as (pointer,):
            check(lib.graphi_run_trace(pointer, on))

    @property
    def summary(self) -> Info:
        """Of the last traced execution: span, and what the executors' time went into."""
        out = ffi.new("graphi_trace_summary *")
        with self._one, self._use() as (pointer,):
            check(lib.graphi_run_trace_summary(pointer, out))
        return as_info(out)

    @property
    def operations(self) -> List[Info]:
        """A row for each operation of the last traced execution: pandas.DataFrame(run.operations)."""
        rows, row = [], ffi.new("graphi_trace_operation *")
        summary = self.summary
        with self._one, self._use() as (pointer,):
            for place in range(summary.operations):
                check(lib.graphi_run_trace_operation(pointer, place, row))
                rows.append(as_info(row))
        return rows

    def timeline(self) -> Timeline:
        """The picture of the last traced execution."""
        with tempfile.TemporaryDirectory() as folder, self._one, self._use() as (pointer,):
            prefix = Path(folder) / "timeline"
            check(lib.graphi_run_write_timeline(pointer, text(prefix, "timeline")))
            return Timeline(Path(f"{prefix}.html").read_text(encoding="utf-8"), Path(f"{prefix}.json").read_text(encoding="utf-8"))


__all__ = ["Run", "Timeline"]
