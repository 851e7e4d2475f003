#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data as the commands meet them: every kind of data set with every network, splits that are not there, numbers that
are not finite.

usage: test_cli_data.py --build DIR [--only WORD] [--seed N]"""
import json
import random
import re
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli import drop_metadata, main, safetensors_header, training, write_images  # noqa: E402


def poison(checkpoint, names):
    """NaN into the tensors with such names."""
    content = bytearray(checkpoint.read_bytes())
    length = struct.unpack("<Q", content[:8])[0]
    found = [t["data_offsets"] for name, t in json.loads(content[8:8 + length]).items() if names.search(name)]
    assert found
    for begin, end in found:
        content[8 + length + begin:8 + length + end] = struct.pack("<f", float("nan")) * ((end - begin) // 4)
    checkpoint.write_bytes(content)


def test_not_finite(cli):
    """A checkpoint of NaNs has no loss: an accuracy beside it would look like a result."""
    words = training(cli, 1)
    checkpoint = cli.folder / "nan.safetensors"
    cli.run(*words, "--checkpoint", checkpoint)
    poison(checkpoint, re.compile("^output/weight$"))
    cli.run("eval", "pathnet", "--data", cli.folder / "images", "--image", 16, "--batch", 8, "--tune", 0, "--checkpoint",
            checkpoint, expect=8)


def test_not_finite_validation(cli):
    """Training goes by the batch's statistics, validation by the running ones: where these are NaN it once printed an
    accuracy of chance, exit 0."""
    words = ["train", "resnet20", "--data", write_images(cli.folder / "images"), "--image", 8, "--batch", 4, "--tune", 0, "--quiet"]
    checkpoint = cli.folder / "statistics.safetensors"
    cli.run(*words, "--steps", 1, "--checkpoint", checkpoint)
    poison(checkpoint, re.compile(r"/variance$"))
    assert "evaluation" in cli.run(*words, "--steps", 2, "--checkpoint", checkpoint, "--resume", expect=8).stderr


def test_eval_elsewhere(cli):
    """Numbers of other data mean other words, or other brightness: a perplexity of them would look like a result."""
    def evaluate(network, data, checkpoint, expect=0, *more):
        return cli.run("eval", network, "--data", data, "--tune", 0, "--batch", 8, "--checkpoint", checkpoint, "--quiet", *more,
                       expect=expect).stderr
    text = "the quick brown fox jumps over the lazy dog . " * 400
    folders = {}
    for name, content in (("same", text), ("longer", text + text), ("other", text.replace("fox", "cat"))):
        folders[name] = cli.folder / name
        folders[name].mkdir()
        for split in ("train", "test"):
            (folders[name] / f"{split}.txt").write_text(content)
    checkpoint = cli.folder / "text.safetensors"
    cli.run("train", "lstm", "--data", folders["same"], "--batch", 8, "--tune", 0, "--quiet", "--steps", 2, "--checkpoint", checkpoint)
    evaluate("lstm", folders["same"], checkpoint)
    evaluate("lstm", folders["longer"], checkpoint)
    evaluate("lstm", folders["same"], checkpoint, 0, "--batch", 4)  # states are carried in batches of eight in the file
    evaluate("lstm", folders["other"], checkpoint)  # its words numbered as in training: what training lacks is <unk>
    assert any("are not in the vocabulary, and count as <unk>" in note for note in
               cli.result("eval", "lstm", "--data", folders["other"], "--tune", 0, "--batch", 8, "--checkpoint", checkpoint)["notes"])
    words, checkpoint = training(cli, 1), cli.folder / "images.safetensors"
    cli.run(*words, "--checkpoint", checkpoint)
    evaluate("pathnet", cli.folder / "images", checkpoint, 0, "--image", 16)
    other = write_images(cli.folder / "brighter", train=104)
    assert "normalisation" in evaluate("pathnet", other, checkpoint, 3, "--image", 16)


def test_vocabulary(cli):
    """Without a limit training never meets <unk>, and what it predicts for words of other files is chance. The checkpoint keeps the
    limit: what evaluation told apart would be other words."""
    folder, checkpoint = cli.folder / "few", ["--checkpoint", cli.folder / "few.safetensors"]
    folder.mkdir()
    for split in ("train", "test"):
        (folder / f"{split}.txt").write_text("the the the the quick quick quick brown brown fox " * 100)
    words, data = ["lstm", "--units", 8, "--unroll", 5, "--batch", 4, "--tune", 0, "--quiet"], ["--data", folder]
    cli.run("train", *words, *data, "--vocabulary", 3, "--steps", 2, *checkpoint)
    said = safetensors_header(checkpoint[1])[2]["__metadata__"]
    assert json.loads(said["data.vocabulary"]) == ["the", "quick", "<unk>"] and said["data.limit"] == "3"
    known, untold = (cli.result("eval", *words, *data, *more, *checkpoint)["train"] for more in (["--vocabulary", 3], []))
    assert known == untold
    cli.run("train", "--resume", checkpoint[1], "--steps", 3, "--tune", 0, "--quiet")
    refused = "found a checkpoint of --vocabulary 3, expected 4"
    for command in (["eval", *words, *data], ["inspect", "lstm"], ["train", *words, *data, "--resume", "--steps", 4]):
        assert refused in cli.run(*command, "--vocabulary", 4, *checkpoint, expect=3).stderr
    cli.run("train", *words, *data, "--steps", 1, *checkpoint, "--overwrite")
    assert "of all words" in cli.run("eval", *words, *data, "--vocabulary", 4, *checkpoint, expect=3).stderr
    assert "a network of text" in cli.run("train", "pathnet", "--vocabulary", 4, "--steps", 1, expect=2).stderr
    cli.run("train", *words, *data, "--vocabulary", 1, "--steps", 1, expect=2)


def test_texts_are_learned(cli):
    """A network whose gates or time are wrong trains all the same, and stays at what the frequencies of words tell."""
    text = cli.folder / "learned.txt"
    text.write_text("a b c " * 2000)
    for network, rate, steps in ("lstm", 0.01, 400), ("phased-lstm", 0.03, 2000):
        train = cli.result("train", network, "--data", text, "--units", 32, "--unroll", 10, "--batch", 8, "--lr", rate, "--steps", steps,
                           "--validate", 200, "--tune", 0, "--seed", 1)["train"]
        assert min(train["loss"]) < 0.8, f"{network}: losses {train['loss']}, three words are as frequent"


def test_language_models_as_asked(cli):
    """Layers, dropout and optimizer could not be had; a checkpoint that forgot them was another network's in eval."""
    text, checkpoint, best = cli.folder / "asked.txt", cli.folder / "asked.safetensors", cli.folder / "best.safetensors"
    text.write_text("a b c " * 2000)
    words = ["--data", text, "--units", 16, "--unroll", 10, "--batch", 8, "--tune", 0, "--seed", 1]
    train = cli.result("train", "lstm", *words, "--layers", 2, "--dropout", 0.1, "--optimizer", "sgd", "--steps", 300, "--validate", 50,
                       "--patience", 6, "--best", best, "--checkpoint", checkpoint)["train"]
    assert min(train["loss"]) < 0.9, train["loss"]
    said = safetensors_header(checkpoint)[2]["__metadata__"]
    assert "--layers 2" in said["network"] and "--dropout 0.1 --optimizer sgd" in said["network.trained"], said
    for file in checkpoint, best:
        assert cli.result("eval", "lstm", "--data", text, "--checkpoint", file)["rows"]
    errors = cli.run("train", "lstm", *words, "--layers", 3, "--steps", 400, "--checkpoint", checkpoint, "--resume", expect=3).stderr
    assert "--layers 2" in errors, errors
    cli.run("train", "lstm", *words, "--layers", 9, "--steps", 1, expect=2)
    cli.run("train", "pathnet", "--layers", 2, "--steps", 1, expect=2)
    assert "--task real" in cli.run("run", "lstm", "--dropout", 0.5, expect=2).stderr


