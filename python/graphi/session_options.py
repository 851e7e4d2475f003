# SPDX-License-Identifier: Apache-2.0
"""Options of sessions under the names of ONNX Runtime. What has no meaning here is accepted and kept, what would change results is
refused: docs/from-onnxruntime.md goes through them name by name."""
from __future__ import annotations

import enum
import os
from typing import Any, Dict, Optional

from .errors import UnsupportedError, UsageError, unknown

CPU = "CPUExecutionProvider"


class GraphOptimizationLevel(enum.IntEnum):
    """ORT_DISABLE_ALL runs a model operator by operator, every other level in plans."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Without effect: independent operators run at the same time where it pays."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


def _refused(what: str, expected: str) -> UnsupportedError:
    return UnsupportedError(f"UNSUPPORTED: SessionOptions: found {what}, expected {expected}")


class SessionOptions:
    """What a session is opened with."""

    intra_op_num_threads: int
    inter_op_num_threads: int
    execution_mode: ExecutionMode
    graph_optimization_level: GraphOptimizationLevel
    enable_profiling: bool
    profile_file_prefix: str
    loop_limit: int
    logid: str
    log_severity_level: int
    log_verbosity_level: int
    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    use_deterministic_compute: bool
    optimized_model_filepath: str

    _DEFAULTS: Dict[str, Any] = {
        "intra_op_num_threads": 0, "inter_op_num_threads": 0, "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL, "enable_profiling": False,
        "profile_file_prefix": "graphi_profile_", "loop_limit": 0, "logid": "", "log_severity_level": -1, "log_verbosity_level": 0,
        "enable_cpu_mem_arena": True, "enable_mem_pattern": True, "enable_mem_reuse": True, "use_deterministic_compute": False,
        "optimized_model_filepath": ""}

    def __init__(self) -> None:
        for name, value in self._DEFAULTS.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_entries", {})
        object.__setattr__(self, "_sizes", {})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._DEFAULTS:
            raise AttributeError(str(unknown("SessionOptions", name, self._DEFAULTS)).replace("INVALID", "USAGE", 1))
        kind = type(self._DEFAULTS[name])
        try:
            if kind in (str, bool) and not isinstance(value, (str, os.PathLike) if kind is str else (bool, int)):
                raise ValueError(f"found {value!r}")
            value = os.fspath(value) if kind is str else kind(value)
        except (TypeError, ValueError) as error:
            raise UsageError(f"USAGE: SessionOptions: {name}: {error}, expected {kind.__name__}") from error
        if name == "optimized_model_filepath" and value:
            raise _refused("optimized_model_filepath", "none: plans are not written as models")
        object.__setattr__(self, name, value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Kept, and told by get_session_config_entry; no key has an effect."""
        self._entries: Dict[str, str]
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise unknown("SessionOptions: entry", key, self._entries)
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Sizes of that name are `size` from now on: get_inputs tells it, other arrays are refused."""
        self._sizes: Dict[str, int]
        self._sizes[str(name)] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        raise _refused("an override by denotation", "one by name")

    def add_initializer(self, name: str, value: Any) -> None:
        raise _refused(f"initializer '{name}' of the caller", "those of the model")

    add_external_initializers = add_initializer

    def register_custom_ops_library(self, path: str) -> None:
        raise _refused("a library of operators", "ONNX's operators")

    def enable_cpu_affinity(self) -> None:
        """Without effect: threads are pinned where that is allowed."""


class RunOptions:
    """Accepted for each run; `terminate` refuses runs that begin after it is set."""

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self._entries: Dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Kept; no key has an effect."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> Optional[str]:
        return self._entries.get(key)


def get_available_providers() -> "list[str]":
    return [CPU]


def get_device() -> str:
    return "CPU"
