# SPDX-License-Identifier: Apache-2.0
"""onnx.backend.base on sessions, so that ONNX's own tests run on them: onnx.backend.test.BackendTest(graphi.backend, __name__). The
package onnx is needed for this module alone."""
from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from .errors import UnsupportedError
from .session import InferenceSession
from .tensors import NAMES, dtype_of, element_of


def _taken(array: Any, element: int) -> Any:
    """Arrays as the package onnx has them before it knew ml_dtypes: bytes that stand for small floats and integers, or float32."""
    wanted = dtype_of(element, "input") if element else None
    if wanted is None or not isinstance(array, np.ndarray) or array.dtype == wanted or not onnx_alone(wanted):
        return array
    if array.dtype == np.float32:
        return array.astype(wanted)
    plain = array.astype(array.dtype.base if array.dtype.fields is None else np.dtype(f"i{array.dtype.itemsize}"))
    return plain.view(wanted) if plain.dtype.itemsize == wanted.itemsize and plain.dtype.kind in "iu" else array


def onnx_alone(dtype: Any) -> bool:
    """A type that NumPy lacks."""
    return bool(dtype.kind == "V" or dtype.isbuiltin == 2)


def _given(array: Any) -> Any:
    """The same for results."""
    if isinstance(array, list):
        return [_given(item) for item in array]
    if array is None or not onnx_alone(array.dtype):
        return array
    element = element_of(array.dtype, "output")
    tensor = onnx.helper.make_tensor("output", element, array.shape, array.astype(np.float32).ravel())
    return onnx.numpy_helper.to_array(tensor)


class Prepared(BackendRep):  # type: ignore[misc]
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **options: Any) -> Tuple[Any, ...]:
        """Inputs in the model's order, or by name."""
        names = [port.name for port in self.session.get_inputs()]
        if isinstance(inputs, dict):
            feed = inputs
        else:
            feed = dict(zip(names, inputs if isinstance(inputs, (list, tuple)) else [inputs]))
        feed = {name: _taken(array, self.session._inputs[name].element) if name in self.session._inputs else array
                for name, array in feed.items()}
        outputs = [port.name for port in self.session.get_outputs()]
        return namedtupledict("Outputs", outputs)(*map(_given, self.session.run(None, feed)))  # type: ignore[no-any-return]


class GraphiBackend(Backend):  # type: ignore[misc]
    """Models on this machine's CPU."""

    @classmethod
    def is_compatible(cls, model: "onnx.ModelProto", device: str = "CPU", **options: Any) -> bool:
        """False where an operator or type is not supported; what is no model is left to `prepare`, which says so."""
        try:
            with InferenceSession(model.SerializeToString()) as session:
                ports = [*session._inputs.values(), *session._outputs]
        except UnsupportedError:
            return False
        if any(NAMES.get(port.element) in ("string", "complex64", "complex128") for port in ports):
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: "onnx.ModelProto", device: str = "CPU", **options: Any) -> Prepared:
        return Prepared(InferenceSession(model.SerializeToString()))

    @classmethod
    def run_model(cls, model: "onnx.ModelProto", inputs: Any, device: str = "CPU", **options: Any) -> Tuple[Any, ...]:
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(cls, node: "onnx.NodeProto", inputs: Sequence[Any], device: str = "CPU",
                 outputs_info: Optional[Sequence[Tuple[Any, Tuple[int, ...]]]] = None, **options: Dict[str, Any]) -> Tuple[Any, ...]:
        """One node, as a model of its own."""
        def described(name: str, array: Any) -> Any:
            return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

        arrays = [np.asarray(value) for value in inputs]
        ports = [described(name, array) for name, array in zip([name for name in node.input if name], arrays)]
        graph = onnx.helper.make_graph([node], "node", ports, [onnx.ValueInfoProto(name=name) for name in node.output if name])
        return cls.run_model(onnx.helper.make_model(graph), arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"


is_compatible = GraphiBackend.is_compatible
prepare = GraphiBackend.prepare
run_model = GraphiBackend.run_model
run_node = GraphiBackend.run_node
supports_device = GraphiBackend.supports_device
