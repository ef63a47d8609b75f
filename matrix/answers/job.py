"""`Job`: what a point takes while it runs, read off the point itself or off the row of a plan file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matrix.answers.side import Side
    from matrix.points.point import Point

__all__ = ["Job", "Total", "job_of", "jobs_of", "total_of"]


class Job(NamedTuple):
    """One job. ``runner``: the label whose machines take it; ``seconds``: None where nobody stated its length."""

    id: str
    config: str
    runner: str
    nodes: int
    gpus: int
    seconds: float | None

    @property
    def gpu_hours(self) -> float:
        """What it costs; 0 where its length is unknown."""
        return 0.0 if self.seconds is None else self.gpus * self.seconds / 3600


class Total(NamedTuple):
    """What jobs add up to. GPU-hours count the jobs whose length is known; ``untimed`` are the others."""

    jobs: int = 0
    nodes: int = 0
    gpu_hours: float = 0.0
    untimed: int = 0


def job_of(side: Side, name: str) -> Job:
    """The job of a point."""
    point = side.points.get(name)
    if point is not None:
        return _of_point(name, point)
    row = side.written[name]
    seconds = None if row.get("eval-only") else row.get("duration")
    gpus = side.record.get("gpus", {}).get(name)
    nodes = row.get("node-count", 1)
    key = str(row.get("config-key", name.split("--", 1)[0]))
    return Job(name, key, row["runner"], nodes, _gpus(row) if gpus is None else gpus, seconds)


def jobs_of(side: Side) -> tuple[Job, ...]:
    """The jobs of all points, in plan order."""
    return tuple(job_of(side, name) for name in side.ids)


def total_of(jobs: Iterable[Job]) -> Total:
    """What the jobs add up to."""
    total = Total()
    for job in jobs:
        hours, untimed = total.gpu_hours + job.gpu_hours, total.untimed + (job.seconds is None)
        total = Total(total.jobs + 1, total.nodes + job.nodes, hours, untimed)
    return total


def _of_point(name: str, point: Point) -> Job:
    deployment = point.deployment
    runner, nodes = deployment.runner, deployment.nodes or 1
    return Job(name, deployment.config.key, runner, nodes, deployment.gpus, point.seconds)


def _gpus(row: Mapping[str, Any]) -> int:
    """Of a plan file that does not say it: the GPUs of the replicas, without those that idle beside them on a node."""
    roles = [row[role] for role in ("prefill", "decode") if isinstance(row.get(role), dict)]
    return sum(_size(role) * _count(role, "num-worker") for role in roles) if roles else _size(row)


def _size(worker: Mapping[str, Any]) -> int:
    return _count(worker, "tp") * _count(worker, "pp") * _count(worker, "pcp-size")


def _count(worker: Mapping[str, Any], key: str) -> int:
    value = worker.get(key, 1)
    return value if isinstance(value, int) else 1
