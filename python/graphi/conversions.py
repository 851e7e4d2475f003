# SPDX-License-Identifier: Apache-2.0
"""What each operator of an exported PyTorch program becomes: TABLE, by its name without overload. A function gets the building and the
operator's arguments, values in place of nodes; `build.meta` is the example's result, whose sizes are the result's."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import operations as op
from .graph import Graph, Value
from .recurrent import gru as gru_layer, lstm as lstm_layer, rnn as rnn_layer


class Unfit(Exception):
    """An argument that this package has no operation for; the message says which."""


class Image:
    """A value [N, H, W, C] that stands for PyTorch's [N, C, H, W]."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Zeros:
    """Zeros of a shape, which initial states may be."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)


class Parameter:
    """A tensor of the module, which becomes a parameter in the layout that its first reader needs."""

    def __init__(self, name: str, array: Any, trained: bool) -> None:
        self.name, self.array, self.trained = name, array, trained
        self.values: Dict[Tuple[int, ...], Value] = {}


def _array(tensor: Any) -> Any:
    tensor = tensor.detach().cpu().contiguous()
    if str(tensor.dtype) == "torch.bfloat16":
        import ml_dtypes
        return tensor.view(dtype=__import__("torch").int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


class Building:
    """The graph that is made, and the arrays of its parameters."""

    def __init__(self) -> None:
        self.graph, self.arrays, self.meta = Graph(), {}, None  # type: Graph, Dict[str, Any], Any

    @staticmethod
    def is_value(value: Any) -> bool:
        return isinstance(value, (Value, Image, Zeros, Parameter))

    def parameter(self, name: str, tensor: Any, trained: bool) -> Parameter:
        return Parameter(name, _array(tensor), trained)

    def laid(self, parameter: Parameter, order: Tuple[int, ...] = ()) -> Value:
        """The parameter, its dimensions in that order."""
        if order not in parameter.values:
            array = parameter.array.transpose(order) if order else parameter.array
            name = parameter.name + (f"/{'.'.join(map(str, order))}" if parameter.values else "")
            value = self.graph.parameter(name, array.dtype, array.shape)
            if not parameter.trained:
                self.graph.freeze(value)
            parameter.values[order], self.arrays[name] = value, array
        return parameter.values[order]

    def plain(self, value: Any) -> Value:
        """In PyTorch's order of dimensions."""
        if isinstance(value, Image):
            return value.value.transpose(0, 3, 1, 2)
        if isinstance(value, Parameter):
            return self.laid(value)
        if isinstance(value, Zeros):
            return self.graph.constant(np.zeros(value.shape, "float32"))
        return value if isinstance(value, Value) else self.graph.constant(value, "float32")

    def image(self, value: Any) -> Value:
        return value.value if isinstance(value, Image) else self.plain(value).transpose(0, 2, 3, 1)

    def shape(self, place: Optional[int] = None) -> List[int]:
        """Sizes of the result, or of one of several."""
        meta = self.meta if place is None else self.meta[place]
        return [int(size) for size in meta.shape]


def _need(fits: bool, words: str) -> None:
    if not fits:
        raise Unfit(words)


def _pair(value: Any) -> List[int]:
    numbers = [value] if isinstance(value, int) else list(value)
    return numbers * 2 if len(numbers) == 1 else numbers


def _pads(padding: Any) -> List[int]:
    height, width = _pair(padding)
    return [height, width, height, width]


# --- element by element ---

def _each(make: Callable[..., Value]) -> Callable[..., Any]:
    """One tensor and numbers: an image stays one."""
    def function(build: Building, x: Any, *rest: Any, **named: Any) -> Any:
        named.pop("dtype", None)
        return Image(make(x.value, *rest, **named)) if isinstance(x, Image) else make(build.plain(x), *rest, **named)
    return function


def _two(make: Callable[[Any, Any], Value]) -> Callable[..., Any]:
    """Two tensors, or one and a number; alpha multiplies the second."""
    def function(build: Building, a: Any, b: Any, *, alpha: float = 1, rounding_mode: Any = None) -> Any:
        _need(rounding_mode is None, "found a rounding mode, expected none")
        if all(isinstance(each, (Image, int, float)) for each in (a, b)):
            left, right = (each.value if isinstance(each, Image) else each for each in (a, b))
            return Image(make(left, right if alpha == 1 else right * alpha))
        left, right = (build.plain(each) if Building.is_value(each) else each for each in (a, b))
        return make(left, right if alpha == 1 else right * alpha)
    return function


