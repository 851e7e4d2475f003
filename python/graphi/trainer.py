# SPDX-License-Identifier: Apache-2.0
"""Training with validation, schedules of rates, checkpoints, and going on from one bit for bit.

Ctrl-C, an exception of a callback, and the interpreter's exit end a training after its step, with its checkpoint written. Python's lock is
released during steps. Other threads use the state between them."""
from __future__ import annotations

import atexit
import contextlib
import os
import logging
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._native import ffi, lib
from .arrays import DTYPES, dense, pointer_to
from .callbacks import Watcher, noted, of, running, stopped
from .errors import InvalidError, UsageError, check, text_of, unknown
from .feeds import Feed, arrays_of_scored
from .graph import Graph
from .handles import Handle, OneThread, Shared, Using
from .machine import Machine, machine_or_default
from .models import form_of
from .plan import _options as plan_options
from .progress import Progress
from .run import Run
from .state import State
from .structs import Info, as_info, fill, text, words_of

Path = Union[str, "os.PathLike[str]"]
_LOG = logging.getLogger("graphi")
_CALLBACKS = ("begin", "stepped", "scored", "validated", "saved", "note", "stop")
_SECONDS_TO_END = 60.0  # that the interpreter's exit waits for a step and its checkpoint


class Scored:
    """One scored batch; see graphi_scored in graphi/train.h. Arrays are None where they were not asked for."""

    def __init__(self, batch: Any) -> None:
        self.index, self.batches, self.samples = int(batch.index), int(batch.batches), int(batch.samples)
        self.logits, self.losses, self.predictions, self.targets = arrays_of_scored(batch)


class _Calls(Watcher):
    """The callbacks of one trainer or scoring."""

    def __init__(self, functions: Mapping[str, Optional[Callable[..., Any]]], shared: Shared) -> None:
        super().__init__()
        self._functions, self._shared = functions, shared
        self.progress: Optional[Progress] = None
        self.ports: Dict[int, Dict[str, Any]] = {}  # inputs of each part

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """A callback may read and change the state, as nothing executes meanwhile."""
        self._shared.release(True)
        try:
            yield
        finally:
            self._shared.acquire(True)

    def call(self, name: str, *arguments: Any) -> Any:
        """The user's function; what it raises ends the training."""
        function = self._functions.get(name)
        if function is None:
            return None
        with self.outside():
            try:
                return function(*arguments)
            except BaseException as error:
                self.note(error)
                return None

    @property
    def failed(self) -> int:
        return int(lib.GRAPHI_INTERRUPTED if self.error is not None else lib.GRAPHI_OK)

    def begin(self, step: int, part: int, run: Any) -> int:
        arrays = self.call("begin", step, part)
        if isinstance(self.error, KeyboardInterrupt) and arrays is None:
            arrays = self._functions["begin"](step, part)  # type: ignore[misc] # the step is made; then training ends
        for name, data in (arrays or {}).items():
            ports = self.ports[part]
            if name not in ports:
                raise unknown("begin: input", name, ports)
            number = DTYPES[ports[name].dtype]
            array = dense(data, number, f"begin: input '{name}'", None if name in ports[name].value.graph._symbolic else ports[name].shape)
            check(lib.graphi_run_set(run, text(name, "begin"), number, pointer_to(array), array.nbytes))
        return 0 if isinstance(self.error, KeyboardInterrupt) else self.failed


_FAILED = {"error": lib.GRAPHI_INTERRUPTED, "onerror": noted}


@ffi.def_extern(onerror=stopped, error=True)
def on_trainer_options_stop(context: Any) -> bool:
    calls = of(context)
    return bool(calls.error is not None or running.ending or calls.call("stop") or calls.error is not None)


@ffi.def_extern(onerror=stopped, error=True)
def on_score_options_stop(context: Any) -> bool:
    return of(context).error is not None or running.ending


@ffi.def_extern(**_FAILED)
def on_trainer_options_begin(context: Any, step: int, part: int, run: Any) -> int:
    return int(of(context).begin(step, part, run))


