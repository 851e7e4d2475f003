# SPDX-License-Identifier: Apache-2.0
"""Weights of PyTorch's layers into states. Tensors, or NumPy arrays, come as `state_dict()` has them; PyTorch itself is not needed.

Each function takes the state, the state_dict, the layer's prefix there ("encoder.", "" for a layer's own dict), and the names of the
parameters here. Shapes and types are compared; what is missing is named."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Tuple

import numpy as np

from .arrays import as_array
from .errors import InvalidError, unknown
from .state import State

if TYPE_CHECKING:
    from .from_module import Converted

Weights = Mapping[str, Any]


def _tensor(weights: Weights, name: str) -> Any:
    if name not in weights:
        raise unknown("state_dict", name, weights)
    tensor = weights[name]
    array = as_array(tensor.detach() if hasattr(tensor, "detach") else tensor)
    if array is None:
        raise InvalidError(f"INVALID: state_dict['{name}']: found {type(tensor).__name__}, expected a tensor or an array")
    return array


def _ranked(weights: Weights, name: str, rank: int) -> Any:
    array = _tensor(weights, name)
    if array.ndim != rank:
        raise InvalidError(f"INVALID: state_dict['{name}']: found {array.ndim} dimensions, expected {rank}")
    return array


def load_linear(state: State, weights: Weights, prefix: str, weight: str, bias: Optional[str] = None) -> None:
    """Linear: weight [out, in] becomes [in, out], for x @ w."""
    state[weight] = _ranked(weights, f"{prefix}weight", 2).T
    if bias is not None:
        state[bias] = _ranked(weights, f"{prefix}bias", 1)


def load_conv2d(state: State, weights: Weights, prefix: str, weight: str, bias: Optional[str] = None) -> None:
    """Conv2d and ConvTranspose2d: weight [K, C/groups, KH, KW] becomes [KH, KW, C/groups, K]."""
    state[weight] = np.transpose(_ranked(weights, f"{prefix}weight", 4), (2, 3, 1, 0))
    if bias is not None:
        state[bias] = _ranked(weights, f"{prefix}bias", 1)


def load_conv1d(state: State, weights: Weights, prefix: str, weight: str, bias: Optional[str] = None) -> None:
    """Conv1d: weight [K, C/groups, KW] becomes [1, KW, C/groups, K], for conv2d on images of one row."""
    state[weight] = np.transpose(_ranked(weights, f"{prefix}weight", 3), (2, 1, 0))[None]
    if bias is not None:
        state[bias] = _ranked(weights, f"{prefix}bias", 1)


def load_layer_norm(state: State, weights: Weights, prefix: str, scale: str, bias: Optional[str] = None) -> None:
    """LayerNorm and GroupNorm: scale and bias as they are."""
    state[scale] = _tensor(weights, f"{prefix}weight")
    if bias is not None:
        state[bias] = _tensor(weights, f"{prefix}bias")


def load_batch_norm(state: State, weights: Weights, prefix: str, names: Tuple[str, str, str, str]) -> None:
    """BatchNorm: scale, bias, mean and variance of batch_norm_inference, in this order."""
    for name, part in zip(names, ("weight", "bias", "running_mean", "running_var")):
        state[name] = _ranked(weights, prefix + part, 1)


def load_embedding(state: State, weights: Weights, prefix: str, table: str) -> None:
    """Embedding: the table as it is."""
    state[table] = _ranked(weights, f"{prefix}weight", 2)


def from_module(module: Any, example: Sequence[Any]) -> "Converted":
    """The graph and parameters of a PyTorch module in eval mode, for inputs of the shapes of `example`: docs/from-pytorch.md lists what it takes.
    PyTorch 2.5 or newer is needed. Raises UnsupportedError, which names what there is no operation for, and where in the module."""
    from .from_module import from_module as convert
    return convert(module, example)


def _load_recurrent(state: State, weights: Weights, prefix: str, scope: str) -> None:
    names = [name for name in state if name.startswith((f"{scope}weight_ih_l", f"{scope}weight_hh_l", f"{scope}bias_ih_l",
                                                        f"{scope}bias_hh_l")) and "/" not in name[len(scope):]]
    if not names:
        raise unknown("state", f"{scope}weight_ih_l0", state)
    arrays = {name: _tensor(weights, prefix + name[len(scope):]) for name in names}
    for name, array in arrays.items():
        state[name] = array


def load_lstm(state: State, weights: Weights, prefix: str = "", scope: str = "") -> None:
    """Every layer and direction of graphi.lstm(..., scope=scope), which has PyTorch's names, shapes and order of gates."""
    _load_recurrent(state, weights, prefix, scope)


def load_gru(state: State, weights: Weights, prefix: str = "", scope: str = "") -> None:
    """As load_lstm, of graphi.gru."""
    _load_recurrent(state, weights, prefix, scope)


def load_rnn(state: State, weights: Weights, prefix: str = "", scope: str = "") -> None:
    """As load_lstm, of graphi.rnn."""
    _load_recurrent(state, weights, prefix, scope)
