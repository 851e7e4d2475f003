# SPDX-License-Identifier: Apache-2.0
"""Plans: graphs compiled for a machine. A plan never changes; any number of threads may run it, each with a run of its own."""
from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional, Union

from ._native import ffi, lib
from .callbacks import Watcher, noted, of, stopped
from .errors import UsageError, check, text_of, unknown
from .graph import Graph, taken
from .handles import Handle, Using
from .machine import Machine, machine_or_default
from .state import State
from .structs import Info, as_info, fill, text

Path = Union[str, "os.PathLike[str]"]
_SETTING = {name for name, _ in ffi.typeof("graphi_setting").fields}
_OPTIONS = {name for name, _ in ffi.typeof("graphi_plan_options").fields}


class _Tuning(Watcher):
    """One tuning, and who is told of it."""

    def __init__(self, progress: Optional[Callable[[str], Any]]) -> None:
        super().__init__()
        self.progress = progress


@ffi.def_extern(onerror=noted)
def on_tune_options_progress(context: Any, words: Any) -> None:
    tuning = of(context)
    if tuning.progress and tuning.error is None:
        tuning.progress(text_of(words))


@ffi.def_extern(onerror=stopped, error=True)
def on_tune_options_stop(context: Any) -> bool:
    return of(context).error is not None


def _options(values: Dict[str, Any], kept: List[Any]) -> Any:
    """graphi_plan_options from keywords: its own fields, and those of its setting (policy, executors, width, ...)."""
    setting = dict(values.get("setting") or {})
    setting.update({name: value for name, value in values.items() if name in _SETTING and name not in _OPTIONS})
    rest = {name: value for name, value in values.items() if name not in setting and name != "setting"}
    if isinstance(rest.get("outputs"), (list, tuple)):
        rest["outputs"] = ",".join(rest["outputs"])
    wrong = next((name for name in rest if name not in _OPTIONS), None)
    if wrong is not None:
        raise UsageError(str(unknown("Plan", wrong, sorted(_OPTIONS | _SETTING))).replace("INVALID", "USAGE", 1))
    how = fill(ffi.new("graphi_plan_options *"), rest, "Plan", kept)
    fill(how.setting, setting, "Plan: setting", kept)
    return how