@ffi.def_extern(onerror=noted)
def on_trainer_options_stepped(context: Any, info: Any) -> None:
    calls = of(context)
    told = as_info(info)
    if calls.progress:
        calls.progress.stepped(told)
    calls.call("stepped", told)


@ffi.def_extern(**_FAILED)
def on_trainer_options_scored(context: Any, batch: Any) -> int:
    calls = of(context)
    calls.call("scored", Scored(batch))
    return int(calls.failed)


@ffi.def_extern(**_FAILED)
def on_score_options_scored(context: Any, batch: Any) -> int:
    calls = of(context)
    calls.call("scored", Scored(batch))
    return int(calls.failed)


@ffi.def_extern(**_FAILED)
def on_trainer_options_validated(context: Any, info: Any, score: Any) -> int:
    calls = of(context)
    found = as_info(score) if score else None
    if calls.progress:
        calls.progress.validated(found)
    calls.call("validated", as_info(info), found)
    return int(calls.failed)


@ffi.def_extern(onerror=noted)
def on_trainer_options_saved(context: Any, checkpoint: Any) -> None:
    of(context).call("saved", text_of(checkpoint))


@ffi.def_extern(onerror=noted)
def on_trainer_options_note(context: Any, words: Any) -> None:
    of(context).call("note", text_of(words))


@atexit.register
def _end() -> None:
    running.end(_SECONDS_TO_END)


