"""A passage: the text that stands for a value in its file, from its first character to behind its last one.

Marks say where a value begins. Where it ends is asked by advice alone, so it is read off the parser's events again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from matrix.config.events import parser

if TYPE_CHECKING:
    from matrix.config.source import Document, Mark
    from matrix.findings import Span

__all__ = ["Passage", "opening", "passage_at"]

_ANCHOR: Final = re.compile(r"&[^\s\[\]{},]+\s+")


class Passage(NamedTuple):
    """``start`` and ``end`` are indices of characters in ``whole``, the text of the file."""

    name: str
    whole: str
    start: int
    end: int

    @property
    def text(self) -> str:
        """What is written there."""
        return self.whole[self.start : self.end]

    @property
    def span(self) -> Span:
        """Where it begins."""
        return self._span(self.start)

    @property
    def line(self) -> int:
        """The line, from 1, that it begins in."""
        return self.whole.count("\n", 0, self.start) + 1

    @property
    def last_line(self) -> int:
        """The line, from 1, that it ends in."""
        return self.whole.count("\n", 0, self.end) + 1

    @property
    def end_span(self) -> Span:
        """The place behind its last character."""
        return self._span(self.end)

    @property
    def indent(self) -> int:
        """How far right it begins: characters before it in its line, among them the dash of a list."""
        return self.start - (self.whole.rfind("\n", 0, self.start) + 1)

    @property
    def lines(self) -> str:
        """All of the lines that it is in."""
        start = self.whole.rfind("\n", 0, self.start) + 1
        end = self.whole.find("\n", self.end)
        return self.whole[start : len(self.whole) if end < 0 else end + 1]

    @property
    def before(self) -> str:
        """What stands before it in its line."""
        return self.whole[self.whole.rfind("\n", 0, self.start) + 1 : self.start]

    @property
    def behind(self) -> str:
        """What stands behind it in its last line."""
        end = self.whole.find("\n", self.end)
        return self.whole[self.end : len(self.whole) if end < 0 else end]

    @property
    def bare(self) -> Passage:
        """Without the anchor that it begins with, if any."""
        anchor = _ANCHOR.match(self.whole, self.start, self.end)
        return self._replace(start=anchor.end()) if anchor else self

    def _span(self, index: int) -> Span:
        from matrix.findings import Span

        line = self.whole.count("\n", 0, index) + 1
        return Span(self.name, line, index - (self.whole.rfind("\n", 0, index) + 1) + 1)


def opening(whole: str, mark: Mark) -> str:
    """The character that the value at a mark begins with, behind its anchor if any: a bracket where it is flow."""
    anchor = _ANCHOR.match(whole, mark.index)
    return whole[anchor.end() if anchor else mark.index]


def passage_at(document: Document, mark: Mark) -> Passage:
    """The passage of the value that begins at a mark.

    A block ends behind the last character of its last member: blank lines and comments below it are not part of it.
    """
    whole = document.data.decode("utf-8-sig")
    get_event = parser(document.data)
    depth, end, inside = 0, mark.index, False
    while (event := get_event()) is not None:
        kind = type(event).__name__
        if not inside and kind.endswith(("StartEvent", "ScalarEvent", "AliasEvent")) and kind[:6] not in _OUTER:
            inside = event.start_mark.index == mark.index
            if not inside:
                continue
        if not inside:
            continue
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            depth += 1
            end = max(end, event.end_mark.index)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            depth -= 1
            # The end of a block has no text of its own: its mark is where the next thing begins.
            if whole[event.start_mark.index : event.end_mark.index] in ("]", "}"):
                end = max(end, event.end_mark.index)
        else:
            end = max(end, event.start_mark.index + len(whole[event.start_mark.index : event.end_mark.index].rstrip()))
        if depth == 0:
            break
    return Passage(document.name, whole, mark.index, end)


_OUTER = ("Stream", "Docume")
