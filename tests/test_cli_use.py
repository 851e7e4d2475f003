#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was trained is used: inputs made from what the checkpoint says, outputs of `run` beside what `eval` finds.

usage: test_cli_use.py --build DIR [--only WORD] [--seed N]"""
import gzip
import json
import math
import os
import random
import re
import shutil
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import Skipped, drop_metadata, main, schema, write_images  # noqa: E402
from test_cli_data import poison  # noqa: E402

FORMATS = {"<f4": "f", "<i4": "i", "|u1": "B"}


def write_array(path, dtype, shape, values):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values))


def read_array(path):
    """Shape and numbers of a .npy file."""
    content = path.read_bytes()
    length = struct.unpack("<H", content[8:10])[0]
    header = content[10:10 + length].decode()
    dtype, shape = re.search(r"'descr': '([^']*)'.*'shape': \(([^)]*)\)", header).groups()
    shape = tuple(int(word) for word in re.findall(r"\d+", shape))
    return shape, struct.unpack(f"<{math.prod(shape)}{FORMATS[dtype]}", content[10 + length:])


def metadata(checkpoint):
    content = checkpoint.read_bytes()
    return json.loads(content[8:8 + struct.unpack("<Q", content[:8])[0]])["__metadata__"]


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def make_images(folder, said, first, count, side):
    """Images of the test split as the checkpoint says that they were fed: bytes / 255, less mean, over deviation, grey in
    three channels; and their labels."""
    pixels = (folder / "t10k-images-idx3-ubyte").read_bytes()[16:]
    mean, deviation = (f32(float(said[key])) for key in ("data.mean", "data.std"))
    values = []
    for byte in pixels[first * side * side:(first + count) * side * side]:
        values += [f32(f32(f32(byte / 255) - mean) / deviation)] * 3
    return values, (folder / "t10k-labels-idx1-ubyte").read_bytes()[8 + first:8 + first + count]


def trained(cli, steps):
    folder, checkpoint = write_images(cli.folder / "images", side=16), cli.folder / "p.safetensors"
    words = ["--data", folder, "--image", 16, "--batch", 8, "--tune", 0, "--quiet", "--checkpoint", checkpoint]
    cli.run("train", "pathnet", *words, "--steps", steps)
    return folder, checkpoint, words


def cross_entropy(logits, labels):
    """The mean over rows."""
    width, total = len(logits) // len(labels), 0
    for row, label in enumerate(labels):
        these = logits[row * width:(row + 1) * width]
        total += math.log(sum(math.exp(value - max(these)) for value in these)) + max(these) - these[label]
    return total / len(labels)


def test_data_of_the_checkpoint(cli):
    """Size, units and the like came from the file, its data did not: `eval` asked for them, or took images from another place."""
    folder, checkpoint, words = trained(cli, 3)
    evaluate = ["eval", "pathnet", "--tune", 0, "--quiet", "--checkpoint", checkpoint]
    found, told = cli.result(*evaluate), cli.result("eval", "pathnet", *words)
    taken = f"--data: {folder}, on which {checkpoint} was trained"
    assert found["train"] == told["train"] and taken in found["notes"] and taken not in told["notes"], found["notes"]
    moved = folder.rename(cli.folder / "moved")
    errors = cli.run(*evaluate, expect=5).stderr
    assert f"IO: {folder}: found No such file or directory, expected the data that {checkpoint} was trained on, or --data" in errors
    before = cli.run(*evaluate, "--json", cli.folder / "none" / "result.json", expect=5).stderr  # mistakes before the lack
    assert "result.json" in before and str(folder) not in before, before
    assert "found a checkpoint of 'pathnet'" in cli.run("eval", "resnet20", *evaluate[2:], expect=3).stderr
    assert cli.result(*evaluate, "--data", moved)["train"] == told["train"]
    text = cli.folder / "text"
    text.mkdir()
    for split in ("train", "test"):
        (text / f"{split}.txt").write_text("the quick brown fox jumps over the lazy dog . " * 99)
    words = ["ptb", "--units", 8, "--unroll", 5, "--batch", 2, "--tune", 0, "--quiet", "--checkpoint", cli.folder / "t.safetensors"]
    cli.run("train", *words, "--data", "text", "--steps", 1)
    cli.run("eval", *words)
    lone = cli.folder / "lone.txt"
    lone.write_text("the quick brown fox jumps over the lazy dog . " * 99)
    cli.run("train", *words, "--data", lone, "--steps", 1, "--overwrite")  # what nobody typed is not written over either
    assert "expected another file than that of --data" in cli.run("eval", *words, "--json", lone, expect=2).stderr
    drop_metadata(cli.folder / "t.safetensors", "data.path")  # of a version that did not know
    assert "--data: found 'nothing', expected a text file" in cli.run("eval", *words, expect=2).stderr


def test_what_is_read_stays(cli):
    """Answers took the place of the labels that they were compared with when they went into the folder of the data, and of an input;
    a training on them ran without a word."""
    data = cli.folder / "data"
    data.mkdir()
    for split in ("", "test_"):
        write_array(data / f"{split}images.npy", "|u1", (32, 16, 16), [(7 * i) % 251 for i in range(32 * 256)])
        write_array(data / f"{split}labels.npy", "<i4", (32,), [i % 2 if split else i % 3 % 2 for i in range(32)])
    before = {file.name: file.read_bytes() for file in data.iterdir()}
    checkpoint = cli.folder / "c.safetensors"
    train = ["train", "pathnet", "--batch", 8, "--steps", 1, "--tune", 0, "--quiet"]
    evaluate = ["eval", "--tune", 0, "--quiet", "--checkpoint", checkpoint]
    cli.run(*train, "--data", data, "--checkpoint", checkpoint)
    (cli.folder / "linked").symlink_to(data)
    labels, wrong = data / "labels.npy", "expected another file than that of --data"
    for words in ([*evaluate, "--output", data], [*evaluate, "--output", "linked"], [*evaluate, "--data", data / "images.npy", "--output", data],
                  [*train, "--data", data, "--checkpoint", data / "images.npy"], [*train, "--data", data, "--json", labels],
                  [*train, "--data", data, "--log", data / "test_labels.npy"], [*evaluate, "--save-plan", labels],
                  [*train, "--data", data / "images.npy", "--curves", labels]):
        assert wrong in cli.run(*words, expect=2).stderr, words
    assert before == {file.name: file.read_bytes() for file in data.iterdir()}
    for _ in range(2):  # beside the folder, and where labels are answers
        cli.run(*evaluate, "--output", cli.folder / "own")
    images = write_images(cli.folder / "idx", side=16)
    cli.run(*train, "--data", images, "--checkpoint", checkpoint, "--overwrite")
    for _ in range(2):
        cli.run(*evaluate, "--output", images)
    cli.run(*train, "--data", images, "--checkpoint", images / "c.safetensors", "--json", images / "r.json")
    run = ["run", "pathnet", "--image", 16, "--batch", 8, "--repeat", 1, "--quiet"]
    cli.run(*run, "--output", "out")
    write_array(cli.folder / "out" / "logits.npy", "<f4", (8, 16, 16, 3), [0.5] * (8 * 768))
    fed = (cli.folder / "out" / "logits.npy").read_bytes()
    for written in (["--output", "out"], ["--json", "out/logits.npy"]):
        errors = cli.run(*run, "--input", "images=out/logits.npy", *written, expect=2).stderr
        assert "expected another file than that of --input" in errors, errors
    assert (cli.folder / "out" / "logits.npy").read_bytes() == fed


def test_run(cli):
    """`run` had random weights whatever was trained, and nothing said so. Inputs are made here from the file alone; of the
    form that was trained the command is told nothing but the batch."""
    folder, checkpoint, words = trained(cli, 20)
    said = metadata(checkpoint)
    assert said["network.classes"] == "4" and "network.vocabulary" not in said
    values, labels = make_images(folder, said, 0, 8, 16)
    write_array(cli.folder / "x.npy", "<f4", (8, 16, 16, 3), values)
    run = ["run", "pathnet", "--checkpoint", checkpoint, "--batch", 8, "--repeat", 1, "--quiet"]
    notes = cli.result(*run, "--input", "images=x.npy", "--output", "out")["notes"]
    assert f"weights: {checkpoint}, step 20" in notes and any("random" in note and note.endswith(": labels") for note in notes), notes
    write_array(cli.folder / "u8.npy", "|u1", (8, 16, 16, 3), [i % 256 for i in range(len(values))])
    for file, told in (("u8.npy", True), ("x.npy", False)):  # raw pixels gave logits of nothing, without a word
        found = cli.result(*run, "--input", f"images={file}")["notes"]
        assert any(f"{file} has bytes, 0 to 255" in note for note in found) == told, found
    shape, logits = read_array(cli.folder / "out" / "logits.npy")
    evaluated = cli.result("eval", "pathnet", *words, "--steps", 1)["train"]
    assert shape == (8, 4) and abs(cross_entropy(logits, labels) - evaluated["loss"][0]) < 1e-6
    notes = cli.result("run", "pathnet", "--repeat", 1)["notes"]
    assert "weights are random; --checkpoint FILE takes trained ones" in notes and not any("not given" in note for note in notes)
    profiled = cli.result("profile", "pathnet", "--checkpoint", checkpoint, "--batch", 8, "--tune", 0)["notes"]
    assert not any("not given" in note for note in profiled), "profile takes no inputs"
    cli.run("run", "pathnet", "--checkpoint", cli.folder / "none", expect=5)
    assert "found a checkpoint of 'pathnet', expected one of 'resnet20'" in cli.run("run", "resnet20", *run[2:], expect=3).stderr
    drop_metadata(checkpoint, "network.classes")
    assert "found no network.classes" in cli.run(*run, expect=3).stderr
    cli.run("train", "pathnet", *words, "--steps", 21, "--resume")  # as the message says
    cli.run(*run)


def test_page(cli):
    """The page's lines made images of the files' side for a network of another one, and those of text ended where the file was of images.
    Here they are run as they stand."""
    try:
        import numpy
    except ImportError as error:
        raise Skipped("no numpy") from error
    folder, checkpoint = write_images(cli.folder / "images", side=28), cli.folder / "p.safetensors"
    words = ["pathnet", "--data", folder, "--image", 32, "--batch", 8, "--tune", 0, "--quiet", "--checkpoint", checkpoint]
    cli.run("train", *words, "--steps", 2)
    cli.run("eval", *words, "--output", "all")
    images, text = (part.split("```")[0] for part in (cli.source / "docs" / "training.md").read_text().split("```python\n")[1:])
    with gzip.open(cli.folder / "t10k-images-idx3-ubyte.gz", "wb") as file:
        file.write((folder / "t10k-images-idx3-ubyte").read_bytes())
    here = os.getcwd()
    os.chdir(cli.folder)
    try:
        exec(images.replace("/usr/share/datasets/fashion-mnist/", ""), {})
        (cli.folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog .\n" * 200)
        cli.run("train", "lstm", "--data", "text.txt", "--batch", 4, "--units", 8, "--steps", 1, "--tune", 0, "--checkpoint", "text.safetensors")
        exec(text, {})
    finally:
        os.chdir(here)
    cli.run("run", "lstm", "--checkpoint", "text.safetensors", "--batch", 1, "--input", "tokens=t.npy", "--repeat", 1, "--output", "words")
    assert numpy.load(cli.folder / "words" / "logits.npy").shape[0] == 20
    cli.run("run", "pathnet", "--checkpoint", checkpoint, "--batch", 8, "--input", "images=x.npy", "--repeat", 1, "--output", "out")
    ours, theirs = (numpy.load(cli.folder / name / "logits.npy") for name in ("out", "all"))
    assert ours.shape == (8, 4) and abs(ours - theirs[:8]).max() < 1e-5, abs(ours - theirs[:8]).max()


def test_side_of_checkpoint(cli):
    """What had learnt from images of one side was evaluated at another, without a word, while `run` took the file's."""
    words = ["resnet20", "--data", write_images(cli.folder / "images"), "--batch", 4, "--tune", 0, "--quiet", "--checkpoint", "side.safetensors"]
    cli.run("train", *words, "--image", 8, "--steps", 1)
    known, untold, other = (cli.result("eval", *words, "--steps", 2, *more) for more in (["--image", 8], [], ["--image", 16]))
    assert untold["train"] == known["train"] != other["train"]
    resumed = cli.result("train", "--resume", "side.safetensors", "--tune", 0, "--steps", 2)
    assert not any("--size" in note for note in untold["notes"] + resumed["notes"]), (untold["notes"], resumed["notes"])
    assert untold["model"]["graph_hash"] == known["model"]["graph_hash"]
    assert "of 'resnet20'" in cli.run("eval", "pathnet", *words[1:], expect=3).stderr


