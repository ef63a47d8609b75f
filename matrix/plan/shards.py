"""How the points of a plan become jobs: the canary first, the rest in balanced shards of at most 256.

GitHub expands at most 256 jobs of one matrix. A matrix of shards, each a called workflow with a matrix of its own,
gives 256 x 256. Everything here follows from the plan alone, so each job of a run comes to the same shards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.errors import RefusedError
from matrix.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.points.point import Point

__all__ = [
    "MAX_JOBS",
    "MAX_SHARDS",
    "USUAL_MINUTES",
    "Job",
    "canary_of",
    "jobs_of",
    "minutes_of",
    "shard_sizes",
    "split",
]

MAX_JOBS: Final = 256
"""Jobs of one matrix; GitHub's limit, hosted and self-hosted alike."""

MAX_SHARDS: Final = 256
"""The shards are a matrix themselves."""

_WAIT_MINUTES: Final = 12 * 60
"""How long a job may wait in the cluster's queue before its runner gives up."""

_UNKNOWN_MINUTES: Final = 6 * 60
"""For a job whose length nobody stated."""

_COLLECT_MINUTES: Final = 30
"""Preparation before, packing and upload after."""

USUAL_MINUTES: Final = _WAIT_MINUTES + _COLLECT_MINUTES + _UNKNOWN_MINUTES
"""What the job of a point may take whose length nobody stated."""


class Job(NamedTuple):
    """One job of a matrix: the point, and the label of the runner that takes it."""

    id: str
    runner: str

    def record(self) -> dict[str, str]:
        """As a matrix has it."""
        return {"id": self.id, "runner": self.runner}


def canary_of(points: Iterable[Point]) -> Point | None:
    """The throughput point with the fewest nodes, then the lowest concurrency, then the first of the plan."""
    throughput = (point for point in points if not point.eval_only)
    return min(throughput, key=lambda point: (point.deployment.nodes or 1, min(point.concs)), default=None)


def jobs_of(rows: Iterable[dict[str, Any]], canary: str | None = None) -> list[Job]:
    """The jobs of a plan's rows in their order, the canary left out: it has run by then."""
    return [Job(row["id"], row["runner"]) for row in rows if row["id"] != canary]


def shard_sizes(count: int) -> list[int]:
    """How many jobs each shard has: as few shards as possible, their sizes at most one apart.

    >>> shard_sizes(0), shard_sizes(5), shard_sizes(257)
    ([], [5], [129, 128])

    Raises:
        RefusedError: more than 256 x 256.
    """
    if count > MAX_JOBS * MAX_SHARDS:
        most = MAX_JOBS * MAX_SHARDS
        message = f"the plan has {count:,} jobs, and one run starts at most {MAX_SHARDS} x {MAX_JOBS} = {most:,}."
        fix = "split the change into several pull requests, or set the label that trims"
        raise RefusedError([Finding(rule="plan-too-large", message=message, fix=fix)])
    shards = -(-count // MAX_JOBS)
    return [count // shards + (number < count % shards) for number in range(shards)] if shards else []


def split(jobs: Sequence[Job]) -> list[tuple[Job, ...]]:
    """The jobs of each shard, consecutive in the plan's order."""
    shards, start = [], 0
    for size in shard_sizes(len(jobs)):
        shards.append(tuple(jobs[start : start + size]))
        start += size
    return shards


def minutes_of(point: Point) -> int:
    """How long the job of a point may take: its own time limit, the wait for nodes, preparation and packing."""
    limit = _limit_minutes(point)
    return USUAL_MINUTES if limit is None else _WAIT_MINUTES + _COLLECT_MINUTES + limit


def _limit_minutes(point: Point) -> int | None:
    """The recipe's Slurm time limit; without one, the benchmark's own length and as much again to load the model."""
    deployment = point.deployment
    recipe = deployment.eval_recipe if point.eval_only else deployment.recipe
    limit = recipe.data.get("slurm", {}).get("time_limit") if recipe is not None else None
    if isinstance(limit, str) and (minutes := _slurm_minutes(limit)):
        return minutes
    return None if point.seconds is None else -(-2 * point.seconds // 60)


def _slurm_minutes(text: str) -> int | None:
    """Slurm's time formats in whole minutes: ``MM``, ``MM:SS``, ``HH:MM:SS``, ``D-HH``, ``D-HH:MM``, ``D-HH:MM:SS``.

    >>> [_slurm_minutes(text) for text in ("90", "90:30", "04:00:00", "1-12", "1-00:30", "soon")]
    [90, 91, 240, 2160, 1470, None]
    """
    days, dash, rest = text.strip().rpartition("-")
    parts = rest.split(":")
    if not all(part.isdecimal() for part in parts) or (dash and not days.isdecimal()) or len(parts) > 3:
        return None
    numbers = [int(part) for part in parts]
    if dash:
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, (minutes, seconds) = 0, (*numbers, 0)[:2]
    return int(days or 0) * 1440 + hours * 60 + minutes + bool(seconds)
