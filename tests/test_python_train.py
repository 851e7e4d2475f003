#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""graphi.Trainer: batches from everywhere, callbacks, progress, checkpoints, going on bit for bit, Ctrl-C, threads, and the exit of the
interpreter during a training.

usage: test_python_train.py --build DIR [TEST...]      77: there is no venv, or the packages cannot be had"""
import contextlib
import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import weakref
from pathlib import Path

from python_package import enter

enter(__file__)

import numpy as np  # noqa: E402

import graphi  # noqa: E402

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((48, 2)).astype("float32")
LABELS = (X[:, 0] > X[:, 1]).astype("int32")


def network(evaluation=False, batch=8):
    """Which of two numbers is larger."""
    graph = graphi.Graph()
    rows = graph.symbol("rows", batch) if evaluation else batch
    x, labels = graph.input("x", "float32", (rows, 2)), graph.input("labels", "int32", (rows,))
    hidden = graphi.tanh(x @ graph.parameter("w", "float32", (2, 8), init="glorot_uniform"))
    logits = graph.output("logits", hidden @ graph.parameter("v", "float32", (8, 2), init="glorot_uniform"))
    loss = graph.output("loss", graphi.softmax_cross_entropy(logits, labels))
    if not evaluation:
        graph.minimize(loss, "adam", learning_rate=graph.input("learning_rate"))
    return graph


def trainer(data=None, **options):
    return graphi.Trainer(network(), {"x": X, "labels": LABELS} if data is None else data, **{"rate": 0.02, "epochs": 10, **options})


class Trainings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = f"{self.folder.name}/net.safetensors"
        self.addCleanup(self.folder.cleanup)

    def test_trains_and_validates(self):
        heard = []
        t = trainer(epochs=40, evaluation=network(True), validation={"x": X[:20], "labels": LABELS[:20]}, metric="accuracy",
                    schedule="cosine:40e", validated=lambda info, score: heard.append((info.step, score.metric, score.samples)))
        info = t.run()
        self.assertEqual((info.step, info.last_step, info.batches, len(heard), heard[0][0], heard[0][2]), (240, 240, 6, 40, 6, 20))
        self.assertGreater(heard[-1][1], 0.9)
        self.assertLess(info.loss[0], 0.4)
        self.assertEqual(t.state.step, 240)
        run = graphi.Run(graphi.Plan(network(True)), t.state)
        batches = []
        found = graphi.score(run, {"x": X, "labels": LABELS}, metric="accuracy", scored=batches.append)
        self.assertEqual(found.samples, 48)
        self.assertEqual(sum(int((batch.predictions == batch.targets).sum()) for batch in batches), round(found.metric * 48))
        self.assertEqual(batches[0].logits.shape, (8, 2))

    def test_batches_from_everywhere(self):
        batches = [(X[i:i + 8], LABELS[i:i + 8]) for i in range(0, 48, 8)]
        asked = []

        def function(epoch, index):
            asked.append((epoch, index))
            return {"x": batches[index][0], "labels": batches[index][1]} if index < 6 else None

        states = []
        for data, how in (({"x": X, "labels": LABELS}, {"ordered": True}), (function, {"batches": 6}), (batches, {}),
                          (function, {"steps": 60, "epochs": None})):
            t = trainer(data, **how)
            t.run()
            states.append(t.state.sha256())
        self.assertEqual(len(set(states)), 1)
        self.assertEqual(asked[:7], [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 0)])
        np.save(f"{self.folder.name}/images.npy", RANDOM.random((40, 4, 4, 1), "float32"))
        np.save(f"{self.folder.name}/labels.npy", np.arange(40) % 2)
        data = graphi.Data(self.folder.name, batch=4)
        self.assertEqual((data.info.classes, len(data), len(list(data)), data.position), (2, 9, 9, (1, 0)))
        graph = graphi.Graph()
        images = graph.input("images", "float32", (4, 4, 4, 1))
        logits = images.reshape(4, 16) @ graph.parameter("w", "float32", (16, 2))
        loss = graph.output("loss", graphi.softmax_cross_entropy(logits, graph.input("labels", "int32", (4,))))
        graph.minimize(loss, learning_rate=graph.input("learning_rate"))
        self.assertEqual(graphi.Trainer(graph, data, rate=0.1, epochs=2).run().step, 18)

    def test_goes_on_bit_for_bit(self):
        whole = trainer(epochs=8)
        whole.run()
        stopped = trainer(epochs=8, checkpoint=self.path, stop=lambda: stopped.info.step >= 17)
        with self.assertRaises(graphi.InterruptedError):
            stopped.run()
        self.assertEqual(stopped.info.step, 17)
        with self.assertRaises(graphi.InvalidError):
            trainer(epochs=8, checkpoint=self.path)
        rest = trainer(epochs=8, checkpoint=self.path, start="resume")
        self.assertEqual(rest.info.started, 17)
        rest.run()
        self.assertEqual(rest.state.sha256(), whole.state.sha256())
        told = graphi.Checkpoint(self.path)
        self.assertEqual((told.info.own, told.info.step, told.info.batch), (True, 48, 8))
        again = graphi.State(network())
        told.load(again)
        np.testing.assert_array_equal(again["w"], whole.state["w"])
        with self.assertRaises(graphi.InvalidError):
            trainer(seed=5, checkpoint=self.path, start="resume")
        with self.assertRaises(graphi.FileError):
            trainer(checkpoint=f"{self.folder.name}/none", start="resume")

    def test_callbacks(self):
        saved, steps, notes = [], [], []
        t = trainer(epochs=2, checkpoint=self.path, every=5, strings={"by": "test"}, saved=saved.append, note=notes.append,
                    stepped=lambda info: steps.append((info.step, float(np.abs(t.state["w"]).sum()))))
        t.run()
        self.assertEqual([step for step, _ in steps], list(range(1, 13)))
        self.assertEqual(len({weight for _, weight in steps}), 12)  # a callback reads the state of its step
        self.assertEqual(saved, [self.path] * 3)
        self.assertEqual(graphi.Checkpoint(self.path).text("by"), "test")
        graph = network()
        graph.output("extra", graph.input("shift", "float32", (1,)) + graph["w"].sum())
        with self.assertRaisesRegex(graphi.InvalidError, "input 'shift' in no feed"):
            graphi.Trainer(graph, {"x": X, "labels": LABELS}, epochs=1)
        asked = []
        graphi.Trainer(graph, {"x": X, "labels": LABELS}, epochs=1, rate=0.1,
                       begin=lambda step, part: asked.append(step) or {"shift": [step]}).run()
        self.assertEqual(asked, list(range(6)))

    def test_exceptions_of_callbacks(self):
        for name in ("stepped", "validated", "saved", "stop"):
            def fails(*arguments):
                raise RuntimeError(name)

            t = trainer(epochs=2, checkpoint=f"{self.path}.{name}", **{name: fails})
            with self.assertRaisesRegex(RuntimeError, name):
                t.run()
            self.assertTrue(Path(f"{self.path}.{name}").exists())
        for name, data in (("batch", lambda epoch, index: 1 / 0), ("shape", lambda epoch, index: (X, LABELS)),
                           ("type", lambda epoch, index: (X[:8].astype("float64"), LABELS[:8])), ("count", lambda epoch, index: (X[:8],)),
                           ("name", lambda epoch, index: {"x": X[:8], "label": LABELS[:8]}), ("rows", lambda epoch, index: (X[:8], LABELS[:7])),
                           ("none", lambda epoch, index: None)):
            with self.assertRaises(ZeroDivisionError if name == "batch" else graphi.InvalidError, msg=name):
                trainer(data, steps=3, epochs=None).run()
        with self.assertRaisesRegex(graphi.InvalidError, "found 'y', expected one of x"):
            graphi.Trainer(network(), {"y": X, "labels": LABELS}, epochs=1)
        with self.assertRaises(graphi.UsageError):
            trainer(epoch=3)

    def test_progress(self):
        told = io.StringIO()
        kept, sys.modules["tqdm.auto"] = sys.modules.get("tqdm.auto"), None
        try:
            with contextlib.redirect_stderr(told):
                trainer(epochs=2, progress=True).run()
        finally:
            sys.modules.pop("tqdm.auto")
            if kept:
                sys.modules["tqdm.auto"] = kept
        self.assertRegex(told.getvalue(), r"step 12 of 12 loss 0\.\d+")
        bars = []

        class Bar:
            def __init__(self, total, initial):
                self.total, self.n, self.closed = total, initial, False
                bars.append(self)

            def set_postfix_str(self, words, refresh):
                self.words = words

            def update(self, steps):
                self.n += steps

            def close(self):
                self.closed = True

        sys.modules["tqdm"], sys.modules["tqdm.auto"] = types.ModuleType("tqdm"), types.ModuleType("tqdm.auto")
        sys.modules["tqdm.auto"].tqdm = Bar
        try:
            trainer(epochs=2, progress=True, evaluation=network(True), validation={"x": X, "labels": LABELS}).run()
        finally:
            del sys.modules["tqdm"], sys.modules["tqdm.auto"]
        self.assertEqual((bars[0].total, bars[0].n, bars[0].closed), (12, 12, True))
        self.assertIn("loss", bars[0].words)

    def test_tuned_plans(self):
        graph = network()
        state = graphi.State(graph)
        t = graphi.Trainer(graph, {"x": X, "labels": LABELS}, state=state, rate=0.02, epochs=10)
        run = graphi.Run(graphi.Plan(graph, executors=1, width=1), state)
        t.use(run)
        run.close()
        gc.collect()
        t.run()
        plain = trainer()
        plain.run()
        self.assertEqual(t.state.sha256(), plain.state.sha256())

    def test_ctrl_c_writes_the_checkpoint(self):
        """Also where it comes while a batch is made, or inside of `begin`."""
        def slow(epoch, index):
            time.sleep(0.02)
            at = index * 8
            return X[at:at + 8], LABELS[at:at + 8]

        def begin(step, part):
            time.sleep(0.02)
            return {}

        for place, (data, how) in enumerate((({"x": X, "labels": LABELS}, {}), (slow, {"batches": 6}), ({"x": X, "labels": LABELS}, {"begin": begin}))):
            path = f"{self.path}.{place}"
            t = trainer(data, epochs=1_000_000, checkpoint=path, **how)
            timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                t.run()
            timer.join()
            step = graphi.Checkpoint(path).info.step
            self.assertGreater(step, 0)
            rest = trainer(data, epochs=None, steps=step + 5, checkpoint=path, start="resume", **how)
            rest.run()
            straight = trainer(data, epochs=None, steps=step + 5, **how)
            straight.run()
            self.assertEqual(rest.state.sha256(), straight.state.sha256())

    def test_interpreter_exit_during_a_training(self):
        program = f"""
