#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package against the library that was built: graphs, numbers, errors, lifetimes, threads, processes, Ctrl-C, and the code of
docs/python.md. Environment and package: tests/python_package.py.

usage: test_python.py --build DIR [TEST...]      77: there is no venv, or the packages cannot be had"""
import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref
from pathlib import Path

from python_package import ROOT, enter

enter(__file__)

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

import graphi  # noqa: E402


def dense_graph(rows=4):
    graph = graphi.Graph()
    x = graph.input("x", "float32", (rows, 3))
    w = graph.parameter("w", "float32", (3, 2), init=("normal", 0, 0.5))
    b = graph.parameter("b", "float32", (2,), init=0.25)
    graph.output("y", graphi.relu(x @ w + b))
    return graph


def evaluated(build, **arrays):
    """What `build` makes of values that stand for arrays."""
    graph = graphi.Graph()
    values = {name: graph.input(name, array.dtype, array.shape) for name, array in arrays.items()}
    graph.output("result", build(**values))
    return graphi.Run(graphi.Plan(graph, isa="plain"))(**arrays)["result"]


RANDOM = np.random.default_rng(1)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype("float32")


class Graphs(unittest.TestCase):
    def test_operators_are_numpys(self):
        a, b, m = floats(4, 1, 3), floats(5, 3) + 3, floats(3, 6)
        for build in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: -a + 2 * b - 1,
                      lambda a, b: 1 / b, lambda a, b: a ** 2, lambda a, b: abs(a) % b, lambda a, b: 2 - a,
                      lambda a, b: a + np.ones((5, 3), "float32"), lambda a, b: np.ones((5, 3), "float32") - a):
            np.testing.assert_allclose(evaluated(build, a=a, b=b), build(a, b), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(evaluated(lambda a, m: a @ m, a=a, m=m), a @ m, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(evaluated(lambda a, b: a < b, a=a, b=b), a < b)

    def test_slices_are_numpys(self):
        a = floats(4, 5, 6)
        for key in ((1,), (-1,), (slice(1, 3),), (slice(None), 2), (Ellipsis, 0), (slice(-2, None), slice(None), slice(1, -1)),
                    (0, 1, 2), (None, 1), (slice(None), None, slice(2)), (1, Ellipsis, slice(3, None))):
            np.testing.assert_array_equal(evaluated(lambda a: a[key], a=a), a[key], str(key))
        for key in (slice(None, None, 2), 4, "x", (0, 0, 0, 0)):
            with self.assertRaises(graphi.InvalidError):
                evaluated(lambda a: a[key], a=a)
        self.assertEqual(len(list(graphi.Graph().constant(a))), 4)

    def test_methods_are_numpys(self):
        a = floats(4, 6)
        for build in (lambda a: a.sum(), lambda a: a.mean(0), lambda a: a.max(axis=1, keepdims=True), lambda a: a.T,
                      lambda a: a.reshape(2, -1), lambda a: a.transpose(1, 0)):
            np.testing.assert_allclose(evaluated(build, a=a), build(a), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(evaluated(lambda a: a.astype("int32"), a=a * 10), (a * 10).astype("int32"))

    def test_every_operation_has_a_function(self):
        header = (ROOT / "include" / "graphi" / "ops.h").read_text()
        names = re.findall(r"^static inline graphi_value graphi_(\w+)\(", header, re.M)
        self.assertGreater(len(names), 60)
        for name in names:
            self.assertIn("Shapes:", getattr(graphi, name).__doc__, name)
        self.assertIn("dilations (Sequence[int], default ()): [height, width]", graphi.conv2d.__doc__)

    def test_operations_of_several_results(self):
        a = floats(4, 6)
        np.testing.assert_array_equal(evaluated(lambda a: graphi.split(a, axis=1, outputs=3)[2], a=a), a[:, 4:])
        np.testing.assert_array_equal(evaluated(lambda a: graphi.concat(a, a, axis=0), a=a), np.concatenate([a, a]))
        self.assertEqual([value.shape for value in graphi.batch_norm(graphi.Graph().constant(a), np.ones(6, "float32"), np.ones(6, "float32"))],
                         [(4, 6), (6,), (6,)])

    def test_gradients_and_training(self):
        graph = dense_graph()
        target = graph.input("target", "float32", (4, 2))
        loss = graph.output("loss", ((graph["y"] - target) ** 2).mean())
        independent = graph.input("z", "float32", (1,))
        slope, none = graph.gradients(loss, [graph["w"], independent])
        self.assertIsNone(none)
        graph.output("slope", slope)
        graph.minimize(loss, "adam", learning_rate=graph.input("rate"), clip_norm=10)
        state = graphi.State(graph, seed=3)
        run = graphi.Run(graphi.Plan(graph), state)
        x = abs(floats(4, 3))
        feeds = {"x": x, "target": np.full((4, 2), 0.7, "float32"), "rate": 0.05, "z": [1]}
        state["w"] = np.full((3, 2), 0.5, "float32")
        w, b = state["w"], state["b"]
        first = run.feed(feeds)
        y = np.maximum(x @ w + b, 0)
        np.testing.assert_allclose(first["slope"], x.T @ ((y > 0) * 2 * (y - feeds["target"]) / y.size), rtol=1e-4, atol=1e-6)
        for _ in range(200):
            last = run.feed(feeds)
        self.assertLess(last["loss"], 0.1 * first["loss"])
        self.assertEqual(state.step, 201)

    def test_assign_scope_and_printing(self):
        graph = graphi.Graph()
        with graph.scope("counter"):
            count = graph.parameter("count", "float32", ())
            new = graph.assign(count, count + 1)
        graph.output("count", new)
        run = graphi.Run(graphi.Plan(graph))
        self.assertEqual([float(run()["count"]) for _ in range(3)], [1, 2, 3])
        self.assertIn("counter", graph.print())
        self.assertIn("digraph", graph.print("dot"))
        self.assertEqual(graph.info.parameters, 1)

    def test_bounded_sizes(self):
        graph = graphi.Graph()
        x = graph.input("x", "float32", (graph.symbol("rows", 8), 3))
        graph.output("y", x * 2)
        graph.output("first", x[:, 0])
        graph.output("sum", x.sum())
        run = graphi.Run(graphi.Plan(graph))
        for rows in (8, 3, 1, 5):
            data = floats(rows, 3)
            found = run(x=data)
            np.testing.assert_array_equal(found["y"], data * 2)
            np.testing.assert_array_equal(found["first"], data[:, 0])
            self.assertEqual(found["sum"].shape, ())
        with self.assertRaises(graphi.InvalidError):
            run(x=floats(9, 3))


class Objects(unittest.TestCase):
    def test_plans(self):
        graph = dense_graph()
        plan = graphi.Plan(graph, policy="fifo", executors=1, width=1, check_numerics=True)
        self.assertEqual((plan.info.setting.policy, plan.info.setting.width, plan.info.precision), ("fifo", 1, "float32"))
        heard = []
        tuned = plan.tune(0.05, progress=heard.append)
        self.assertTrue(tuned.trials)
        with tempfile.TemporaryDirectory() as folder:
            tuned.save(Path(folder) / "plan.json")
            again = graphi.Plan.load(Path(folder) / "plan.json", graph, check_numerics=True)
            self.assertEqual(again.info.setting, tuned.info.setting)
            with self.assertRaises(graphi.RefusedError):
                graphi.Plan.load(Path(folder) / "plan.json", dense_graph(5), check_numerics=True)
            with self.assertRaises(graphi.FileError):
                graphi.Plan.load(Path(folder) / "none.json", graph)
        self.assertIn("critical path", plan.explain(operations=True))
        with self.assertRaises(graphi.NonFiniteError):
            graphi.Run(plan)(x=np.full((4, 3), np.nan, "float32"))

    def test_simulation(self):
        plan = graphi.Plan(graphi.models.lstm(batch=2, steps=3, units=8))
        machine = graphi.Machine.load(ROOT / "machines" / "xeon-phi-7250.json")
        here, there = graphi.simulate(plan), graphi.simulate(plan, machine, setting={"executors": 4, "width": 2})
        self.assertGreater(here.makespan_ms, 0)
        self.assertEqual(there.setting.executors, 4)
        with tempfile.TemporaryDirectory() as folder:
            graphi.simulate(plan, machine, timeline=f"{folder}/step")
            self.assertTrue(Path(folder, "step.html").exists())

    def test_states(self):
        graph = dense_graph()
        state = graphi.State(graph, seed=1)
        self.assertEqual((sorted(state), len(state), state.shape("w"), state.dtype("w")), (["b", "w"], 2, (3, 2), "float32"))
        np.testing.assert_array_equal(state["b"], [0.25, 0.25])
        state["b"] = [1, 2]
        state["w"] = np.asfortranarray(np.arange(6, dtype="float32").reshape(3, 2))
        np.testing.assert_array_equal(state["w"], np.arange(6).reshape(3, 2))
        other = graphi.State(graph, seed=2)
        self.assertNotEqual(state.sha256(), other.sha256())
        with tempfile.TemporaryDirectory() as folder:
            state.save(f"{folder}/s.safetensors", {"by": "test"})
            self.assertEqual(other.load(f"{folder}/s.safetensors")["by"], "test")
        self.assertEqual(state.sha256(), other.sha256())
        larger = dense_graph()
        larger.parameter("c", "int64", (2,), init=np.array([5, 6]))
        state.extend(larger)
        np.testing.assert_array_equal(state["c"], [5, 6])
        state.step = 7
        self.assertEqual(state.step, 7)
        self.assertEqual(dict(state).keys(), {"w", "b", "c"})

    def test_models(self):
        self.assertIn("lstm", graphi.models.names())
        self.assertIn("phased_lstm", dir(graphi.models))
        graph = graphi.models.pathnet(task="real", batch=4)
        self.assertEqual([port.name for port in graph.inputs], ["images", "labels", "learning_rate"])
        self.assertEqual(graphi.models.info("ptb").metric, "perplexity")

    def test_traces(self):
        run = graphi.Run(graphi.Plan(dense_graph()))
        with self.assertRaises(graphi.InvalidError):
            run.timeline()
        run.trace()
        run(x=floats(4, 3))
        self.assertEqual(len(run.operations), run.summary.operations)
        self.assertIn("<iframe", run.timeline()._repr_html_())
        self.assertEqual(run.info.executions, 1)

    def test_machine(self):
        machine = graphi.Machine(1)
        self.assertEqual(machine.info.cores, 1)
        self.assertTrue(machine.info.captured and str(machine))


class Arrays(unittest.TestCase):
    def test_arrays_as_they_come(self):
        run = graphi.Run(graphi.Plan(dense_graph()))
        x = floats(4, 3)
        expected = run(x=x)["y"]
        frozen = x.copy()
        frozen.flags.writeable = False
        wide = np.zeros((4, 6), "float32")
        wide[:, ::2] = x
        for form in (frozen, np.asfortranarray(x), wide[:, ::2], x.astype(">f4"), x.tolist(), Passed(x)):
            np.testing.assert_array_equal(run(x=form)["y"], expected)
        out = np.empty((4, 2), "float32")
        self.assertIs(run.get("y", out), out)
        np.testing.assert_array_equal(out, expected)
        with self.assertRaises(graphi.InvalidError):
            run.get("y", frozen)

    def test_names_that_are_no_words(self):
        graph = graphi.Graph()
        graph.output("y 1", graph.input("self", "float32", (2,)) + graph.input("a/b", "float32", (2,)))
        np.testing.assert_array_equal(graphi.Run(graphi.Plan(graph)).feed({"self": [1, 2], "a/b": [3, 4]})["y 1"], [4, 6])

    def test_small_arrays_of_the_runs_own(self):
        """Inputs stay what they were set to, before the first call and after it; results are new arrays; what is bound is bound."""
        graph = graphi.Graph()
        a, b = graph.input("a", "float32", (2,)), graph.input("b", "float32", (2,))
        graph.output("y", a + b)
        graph.output("z", a * 1)
        run = graphi.Run(graphi.Plan(graph))
        run.set("b", [10, 20])
        first = run(a=np.float32([1, 2]))["y"]
        np.testing.assert_array_equal(first, [11, 22])
        np.testing.assert_array_equal(run(a=np.float32([3, 4]))["y"], [13, 24])
        np.testing.assert_array_equal(first, [11, 22])
        run.set("a", [5, 6])
        np.testing.assert_array_equal(run()["y"], [15, 26])
        np.testing.assert_array_equal(run(b=[0, 1])["y"], [5, 7])
        np.testing.assert_array_equal(run.get("z"), [5, 6])
        run.execute()
        np.testing.assert_array_equal(run.get("y"), [5, 7])
        mine = graphi.empty((2,))
        mine[:] = 1, 1
        run.bind("a", mine)
        np.testing.assert_array_equal(run()["y"], [1, 2])
        mine[:] = 7
        np.testing.assert_array_equal(run()["y"], [7, 8])
        np.testing.assert_array_equal(run(a=np.float32([2, 2]))["y"], [2, 3])
        with self.assertRaises(graphi.DtypeError):
            run(b=np.zeros(2))
        with self.assertRaises(graphi.InvalidError):
            run(b=np.zeros((2, 1), "float32"))

    def test_bound_arrays(self):
        run = graphi.Run(graphi.Plan(dense_graph()))
        x, y = graphi.empty((4, 3)), graphi.empty((4, 2))
        run.bind("x", x)
        run.bind("y", y)
        for _ in range(2):
            x[:] = floats(4, 3)
            expected = np.maximum(x @ run.state["w"] + run.state["b"], 0)
            self.assertIs(run()["y"], y)
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
        owner = weakref.ref(x)
        del x
        gc.collect()
        self.assertIsNotNone(owner())  # the run keeps it
        run(x=floats(4, 3))
        gc.collect()
        self.assertIsNone(owner())
        for wrong in (graphi.empty((3, 4)), graphi.empty((4, 3), "int32"), graphi.empty((4, 6))[:, ::2], graphi.empty((5, 3)).ravel()[1:13].reshape(4, 3)):
            with self.assertRaises(graphi.InvalidError):
                run.bind("x", wrong)
        y.flags.writeable = False
        with self.assertRaises(graphi.InvalidError):
            run.bind("y", y)

    def test_types_and_shapes_are_refused(self):
        run = graphi.Run(graphi.Plan(dense_graph()))
        for wrong in (np.zeros((4, 3)), np.zeros((4, 3), "int32"), [["a"] * 3] * 4, None):
            with self.assertRaises(TypeError):
                run(x=wrong)
        for wrong in (floats(3, 4), floats(12), floats(4, 3, 1), floats(3)):
            with self.assertRaisesRegex(ValueError, "found shape"):
                run(x=wrong)
        with self.assertRaises(TypeError):
            graphi.State(dense_graph())["b"] = np.zeros(2)
        with self.assertRaises(TypeError):
            graphi.Graph().input("i", "int32", (1,)) + 1.5

    def test_all_element_types(self):
        for name in graphi.graph.DTYPES:
            dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
            data = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
            np.testing.assert_array_equal(evaluated(lambda a: a.T, a=data), data.T, name)

    def test_bfloat16_without_its_package(self):
        graph = graphi.Graph()
        graph.output("y", graph.input("x", "bfloat16", (2,)).T)
        run = graphi.Run(graphi.Plan(graph))
        kept, sys.modules["ml_dtypes"] = sys.modules["ml_dtypes"], None
        try:
            with self.assertRaisesRegex(TypeError, "ml_dtypes"):
                run(x=np.zeros(2, "uint16"))
        finally:
            sys.modules["ml_dtypes"] = kept


class Passed:
    """An array of another library, which DLPack passes on."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Mistakes(unittest.TestCase):
    def test_classes(self):
        self.assertTrue(issubclass(graphi.InvalidError, graphi.Error) and issubclass(graphi.InvalidError, ValueError))
        for kind in (graphi.UsageError, graphi.UnsupportedError, graphi.FileError, graphi.OutOfMemoryError, graphi.RefusedError,
                     graphi.NonFiniteError, graphi.InterruptedError, graphi.DtypeError, graphi.ClosedError):
            self.assertTrue(issubclass(kind, graphi.Error))

    def test_messages_are_the_librarys(self):
        graph = graphi.Graph()
        x = graph.input("x", "float32", (4, 3))
        with self.assertRaisesRegex(graphi.InvalidError, "matmul.*expected"):
            x @ x
        with self.assertRaisesRegex(graphi.InvalidError, "matmul"):
            graph.output("y", x)  # the first mistake stays
        with self.assertRaises(graphi.UnsupportedError):
            graph = graphi.Graph()
            w = graph.parameter("w", "float32", (2,))
            graph.gradients(graphi.sum_to(graphi.log_softmax_gradient(w, w), dims=[]), [w])
        with self.assertRaises(graphi.UsageError):
            graphi.Plan(dense_graph(), executors=4096, width=4096)

    def test_nearest_names_are_told(self):
        graph, state = dense_graph(), graphi.State(dense_graph())
        run = graphi.Run(graphi.Plan(graph), state)
        graph.parameter("weights", "float32", (1,))
        for call, near in ((lambda: graphi.Plan(graph, policy="critical-paths"), "critical-path"), (lambda: graph["weihgts"], "weights"),
                           (lambda: graphi.Plan(graph, executor=1), "executors"), (lambda: graphi.models.create("lsmt"), "lstm"),
                           (lambda: graph.parameter("p", init="glorot_unifrom"), "glorot-uniform"),
                           (lambda: graph.input("q", "float23"), "float32")):
            with self.assertRaisesRegex((graphi.Error), f"did you mean '{near}'"):
                call()
        for call, near in ((lambda: graphi.relo, "relu"), (lambda: graphi.models.pathnett, "pathnet"), (lambda: graph.info.node, "nodes")):
            with self.assertRaisesRegex(AttributeError, f"did you mean '{near}'"):
                call()
        with self.assertRaises(KeyError):
            state["v"]
        with self.assertRaisesRegex(graphi.UnknownNameError, "expected one of x"):
            run(y=1)

    def test_values_of_other_graphs(self):
        one, two = graphi.Graph(), graphi.Graph()
        with self.assertRaisesRegex(graphi.InvalidError, "another graph"):
            one.input("a") + two.input("b")
        with self.assertRaises(graphi.InvalidError):
            graphi.relu(1.0)
        with self.assertRaises(graphi.UsageError):
            bool(one["a"])

    def test_closed(self):
        graph, machine = dense_graph(), graphi.Machine()
        plan, state = graphi.Plan(graph, machine), graphi.State(graph)
        run = graphi.Run(plan, state)
        value = graph["y"]
        for handle in (graph, machine, plan, state):
            handle.close()
            handle.close()
        self.assertEqual(run(x=floats(4, 3))["y"].shape, (4, 2))  # what was made of them goes on
        run.close()
        for call in (lambda: graph.inputs, lambda: value + 1, lambda: value.shape, lambda: plan.info, lambda: graphi.Run(plan, state),
                     lambda: state["w"], lambda: list(state), lambda: run(x=floats(4, 3)), lambda: run.info, lambda: str(machine),
                     lambda: graphi.Plan(graph), lambda: graphi.State(graph), lambda: graphi.simulate(plan)):
            with self.assertRaises(graphi.ClosedError):
                call()

    def test_ends_in_any_order(self):
        for _ in range(20):
            graph = dense_graph()
            run = graphi.Run(graphi.Plan(graph))
            run.circle = [run, graph]
            graph.circle = run.circle
            del graph, run
        gc.collect()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class FromPyTorch(unittest.TestCase):
    """state_dicts as PyTorch has them; what a layer computes is written down in NumPy by its documentation."""

    def weights(self, gates, features=3, units=5, prefix="net."):
        shapes = {"weight_ih_l0": (gates * units, features), "weight_hh_l0": (gates * units, units), "bias_ih_l0": (gates * units,),
                  "bias_hh_l0": (gates * units,)}
        return {prefix + name: floats(*shape) for name, shape in shapes.items()}

    def ran(self, layer, load, gates, step):
        graph, weights, steps, batch = graphi.Graph(), self.weights(gates), 4, 2
        result = layer(graph.input("x", "float32", (steps * batch, 3)), 5, batch=batch, scope="r.")
        graph.output("y", result.y)
        graph.output("h", result.h[0])
        state = graphi.State(graph)
        load(state, weights, "net.", "r.")
        x = floats(steps * batch, 3)
        found = graphi.Run(graphi.Plan(graph), state)(x=x)
        h, c, rows = np.zeros((batch, 5), "float32"), np.zeros((batch, 5), "float32"), []
        w, u, b, d = (weights[f"net.{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        for time_ in range(steps):
            h, c = step(x[time_ * batch:][:batch] @ w.T + b, h @ u.T + d, h, c)
            rows.append(h)
        np.testing.assert_allclose(found["y"], np.concatenate(rows), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found["h"], h, rtol=1e-4, atol=1e-5)
        with self.assertRaisesRegex(graphi.UnknownNameError, "weight_hh_l0"):
            load(state, {name: array for name, array in weights.items() if "weight_hh" not in name}, "net.", "r.")

    def test_lstm(self):
        def step(a, b, h, c):
            i, f, g, o = np.split(a + b, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            return sigmoid(o) * np.tanh(c), c
        self.ran(graphi.lstm, graphi.torch.load_lstm, 4, step)

    def test_gru(self):
        def step(a, b, h, c):
            (r, z, n), (s, y, m) = np.split(a, 3, 1), np.split(b, 3, 1)
            z, n = sigmoid(z + y), np.tanh(n + sigmoid(r + s) * m)
            return (1 - z) * n + z * h, c
        self.ran(graphi.gru, graphi.torch.load_gru, 3, step)

    def test_rnn(self):
        self.ran(graphi.rnn, graphi.torch.load_rnn, 1, lambda a, b, h, c: (np.tanh(a + b), c))

    def test_layers_without_time(self):
        graph = graphi.Graph()
        image = graph.input("image", "float32", (1, 4, 4, 2))
        kernel, scale = graph.parameter("k", "float32", (3, 3, 2, 5)), [graph.parameter(name, "float32", (5,)) for name in "smvt"]
        table, w = graph.parameter("e", "float32", (7, 3)), graph.parameter("w", "float32", (3, 6))
        graph.output("conv", graphi.conv2d(image, kernel))
        graph.output("linear", graphi.embedding(table, np.array([1, 6], "int32")) @ w)
        state = graphi.State(graph)
        weights = {"c.weight": floats(5, 2, 3, 3), "e.weight": floats(7, 3), "l.weight": floats(6, 3),
                   **{f"n.{name}": floats(5) for name in ("weight", "bias", "running_mean", "running_var")}}
        graphi.torch.load_conv2d(state, weights, "c.", "k")
        graphi.torch.load_embedding(state, weights, "e.", "e")
        graphi.torch.load_linear(state, weights, "l.", "w")
        graphi.torch.load_batch_norm(state, weights, "n.", ("s", "m", "v", "t"))
        self.assertEqual(len(scale), 4)
        np.testing.assert_array_equal(state["t"], weights["n.running_var"])
        x = floats(1, 4, 4, 2)
        found = graphi.Run(graphi.Plan(graph), state)(image=x)
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))  # [N, OH, OW, C, KH, KW]
        np.testing.assert_allclose(found["conv"], np.einsum("nhwcij,kcij->nhwk", windows, weights["c.weight"]), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found["linear"], weights["e.weight"][[1, 6]] @ weights["l.weight"].T, rtol=1e-4, atol=1e-5)
        with self.assertRaises(graphi.InvalidError):
            graphi.torch.load_linear(state, weights, "c.", "w")


class Threads(unittest.TestCase):
    def test_many_threads_share_plan_and_state(self):
        graph = dense_graph()
        plan, state, failures = graphi.Plan(graph), graphi.State(graph), []
        x = floats(4, 3)
        expected = graphi.Run(plan, state)(x=x)["y"]

        def work():
            try:
                run = graphi.Run(plan, state)
                for _ in range(100):
                    np.testing.assert_array_equal(run(x=x)["y"], expected)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_readers_and_writers(self):
        """A writer is alone, readers are not; nobody waits for ever."""
        shared, inside, worst, failures = graphi.handles.Shared(), [0, 0], [0], []

        def work(number):
            try:
                for turn in range(400):
                    writes = (turn + number) % 5 == 0
                    shared.acquire(writes)
                    inside[writes] += 1
                    if inside[1] > 1 or (inside[1] and inside[0]):
                        failures.append((number, turn))
                    worst[0] = max(worst[0], inside[0])
                    time.sleep(0.0001 if turn % 7 == 0 else 0)
                    if not writes and turn % 3 == 0:
                        shared.acquire(False)  # once more, as a callback may
                        shared.release(False)
                    inside[writes] -= 1
                    shared.release(writes)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        self.assertEqual((failures, inside), ([], [0, 0]))
        with shared.reading(), self.assertRaises(graphi.BusyError):
            shared.acquire(True)
        with shared.writing(), self.assertRaises(graphi.BusyError):
            shared.acquire(False)

    def test_closing_during_calls(self):
        x = floats(4, 3)
        for turn in range(60):
            run = graphi.Run(graphi.Plan(dense_graph()))
            begun = threading.Event()

            def call():
                try:
                    while True:
                        run(x=x)
                        begun.set()
                except graphi.ClosedError:
                    pass

            thread = threading.Thread(target=call)
            thread.start()
            begun.wait()
            run.close()
            thread.join()
            self.assertTrue(run.closed and not run._late)

    def test_one_run_in_two_threads_is_refused(self):
        run = graphi.Run(graphi.Plan(dense_graph()))
        with run._one:
            with self.assertRaises(graphi.BusyError):
                run.execute()
        run(x=floats(4, 3))

    def test_closing_during_an_execution(self):
        graph = graphi.models.pathnet(batch=8)
        for _ in range(3):
            run = graphi.Run(graphi.Plan(graph))
            for port in graph.inputs:
                run.set(port.name, np.zeros(port.shape, port.dtype))
            thread = threading.Thread(target=run.execute)
            thread.start()
            run.close()  # before, while or after it executes
            try:
                thread.join()
            except graphi.ClosedError:
                pass

    def test_fork_before_and_after_use(self):
        graph = dense_graph()
        plan, state = graphi.Plan(graph), graphi.State(graph)
        x = floats(4, 3)
        expected = graphi.Run(plan, state)(x=x)["y"]

        def child(results):
            own = dense_graph()
            results.put((graphi.Run(plan, state)(x=x)["y"], graphi.Run(graphi.Plan(own), graphi.State(own))(x=x)["y"]))

        context = multiprocessing.get_context("fork")
        results = context.Queue()
        children = [context.Process(target=child, args=(results,)) for _ in range(3)]
        for process in children:
            process.start()
        for _ in children:
            shared, own = results.get(timeout=60)
            np.testing.assert_array_equal(shared, expected)
            np.testing.assert_array_equal(own, expected)
        for process in children:
            process.join()
            self.assertEqual(process.exitcode, 0)

    def test_interrupt_ends_tuning(self):
        """While operations are measured: the first report is the beginning, and a large network takes seconds."""
        plan, timers, ended = graphi.Plan(graphi.models.pathnet(batch=64)), [], []

        def begins(words):
            if not timers:
                timers.append(threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)))
                timers[0].start()

        with self.assertRaises(KeyboardInterrupt):
            ended.append(plan.tune(60, progress=begins))
            timers[0].join()  # the signal comes here, and not into another test
        self.assertEqual(ended, [])

    def test_exceptions_of_callbacks_pass(self):
        def fails(words):
            raise RuntimeError(words)

        with self.assertRaises(RuntimeError):
            graphi.Plan(graphi.models.pathnet(batch=2)).tune(5, progress=fails)


