"""`Diff`: which jobs two sides do not have in common, and how those that changed did.

Points are paired by their ids. Equal digests are the same job, so "no change of any job" is certain: every digest was
compared, or what it is made of is known to be the same.
"""

from __future__ import annotations

import json
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from matrix.answers.fields import ABSENT, Field, compared, payload
from matrix.answers.job import Total, job_of, jobs_of, total_of
from matrix.answers.place import Place, is_accuracy, place_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from matrix.answers.side import Side

__all__ = ["Change", "ConfigDiff", "Diff", "Group", "Kind", "by_config", "difference"]


class Kind(StrEnum):
    """What became of a point."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"


class Change(NamedTuple):
    """One point that is not the same on both sides.

    ``id``: on the newer side, of a removed one on the older; ``was``: its other id where it had one. ``hours``: how
    many GPU-hours more it takes, as far as they are known. ``fields`` are those of a changed one; none where a plan
    file does not hold what differs.
    """

    kind: Kind
    config: str
    id: str
    was: str = ""
    fields: tuple[Field, ...] = ()
    hours: float = 0.0


class Diff(NamedTuple):
    """The changes between two sides, in the order of the newer one; what is gone comes last.

    ``old`` and ``new``: what all their points add up to; ``sizes``: how many points each config had and has, by its key
    and whether they are accuracy runs.
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    old: Total
    new: Total
    sizes: tuple[Mapping[tuple[str, bool], int], Mapping[tuple[str, bool], int]]

    def count(self, kind: Kind) -> int:
        """How many points that became of."""
        return sum(change.kind is kind for change in self.changes)


class Group(NamedTuple):
    """Points of one config that have a change in common: a field from one value to another, or their kind alone."""

    kind: Kind
    field: Field | None
    changes: tuple[Change, ...]


class ConfigDiff(NamedTuple):
    """What changed of a config. ``before`` and ``points``: how many it had and has; ``accuracy``: of those it has."""

    key: str
    before: int
    points: int
    accuracy: int
    changes: tuple[Change, ...]
    groups: tuple[Group, ...]

    @property
    def hours(self) -> float:
        """How many GPU-hours more it takes."""
        return sum(change.hours for change in self.changes)


def difference(before: Side, after: Side, unchanged: Collection[str] = ()) -> Diff:
    """What differs between two sides.

    ``unchanged`` are configs that are made of the same things on both sides, down to pin and patches; of their points
    only those are looked at whose accuracy runs other configs may decide.
    """
    shared = [name for name in after.ids if name in before.ids]
    changes = [_changed(before, after, name, name) for name in shared if not _is_same(before, after, name, unchanged)]
    come = dict.fromkeys(name for name in after.ids if name not in before.ids)
    gone = dict.fromkeys(name for name in before.ids if name not in after.ids)
    for was, name in list(_renamed(before, after, gone, come)):
        changes.append(_changed(before, after, was, name)._replace(kind=Kind.RENAMED))
        del gone[was], come[name]
    for was, name in list(_regrouped(before, after, gone, come)):
        changes.append(_changed(before, after, was, name))
        del gone[was], come[name]
    changes += [_single(Kind.ADDED, after, name, 1) for name in come]
    changes += [_single(Kind.REMOVED, before, name, -1) for name in gone]
    order = {name: number for number, name in enumerate(dict.fromkeys((*after.ids, *before.ids)))}
    changes.sort(key=lambda change: order[change.id])
    old, new = jobs_of(before), jobs_of(after)
    had, has = (Counter((job.config, is_accuracy(job.id)) for job in jobs) for jobs in (old, new))
    return Diff(before.name, after.name, tuple(changes), total_of(old), total_of(new), (had, has))


def by_config(diff: Diff) -> tuple[ConfigDiff, ...]:
    """The changes by config, in the order of the configs."""
    found: dict[str, list[Change]] = {}
    for change in diff.changes:
        found.setdefault(change.config, []).append(change)
    old, new = diff.sizes
    return tuple(
        ConfigDiff(
            key,
            old.get((key, False), 0) + old.get((key, True), 0),
            new.get((key, False), 0) + new.get((key, True), 0),
            new.get((key, True), 0),
            tuple(changes),
            _groups(changes),
        )
        for key, changes in found.items()
    )


