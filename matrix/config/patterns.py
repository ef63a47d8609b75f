"""Regular expressions of a library that are compiled when they are used, not when it is imported.

PyYAML compiles those of its reader, resolver and constructor as it is imported: 6 ms of every command, and none of them
is needed where libyaml reads the file.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["patterns_postponed"]

_compile: Final = re.compile


class _Postponed:
    """Stands for ``re.compile(*wanted)``, whose methods and attributes it has."""

    __slots__ = ("_made", "_wanted")

    def __init__(self, *wanted: Any) -> None:
        self._wanted = wanted
        self._made: re.Pattern[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = _compile(*self._wanted)
        return getattr(self._made, name)


@contextmanager
def patterns_postponed() -> Iterator[None]:
    """As long as the context lasts, ``re.compile`` only notes what is to be compiled.

    Around the import of a library that calls methods of its patterns, as PyYAML does, and around no more than that: the
    functions of ``re`` take no pattern that is not compiled.
    """
    re.compile = _Postponed  # type: ignore[assignment]
    try:
        yield
    finally:
        re.compile = _compile
