# SPDX-License-Identifier: Apache-2.0
"""Graphi from Python: graphs, plans, states and runs. docs/python.md is the tour.

    graph = graphi.Graph()
    x = graph.input("x", "float32", (4, 3))
    w = graph.parameter("w", "float32", (3, 2), init="glorot_uniform")
    graph.output("y", graphi.relu(x @ w))
    run = graphi.Run(graphi.Plan(graph))
    y = run(x=numpy.ones((4, 3), "float32"))["y"]
"""
import typing as _typing

from . import models, torch
from ._native import lib as _lib
from .arrays import empty
from .data import Data
from .errors import (BusyError, ClosedError, DtypeError, Error, FileError, InterruptedError, InvalidError, MissedError, NonFiniteError,
                     OutOfMemoryError, RefusedError, UnknownNameError, UnsupportedError, UsageError, text_of as _text_of)
from .graph import Graph, Port, Symbol, Value
from .machine import Machine
from .operations import *  # noqa: F403
from .operations import __all__ as _operations
from .plan import Plan, simulate
from .recurrent import Recurrent, gru, lstm, rnn
from .run import Run, Timeline
from .session import InferenceSession, ModelMetadata, NodeArg, Stream
from .session_options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions, get_available_providers, get_device
from .session_values import IOBinding, OrtValue
from .state import State
from .structs import Info
from .trainer import Checkpoint, Scored, Trainer, score

__version__ = _text_of(_lib.graphi_version())
__all__ = ["BusyError", "Checkpoint", "ClosedError", "Data", "DtypeError", "empty", "Error", "ExecutionMode", "FileError",
           "get_available_providers", "get_device", "Graph", "GraphOptimizationLevel", "gru", "InferenceSession", "InterruptedError",
           "InvalidError", "IOBinding", "Info", "lstm", "Machine", "MissedError", "ModelMetadata", "models", "NodeArg", "NonFiniteError",
           "OrtValue", "OutOfMemoryError", "Plan", "Port", "Recurrent", "RefusedError", "rnn", "Run", "RunOptions", "score", "Scored",
           "SessionOptions", "simulate", "State", "Stream", "Symbol", "Timeline", "torch", "Trainer", "UnknownNameError",
           "UnsupportedError", "UsageError", "Value"]
__all__ += _operations


if not _typing.TYPE_CHECKING:  # which tells of such names itself
    def __getattr__(name: str) -> object:
        from .errors import unknown
        raise AttributeError(str(unknown("graphi", name, __all__)))
