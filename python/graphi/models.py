# SPDX-License-Identifier: Apache-2.0
"""The built-in networks: graphi.models.lstm(size="small", batch=8) gives the graph. Options are those of graphi_model_options in
graphi/models.h; names that have a line have an underscore here: phased_lstm."""
from __future__ import annotations

from typing import Any, Callable, List, Mapping

from ._native import ffi, lib
from .errors import check, text_of, unknown
from .graph import Graph
from .structs import Info, as_info, fill, text


def names() -> List[str]:
    found: List[str] = []
    while lib.graphi_model_at(len(found)):
        found.append(text_of(lib.graphi_model_at(len(found))))
    return found


def _known(name: str) -> str:
    network = name.replace("_", "-")
    if network not in names():
        raise unknown("models", network, names())
    return network


def form_of(options: Mapping[str, Any], kept: List[Any]) -> Any:
    """graphi_model_options of keywords."""
    return fill(ffi.new("graphi_model_options *"), dict(options), "model", kept)


def create(name: str, **options: Any) -> Graph:
    """The graph of a built-in network."""
    kept: List[Any] = []
    out = ffi.new("graphi_graph **")
    check(lib.graphi_model_create(text(_known(name), "models"), fill(ffi.new("graphi_model_options *"), options, name, kept), out))
    graph = Graph._of(out[0])
    graph._updates = "assign" in graph.print()
    return graph


def info(name: str, **options: Any) -> Info:
    """Sizes after all defaults, and how the network is usually trained."""
    kept: List[Any] = []
    out = ffi.new("graphi_model_info *")
    check(lib.graphi_model_get_info(text(_known(name), "models"), fill(ffi.new("graphi_model_options *"), options, name, kept), out))
    return as_info(out)


def __getattr__(name: str) -> Callable[..., Graph]:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        network = _known(name)
    except KeyError as error:
        raise AttributeError(str(error)) from None

    def make(**options: Any) -> Graph:
        return create(network, **options)

    make.__name__, make.__doc__ = name, f"The built-in network {network}."
    return make


def __dir__() -> List[str]:
    return [name.replace("-", "_") for name in names()] + ["create", "info", "names"]