def _clamp(x: Value, low: Any = None, high: Any = None, **named: Any) -> Value:
    low, high = named.get("min", low), named.get("max", high)
    x = x if low is None else op.max(x, low)
    return x if high is None else op.min(x, high)


def _erf(x: Value) -> Value:
    """Abramowitz and Stegun 7.1.26: within 1.5e-7."""
    size = op.abs(x)
    t = op.reciprocal(size * 0.3275911 + 1)
    tail = ((((t * 1.061405429 - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return op.sign(x) * (1 - tail * op.exp(-op.square(x)))


def _gelu(x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        return x * 0.5 * (op.tanh((x + op.square(x) * x * 0.044715) * math.sqrt(2 / math.pi)) + 1)
    return x * 0.5 * (_erf(x * math.sqrt(0.5)) + 1)


def _elu(x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    return (op.relu(x) + (op.exp(op.min(x, 0.0) * input_scale) - 1) * alpha) * scale


def _softplus(x: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    return op.softplus(x) if beta == 1 else op.softplus(x * beta) / beta


def _pow(x: Value, exponent: Any) -> Value:
    if exponent == 0.5:
        return op.sqrt(x)
    return op.square(x) if exponent == 2 else op.pow(x, exponent)


def _dropout(build: Building, x: Any, p: float, train: bool) -> Any:
    _need(not train, "found training, expected module.eval()")
    return x


def _same(build: Building, x: Any, *rest: Any, **named: Any) -> Any:
    return x


def _to(build: Building, x: Any, *rest: Any, dtype: Any = None, **named: Any) -> Any:
    kind = next((each for each in (dtype, *rest) if str(each).startswith("torch.") and hasattr(each, "itemsize")), None)
    return x if kind is None else build.plain(x).astype(str(kind).split(".")[-1])


def _prelu(build: Building, x: Any, weight: Parameter) -> Any:
    slope = build.laid(weight)
    channels = weight.array.shape[0]
    if isinstance(x, Image):
        return Image(op.relu(x.value) - op.relu(-x.value) * slope)
    value = build.plain(x)
    slope = slope if channels == 1 else slope.reshape(channels, *[1] * (value.ndim - 2))
    return op.relu(value) - op.relu(-value) * slope


# --- sums over dimensions, normalization ---

def _axes(dim: Any, rank: int) -> List[int]:
    axes = list(range(rank)) if dim is None or dim == [] else [dim] if isinstance(dim, int) else list(dim)
    return [axis % rank for axis in axes]


def _reduced(make: Callable[..., Value]) -> Callable[..., Any]:
    def function(build: Building, x: Any, dim: Any = None, keepdim: bool = False, **named: Any) -> Any:
        rank = 4 if isinstance(x, Image) else build.plain(x).ndim
        axes = _axes(dim, rank)
        if isinstance(x, Image) and keepdim:
            return Image(make(x.value, axes=sorted((0, 3, 1, 2)[axis] for axis in axes), keepdims=1))
        return make(build.plain(x), axes=axes, keepdims=int(keepdim))
    return function


def _last(make: Callable[[Value], Value]) -> Callable[..., Any]:
    """What the operation does along the last dimension, along another one."""
    def function(build: Building, x: Any, dim: int, dtype: Any = None) -> Any:
        if isinstance(x, Image) and dim % 4 == 1:
            return Image(make(x.value))
        value = build.plain(x)
        axis, last = dim % value.ndim, value.ndim - 1
        if axis == last:
            return make(value)
        order = list(range(value.ndim))
        order[axis], order[last] = last, axis
        return make(value.transpose(*order)).transpose(*order)
    return function


def _layer_norm(build: Building, x: Any, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5,
                cudnn: bool = True) -> Value:
    value = build.plain(x)
    axes = list(range(value.ndim - len(shape), value.ndim))
    centred = value - op.reduce_mean(value, axes=axes, keepdims=1)
    result = centred * op.rsqrt(op.reduce_mean(op.square(centred), axes=axes, keepdims=1) + eps)
    result = result if weight is None else result * build.plain(weight)
    return result if bias is None else result + build.plain(bias)


def _group_norm(build: Building, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn: bool = True) -> Value:
    value, shape = build.plain(x), build.shape()
    parts = value.reshape(shape[0], groups, -1)
    centred = parts - op.reduce_mean(parts, axes=[2], keepdims=1)
    result = (centred * op.rsqrt(op.reduce_mean(op.square(centred), axes=[2], keepdims=1) + eps)).reshape(*shape)
    wide = [shape[1], *[1] * (len(shape) - 2)]
    result = result if weight is None else result * build.plain(weight).reshape(*wide)
    return result if bias is None else result + build.plain(bias).reshape(*wide)


def _batch_norm(build: Building, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float,
                cudnn: bool = True) -> Any:
    _need(not training and mean is not None, "found statistics of the batch, expected running ones: module.eval(), track_running_stats=True")
    channels = mean.array.shape[0]
    scale = build.graph.constant(np.ones(channels, "float32")) if weight is None else build.plain(weight)
    shift = build.graph.constant(np.zeros(channels, "float32")) if bias is None else build.plain(bias)
    rest = (scale, shift, build.plain(mean), build.plain(variance))
    rank = 4 if isinstance(x, Image) else build.plain(x).ndim
    if rank == 4:
        return Image(op.batch_norm_inference(build.image(x), *rest, epsilon=eps))
    value = build.plain(x)
    if rank == 2:
        return op.batch_norm_inference(value, *rest, epsilon=eps)
    _need(rank == 3, f"found {rank} dimensions, expected 2 to 4")
    return op.batch_norm_inference(value.transpose(0, 2, 1), *rest, epsilon=eps).transpose(0, 2, 1)


# --- products ---

def _linear(build: Building, x: Any, weight: Any, bias: Any = None) -> Value:
    value = build.plain(x)
    flat = value.reshape(1, value.shape[0]) if value.ndim == 1 else value
    result = op.matmul(flat, build.plain(weight), trans_b=1)
    result = result if bias is None else result + build.plain(bias)
    return result.reshape(*build.shape()) if value.ndim == 1 else result


def _matmul(build: Building, a: Any, b: Any) -> Value:
    left, right = build.plain(a), build.plain(b)
    wide = left.reshape(1, left.shape[0]) if left.ndim == 1 else left
    high = right.reshape(right.shape[0], 1) if right.ndim == 1 else right
    result = op.matmul(wide, high)
    return result if wide is left and high is right else result.reshape(*build.shape())


def _addmm(build: Building, bias: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> Value:
    product, added = op.matmul(build.plain(a), build.plain(b)), build.plain(bias)
    return (product if alpha == 1 else product * alpha) + (added if beta == 1 else added * beta)


def _attention(build: Building, q: Any, k: Any, v: Any, mask: Any = None, dropout: float = 0.0, causal: bool = False, *,
               scale: Optional[float] = None, enable_gqa: bool = False) -> Value:
    _need(not dropout and not enable_gqa, "found dropout or grouped queries, expected none")
    query, key = build.plain(q), build.plain(k)
    scores = op.matmul(query, key, trans_b=1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if causal:
        rows, columns = query.shape[-2], key.shape[-2]
        scores = scores + build.graph.constant(np.triu(np.full((rows, columns), -1e30, "float32"), 1))
    if mask is not None:
        added = build.plain(mask)
        _need(added.dtype == "float32", "found a mask of truths, expected one that is added")
        scores = scores + added
    return op.matmul(op.softmax(scores), build.plain(v))


def _conv_pads(build: Building, x: Value, kernel: Sequence[int], padding: Any, dilation: Sequence[int], stride: Sequence[int]) -> List[int]:
    if padding == "valid":
        return [0, 0, 0, 0]
    if padding != "same":
        return _pads(padding)
    more = [step * (size - 1) for step, size in zip(dilation, kernel)]
    return [more[0] // 2, more[1] // 2, more[0] - more[0] // 2, more[1] - more[1] // 2]


def _conv2d(build: Building, x: Any, weight: Parameter, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
            groups: int = 1) -> Image:
    value = build.image(x)
    kernel, steps, apart = weight.array.shape[2:], _pair(stride), _pair(dilation)
    result = op.conv2d(value, build.laid(weight, (2, 3, 1, 0)), strides=steps, dilations=apart, groups=groups,
                       pads=_conv_pads(build, value, kernel, padding, apart, steps))
    return Image(result if bias is None else result + build.plain(bias))


def _conv1d(build: Building, x: Any, weight: Parameter, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
            groups: int = 1) -> Value:
    def one(value: Any) -> int:
        return int(value if isinstance(value, int) else value[0])

    value = build.plain(x).transpose(0, 2, 1)
    rows, steps, channels = value.shape
    kernel = build.laid(weight, (2, 1, 0))
    size, *deep = kernel.shape
    apart = one(dilation)
    more = apart * (size - 1) if padding == "same" else 0
    before = more // 2 if padding == "same" else 0 if padding == "valid" else one(padding)
    after = more - before if padding == "same" else before
    result = op.conv2d(value.reshape(rows, 1, steps, channels), kernel.reshape(1, size, *deep), strides=[1, one(stride)],
                       pads=[0, before, 0, after], dilations=[1, apart], groups=groups)
    result = result if bias is None else result + build.plain(bias)
    return result.reshape(rows, result.shape[2], result.shape[3]).transpose(0, 2, 1)


def _conv_transpose2d(build: Building, x: Any, weight: Parameter, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                      groups: int = 1, dilation: Any = 1) -> Image:
    result = op.conv2d_backward_data(build.image(x), build.laid(weight, (2, 3, 1, 0)), strides=_pair(stride), pads=_pads(padding),
                                     dilations=_pair(dilation), groups=groups, size=build.shape()[2:])
    return Image(result if bias is None else result + build.plain(bias))


# --- pooling ---

def _max_pool2d(build: Building, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Image:
    _need(_pair(dilation) == [1, 1], "found dilation, expected none")
    return Image(op.max_pool(build.image(x), kernel=_pair(kernel), strides=_pair(stride or kernel), pads=_pads(padding),
                             ceil_mode=int(ceil_mode))[0])


def _avg_pool2d(build: Building, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False, count: bool = True,
                divisor: Any = None) -> Image:
    _need(divisor is None, "found divisor_override, expected none")
    _need(not (ceil_mode and count and _pair(padding) != [0, 0]), "found ceil_mode with padding that counts, expected one of them")
    return Image(op.avg_pool(build.image(x), kernel=_pair(kernel), strides=_pair(stride or kernel), pads=_pads(padding),
                             ceil_mode=int(ceil_mode), count_include_pad=int(count)))


def _adaptive(build: Building, x: Any, size: Any) -> Tuple[Value, List[int]]:
    value = build.image(x)
    wanted = build.shape(0 if isinstance(build.meta, (tuple, list)) else None)[2:]
    sides = value.shape[1:3]
    _need(all(side % each == 0 for side, each in zip(sides, wanted)), f"found {list(sides)} to {wanted}, expected sizes that divide")
    return value, [side // each for side, each in zip(sides, wanted)]


def _adaptive_avg(build: Building, x: Any, size: Any) -> Image:
    value, kernel = _adaptive(build, x, size)
    if list(value.shape[1:3]) == kernel:
        return Image(op.reduce_mean(value, axes=[1, 2], keepdims=1))
    return Image(op.avg_pool(value, kernel=kernel))


def _adaptive_max(build: Building, x: Any, size: Any) -> List[Any]:
    """And places, which nothing here takes."""
    value, kernel = _adaptive(build, x, size)
    return [Image(op.max_pool(value, kernel=kernel)[0]), None]


# --- shapes ---

def _reshape(build: Building, x: Any, *shape: Any, **named: Any) -> Value:
    """Every operator whose elements stay in their order; the example tells the sizes."""
    value = build.plain(x)
    return value if list(value.shape) == build.shape() else value.reshape(*build.shape()) if build.shape() else op.reshape(value, shape=[])


def _permute(build: Building, x: Any, order: Sequence[int]) -> Value:
    value = build.plain(x)
    return value.transpose(*[axis % value.ndim for axis in order])


def _transpose(build: Building, x: Any, a: int = 0, b: int = 1) -> Value:
    value = build.plain(x)
    if value.ndim < 2:
        return value
    order = list(range(value.ndim))
    order[a], order[b] = order[b], order[a]
    return value.transpose(*order)


def _expand(build: Building, x: Any, sizes: Sequence[int], **named: Any) -> Value:
    value = build.plain(x)
    shape = build.shape()
    if list(value.shape) == shape:
        return value
    return op.expand(value.reshape(*[1] * (len(shape) - value.ndim), *value.shape), dims=shape)


def _cat(build: Building, values: Sequence[Any], dim: int = 0) -> Any:
    if values and all(isinstance(value, Image) for value in values):
        return Image(op.concat(*[value.value for value in values], axis=(0, 3, 1, 2)[dim % 4]))
    return op.concat(*[build.plain(value) for value in values], axis=dim % len(build.shape()))


def _stack(build: Building, values: Sequence[Any], dim: int = 0) -> Value:
    shape = build.shape()
    axis = dim % len(shape)
    one = [*shape[:axis], 1, *shape[axis + 1:]]
    return op.concat(*[build.plain(value).reshape(*one) for value in values], axis=axis)


def _slice(build: Building, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    _need(step == 1, f"found a step of {step}, expected 1")
    value = build.plain(x)
    if build.shape() == list(value.shape):
        return value
    first = max(start + value.shape[dim], 0) if start is not None and start < 0 else start or 0
    return op.slice(value, axis=dim, begin=first, end=first + build.shape()[dim])


def _select(build: Building, x: Any, dim: int, index: int) -> Value:
    value = build.plain(x)
    place = index % value.shape[dim]
    cut = op.slice(value, axis=dim, begin=place, end=place + 1)
    return op.reshape(cut, shape=build.shape())


def _split(build: Building, x: Any, sizes: Any, dim: int = 0) -> List[Value]:
    value = build.plain(x)
    axis = dim % value.ndim
    ends = np.cumsum([0, *(int(part.shape[axis]) for part in build.meta)])
    return [op.slice(value, axis=axis, begin=int(begin), end=int(end)) for begin, end in zip(ends, ends[1:])]


def _pad(build: Building, x: Any, pads: Sequence[int], mode: str = "constant", value: Any = 0.0) -> Value:
    _need(mode == "constant" and min(pads) >= 0, f"found padding {list(pads)} by {mode}, expected constants")
    plain = build.plain(x)
    before, after = [0] * plain.ndim, [0] * plain.ndim
    for place in range(len(pads) // 2):
        before[-1 - place], after[-1 - place] = pads[2 * place], pads[2 * place + 1]
    return op.pad(plain, before=before, after=after, value=value or 0.0)


def _embedding(build: Building, table: Any, ids: Any, *rest: Any) -> Value:
    numbers = build.plain(ids)
    return op.embedding(build.plain(table), numbers if numbers.dtype == "int32" else numbers.astype("int32"))


def _zeros(build: Building, *shape: Any, **named: Any) -> Zeros:
    return Zeros(build.shape())


def _item(build: Building, values: Sequence[Any], place: int) -> Any:
    return values[place]


# --- recurrent layers ---

def _recurrent(layer: Callable[..., Any], lstm: bool = False, **fixed: Any) -> Callable[..., Any]:
    def function(build: Building, x: Any, first: Any, weights: Sequence[Parameter], biases: bool, layers: int, dropout: float, train: bool,
                 both: bool, batch_first: bool) -> List[Value]:
        _need(not (train and dropout), "found dropout in training, expected module.eval()")
        name = weights[0].name
        _need(name.endswith("weight_ih_l0"), f"found weights '{name}', expected those of a module")
        scope = name[:-len("weight_ih_l0")]
        _need(not any("weight_hr" in weight.name for weight in weights), "found proj_size, expected none")
        value = build.plain(x)
        alone = value.ndim == 2
        if alone:
            value = value.reshape(value.shape[0], 1, value.shape[1])
        elif batch_first:
            value = value.transpose(1, 0, 2)
        steps, batch, width = value.shape
        states = {key: _states(build, given, layers * (2 if both else 1), batch) for key, given in
                  zip(("h0", "c0"), first if lstm else [first])}
        units = weights[1].array.shape[1]
        found = layer(value.reshape(steps * batch, width), units, layers=layers, bidirectional=both, batch=batch, scope=scope, **states, **fixed)
        _take_weights(build, weights)
        y = found.y.reshape(steps, batch, units * (2 if both else 1))
        y = y.reshape(*build.shape(0)) if alone else y.transpose(1, 0, 2) if batch_first else y
        return [y, *(_joined(part, build.shape(place)) for place, part in enumerate((found.h, found.c), 1) if part)]
    return function


def _take_weights(build: Building, weights: Sequence[Parameter]) -> None:
    """The layer has made parameters of these names; biases that a module lacks are zero in the state from the beginning."""
    for weight in weights:
        build.arrays[weight.name] = weight.array
    last = {name.rsplit("_l", 1)[0] for name in (weight.name for weight in weights)}
    if not any("bias" in name for name in last):
        for port in build.graph.parameters:
            if port.name.startswith(weights[0].name[:-len("weight_ih_l0")] + "bias_"):
                build.arrays[port.name] = np.zeros(port.shape, port.dtype)


def _states(build: Building, given: Any, count: int, batch: int) -> Optional[List[Value]]:
    if isinstance(given, Zeros):
        return None
    value = build.plain(given)
    units = value.shape[-1]
    whole = value.reshape(count, batch, units)
    return [op.slice(whole, axis=0, begin=place, end=place + 1).reshape(batch, units) for place in range(count)]


def _joined(states: Sequence[Value], shape: Sequence[int]) -> Value:
    batch, units = states[0].shape
    whole = op.concat(*[state.reshape(1, batch, units) for state in states], axis=0) if len(states) > 1 else states[0]
    return whole.reshape(*shape)


_UNARY: Dict[str, Callable[..., Value]] = {
    "relu": op.relu, "tanh": op.tanh, "sigmoid": op.sigmoid, "exp": op.exp, "log": op.log, "sqrt": op.sqrt, "rsqrt": op.rsqrt, "abs": op.abs,
    "neg": op.neg, "reciprocal": op.reciprocal, "floor": op.floor, "sign": op.sign, "square": op.square, "erf": _erf, "gelu": _gelu,
    "silu": lambda x: x * op.sigmoid(x), "hardtanh": lambda x, low=-1.0, high=1.0: _clamp(x, low, high), "clamp": _clamp,
    "clamp_min": lambda x, low: op.max(x, low), "clamp_max": lambda x, high: op.min(x, high),
    "relu6": lambda x: _clamp(x, 0.0, 6.0), "leaky_relu": lambda x, slope=0.01: op.relu(x) - op.relu(-x) * slope, "elu": _elu,
    "selu": lambda x: _elu(x, 1.6732632423543772, 1.0507009873554805), "softplus": _softplus,
    "hardswish": lambda x: x * _clamp(x + 3, 0.0, 6.0) / 6, "hardsigmoid": lambda x: _clamp(x + 3, 0.0, 6.0) / 6,
    "mish": lambda x: x * op.tanh(op.softplus(x)), "log_sigmoid": lambda x: -op.softplus(-x), "softsign": lambda x: x / (op.abs(x) + 1),
    "pow": _pow}
_BINARY: Dict[str, Callable[[Any, Any], Value]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "rsub": lambda a, b: b - a, "maximum": op.max, "minimum": op.min}

TABLE: Dict[str, Callable[..., Any]] = {
    **{name: _each(make) for name, make in _UNARY.items()}, **{f"{name}_": _each(make) for name, make in _UNARY.items()},
    **{name: _two(make) for name, make in _BINARY.items()}, **{f"{name}_": _two(make) for name, make in _BINARY.items()},
    **{name: _same for name in ("contiguous", "clone", "alias", "detach", "detach_", "lift_fresh_copy")},
    **{name: _dropout for name in ("dropout", "feature_dropout", "dropout_", "alpha_dropout")},
    **{name: _reshape for name in ("reshape", "view", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze")},
    "to": _to, "_to_copy": _to, "prelu": _prelu, "mean": _reduced(op.reduce_mean), "sum": _reduced(op.reduce_sum), "amax": _reduced(op.reduce_max),
    "softmax": _last(op.softmax), "log_softmax": _last(op.log_softmax), "layer_norm": _layer_norm, "group_norm": _group_norm,
    "batch_norm": _batch_norm, "linear": _linear, "matmul": _matmul, "mm": _matmul, "bmm": _matmul, "addmm": _addmm,
    "scaled_dot_product_attention": _attention, "conv1d": _conv1d, "conv2d": _conv2d, "conv_transpose2d": _conv_transpose2d,
    "max_pool2d": _max_pool2d, "avg_pool2d": _avg_pool2d, "adaptive_avg_pool2d": _adaptive_avg, "adaptive_max_pool2d": _adaptive_max,
    "permute": _permute, "transpose": _transpose, "t": _transpose, "expand": _expand, "cat": _cat, "concat": _cat, "stack": _stack,
    "slice": _slice, "select": _select, "split": _split, "split_with_sizes": _split, "chunk": _split, "pad": _pad, "constant_pad_nd": _pad,
    "embedding": _embedding, "zeros": _zeros, "getitem": _item, "lstm": _recurrent(lstm_layer, lstm=True), "gru": _recurrent(gru_layer),
    "rnn_tanh": _recurrent(rnn_layer), "rnn_relu": _recurrent(rnn_layer, relu=True)}
