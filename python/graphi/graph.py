# SPDX-License-Identifier: Apache-2.0
"""Graphs and their values. Nothing is computed while a graph is built: a value stands for what a run will compute.

Mistakes raise when they are made. The library keeps the first one with the graph, which then takes nothing more: begin a new graph.
A graph may be built by several threads, one call at a time."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._native import ffi, lib
from .arrays import DTYPES, NAMES, DtypeLike, as_array, dense, dims_of, dtype_number, pointer_to
from .errors import InvalidError, UsageError, check, error_of, text_of, unknown
from .handles import Handle, Using
from .structs import Info, as_info, fill, text, words_of

Operand = Union["Value", float, Sequence[Any], Any]


class Symbol(int):
    """A bounded size of dimension 0: what Graph.symbol gives, for the shapes of inputs."""

    name: str
    bound: int


class Port(NamedTuple):
    """What has a name in a graph. A bounded size is its bound."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    value: "Value"


class Graph(Handle):
    """An empty graph."""

    def __init__(self) -> None:
        out = ffi.new("graphi_graph **")
        check(lib.graphi_graph_create(out))
        self._adopt(out[0])

    def _adopt(self, pointer: Any) -> None:
        self._lock = threading.RLock()
        self._symbols: Dict[str, Symbol] = {}
        self._symbolic: Dict[str, Symbol] = {}  # inputs whose dimension 0 is a symbol
        self._updates = False
        self._own(pointer, lib.graphi_graph_destroy)

    @classmethod
    def _of(cls, pointer: Any) -> "Graph":
        graph = cls.__new__(cls)
        graph._adopt(pointer)
        graph._updates = True  # as far as is known
        return graph

    def _value(self, index: int) -> "Value":
        return Value(self, index)

    def _added(self, index: int, pointer: Any) -> "Value":
        """What a builder gave; GRAPHI_NONE is a mistake, which the graph remembers."""
        if index == lib.GRAPHI_NONE:
            raise error_of(lib.graphi_graph_status(pointer))
        return self._value(index)

    def _index(self, value: Any, where: str) -> int:
        if not isinstance(value, Value):
            raise InvalidError(f"INVALID: {where}: found {type(value).__name__}, expected a value of this graph")
        if value.graph is not self:
            raise InvalidError(f"INVALID: {where}: found a value of another graph, expected one of this graph")
        return value.index

    def symbol(self, name: str, bound: int) -> Symbol:
        """A size of dimension 0 that each run may choose, 1 to `bound`: put it into the shape of inputs."""
        with self._lock, Using(self) as (pointer,):
            number = lib.graphi_symbol(pointer, text(name, "symbol"), bound)
            check(lib.graphi_graph_status(pointer))
        symbol = Symbol(number)
        symbol.name, symbol.bound = name, bound
        return self._symbols.setdefault(name, symbol)

    def input(self, name: str, dtype: DtypeLike = "float32", shape: Sequence[int] = ()) -> "Value":
        """What a run is fed. Names are those of no other input or parameter."""
        dims = dims_of(shape, f"input '{name}'")
        with self._lock, Using(self) as (pointer,):
            value = self._added(lib.graphi_input(pointer, text(name, "input"), dtype_number(dtype), len(dims), dims), pointer)
            first = next(iter(shape if not isinstance(shape, int) else (shape,)), None)
            if isinstance(first, Symbol):
                self._symbolic[name] = first
            return value

    def parameter(self, name: str, dtype: DtypeLike = "float32", shape: Optional[Sequence[int]] = None, init: Any = None) -> "Value":
        """What is learned or kept in a state. `init`: None for zeros, a number, an array (which may tell the shape), the name of a kind
        ("glorot_uniform", "he_normal"), or a kind and its numbers, as ("normal", 0, 0.1) or ("uniform", -1, 1)."""
        where, number, how = f"parameter '{name}'", dtype_number(dtype), ffi.new("graphi_initializer *")
        kept: List[Any] = []
        if isinstance(init, str):
            init = (init,)
        if isinstance(init, tuple) and init and isinstance(init[0], str):
            fill(how, dict(zip(("kind", "a", "b"), init)), f"{where}: init", kept)
        elif isinstance(init, (int, float)):
            fill(how, {"kind": "constant", "a": init}, where, kept)
        elif init is not None:
            array = dense(init, number, where, None if shape is None else tuple(shape))
            shape = array.shape
            how.data = pointer_to(array)
            kept.append(array)
        dims = dims_of(() if shape is None else shape, where)
        with self._lock, Using(self) as (pointer,):
            return self._added(lib.graphi_parameter(pointer, text(name, "parameter"), number, len(dims), dims, how), pointer)

    def constant(self, data: Any, dtype: Optional[DtypeLike] = None) -> "Value":
        """A literal. Arrays keep their type, numbers and lists are float32, unless `dtype` is told."""
        array = as_array(data)
        if dtype is None:
            dtype = "float32" if array is None else array.dtype
        number = dtype_number(dtype)
        array = dense(data if array is None else array, number, "constant")
        with self._lock, Using(self) as (pointer,):
            dims = dims_of(array.shape, "constant")
            return self._added(lib.graphi_constant(pointer, number, len(dims), dims, pointer_to(array)), pointer)

    def output(self, name: str, value: "Value") -> "Value":
        """Marks a value to be fetched by name after a run."""
        with self._lock, Using(self) as (pointer,):
            lib.graphi_output(pointer, text(name, "output"), self._index(value, f"output '{name}'"))
            check(lib.graphi_graph_status(pointer))
        return value

    def gradients(self, loss: "Value", values: Sequence["Value"]) -> List[Optional["Value"]]:
        """Gradients of a scalar with respect to values; None where the loss does not depend on one."""
        given = [self._index(value, "gradients") for value in values]
        found = ffi.new("graphi_value[]", len(given))
        with self._lock, Using(self) as (pointer,):
            check(lib.graphi_gradients(pointer, self._index(loss, "gradients: loss"), len(given), given, found))
        return [None if index == lib.GRAPHI_NONE else self._value(index) for index in found]

    def minimize(self, loss: "Value", optimizer: str = "sgd", *, learning_rate: Union["Value", float], **options: Any) -> None:
        """Adds gradients and updates: every execution is then a step. `optimizer`: "sgd", "momentum", "adam" or "adagrad"; the learning rate
        is a number, or a value, usually an input. Options: momentum, beta1, beta2, epsilon, accumulator, weight_decay, clip_norm, only,
        sparse ("on", "off")."""
        rate = learning_rate if isinstance(learning_rate, Value) else self.constant(learning_rate, "float32")
        kept: List[Any] = []
        how = ffi.new("graphi_optimizer *")
        fill(how, {**options, "kind": optimizer, "learning_rate": self._index(rate, "minimize: learning_rate")},
             "minimize", kept)
        with self._lock, Using(self) as (pointer,):
            check(lib.graphi_minimize(pointer, self._index(loss, "minimize: loss"), how))
            self._updates = True

    def assign(self, parameter: "Value", value: Operand) -> "Value":
        """The parameter takes `value` when all readers of its old content are done. Gives the new content."""
        with self._lock, Using(self) as (pointer,):
            new = self._index(self._operand(value, parameter), "assign")
            self._updates = True
            return self._added(lib.graphi_assign(pointer, self._index(parameter, "assign"), new), pointer)

    def freeze(self, parameter: "Value") -> None:
        """minimize, when it is called later, leaves this parameter alone."""
        with self._lock, Using(self) as (pointer,):
            lib.graphi_freeze(pointer, self._index(parameter, "freeze"))
            check(lib.graphi_graph_status(pointer))

    @contextlib.contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names the nodes that are added inside, in messages, traces and printings."""
        with self._lock, Using(self) as (pointer,):
            lib.graphi_scope(pointer, text(name, "scope"))
        try:
            yield
        finally:
            if not self.closed:
                with self._lock, Using(self) as (pointer,):
                    lib.graphi_scope(pointer, ffi.NULL)

    def __getitem__(self, name: str) -> "Value":
        """The value of that name: an output's, else an input's or a parameter's."""
        with self._lock, Using(self) as (pointer,):
            index = lib.graphi_find(pointer, text(name, "graph"))
        if index == lib.GRAPHI_NONE:
            raise unknown("graph", name, [port.name for port in (*self.outputs, *self.inputs, *self.parameters)])
        return self._value(index)

    def _ports(self, kind: int) -> List[Port]:
        ports: List[Port] = []
        port = ffi.new("graphi_port *")
        with self._lock, Using(self) as (pointer,):
            while lib.graphi_graph_at(pointer, kind, len(ports), port):
                ports.append(Port(text_of(port.name), NAMES[port.dtype], tuple(port.dims[0:port.rank]), self._value(port.value)))
        return ports

    @property
    def inputs(self) -> List[Port]:
        return self._ports(lib.GRAPHI_PORT_INPUT)

    @property
    def outputs(self) -> List[Port]:
        return self._ports(lib.GRAPHI_PORT_OUTPUT)

    @property
    def parameters(self) -> List[Port]:
        return self._ports(lib.GRAPHI_PORT_PARAMETER)

    @property
    def info(self) -> Info:
        """Counts, FLOPs and hash, as graphi_graph_info of graphi/graph.h."""
        out = ffi.new("graphi_graph_info *")
        with self._lock, Using(self) as (pointer,):
            lib.graphi_graph_get_info(pointer, out)
        return as_info(out)

    def print(self, format: str = "text") -> str:
        """The graph as text, or as Graphviz ("dot")."""
        formats = words_of(ffi.typeof("graphi_print_format"))
        if format not in formats:
            raise unknown("print", format, formats)
        out = ffi.new("char **")
        with self._lock, Using(self) as (pointer,):
            check(lib.graphi_graph_print(pointer, formats[format], out))
        return taken(out)

    def _operand(self, operand: Operand, like: Optional["Value"]) -> "Value":
        """A value as it is; numbers and lists become constants of the type of `like`, arrays of their own."""
        if isinstance(operand, Value):
            return operand
        return self.constant(operand, like.dtype if like is not None and as_array(operand) is None else None)


