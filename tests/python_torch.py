# SPDX-License-Identifier: Apache-2.0
"""graphi.torch.from_module against PyTorch itself: each kind of layer alone, and networks of several; what cannot be taken is named. The
environment is the peer's of the benchmarks (build/peers/pytorch, made when it is not there), with the package's needs beside it.

usage: python_torch.py --build DIR [TEST...]      77: PyTorch cannot be had"""
import argparse
import os
import subprocess
import sys
import unittest
from pathlib import Path

from python_package import ROOT, built


def outside():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("tests", nargs="*")
    how = parser.parse_args()
    build = how.build.resolve()
    _, package = built(build)
    peers, beside = build.parent / "peers", build.parent / "python-torch"
    python = peers / "pytorch" / "bin" / "python"
    commands = [] if python.exists() else [["sh", ROOT / "bench" / "frameworks" / "setup.sh", "pytorch", peers]]
    if not (beside / "cffi").exists():
        commands.append([python, "-m", "pip", "install", "-q", "--no-deps", "--target", beside, "cffi", "pycparser", "ml_dtypes"])
    for command in commands:
        if subprocess.run([str(word) for word in command]).returncode:
            print("python_torch: left out, PyTorch cannot be had")
            sys.exit(77)
    sys.exit(subprocess.run([python, "-B", "-W", "ignore", __file__, "--inside", *how.tests],
                            env={**os.environ, "PYTHONPATH": f"{package}:{beside}"}).returncode)


if "--inside" not in sys.argv:
    outside()
sys.argv.remove("--inside")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

import graphi  # noqa: E402


