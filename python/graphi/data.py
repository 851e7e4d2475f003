# SPDX-License-Identifier: Apache-2.0
"""Data sets of files: images with labels, or text, in batches. docs/data.md lists the formats."""
from __future__ import annotations

import os
from typing import Any, Iterator, List, Tuple, Union

import numpy as np

from ._native import ffi, lib
from .arrays import pointer_to
from .errors import InvalidError, check, unknown
from .handles import Handle, OneThread, Using
from .structs import Info, as_info, fill, text, words_of


class Data(Handle):
    """One split of the data at `path`. Options are the fields of graphi_data_options in graphi/data.h: split="train", batch, seed, height,
    classes, steps, characters, ... Of one thread at a time."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], **options: Any) -> None:
        kept: List[Any] = []
        if options.get("split") == "train":
            options["split"] = lib.GRAPHI_TRAIN
        how, out = fill(ffi.new("graphi_data_options *"), options, "Data", kept), ffi.new("graphi_data **")
        check(lib.graphi_data_open(text(path, "Data"), how, out))
        self._adopt(out[0])

    def _adopt(self, pointer: Any) -> None:
        self._one = OneThread("Data")
        self._own(pointer, lib.graphi_data_close)
        self._info = self._asked()

    def _asked(self) -> Info:
        out = ffi.new("graphi_data_info *")
        with Using(self) as (pointer,):
            lib.graphi_data_get_info(pointer, out)
        return as_info(out)

    @property
    def info(self) -> Info:
        """Samples, batches, classes, sizes, as graphi_data_info."""
        self._live()
        return self._info

    def split(self, name: str, batch: int = 0) -> "Data":
        """Another split of the same files: "train", "validation" or "test"."""
        out = ffi.new("graphi_data **")
        words = words_of(ffi.typeof("graphi_data_split"))
        if name not in words:
            raise unknown("Data: split", name, words)
        with self._one, Using(self) as (pointer,):
            check(lib.graphi_data_open_split(pointer, words[name], batch, out))
        data = type(self).__new__(type(self))
        data._adopt(out[0])
        return data

    def next(self) -> Tuple[Any, Any]:
        """The next batch: inputs and targets; the last one of a split that is not trained on may be smaller."""
        info = self._info
        textual = info.format == "text"
        shape = (info.batch, info.steps) if textual else (info.batch, info.height, info.width, info.channels)
        inputs = np.empty(shape, "int32" if textual else "float32")
        targets = np.empty(shape if textual else shape[:1], "int32")
        rows = ffi.new("int64_t *")
        with self._one, Using(self) as (pointer,):
            check(lib.graphi_data_next(pointer, pointer_to(inputs), inputs.nbytes, ffi.cast("int32_t *", pointer_to(targets)), targets.nbytes,
                                       rows))
        return inputs[:rows[0]], targets[:rows[0]]

    @property
    def position(self) -> Tuple[int, int]:
        """Epoch, and the batches of it that were given."""
        with self._one, Using(self) as (pointer,):
            at = lib.graphi_data_get_position(pointer)
        return int(at.epoch), int(at.index)

    @position.setter
    def position(self, at: Tuple[int, int]) -> None:
        with self._one, Using(self) as (pointer,):
            check(lib.graphi_data_set_position(pointer, {"epoch": at[0], "index": at[1]}))

    def __iter__(self) -> Iterator[Tuple[Any, Any]]:
        """The batches from here to the end of the epoch."""
        epoch = self.position[0]
        while self.position[0] == epoch:
            yield self.next()

    def __len__(self) -> int:
        return int(self.info.batches)

    def word(self, number: int) -> bytes:
        """The token of that number."""
        length = ffi.new("size_t *")
        with self._one, Using(self) as (pointer,):
            word = lib.graphi_data_word(pointer, number, length)
            if not word:
                raise InvalidError(f"INVALID: Data: found token {number}, expected one of a text's {self._info.classes}")
            return bytes(ffi.buffer(word, length[0]))


__all__: List[str] = ["Data"]