def test_vocabulary_of_one_file(cli):
    """Words of the held-out end alone were numbered as if training had seen them."""
    text, checkpoint = cli.folder / "end.txt", cli.folder / "end.safetensors"
    text.write_text("the quick brown fox " * 200 + "jumps over it again " * 20)  # the last 88 words of 880 are held out
    cli.run("train", "lstm", "--data", text, "--units", 8, "--unroll", 5, "--batch", 4, "--tune", 0, "--quiet", "--steps", 1,
            "--checkpoint", checkpoint)
    listed = json.loads(safetensors_header(checkpoint)[2]["__metadata__"]["data.vocabulary"])
    assert set(listed) == {"the", "quick", "brown", "fox", "<unk>"}, listed


def test_other_network(cli):
    """Parameters of the same names and shapes may be another network's: a perplexity of an LSTM that a PhasedLSTM had
    learnt, and an accuracy without the normalization it was trained with, looked like results."""
    folder = cli.folder / "text"
    folder.mkdir()
    for split in ("train", "test"):
        (folder / f"{split}.txt").write_text("the quick brown fox jumps over the lazy dog . " * 400)
    images, checkpoint = write_images(cli.folder / "images"), cli.folder / "network.safetensors"
    text = ["--data", folder, "--batch", 8, "--tune", 0, "--quiet", "--checkpoint", checkpoint]
    pixels = ["--data", images, "--batch", 4, "--tune", 0, "--quiet", "--checkpoint", checkpoint]
    for network, other, words in ((["phased-lstm"], ["lstm"], text),
                                  (["googlenet", "--image", 32, "--lrn"], ["googlenet", "--image", 32], pixels)):
        cli.run("train", *network, *words, "--steps", 1, "--overwrite")
        contradicting = other if other[0] != network[0] else [*other, "--batch-norm"]
        for refused in (["eval", *contradicting, *words], ["train", *contradicting, *words, "--steps", 2, "--resume"]):
            assert f"found a checkpoint of '{network[0]}" in cli.run(*refused, expect=3).stderr
        known = cli.result("eval", *network, *words)
    assert cli.result("eval", "googlenet", *pixels)["train"] == known["train"], "the file says --lrn"
    cli.run("eval", "googlenet", "--lrn", "--image", 48, *pixels)  # the same function of images of another size
    refused = cli.run("train", "googlenet", "--lrn", "--image", 48, *pixels, "--steps", 2, "--resume", expect=3)
    assert "found a checkpoint of '--task real --image 32', expected one of '--task real --image 48'" in refused.stderr
    drop_metadata(checkpoint, "network")
    cli.run("eval", "googlenet", "--image", 32, *pixels)  # of a version that did not know
    beside = ["googlenet", "--image", 32, "--auxiliary", *pixels]
    alone = [word for word in beside if word != "--auxiliary"]
    for trained in (beside, [*alone, "--task", "bench"]):  # the side classifiers only train, and so does the momentum
        cli.run("train", *trained, "--steps", 1, "--overwrite")
        cli.run("eval", *alone)
        cli.run("eval", *beside)


