#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks over input graphs as the commands train and evaluate them: trees, dependencies, lines, graphs; going on bit for bit; what is
refused.

usage: test_cli_trees.py --build DIR [--only WORD] [--seed N]"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import main  # noqa: E402

USUAL = ["--tune", 0, "--units", 16, "--batch", 8]


def write_splits(folder, end, write, counts=(("train", 160), ("dev", 40), ("test", 40))):
    folder.mkdir(exist_ok=True)
    for split, count in counts:
        (folder / f"{split}.{end}").write_text("".join(write() for _ in range(count)))
    return folder


def sentiment(random):
    """A tree's label is that of its one word that has an opinion."""
    def tree(words):
        label = max(2 if w == "it" else 4 if w == "good" else 0 for w in words) if "good" in words else min(2 if w == "it" else 0 for w in words)
        if len(words) == 1:
            return f"({label} {words[0]})"
        cut = random.randint(1, len(words) - 1)
        return f"({label} {tree(words[:cut])} {tree(words[cut:])})"
    words = ["it"] * random.randint(1, 7)
    words[random.randrange(len(words))] = random.choice(["good", "bad"])
    return lambda: tree(words) + "\n"


def trees(cli, name="trees"):
    return write_splits(cli.folder / name, "txt", lambda: sentiment(cli.random)())


def test_treelstm(cli):
    """The class of the root, from words far below it; and what was stopped ends as what was not."""
    folder, words = trees(cli), []
    words = ["train", "treelstm", "--data", folder, "--lr", 0.1, *USUAL]
    whole = cli.result(*words, "--epochs", 3, "--checkpoint", "whole.safetensors")["train"]
    assert whole["metric"] == "accuracy" and whole["value"][-1] > 0.9, whole
    cli.run(*words, "--steps", 17, "--checkpoint", "part.safetensors")
    part = cli.result(*words, "--steps", 60, "--resume", "--checkpoint", "part.safetensors")["train"]
    assert part["state_sha256"] == whole["state_sha256"], "going on gives other bits"
    scored = cli.result("eval", "treelstm", "--checkpoint", "whole.safetensors", "--tune", 0)
    assert scored["train"]["value"][0] > 0.9, scored["train"]
    assert any("scored over 40 roots of 40 samples of the test split" in note for note in scored["notes"]), scored["notes"]


def test_dependencies(cli):
    """Every word's relation: that of a word depends on itself and its children."""
    def sentence():
        words = cli.random.randint(1, 8)
        root = cli.random.randint(1, words)
        lines = [f"{i}\t{'verb' if i == root else 'noun'}{cli.random.randint(0, 3)}\t_\t_\t_\t_\t{0 if i == root else root}\t"
                 f"{'root' if i == root else 'obj'}\t_\t_" for i in range(1, words + 1)]
        return "\n".join(lines) + "\n\n"
    folder = write_splits(cli.folder / "conllu", "conllu", sentence)
    found = cli.result("train", "dependency-treelstm", "--data", folder, "--epochs", 3, "--lr", 0.1, *USUAL, "--checkpoint",
                       "d.safetensors")["train"]
    assert found["value"][-1] > 0.95, found
    notes = cli.result("eval", "dependency-treelstm", "--checkpoint", "d.safetensors", "--tune", 0)["notes"]
    assert any("vertices of 40 samples" in note for note in notes), notes


def test_lines(cli):
    """Words follow each other round a circle: after a few epochs the next one is known."""
    names = ["a", "b", "c", "d"]

    def line():
        first = cli.random.randrange(4)
        return " ".join(names[(first + i) % 4] for i in range(cli.random.randint(3, 12))) + "\n"
    folder = write_splits(cli.folder / "lines", "txt", line)
    for network, more in (("var-lstm", ()), ("fixed-lstm", ("--unroll", 8))):
        found = cli.result("train", network, "--data", folder, "--epochs", 4, "--lr", 0.1, *USUAL, *more)["train"]
        assert found["metric"] == "perplexity" and found["value"][-1] < 2.2, (network, found)


def test_messages(cli):
    """The longest distance to a sink, over graphs without cycles."""
    def graph():
        vertices = cli.random.randint(2, 7)
        edges = sorted({(cli.random.randrange(v), v) for v in range(1, vertices) for _ in range(2)})
        distance = [0] * vertices
        for child, parent in edges:  # parents come after their children
            distance[parent] = max(distance[parent], distance[child] + 1)
        return "".join([f"v {v} {distance[v]} w\n" for v in range(vertices)] + [f"e {a} {b}\n" for a, b in edges]) + "\n"
    folder = write_splits(cli.folder / "edges", "edges", graph)
    chain = "".join(f"v {v} {v} w\n" for v in range(7)) + "".join(f"e {v} {v + 1}\n" for v in range(6))  # has all distances
    (folder / "train.edges").write_text(chain + "\n" + (folder / "train.edges").read_text())
    found = cli.result("train", "message-passing", "--data", folder, "--epochs", 8, "--lr", 0.1, *USUAL)["train"]
    assert found["value"][-1] > 0.8, found


def test_skipped(cli):
    """One bad line of thousands need not end a training, but what is left out is told."""
    folder = trees(cli, "torn")
    for split in ("train", "test"):
        path = folder / f"{split}.txt"
        path.write_text(path.read_text() + "(4 (2 it)\n(2 (2 it) (2 it))\n")
    words = ["--data", folder, *USUAL, "--checkpoint", "torn.safetensors"]
    assert "train.txt:162:1" in cli.run("train", "treelstm", *words, "--steps", 1, expect=3).stderr
    for command, total in (("train", 162), ("eval", 42)):
        notes = cli.result(command, "treelstm", *words, "--skip-bad", *(["--epochs", 1] if command == "train" else []))["notes"]
        assert any(f"1 of {total} samples were left out; the first: " in note for note in notes), notes
    cli.run("train", "pathnet", "--skip-bad", "--steps", 1, expect=2)


def test_refused(cli):
    folder = trees(cli)
    three = write_splits(cli.folder / "three", "txt", lambda: "(1 (1 a) (1 b) (1 c))\n")
    bad = write_splits(cli.folder / "bad", "txt", lambda: "(1 (1 a) (1 b)\n")
    bare = write_splits(cli.folder / "bare", "edges", lambda: "0 1\n\n")
    part = write_splits(cli.folder / "part", "edges", lambda: "v 0 1 a\nv 1 _ b\ne 0 1\n\n")
    cli.run("train", "treelstm", "--tune", 0, expect=2)
    cli.run("train", "treefc", "--data", folder, "--tune", 0, expect=2)
    for data, text in ((three, "children, expected at most 2"), (bad, "train.txt:2:1"), (bare, "no labels")):
        errors = cli.run("train", "treelstm", "--data", data, *USUAL, "--steps", 1, expect=3).stderr
        assert text in errors, errors
    assert "without a label" in cli.run("train", "message-passing", "--data", part, *USUAL, "--steps", 1, expect=3).stderr
    cli.run("train", "treelstm", "--data", folder, *USUAL, "--steps", 1, "--checkpoint", "r.safetensors")
    cli.run("eval", "treelstm", "--checkpoint", "r.safetensors", "--output", "out", expect=2)
    other = cli.folder / "other"
    write_splits(other, "txt", lambda: sentiment(cli.random)().replace("good", "best").replace("4 best", "4 best"))
    errors = cli.run("eval", "treelstm", "--checkpoint", "r.safetensors", "--data", other, "--tune", 0, expect=3).stderr
    assert "words and labels" in errors, errors


if __name__ == "__main__":
    main(globals())
