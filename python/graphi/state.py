# SPDX-License-Identifier: Apache-2.0
"""States: parameters by name, as a mapping to NumPy arrays. Arrays are copies, since a plan may keep a parameter in a packed form.

Several threads may share a state: changes, and executions with updates, wait for other uses to end."""
from __future__ import annotations

import os
from typing import Any, Dict, Iterator, Mapping, MutableMapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from ._native import ffi, lib
from .arrays import NAMES, dense, numpy_dtype, pointer_to
from .errors import UnsupportedError, check, text_of, unknown
from .graph import Graph
from .handles import Handle, Shared, Using
from .structs import text

Path = Union[str, "os.PathLike[str]"]


class Parameter(NamedTuple):
    dtype: int
    shape: Tuple[int, ...]


@ffi.def_extern()
def on_state_load_extra(context: Any, key: Any, value: Any) -> None:
    ffi.from_handle(context)[text_of(key)] = text_of(value)


class State(Handle, MutableMapping[str, Any]):
    """The parameters of `graph`, which start as it says, by `seed`."""

    def __init__(self, graph: Graph, seed: int = 0) -> None:
        out = ffi.new("graphi_state **")
        with graph._lock, Using(graph) as (pointer,):
            check(lib.graphi_state_create(pointer, seed, out))
        self._shared = Shared()
        self._own(out[0], lib.graphi_state_destroy)
        self._list()

    def _list(self) -> None:
        name, dtype, rank = ffi.new("char const **"), ffi.new("graphi_dtype *"), ffi.new("int *")
        dims = ffi.new("int64_t[]", lib.GRAPHI_MAX_RANK)
        found: Dict[str, Parameter] = {}
        with Using(self) as (pointer,):
            while lib.graphi_state_at(pointer, len(found), name, dtype, rank, dims):
                found[text_of(name[0])] = Parameter(dtype[0], tuple(dims[0:rank[0]]))
        self._parameters = found

    def _find(self, name: Any) -> Parameter:
        self._live()
        try:
            return self._parameters[name]
        except (KeyError, TypeError):
            raise unknown("state", name, self._parameters) from None

    def __getitem__(self, name: str) -> Any:
        parameter = self._find(name)
        array = np.empty(parameter.shape, numpy_dtype(parameter.dtype))
        with self._shared.reading(), Using(self) as (pointer,):
            check(lib.graphi_state_get(pointer, text(name, "state"), pointer_to(array), array.nbytes))
        return array

    def __setitem__(self, name: str, data: Any) -> None:
        parameter = self._find(name)
        array = dense(data, parameter.dtype, f"state['{name}']", parameter.shape)
        with self._shared.writing(), Using(self) as (pointer,):
            check(lib.graphi_state_set(pointer, text(name, "state"), pointer_to(array), array.nbytes))

    def __delitem__(self, name: str) -> None:
        raise UnsupportedError("UNSUPPORTED: state: found a parameter to be deleted, expected none: a state keeps its parameters")

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def __iter__(self) -> Iterator[str]:
        self._live()
        return iter(tuple(self._parameters))

    def __len__(self) -> int:
        self._live()
        return len(self._parameters)

    def __repr__(self) -> str:
        return "<closed state>" if self.closed else f"<state of {len(self)} parameters, step {self.step}>"

    def dtype(self, name: str) -> str:
        return NAMES[self._find(name).dtype]

    def shape(self, name: str) -> Tuple[int, ...]:
        return self._find(name).shape

    def extend(self, graph: Graph) -> None:
        """Adds the parameters of another graph that the state lacks."""
        with self._shared.writing():
            with graph._lock, Using(self, graph) as (pointer, other):
                check(lib.graphi_state_extend(pointer, other))
            self._list()

    def load(self, path: Path) -> Dict[str, str]:
        """Reads every parameter from a safetensors file; gives the strings that it has."""
        strings: Dict[str, str] = {}
        context = ffi.new_handle(strings)
        with self._shared.writing(), Using(self) as (pointer,):
            check(lib.graphi_state_load(pointer, text(path, "state"), lib.on_state_load_extra, context))
        return strings

    def save(self, path: Path, strings: Optional[Mapping[str, str]] = None) -> None:
        """Writes every parameter, step and seed, and strings of yours, as a safetensors file."""
        given = dict(strings or {})
        keys, values = [text(key, "strings") for key in given], [text(value, "strings") for value in given.values()]
        with self._shared.reading(), Using(self) as (pointer,):
            check(lib.graphi_state_save(pointer, text(path, "state"), len(keys), ffi.new("char *[]", keys), ffi.new("char *[]", values)))

    @property
    def step(self) -> int:
        """Executions with updates so far."""
        with self._shared.reading(), Using(self) as (pointer,):
            return int(lib.graphi_state_step(pointer))

    @step.setter
    def step(self, step: int) -> None:
        with self._shared.writing(), Using(self) as (pointer,):
            lib.graphi_state_set_step(pointer, step)

    def sha256(self) -> str:
        """Over names and bytes of all parameters."""
        out = ffi.new("char[65]")
        with self._shared.reading(), Using(self) as (pointer,):
            lib.graphi_state_sha256(pointer, out)
        return text_of(out)
