# SPDX-License-Identifier: Apache-2.0
"""Sessions that run ONNX models, with the names of ONNX Runtime. Any number of threads runs one session; Python's lock is released
meanwhile. docs/from-onnxruntime.md tells where it does otherwise.

    session = graphi.InferenceSession("model.onnx")
    y, = session.run(None, {"x": x})
"""
from __future__ import annotations

import json
import os
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ._native import ffi, lib
from .arrays import memory_of
from .errors import InterruptedError, InvalidError, UsageError, check, text_of, unknown
from .handles import Handle, Using
from .machine import threads_wanted
from .session_options import CPU, GraphOptimizationLevel, RunOptions, SessionOptions, get_available_providers
from .session_values import IOBinding, OrtValue
from .structs import Info, as_info, text
from .tensors import array_of, dtype_of, onnx_name, own_dtype, shape_of, tensor_of

Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]


class NodeArg:
    """An input or output: its name, type as "tensor(float)", and sizes, of which a name or None is open."""

    def __init__(self, name: str, type_: str, shape: Optional[List[Any]]) -> None:
        self.name, self.type, self.shape = name, type_, shape

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class ModelMetadata:
    """What the model says of itself."""

    def __init__(self, info: Info) -> None:
        self.producer_name, self.graph_name = info.producer, info.graph
        self.ir_version, self.opset = info.ir_version, info.opset


class _Port(NamedTuple):
    name: str
    text: Any  # for the library
    element: int
    sequence: bool
    optional: bool
    has_default: bool
    shape: Optional[List[Any]]
    dtype: Any  # NumPy's own; an object that no type equals where it has none

    @property
    def arg(self) -> NodeArg:
        inner = f"tensor({onnx_name(self.element)})" if self.element else "tensor"
        kind = f"seq({inner})" if self.sequence else inner
        return NodeArg(self.name, f"optional({kind})" if self.optional else kind, self.shape)


class _Profile:
    """Times of opening and of each run, as events that Perfetto and chrome://tracing show. Operators' times are those of a Run."""

    def __init__(self, prefix: str) -> None:
        self.start = time.perf_counter_ns()
        self.path = f"{prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.getpid()}_{id(self):x}.json"
        self.events: List[Dict[str, Any]] = []

    def add(self, name: str, begin: int) -> None:
        now = time.perf_counter_ns()
        self.events.append({"cat": "Session", "ph": "X", "name": name, "pid": os.getpid(), "tid": threading.get_ident(),
                            "ts": (begin - self.start) / 1e3, "dur": (now - begin) / 1e3})

    def write(self) -> str:
        Path(self.path).write_text(json.dumps(self.events), encoding="utf-8")
        return self.path


def _ports(pointer: Any, kind: int, sizes: Mapping[str, int]) -> Tuple[_Port, ...]:
    found: List[_Port] = []
    port = ffi.new("graphi_session_port *")
    while lib.graphi_session_port_at(pointer, kind, len(found), port):
        shape = shape_of(port)
        found.append(_Port(text_of(port.name), text(text_of(port.name), "session"), port.element,
                           port.kind == lib.GRAPHI_KIND_SEQUENCE, port.optional, port.has_default,
                           shape and [sizes.get(size, size) if isinstance(size, str) else size for size in shape],
                           own_dtype(port.element) if port.kind == lib.GRAPHI_KIND_TENSOR else object()))
    return tuple(found)


def _check_providers(providers: Any) -> None:
    for provider in providers or ():
        name = provider[0] if isinstance(provider, (tuple, list)) else provider
        if name != CPU:
            warnings.warn(f"provider {name} is not available, {CPU} is used", stacklevel=3)


