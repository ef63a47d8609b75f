"""`Coverage`: which points have results of today's job, how old they are, and what nobody runs at all.

Equal digests are the same job, so a result counts for the point of its digest, whatever it was called when it ran. A
result of the same id and another digest is that of an earlier job.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from matrix.answers.results import Result
    from matrix.answers.side import Side
    from matrix.findings import Finding

__all__ = ["DEFAULT_DAYS", "Coverage", "Covered", "Pool", "Status", "Unused", "by_pool", "coverage_of", "unused_of"]

DEFAULT_DAYS: Final = 30
"""How old a result may be until it is stale, unless the caller says otherwise."""


class Status(StrEnum):
    """What is known of a point, the best that holds."""

    CURRENT = "current"
    """A verified result of this very job is new enough."""
    STALE = "stale"
    """There is one, and it is older, or nobody can tell how old."""
    SUPERSEDED = "superseded"
    """There are verified results of its id alone: the job has changed since."""
    FAILED = "failed"
    """It was run, and has never left a verified result."""
    RUNNING = "in progress"
    """A launch of it has not ended, and there is nothing else."""
    NEVER = "never run"


class Covered(NamedTuple):
    """One point. ``result`` is the one that decides, ``last`` the launch that ended last, with whatever end."""

    id: str
    config: str
    runner: str
    status: Status
    result: Result | None = None
    last: Result | None = None
    age: timedelta | None = None


class Unused(NamedTuple):
    """What a search space holds for nothing: recipe files and variants that no entry names, and jobs declared twice.

    ``recipes``, ``variants`` and ``repeated`` are findings with the place of each; ``alike`` are ids of one digest.
    ``complete`` is False where other masters may name the recipes, so that nobody can tell.
    """

    recipes: tuple[Finding, ...] = ()
    variants: tuple[Finding, ...] = ()
    repeated: tuple[Finding, ...] = ()
    alike: tuple[tuple[str, ...], ...] = ()
    complete: bool = True


class Coverage(NamedTuple):
    """The points in their order. ``strangers``: results that are of no point, neither by digest nor by id."""

    points: tuple[Covered, ...]
    strangers: tuple[Result, ...]
    days: float
    now: datetime

    def count(self, status: Status) -> int:
        """How many points have it."""
        return sum(point.status is status for point in self.points)


class Pool(NamedTuple):
    """The points of one config on one runner. ``newest``: age of the newest result that is of today's job."""

    config: str
    runner: str
    points: tuple[Covered, ...]
    newest: timedelta | None

    def count(self, status: Status) -> int:
        """How many of its points have it."""
        return sum(point.status is status for point in self.points)


def coverage_of(side: Side, results: Iterable[Result], now: datetime, days: float = DEFAULT_DAYS) -> Coverage:
    """What the results say of the points of a side, at a time, where ``days`` is how long a result stays new."""
    by_digest: dict[str, list[Result]] = {}
    by_id: dict[str, list[Result]] = {}
    everything = tuple(results)
    for result in everything:
        by_digest.setdefault(result.digest, []).append(result)
        by_id.setdefault(result.id, []).append(result)
    points = []
    digests = set()
    for name in side.ids:
        digest = side.digest(name)
        digests.add(digest)
        covered = Covered(name, *_home(side, name), Status.NEVER)
        points.append(_judged(covered, by_digest.get(digest, ()), by_id.get(name, ()), now, days))
    ids = frozenset(side.ids)
    strangers = tuple(one for one in everything if one.digest not in digests and one.id not in ids)
    return Coverage(tuple(points), strangers, days, now)


def _home(side: Side, name: str) -> tuple[str, str]:
    point = side.points.get(name)
    if point is not None:
        return point.deployment.config.key, point.deployment.runner
    return str(side.row(name).get("config-key", name.partition("--")[0])), str(side.row(name)["runner"])


def _judged(point: Covered, same: Sequence[Result], named: Sequence[Result], now: datetime, days: float) -> Covered:
    others = [result for result in named if result not in same]
    ended = [result for result in (*same, *others) if not result.open]
    point = point._replace(last=_newest(ended))
    if (result := _newest([one for one in same if one.success])) is not None:
        age = now - result.ended if result.ended is not None else None
        fresh = age is not None and age.total_seconds() < days * 86_400
        return point._replace(status=Status.CURRENT if fresh else Status.STALE, result=result, age=age)
    if (result := _newest([one for one in others if one.success])) is not None:
        age = now - result.ended if result.ended is not None else None
        return point._replace(status=Status.SUPERSEDED, result=result, age=age)
    for status, found in ((Status.RUNNING, [one for one in same if one.open]), (Status.FAILED, ended)):
        if (result := _newest(found)) is not None:
            return point._replace(status=status, result=result)
    return point


def _newest(results: Sequence[Result]) -> Result | None:
    """The one that ended last; one of unknown time comes before all others."""
    dated = [result for result in results if result.ended is not None]
    return max(dated, key=_end) if dated else results[-1] if results else None


def _end(result: Result) -> float:
    return result.ended.timestamp() if result.ended is not None else 0.0


def by_pool(coverage: Coverage) -> tuple[Pool, ...]:
    """The points of each config on each runner, in the order in which they first come."""
    found: dict[tuple[str, str], list[Covered]] = {}
    for point in coverage.points:
        found.setdefault((point.config, point.runner), []).append(point)
    pools = []
    for (config, runner), points in found.items():
        ages = [one.age for one in points if one.age is not None and one.status is not Status.SUPERSEDED]
        pools.append(Pool(config, runner, tuple(points), min(ages, default=None)))
    return tuple(pools)


def unused_of(side: Side, *, complete: bool = True) -> Unused:
    """What the configuration of a side holds for nothing; of a plan file that has none, jobs of one digest alone.

    ``complete``: its masters are all that use the recipe roots.
    """
    from matrix.checks.case import space_of
    from matrix.checks.references import recipe_unreferenced, variant_unreferenced
    from matrix.findings import Finding

    homes: dict[str, list[str]] = {}
    for name in side.ids:
        homes.setdefault(side.digest(name), []).append(name)
    alike = tuple(tuple(names) for names in homes.values() if len(names) > 1)
    if side.workspace is None:
        return Unused(alike=alike, complete=False)
    space, _ = space_of(side.workspace.configs, side.workspace.facts, complete=complete)

    def told(found: Iterable[object]) -> tuple[Finding, ...]:
        return tuple(one for one in found if isinstance(one, Finding))

    return Unused(
        recipes=told(recipe_unreferenced.check(space)),
        variants=told(variant_unreferenced.check(space)),
        repeated=tuple(finding for finding in space.found if finding.rule == "point-duplicate"),
        alike=alike,
        complete=complete,
    )
