"""What changed between two sides: for a terminal, as JSON, and as Markdown for a pull request.

A difference that many points of a config share is one line, however many they are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.answers.diff import Kind, by_config
from matrix.answers.fields import ABSENT
from matrix.answers.place import is_accuracy, place_of
from matrix.report.comment import code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matrix.answers.diff import Change, ConfigDiff, Diff, Group
    from matrix.answers.fields import Field

__all__ = ["NO_CHANGE", "diff_lines", "diff_markdown", "diff_record", "summary_line"]

NO_CHANGE: Final = "no change of any job"

_SIGNS: Final = {Kind.CHANGED: "~", Kind.ADDED: "+", Kind.REMOVED: "-", Kind.RENAMED: "="}
_ELSEWHERE: Final = "something that a plan file does not hold: resolved recipe, golden length, patches or pin"
_MOST_GROUPS: Final = 12
_MOST_PLACES: Final = 6
_LONGEST: Final = 100
"""Characters of one value, where not everything is shown."""
_HASH: Final = frozenset("0123456789abcdef")


class _Said(NamedTuple):
    """A group in words: ``what`` it is, with its values as text, and ``where``."""

    kind: Kind
    path: str
    old: str
    new: str
    where: str
    changes: tuple[Change, ...]

    @property
    def what(self) -> str:
        return f"{self.path}: {self.old} -> {self.new}" if self.old or self.new else self.path


def diff_lines(diff: Diff, width: int, *, full: bool = False) -> Iterator[str]:
    """For a terminal of ``width`` columns; ``full`` clips nothing and lists every id."""
    if not diff.changes:
        yield NO_CHANGE
        return
    yield f"{diff.before} -> {diff.after}"
    yield ""
    for config in by_config(diff):
        yield from _config_lines(config, width, full=full)
    yield ""
    yield from _wrapped(summary_line(diff_record(diff)), width, "", "  ")


def _config_lines(config: ConfigDiff, width: int, *, full: bool) -> Iterator[str]:
    said = list(_said(config, full=full))
    head = f"{config.key}: {_heading(config)}"
    whole = {change.kind for change in config.changes} == {Kind.REMOVED if config.before else Kind.ADDED}
    whole = whole and not (config.before and config.points)
    if len(said) == 1 and not full:
        line = head if whole else f"{head}; {_line(said[0])}"
        if whole or len(line) <= width:
            yield from _wrapped(line, width, "", "  ")
            return
    yield from _wrapped(head, width, "", "  ")
    shown = said if full or len(said) <= _MOST_GROUPS + 1 else said[:_MOST_GROUPS]
    for one in shown:
        yield from _wrapped(f"{_SIGNS[one.kind]} {_line(one)}", width, "  ", "      ")
        for change in one.changes if full else ():
            yield f"      {f'{change.was} -> ' if change.was else ''}{change.id}"
    if len(shown) < len(said):
        yield f"  … {len(said) - len(shown):,} more differences; --full shows them"


def _line(one: _Said) -> str:
    return f"{one.what} ({one.where})" if one.what else one.where


def diff_record(diff: Diff, *, full: bool = False) -> dict[str, Any]:
    """For machines: totals, and by config each difference with where it is; ``full`` adds every point's own."""
    record: dict[str, Any] = {
        "version": 1,
        "before": diff.before,
        "after": diff.after,
        "same": not diff.changes,
        "points": {kind.value: diff.count(kind) for kind in Kind},
        "jobs": [diff.old.jobs, diff.new.jobs],
        "gpu-hours": [round(diff.old.gpu_hours, 3), round(diff.new.gpu_hours, 3)],
        "jobs-of-unknown-length": [diff.old.untimed, diff.new.untimed],
        "configs": [
            {
                "key": config.key,
                "points": [config.before, config.points],
                "gpu-hours": round(config.hours, 3),
                "differences": [
                    {
                        "kind": one.kind.value, "what": one.path, "old": one.old, "new": one.new, "where": one.where,
                        "points": len(one.changes),
                    }
                    for one in _said(config, full=False)
                ],
            }
            for config in by_config(diff)
        ],
    }  # fmt: skip
    if full:
        record["changes"] = [
            {
                "kind": change.kind.value,
                "config-key": change.config,
                "id": change.id,
                **({"was": change.was} if change.was else {}),
                "gpu-hours": round(change.hours, 3),
                "fields": list(map(_field_record, change.fields)),
            }
            for change in diff.changes
        ]
    return record