def test_checkpoints_are_only_read(cli):
    """eval and run once asked for a place to write where they read."""
    folder, checkpoint, words = trained(cli, 1)
    nowhere = cli.folder / "nowhere" / "c.safetensors"
    for command in (["eval", "pathnet", "--data", folder, "--checkpoint", nowhere], ["run", "pathnet", "--checkpoint", nowhere]):
        assert "writable" not in cli.run(*command, expect=5).stderr
    apart = cli.folder / "apart"
    apart.mkdir()
    checkpoint.rename(apart / checkpoint.name)
    apart.chmod(0o555)
    words[words.index(checkpoint)] = apart / checkpoint.name
    cli.run("eval", "pathnet", *words)
    apart.chmod(0o755)
    assert [path.name for path in apart.iterdir()] == [checkpoint.name]


def test_eval_output(cli):
    """Of an evaluation the metric alone was left. Every sample's answer, the short last batch's too, has the bits that
    `run` gives for it; what fails leaves the files of before."""
    folder, checkpoint, words = trained(cli, 2)  # so that not every prediction is right
    out, side = cli.folder / "all", 16
    result = cli.result("eval", "pathnet", *words, "--output", out)
    shape, logits = read_array(out / "logits.npy")
    (count,), predictions = read_array(out / "predictions.npy")
    labels = read_array(out / "labels.npy")[1]
    assert shape == (32, 4) and count == 32 and labels == tuple(make_images(folder, metadata(checkpoint), 0, 32, side)[1])
    assert all(logits[4 * i + p] == max(logits[4 * i:4 * i + 4]) for i, p in enumerate(predictions))
    assert set(predictions) != {0} and predictions != labels
    assert result["train"]["value"] == [sum(p == label for p, label in zip(predictions, labels)) / 32]
    assert abs(cross_entropy(logits, labels) - result["train"]["loss"][0]) < 1e-6
    assert result["files"] == [str(out / f"{name}.npy") for name in ("logits", "predictions", "labels")]
    for first in range(0, 32, 8):
        write_array(cli.folder / "x.npy", "<f4", (8, side, side, 3), make_images(folder, metadata(checkpoint), first, 8, side)[0])
        cli.run("run", "pathnet", "--checkpoint", checkpoint, "--batch", 8, "--input", "images=x.npy", "--repeat", 1, "--output", "out")
        assert read_array(cli.folder / "out" / "logits.npy")[1] == logits[4 * first:4 * first + 32]
    words[words.index("--batch") + 1] = 12
    for more, samples in (([], 32), (["--steps", 1], 12)):
        cli.run("eval", "pathnet", *words, "--output", out, *more)
        assert read_array(out / "logits.npy")[0] == (samples, 4) and read_array(out / "labels.npy")[0] == (samples,)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    poison(checkpoint, re.compile("^output/weight$"))
    cli.run("eval", "pathnet", *words, "--output", out, expect=8)
    assert before == {path.name: path.read_bytes() for path in out.iterdir()}
    full = cli.folder / "full"
    full.mkdir()
    (full / "labels.npy").symlink_to("/dev/full")
    cli.run("train", "pathnet", *words, "--steps", 1, "--overwrite")
    cli.run("eval", "pathnet", *words, "--output", full, expect=5)
    assert [path.name for path in full.iterdir()] == ["labels.npy"]


