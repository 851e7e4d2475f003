# SPDX-License-Identifier: Apache-2.0
"""The progress bar of a training: tqdm's where it is installed, otherwise a line on the terminal."""
from __future__ import annotations

import importlib
import math
import sys
import time
from typing import Any, Optional


class _Line:
    """What stands in for tqdm: a line that is written over, ten times a second at most."""

    def __init__(self, total: int, initial: int) -> None:
        self.total, self.n, self._written, self._words = total, initial, 0.0, ""

    def set_postfix_str(self, words: str, refresh: bool = False) -> None:
        self._words = words

    def update(self, steps: int) -> None:
        self.n += steps
        now = time.monotonic()
        if now - self._written > 0.1 or self.n >= self.total:
            self._written = now
            print(f"\rstep {self.n} of {self.total} {self._words}\x1b[K", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(file=sys.stderr)


def _bar() -> Any:
    try:
        return importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return _Line


class Progress:
    """`given`: True, or a class like tqdm.tqdm."""

    def __init__(self, given: Any, step: int, last: int) -> None:
        self._bar: Any = (_bar() if given is True else given)(total=last, initial=step)
        self._step, self._metric = step, ""

    def stepped(self, info: Any) -> None:
        loss = info.loss[0]
        words = [] if math.isnan(loss) else [f"loss {loss:.4g}"]
        self._bar.set_postfix_str(", ".join([*words, *([self._metric] if self._metric else [])]), refresh=False)
        self._bar.update(info.step - self._step)
        self._step = info.step

    def validated(self, score: Optional[Any]) -> None:
        if score is not None:
            self._metric = f"validation {score.metric:.4g}"

    def close(self) -> None:
        self._bar.close()
