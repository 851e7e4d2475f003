# SPDX-License-Identifier: Apache-2.0
"""Where the batches of a training or scoring come from: a graphi.Data; arrays by the inputs' names, samples first; a function of epoch and
index; or what one iterates over once an epoch, as a DataLoader of PyTorch, whose batches are mappings or come in the inputs' order."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._native import ffi, lib
from .arrays import DTYPES, dense, numpy_dtype, pointer_to
from .callbacks import Watcher, noted, of
from .data import Data
from .errors import InvalidError, unknown
from .graph import Graph, Port
from .structs import text


class Source(Watcher):
    """Batches of a function, or of what is iterated over. `owner` ends with what goes wrong here."""

    def __init__(self, given: Any, ports: List[Port], batch: int, owner: Watcher) -> None:
        super().__init__()
        self._ports, self._batch, self._owner = ports, batch, owner
        self._function: Callable[[int, int], Any] = given if callable(given) else self._iterated
        self._given = given
        self._iterator: Optional[Iterator[Any]] = None
        self._at = (-1, -1)  # of the iterator's next batch

    def _iterated(self, epoch: int, index: int) -> Any:
        """The next batch; those before are passed over where a training goes on within an epoch."""
        if self._iterator is None or self._at != (epoch, index):
            self._iterator = iter(self._given)
            for _ in range(index):
                next(self._iterator, None)
        self._at = (epoch, index + 1)
        return next(self._iterator, None)

    def fill(self, at: Any, buffers: Any, rows: Any) -> None:
        found = self._function(at.epoch, at.index)
        if found is None:
            return
        arrays = self._arrays(found)
        sizes = set()
        for place, (port, data) in enumerate(zip(self._ports, arrays)):
            array = dense(data, DTYPES[port.dtype], f"batch: input '{port.name}'")
            if array.ndim != len(port.shape) or array.shape[1:] != port.shape[1:] or array.shape[0] > self._batch:
                raise InvalidError(f"INVALID: batch: input '{port.name}': found shape {list(array.shape)}, expected "
                                   f"{[self._batch, *port.shape[1:]]}")
            ffi.memmove(buffers[place], pointer_to(array), array.nbytes)
            sizes.add(array.shape[0])
        if len(sizes) != 1:
            raise InvalidError(f"INVALID: batch: found {sorted(sizes)} samples, expected the same number for every input")
        rows[0] = sizes.pop()

    def _arrays(self, found: Any) -> Sequence[Any]:
        names = [port.name for port in self._ports]
        if isinstance(found, Mapping):
            for name in (*names, *found):
                if name not in found or name not in names:
                    raise unknown("batch: input", name, found if name not in found else names)
            return [found[name] for name in names]
        if not isinstance(found, (tuple, list)) or len(found) != len(names):
            raise InvalidError(f"INVALID: batch: found {type(found).__name__} of {len(found) if hasattr(found, '__len__') else 'no'} parts, "
                               f"expected arrays for {', '.join(names)}")
        return found


def _failed(kind: Any, error: BaseException, trace: Any) -> None:
    noted(kind, error, trace)


@ffi.def_extern(error=lib.GRAPHI_INVALID, onerror=_failed)
def on_feed_next(context: Any, at: Any, buffers: Any, rows: Any) -> int:
    source = of(context)
    with source._owner.outside():
        try:
            source.fill(at, buffers, rows)
        except BaseException as error:
            source._owner.note(error)
            return int(lib.GRAPHI_INVALID)
    return 0


class Feed:
    """A graphi_feed, filled in at `feed`, and what must live as long."""

    def __init__(self, feed: Any, given: Any, graphs: Sequence[Graph], owner: Watcher, how: Mapping[str, Any]) -> None:
        self._kept: List[Any] = []
        self.needs: List[Data] = []
        self.names: List[str] = []
        self._feed, self._symbols = feed, {name: symbol for graph in graphs for name, symbol in graph._symbolic.items()}
        self._ports = {port.name: port for graph in reversed(graphs) for port in graph.inputs}
        inputs: Optional[Sequence[str]] = how.get("inputs")
        feed.ordered, feed.carried = bool(how.get("ordered")), bool(how.get("carried"))
        if isinstance(given, Data):
            self._of_data(given, inputs)
        elif isinstance(given, Mapping):
            self._of_arrays(given, int(how.get("batch") or 0))
        elif callable(given) or hasattr(given, "__iter__"):
            self._of_source(given, inputs, how, owner)
        else:
            raise InvalidError(f"INVALID: feed: found {type(given).__name__}, expected Data, arrays by name, a function, or batches to iterate "
                               "over")

    def _port(self, name: str) -> Port:
        if name not in self._ports:
            raise unknown("feed: input", name, self._ports)
        return self._ports[name]

    def _declare(self, names: Sequence[str], arrays: Sequence[Any], batch: int) -> int:
        """The feed's inputs; the batch is that of the graph where it is not told."""
        entries = ffi.new("graphi_feed_array[]", max(len(names), 1))
        for entry, name, array in zip(entries, names, arrays):
            port = self._port(name)
            if not port.shape:
                raise InvalidError(f"INVALID: feed: found input '{name}' without dimensions, expected samples in the first")
            batch = batch or port.shape[0]
            self._kept.append(text(name, "feed"))
            entry.input, entry.dtype = self._kept[-1], DTYPES[port.dtype]
            entry.sample_bytes = int(np.prod(port.shape[1:], dtype=np.int64)) * numpy_dtype(DTYPES[port.dtype]).itemsize
            if array is not None:
                entry.data = pointer_to(array)
            if name in self._symbols:
                self._symbol(name)
        self._kept.append(entries)
        self._feed.arrays, self._feed.array_count, self._feed.batch = entries, len(names), batch
        self.names = list(names)
        return batch

    def _symbol(self, name: str) -> None:
        self._kept.append(text(self._symbols[name].name, "feed"))
        self._feed.symbol = self._kept[-1]

    def _of_data(self, data: Data, inputs: Optional[Sequence[str]]) -> None:
        self.needs.append(data)
        self._feed.data = data._live().pointer
        names = inputs or (("tokens", "targets") if data.info.format == "text" else ("images", "labels"))
        if len(names) != 2:
            raise InvalidError(f"INVALID: feed: found {len(names)} inputs, expected two: those of a data set")
        if inputs:
            entries = ffi.new("graphi_feed_array[]", 2)
            for entry, name in zip(entries, names):
                self._kept.append(text(name, "feed"))
                entry.input = self._kept[-1]
            self._kept.append(entries)
            self._feed.arrays, self._feed.array_count = entries, 2
        self.names = list(names)
        for name in names:
            if name in self._symbols:
                self._symbol(name)

    def _of_arrays(self, given: Mapping[str, Any], batch: int) -> None:
        arrays: Dict[str, Any] = {}
        for name, data in given.items():
            port = self._port(name)
            array = dense(data, DTYPES[port.dtype], f"feed: input '{name}'")
            if array.shape[1:] != port.shape[1:] or array.ndim != len(port.shape):
                raise InvalidError(f"INVALID: feed: input '{name}': found shape {list(array.shape)}, expected [samples, "
                                   f"{', '.join(map(str, port.shape[1:]))}]")
            arrays[name] = array
        sizes = {array.shape[0] for array in arrays.values()}
        if len(sizes) != 1:
            raise InvalidError(f"INVALID: feed: found arrays of {sorted(sizes)} samples, expected one number for all")
        self._declare(list(arrays), list(arrays.values()), batch)
        self._feed.samples = sizes.pop()
        self._kept.append(arrays)

    def _of_source(self, given: Any, inputs: Optional[Sequence[str]], how: Mapping[str, Any], owner: Watcher) -> None:
        names = list(inputs) if inputs else [name for name in self._ports if name != how.get("rate_input")]
        batch = self._declare(names, [None] * len(names), int(how.get("batch") or 0))
        source = Source(given, [self._port(name) for name in names], batch, owner)
        self._kept.append(source)
        self._feed.next, self._feed.context = lib.on_feed_next, source.context
        self._feed.batches = int(how.get("batches") or (len(given) if hasattr(given, "__len__") else 0))


def arrays_of_scored(batch: Any) -> Tuple[Any, ...]:
    """Logits, losses, predictions and targets of a scored batch, copied."""
    def copy(pointer: Any, shape: Tuple[int, ...], dtype: str) -> Any:
        array = np.empty(shape, dtype)
        if pointer:
            ffi.memmove(pointer_to(array), pointer, array.nbytes)
        return array if pointer else None

    rows = batch.rows
    return (copy(batch.logits, (rows, batch.classes), "float32"), copy(batch.losses, (rows,), "float32"),
            copy(batch.predictions, (rows,), "int32"), copy(batch.targets, (rows,), "int32"))
