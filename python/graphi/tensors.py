# SPDX-License-Identifier: Apache-2.0
"""Values of ONNX models from and to NumPy: tensors of every type that has one there, sequences as lists, None for an optional that holds
nothing. Both ways copy, since a result may be a constant of the model, which all runs share."""
from __future__ import annotations

import threading
from typing import Any, Dict, List, Optional

import numpy as np

from ._native import ffi, lib
from .arrays import as_array, memory_of
from .errors import DtypeError, InvalidError, check, text_of

# Types that NumPy lacks, as the package ml_dtypes calls them.
_FURTHER = {"bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz", "float8e5m2": "float8_e5m2",
            "float8e5m2fnuz": "float8_e5m2fnuz", "uint4": "uint4", "int4": "int4", "float4e2m1": "float4_e2m1fn",
            "float8e8m0": "float8_e8m0fnu", "uint2": "uint2", "int2": "int2", "float6e2m3": "float6_e2m3fn", "float6e3m2": "float6_e3m2fn"}
_NUMPYS = ("float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "bool", "float16", "float64", "uint32", "uint64")
_ONNX = {"float32": "float", "float64": "double"}  # as tensor(float) has it

ELEMENTS: Dict[str, int] = {text_of(lib.graphi_element_name(number)): number for number in ffi.typeof("graphi_element").elements}
NAMES = {number: name for name, number in ELEMENTS.items()}

_numbers: Dict[Any, int] = {np.dtype(name): ELEMENTS[name] for name in _NUMPYS}
_NUMPYS_NUMBERS = frozenset(_numbers.values())
_dtypes: Dict[int, Any] = {number: dtype for dtype, number in _numbers.items()}
_lock = threading.Lock()


def _learn() -> None:
    """Types of ml_dtypes, when one is met: importing it costs what most models do not need."""
    try:
        import ml_dtypes
    except ImportError:
        return
    with _lock:
        for name, theirs in _FURTHER.items():
            kind = getattr(ml_dtypes, theirs, None)
            if kind is not None:
                _numbers[np.dtype(kind)] = ELEMENTS[name]
                _dtypes[ELEMENTS[name]] = np.dtype(kind)


def own_dtype(element: int) -> Any:
    """What NumPy itself calls it; an object that no type equals where it has none."""
    return _dtypes.get(element) if element in _NUMPYS_NUMBERS else object()


def onnx_name(element: int) -> str:
    """As ONNX has it: "float" for float32."""
    name = NAMES.get(element, "undefined")
    return _ONNX.get(name, name)


def element_of(dtype: Any, where: str) -> int:
    """ONNX's number of a type of NumPy."""
    kind = np.dtype(dtype)
    found = _numbers.get(kind) or _numbers.get(kind.newbyteorder("="))
    if found is None:
        _learn()
        found = _numbers.get(kind)
    if found is None:
        raise DtypeError(f"INVALID: {where}: found {kind}, expected a type of ONNX's tensors")
    return found


def dtype_of(element: int, where: str) -> Any:
    """NumPy's type of an element."""
    if element not in _dtypes:
        _learn()
    if element not in _dtypes:
        raise DtypeError(f"INVALID: {where}: found {NAMES.get(element, element)}, expected a type of NumPy, or the package ml_dtypes to be "
                         "installed")
    return _dtypes[element]


def _made(array: Any, element: int) -> Any:
    out = ffi.new("graphi_tensor **")
    shape = array.shape
    check(lib.graphi_tensor_create(element, len(shape), shape, memory_of(array) if array.nbytes else ffi.NULL, out))
    return out[0]


def _listed(data: Any, element: int, where: str) -> Any:
    """Numbers and lists take the type that the model declares."""
    try:
        return np.asarray(data, dtype=dtype_of(element, where) if element else None)
    except (TypeError, ValueError, OverflowError) as error:
        raise DtypeError(f"INVALID: {where}: {error}, expected an array") from error


def _sequence(items: Any, element: int, where: str) -> Any:
    held: List[Any] = []
    out = ffi.new("graphi_tensor **")
    try:
        for place, item in enumerate(items):
            held.append(tensor_of(item, element, False, f"{where}[{place}]"))
        check(lib.graphi_tensor_create_sequence(len(held), held, out))
    finally:
        for item in held:
            lib.graphi_tensor_destroy(item)
    return out[0]


def tensor_of(data: Any, element: int, sequence: bool, where: str) -> Any:
    """A value of the library, which whoever called destroys. `element`: what lists become; 0: what NumPy makes of them."""
    if sequence:
        if not isinstance(data, (list, tuple)):
            raise DtypeError(f"INVALID: {where}: found {type(data).__name__}, expected a list of arrays")
        return _sequence(data, element, where)
    array = data if type(data) is np.ndarray else as_array(data)
    if array is None:
        array = _listed(data, element, where)
    found = _numbers.get(array.dtype)
    if found is None:
        found = element_of(array.dtype, where)
        array = np.asarray(array, dtype=array.dtype.newbyteorder("="))
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array).reshape(array.shape)
    return _made(array, found)


def array_of(tensor: Any, where: str, info: Any = None) -> Any:
    """What NumPy has for a value."""
    return _copied(tensor, where, ffi.new("graphi_tensor_info *") if info is None else info)


def _copied(tensor: Any, where: str, info: Any) -> Any:
    lib.graphi_tensor_get_info(tensor, info)
    if info.kind == lib.GRAPHI_KIND_TENSOR:
        dtype = _dtypes.get(info.element)
        array = np.empty(ffi.unpack(info.dims, info.rank) if info.rank else (), dtype_of(info.element, where) if dtype is None else dtype)
        size = info.bytes
        if array.nbytes != size:
            raise InvalidError(f"INVALID: {where}: found {size} bytes, expected {array.nbytes}")
        if size:
            ffi.memmove(memory_of(array), info.data, size)
        return array
    if info.kind == lib.GRAPHI_KIND_NOTHING:
        return None
    items = [lib.graphi_tensor_item(tensor, place) for place in range(info.count)]
    return [_copied(item, where, info) for item in items]


def shape_of(port: Any) -> Optional[List[Any]]:
    """Sizes as ONNX Runtime tells them: a number, the name of one that is open, or None; None for a rank that is not told."""
    if port.rank < 0:
        return None
    return [int(port.dims[i]) if port.dims[i] >= 0 else (text_of(port.symbols[i]) or None) for i in range(port.rank)]