class Lambda(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(4, 5, 2)

    def forward(self, x, h, c):
        return self.layer(x, (h, c))


class Vision(nn.Module):
    """A small residual network with branches."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(3, 2, 1))
        self.wide, self.deep = nn.Conv2d(8, 8, 5, padding="same"), nn.Conv2d(8, 8, 3, padding=1, groups=4)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(16, 5))

    def forward(self, image):
        x = self.stem(image)
        x = torch.cat([x + self.wide(x), nn.functional.silu(self.deep(x))], 1)
        return self.head(x)


class Text(nn.Module):
    """Embedding, two directions of LSTM, GRU and attention."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 12)
        self.lstm = nn.LSTM(12, 6, 2, batch_first=True, bidirectional=True, dropout=0.3)
        self.gru = nn.GRU(12, 12, batch_first=True)
        self.norm, self.out = nn.LayerNorm(12), nn.Linear(12, 20)
        self.out.weight = nn.Parameter(self.table.weight.detach().clone())

    def forward(self, ids):
        x, (h, c) = self.lstm(self.table(ids))
        y, last = self.gru(x)
        y = self.norm(x + y)
        q, k, v = y[:, :, :4], y[:, :, 4:8], y.chunk(3, -1)[2]
        y = torch.cat([nn.functional.scaled_dot_product_attention(q, k, v), y[..., 4:]], -1)
        return self.out(y), h, c[-1], last.squeeze(0)


RNN_INPUT = (7, 3, 4)  # steps, batch, features
CASES = {
    "linear": (nn.Linear(5, 3), [(4, 5)]), "linear of vectors": (nn.Linear(5, 3, bias=False), [(5,)]), "linear of three": (nn.Linear(5, 3), [(2, 4, 5)]),
    "bilinear": (Lambda(lambda a, b: a @ b + torch.matmul(a, b[:, 0])[:, None]), [(3, 4), (4, 5)]),
    "conv": (nn.Conv2d(4, 6, (3, 5), (2, 1), (1, 2)), [(2, 4, 9, 8)]), "conv of groups": (nn.Conv2d(4, 8, 3, groups=2, dilation=2), [(2, 4, 9, 8)]),
    "conv same": (nn.Conv2d(3, 4, (2, 3), padding="same"), [(1, 3, 6, 7)]), "conv1d": (nn.Conv1d(4, 6, 3, 2, 1), [(2, 4, 11)]),
    "conv1d same": (nn.Conv1d(4, 6, 4, padding="same"), [(2, 4, 11)]),
    "conv transposed": (nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1), [(2, 4, 5, 6)]),
    "depthwise": (nn.Conv2d(6, 6, 3, padding=1, groups=6), [(1, 6, 8, 8)]),
    "batch norm": (nn.Sequential(nn.BatchNorm2d(4), nn.ReLU()), [(2, 4, 5, 5)]), "batch norm 1d": (nn.BatchNorm1d(4), [(6, 4)]),
    "batch norm of steps": (nn.BatchNorm1d(4, affine=False), [(2, 4, 7)]), "layer norm": (nn.LayerNorm([3, 5]), [(2, 3, 5)]),
    "group norm": (nn.GroupNorm(2, 6), [(2, 6, 4, 4)]), "local": (nn.Softmax(1), [(2, 3, 4, 4)]), "softmax": (nn.LogSoftmax(0), [(4, 6)]),
    "max pool": (nn.MaxPool2d(3, 2, 1, ceil_mode=True), [(2, 3, 8, 9)]), "mean pool": (nn.AvgPool2d(3, 2, 1), [(2, 3, 8, 9)]),
    "mean pool inside": (nn.AvgPool2d(3, 2, 1, count_include_pad=False), [(2, 3, 8, 9)]),
    "adaptive": (nn.AdaptiveAvgPool2d((2, 3)), [(2, 3, 8, 9)]), "adaptive max": (nn.AdaptiveMaxPool2d(1), [(2, 3, 8, 9)]),
    "lstm": (nn.LSTM(4, 5), [RNN_INPUT]), "lstm of two layers": (nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), [RNN_INPUT]),
    "lstm without bias": (nn.LSTM(4, 5, bias=False), [RNN_INPUT]), "lstm alone": (nn.LSTM(4, 5), [(7, 4)]),
    "lstm with states": (Stateful(), [RNN_INPUT, (2, 3, 5), (2, 3, 5)]),
    "gru": (nn.GRU(4, 5, 2), [RNN_INPUT]), "rnn": (nn.RNN(4, 5), [RNN_INPUT]), "rnn of relu": (nn.RNN(4, 5, nonlinearity="relu", bidirectional=True), [RNN_INPUT]),
    "arithmetic": (Lambda(lambda a, b: torch.add(a, b, alpha=2) * a - 3 / (b * b + 1) + (1 - a) ** 2), [(3, 4), (4,)]),
    "images and vectors": (Lambda(lambda a, b: nn.functional.relu(a) * b[:, :, None, None] + a.mean((2, 3), keepdim=True)), [(2, 3, 4, 5), (2, 3)]),
    "shapes": (Lambda(lambda a: torch.stack([a.permute(2, 0, 1).reshape(4, -1), a.transpose(0, 2).flatten(1).contiguous()], 1).unsqueeze(0)[..., 1:]),
               [(2, 3, 4)]),
    "parts": (Lambda(lambda a: (a.split([1, 3], 1)[1], a.chunk(2, 1)[0], a[1], a[:, -1], a.sum(), a.amax(1), a.mean(-1, keepdim=True), a.expand(2, 3, 4))),
              [(3, 4)]),
    "padding": (Lambda(lambda a: nn.functional.pad(a, (1, 2, 0, 1), value=0.5)), [(2, 3)]),
    **{f"{name}": (layer, [(3, 7)]) for name, layer in {
        "gelu": nn.GELU(), "gelu by tanh": nn.GELU("tanh"), "silu": nn.SiLU(), "hardtanh": nn.Hardtanh(), "leaky": nn.LeakyReLU(0.2), "elu": nn.ELU(0.7),
        "selu": nn.SELU(), "softplus": nn.Softplus(2), "hardswish": nn.Hardswish(), "hardsigmoid": nn.Hardsigmoid(), "mish": nn.Mish(),
        "prelu": nn.PReLU(7), "log sigmoid": nn.LogSigmoid(), "clamp": Lambda(lambda a: a.clamp(-0.5, 0.5).clamp(min=0)), "tanh": nn.Tanh()}.items()},
}


def arrays(shapes):
    return [torch.randn(*shape) for shape in shapes]