def test_other_sizes(cli):
    """Of another width the first parameter that differs was named; another length went on elsewhere in the text."""
    text, checkpoint = cli.folder / "sizes text", cli.folder / "sizes.safetensors"
    text.mkdir()
    for split in ("train", "test"):
        (text / f"{split}.txt").write_text("the quick brown fox jumps over the lazy dog . " * 400)
    common = ["ptb", "--data", text, "--tune", 0, "--quiet", "--checkpoint", checkpoint]
    words = [*common, "--units", 8, "--unroll", 5]
    cli.run("train", *words, "--steps", 2)
    shape = cli.result("inspect", "ptb", "--task", "real", "--units", 8, "--unroll", 5)["model"]
    assert (shape["units"], shape["steps"]) == (8, 5)
    for command in (["eval", "--size", "medium"], ["train", "--size", "medium", "--steps", 3, "--resume"]):
        refused = cli.run(command[0], *common, *command[1:], expect=3).stderr
        assert "found a checkpoint of --units 8, expected 650" in refused, refused
    assert cli.result("eval", *common)["train"] == cli.result("eval", *words)["train"]
    assert "of --units 8, expected 16" in cli.run("run", "ptb", "--checkpoint", checkpoint, "--units", 16, expect=3).stderr
    output = cli.folder / "sizes"
    run = ["run", "ptb", "--checkpoint", checkpoint, "--units", 8, "--unroll", 7, "--batch", 2, "--output", output]
    cli.run(*run)  # the same function of windows of another length
    assert (output / "logits.npy").exists()
    resume = [*common, "--units", 8, "--steps", 3, "--resume"]
    errors = cli.run("train", *resume, "--unroll", 20, expect=3).stderr
    assert "'--size small --unroll 5', expected one of '--size small --unroll 20'" in errors, errors
    assert "expected one of '--size medium --unroll 5'" in cli.run("train", *resume, "--unroll", 5, "--size", "medium", expect=3).stderr
    drop_metadata(checkpoint, "network.units")  # of a version that did not know
    assert "found parameter" in cli.run("eval", *common, expect=3).stderr
    drop_metadata(checkpoint, "network.text")
    cli.run("train", *words, "--steps", 3, "--resume")