def _field_record(field: Field) -> dict[str, Any]:
    """A value that is not there has no key."""
    values = {name: value for name, value in (("old", field.old), ("new", field.new)) if value is not ABSENT}
    return {"path": field.path, **values}


def diff_markdown(record: Mapping[str, Any], room: int | None = None, more: str = "") -> Iterator[str]:
    """As Markdown, out of a record of `diff_record`, in about ``room`` bytes; ``more`` says where the rest is.

    Values come from files that strangers can write, so they stand in code spans.
    """
    if record.get("same"):
        yield NO_CHANGE
        return
    yield f"{code(str(record['before']))} to {code(str(record['after']))}: {summary_line(record)}"
    lines = list(_rows(record))
    shown: list[str] = []
    for line in lines:
        room = None if room is None else room - len(line.encode()) - 1
        if room is not None and room < 0:
            break
        shown.append(line)
    if shown:
        yield from ("", *_TABLE, *shown)
    if len(shown) < len(lines):
        yield from ("", f"… {len(lines) - len(shown):,} more{more}")


_TABLE: Final = ("| config | | points |", "|---|---|---|")


def _rows(record: Mapping[str, Any]) -> Iterator[str]:
    for config in record["configs"]:
        key = _cell(str(config["key"]))
        for one in config["differences"]:
            what = Kind(one["kind"]).value + (f" {_cell(str(one['what']))}" if one["what"] else "")
            if one["old"] or one["new"]:
                what += f": {_cell(str(one['old']))} to {_cell(str(one['new']))}"
            yield f"| {key} | {what} | {_cell(str(one['where']))} |"
            key = ""


def _cell(text: str) -> str:
    return code(text).replace("|", "\\|")


def summary_line(record: Mapping[str, Any]) -> str:
    """The totals in one line."""
    kinds = [f"{count:,} {kind}" for kind in Kind if (count := record["points"][kind])]
    parts = [f"{_counted(len(record['configs']), 'config')}: {', '.join(kinds)}"]
    parts.append(f"{_from_to(*record['jobs'])} jobs")
    old, new = record["gpu-hours"]
    if old or new:
        untimed = record["jobs-of-unknown-length"][1]
        more = [f"{new - old:+,.0f}"] if old != new else []
        more += [f"{_counted(untimed, 'job')} of unknown length"] if untimed else []
        parts.append(f"{_from_to(old, new)} GPU-hours" + (f" ({', '.join(more)})" if more else ""))
    return "; ".join(parts)


def _from_to(old: float, new: float) -> str:
    return f"{old:,.0f}" if old == new else f"{old:,.0f} -> {new:,.0f}"


def _heading(config: ConfigDiff) -> str:
    counts = {kind: sum(change.kind is kind for change in config.changes) for kind in Kind}
    if counts[Kind.ADDED] == config.points and not config.before:
        text = f"new config, {_counted(config.points, 'point')}"
    elif not config.points:
        text = f"config removed, {_counted(config.before, 'point')}"
    else:
        text = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    return text + _hours(config.hours)


def _hours(hours: float) -> str:
    return f", {hours:+,.0f} GPU-hours" if round(hours) else ""


def _said(config: ConfigDiff, *, full: bool) -> Iterator[_Said]:
    for group in config.groups:
        if group.kind is Kind.RENAMED:
            yield from _renamed(group, config)
            continue
        where = _where(group, config, full=full)
        if group.field is None:
            path = _ELSEWHERE if group.kind is Kind.CHANGED else ""
            yield _Said(group.kind, path, "", "", where, group.changes)
        else:
            old, new = _values(group.field, full=full)
            yield _Said(group.kind, group.field.path, old, new, where, group.changes)


