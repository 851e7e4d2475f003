# SPDX-License-Identifier: Apache-2.0
# The extension, for type checkers: its functions are declared by the headers of C, which they do not read.
from typing import Any, Callable, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

class _Declared:
    def def_extern(self, *, name: str = ..., error: Any = ..., onerror: Any = ...) -> Callable[[_Function], _Function]: ...
    def __getattr__(self, name: str) -> Any: ...

ffi: _Declared
lib: Any
