"""A place in a document: the path to a value in the file's own words, its line and column, its text as written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import Map, Seq, WrittenFloat
from matrix.findings import Finding, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matrix.config.source import Document, Mark
    from matrix.findings import Related

__all__ = ["Place", "joined"]

_LONGEST: Final = 60
_PROPERTIES: Final = re.compile(r"\A(?:[&!]\S* )+")
"""An anchor or a tag before a scalar."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A value and the way to it. ``titled``: the first step is the title of a section, as in ``my-config: scenarios``.

    >>> from matrix.config.source import loads
    >>> place = Place.root(loads(b"labels: {mi355x: [a, 7]}", "r.yaml")).down(["labels", "mi355x", 1])
    >>> print(place, place.span, place.written)
    labels.mi355x[1] r.yaml:1:22 7
    """

    document: Document
    value: Any
    steps: tuple[str | int, ...] = ()
    holder: Map | Seq | None = None
    titled: bool = False

    @classmethod
    def root(cls, document: Document, *, titled: bool = False) -> Place:
        """The document as a whole."""
        return cls(document, document.root, titled=titled)

    def at(self, step: str | int) -> Place:
        """One step down: to the value of a key, or to a member of a list. It must exist."""
        return Place(self.document, self.value[step], (*self.steps, step), self.value, self.titled)

    def down(self, steps: Iterable[str | int]) -> Place:
        """Several steps down."""
        place = self
        for step in steps:
            place = place.at(step)
        return place

    def maps(self, key: str) -> Iterator[Place]:
        """The mappings in the list under a key; none where there is no list."""
        if isinstance(self.value, Map) and isinstance(self.value.get(key), Seq):
            members = self.at(key)
            for index, member in enumerate(members.value):
                if isinstance(member, Map):
                    yield members.at(index)

    def __str__(self) -> str:
        if not self.steps:
            return "the file"
        words = _word(self.steps[0])
        separator = ": " if self.titled else "."
        for step in self.steps[1:]:
            words += f"[{step}]" if isinstance(step, int) else f"{separator}{_word(step)}"
            separator = "."
        return words

    @property
    def span(self) -> Span:
        """Where the value begins."""
        mark = self._mark
        return self.document.span(mark) if mark is not None else Span(self.document.name, 1, 1)

    @property
    def title_span(self) -> Span:
        """Where people look for a mapping: at its key, not at the first member below it."""
        return self.document.of_key(self.holder, self.steps[-1]) if isinstance(self.holder, Map) else self.span

    @property
    def written(self) -> str:
        """The value as the file spells it, quotes and all, and shortened; a mapping or list is only called so."""
        value, mark = self.value, self._mark
        if isinstance(value, Map):
            return "a mapping"
        if isinstance(value, Seq):
            return "a list" if value else "an empty list"
        text = " ".join(self.document.written(mark).split()) if mark is not None else ""
        text = _printable(_PROPERTIES.sub("", text) or _spelled(value))
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

    def fault(
        self,
        rule: str,
        message: str,
        fix: str,
        *,
        title: bool = False,
        span: Span | None = None,
        related: tuple[Related, ...] = (),
    ) -> Finding:
        """A finding here; the message goes on from the path. ``title``: at the key, not at the value."""
        where = span or (self.title_span if title else self.span)
        return Finding(rule=rule, message=f"{self} {message}", fix=fix, span=where, related=related)

    @property
    def _mark(self) -> Mark | None:
        if isinstance(self.holder, Map):
            return self.holder.marks[self.steps[-1]][1]
        if isinstance(self.holder, Seq):
            index = self.steps[-1]
            return self.holder.marks[index] if isinstance(index, int) else None
        return self.value.mark if isinstance(self.value, (Map, Seq)) else None


def _spelled(value: Any) -> str:
    """A scalar that stands behind an alias."""
    if isinstance(value, WrittenFloat):
        return value.text
    if isinstance(value, str):
        return f"'{value}'"
    return "null" if value is None else str(value).lower()


def _word(step: str | int) -> str:
    """A key as a word of a sentence: quoted where it would not look like one."""
    word = _printable(str(step))
    return word if word and word == word.strip() else f"'{word}'"


def _printable(text: str) -> str:
    """Text of a file, harmless on a terminal and in a line of a log."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def joined(names: Iterable[str], last: str = "and", *, most: int = 12) -> str:
    """Names as a phrase.

    >>> joined(["tp", "ep", "pp"])
    'tp, ep and pp'
    >>> joined(["tp", "ep", "pp"], most=2)
    'tp and 2 more'
    """
    shown = list(names)
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    *front, end = shown
    return f"{', '.join(front)} {last} {end}" if front else end
