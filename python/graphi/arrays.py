# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out: element types by name, and dense memory of the type that is asked for.

Dense arrays of the right type are passed as they are. Others of the right type (strided, of the other byte order) are copied first. Read-only
ones are fine wherever they are only read. Lists and numbers take the type that is expected. An array of another type is refused: a
silent conversion would hide a mistake."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np

from ._native import ffi, lib
from .errors import DtypeError, InvalidError, text_of, unknown

DtypeLike = Union[str, int, type, "np.dtype[Any]"]

DTYPES = {text_of(lib.graphi_dtype_name(number)): number for number in range(lib.GRAPHI_DTYPES)}
NAMES = {number: name for name, number in DTYPES.items()}


def dtype_number(dtype: DtypeLike) -> int:
    """The library's number of an element type: its name ("float32"), or what NumPy takes for one."""
    name = dtype if isinstance(dtype, str) else None
    if name is None:
        try:
            name = np.dtype(dtype).name  # type: ignore[arg-type]
        except TypeError:
            name = str(dtype)
    if name not in DTYPES:
        raise DtypeError(str(unknown("dtype", name, DTYPES)))
    return DTYPES[name]


def numpy_dtype(number: int) -> Any:
    if NAMES[number] != "bfloat16":
        return np.dtype(NAMES[number])
    try:
        import ml_dtypes
    except ImportError:
        raise DtypeError("INVALID: bfloat16: NumPy has no such type, expected the package ml_dtypes to be installed") from None
    return np.dtype(ml_dtypes.bfloat16)


def as_array(data: Any) -> Any:
    """Arrays of other libraries as NumPy's, in the same memory where these allow it; None for what is no array."""
    if isinstance(data, (np.ndarray, np.generic)):
        return np.asarray(data)
    if hasattr(data, "__dlpack__"):
        try:
            return np.from_dlpack(data)
        except (BufferError, RuntimeError, TypeError) as error:
            raise DtypeError(f"INVALID: array: {error}, expected an array that DLPack passes on to NumPy") from error
    return np.asarray(data) if hasattr(data, "__array__") or hasattr(data, "__array_interface__") else None


def dense(data: Any, number: int, where: str, shape: Optional[Tuple[int, ...]] = None) -> Any:
    """A dense array of that type, and, where it is told, shape."""
    expected = numpy_dtype(number)
    array = as_array(data)
    if array is None:
        try:
            found = np.asarray(data).dtype
            if found.kind not in "biuf":
                raise TypeError(f"found {type(data).__name__}")
            array = np.asarray(data, dtype=expected)
            if expected.kind in "iub" and not np.can_cast(found, expected, "same_kind") and not (found.kind in "iu" and expected.kind in "iu"):
                raise TypeError(f"found numbers of {found.name}")
        except (TypeError, ValueError, OverflowError) as error:
            raise DtypeError(f"INVALID: {where}: {error}, expected numbers of {expected.name}") from error
    if array.dtype.newbyteorder("=") != expected:
        raise DtypeError(f"INVALID: {where}: found {array.dtype.name}, expected {expected.name}")
    if shape is not None and array.shape != shape:
        raise InvalidError(f"INVALID: {where}: found shape {list(array.shape)}, expected {list(shape)}")
    return np.asarray(array, dtype=expected, order="C")


def empty(shape: Sequence[int], dtype: DtypeLike = "float32") -> Any:
    """An array, not filled, at an address that Run.bind takes."""
    kind = numpy_dtype(dtype_number(dtype))
    bytes_ = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    room = np.empty(bytes_ + lib.GRAPHI_ALIGNMENT, np.uint8)
    begin = -room.ctypes.data % lib.GRAPHI_ALIGNMENT
    return room[begin:begin + bytes_].view(kind).reshape(shape)


def pointer_to(array: Any) -> Any:
    """The memory of a dense array, for one call. ctypes or buffers would refuse read-only arrays and bfloat16."""
    return ffi.cast("void *", array.__array_interface__["data"][0])


def memory_of(array: Any) -> Any:
    """As pointer_to, some seven times as fast where the array's type is one of NumPy's own; for the arguments of a call alone."""
    try:
        return ffi.from_buffer(array)
    except (ValueError, TypeError, BufferError):
        return pointer_to(array)


def dims_of(shape: Sequence[int], where: str) -> Any:
    try:
        sizes = [int(size) for size in ((shape,) if isinstance(shape, int) else shape)]
        if len(sizes) > lib.GRAPHI_MAX_RANK:
            raise InvalidError(f"INVALID: {where}: found {len(sizes)} dimensions, expected at most {lib.GRAPHI_MAX_RANK}")
        return ffi.new("int64_t[]", sizes)
    except (TypeError, OverflowError) as error:
        raise InvalidError(f"INVALID: {where}: {error}, expected a shape of whole numbers") from error