def _renamed(group: Group, config: ConfigDiff) -> Iterator[_Said]:
    """Of a config that has a new key one line; of points within a config their old places."""
    homes: dict[str, list[Change]] = {}
    for change in group.changes:
        homes.setdefault(change.was.split("--", 1)[0], []).append(change)
    for key, changes in homes.items():
        count = _counted(len(changes), "point")
        if key != config.key:
            text = f"{'all ' if len(changes) == config.points else ''}{count}, the same jobs under another id"
            yield _Said(Kind.RENAMED, f"was {key}", "", "", text, tuple(changes))
            continue
        pairs = [f"{_rest(one.was)} -> {_rest(one.id)}" for one in changes[:_MOST_PLACES]]
        pairs += [f"… {len(changes) - len(pairs):,} more"] if len(pairs) < len(changes) else []
        text = f"{count}, the same jobs under another id"
        yield _Said(Kind.RENAMED, ", ".join(pairs), "", "", text, tuple(changes))


def _rest(name: str) -> str:
    return name.partition("--")[2] or name


def _where(group: Group, config: ConfigDiff, *, full: bool) -> str:
    """The points of a group, compactly: all of them, or their places with the concurrencies of each."""
    changes = group.changes
    count = _counted(len(changes), "point")
    if (everything := _everything(group, config)) is not None:
        return everything
    if full:
        return count
    homes: dict[tuple[str, ...], list[str]] = {}
    places = [place_of(change.id, config.key) for change in changes]
    several = len({place._replace(variant="") for place in places}) < len(places)
    for place in places:
        accuracy = {"": "", "eval": "accuracy"}.get(place.accuracy, place.accuracy.replace("eval-", "accuracy with "))
        where = (place.scenario, place.topology, place.variant if several else "", place.node, accuracy)
        homes.setdefault(where, []).append(f"c{'-'.join(map(str, place.concs))}" if place.concs else "")
    listed = []
    for key, concs in homes.items():
        listed.append(" ".join(filter(None, (*key[:-1], *concs, key[-1]))))
    shown = listed[:_MOST_PLACES]
    if len(shown) < len(listed):
        shown.append(f"… {len(listed) - len(shown):,} more places")
    return ", ".join(shown) if len(changes) == 1 else f"{count}: {'; '.join(shown)}"


def _everything(group: Group, config: ConfigDiff) -> str | None:
    """The points of a group by what they are all of: its config, the throughput points or the accuracy runs of it."""
    number = len(group.changes)
    if group.kind is not Kind.CHANGED:
        most = config.before if group.kind is Kind.REMOVED else config.points
        return f"all {_counted(number, 'point')}" if number == most > 1 else None
    kinds = {is_accuracy(change.id) for change in group.changes}
    added = [is_accuracy(change.id) for change in config.changes if change.kind is Kind.ADDED]
    stay = {True: config.accuracy - added.count(True)}
    stay[False] = config.points - config.accuracy - added.count(False)
    if number == stay[True] + stay[False] > 1:
        noun, come = "point", len(added)
    elif kinds == {True} and number == stay[True] > 1:
        noun, come = "accuracy run", added.count(True)
    elif kinds == {False} and number == stay[False] > 1:
        noun, come = "throughput point", added.count(False)
    else:
        return None
    return f"all {_counted(number, noun)}{' that stay' if come else ''}"


def _values(field: Field, *, full: bool) -> tuple[str, str]:
    """The two values as text. Of two long lists what one has and the other has not."""
    old, new = field.old, field.new
    texts = _value(old), _value(new)
    if full:
        return texts
    if isinstance(old, list) and isinstance(new, list) and max(map(len, texts)) > _LONGEST:
        left, right = [_value(one) for one in old], [_value(one) for one in new]
        texts = _besides(left, right), _besides(right, left)
    one, other = texts
    return _clipped(one), _clipped(other)


def _besides(members: Sequence[str], others: Sequence[str]) -> str:
    """A list by what it has and another one has not."""
    own = [member for member in members if member not in others]
    return f"[…, {', '.join(own)}]" if own else "[…]"


def _value(value: Any) -> str:
    if value is ABSENT:
        return "(absent)"
    if isinstance(value, str):
        return value[:12] if len(value) in (40, 64) and set(value) <= _HASH else value or '""'
    return json.dumps(value, separators=(", ", ": "))


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _wrapped(text: str, width: int, first: str, rest: str) -> Iterable[str]:
    from textwrap import wrap

    return wrap(
        text, max(width, 40), initial_indent=first, subsequent_indent=rest, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