def taken(out: Any) -> str:
    """A text that the library gave away."""
    try:
        return text_of(out[0])
    finally:
        lib.graphi_free(out[0])


def _attribute(entry: Any, name: str, kind: str, value: Any, where: str, kept: List[Any]) -> None:
    kept.append(ffi.new("char[]", name.encode()))
    entry.name = kept[-1]
    try:
        if kind == "int":
            entry.type = lib.GRAPHI_INT
            entry.i = dtype_number(value) if name == "dtype" and not isinstance(value, int) else value
        elif kind == "float":
            entry.type, entry.f = lib.GRAPHI_FLOAT, value
        else:
            kept.append(ffi.new("int64_t[]", [int(number) for number in ((value,) if isinstance(value, int) else value)]))
            entry.type, entry.ints, entry.count = lib.GRAPHI_INTS, kept[-1], len(kept[-1])
    except (TypeError, OverflowError) as error:
        if isinstance(error, InvalidError):
            raise
        raise InvalidError(f"INVALID: {where}: {name}: {error}") from error


def add_operation(graph: Optional[Graph], kind: str, operands: Sequence[Operand], attributes: Sequence[Tuple[str, str, Any]],
                  outputs: int) -> Tuple["Value", ...]:
    """Appends one operation; its outputs have consecutive values."""
    first = next((operand for operand in operands if isinstance(operand, Value)), None)
    if first is not None:
        graph = first.graph
    if not isinstance(graph, Graph):
        raise InvalidError(f"INVALID: {kind}: found no value of a graph, expected one" if operands else
                           f"INVALID: {kind}: found {type(graph).__name__}, expected a graph")
    kept: List[Any] = []
    entries = ffi.new("graphi_attribute[]", len(attributes))
    for entry, (name, sort, value) in zip(entries, attributes):
        _attribute(entry, name, sort, value, kind, kept)
    with graph._lock, Using(graph) as (pointer,):
        given = [graph._index(graph._operand(operand, first), kind) for operand in operands]
        value = graph._added(lib.graphi_op(pointer, kind.encode(), len(given), given, len(entries), entries), pointer)
    return tuple(graph._value(value.index + place) for place in range(outputs))


