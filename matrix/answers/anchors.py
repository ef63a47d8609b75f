"""What an edit of a YAML file does beyond its place: anchors that are used elsewhere change, or go, with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.answers.edit import Action
from matrix.config.events import parser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.answers.edit import Edit
    from matrix.config.source import Document, Mark

__all__ = ["noted"]


_NAMED: Final = re.compile(rb"[\s\[{,]&([^\s\[\]{},]+)")
_USED: Final = re.compile(rb"[\s\[{,]\*([^\s\[\]{},]+)")
"""What looks like an anchor and an alias: a file where no name is both is not read through."""


class _Anchor(NamedTuple):
    """A value with an anchor: the characters from ``start`` to ``end``; ``uses`` are index and line of its aliases.

    ``column``: how far right the members of a block stand; None where it is none.
    """

    name: str
    start: int
    end: int
    column: int | None
    uses: list[tuple[int, int]]


def noted(document: Document, edit: Edit) -> Edit:
    """The edit, its note telling which other lines use the anchored value that it changes or takes away."""
    named, used = (frozenset(sign.findall(document.data)) for sign in (_NAMED, _USED))
    if edit.place is None or not named & used:
        return edit
    text = document.data.decode("utf-8-sig")
    lines = text.splitlines(keepends=True)
    line = lines[edit.place.line - 1]
    start = sum(map(len, lines[: edit.place.line - 1]))
    at = start + (edit.place.column - 1 if edit.action is Action.WRITE else len(line) - len(line.lstrip()))
    end = start + edit.place.column - 1 + len(edit.old)
    anchors = [anchor for anchor in _anchors(document, lines) if anchor.uses]
    around = [anchor for anchor in anchors if _changes(anchor, edit, at)]
    notes = [edit.note] if edit.note else []
    if around:
        uses = sorted({use for anchor in around for use in anchor.uses})
        names = " and ".join(f"&{anchor.name}" for anchor in around)
        notes.append(f"it is part of {names}, so {_numbers(uses)} {_verb(uses, 'change')} with it")
    for anchor in anchors:
        gone = anchor not in around and bool(edit.old) and at <= anchor.start < end
        if gone and (elsewhere := [use for use in anchor.uses if not at <= use[0] < end]):
            whose = f"{_numbers(elsewhere)} {_verb(elsewhere, 'use')}"
            notes.append(f"it holds &{anchor.name}, which {whose}: write that out there first")
    return edit._replace(note="; ".join(notes))


def _changes(anchor: _Anchor, edit: Edit, at: int) -> bool:
    """Whether an edit is inside the value. Below the last line of a block stands a member more, or something else."""
    if not anchor.start <= at < anchor.end:
        return False
    indent = len(edit.new) - len(edit.new.lstrip(" "))
    return edit.action is not Action.ADD or (anchor.column is not None and indent >= anchor.column)


def _numbers(uses: list[tuple[int, int]]) -> str:
    numbers = list(dict.fromkeys(str(line) for _, line in uses))
    listed = f"{', '.join(numbers[:-1])} and {numbers[-1]}" if len(numbers) > 1 else numbers[0]
    return f"line{'s' if len(numbers) > 1 else ''} {listed}"


def _verb(uses: list[tuple[int, int]], word: str) -> str:
    return word if len({line for _, line in uses}) > 1 else f"{word}s"


def _column(begun: Any, first: Mark, lines: list[str]) -> int:
    """How far right the members of a block stand: the first key, or the dash before the first member."""
    dashed = type(begun).__name__ == "SequenceStartEvent"
    return lines[first.line].rfind("-", 0, first.column) if dashed else first.column


def _anchors(document: Document, lines: list[str]) -> Iterator[_Anchor]:
    """The anchored values of a file, each with the aliases that mean it: a name may be given again."""
    found: list[_Anchor] = []
    latest: dict[str, list[tuple[int, int]]] = {}
    open_ones: list[tuple[Any, int | None]] = []
    get_event = parser(document.data)
    while (event := get_event()) is not None:
        kind = type(event).__name__
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            begun, column = open_ones.pop()
            if begun.anchor:
                end = event.end_mark.index
                place = None if begun.flow_style else column
                found.append(_Anchor(begun.anchor, begun.start_mark.index, end, place, latest[begun.anchor]))
            continue
        if open_ones and open_ones[-1][1] is None:
            open_ones[-1] = (open_ones[-1][0], _column(open_ones[-1][0], event.start_mark, lines))
        if kind == "AliasEvent":
            latest[event.anchor].append((event.start_mark.index, event.start_mark.line + 1))
        elif kind in ("MappingStartEvent", "SequenceStartEvent", "ScalarEvent"):
            if event.anchor:
                latest[event.anchor] = []
            if kind == "ScalarEvent" and event.anchor:
                uses = latest[event.anchor]
                found.append(_Anchor(event.anchor, event.start_mark.index, event.end_mark.index, None, uses))
            elif kind != "ScalarEvent":
                open_ones.append((event, None))
    return iter(sorted(found, key=lambda anchor: anchor.start))
