"""What an answer is made of: a point that is there and what kept it, or one that is not and what removed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from matrix.answers.edit import Edit
    from matrix.findings import Span
    from matrix.points.point import Point
    from matrix.points.provenance import Source

__all__ = ["Absence", "Cause", "Fact", "Ground", "Near", "Presence", "placed"]


class Fact(NamedTuple):
    """One thing that kept a point, or would: ``rule`` names it, ``text`` says how, ``place`` is where it is written."""

    rule: str
    text: str
    place: Span | None = None


class Cause(NamedTuple):
    """What removes a point: the rule, the reason, where that is written, and the edits of which each one cures it."""

    rule: str
    reason: str
    place: Span | None = None
    edits: tuple[Edit, ...] = ()


class Near(NamedTuple):
    """A point that is there: field, value asked for, value of this one, of everything in which the two differ."""

    id: str
    differ: tuple[tuple[str, str, str], ...]


class Presence(NamedTuple):
    """A point that is there.

    ``point`` is None where a plan file is all that is known, then ``sources`` are empty. ``declared``: where it comes
    from. ``kept``: the selectors, entries and labels that let it pass, in their order. ``labels``: what each label
    would do with it. ``without``: an edit that would remove it.
    """

    id: str
    row: Mapping[str, object]
    point: Point | None = None
    sources: Mapping[str, Source] = {}
    declared: tuple[Fact, ...] = ()
    kept: tuple[Fact, ...] = ()
    labels: tuple[Fact, ...] = ()
    without: Edit | None = None


class Absence(NamedTuple):
    """A point that is not there.

    ``causes``: everything that removes it, what comes first first; each has to be cured. ``declared`` is false for an
    id that the search space never makes. ``near``: the points that come closest to such an id.
    """

    id: str
    causes: tuple[Cause, ...]
    declared: bool = True
    near: tuple[Near, ...] = ()


class Ground(Protocol):
    """What is asked about: a search space, a change, a plan file."""

    @property
    def where(self) -> str:
        """What people call it."""

    def ids(self) -> Iterable[str]:
        """Every id that a pattern can mean: of points that are in it, and of those that could be."""

    def holds(self, name: str) -> bool:
        """Whether an id is in it."""

    def answer(self, name: str) -> Presence | Absence:
        """The answer for one id."""


def placed(answer: Presence | Absence, place: Callable[[Span], Span]) -> Presence | Absence:
    """An answer with every place told another way."""

    def at(span: Span | None) -> Span | None:
        return place(span) if span is not None else None

    def edited(edit: Edit) -> Edit:
        return edit._replace(place=at(edit.place))

    if isinstance(answer, Absence):
        causes = (
            cause._replace(place=at(cause.place), edits=tuple(map(edited, cause.edits))) for cause in answer.causes
        )
        return answer._replace(causes=tuple(causes))
    origins = {name: source._replace(spans=tuple(map(place, source.spans))) for name, source in answer.sources.items()}
    return answer._replace(
        sources=origins,
        declared=tuple(fact._replace(place=at(fact.place)) for fact in answer.declared),
        kept=tuple(fact._replace(place=at(fact.place)) for fact in answer.kept),
        labels=tuple(fact._replace(place=at(fact.place)) for fact in answer.labels),
        without=edited(answer.without) if answer.without is not None else None,
    )