class Outside(unittest.TestCase):
    def test_the_command(self):
        folder = Path(os.environ["GRAPHI_BIN"]).parent
        told = subprocess.run([sys.executable, "-m", "graphi", "--version"], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual((told.returncode, told.stdout.split()[:2]), (0, ["graphi", graphi.__version__ + ","]))
        self.assertEqual(subprocess.run([sys.executable, "-m", "graphi"], capture_output=True, env={**os.environ, "PATH": ""}).returncode, 5)

    def test_operators_of_pytorch_are_listed(self):
        """The page lists what from_module takes; tests/python_torch.py compares it with PyTorch."""
        from graphi.conversions import TABLE
        page = (ROOT / "docs" / "from-pytorch.md").read_text().split("```text")[1].split("```")[0]
        self.assertEqual(set(page.split()), {name for name in TABLE if not name.endswith("_")})

    def test_the_tour(self):
        page = (ROOT / "docs" / "python.md").read_text()
        blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
        self.assertGreater(len(blocks), 4)
        names = {}
        with tempfile.TemporaryDirectory() as folder:
            here = os.getcwd()
            os.chdir(folder)
            try:
                for block in blocks:
                    exec(compile(block, "docs/python.md", "exec"), names)
            finally:
                os.chdir(here)


if __name__ == "__main__":
    unittest.main()