class Trainer(Handle):
    """Trains `graph`, which has updates (Graph.minimize), on `training`: a graphi.Data, arrays by name (samples first, targets last), a
    function (epoch, index) that gives a batch, or batches to iterate over.

    Further options are the fields of graphi_trainer_options in graphi/train.h: steps or epochs, rate, schedule="cosine:10e", metric="accuracy",
    validate_every, checkpoint, every, start="resume" or "overwrite", seed, rate_input; those of feeds: batch, inputs, ordered, carried,
    batches; and callbacks:
        begin(step, part) -> arrays for inputs that are in no feed
        stepped(info), validated(info, score), scored(batch), saved(path), note(text), stop() -> whether to end.
    `graph` may be two graphs over one state, trained one after the other, `times=(1, 2)` each step. `plan`: options of graphi.Plan."""

    def __init__(self, graph: Union[Graph, Sequence[Graph]], training: Any, *, evaluation: Optional[Graph] = None, validation: Any = None,
                 state: Optional[State] = None, machine: Optional[Machine] = None, plan: Optional[Mapping[str, Any]] = None,
                 losses: Sequence[Any] = (), times: Sequence[int] = (), network: Optional[str] = None,
                 model: Optional[Mapping[str, Any]] = None, strings: Optional[Mapping[str, str]] = None,
                 progress: Any = False, **options: Any) -> None:
        graphs = [graph] if isinstance(graph, Graph) else list(graph)
        if not 1 <= len(graphs) <= lib.GRAPHI_TRAINER_PARTS:
            raise InvalidError(f"INVALID: Trainer: found {len(graphs)} graphs, expected 1 or {lib.GRAPHI_TRAINER_PARTS}")
        self.state = State(graphs[0], int(options.get("seed") or 0)) if state is None else state
        self._kept: List[Any] = []
        self._progress, self._one = progress, OneThread("Trainer")
        functions = {name: options.pop(name, None) for name in _CALLBACKS}
        functions["note"] = functions["note"] or _LOG.info
        self._calls = _Calls(functions, self.state._shared)
        self._calls.ports = {part: {port.name: port for port in each.inputs} for part, each in enumerate(graphs)}
        how = ffi.new("graphi_trainer_options *")
        feeds = {name: options.pop(name, None) for name in ("batch", "inputs", "ordered", "carried", "batches")}
        feeds["rate_input"] = options.get("rate_input") or "learning_rate"
        fed = Feed(how.training, training, graphs, self._calls, feeds)
        self._check_fed(graphs, fed, str(feeds["rate_input"]), functions["begin"] is not None)
        parts = [fed]
        if validation is not None:
            parts.append(Feed(how.validation, validation, [evaluation or graphs[0]], self._calls, {**feeds, "batches": None}))
        self._kept += parts
        fill(how, {name: value for name, value in options.items()}, "Trainer", self._kept)
        self._fill_rest(how, losses, times, network, model, strings, plan)
        if evaluation is None and (validation is not None):
            raise InvalidError("INVALID: Trainer: found data for validation and no graph, expected evaluation=GRAPH, too")
        self._create(how, graphs, evaluation, machine_or_default(machine), [need for part in parts for need in part.needs])

    @staticmethod
    def _check_fed(graphs: Sequence[Graph], fed: Feed, rate: str, begins: bool) -> None:
        """An input that nobody feeds would be zero, silently."""
        for graph in graphs:
            for port in graph.inputs:
                if port.name not in fed.names and port.name != rate and not begins:
                    raise InvalidError(f"INVALID: Trainer: found input '{port.name}' in no feed, expected {', '.join(fed.names)}, {rate} alone; "
                                       "begin= gives further ones, rate_input= names that of the rate")

    def _text(self, value: Any) -> Any:
        self._kept.append(text(value, "Trainer"))
        return self._kept[-1]

    def _fill_rest(self, how: Any, losses: Sequence[Any], times: Sequence[int], network: Optional[str], model: Optional[Mapping[str, Any]],
                   strings: Optional[Mapping[str, str]], plan: Optional[Mapping[str, Any]]) -> None:
        if len(losses) > lib.GRAPHI_TRAINER_LOSSES or len(times) > lib.GRAPHI_TRAINER_PARTS:
            raise UsageError(f"USAGE: Trainer: found {len(losses)} losses and times of {len(times)} graphs, expected at most "
                             f"{lib.GRAPHI_TRAINER_LOSSES} and {lib.GRAPHI_TRAINER_PARTS}")
        for place, loss in enumerate(losses):
            name, part = loss if isinstance(loss, tuple) else (loss, 0)
            how.loss[place].output, how.loss[place].graph = self._text(name), part
        for place, count in enumerate(times):
            how.times[place] = count
        if network is not None:
            how.network = self._text(network)
        if model is not None:
            self._kept.append(form_of(model, self._kept))
            how.model = self._kept[-1]
        if strings:
            keys, values = [self._text(key) for key in strings], [self._text(value) for value in strings.values()]
            self._kept += [ffi.new("char *[]", keys), ffi.new("char *[]", values)]
            how.string_count, how.keys, how.values = len(keys), self._kept[-2], self._kept[-1]
        if plan:
            self._kept.append(plan_options(dict(plan), self._kept))
            how.plan = self._kept[-1]

    def _create(self, how: Any, graphs: Sequence[Graph], evaluation: Optional[Graph], machine: Machine, data: Sequence[Handle]) -> None:
        for name in ("stop", "begin", "stepped", "scored", "validated", "saved", "note"):
            if name in ("stop", "validated", "stepped") or self._calls._functions.get(name):
                setattr(how, name, getattr(lib, f"on_trainer_options_{name}"))
        if not self._progress and not self._calls._functions["stepped"]:
            how.stepped = ffi.NULL
        how.context = self._calls.context
        out = ffi.new("graphi_trainer **")
        needs: List[Handle] = [*graphs, *([evaluation] if evaluation else []), self.state, machine, *data]
        with self._watched(), Using(*needs) as pointers:
            for place in range(len(graphs)):
                how.graph[place] = pointers[place]
            if evaluation:
                how.evaluation = pointers[len(graphs)]
            first = len(graphs) + (evaluation is not None)
            how.state, how.machine = pointers[first], pointers[first + 1]
            self._calls.finish(lib.graphi_trainer_create(how, out))
            self._own(out[0], lib.graphi_trainer_destroy, needs)
        self._checkpoint = bool(how.checkpoint)
        self.state._list()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """While the library trains: alone with the state but in callbacks, and the exit of the interpreter waits."""
        with self._one, running, self._calls, self.state._shared.writing():
            yield

    def use(self, run: Run, part: int = 0) -> None:
        """Executes graph `part` (-1: the evaluation) by this run, as of a tuned plan, over the trainer's state. Before the first step."""
        with self._watched(), Using(self, run) as (pointer, other):
            check(lib.graphi_trainer_use(pointer, part, other))
            self._live().need(run._live())

    def run(self) -> Info:
        """Trains to the last step; gives `info`. KeyboardInterrupt after Ctrl-C, and what a callback raised, come when the checkpoint has
        been written; InterruptedError where `stop` said so; NonFiniteError where a loss is not finite."""
        calls = self._calls
        info = self.info
        calls.progress = Progress(self._progress, info.step, info.last_step) if self._progress else None
        try:
            with self._watched(), Using(self) as (pointer,):
                status = lib.graphi_trainer_run(pointer)
                if status == lib.GRAPHI_INVALID and isinstance(calls.error, (KeyboardInterrupt, SystemExit)) and self._checkpoint:
                    check(lib.graphi_trainer_save(pointer, ffi.NULL))  # it came as a batch was made, before the step
                calls.finish(status)
        finally:
            if calls.progress:
                calls.progress.close()
                calls.progress = None
        return self.info

    def step(self) -> Info:
        """One step, whatever the last one is; neither validation nor checkpoint."""
        with self._watched(), Using(self) as (pointer,):
            self._calls.finish(lib.graphi_trainer_step(pointer))
        return self.info

    def save(self, path: Optional[Path] = None) -> None:
        """Writes a checkpoint (None: to that of the options)."""
        with self._watched(), Using(self) as (pointer,):
            self._calls.finish(lib.graphi_trainer_save(pointer, ffi.NULL if path is None else text(path, "save")))

    @property
    def info(self) -> Info:
        """Step, last_step, moving means of losses, rate, step_ms, as graphi_trainer_info."""
        out = ffi.new("graphi_trainer_info *")
        with Using(self) as (pointer,):
            lib.graphi_trainer_get_info(pointer, out)
        return as_info(out)


