# SPDX-License-Identifier: Apache-2.0
"""A user's program with types, of the whole package: `mypy --strict` accepts it (tests/test_python_types.py), and it runs."""
from __future__ import annotations

import sys
import tempfile
from typing import Dict, List, Mapping, Optional, Tuple

import numpy as np
import numpy.typing as npt

import graphi
from graphi import Graph, InferenceSession, Plan, Run, SessionOptions, State, Trainer, Value

Floats = npt.NDArray[np.float32]


def layer(x: Value, width: int, scope: str) -> Value:
    w: Value = x.graph.parameter(f"{scope}.w", "float32", (x.shape[-1], width), init="glorot_uniform")
    b = x.graph.parameter(f"{scope}.b", "float32", (width,))
    return graphi.relu(x @ w + b)


def network(learns: bool) -> Graph:
    graph = Graph()
    x, labels = graph.input("x", "float32", (8, 4)), graph.input("labels", "int32", (8,))
    hidden: Value = graphi.dropout(layer(x, 6, "one"), keep=0.9)[0] if learns else layer(x, 6, "one")
    logits = graph.output("logits", graphi.log_softmax(layer(hidden, 2, "two")[:, 0:2]))
    loss = graph.output("loss", graphi.softmax_cross_entropy(logits, labels))
    if learns:
        graph.minimize(loss, "momentum", momentum=0.9, learning_rate=graph.input("learning_rate"))
    return graph


def infer(graph: Graph, state: State, x: Floats) -> Floats:
    plan = Plan(graph, outputs=["logits"], policy="critical-path")
    with Run(plan, state) as run:
        run.trace()
        found: Dict[str, Floats] = run.feed({"x": x})
        timeline: graphi.Timeline = run.timeline()
        rows: List[graphi.Info] = run.operations
        assert "<iframe" in timeline._repr_html_() and rows
    return found["logits"]


def train(samples: Mapping[str, npt.NDArray[np.generic]], path: str) -> Trainer:
    seen: List[Tuple[int, float]] = []

    def validated(info: graphi.Info, score: Optional[graphi.Info]) -> None:
        if score is not None:
            seen.append((int(info.step), float(score.metric)))

    trainer = Trainer(network(True), samples, evaluation=network(False), validation=samples, metric="accuracy", rate=0.05, epochs=2,
                      checkpoint=path, validated=validated)
    trainer.run()
    assert len(seen) == 2 and graphi.Checkpoint(path).info.step == 8
    return trainer


def sessions(model: bytes, x: Floats) -> List[Floats]:
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(model, sess_options=options, providers=["CPUExecutionProvider"])
    names: List[str] = [port.name for port in session.get_inputs()]
    results: List[Floats] = session.run(None, {names[0]: x})
    return results


def main() -> int:
    x = np.random.default_rng(1).standard_normal((32, 4)).astype(np.float32)
    labels = (x[:, 0] > 0).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        trainer = train({"x": x, "labels": labels}, f"{folder}/net.safetensors")
    state: State = trainer.state
    assert infer(network(False), state, x[:8]).shape == (8, 2)
    weights: Floats = state["one.w"]
    assert weights.shape == (4, 6)
    lstm: Graph = graphi.models.lstm(batch=2, steps=3, units=8)
    assert graphi.simulate(Plan(lstm)).makespan_ms > 0
    try:
        graphi.relu(1.0)
    except graphi.InvalidError as error:
        print(error.code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
