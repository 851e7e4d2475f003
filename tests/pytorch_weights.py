#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights in PyTorch's layouts go through from_pytorch.py into examples/import.c, whose logits must be PyTorch's: of the package
where this interpreter has it (then from_pytorch.py reads what torch.save wrote), otherwise of the layers' definitions in NumPy.
And a gate of a recurrent layer, which that network has not, against its definition. Part of tests/test_install.sh.

usage: pytorch_weights.py FROM_PYTORCH IMPORT EXAMPLES (run in a folder that may be written)"""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys

import numpy as np

try:
    import torch
except ImportError:
    torch = None

SHAPES = {"0.weight": (8, 3, 3, 3), "1.weight": (8,), "1.bias": (8,), "1.running_mean": (8,), "1.running_var": (8,),
          "5.weight": (10, 128), "5.bias": (10,)}


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def must(*words):
    code, out, err = run(*words)
    assert code == 0, f"{' '.join(words)}: found status {code}: {err}"
    return out


def by_definition(state, image):
    x = np.pad(image.transpose(0, 3, 1, 2), ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = sum(np.einsum("nchw,kc->nkhw", x[:, :, r:r + 8, c:c + 8], state["0.weight"][:, :, r, c]) for r in range(3) for c in range(3))
    scale, shift, mean, variance = (state[f"1.{name}"].reshape(1, 8, 1, 1) for name in ("weight", "bias", "running_mean", "running_var"))
    y = np.maximum((y - mean) / np.sqrt(variance + 1e-5) * scale + shift, 0)
    y = y.reshape(1, 8, 4, 2, 4, 2).max(axis=(3, 5)).reshape(1, 128)
    return y @ state["5.weight"].T + state["5.bias"]


def by_pytorch(state, image):
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(8 * 4 * 4, 10))
    state = {name: torch.from_numpy(array) for name, array in state.items()}
    model.load_state_dict({**state, "1.num_batches_tracked": torch.tensor(7)})
    torch.save(model.state_dict(), "weights.pt")
    with torch.no_grad():
        return model.eval()(torch.from_numpy(image).permute(0, 3, 1, 2)).numpy()


def check_network(tool, program, examples):
    random = np.random.default_rng(1)
    state = {name: random.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in SHAPES.items()}
    state["1.running_var"] += 1
    image = random.uniform(-1, 1, (1, 8, 8, 3)).astype(np.float32)
    np.save("image.npy", image)
    np.savez("weights.npz", **state)
    expected = by_definition(state, image)
    if torch:
        told = by_pytorch(state, image)
        assert np.abs(told - expected).max() < 1e-5, f"found PyTorch's logits {told}, expected {expected}"
    for weights in ("weights.npz", "weights.pt") if torch else ("weights.npz",):
        must(sys.executable, tool, weights, f"{examples}/import.map", "weights.safetensors")
        out = must(program, "weights.safetensors", "image.npy")
        found = np.array([float(word) for word in out.splitlines()[0].split()[1:]])
        assert np.abs(found - expected).max() < 1e-4, f"{weights}: found logits {found}, expected {expected}"
        before, after = (float(word.strip(",")) for word in out.splitlines()[1].split() if "." in word)
        assert after < before, f"found a loss of {after} after a step, expected less than {before}"
    must(sys.executable, tool, "weights.safetensors", "same.map", "again.safetensors")
    assert must(program, "again.safetensors", "image.npy") == out, "found other logits of a .safetensors read again"


def check_gate(tool):
    """The gate f of an LSTM: rows H to 2 H there, a product of its own here."""
    random = np.random.default_rng(2)
    x, w = random.uniform(-1, 1, (5, 6)).astype(np.float32), random.uniform(-1, 1, (16, 6)).astype(np.float32)
    b = random.uniform(-1, 1, (2, 16)).astype(np.float32)
    np.savez("gates.npz", weight_ih_l0=w, bias_ih_l0=b[0], bias_hh_l0=b[1])
    with open("gates.map", "w") as file:
        file.write("w_f linear:2/4 weight_ih_l0\nb_f same:2/4 bias_ih_l0 bias_hh_l0\n")
    must(sys.executable, tool, "gates.npz", "gates.map", "gates.safetensors")
    with open("read.py", "w") as file:
        file.write("import sys, numpy\nsys.path.insert(0, sys.argv[1].rpartition('/')[0])\nimport from_pytorch\n"
                   "numpy.savez('read.npz', **from_pytorch.read('gates.safetensors'))\n")
    must(sys.executable, "-B", "read.py", tool)
    read = np.load("read.npz")
    difference = x @ read["w_f"] + read["b_f"] - (x @ w.T + b[0] + b[1])[:, 4:8]
    assert np.abs(difference).max() < 1e-5, f"found a gate that differs by {difference}"


def check_refusals(tool):
    for line, naming in (("w linear nothing", "'nothing'"), ("w linear:5/4 weight_ih_l0", "'linear:5/4'"),
                         ("w conv weight_ih_l0", "[16, 6]"), ("w same", "'w same'")):
        with open("wrong.map", "w") as file:
            file.write(f"# the second line is wrong\n{line}\n")
        code, _, err = run(sys.executable, tool, "gates.npz", "wrong.map", "wrong.safetensors")
        assert code and "line 2: found" in err and naming in err, f"{line}: found status {code}, {err}, expected line 2 and {naming}"
    for files, naming in ((("missing.pt", "wrong.map", "wrong.safetensors"), "missing.pt: found that it cannot be read"),  # PyTorch or not
                          (("gates.npz", "missing.map", "wrong.safetensors"), "missing.map: found that it cannot be read"),
                          (("gates.npz", "gates.map", "none/out"), "none/out: found that it cannot be written"),
                          (("gates.npz", "gates.map", "/dev/full"), "/dev/full: found that it cannot be written")):
        code, _, err = run(sys.executable, tool, *files)
        assert code and naming in err and "Traceback" not in err, f"{files}: found status {code}, {err}, expected {naming}"


def check_outputs(tool):
    """A file that is read is not written over, and one that cannot be written is what it was."""
    for files in (("gates.npz", "gates.map", "gates.npz"), ("gates.npz", "gates.map", "./gates.map")):
        before = [open(name, "rb").read() for name in ("gates.npz", "gates.map")]
        code, _, err = run(sys.executable, tool, *files)
        assert code and "which is read, expected another file" in err, f"{files}: found status {code}, {err}, expected a refusal"
        assert before == [open(name, "rb").read() for name in ("gates.npz", "gates.map")], f"{files}: found that a source has changed"
    before = open("gates.safetensors", "rb").read()
    os.makedirs("folder", exist_ok=True)
    shutil.copy("gates.safetensors", "folder/out")

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    done = subprocess.run([sys.executable, tool, "gates.npz", "gates.map", "folder/out"], capture_output=True, text=True, preexec_fn=small)
    assert done.returncode and "folder/out: found that it cannot be written" in done.stderr, f"a write cut short: found {done.stderr}"
    with open("folder/out", "rb") as file:
        assert file.read() == before, "a write cut short: found a file that has changed, expected the one before"
    assert os.listdir("folder") == ["out"], f"a write cut short: found {os.listdir('folder')}, expected no temporary file"


def check_files(tool):
    """What is no file of weights is said, whatever else it is."""
    with open("none.map", "w") as file:
        file.write("# nothing\n")
    broken = {"byte.safetensors": b"x", "long.safetensors": b"\xff" * 16, "byte.npz": b"x"}
    for name, content in broken.items():
        with open(name, "wb") as file:
            file.write(content)
        code, _, err = run(sys.executable, tool, name, "same.map", "wrong.safetensors")
        assert code and f"error: {name}: found no weights" in err and "Traceback" not in err, f"{name}: found {err}"
    code, _, err = run(sys.executable, tool, "gates.npz", "none.map", "wrong.safetensors")
    assert code and "found no line" in err, f"a map without lines: found status {code}, {err}"
    with open("latin.map", "wb") as file:
        file.write(b"w\xe9 same weight_ih_l0\n")
    code, _, err = run(sys.executable, tool, "gates.npz", "latin.map", "wrong.safetensors")
    assert code and "error: latin.map: found no text" in err and "Traceback" not in err, f"a map in Latin-1: found {err}"


def write_tensors(path, tensors):
    """A .safetensors file of names, types and arrays."""
    header, data = {}, b""
    for name, (kind, array) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def read_weight(path):
    """Name and numbers of the one tensor that from_pytorch.py wrote."""
    with open(path, "rb") as file:
        content = file.read()
    length = int.from_bytes(content[:8], "little")
    (name, about), = json.loads(content[8:8 + length]).items()
    return name, np.frombuffer(content[8 + length:], "<f4").reshape(about["shape"])


def check_others(tool):
    """One tensor that nobody maps spoiled the file; a mark in the map became part of a name; 1e300 became infinity."""
    w = np.arange(12, dtype="<f4").reshape(4, 3)
    odd = {"scale": ("F8_E4M3", np.ones(3, "u1")), "mask": ("BOOL", np.ones(3, "?")), "big": ("F64", np.full(2, 1e300)),
           "exact": ("I64", np.array([2**53 + 1])), "steps": ("I16", np.array([-3, 7], "<i2"))}
    write_tensors("odd.safetensors", {"w": ("F32", w), **odd})
    np.savez("odd.npz", w=w, words=np.array(["a"]), things=np.array([{}], dtype=object))
    with open("marked.map", "wb") as file:
        file.write(b"\xef\xbb\xbfgraph/w linear w\r\n")
    for weights, left in ("odd.safetensors", "not in the map: scale, mask, big, exact, steps"), ("odd.npz", "not in the map: words, things"):
        out = must(sys.executable, tool, weights, "marked.map", "odd.out")
        assert out == f"graph/w [3, 4]\n{left}\n", f"{weights}: found {out}"
        name, found = read_weight("odd.out")
        assert name == "graph/w" and (found == w.T).all(), f"{weights}: found {name}, {found}"
    for mapped, naming in (("x same big", "'big' 1e+300, which float32 does not hold"), ("x same scale", "'scale' element type F8_E4M3"),
                           ("x same exact", "'exact' 9007199254740993, which"), ("w\u200b same w", "without marks")):
        with open("odd.map", "w", encoding="utf-8") as file:
            file.write(mapped + "\n")
        code, _, err = run(sys.executable, tool, "odd.safetensors", "odd.map", "refused.out")
        assert code and f"map, line 1: found" in err and naming in err and "Traceback" not in err, f"{mapped}: found {err}"
        assert not os.path.exists("refused.out"), f"{mapped}: found a file, expected none"
    with open("odd.map", "w") as file:
        file.write("x same steps\n")
    must(sys.executable, tool, "odd.safetensors", "odd.map", "odd.out")
    assert (read_weight("odd.out")[1] == [-3, 7]).all()
    end, gone = os.pipe()
    os.close(end)  # as `head` does when it has seen enough
    done = subprocess.run([sys.executable, tool, "odd.safetensors", "marked.map", "odd.out"], stdout=gone, stderr=subprocess.PIPE, text=True)
    os.close(gone)
    assert done.returncode == 0 and not done.stderr, f"into a closed pipe: found status {done.returncode}, {done.stderr}"


def main():
    tool, program, examples = sys.argv[1:]
    with open(f"{examples}/import.map") as file:
        names = [line.split()[0] for line in file if line.split("#")[0].split()]
    with open("same.map", "w") as file:
        file.writelines(f"{name} same {name}\n" for name in names)
    check_network(tool, program, examples)
    check_gate(tool)
    check_refusals(tool)
    check_outputs(tool)
    check_files(tool)
    check_others(tool)
    print(f"weights of {'PyTorch ' + torch.__version__ if torch else 'NumPy arrays'} loaded")


if __name__ == "__main__":
    main()