def _groups(changes: Sequence[Change]) -> tuple[Group, ...]:
    """Each difference once, with the points that have it; the one that most points have comes first."""
    groups: dict[Any, list[Change]] = {}
    heads: dict[Any, tuple[Kind, Field | None]] = {}
    for change in changes:
        told: Sequence[Field | None] = change.fields if change.kind is Kind.CHANGED and change.fields else (None,)
        for field in told:
            key = (change.kind, None if field is None else (field.path, _text(field.old), _text(field.new)))
            heads.setdefault(key, (change.kind, field))
            groups.setdefault(key, []).append(change)
    kinds = list(Kind)
    order = sorted(groups, key=lambda key: (kinds.index(key[0]), -len(groups[key])))
    return tuple(Group(*heads[key], tuple(groups[key])) for key in order)


def _text(value: Any) -> str:
    return "" if value is ABSENT else json.dumps(value, sort_keys=True)


def _is_same(before: Side, after: Side, name: str, unchanged: Collection[str]) -> bool:
    old, new = before.points.get(name), after.points.get(name)
    if old is not None and new is not None and new.deployment.config.key in unchanged:
        evaluated = not new.eval_only or old.evaluation == new.evaluation
        if old.concs == new.concs and old.eval_only == new.eval_only and evaluated:
            return True
    return before.digest(name) == after.digest(name)


def _changed(before: Side, after: Side, was: str, name: str) -> Change:
    """A job that differs; of a plan file only the row can be compared."""
    rows_only = was in before.written or name in after.written
    old, new = payload(before, was, rows_only=rows_only), payload(after, name, rows_only=rows_only)
    ours, theirs = job_of(after, name), job_of(before, was)
    fields = tuple(compared(old, new))
    return Change(
        Kind.CHANGED, ours.config, name, "" if was == name else was, fields, ours.gpu_hours - theirs.gpu_hours
    )


def _single(kind: Kind, side: Side, name: str, sign: int) -> Change:
    job = job_of(side, name)
    return Change(kind, job.config, name, hours=sign * job.gpu_hours)


def _renamed(before: Side, after: Side, gone: Iterable[str], come: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of ids that are one job: of equal digest, or alike but for what the recipe is called.

    Of several the one in the same config is taken, then the first.
    """
    if not gone or not come:
        return
    left, right = dict.fromkeys(gone), dict.fromkeys(come)
    for key_of in (lambda side, name: side.digest(name), _nameless):
        homes: dict[str, list[str]] = {}
        for name in left:
            if (key := key_of(before, name)) is not None:
                homes.setdefault(key, []).append(name)
        for name in list(right) if homes else ():
            key = key_of(after, name)
            if key is not None and (candidates := homes.get(key)):
                config = job_of(after, name).config
                was = min(candidates, key=lambda one: job_of(before, one).config != config)
                candidates.remove(was)
                del left[was], right[name]
                yield was, name


def _nameless(side: Side, name: str) -> str | None:
    """What a job is, without what its recipe is called; None where the recipe is not known."""
    point = side.points.get(name)
    if point is None or point.deployment.recipe is None:
        return None
    covered = payload(side, name)
    covered["recipe"].pop("name", None)
    return json.dumps(covered, sort_keys=True)


def _regrouped(before: Side, after: Side, gone: Iterable[str], come: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of ids that are one allocation whose set of concurrencies is another one."""

    def homes(side: Side, names: Iterable[str]) -> dict[tuple[str, Place], list[str]]:
        found: dict[tuple[str, Place], list[str]] = {}
        for name in names:
            config = job_of(side, name).config
            found.setdefault((config, place_of(name, config)._replace(concs=())), []).append(name)
        return found

    old, new = homes(before, gone), homes(after, come)
    for key, names in new.items():
        others = old.get(key, [])
        if len(names) == len(others) == 1 and any(len(place_of(one, key[0]).concs) > 1 for one in (*names, *others)):
            yield others[0], names[0]