def test_form_of_checkpoint(cli):
    """What training was told had to be told again, and text was scored in windows of another length without a word."""
    folder, checkpoint = cli.folder / "form text", ["--checkpoint", cli.folder / "form.safetensors"]
    folder.mkdir()
    for split in ("train", "test"):
        (folder / f"{split}.txt").write_text("the quick brown fox jumps over the lazy dog . " * 100)
    told = ["--level", "character", "--size", "medium", "--units", 8, "--unroll", 5, "--batch", 4]
    data, quick = ["--data", folder], ["--tune", 0, "--quiet"]
    def notes(found):
        return " ".join(found["notes"])
    cli.run("train", "ptb", *data, *told, *quick, *checkpoint, "--steps", 2)
    known, untold = (cli.result("eval", "ptb", *data, *more, *quick, *checkpoint) for more in (told, []))
    assert known["train"] == untold["train"] and "training had" not in notes(untold)
    assert known["model"] == untold["model"] and untold["model"]["size"] == "medium"
    for more, windows in (["--unroll", 7], "7 in 4"), (["--batch", 2], "5 in 2"), (["--unroll", 5], None):
        told_so = notes(cli.result("eval", "ptb", *data, *more, *quick, *checkpoint))
        assert (f"scored in windows of {windows} rows, training had 5 in 4" if windows else "5 in 4 rows") in told_so, told_so
        assert ("training had" in told_so) == bool(windows)
    line = cli.folder / "line"
    drawn = cli.result("eval", "ptb", *data, *quick, *checkpoint, "--timeline", line)
    assert drawn["train"] == known["train"] and {f"{line}.json", f"{line}.html"} <= set(drawn["files"]), drawn["files"]
    assert any(event["ph"] == "X" for event in json.loads(Path(f"{line}.json").read_text())["traceEvents"])
    of_level = "found a checkpoint of --level character, expected word"
    assert of_level in cli.run("eval", "ptb", *data, "--level", "word", *quick, *checkpoint, expect=3).stderr
    for command in ["inspect"], ["simulate", "--inference"], ["run", "--repeat", 1], ["profile", "--inference", "--tune", 0]:
        for more in [], ["--level", "character"]:
            of = cli.result(command[0], "ptb", *command[1:], *checkpoint, *more)["model"]
            assert (of["size"], of["units"], of["steps"], of["batch"]) == ("medium", 8, 5, 4), (command, more, of)
    assert of_level in cli.run("inspect", "ptb", "--level", "word", *checkpoint, expect=3).stderr
    assert "--classes" in cli.run("inspect", "ptb", "--classes", 5, *checkpoint, expect=2).stderr
    (folder / "train.txt").write_text("of fewer letters " * 300)
    other = cli.run("run", "ptb", *data, *checkpoint, expect=3).stderr
    assert re.search(r"found network.vocabulary \d+, expected \d+, that of --data", other), other
    content, length, header = safetensors_header(checkpoint[1])
    header["__metadata__"]["network.vocabulary"] = "-1"
    checkpoint[1].write_bytes(content[:8] + json.dumps(header, separators=(",", ":")).encode().ljust(length) + content[8 + length:])
    assert "found no network.vocabulary" in cli.run("inspect", "ptb", *checkpoint, expect=3).stderr
    words, pixels = training(cli, 1), ["--data", cli.folder / "images", *quick, *checkpoint]
    cli.run(*words, "--size", "medium", "--classes", 6, *checkpoint, "--overwrite")
    assert "a network of text" in cli.run("inspect", "pathnet", "--level", "word", *checkpoint, expect=2).stderr
    known, untold = (cli.result("eval", "pathnet", *pixels, *more)
                     for more in (["--size", "medium", "--classes", 6, "--image", 16, "--batch", 8], []))
    assert known["train"] == untold["train"] and known["model"] == untold["model"]
    assert "scored on images of side 20, training had 16" in notes(cli.result("eval", "pathnet", "--image", 20, *pixels))
    assert "expected 16" in cli.run("eval", "pathnet", *pixels, "--size", "small", expect=3).stderr
    for key in "network.size", "network.units", "network.trained", "data.batch":  # as older files were
        drop_metadata(checkpoint[1], key)
    told = ["--size", "medium", "--image", 16, "--batch", 8]
    assert cli.result("eval", "pathnet", *pixels, *told)["train"] == known["train"]