def _one(kind: str, *operands: Operand, **attributes: Any) -> "Value":
    sorts = {int: "int", float: "float", list: "ints"}
    return add_operation(None, kind, operands, [(name, sorts[type(value)], value) for name, value in attributes.items()], 1)[0]


class Value:
    """A value of a graph. It knows its shape and type, and has the operators of NumPy's arrays."""

    __slots__ = ("graph", "index", "_type")
    __array_ufunc__ = None  # arrays leave operators with a value on the right to it

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph, self.index = graph, index
        self._type: Optional[Tuple[str, Tuple[int, ...]]] = None

    def _typed(self) -> Tuple[str, Tuple[int, ...]]:
        if self._type is None:
            dtype, rank, dims = ffi.new("graphi_dtype *"), ffi.new("int *"), ffi.new("int64_t[]", lib.GRAPHI_MAX_RANK)
            with self.graph._lock, Using(self.graph) as (pointer,):
                check(lib.graphi_value_type(pointer, self.index, dtype, rank, dims))
            self._type = (NAMES[dtype[0]], tuple(dims[0:rank[0]]))
        return self._type

    @property
    def dtype(self) -> str:
        return self._typed()[0]

    @property
    def shape(self) -> Tuple[int, ...]:
        """Sizes; a bounded one is its bound."""
        return self._typed()[1]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<closed value {self.index}>" if self.graph.closed else f"<value {self.index}: {self.dtype} {list(self.shape)}>"

    def __add__(self, other: Operand) -> "Value":
        return _one("add", self, other)

    def __radd__(self, other: Operand) -> "Value":
        return _one("add", other, self)

    def __sub__(self, other: Operand) -> "Value":
        return _one("sub", self, other)

    def __rsub__(self, other: Operand) -> "Value":
        return _one("sub", other, self)

    def __mul__(self, other: Operand) -> "Value":
        return _one("mul", self, other)

    def __rmul__(self, other: Operand) -> "Value":
        return _one("mul", other, self)

    def __truediv__(self, other: Operand) -> "Value":
        return _one("div", self, other)

    def __rtruediv__(self, other: Operand) -> "Value":
        return _one("div", other, self)

    def __pow__(self, other: Operand) -> "Value":
        return _one("square", self) if other == 2 and not isinstance(other, Value) else _one("pow", self, other)

    def __rpow__(self, other: Operand) -> "Value":
        return _one("pow", other, self)

    def __mod__(self, other: Operand) -> "Value":
        return _one("mod", self, other)

    def __matmul__(self, other: Operand) -> "Value":
        return _one("matmul", self, other)

    def __rmatmul__(self, other: Operand) -> "Value":
        return _one("matmul", other, self)

    def __neg__(self) -> "Value":
        return _one("neg", self)

    def __abs__(self) -> "Value":
        return _one("abs", self)

    def __lt__(self, other: Operand) -> "Value":
        return _one("less", self, other)

    def __gt__(self, other: Operand) -> "Value":
        return _one("less", other, self)

    def __bool__(self) -> bool:
        raise UsageError("USAGE: value: found a use as a truth, expected none: numbers are known only when a run executes")

    def __iter__(self) -> Iterator["Value"]:
        if not self.shape:
            raise InvalidError("INVALID: value: found a scalar, expected dimensions to iterate over")
        return (self[place] for place in range(self.shape[0]))

    def __len__(self) -> int:
        if not self.shape:
            raise InvalidError("INVALID: value: found a scalar, expected a dimension")
        return self.shape[0]

    @property
    def T(self) -> "Value":
        return _one("transpose", self)

    def reshape(self, *shape: Any) -> "Value":
        return _one("reshape", self, shape=[int(size) for size in (shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)])

    def transpose(self, *perm: int) -> "Value":
        return _one("transpose", self, perm=list(perm))

    def astype(self, dtype: DtypeLike) -> "Value":
        return _one("cast", self, dtype=dtype_number(dtype))

    def _reduced(self, kind: str, axis: Any, keepdims: bool) -> "Value":
        axes = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
        return _one(kind, self, axes=axes, keepdims=int(keepdims))

    def sum(self, axis: Any = None, keepdims: bool = False) -> "Value":
        return self._reduced("reduce_sum", axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> "Value":
        return self._reduced("reduce_mean", axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> "Value":
        return self._reduced("reduce_max", axis, keepdims)

    def __getitem__(self, key: Any) -> "Value":
        """Whole numbers, slices without steps, None and `...`, as in NumPy."""
        keys = list(key) if isinstance(key, tuple) else [key]
        given = sum(entry is not None and entry is not Ellipsis for entry in keys)
        if given > self.ndim:
            raise InvalidError(f"INVALID: value: found {given} indices, expected at most {self.ndim}")
        rest = [slice(None)] * (self.ndim - given)
        place = next((place for place, entry in enumerate(keys) if entry is Ellipsis), None)
        keys = keys + rest if place is None else keys[:place] + rest + keys[place + 1:]
        result, axis, shape, source = self, 0, [], self.shape
        for entry in keys:
            if entry is None:
                shape.append(1)
                continue
            result = _cut(result, axis, source[axis], entry)
            if isinstance(entry, slice):
                # 0: the size that is at this place, so that a bounded one stays
                shape.append(0 if len(shape) == axis else result.shape[axis])
            axis += 1
        same = len(shape) == axis and all(size == 0 for size in shape)
        return result if same else _one("reshape", result, shape=shape)


def _cut(value: Value, axis: int, size: int, entry: Any) -> Value:
    if isinstance(entry, slice):
        if entry.step not in (None, 1):
            raise InvalidError(f"INVALID: value: found a slice of step {entry.step}, expected 1")
        if entry.start in (None, 0) and entry.stop is None:
            return value
        begin, end = 0 if entry.start is None else int(entry.start), 2**63 - 1 if entry.stop is None else int(entry.stop)
        return _one("slice", value, axis=axis, begin=begin, end=end)
    try:
        index = entry.__index__()
    except AttributeError:
        raise InvalidError(f"INVALID: value: found an index of type {type(entry).__name__}, expected whole numbers, slices, None or ...") from None
    if not -size <= index < size:
        raise InvalidError(f"INVALID: value: found index {index}, expected one of a dimension of {size}")
    index += size if index < 0 else 0
    return _one("slice", value, axis=axis, begin=index, end=index + 1)


__all__ = ["Graph", "Port", "Symbol", "Value", "DTYPES"]
