"""What reading gives: mappings and lists that know where their members stand, floats that know their digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matrix.config.places import Places

__all__ = ["MAX_DEPTH", "Map", "Mark", "Seq", "WrittenFloat", "plain"]

MAX_DEPTH: Final = 100
"""Levels of nesting; no configuration has more."""


class Mark:
    """A position: 0-based line and column, index in characters. A parser's own marks have these and serve as one."""

    __slots__ = ("column", "index", "line")

    def __init__(self, line: int, column: int, index: int) -> None:
        self.line = line
        self.column = column
        self.index = index


class Map(dict[Any, Any]):
    """A mapping; ``mark`` is where it begins, ``marks[key]`` the marks of a key and of its value.

    ``places`` is what reading leaves: key, its mark, the mark of its value, and so on in a flat list; or who finds the
    places again. Few mappings are ever asked for their marks, so only those that are get a second dict.
    """

    __slots__ = ("_marks", "mark", "places")
    mark: Mark
    places: list[Any] | Places
    _marks: dict[Any, tuple[Mark, Mark]]

    @property
    def marks(self) -> dict[Any, tuple[Mark, Mark]]:
        """The marks of each key and of its value."""
        try:
            return self._marks
        except AttributeError:
            places = self.places
            if isinstance(places, list):
                flat = iter(places)
                self._marks = {key: (mark, value_mark) for key, mark, value_mark in zip(flat, flat, flat, strict=True)}
            else:
                marks = iter(places.members(self.mark, 2 * len(self)))
                self._marks = dict(zip(self, zip(marks, marks, strict=True), strict=True))
            return self._marks

    @marks.setter
    def marks(self, marks: dict[Any, tuple[Mark, Mark]]) -> None:
        self._marks = marks


class Seq(list[Any]):
    """A list; ``mark`` is where it begins, ``marks[i]`` where member i does. ``places``: these, or who finds them."""

    __slots__ = ("mark", "places")
    mark: Mark
    places: list[Mark] | Places

    @property
    def marks(self) -> list[Mark]:
        """The mark of each member."""
        places = self.places
        if not isinstance(places, list):
            places = self.places = places.members(self.mark, len(self))
        return places


class WrittenFloat(float):
    """A float that keeps the digits of the file: ``0.80`` is exactly 80/100 in a budget."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenFloat:  # noqa: D102 - the class says it
        self = super().__new__(cls, text.replace("_", ""))
        self.text = text
        return self

    def __reduce__(self) -> tuple[type[WrittenFloat], tuple[str]]:
        return (WrittenFloat, (self.text,))


def plain(value: Any) -> Any:
    """A copy in builtin types alone, for a YAML or JSON writer."""
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return float(value) if isinstance(value, WrittenFloat) else value