def test_older_side_classifiers(cli):
    """GoogLeNet's side classifiers were one layer each: going on from those is refused by what is missing; the network
    itself is the same."""
    images, checkpoint = write_images(cli.folder / "side images"), cli.folder / "side.safetensors"
    words = ["googlenet", "--image", 32, "--data", images, "--batch", 4, "--tune", 0, "--quiet", "--checkpoint", checkpoint]
    cli.run("train", *words, "--auxiliary", "--steps", 1)
    checkpoint.write_bytes(checkpoint.read_bytes().replace(b'"auxiliary1/conv/', b'"auxiliary9/conv/'))
    refused = cli.run("train", *words, "--auxiliary", "--steps", 2, "--resume", expect=3).stderr
    assert "found no parameter 'auxiliary1/conv/bias'" in refused, refused
    cli.run("eval", *words)


def npy(dtype, shape, content):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content


def write_kinds(folder):
    """Every kind of data set, as a folder and as a file: name -> path."""
    folder.mkdir(exist_ok=True)
    generator = random.Random(9)
    text = "the quick brown fox jumps over the lazy dog . " * 600
    for name in ("cifar", "npy", "text"):
        (folder / name).mkdir(exist_ok=True)
    for name, count in (("data_batch_1.bin", 60), ("test_batch.bin", 20)):
        (folder / "cifar" / name).write_bytes(b"".join(bytes([i % 10]) + generator.randbytes(3072) for i in range(count)))
    for name, count in (("", 60), ("test_", 20)):
        labels = struct.pack(f"<{count}i", *(i % 4 for i in range(count)))
        (folder / "npy" / f"{name}images.npy").write_bytes(npy("|u1", (count, 12, 12, 3), generator.randbytes(count * 432)))
        (folder / "npy" / f"{name}labels.npy").write_bytes(npy("<i4", (count,), labels))
    for name in ("train.txt", "valid.txt", "test.txt"):
        (folder / "text" / name).write_text(text)
    idx_folder = write_images(folder / "idx")
    images = {"idx": idx_folder, "idx file": idx_folder / "train-images-idx3-ubyte", "cifar": folder / "cifar",
              "cifar file": folder / "cifar" / "data_batch_1.bin", "npy": folder / "npy", "npy file": folder / "npy" / "images.npy"}
    return images, {"text": folder / "text", "text file": folder / "text" / "train.txt"}


def test_kinds(cli):
    """A network of images that was given text wrote the tokens over the end of its batch. Every network with every kind
    of data: what does not fit is refused before anything is read, what fits is trained and evaluated."""
    images, texts = write_kinds(cli.folder / "kinds")
    checkpoint = cli.folder / "kinds.safetensors"
    checkpoint.write_bytes(b"\x02\0\0\0\0\0\0\0{}")  # says nothing of what it is: the data are looked at
    networks = re.search(r"^networks: (.*)$", cli.run("--help").stdout, re.M).group(1).split()
    text_networks = {"lstm", "phased-lstm", "ptb"}
    graph_networks = {"treelstm", "dependency-treelstm", "treefc", "fixed-lstm", "var-lstm", "message-passing"}  # test_cli_trees.py
    assert text_networks < set(networks) and graph_networks < set(networks)
    for network in sorted(graph_networks - {"treefc"}):  # which learns from no data
        for path in (path for kind, path in images.items() if "file" not in kind):
            done = cli.run("train", network, "--steps", 1, "--data", path, "--tune", 0, expect=5)
            assert "expected one as train.txt" in done.stderr, done.stderr
    for network in sorted(set(networks) - graph_networks):
        wrong = images if network in text_networks else texts
        expected = "found images, expected text" if wrong is images else "found text, expected images"
        for path in wrong.values():
            for words in (["train", "--steps", 1], ["eval", "--checkpoint", checkpoint]):
                if (words[0], network) != ("eval", "dcgan"):  # which has nothing to evaluate
                    done = cli.run(words[0], network, *words[1:], "--data", path, "--tune", 0, expect=3)
                    assert expected in done.stderr, done.stderr
    checkpoint.unlink()
    small, large = ["--units", 8, "--batch", 20], ["--image", 32, "--batch", 8]
    for network, kinds, more in (("pathnet", images, ["--image", 16, "--batch", 8]), ("googlenet", images, large), ("ptb", texts, []),
                                 ("lstm", texts, small), ("phased-lstm", texts, small)):
        for kind, path in kinds.items():
            if kind in ("idx file", "npy file"):  # as their folders
                continue
            words = [network, "--data", path, "--tune", 0, "--quiet", *more, "--checkpoint", checkpoint]
            train = cli.result("train", *words, "--steps", 1, "--overwrite")["train"]
            assert len(train["loss"]) == len(train["value"]) == 1 and train["value"][0] is not None, kind
            tested = kind not in ("cifar file", "text file")  # one file of those has no test part
            done = cli.run("eval", *words, "--split", "test", expect=0 if tested else 4)
            assert tested or "no test files" in done.stderr


