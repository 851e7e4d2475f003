# SPDX-License-Identifier: Apache-2.0
"""OrtValue and IOBinding: arrays that are bound to a session's inputs and outputs once, under the names of ONNX Runtime. All memory is
this machine's, so a bound output is an array of the caller's that each run fills."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

import numpy as np

from ._native import ffi
from .errors import DtypeError, InvalidError, UnsupportedError, unknown
from .tensors import dtype_of, element_of, onnx_name

if TYPE_CHECKING:
    from .session import InferenceSession
    from .session_options import RunOptions


def _on_cpu(device: str) -> None:
    if device.lower() not in ("cpu", "cuda_pinned"):
        raise UnsupportedError(f"UNSUPPORTED: device: found '{device}', expected 'cpu'")


def _dtype(element: Any, where: str) -> Any:
    """What NumPy, or ONNX by number, calls a type."""
    if isinstance(element, int) and not isinstance(element, bool):
        return dtype_of(element, where)
    kind = np.dtype(element)
    element_of(kind, where)
    return kind


class OrtValue:
    """A value: an array, a list of arrays (a sequence), or None."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: Any, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """The array itself, without a copy."""
        _on_cpu(device_type)
        return cls(np.asarray(numpy_obj))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        _on_cpu(device_type)
        return cls(np.zeros(tuple(shape), _dtype(element_type, "OrtValue")))

    def numpy(self) -> Any:
        return self._value

    def shape(self) -> List[int]:
        return list(np.shape(self._value))

    def data_type(self) -> str:
        return f"tensor({onnx_name(self.element_type())})" if self.is_tensor() else "seq(tensor)"

    def element_type(self) -> int:
        """ONNX's number of the type."""
        return element_of(self._value.dtype, "OrtValue")

    def device_name(self) -> str:
        return "cpu"

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def has_value(self) -> bool:
        return self._value is not None

    def data_ptr(self) -> int:
        return int(self._value.__array_interface__["data"][0])

    def update_inplace(self, np_arr: Any) -> None:
        """New content of the same shape and type."""
        array = np.asarray(np_arr)
        if array.shape != self._value.shape:
            raise InvalidError(f"INVALID: OrtValue: found shape {list(array.shape)}, expected {self.shape()}")
        if array.dtype != self._value.dtype:
            raise DtypeError(f"INVALID: OrtValue: found {array.dtype}, expected {self._value.dtype}")
        self._value[...] = array


def _at(address: int, dtype: Any, shape: Sequence[int]) -> Any:
    """The caller's memory as an array; it must outlive the binding."""
    count = int(np.prod(tuple(shape), dtype=np.int64))
    view = np.frombuffer(ffi.buffer(ffi.cast("char *", address), count * dtype.itemsize), np.uint8)
    return view.view(dtype).reshape(tuple(shape))


class IOBinding:
    """Inputs and outputs of a session that are bound. Of one thread at a time."""

    def __init__(self, session: "InferenceSession") -> None:
        self._session = session
        self._inputs: Dict[str, OrtValue] = {}
        self._rooms: Dict[str, Optional[OrtValue]] = {}
        self._results: List[OrtValue] = []

    def _input(self, name: str, value: OrtValue) -> None:
        if name not in self._session._inputs:
            raise unknown("io_binding: input", name, self._session._inputs)
        self._inputs[name] = value

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        self._input(name, OrtValue(np.asarray(arr_on_cpu)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._input(name, ortvalue)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        _on_cpu(device_type)
        self._input(name, OrtValue(_at(buffer_ptr, _dtype(element_type, f"input '{name}'"), shape)))

    def _output(self, name: str, value: Optional[OrtValue]) -> None:
        self._session._output_text(name)
        self._rooms[name] = value

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Optional[Sequence[int]] = None, buffer_ptr: Optional[int] = None) -> None:
        """Each run gives a new array, or, with buffer_ptr, writes there."""
        _on_cpu(device_type)
        if buffer_ptr is None:
            self._output(name, None)
        elif shape is None or element_type is None:
            raise InvalidError(f"INVALID: output '{name}': found an address alone, expected element_type and shape, too")
        else:
            self._output(name, OrtValue(_at(buffer_ptr, _dtype(element_type, f"output '{name}'"), shape)))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._output(name, ortvalue)

    def synchronize_inputs(self) -> None:
        """Without effect: there is one memory."""

    synchronize_outputs = synchronize_inputs

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._rooms.clear()
        self._results = []

    def get_outputs(self) -> List[OrtValue]:
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> List[OrtValue]:
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> List[Any]:
        return [value.numpy() for value in self._results]

    def _check_room(self, name: str, room: OrtValue) -> None:
        """A wrong size is told before anything is computed, where the model declares it."""
        port = next(port for port in self._session._outputs if port.name == name)
        array = room.numpy()
        if port.shape is not None and (array.ndim != len(port.shape) or any(
                isinstance(size, int) and size != found for size, found in zip(port.shape, array.shape))):
            raise InvalidError(f"INVALID: output '{name}': found room for shape {list(array.shape)}, expected {port.shape}")
        if port.element and element_of(array.dtype, name) != port.element:
            raise DtypeError(f"INVALID: output '{name}': found room of {array.dtype}, expected {onnx_name(port.element)}")

    def _run(self, run_options: Optional["RunOptions"]) -> None:
        names = list(self._rooms)
        if not names:
            raise InvalidError("INVALID: io_binding: found no output, expected one that is bound")
        for name, room in self._rooms.items():
            if room is not None:
                self._check_room(name, room)
        found = self._session.run(names, self._inputs, run_options)
        for name, array in zip(names, found):
            room = self._rooms[name]
            if room is not None and np.shape(array) != room.numpy().shape:
                raise InvalidError(f"INVALID: output '{name}': found room for shape {room.shape()}, expected {list(np.shape(array))}")
        self._results = [_placed(array, self._rooms[name]) for name, array in zip(names, found)]


def _placed(array: Any, room: Optional[OrtValue]) -> OrtValue:
    if room is None:
        return OrtValue(array)
    room.numpy()[...] = array
    return room


__all__ = ["IOBinding", "OrtValue"]
