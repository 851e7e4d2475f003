#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights of a PyTorch model as a safetensors file that graphi_state_load takes (docs/c-api.md, "From PyTorch").

    from_pytorch.py WEIGHTS MAP OUT.safetensors

WEIGHTS is a state_dict, or a dictionary that holds one under "state_dict" or "model": what torch.save wrote (needs
PyTorch), a .safetensors file or a NumPy .npz. MAP says what becomes of it, a line a parameter of Graphi's graph:

    NAME  FORM  TENSOR...        # several tensors of one shape are added up

    FORM  same         as it is: biases, scales, running statistics, tables of embeddings
          linear       [out, in] to [in, out]: Linear, and weight_ih, weight_hh of recurrent layers
          conv         [K, C/groups, KH, KW] to [KH, KW, C/groups, K]: Conv2d; ConvTranspose2d for conv2d_backward_data
          flat:CxHxW   [out, C H W] to [H W C, out]: the Linear behind a Flatten of images
          FORM:I/N     of N equal parts of the first dimension the I-th: a gate (i, f, g, o are 1 to 4 of 4)

Numbers become float32. Within Python: save("out.safetensors", convert(model.state_dict(), open("map")))."""
import contextlib
import json
import os
import re
import struct
import sys
import tempfile

import numpy as np


class Mistake(Exception):
    pass


def array(tensor):
    """A tensor of PyTorch (on any device, of any float type) or an array, as float32."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu().float().numpy()
    return np.asarray(tensor, dtype=np.float32)


# Form -> dimensions in the order that Graphi has them.
ORDER = {"same": None, "linear": (1, 0), "conv": (2, 3, 1, 0)}
FORM = re.compile(r"(same|linear|conv|flat:(\d+)x(\d+)x(\d+))(?::([1-9]\d*)/([1-9]\d*))?")


def shaped(weight, form):
    """ValueError where the form is none, or does not fit."""
    match = FORM.fullmatch(form)
    if not match:
        raise ValueError(form)
    kind, *size, part, parts = match.groups()
    if part:
        weight = np.split(weight, int(parts))[int(part) - 1]
    if kind in ORDER:
        return weight.transpose(ORDER[kind]) if ORDER[kind] else weight
    images = weight.reshape(len(weight), *map(int, size))  # [out, C, H, W]
    return images.transpose(2, 3, 1, 0).reshape(-1, len(weight))


def convert(state, lines):
    """Names and arrays for Graphi, by the lines of a map, from a mapping of names to tensors or arrays."""
    out = {}
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) < 3 or words[0] in out:
            raise Mistake(f"map, line {number}: found '{line.strip()}', expected NAME FORM TENSOR..., each NAME once")
        name, form, *tensors = words
        for tensor in tensors:
            if tensor not in state:
                raise Mistake(f"map, line {number}: found no tensor '{tensor}', expected one of {', '.join(state)}")
        arrays = [array(state[tensor]) for tensor in tensors]
        try:
            out[name] = shaped(np.sum(np.stack(arrays), axis=0), form)
        except (ValueError, IndexError) as error:
            shapes = ", ".join(str(list(a.shape)) for a in arrays)
            raise Mistake(f"map, line {number}: found form '{form}' of {shapes}, expected one that fits") from error
    if not out:
        raise Mistake("map: found no line, expected NAME FORM TENSOR...")
    return out


def replace(path, content):
    """The file is there whole or as it was before. What is there and no file, a pipe or a device, is written to."""
    path = os.path.realpath(path)  # a link stays one
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.write(content)
        return
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f"{os.path.basename(path)}.", suffix=".tmp")
    try:
        with open(handle, "wb") as file:
            os.fchmod(file.fileno(), mode(path))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def mode(path):
    """Of the file that is replaced, else what a new one gets."""
    if os.path.exists(path):
        return os.stat(path).st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def save(path, tensors):
    """A safetensors file: the length of the header, the header (JSON, filled up to 8 bytes), the data."""
    header, data, at = {}, [], 0
    for name, tensor in tensors.items():
        data.append(np.ascontiguousarray(tensor, dtype="<f4").tobytes())
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + len(data[-1])]}
        at += len(data[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    replace(path, struct.pack("<Q", len(text)) + text + b"".join(data))


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    header.pop("__metadata__", None)
    types = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
    state = {}
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        numbers = np.frombuffer(data[begin:end], types[tensor["dtype"]])
        if tensor["dtype"] == "BF16":  # the upper half of a float32
            numbers = (numbers.astype("<u4") << 16).view("<f4")
        state[name] = numbers.reshape(tensor["shape"])
    return state


def load(path):
    with open(path, "rb"):  # that it is missing is told before PyTorch may be
        pass
    if path.endswith(".npz"):
        return dict(np.load(path))
    if path.endswith(".safetensors"):
        return read_safetensors(path)
    import torch
    state = torch.load(path, map_location="cpu", weights_only=True)
    for key in ("state_dict", "model"):
        state = state.get(key, state)
    return state


def read(path):
    """A mapping of names to tensors. Whatever a file can be instead is a Mistake."""
    try:
        state = load(path)
        next(iter(state.items()), None)
        return state
    except OSError:
        raise
    except ImportError as error:
        raise Mistake(f"{path}: found no PyTorch here ({error}), expected it, or weights as .safetensors or .npz") from error
    except Exception as error:  # each format has errors of its own: struct, json, zip, pickle
        raise Mistake(f"{path}: found no weights ({type(error).__name__}: {error}), expected a state_dict that torch.save "
                      "wrote, .safetensors or .npz") from error


@contextlib.contextmanager
def used(path, how):
    """What the system refuses names the file: an error of a full disk does not by itself."""
    try:
        yield
    except OSError as error:
        raise Mistake(f"{path}: found that it cannot be {how} ({error.strerror or error}), expected a file that can") from error


def read_map(path):
    """The lines of a map."""
    try:
        with used(path, "read"), open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except UnicodeDecodeError as error:
        raise Mistake(f"{path}: found no text ({error}), expected a map in UTF-8: NAME FORM TENSOR...") from error


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    weights, lines_of, out = sys.argv[1:]
    try:
        lines = read_map(lines_of)
        with used(weights, "read"):
            state = read(weights)
        for source in (weights, lines_of):
            if os.path.exists(out) and os.path.samefile(source, out):
                raise Mistake(f"{out}: found that it is {source}, which is read, expected another file")
        tensors = convert(state, lines)
        with used(out, "written"):
            save(out, tensors)
    except Mistake as error:
        sys.exit(f"from_pytorch: error: {error}")
    for name, tensor in tensors.items():
        print(f"{name} {list(tensor.shape)}")
    mapped = {word for line in lines for word in line.split("#")[0].split()[2:]}
    left = [name for name in state if name not in mapped]
    if left:
        print("not in the map:", ", ".join(left))


if __name__ == "__main__":
    main()
