"""`Estimate`: what jobs take: GPU-hours, and how long the machines that may run them are busy.

A length is taken from earlier launches where there are any, else from the row, else it is unknown. The time on the
clock is list scheduling: jobs in plan order, each on the nodes of its label that are free first. A real queue may
overtake, and nodes may be down, so it is a guide and no promise.
"""

from __future__ import annotations

from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from matrix.answers.job import Job, Total, job_of, total_of
from matrix.answers.place import is_accuracy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matrix.answers.results import Result
    from matrix.answers.side import Side
    from matrix.config.fleet import Fleet

__all__ = ["Basis", "ConfigCost", "Estimate", "History", "Pool", "estimate", "history_of", "timed_job"]


class Basis(StrEnum):
    """Where the length of a job comes from, the surest first."""

    JOB = "this job"
    CONFIG = "its config"
    STATED = "its row"
    ASSUMED = "assumed"
    UNKNOWN = "unknown"


class History(NamedTuple):
    """Medians of seconds that jobs ran: by digest, and by config and whether it was an accuracy run."""

    by_digest: Mapping[str, float]
    by_config: Mapping[tuple[str, bool], float]


class Pool(NamedTuple):
    """The jobs of one label. ``machines``: how many nodes have it; ``share``: labels of other pools on some of them.

    ``seconds``: when the last of its jobs has ended, all pools starting at once; None where no machine can run one.
    ``too_wide``: jobs that want more nodes than there are.
    """

    label: str
    total: Total
    machines: int
    seconds: float | None
    too_wide: tuple[str, ...] = ()
    share: tuple[str, ...] = ()


class ConfigCost(NamedTuple):
    """What the jobs of one config add up to."""

    key: str
    total: Total


class Estimate(NamedTuple):
    """What everything takes. ``bases``: how many lengths are from where; ``configs``: the dearest first."""

    name: str
    total: Total
    pools: tuple[Pool, ...]
    configs: tuple[ConfigCost, ...]
    bases: Mapping[Basis, int]

    @property
    def seconds(self) -> float | None:
        """When the last job of all has ended; None where some pool cannot run all of its jobs."""
        ends = [pool.seconds for pool in self.pools]
        return None if None in ends else max((end for end in ends if end is not None), default=0.0)


def history_of(results: Iterable[Result]) -> History:
    """The medians of the verified launches."""
    digests: dict[str, list[float]] = {}
    configs: dict[tuple[str, bool], list[float]] = {}
    for result in results:
        if not result.success or result.seconds is None:
            continue
        digests.setdefault(result.digest, []).append(result.seconds)
        key = str(result.row.get("config-key") or result.id.split("--", 1)[0])
        accuracy = bool(result.row["eval-only"]) if "eval-only" in result.row else is_accuracy(result.id)
        configs.setdefault((key, accuracy), []).append(result.seconds)
    return History(
        {digest: median(seconds) for digest, seconds in digests.items()},
        {key: median(seconds) for key, seconds in configs.items()},
    )


def estimate(side: Side, fleet: Fleet | None, history: History | None = None, assumed: float | None = None) -> Estimate:
    """What all points of a side take.

    ``fleet``: whose machines run them, None where no runners file is known. ``assumed``: seconds of a job whose length
    nothing tells; without it such a job counts no GPU-hours and no time.
    """
    jobs: list[Job] = []
    bases = dict.fromkeys(Basis, 0)
    for name in side.ids:
        job, basis = timed_job(side, name, history, assumed)
        jobs.append(job)
        bases[basis] += 1
    return Estimate(side.name, total_of(jobs), _pools(jobs, fleet), _configs(jobs), bases)


def timed_job(side: Side, name: str, history: History | None, assumed: float | None) -> tuple[Job, Basis]:
    """The job of a point with the best that is known of its length, and where that is from. See `estimate`."""
    job = job_of(side, name)
    if history is not None:
        seconds = history.by_digest.get(side.digest(name)) if history.by_digest else None
        if seconds is not None:
            return job._replace(seconds=seconds), Basis.JOB
        seconds = history.by_config.get((job.config, is_accuracy(name)))
        if seconds is not None:
            return job._replace(seconds=seconds), Basis.CONFIG
    if job.seconds is not None:
        return job, Basis.STATED
    return job._replace(seconds=assumed), Basis.UNKNOWN if assumed is None else Basis.ASSUMED


def _configs(jobs: Iterable[Job]) -> tuple[ConfigCost, ...]:
    homes: dict[str, list[Job]] = {}
    for job in jobs:
        homes.setdefault(job.config, []).append(job)
    found = [ConfigCost(key, total_of(members)) for key, members in homes.items()]
    return tuple(sorted(found, key=lambda one: (-one.total.gpu_hours, -one.total.jobs)))


def _pools(jobs: Sequence[Job], fleet: Fleet | None) -> tuple[Pool, ...]:
    """The jobs by label, scheduled together: labels may name the same machines."""
    homes: dict[str, list[Job]] = {}
    for job in jobs:
        homes.setdefault(job.runner, []).append(job)
    machines = {label: _machines(fleet, label) for label in homes}
    free: dict[str, float] = {node: 0.0 for nodes in machines.values() for node in nodes}
    ends: dict[str, float] = dict.fromkeys(homes, 0.0)
    too_wide: dict[str, list[str]] = {label: [] for label in homes}
    for job in jobs:
        nodes = machines[job.runner]
        if job.nodes > len(nodes):
            too_wide[job.runner].append(job.id)
            continue
        taken = sorted(nodes, key=free.__getitem__)[: job.nodes]
        end = free[taken[-1]] + (job.seconds or 0.0)
        for node in taken:
            free[node] = end
        ends[job.runner] = max(ends[job.runner], end)
    return tuple(
        Pool(
            label,
            total_of(members),
            len(machines[label]),
            None if too_wide[label] else ends[label],
            tuple(too_wide[label]),
            tuple(
                other for other in homes if other != label and not machines[label].keys().isdisjoint(machines[other])
            ),
        )
        for label, members in homes.items()
    )


def _machines(fleet: Fleet | None, label: str) -> dict[str, None]:
    """The nodes of a label, in the order of the file; a label that is a node's own name is that node."""
    if fleet is None:
        return {}
    nodes = fleet.nodes(label)
    if not nodes and any(label in members for members in fleet.labels.values()):
        nodes = (label,)
    return dict.fromkeys(nodes)
