# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers over whole sequences, graphi.lstm, gru and rnn. Rows are in step order: sequences of one length are a time-major array
[steps * batch, features]. Parameters have PyTorch's names and shapes behind `scope`."""
from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence

from ._native import ffi, lib
from .errors import InvalidError
from .graph import Value
from .handles import Using
from .structs import fill


class Recurrent(NamedTuple):
    """Results [rows, units] (of two directions [rows, 2 units]), and last states [batch, units] in PyTorch's order; c of LSTM alone."""

    y: Value
    h: List[Value]
    c: List[Value]


def _layers(cell: int, name: str, x: Value, units: int, h0: Optional[Sequence[Value]], c0: Optional[Sequence[Value]],
            offsets: Optional[Value], options: Any) -> Recurrent:
    if not isinstance(x, Value):
        raise InvalidError(f"INVALID: {name}: found {type(x).__name__}, expected a value of a graph")
    graph, kept = x.graph, []  # type: ignore[var-annotated]
    how = fill(ffi.new("graphi_recurrent_options *"), {**options, "units": units}, name, kept)
    states = max(how.layers, 1) * (2 if how.bidirectional else 1)
    for given in (h0, c0):
        if given is not None and len(given) != states:
            raise InvalidError(f"INVALID: {name}: found {len(given)} initial states, expected {states}")
    out = ffi.new("graphi_recurrent_result *")
    with graph._lock, Using(graph) as (pointer,):
        first = [ffi.NULL if given is None else ffi.new("graphi_value[]", [graph._index(value, name) for value in given])
                 for given in (h0, c0)]
        rows = lib.GRAPHI_NONE if offsets is None else graph._index(offsets, name)
        y = graph._added(lib.graphi_recurrent(pointer, cell, graph._index(x, name), *first, rows, how, out), pointer)
        lstm = cell == lib.GRAPHI_LSTM
        return Recurrent(y, [graph._value(out.h[place]) for place in range(out.states)],
                         [graph._value(out.c[place]) for place in range(out.states if lstm else 0)])


def lstm(x: Value, units: int, h0: Optional[Sequence[Value]] = None, c0: Optional[Sequence[Value]] = None,
         offsets: Optional[Value] = None, **options: Any) -> Recurrent:
    """LSTM over x [rows, features]. Options are the fields of graphi_recurrent_options in graphi/recurrent.h: layers, bidirectional, keep,
    batch (needed without initial states), steps, scope, range, lowering. Raises InvalidError for what does not fit."""
    return _layers(lib.GRAPHI_LSTM, "lstm", x, units, h0, c0, offsets, options)


def gru(x: Value, units: int, h0: Optional[Sequence[Value]] = None, offsets: Optional[Value] = None, **options: Any) -> Recurrent:
    """GRU, as lstm; option reset_before is ONNX's linear_before_reset = 0."""
    return _layers(lib.GRAPHI_GRU, "gru", x, units, h0, None, offsets, options)


def rnn(x: Value, units: int, h0: Optional[Sequence[Value]] = None, offsets: Optional[Value] = None, **options: Any) -> Recurrent:
    """RNN of tanh, or with option relu of ReLU, as lstm."""
    return _layers(lib.GRAPHI_RNN, "rnn", x, units, h0, None, offsets, options)