class Plan(Handle):
    """`graph` compiled for `machine` (None: the one at hand).

    Options are the fields of graphi_plan_options and graphi_setting of graphi/plan.h by name: policy="critical-path", executors=2, width=1,
    outputs=["logits"], no_updates=True, precision="bfloat16", allow_rounding=True, check_numerics=True, disable="fusion", ..."""

    def __init__(self, graph: Graph, machine: Optional[Machine] = None, **options: Any) -> None:
        self._compile(graph, machine, options, None)

    def _compile(self, graph: Graph, machine: Optional[Machine], options: Dict[str, Any], path: Optional[Path]) -> None:
        machine = machine_or_default(machine)
        kept: List[Any] = []
        how, out = _options(options, kept), ffi.new("graphi_plan **")
        with graph._lock, Using(graph, machine) as (graph_pointer, machine_pointer):
            if path is None:
                check(lib.graphi_plan_create(graph_pointer, machine_pointer, how, out))
            else:
                check(lib.graphi_plan_load(graph_pointer, machine_pointer, how, text(path, "plan"), out))
            self._adopt(out[0], graph, machine, options)

    def _adopt(self, pointer: Any, graph: Graph, machine: Machine, options: Dict[str, Any]) -> None:
        self._own(pointer, lib.graphi_plan_destroy, (graph, machine))
        self.graph, self.machine, self._given = graph, machine, options
        outputs = options.get("outputs")
        names = [name.strip() for name in outputs.split(",")] if isinstance(outputs, str) else outputs
        self._symbols, self._symbolic = dict(graph._symbols), dict(graph._symbolic)
        self._inputs = {port.name: port for port in graph.inputs}
        self._outputs = {port.name: port for port in graph.outputs if names is None or port.name in names}
        self._writes = graph._updates and not outputs and not options.get("no_updates")

    @classmethod
    def load(cls, path: Path, graph: Graph, machine: Optional[Machine] = None, **options: Any) -> "Plan":
        """Compiles under what a file of `save` says; RefusedError when it is for another graph, machine or version."""
        plan = cls.__new__(cls)
        plan._compile(graph, machine, options, path)
        return plan

    def save(self, path: Path) -> None:
        """Writes what tuning found."""
        with Using(self) as (pointer,):
            check(lib.graphi_plan_save(pointer, text(path, "plan")))

    def _another(self, pointer: Any, machine: Optional[Machine] = None) -> "Plan":
        plan = type(self).__new__(type(self))
        plan._adopt(pointer, self.graph, machine or self.machine, self._given)
        return plan

    def tune(self, seconds: float, state: Optional[State] = None, progress: Optional[Callable[[str], Any]] = None,
             **options: Any) -> "Plan":
        """Measures operations and settings, and gives the better plan. Parameters are as before afterwards; without a state a fresh one is
        measured. `progress` is called with lines of text. Further options: policies=True, interval, setting={...}."""
        kept: List[Any] = []
        own = state is None
        state = State(self.graph) if state is None else state
        tuning = _Tuning(progress)
        setting = options.pop("setting", None)
        how, out = fill(ffi.new("graphi_tune_options *"), {**options, "seconds": seconds}, "tune", kept), ffi.new("graphi_plan **")
        if setting is not None:
            kept.append(fill(ffi.new("graphi_setting *"), setting, "tune: setting", kept))
            how.setting = kept[-1]
        how.progress, how.stop, how.context = lib.on_tune_options_progress, lib.on_tune_options_stop, tuning.context
        try:
            with tuning, state._shared.writing() if self._writes else state._shared.reading(), Using(self, state) as (pointer, parameters):
                tuning.finish(lib.graphi_plan_tune(pointer, parameters, how, out))
                return self._another(out[0])
        finally:
            if own:
                state.close()

    def changed(self, machine: Optional[Machine] = None, **setting: Any) -> "Plan":
        """The same compiled graph under another setting, or on another machine, to be simulated there; cheap."""
        kept: List[Any] = []
        how, out = ffi.new("graphi_plan_change *"), ffi.new("graphi_plan **")
        if setting:
            kept.append(fill(ffi.new("graphi_setting *"), setting, "Plan: setting", kept))
            how.setting = kept[-1]
        with Using(self, *([machine] if machine else [])) as pointers:
            if machine:
                how.machine = pointers[1]
            check(lib.graphi_plan_with(pointers[0], how, out))
            return self._another(out[0], machine)

    @property
    def info(self) -> Info:
        """Setting, memory, times, as graphi_plan_info of graphi/plan.h."""
        out = ffi.new("graphi_plan_info *")
        with Using(self) as (pointer,):
            lib.graphi_plan_get_info(pointer, out)
            return as_info(out)

    @property
    def trials(self) -> List[Info]:
        """The settings that were weighed when the plan was tuned, from the least predicted time on."""
        found: List[Info] = []
        trial = ffi.new("graphi_trial *")
        with Using(self) as (pointer,):
            while lib.graphi_plan_trial_at(pointer, len(found), trial):
                found.append(as_info(trial))
                found[-1]["ms"] = list(trial.ms[0:trial.rounds]) if trial.ms else []
        return found

    def explain(self, operations: bool = False) -> str:
        """What was chosen and why; with `operations` every one of them."""
        out = ffi.new("char **")
        with Using(self) as (pointer,):
            check(lib.graphi_plan_explain(pointer, operations, out))
        return taken(out)


def simulate(plan: Plan, machine: Optional[Machine] = None, *, setting: Optional[Dict[str, Any]] = None, truth: Optional[Plan] = None,
             timeline: Optional[Path] = None) -> Info:
    """The plan's setting, or another one, in virtual time, on the plan's machine or another one: makespan_ms, lower_bound_ms, ...
    `timeline`: a prefix, of which PREFIX.json and PREFIX.html are written."""
    kept: List[Any] = []
    how, out = ffi.new("graphi_simulate_options *"), ffi.new("graphi_simulation *")
    if setting is not None:
        kept.append(fill(ffi.new("graphi_setting *"), setting, "simulate: setting", kept))
        how.setting = kept[-1]
    if timeline is not None:
        kept.append(text(timeline, "simulate: timeline"))
        how.timeline = kept[-1]
    given = [(name, handle) for name, handle in (("machine", machine), ("truth", truth)) if handle is not None]
    with Using(plan, *(handle for _, handle in given)) as pointers:
        for (name, _), pointer in zip(given, pointers[1:]):
            setattr(how, name, pointer)
        check(lib.graphi_plan_simulate(pointers[0], how, out))
        return as_info(out)