import sys, threading, time
sys.argv = ["test", "--inside"]
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_python_train as test
t = test.trainer(epochs=1_000_000, checkpoint={self.path!r})
thread = threading.Thread(target=t.run, daemon=True)
thread.start()
while t.info.step < 20:
    time.sleep(0.01)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(graphi.Checkpoint(self.path).info.step, 20)
        program = program.replace("epochs=1_000_000", "epochs=1_000_000, start='overwrite'") + "sys.exit(3)\n"
        self.assertEqual(subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60).returncode, 3)

    def test_threads(self):
        begun, goes, failures = threading.Event(), threading.Event(), []
        t = trainer(epochs=200, stepped=lambda info: begun.set() or goes.wait())

        def work():
            try:
                t.run()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        for _ in range(20):
            self.assertEqual(t.info.last_step, 1200)
            with self.assertRaises(graphi.BusyError):
                t.step()
        goes.set()
        thread.join()
        self.assertEqual(failures, [])

    def test_goes_with_its_callbacks(self):
        class Owner:
            def __init__(self):
                self.trainer = trainer(epochs=1, stepped=self.stepped)

            def stepped(self, info):
                self.step = info.step

        owner = Owner()
        owner.trainer.run()
        gone = weakref.ref(owner.trainer)
        del owner
        gc.collect()
        self.assertIsNone(gone())
        t = trainer()
        t.close()
        for call in (t.run, t.step, lambda: t.info, t.save):
            with self.assertRaises(graphi.ClosedError):
                call()

    def test_a_training_within_a_callback(self):
        inner = []
        trainer(epochs=1, stepped=lambda info: inner.append(trainer(epochs=1).run().step)).run()
        self.assertEqual(inner, [6] * 6)


if __name__ == "__main__":
    unittest.main()