def check_text(cli, words, folder, rows):
    """The loss is the mean of those of the tokens, which logits and `eval --output` give time by time; `rows`: what follows
    each token."""
    steps, batch = 20, len(rows)
    shape, logits = read_array(cli.folder / "out" / "logits.npy")
    labels = [row[t] for t in range(steps) for row in rows]
    loss = read_array(cli.folder / "out" / "loss.npy")[1][0]
    assert shape[0] == steps * batch and abs(cross_entropy(logits, labels) - loss) < 1e-5 * loss
    evaluated = cli.result("eval", *words, "--data", folder, "--output", "all")["train"]
    times = (len(rows[0]) // steps) * steps
    for name, first in (("losses", [cross_entropy(logits[i * shape[1]:(i + 1) * shape[1]], [label]) for i, label in enumerate(labels)]),
                        ("predictions", [max(range(shape[1]), key=lambda k: logits[i * shape[1] + k]) for i in range(steps * batch)]),
                        ("labels", labels)):
        found, values = read_array(cli.folder / "all" / f"{name}.npy")
        assert found == (times, batch) and all(abs(value - other) < 1e-5 for value, other in zip(values, first)), name
        if name == "losses":
            assert abs(sum(values) / len(values) - evaluated["loss"][0]) < 1e-5
        if name == "labels":
            assert list(values) == [row[t] for t in range(times) for row in rows]


def test_run_text(cli):
    """Words are numbered as the file says, and each execution begins at the text's beginning: once the states went on from
    one to the next, and outputs depended on --repeat."""
    generator = random.Random(3)
    text = [generator.choice("the quick brown fox jumps over a lazy dog".split()) for _ in range(4000)]
    folder, checkpoint = cli.folder / "text", cli.folder / "text.safetensors"
    folder.mkdir()
    for split in ("train", "test"):
        (folder / f"{split}.txt").write_text(" ".join(text))
    words = ["lstm", "--batch", 8, "--tune", 0, "--quiet", "--checkpoint", checkpoint]
    cli.run("train", *words, "--data", folder, "--steps", 3)
    said = metadata(checkpoint)
    listed = json.loads(said["data.vocabulary"])
    assert said["data.level"] == "word" and said["network.vocabulary"] == str(len(listed)) and set(text) < set(listed)
    row, steps = len(text) // 8, 20
    for name, shift in (("tokens", 0), ("targets", 1)):
        numbers = [listed.index(word) for r in range(8) for word in text[r * row + shift:r * row + shift + steps]]
        write_array(cli.folder / f"{name}.npy", "<i4", (8, steps), numbers)
    cli.run("run", *words, "--input", "tokens=tokens.npy", "--input", "targets=targets.npy", "--repeat", 3, "--output", "out")
    evaluated = cli.result("eval", *words, "--data", folder, "--steps", 1)["train"]
    assert read_array(cli.folder / "out" / "loss.npy") == ((), (evaluated["loss"][0],))
    check_text(cli, words, folder, [[listed.index(word) for word in text[r * row + 1:(r + 1) * row]] for r in range(8)])
    odd = "prix\u00a0: 10 \x1cz\vy\fx\tw\r\n" * 300  # words as the page numbers them end at ASCII's white space alone
    for split in ("train", "test"):
        (folder / f"{split}.txt").write_text(odd, newline="")
    cli.run("train", *words, "--data", folder, "--steps", 1, "--overwrite")
    assert len(set(numbered_by_page(cli, folder / "train.txt", checkpoint))) == 7
    (folder / "train.txt").write_bytes(b"ab\xff " * 1000)
    notes = cli.result("train", *words, "--data", folder, "--level", "character", "--steps", 2, "--every", 1, "--overwrite")["notes"]
    assert sum("1 of 5 words are no UTF-8, the first is number 3" in note for note in notes) == 1, notes
    said = metadata(checkpoint)
    assert json.loads(said["data.vocabulary"]) == [" ", "a", "b", [255], "<unk>"]
    assert said["data.level"] == "character" and said["network.vocabulary"] == "5"
    drop_metadata(checkpoint, "network.vocabulary")
    assert "found no network.vocabulary" in cli.run("run", *words, expect=3).stderr


def numbered_by_page(cli, text, checkpoint):
    """The tokens that the program of docs/training.md makes of a text."""
    pages = (part.split("```")[0] for part in (cli.source / "docs" / "training.md").read_text().split("```python\n")[1:])
    (program,) = (part for part in pages if '"text.txt"' in part)
    saved, names = [], {}
    fake = type(sys)("numpy")
    fake.int32, fake.save = lambda rows: rows, lambda name, rows: saved.append((name, rows))
    before = sys.modules.get("numpy"), os.getcwd()
    with tempfile.TemporaryDirectory() as place:
        shutil.copy(text, Path(place) / "text.txt")
        shutil.copy(checkpoint, Path(place) / "text.safetensors")
        sys.modules["numpy"] = fake
        os.chdir(place)
        try:
            exec(program, names)
        finally:
            os.chdir(before[1])
            del sys.modules["numpy"]
            if before[0]:
                sys.modules["numpy"] = before[0]
    assert saved == [("t.npy", [names["tokens"][:20]])]
    return names["tokens"]


def test_text_of_the_page(cli):
    """The page's program numbered a text otherwise than training: by the first line alone, by other white space, by marks."""
    generator = random.Random(5)
    words = "sun moon stern caf\xe9 \u661f x\x0by z\x1cw".encode().split(b" ") + [b"caf\xe9", b"\xff"]
    lines = [b" ".join(generator.choice(words) for _ in range(6)) for _ in range(60)]
    folder, checkpoint = cli.folder / "page", cli.folder / "page.safetensors"
    folder.mkdir()
    for level, end, begin in ("word", b"\r\n", b"\xef\xbb\xbf"), ("word", b"\r", b""), ("character", b"\n", b"\xef\xbb\xbf"):
        content = begin + end.join(lines) + end
        (folder / "train.txt").write_bytes(gzip.compress(content) if end == b"\r" else content)
        (folder / "test.txt").write_bytes(content)
        cli.run("train", "lstm", "--units", 8, "--unroll", 5, "--batch", 1, "--tune", 0, "--quiet", "--data", folder, "--steps", 1,
                "--level", level, "--checkpoint", checkpoint, "--overwrite")
        result = cli.result("eval", "--checkpoint", checkpoint, "--tune", 0, "--output", "page-out")
        found = read_array(cli.folder / "page-out" / "labels.npy")[1]
        tokens = numbered_by_page(cli, folder / "train.txt", checkpoint)
        assert list(found) == tokens[1:len(found) + 1] and len(tokens) - len(found) < 7, level
        unknown = json.loads(metadata(checkpoint)["data.vocabulary"]).index("<unk>")
        note = f"{tokens.count(unknown)} of {len(tokens)} tokens ({100 * tokens.count(unknown) / len(tokens):.2f} %) are not in the"
        assert any(note in told for told in result["notes"]), (note, result["notes"])


def test_run_samples(cli):
    """A trained generator could only draw while it was trained."""
    checkpoint = cli.folder / "gan.safetensors"
    cli.run("train", "dcgan", "--data", write_images(cli.folder / "images"), "--batch", 4, "--steps", 1, "--tune", 0, "--quiet",
            "--checkpoint", checkpoint)
    drawn = []
    for more in (["--checkpoint", checkpoint], []):
        result = cli.result("run", "dcgan", "--role", "sample", "--batch", 4, "--repeat", 1, "--output", "out", *more)
        shape, values = read_array(cli.folder / "out" / "images.npy")
        assert shape == (4, 28, 28, 1) and 0 <= min(values) and max(values) <= 1
        assert not more or any(note.endswith("gan.safetensors, step 1") for note in result["notes"])
        drawn.append(values)
    assert drawn[0] != drawn[1]


def test_text(cli):
    """Text from a trained model: it learnt that words end, one seed gives one text, and what is wrong is refused."""
    text, file = cli.folder / "generate.txt", cli.folder / "generate.safetensors"
    text.write_text("ab ab ab ab\n" * 400)
    cli.run("train", "lstm", "--data", text, "--level", "character", "--units", 16, "--batch", 8, "--steps", 300, "--tune", 0,
            "--checkpoint", file, "--quiet")
    words = ["generate", "lstm", "--checkpoint", file, "--prompt", "ab ", "--length", 20]
    likely = cli.run(*words, "--temperature", 0).stdout.split("\n")[0]
    assert likely.startswith("ab a") and set(likely) <= set("ab "), likely
    drawn = [cli.run(*words, "--seed", seed).stdout[:23] for seed in (1, 1, 2, 3, 4)]
    assert drawn[0] == drawn[1] and len(set(drawn)) > 1, drawn
    cli.run(*words[:2], expect=2)
    cli.run(*words, "--temperature", -1, expect=2)
    drop_metadata(file, "data.vocabulary")
    assert "no vocabulary" in cli.run(*words, expect=3).stderr


def test_names(cli):
    """A mistyped input's message sent its reader to `inspect`, whose graph is another one's unless told."""
    small = ["pathnet", "--image", 16, "--batch", 8]
    (cli.folder / "x.npy").touch()  # whether it is there is looked at before the network is made
    for wrong in ("image", "loss", "output/weight"):
        message = cli.run("run", *small, "--input", f"{wrong}=x.npy", expect=3).stderr
        assert f"found '{wrong}', expected one of images float32[8,16,16,3], labels int32[8]" in message, message
    lines = cli.run("inspect", *small, "--inference").stdout.splitlines()
    assert lines[-4:] == ["feed  images float32[8,16,16,3]", "feed  labels int32[8]", "fetch logits float32[8,10]", "fetch loss float32[]"]
    result = cli.result("inspect", *small)
    model = result["model"]
    assert model["inputs"][2] == {"name": "learning_rate", "dtype": "float32", "shape": []}
    assert model["outputs"][0] == {"name": "logits", "dtype": "float32", "shape": [8, 10]}
    model["outputs"][0]["shape"] = "x"
    assert schema.more_problems(result) == ["model.outputs[0].shape: found 'x', expected an array"]


def test_splits(cli):
    """There was no way to score what was held out, and a single file, which train takes, was refused."""
    text, checkpoint = cli.folder / "alone.txt", cli.folder / "alone.safetensors"
    text.write_text("the quick brown fox jumps over the lazy dog . " * 200)
    go = ["--tune", 0, "--quiet"]
    trained = cli.result("train", "lstm", "--data", text, "--units", 8, "--unroll", 4, "--batch", 4, "--steps", 6, "--checkpoint",
                         checkpoint, *go)
    found = {split: cli.result("eval", "--checkpoint", checkpoint, *go, *(["--split", split] if split else []))
             for split in (None, "validation", "train")}
    assert found[None]["train"]["value"] == found["validation"]["train"]["value"] == [trained["train"]["value"][-1]]
    assert any(note.startswith("no test split, scored on what training holds out") for note in found[None]["notes"])
    assert any("tokens of the train split" in note for note in found["train"]["notes"]), found["train"]["notes"]
    assert found["train"]["train"]["value"] != found["validation"]["train"]["value"]
    assert "found no test files" in cli.run("eval", "--checkpoint", checkpoint, "--split", "test", *go, expect=4).stderr
    assert "validation" in cli.run("eval", "--checkpoint", checkpoint, "--split", "all", *go, expect=2).stderr
    other = cli.folder / "other.txt"  # scored as a whole, by the numbers of the checkpoint, wherever its own would be others
    other.write_text("lazy dog lazy fox over the unheard of fox . " * 100)
    said = cli.result("eval", "--checkpoint", checkpoint, "--data", other, *go)
    assert any(note.startswith("another text than it was trained on: all of it is scored") for note in said["notes"]), said["notes"]
    assert any(note.startswith("200 of 1000 tokens") for note in said["notes"]), said["notes"]
    images = write_images(cli.folder / "images")
    words = ["pathnet", "--data", images, "--image", 16, "--batch", 8, "--checkpoint", cli.folder / "i.safetensors", *go]
    held = cli.result("train", *words, "--steps", 3)["train"]["value"][-1]
    assert cli.result("eval", *words, "--split", "validation")["train"]["value"] == [held]
    told = cli.result("eval", *words, "--split", "train", "--output", "answers")
    assert any("samples of the train split" in note for note in told["notes"]) and (cli.folder / "answers" / "labels.npy").exists()


if __name__ == "__main__":
    main(globals())