def score(run: Run, feed: Any, *, metric: str = "loss", batches: int = 0, logits: bool = False,
          scored: Optional[Callable[[Scored], Any]] = None, **feeds: Any) -> Info:
    """One pass over `feed` by a run that updates nothing: loss, metric and samples. `scored` is called with every batch."""
    calls = _Calls({"scored": scored}, run.state._shared)
    entry, how, out = ffi.new("graphi_feed *"), ffi.new("graphi_score_options *"), ffi.new("graphi_score *")
    fed = Feed(entry, feed, [run.plan.graph], calls, feeds)
    words = words_of(ffi.typeof("graphi_metric"))
    if metric not in words:
        raise unknown("score: metric", metric, words)
    how.metric, how.batches, how.logits = words[metric], batches, logits
    how.scored, how.stop, how.context = lib.on_score_options_scored, lib.on_score_options_stop, calls.context
    with run._one, running, calls, run.state._shared.writing(), Using(run, *fed.needs) as pointers:
        calls.finish(lib.graphi_run_score(pointers[0], entry, how, out))
    return as_info(out)


class Checkpoint(Handle):
    """What a file that training wrote says of its network, data and place."""

    def __init__(self, path: Path) -> None:
        out = ffi.new("graphi_checkpoint **")
        check(lib.graphi_checkpoint_open(text(path, "Checkpoint"), out))
        self._own(out[0], lib.graphi_checkpoint_close)

    @property
    def info(self) -> Info:
        """As graphi_checkpoint_info."""
        out = ffi.new("graphi_checkpoint_info *")
        with Using(self) as (pointer,):
            lib.graphi_checkpoint_get_info(pointer, out)
            return as_info(out)

    def text(self, key: str) -> Optional[str]:
        """The string of that key of docs/training.md; None: there is none."""
        with Using(self) as (pointer,):
            found = lib.graphi_checkpoint_text(pointer, text(key, "Checkpoint"))
            return text_of(found) if found else None

    def load(self, state: State, network: Optional[str] = None) -> None:
        """The parameters into a state of the network (None: of any that has them)."""
        with state._shared.writing(), Using(self, state) as (pointer, other):
            check(lib.graphi_checkpoint_load(pointer, other, ffi.NULL if network is None else text(network, "Checkpoint"), ffi.NULL, ffi.NULL))


__all__: Tuple[str, ...] = ("Checkpoint", "Scored", "Trainer", "score")
