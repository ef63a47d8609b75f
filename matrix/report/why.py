"""Why a point is there or not, as text for people and as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.answers.edit import Action
from matrix.points.parts import parts_of, topology_fields
from matrix.report.show import row_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matrix.answers.edit import Edit
    from matrix.answers.verdicts import Absence, Cause, Fact, Near, Presence
    from matrix.findings import Span

__all__ = ["absence_record", "absence_text", "absences_text", "edit_words", "presence_record", "presence_text"]

_INDENT: Final = "  "
_CURE: Final = "to have it"
_ONE_LINE: Final = 80
_SHOWN: Final = 5
"""Ids of one cause that are listed before the rest is counted."""


def presence_text(answer: Presence, where: str, width: int, *, whole: bool = True) -> Iterator[str]:
    """A point that is there: what it comes from, what kept it, and, ``whole``, its row."""
    yield answer.id
    yield f"{_INDENT}is in {where}"
    yield ""
    yield from _facts((*answer.declared, *answer.kept), width)
    if answer.without is not None:
        yield from _edit_lines("to remove", answer.without, _room(answer.declared + answer.kept), width)
    if answer.labels:
        yield ""
        yield f"{_INDENT}as a sweep of the whole search space:"
        yield from _facts(answer.labels, width)
    if whole and answer.sources:
        yield ""
        yield from row_text(answer.row, answer.sources, width)


def _facts(facts: Sequence[Fact], width: int) -> Iterator[str]:
    for fact in facts:
        yield from _entry(fact.rule, fact.text, fact.place, _room(facts), width)


def _room(facts: Sequence[Fact]) -> int:
    return max(len("to remove"), *(len(fact.rule) for fact in facts))


def absence_text(answer: Absence, where: str, width: int) -> Iterator[str]:
    """A point that is not there: each cause with its cure, and the nearest points."""
    yield answer.id
    yield f"{_INDENT}{'is not in' if answer.declared else 'is no point of'} {where}"
    yield ""
    room = max(len(_CURE), *(len(cause.rule) for cause in answer.causes))
    for cause in answer.causes:
        yield from _cause_lines(cause, room, width)
    for number, near in enumerate(answer.near):
        yield f"{_INDENT}{'nearest' if number == 0 else '':{room}}  {near.id}"
        for line in _wrapped(_differ(answer.id, near), room + 2, width):
            yield f"{_INDENT}{'':{room}}    {line}"


def _differ(asked: str, near: Near) -> str:
    """The fields in which a near point differs. Topologies of two kinds have no size in common, and are told whole."""
    one, other = parts_of(asked), parts_of(near.id)
    told = near.differ
    if one is not None and other is not None:
        sizes, others = topology_fields(one.topology).keys(), topology_fields(other.topology).keys()
        if sizes != others:
            own = ("topology", one.topology, other.topology)
            told = (*(field for field in told if field[0] not in {"topology", *sizes, *others}), own)
    return "; ".join(f"{name} {there}, not {wanted}" for name, wanted, there in told)


def absences_text(answers: Sequence[Absence], where: str, width: int) -> Iterator[str]:
    """Many points that are not there, those of one cause together."""
    for members in _grouped(answers):
        count = len(members)
        yield f"{count} {'point is' if count == 1 else 'points are'} not in {where}"
        room = max(len(_CURE), *(len(cause.rule) for cause in members[0].causes))
        for cause in members[0].causes:
            yield from _cause_lines(cause if _alike(members) else cause._replace(edits=()), room, width)
        for number, one in enumerate(members[:_SHOWN]):
            yield f"{_INDENT}{('point' if count == 1 else 'points') if number == 0 else '':{room}}  {one.id}"
        if count > _SHOWN:
            yield f"{_INDENT}{'':{room}}  … {count - _SHOWN} more; --format json lists all"
        yield ""


def _grouped(answers: Iterable[Absence]) -> Iterator[list[Absence]]:
    def key(one: Absence) -> tuple[tuple[str, str], ...]:
        return tuple((cause.rule, cause.reason) for cause in one.causes)

    groups: dict[tuple[tuple[str, str], ...], list[Absence]] = {}
    for one in answers:
        groups.setdefault(key(one), []).append(one)
    return iter(groups.values())


def _alike(members: Sequence[Absence]) -> bool:
    edits = [tuple(cause.edits for cause in one.causes) for one in members]
    return all(one == edits[0] for one in edits)


def _cause_lines(cause: Cause, room: int, width: int) -> Iterator[str]:
    yield from _entry(cause.rule, cause.reason, cause.place, room, width)
    for number, edit in enumerate(cause.edits):
        yield from _edit_lines(_CURE if number == 0 else "or", edit, room, width)


def _entry(rule: str, text: str, place: Span | None, room: int, width: int) -> Iterator[str]:
    lines = _wrapped(text, room, width) or [""]
    end = f"  # {place}" if place is not None else ""
    for number, line in enumerate(lines):
        head = f"{_INDENT}{rule if number == 0 else '':{room}}  {line}"
        last = number == len(lines) - 1
        if last and end and len(head) + len(end) > width:
            yield head
            yield f"{_INDENT}{'':{room}}{end}"
        else:
            yield (head + end if last else head).rstrip()


def _edit_lines(title: str, edit: Edit, room: int, width: int) -> Iterator[str]:
    words, block = edit_words(edit)
    for number, line in enumerate(_wrapped(words, room, width)):
        yield f"{_INDENT}{title if number == 0 else '':{room}}  {line}"
    # As they stand in the file, blanks and all, so that they can be pasted.
    yield from block


def edit_words(edit: Edit) -> tuple[str, tuple[str, ...]]:
    """An edit as a sentence, and the lines that go with it as they are."""
    note = f" ({edit.note})" if edit.note else ""
    match edit.action:
        case Action.WRITE:
            words, block = _writing(edit, note)
            return words, block
        case Action.ADD:
            where = f" below line {edit.place.line} of {edit.place.file}" if edit.place is not None else ""
            return f"add{where}{note}:", tuple(edit.new.rstrip("\n").split("\n"))
        case Action.REMOVE:
            return f"remove {_lines(edit)}{note}", ()
        case Action.OPTION if not edit.new:
            words = f"leave out {edit.old}"
        case Action.OPTION:
            words = f"give {edit.new} for {edit.old}" if edit.old else f"give {edit.new}"
        case Action.LABEL if not edit.new:
            words = f"take the label {edit.old} off the pull request"
        case Action.LABEL:
            words = f"set the label {edit.new}" + (f" in place of {edit.old}" if edit.old else "")
        case Action.COMMENT:
            words = f"delete the comment with {edit.old}"
    return f"{words}{note}", ()


def _writing(edit: Edit, note: str) -> tuple[str, tuple[str, ...]]:
    old, new, place = edit.old, edit.new, edit.place
    if not old or not new:
        return f"{'remove' if old else 'write'} at {place}{note}:", tuple((old or new).splitlines())
    if len(old) + len(new) < _ONE_LINE and "\n" not in old + new:
        return f"write {new} for {old} at {place}{note}", ()
    return f"write at {place}{note} {new} for:", tuple(old.splitlines())


def _lines(edit: Edit) -> str:
    count = edit.old.count("\n") + (not edit.old.endswith("\n"))
    if edit.place is None:
        return f"{count} lines"
    first = edit.place.line
    return f"line{f' {first}' if count == 1 else f's {first} to {first + count - 1}'} of {edit.place.file}"


def _wrapped(text: str, room: int, width: int) -> list[str]:
    """Prose in lines that fit; words are never cut, because ids and places are copied."""
    from textwrap import wrap

    return wrap(text, max(30, width - room - 4), break_long_words=False, break_on_hyphens=False)


# -- for programs ------------------------------------------------------------------------------------------------------


def presence_record(answer: Presence, where: str) -> dict[str, Any]:
    """A point that is there."""
    return {
        "version": 1,
        "id": answer.id,
        "answer": "present",
        "where": where,
        "declared": [_fact(fact) for fact in answer.declared],
        "kept": [_fact(fact) for fact in answer.kept],
        "labels": [_fact(fact) for fact in answer.labels],
        "without": _edit(answer.without) if answer.without is not None else None,
        "row": dict(answer.row),
        "sources": {
            name: {"places": [str(span) for span in origin.spans], "note": origin.note}
            for name, origin in answer.sources.items()
        },
    }


def absence_record(answer: Absence, where: str) -> dict[str, Any]:
    """A point that is not there."""
    return {
        "version": 1,
        "id": answer.id,
        "answer": "absent" if answer.declared else "undeclared",
        "where": where,
        "causes": [
            {
                "rule": cause.rule,
                "reason": cause.reason,
                "place": str(cause.place) if cause.place is not None else None,
                "edits": [_edit(edit) for edit in cause.edits],
            }
            for cause in answer.causes
        ],
        "nearest": [
            {"id": near.id, "differ": [{"field": f, "asked": asked, "there": there} for f, asked, there in near.differ]}
            for near in answer.near
        ],
    }


def _fact(fact: Fact) -> dict[str, Any]:
    return {"rule": fact.rule, "text": fact.text, "place": str(fact.place) if fact.place is not None else None}


def _edit(edit: Edit) -> dict[str, Any]:
    place = edit.place
    where = None if place is None else {"file": place.file, "line": place.line, "column": place.column}
    return {"action": edit.action.value, "place": where, "old": edit.old, "new": edit.new, "note": edit.note}