def test_no_validation(cli):
    """Too little text to hold any out for validation: no number stands where there is none (once a perplexity of 0), and
    a note says why. A file for validation that is unusable is an error."""
    text, folder, log = cli.folder / "short.txt", cli.folder / "own", cli.folder / "short.csv"
    text.write_text("the quick brown fox jumps over the lazy dog . " * 80)
    words = ["train", "ptb", "--tune", 0, "--steps", 1, "--quiet", "--data"]
    result = cli.result(*words, text, "--log", log)
    assert result["train"]["value"] == [None] and any("held out" in note for note in result["notes"])
    assert log.read_text().splitlines()[-1].endswith(",,")
    assert re.search(r"^ +1 +\d+\.\d+ +-$", cli.run(*words, text).stdout, re.M)
    folder.mkdir()
    (folder / "train.txt").write_text(text.read_text())
    (folder / "valid.txt").write_text("one line\n")
    assert "valid.txt" in cli.run(*words, folder, expect=3).stderr
    images = cli.folder / "own images"
    write_kinds(images)
    (images / "npy" / "validation_images.npy").write_bytes(b"\x93NUMPY")
    assert "validation_images.npy" in cli.run("train", "pathnet", "--data", images / "npy", "--batch", 8, "--steps", 1, "--tune", 0,
                                              expect=3).stderr


def test_learning(cli):
    """The first example of README.md: at a rate four times as high two seeds of three lost all their relus at once and stayed at chance."""
    if not Path("/usr/share/datasets/fashion-mnist").exists():
        return
    for seed in (1, 2):
        train = cli.result("train", "pathnet", "--steps", 40, "--validate", 40, "--tune", 0, "--seed", seed)["train"]
        assert train["value"][-1] > 0.2, f"seed {seed}: accuracy {train['value']}, chance is 0.1"


def test_classes(cli):
    """One wrong byte among the labels made a network of 256 classes, and nobody was told."""
    words = training(cli, 1)
    labels = cli.folder / "images" / "train-labels-idx1-ubyte"
    content = labels.read_bytes()
    assert not any("classes" in note for note in cli.result(*words)["notes"])
    labels.write_bytes(content[:-1] + b"\xff")
    assert any("256 classes are told apart, labels of 5 occur" in note for note in cli.result(*words)["notes"])
    assert "label 255" in cli.run(*words, "--classes", 4, expect=3).stderr
    labels.write_bytes(content)
    checkpoint = cli.folder / "six.safetensors"
    assert any("6 classes are told apart" in note for note in cli.result(*words, "--classes", 6, "--checkpoint", checkpoint)["notes"])
    evaluation = ["eval", *words[1:words.index("--steps")], "--checkpoint", checkpoint]
    cli.run(*evaluation)
    cli.run(*evaluation, "--classes", 6)
    assert "found a checkpoint of --classes 6, expected 4" in cli.run(*evaluation, "--classes", 4, expect=3).stderr
    (cli.folder / "t.txt").write_text("a b c " * 100)
    cli.run("train", "lstm", "--data", "t.txt", "--classes", 3, expect=2)


def test_modes_are_refused(cli):
    """A network built for inference was tuned for five seconds before its training failed on an input that it lacks."""
    for command in ("train", "eval"):
        for mode in ("--inference", "--training"):
            assert mode in cli.run(command, "pathnet", mode, "--checkpoint", "c.safetensors", expect=2).stderr


