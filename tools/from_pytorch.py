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

Numbers become float32; one beyond its range is refused. Tensors that the map does not name may be of any type, and are told
at the end. Within Python: save("out.safetensors", convert(model.state_dict(), open("map")))."""
import contextlib
import json
import os
import re
import struct
import sys
import tempfile
from collections.abc import Mapping

import numpy as np


class Mistake(Exception):
    pass


def array(tensor):
    """A tensor of PyTorch (on any device, of any float type) or an array, as float32. ValueError, saying what it is, where that
    cannot hold it."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        tensor = (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    if not hasattr(tensor, "dtype") and not isinstance(tensor, (int, float, list, tuple)):
        raise ValueError(f"{type(tensor).__name__}, which is no tensor")
    wide = np.asarray(tensor)
    if wide.dtype.kind not in "fiub":
        raise ValueError(f"element type {wide.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = wide.astype(np.float32)
        lost = np.isinf(numbers) & ~np.isinf(wide) if wide.dtype.kind == "f" else numbers.astype(wide.dtype) != wide
    if lost.any():
        raise ValueError(f"{wide[lost].flat[0]!s}, which float32 does not hold")
    return numbers


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


def mapped(state, name, number):
    """The tensor of that name as float32."""
    try:
        return array(state[name])
    except Mistake:
        raise
    except (ValueError, TypeError) as error:
        raise Mistake(f"map, line {number}: found in tensor '{name}' {error}, expected numbers that float32 holds") from error


def convert(state, lines):
    """Names and arrays for Graphi, by the lines of a map, from a mapping of names to tensors or arrays."""
    out = {}
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        for word in words:
            if not word.isprintable() or "\ufeff" in word:
                raise Mistake(f"map, line {number}: found {word!a}, expected a name without marks and control characters")
        if len(words) < 3 or words[0] in out:
            raise Mistake(f"map, line {number}: found '{line.strip()}', expected NAME FORM TENSOR..., each NAME once")
        name, form, *tensors = words
        for tensor in tensors:
            if tensor not in state:
                raise Mistake(f"map, line {number}: found no tensor '{tensor}', expected one of {', '.join(state)}")
        arrays = [mapped(state, tensor, number) for tensor in tensors]
        try:
            with np.errstate(over="ignore"):
                whole = np.sum(np.stack(arrays), axis=0)
            if np.isinf(whole).any() and not any(np.isinf(part).any() for part in arrays):
                raise Mistake(f"map, line {number}: found a sum of {', '.join(tensors)} beyond float32, expected one within")
            out[name] = shaped(whole, form)
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


TYPES = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "BF16": "<u2", "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2",
         "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8"}


class Lazy(Mapping):
    """Tensors by name, each read when it is asked for: what nobody maps may be of any type, and spoils no other."""

    def __init__(self, names, read):
        self.names, self.read = dict.fromkeys(names), read

    def __getitem__(self, name):
        if name not in self.names:
            raise KeyError(name)
        return self.read(name)

    def __contains__(self, name):
        return name in self.names

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.names)


def stored(tensor, data):
    """A tensor of a .safetensors file."""
    kind, (begin, end) = tensor["dtype"], tensor["data_offsets"]
    if kind not in TYPES:
        raise ValueError(f"element type {kind}")
    numbers = np.frombuffer(data[begin:end], TYPES[kind])
    if kind == "BF16":  # the upper half of a float32
        numbers = (numbers.astype("<u4") << 16).view("<f4")
    return numbers.reshape(tensor["shape"])


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    header.pop("__metadata__", None)
    for tensor in header.values():
        begin, end = tensor["data_offsets"]
        if not 0 <= begin <= end <= len(data) or not isinstance(tensor["dtype"], str) or not isinstance(tensor["shape"], list):
            raise ValueError(f"offsets {begin} to {end} of {len(data)} bytes")
    return Lazy(header, lambda name: stored(header[name], data))


def load(path):
    with open(path, "rb"):  # that it is missing is told before PyTorch may be
        pass
    if path.endswith(".npz"):
        file = np.load(path)
        return Lazy(file.files, file.__getitem__)
    if path.endswith(".safetensors"):
        return read_safetensors(path)
    import torch
    state = torch.load(path, map_location="cpu", weights_only=True)
    for key in ("state_dict", "model"):
        state = state.get(key, state)
    if not isinstance(state, Mapping):
        raise ValueError(f"a {type(state).__name__}")
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
        with used(path, "read"), open(path, encoding="utf-8-sig") as file:  # editors put a mark of byte order there
            return file.read().splitlines()
    except UnicodeDecodeError as error:
        raise Mistake(f"{path}: found no text ({error}), expected a map in UTF-8: NAME FORM TENSOR...") from error


def left_out(state, lines):
    named = {word for line in lines for word in line.split("#")[0].split()[2:]}
    return [str(name) for name in state if name not in named]


def tell(lines, left):
    """Whoever reads may have seen enough (head): the file is written, so that is no failure."""
    if left:
        lines.append("not in the map: " + ", ".join(left))
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter tries again when it ends


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
    tell([f"{name} {list(tensor.shape)}" for name, tensor in tensors.items()], left_out(state, lines))


if __name__ == "__main__":
    main()