class InferenceSession(Handle):
    """An ONNX model, from a file or from its bytes, made ready to run.

    `providers` is accepted: there is one, of CPUs. Raises FileError, InvalidError (what is no model), UnsupportedError, which names every
    operator that there is none for."""

    def __init__(self, path_or_bytes: Model, sess_options: Optional[SessionOptions] = None, providers: Optional[Sequence[Any]] = None,
                 provider_options: Optional[Sequence[Dict[Any, Any]]] = None, *, options: Optional[SessionOptions] = None,
                 **_: Any) -> None:
        self._options = sess_options or options or SessionOptions()
        if not isinstance(self._options, SessionOptions):
            raise UsageError(f"USAGE: InferenceSession: found options {type(self._options).__name__}, expected SessionOptions")
        _check_providers(providers)
        profile = _Profile(self._options.profile_file_prefix) if self._options.enable_profiling else None
        self._profile, begin = profile, time.perf_counter_ns()
        self._profile_start = profile.start if profile else 0
        self._open(path_or_bytes)
        if profile:
            profile.add("model_loading", begin)

    def _open(self, model: Model) -> None:
        how = ffi.new("graphi_session_options *")
        try:
            how.threads = self._options.intra_op_num_threads or threads_wanted()
            how.loop_limit = self._options.loop_limit
        except OverflowError as error:
            raise UsageError(f"USAGE: SessionOptions: {error}, expected a number of threads") from error
        how.host = self._options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL
        out = ffi.new("graphi_session **")
        if isinstance(model, (bytes, bytearray, memoryview)):
            view = memoryview(model)
            if not view.nbytes:
                raise InvalidError("INVALID: session: found no bytes, expected those of a model")
            with ffi.from_buffer(view if view.c_contiguous else bytes(view)) as room:
                check(lib.graphi_session_open(ffi.NULL, room, len(room), how, out))
        else:
            check(lib.graphi_session_open(text(model, "session"), ffi.NULL, 0, how, out))
        self._own(out[0], lib.graphi_session_close)
        sizes = self._options._sizes
        self._inputs = {port.name: port for port in _ports(out[0], lib.GRAPHI_SESSION_INPUT, sizes)}
        self._outputs = _ports(out[0], lib.GRAPHI_SESSION_OUTPUT, sizes)
        self._output_texts = {port.name: port.text for port in self._outputs}
        self._fixed = {name: [port.shape.index(size) for size in port.shape if size in sizes.values()]
                       for name, port in self._inputs.items() if port.shape and sizes}
        self._all = tuple(port.name for port in self._outputs)

    # --- what the model has ---

    def get_inputs(self) -> List[NodeArg]:
        """Inputs that a run needs."""
        self._live()
        return [port.arg for port in self._inputs.values() if not port.has_default]

    def get_overridable_initializers(self) -> List[NodeArg]:
        """Inputs that may be left out, since the model has values for them."""
        self._live()
        return [port.arg for port in self._inputs.values() if port.has_default]

    def get_outputs(self) -> List[NodeArg]:
        self._live()
        return [port.arg for port in self._outputs]

    def get_modelmeta(self) -> ModelMetadata:
        out = ffi.new("graphi_session_info *")
        with Using(self) as (pointer,):
            lib.graphi_session_get_info(pointer, out)
            return ModelMetadata(as_info(out))

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> List[str]:
        return get_available_providers()

    def get_provider_options(self) -> Dict[str, Dict[str, str]]:
        return {CPU: {}}

    def set_providers(self, providers: Optional[Sequence[Any]] = None, provider_options: Any = None) -> None:
        _check_providers(providers)

    def enable_fallback(self) -> None:
        """Without effect: there is nothing to fall back to."""

    disable_fallback = enable_fallback

    # --- running ---

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], run_options: Optional[RunOptions] = None) -> List[Any]:
        """Outputs by name (None: all) as new arrays; lists of them for sequences, None for an optional that holds nothing."""
        if run_options is not None and run_options.terminate:
            raise InterruptedError("INTERRUPTED: session: found RunOptions.terminate, expected it to be unset")
        begin = time.perf_counter_ns() if self._profile else 0
        names = self._all if output_names is None else output_names
        owned = self._held()
        try:
            results = self._called(owned.pointer, names, input_feed)
        finally:
            owned.drop()
        if self._profile:
            self._profile.add("model_run", begin)
        return results

    def _called(self, pointer: Any, names: Sequence[str], feed: Mapping[str, Any]) -> List[Any]:
        count = len(feed)
        room = ffi.new("graphi_tensor *[]", count + len(names))  # inputs, then results; all are given back
        texts: List[Any] = []
        wanted = ffi.NULL if names is self._all else [self._output_text(name) for name in names]
        try:
            for name, data in feed.items():
                self._take(name, data, texts, room)
            results = room + count
            status = lib.graphi_session_run(pointer, texts, room, len(texts), wanted, len(names), results)
            if status:
                check(status)
            info = ffi.new("graphi_tensor_info *")
            return [array_of(results[place], name, info) for place, name in enumerate(names)]
        finally:
            for place in range(count + len(names)):
                lib.graphi_tensor_destroy(room[place])

    def _take(self, name: str, data: Any, texts: List[Any], room: Any) -> None:
        """One input into the room, and its name to the texts."""
        port = self._inputs.get(name)
        if port is None:
            raise unknown("session: input", name, self._inputs)
        if type(data) is np.ndarray and data.dtype == port.dtype and data.nbytes and data.flags.c_contiguous:
            shape = data.shape
            check(lib.graphi_tensor_create(port.element, len(shape), shape, memory_of(data), room + len(texts)))
        elif data is None and port.optional:
            return
        else:
            room[len(texts)] = tensor_of(data._value if isinstance(data, OrtValue) else data, port.element, port.sequence, f"input '{name}'")
        texts.append(port.text)
        if self._fixed:
            self._check_sizes(name, port, data)

    def _output_text(self, name: str) -> Any:
        found = self._output_texts.get(name)
        if found is None:
            raise unknown("session: output", name, self._output_texts)
        return found

    def _check_sizes(self, name: str, port: _Port, data: Any) -> None:
        shape = np.shape(data)
        for axis in self._fixed.get(name, ()):
            assert port.shape is not None
            if len(shape) == len(port.shape) and shape[axis] != port.shape[axis]:
                raise InvalidError(f"INVALID: input '{name}': found shape {list(shape)}, expected {port.shape}, as the options override it")

    def run_with_ort_values(self, output_names: Optional[Sequence[str]], input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Optional[RunOptions] = None) -> List[OrtValue]:
        return [OrtValue(value) for value in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that are bound once and run many times."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        iobinding._run(run_options)

    def stream(self, carried: Mapping[str, str]) -> "Stream":
        """A stream of runs that keeps state: `carried` tells which output becomes which input of the next run, {"state_out": "state_in"}.
        A session has any number of them."""
        return Stream(self, carried)

    # --- profiling ---

    def get_profiling_start_time_ns(self) -> int:
        return self._profile_start

    def end_profiling(self) -> str:
        """Writes what SessionOptions.enable_profiling had kept, and gives the file's name; "" where nothing was asked for."""
        profile, self._profile = self._profile, None
        return profile.write() if profile else ""


class Stream:
    """Runs of one session whose state is carried along, of one thread at a time. It begins with zeros; open sizes of states are 1."""

    def __init__(self, session: InferenceSession, carried: Mapping[str, str]) -> None:
        self._session, self._carried = session, dict(carried)
        for output, input_ in self._carried.items():
            session._output_text(output)
            if input_ not in session._inputs:
                raise unknown("stream: input", input_, session._inputs)
        self._state: Dict[str, Any] = {}
        self.reset()

    def reset(self, state: Optional[Mapping[str, Any]] = None) -> None:
        """Begins again: with zeros, or with `state`, arrays by the input's name."""
        for name in self._carried.values():
            port = self._session._inputs[name]
            shape = [size if isinstance(size, int) else 1 for size in port.shape or ()]
            self._state[name] = np.zeros(shape, dtype_of(port.element, f"stream: '{name}'"))
        for name, array in (state or {}).items():
            if name not in self._state:
                raise unknown("stream: state", name, self._state)
            self._state[name] = array

    @property
    def state(self) -> Dict[str, Any]:
        """What the next run begins with."""
        return dict(self._state)

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any]) -> List[Any]:
        """One run; outputs as InferenceSession.run gives them, without those that are carried where output_names is None."""
        kept = [name for name in self._session._all if name not in self._carried] if output_names is None else list(output_names)
        names = [*kept, *(name for name in self._carried if name not in kept)]
        found = dict(zip(names, self._session.run(names, {**input_feed, **self._state})))
        self._state = {input_: found[output] for output, input_ in self._carried.items()}
        return [found[name] for name in kept]


__all__ = ["InferenceSession", "ModelMetadata", "NodeArg", "Stream"]
