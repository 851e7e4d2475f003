# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules as graphs, by torch.export before decomposition, where an LSTM is still an LSTM.

Each operator of the exported program has a function in TABLE (conversions.py); what has none is told by name, all at once, before a graph
is begun. Images stay channels-last from convolution to convolution: Image marks a value that stands for one of PyTorch's order."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .conversions import TABLE, Building, Unfit
from .errors import InvalidError, UnsupportedError
from .graph import Graph
from .plan import Plan
from .run import Run
from .state import State


class Converted(NamedTuple):
    """A module's graph, its parameters by the names of state_dict, and the names of inputs and outputs in their order."""

    graph: Graph
    state: State
    inputs: Tuple[str, ...]
    outputs: Tuple[str, ...]

    def run(self, **plan: Any) -> Run:
        """A run of the outputs; options are those of graphi.Plan."""
        return Run(Plan(self.graph, **plan), self.state)


def _place(node: Any) -> str:
    """Where in the module a node comes from."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = stack[-1][0] if stack else ""
    return f"{node.target}" + (f" in {path}" if path else "")


def _known(target: Any) -> Optional[Any]:
    name = getattr(target, "_schema", None)
    return TABLE.get(name.name.split("::")[-1]) if name is not None and name.name.startswith("aten::") else TABLE.get(
        getattr(target, "__name__", str(target)))


def _exported(module: Any, example: Sequence[Any]) -> Any:
    import torch
    if module.training:
        raise InvalidError("INVALID: from_module: found a module in training mode, expected module.eval()")
    try:
        return torch.export.export(module, tuple(example))
    except Exception as error:
        raise UnsupportedError(f"UNSUPPORTED: from_module: torch.export found {type(error).__name__}: {error}") from error


def _check(nodes: Sequence[Any]) -> None:
    missing = [_place(node) for node in nodes if node.op == "call_function" and _known(node.target) is None]
    if missing:
        raise UnsupportedError(f"UNSUPPORTED: from_module: found {', '.join(dict.fromkeys(missing))}, expected operators of docs/from-pytorch.md")


def _placeholder(build: Building, node: Any, spec: Any, program: Any) -> Any:
    """An input at once; a parameter when an operator reads it, which knows the layout."""
    kind = spec.kind.name
    if kind == "USER_INPUT":
        found = node.meta.get("val")
        if not hasattr(found, "shape"):
            return found  # a number
        return build.graph.input(node.name, str(found.dtype).split(".")[-1], [int(size) for size in found.shape])
    source = program.state_dict if spec.target in program.state_dict else program.constants
    return build.parameter(spec.target, source[spec.target], trained=kind == "PARAMETER")


def _argument(build: Building, known: Dict[Any, Any], argument: Any) -> Any:
    if isinstance(argument, (list, tuple)):
        return [_argument(build, known, each) for each in argument]
    return known[argument] if hasattr(argument, "op") and argument in known else argument


def _convert(build: Building, program: Any) -> Tuple[List[str], List[Tuple[str, Any]]]:
    known: Dict[Any, Any] = {}
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    inputs: List[str] = []
    for node in program.graph.nodes:
        if node.op == "placeholder":
            known[node] = _placeholder(build, node, specs[node.name], program)
            if specs[node.name].kind.name == "USER_INPUT" and hasattr(node.meta.get("val"), "shape"):
                inputs.append(node.name)
        elif node.op == "call_function":
            known[node] = _called(build, known, node)
    results = _argument(build, known, list(next(node for node in program.graph.nodes if node.op == "output").args[0]))
    names = ["output"] if len(results) == 1 else [f"output{place}" for place in range(len(results))]
    return inputs, list(zip(names, results))


def _called(build: Building, known: Dict[Any, Any], node: Any) -> Any:
    build.meta = node.meta.get("val")
    function = _known(node.target)
    assert function is not None
    try:
        return function(build, *_argument(build, known, node.args), **{name: _argument(build, known, each) for name, each in node.kwargs.items()
                                                                        if name not in ("device", "pin_memory", "layout", "memory_format")})
    except Unfit as error:
        raise UnsupportedError(f"UNSUPPORTED: from_module: {_place(node)}: {error}") from None
    except InvalidError as error:
        raise UnsupportedError(f"UNSUPPORTED: from_module: {_place(node)}: {error}") from error
    except TypeError as error:
        raise UnsupportedError(f"UNSUPPORTED: from_module: {_place(node)}: found arguments that are not known: {error}") from error


def from_module(module: Any, example: Sequence[Any]) -> Converted:
    """The graph that a module in eval mode stands for, for inputs of the shapes of `example`, and its parameters.

    Names of parameters are those of state_dict; weights of convolutions have the layout [KH, KW, C/groups, K]. Inputs have the names of
    forward's arguments; a single output is "output", others "output0" and on. Raises UnsupportedError, naming operators and where they are."""
    program = _exported(module, example if isinstance(example, (tuple, list)) else (example,))
    _check(list(program.graph.nodes))
    build = Building()
    inputs, results = _convert(build, program)
    for name, value in results:
        if not build.is_value(value):
            raise UnsupportedError(f"UNSUPPORTED: from_module: {name}: found {value!r}, expected a tensor")
        build.graph.output(name, build.plain(value))
    state = State(build.graph)
    for name, array in build.arrays.items():
        state[name] = np.ascontiguousarray(array)
    return Converted(build.graph, state, tuple(inputs), tuple(name for name, _ in results))
