#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""graphi.InferenceSession under the names of ONNX Runtime: models from files and bytes, values of all types, errors, bound memory, streams,
threads, and the code of docs/from-onnxruntime.md. Models are written here as bytes.

usage: test_python_session.py --build DIR [TEST...]      77: there is no venv, or the packages cannot be had"""
import gc
import json
import os
import re
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from python_package import ROOT, enter

enter(__file__)

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

import graphi  # noqa: E402
from onnx_bytes import model, node, port, sequence_port, tensor  # noqa: E402

# y = relu(x + w), z = x * x: inputs of n rows of two numbers.
TWO = model((1, node("Add", ["x", "w"], ["s"])), (1, node("Relu", ["s"], ["y"])), (1, node("Mul", ["x", "x"], ["z"])), (2, "two"),
            (5, tensor("w", [1, -1])), (11, port("x", ["n", 2])), (12, port("y", ["n", 2])), (12, port("z", ["n", 2])))


def copied(element):
    return model((1, node("Identity", ["x"], ["y"])), (11, port("x", ["n"], element)), (12, port("y", ["n"], element)))


class Sessions(unittest.TestCase):
    def setUp(self):
        self.x = np.array([[1, 2], [-3, 0.5]], "float32")
        self.y = np.maximum(self.x + [1, -1], 0).astype("float32")

    def test_files_and_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "two.onnx"
            path.write_bytes(TWO)
            for model in (path, str(path), TWO, bytearray(TWO), memoryview(TWO)):
                session = graphi.InferenceSession(model, providers=["CPUExecutionProvider"])
                y, z = session.run(None, {"x": self.x})
                np.testing.assert_array_equal(y, self.y)
                np.testing.assert_array_equal(z, self.x * self.x)
        np.testing.assert_array_equal(session.run(["z"], {"x": self.x.tolist()})[0], self.x * self.x)

    def test_what_a_session_tells(self):
        session = graphi.InferenceSession(TWO)
        x, = session.get_inputs()
        self.assertEqual((x.name, x.type, x.shape), ("x", "tensor(float)", ["n", 2]))
        self.assertEqual([port.name for port in session.get_outputs()], ["y", "z"])
        self.assertEqual((session.get_providers(), graphi.get_available_providers(), graphi.get_device()),
                         (["CPUExecutionProvider"], ["CPUExecutionProvider"], "CPU"))
        self.assertEqual((session.get_modelmeta().graph_name, session.get_modelmeta().opset), ("two", 13))
        with self.assertWarnsRegex(UserWarning, "CUDAExecutionProvider is not available"):
            graphi.InferenceSession(TWO, providers=[("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"])

    def test_options(self):
        options = graphi.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = 1, 1
        options.graph_optimization_level = graphi.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.execution_mode = graphi.ExecutionMode.ORT_SEQUENTIAL
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_free_dimension_override_by_name("n", 2)
        self.assertEqual(options.get_session_config_entry("session.intra_op.allow_spinning"), "0")
        session = graphi.InferenceSession(TWO, options)
        self.assertEqual(session.get_inputs()[0].shape, [2, 2])
        np.testing.assert_array_equal(session.run(["y"], {"x": self.x})[0], self.y)
        with self.assertRaisesRegex(graphi.InvalidError, "override"):
            session.run(["y"], {"x": self.x[:1]})
        with self.assertRaisesRegex(AttributeError, "did you mean 'intra_op_num_threads'"):
            options.intra_op_threads = 2
        for name, wrong, kind in (("intra_op_num_threads", "many", graphi.UsageError), ("enable_profiling", [], graphi.UsageError),
                                  ("optimized_model_filepath", "out.onnx", graphi.UnsupportedError)):
            with self.assertRaises(kind):
                setattr(options, name, wrong)
        options.intra_op_num_threads = -1
        with self.assertRaises(graphi.InvalidError):
            graphi.InferenceSession(TWO, options)
        os.environ["GRAPHI_NUM_THREADS"] = "none"
        try:
            with self.assertRaisesRegex(graphi.UsageError, "GRAPHI_NUM_THREADS"):
                graphi.InferenceSession(TWO)
        finally:
            del os.environ["GRAPHI_NUM_THREADS"]

    def test_types(self):
        numbers = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64",
                   12: "uint32", 13: "uint64", 16: ml_dtypes.bfloat16, 17: ml_dtypes.float8_e4m3fn, 19: ml_dtypes.float8_e5m2,
                   22: ml_dtypes.int4}
        for element, dtype in numbers.items():
            session = graphi.InferenceSession(copied(element))
            data = np.array([0, 1, 1, 3]).astype(dtype)
            found, = session.run(None, {"x": data})
            self.assertEqual(found.dtype, data.dtype)
            np.testing.assert_array_equal(found, data)
            with self.assertRaises(graphi.InvalidError):
                session.run(None, {"x": np.zeros(2, "float32")})

    def test_arrays_as_they_come(self):
        session = graphi.InferenceSession(TWO)
        wide = np.zeros((2, 4), "float32")
        wide[:, ::2] = self.x
        frozen = self.x.copy()
        frozen.flags.writeable = False
        for form in (wide[:, ::2], np.asfortranarray(self.x), self.x.astype(">f4"), frozen):
            np.testing.assert_array_equal(session.run(["y"], {"x": form})[0], self.y)
        none = session.run(["y"], {"x": np.zeros((0, 2), "float32")})[0]
        self.assertEqual(none.shape, (0, 2))

    def test_results_are_the_callers(self):
        session = graphi.InferenceSession(model((1, node("Identity", ["w"], ["y"])), (5, tensor("w", [1, 2])), (12, port("y", [2]))))
        session.run(None, {})[0][:] = 9
        np.testing.assert_array_equal(session.run(None, {})[0], [1, 2])

    def test_sequences(self):
        session = graphi.InferenceSession(model((1, node("ConcatFromSequence", ["s", ], ["y"]) + b"\x2a\x0b\x0a\x04axis\x18\x00\xa0\x01\x02"),
                                                (1, node("SequenceConstruct", ["y", "y"], ["t"])), (11, sequence_port("s")),
                                                (12, port("y", ["n"])), (12, sequence_port("t"))))
        self.assertEqual(session.get_inputs()[0].type, "seq(tensor)")
        y, t = session.run(None, {"s": [np.float32([1, 2]), np.float32([3])]})
        np.testing.assert_array_equal(y, [1, 2, 3])
        self.assertEqual([part.tolist() for part in t], [[1, 2, 3], [1, 2, 3]])
        with self.assertRaisesRegex(TypeError, "expected a list of arrays"):
            session.run(None, {"s": np.zeros(3, "float32")})
        with self.assertRaises(TypeError):
            session.run(None, {"s": [np.float32([1]), "text"]})

    def test_errors(self):
        session = graphi.InferenceSession(TWO)
        for feed, kind, says in (({}, graphi.InvalidError, 'no input "x"'), ({"q": self.x}, graphi.UnknownNameError, "expected one of x"),
                                 ({"x": self.x.astype("float64")}, graphi.InvalidError, "float64"),
                                 ({"x": self.x[0]}, graphi.InvalidError, "x"), ({"x": np.array(["a"])}, graphi.DtypeError, "type of ONNX"),
                                 ({"x": [[1, "a"]]}, graphi.DtypeError, "x"), ({"x": None}, graphi.Error, "x")):
            with self.assertRaisesRegex(kind, says):
                session.run(None, feed)
        with self.assertRaisesRegex(graphi.UnknownNameError, "output"):
            session.run(["w"], {"x": self.x})
        stops = graphi.RunOptions()
        stops.terminate = True
        with self.assertRaises(graphi.InterruptedError):
            session.run(None, {"x": self.x}, stops)
        for broken, kind in ((b"", graphi.InvalidError), (b"not a model", graphi.InvalidError), (TWO[:-9], graphi.InvalidError),
                             ("none.onnx", graphi.FileError), (7, graphi.InvalidError),
                             (model((1, node("NoSuch", ["x"], ["y"])), (11, port("x", [1])), (12, port("y", [1]))), graphi.UnsupportedError)):
            with self.assertRaises(kind):
                graphi.InferenceSession(broken)
        session.close()
        for call in (lambda: session.run(None, {"x": self.x}), session.get_inputs, session.get_modelmeta):
            with self.assertRaises(graphi.ClosedError):
                call()

    def test_bound_memory(self):
        session = graphi.InferenceSession(TWO)
        binding = session.io_binding()
        y = np.empty((2, 2), "float32")
        z = graphi.OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32)
        binding.bind_cpu_input("x", self.x)
        binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
        binding.bind_ortvalue_output("z", z)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(y, self.y)
        np.testing.assert_array_equal(z.numpy(), self.x * self.x)
        self.assertEqual(binding.get_outputs()[1].data_ptr(), z.data_ptr())
        value = graphi.OrtValue.ortvalue_from_numpy(self.x)
        self.assertEqual((value.shape(), value.data_type(), value.device_name(), value.is_tensor()), ([2, 2], "tensor(float)", "cpu", True))
        np.testing.assert_array_equal(session.run_with_ort_values(["y"], {"x": value})[0].numpy(), self.y)
        binding.clear_binding_outputs()
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], self.y)
        for wrong in (np.zeros((2, 3), "float32"), np.zeros(4, "float32"), np.zeros((2, 2), "int32")):
            binding.bind_ortvalue_output("y", graphi.OrtValue(wrong))
            with self.assertRaises(graphi.InvalidError):
                session.run_with_iobinding(binding)
        with self.assertRaises(graphi.UnsupportedError):
            binding.bind_output("y", "cuda")
        with self.assertRaises(graphi.InvalidError):
            session.run_with_iobinding(session.io_binding())

    def test_streams(self):
        # the state is what was summed so far
        sums = graphi.InferenceSession(model((1, node("Add", ["x", "old"], ["new"])), (1, node("Neg", ["new"], ["y"])), (11, port("x", [2])),
                                             (11, port("old", [2])), (12, port("y", [2])), (12, port("new", [2]))))
        one, two = sums.stream({"new": "old"}), sums.stream({"new": "old"})
        for step in range(1, 4):
            found, = one.run(None, {"x": [1, 2]})
            np.testing.assert_array_equal(found, np.float32([-step, -2 * step]))
        np.testing.assert_array_equal(two.run(["y"], {"x": [5, 5]})[0], [-5, -5])
        np.testing.assert_array_equal(one.state["old"], [3, 6])
        one.reset({"old": [1, 1]})
        np.testing.assert_array_equal(one.run(None, {"x": [1, 2]})[0], [-2, -3])
        for wrong in ({"new": "older"}, {"newer": "old"}):
            with self.assertRaises(graphi.UnknownNameError):
                sums.stream(wrong)

    def test_profiles(self):
        with tempfile.TemporaryDirectory() as folder:
            options = graphi.SessionOptions()
            options.enable_profiling, options.profile_file_prefix = True, f"{folder}/times_"
            session = graphi.InferenceSession(TWO, sess_options=options)
            for _ in range(3):
                session.run(None, {"x": self.x})
            events = json.loads(Path(session.end_profiling()).read_text())
            self.assertEqual([event["name"] for event in events], ["model_loading"] + 3 * ["model_run"])
            self.assertGreater(min(event["dur"] for event in events), 0)
        self.assertEqual(graphi.InferenceSession(TWO).end_profiling(), "")

    def test_many_threads_run_one_session(self):
        session, failures = graphi.InferenceSession(TWO), []

        def work(rows):
            try:
                x = np.random.default_rng(rows).standard_normal((rows, 2)).astype("float32")
                for _ in range(200):
                    y, z = session.run(None, {"x": x})
                    np.testing.assert_array_equal(y, np.maximum(x + np.float32([1, -1]), 0))
                    np.testing.assert_array_equal(z, x * x)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(1 + number % 4,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_no_memory_is_kept(self):
        session = graphi.InferenceSession(TWO)
        x = np.zeros((4096, 2), "float32")

        def resident():
            gc.collect()
            return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1])

        for _ in range(50):
            session.run(None, {"x": x})
        before = resident()
        for _ in range(500):  # 48 MB, were they kept
            session.run(None, {"x": x})
            with self.assertRaises(graphi.InvalidError):
                session.run(None, {"x": x, "w": x})
        self.assertLess(resident() - before, 16 << 10)


class Pages(unittest.TestCase):
    def test_from_onnxruntime(self):
        page = (ROOT / "docs" / "from-onnxruntime.md").read_text()
        blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
        self.assertTrue(blocks)
        names, here = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "model.onnx").write_bytes(TWO)
            os.chdir(folder)
            try:
                for block in blocks:
                    exec(compile(block, "docs/from-onnxruntime.md", "exec"), names)
            finally:
                os.chdir(here)

    def test_names_of_the_page_exist(self):
        """What the page's tables name on our side is there."""
        page = (ROOT / "docs" / "from-onnxruntime.md").read_text()
        objects = {"InferenceSession": graphi.InferenceSession, "SessionOptions": graphi.SessionOptions(), "OrtValue": graphi.OrtValue,
                   "IOBinding": graphi.IOBinding, "RunOptions": graphi.RunOptions()}
        named = re.findall(r"`(InferenceSession|SessionOptions|OrtValue|IOBinding|RunOptions)\.(\w+)", page)
        self.assertGreater(len(named), 40)
        for kind, name in named:
            self.assertTrue(hasattr(objects[kind], name), f"{kind}.{name}")


if __name__ == "__main__":
    unittest.main()