class Modules(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def same(self, module, inputs, bound=2e-5):
        module = module.eval()
        with torch.no_grad():
            for buffer in module.buffers():
                if buffer.is_floating_point():
                    buffer.uniform_(0.5, 1.5)
            expected = module(*inputs)
        found = graphi.torch.from_module(module, inputs)
        results = found.run()(**dict(zip(found.inputs, (each.numpy() for each in inputs))))
        flat = []
        for each in expected if isinstance(expected, tuple) else (expected,):
            flat += each if isinstance(each, tuple) else [each]
        self.assertEqual(len(found.outputs), len(flat))
        for name, each in zip(found.outputs, flat):
            self.assertEqual(results[name].shape, tuple(each.shape))
            np.testing.assert_allclose(results[name], each.numpy(), rtol=bound, atol=bound)
        return found

    def test_layers(self):
        for name, (module, shapes) in CASES.items():
            with self.subTest(name):
                self.same(module, arrays(shapes))

    def test_networks(self):
        found = self.same(Vision(), arrays([(2, 3, 32, 32)]), 1e-4)
        self.assertEqual(found.inputs, ("image",))
        kinds = found.graph.print()
        self.assertLessEqual(kinds.count("transpose"), 2)  # of the image alone
        found = self.same(Text(), [torch.randint(0, 20, (3, 6))], 1e-4)
        self.assertIn("lstm.weight_ih_l1_reverse", found.state)
        self.assertIn("table.weight", found.state)

    def test_trains_on(self):
        """What comes out has gradients, by the names of state_dict."""
        module = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).eval()
        x = torch.randn(8, 4)
        found = graphi.torch.from_module(module, (x,))
        graph = found.graph
        loss = graph.output("loss", graphi.softmax_cross_entropy(graph["output"], graph.input("labels", "int32", (8,))))
        slope, = graph.gradients(loss, [graph["0.weight"]])
        graph.output("slope", slope)
        labels = torch.randint(0, 2, (8,))
        got = graphi.Run(graphi.Plan(graph), found.state)(**{found.inputs[0]: x.numpy(), "labels": labels.int().numpy()})
        nn.functional.cross_entropy(module(x), labels).backward()
        np.testing.assert_allclose(got["slope"], module[0].weight.grad.numpy(), rtol=1e-4, atol=1e-5)

    def test_what_cannot_be_taken_is_named(self):
        class Odd(nn.Module):
            def __init__(self):
                super().__init__()
                self.part = Lambda(lambda x: torch.fft.fft(torch.cumsum(x, 1)).real)

            def forward(self, x):
                return self.part(x)

        with self.assertRaisesRegex(graphi.UnsupportedError, r"cumsum.*part.*fft"):
            graphi.torch.from_module(Odd().eval(), arrays([(2, 3)]))
        for module, shape, says in ((nn.MaxPool2d(2, dilation=2), (1, 1, 6, 6), "dilation"), (nn.AdaptiveAvgPool2d(3), (1, 1, 7, 7), "divide"),
                                    (nn.LSTM(4, 5, proj_size=2), RNN_INPUT, "proj_size"), (nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 4, 4), "running"),
                                    (Lambda(lambda a: a[::2]), (4,), "step")):
            with self.assertRaisesRegex(graphi.UnsupportedError, says):
                graphi.torch.from_module(module.eval(), arrays([shape]))
        with self.assertRaisesRegex(graphi.InvalidError, "eval"):
            graphi.torch.from_module(nn.Linear(2, 2).train(), arrays([(1, 2)]))

    def test_weights_are_loaded(self):
        graph = graphi.Graph()
        x = graph.input("x", "float32", (5 * 3, 4))
        for name, layer in (("lstm", graphi.lstm), ("gru", graphi.gru), ("rnn", graphi.rnn)):
            graph.output(name, layer(x, 6, layers=2, batch=3, scope=f"{name}.").y)
        state, steps = graphi.State(graph), torch.randn(5, 3, 4)
        layers = {"lstm": nn.LSTM(4, 6, 2), "gru": nn.GRU(4, 6, 2), "rnn": nn.RNN(4, 6, 2)}
        for name, layer in layers.items():
            getattr(graphi.torch, f"load_{name}")(state, layer.state_dict(), scope=f"{name}.")
        found = graphi.Run(graphi.Plan(graph), state)(x=steps.reshape(15, 4))
        for name, layer in layers.items():
            with torch.no_grad():
                np.testing.assert_allclose(found[name], layer(steps)[0].reshape(15, 6).numpy(), rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