def test_mistakes_before_data(cli):
    """Data were read, a network built and the machine measured before options were refused that no network takes: what is not there is
    not looked for."""
    none = cli.folder / "none"
    given = [["--policy", "best"], ["--executors", 4096, "--width", 4096], ["--disable", "nothing"], ["--interval", 2, "--tune", 0],
             ["--plan", none, "--tune", 1], ["--model", "m"], ["--model", "m", "--tune", 1]]
    train, evaluation, run = (["train", "pathnet", "--data", none], ["eval", "pathnet", "--data", none, "--checkpoint", none],
                              ["run", "pathnet", "--checkpoint", none])
    for command in train, evaluation, run, ["profile", "pathnet", "--data", none], ["simulate", "pathnet", "--data", none]:
        cli.run(*command, expect=5)
        for more in given:
            errors = cli.run(*command, *more, expect=2).stderr
            assert any(str(word).lstrip("-") in errors for word in more[:2]), errors
    for more, expect in ((["--schedule", "nonsense"], 3), (["--resume", "--checkpoint", none], 5)):
        errors = cli.run(*train[:2], "--data", cli.folder / "nothing", *more, expect=expect).stderr
        assert "nonsense" in errors or f"{none}: " in errors, errors
    for marks in "0.5e:0.75e", "1e:2000", "300:1e:500":  # in order for some lengths of an epoch, which the data tell
        cli.run(*train, "--schedule", f"multi-step:0.1:{marks}", expect=5)
    for marks in "0.75e:0.5e", "2:1":
        assert "above the mark before" in cli.run(*train, "--schedule", f"multi-step:0.1:{marks}", expect=3).stderr
    for more, expect in ((["--inputs", "x.npz"], 2), (["--rtol", 1], 2), (["--input", "images"], 2)):
        cli.run(*run, *more, expect=expect)
    assert "x.npy" in cli.run(*run, "--input", "images=x.npy", expect=5).stderr
    for name in "ab":  # the last one was taken in silence
        (cli.folder / f"{name}.npy").touch()
    errors = cli.run(*run, "--input", "images=a.npy", "--input", "images=b.npy", expect=2).stderr
    assert "found 'images=b.npy', expected one file for 'images': images=a.npy names another" in errors, errors


def test_mistakes_before_tuning(cli):
    """Seconds of tuning were spent before a mistake that could be seen at once."""
    words = [w for w in training(cli, 1)]
    words[words.index("--tune") + 1] = 600
    schedule = words.index("--schedule")
    torn = cli.folder / "torn.safetensors"
    torn.write_bytes(b"\x10\0\0\0\0\0\0\0{")
    gan = ["train", "dcgan", "--data", cli.folder / "images", "--batch", 4, "--steps", 1, "--tune", 600]
    for start in (words[:schedule] + words[schedule + 2:], gan):
        for mistake, expect in ((["--resume", "--checkpoint", cli.folder / "none.safetensors"], 5),
                                (["--resume", "--checkpoint", torn], 3), (["--schedule", "nonsense"], 3)):
            started = time.monotonic()
            cli.run(*start, *mistake, expect=expect)
            assert time.monotonic() - started < 30, mistake


def test_augment(cli):
    """An augmentation that is typed has no effect, or is another one when training goes on."""
    data, saved = write_images(cli.folder / "augmented"), cli.folder / "augmented.safetensors"
    words = ["train", "resnet20", "--data", data, "--image", 12, "--units", 2, "--batch", 8, "--tune", 0, "--quiet", "--steps"]

    def sha(*more):
        return cli.result(*words, 6, *more)["train"]["state_sha256"]

    plain = sha()
    for text in ("crop:4", "pad:2", "flip", "crop:4,pad:2,flip"):
        assert sha("--augment", text) != plain, text
    assert sha("--augment", "none") == plain
    whole = sha("--augment", "pad:2,flip")
    cli.run(*words, 3, "--augment", "pad:2,flip", "--checkpoint", saved)
    assert cli.result("train", "--resume", saved, "--steps", 6, "--tune", 0, "--quiet")["train"]["state_sha256"] == whole
    cli.run("eval", "resnet20", "--data", data, "--checkpoint", saved, "--quiet")
    for text in ("flop", "crop:", "pad:-1", "crop:4,", "crop:2000"):
        cli.run(*words, 1, "--augment", text, expect=3)


if __name__ == "__main__":
    main(globals())
