"""Where the members of mappings and lists stand, found again in the bytes of a file that was read without noting it.

Noting two marks per member is an eighth of what reading a master costs, and a run without complaints asks for a dozen
of them. So they are looked up: the first few times by parsing the one mapping or list again, then by going once through
the whole file. Both are held to what noting them gives by a test.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from matrix.config.events import CollectionEndEvent, CollectionStartEvent, NodeEvent, YAMLError, parser
from matrix.config.nodes import Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


__all__ = ["Places"]

_FEW: Final = 40
"""So many lookups one by one cost about as much as one pass over a large master."""

_PIECES: Final = (4 * 1024, 32 * 1024)
"""Bytes that hold most mappings up to their last key, and nearly all but that of a whole file."""

_STEP: Final = 2 * 1024
"""Bytes between which characters are counted."""

_INNER: Final = bytes(range(0x80, 0xC0))
"""What no character of UTF-8 begins with."""


class Places:
    """The places in one file. ``data``: its bytes, which a parser has read to their end."""

    __slots__ = ("_asked", "_before", "_known", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data.removeprefix(BOM_UTF8)
        self._asked = 0
        self._before = [0]
        self._known: dict[int, list[Mark]] | None = None

    def members(self, mark: Mark, count: int) -> list[Mark]:
        """The marks of the ``count`` nodes in the mapping (keys and values in turn) or list that begins at ``mark``."""
        self._asked += 1
        if self._known is None and self._asked <= _FEW:
            for size in _PIECES:
                found = self._near(mark, count, size)
                if len(found) == count:
                    return found
        if self._known is None:
            self._known = _all(parser(self.data))
        return self._known[mark.index]

    def _near(self, mark: Mark, count: int, size: int) -> list[Mark]:
        """Parse what begins at the mark by itself, until its members were met. Fewer, where it does not stand alone."""
        begin, indent = self._offset(mark.index), mark.column
        piece = self.data[begin : begin + size]
        cut = begin + size < len(self.data)
        if cut:
            piece = piece[: piece.rfind(b"\n") + 1]
        get_event = parser(b" " * indent + piece)
        found: list[Mark] = []
        try:
            for place in islice(_members(get_event), count):
                moved = Mark(place.line + mark.line, place.column, place.index + mark.index - indent)
                found.append(moved)
            after = get_event() if cut else None
            if cut and (after is None or after.start_mark.line >= piece.count(b"\n")):
                return []  # what comes behind the cut might belong to the last one
        except YAMLError:
            return [] if cut else found
        return found

    def _offset(self, index: int) -> int:
        """Where a character begins in the bytes, by counts a step: the whole text would be much memory."""
        data = self.data
        if data.isascii():
            return index
        known = self._before
        while known[-1] <= index and len(known) * _STEP < len(data):
            step = data[(len(known) - 1) * _STEP : len(known) * _STEP]
            known.append(known[-1] + (len(step) if step.isascii() else len(step.translate(None, _INNER))))
        number = sum(before <= index for before in known) - 1
        step = data[number * _STEP : (number + 1) * _STEP]
        whole = step.lstrip(_INNER)
        text = whole.decode(errors="ignore")[: index - known[number]]
        return number * _STEP + len(step) - len(whole) + len(text.encode())


def _members(get_event: Callable[[], Any]) -> Iterator[Mark]:
    """The marks of the nodes right below the first mapping or list of a stream."""
    event = get_event()
    while event is not None and not isinstance(event, NodeEvent):
        event = get_event()
    depth = int(isinstance(event, CollectionStartEvent))
    while depth:
        event = get_event()
        if isinstance(event, CollectionEndEvent):
            depth -= 1
            continue
        if depth == 1:
            yield event.start_mark
        if isinstance(event, CollectionStartEvent):
            depth += 1


def _all(get_event: Callable[[], Any]) -> dict[int, list[Mark]]:
    """The marks of the nodes right below each mapping and list, by the index where that begins."""
    known: dict[int, list[Mark]] = {}
    open_ones: list[list[Mark]] = [[]]
    while (event := get_event()) is not None:
        kind, mark = type(event), event.start_mark
        if issubclass(kind, CollectionEndEvent):
            open_ones.pop()
        elif issubclass(kind, NodeEvent):
            open_ones[-1].append(mark)
            if issubclass(kind, CollectionStartEvent):
                open_ones.append(known.setdefault(mark.index, []))
    return known
