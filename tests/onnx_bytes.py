# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models as bytes, written without packages, for tests of the command and of the Python package."""
import struct


def varint(number):
    out = b""
    while True:
        byte, number = number & 127, number >> 7
        out += bytes([byte | (128 if number else 0)])
        if not number:
            return out


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields):
    return b"".join(field(*each) for each in fields)


def port(name, sizes, element=1):
    dims = b"".join(field(1, field(1, size) if isinstance(size, int) else field(2, size)) for size in sizes)
    return message((1, name), (2, field(1, message((1, element), (2, dims)))))


def sequence_port(name):
    """A sequence of float32 tensors."""
    return message((1, name), (2, field(4, field(1, field(1, field(1, 1))))))


def node(kind, inputs, outputs):
    return message(*[(1, name) for name in inputs], *[(2, name) for name in outputs], (4, kind))


def tensor(name, numbers):
    return message((1, len(numbers)), (2, 1), (8, name), (9, struct.pack(f"<{len(numbers)}f", *numbers)))


def model(*fields):
    return message((1, 8), (7, message(*fields)), (8, message((1, ""), (2, 13))))
