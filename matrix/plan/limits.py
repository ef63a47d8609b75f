"""GitHub's limits, each with its source, and what a plan comes to against them.

Sources are GitHub's documentation of August 2026 (limits, workflow commands, reusing workflows) unless said otherwise.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from matrix.findings import Finding, Severity
from matrix.plan.shards import MAX_JOBS, MAX_SHARDS, jobs_of, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from matrix.config.fleet import Fleet
    from matrix.plan.sweep import Written

__all__ = [
    "LIMITS",
    "MAX_EXPRESSION",
    "MAX_SUMMARY",
    "MAX_WORKFLOW_FILE",
    "Limit",
    "Measure",
    "measures",
    "utf16_bytes",
]

MAX_EXPRESSION: Final = 21_000
"""Characters of one expression; a string with ``${{`` in it counts whole. Beyond it the workflow file is invalid."""

MAX_WORKFLOW_FILE: Final = 500_000
"""Bytes of a workflow file; a larger one does not start."""

MAX_SUMMARY: Final = 1 << 20
"""Bytes of one step's summary; beyond it the upload fails."""


class Limit(NamedTuple):
    """A bound. ``hard``: GitHub refuses what is above it; else it is where people saw trouble."""

    name: str
    bound: int
    unit: str
    hard: bool
    source: str


LIMITS: Final = (
    Limit("jobs of one matrix", MAX_JOBS, "jobs", True, "limits: 256 per matrix, not raisable"),
    Limit("shards of a run", MAX_SHARDS, "shards", True, "they are a matrix themselves"),
    Limit("outputs of the planning job", 1 << 20, "bytes", True, "limits: 1 MB a job, as UTF-16"),
    Limit("outputs of a shard's first job", 1 << 20, "bytes", True, "limits: 1 MB a job, as UTF-16"),
    Limit("outputs of the run", 50 << 20, "bytes", True, "limits: 50 MB a run, as UTF-16"),
    Limit("longest id", 200, "characters", True, "file and artifact names: 255 bytes with what is added"),
    Limit("letters outside ids' alphabet", 0, "ids", True, "ids stand in file names and expressions"),
    Limit("run time of a job", 5 * 24 * 60, "minutes", True, "limits: 5 days on a self-hosted runner"),
    Limit("wait for a runner", 24 * 60, "minutes", False, "limits: a job that waits 24 h is cancelled"),
    Limit("run time of the run", 35 * 24 * 60, "minutes", False, "limits: 35 days"),
    Limit("check runs of the commit", 50_000, "check runs", False, "limits: 50,000 a check suite"),
    Limit("jobs on the page of the run", 500, "jobs", False, "reports: the page fails to load near 500"),
)
"""What a plan is held to. The limits of workflow files are held by `matrix.plan.workflows`."""

_BOUNDS: Final = {limit.name: limit for limit in LIMITS}
_ID: Final = re.compile(r"[A-Za-z0-9._-]+\Z")
_JOBS_OF_A_SHARD: Final = 1
_JOBS_BESIDE: Final = 4
"""Planning, the comment, and the two collectors."""


class Measure(NamedTuple):
    """What the plan comes to. ``about`` says which part of it."""

    limit: Limit
    value: int
    about: str = ""

    @property
    def fits(self) -> bool:
        """Whether it is within the limit."""
        return self.value <= self.limit.bound

    def finding(self) -> Finding:
        """What is told where it does not fit."""
        limit = self.limit
        about = f" ({self.about})" if self.about else ""
        message = (
            f"{limit.name}: {self.value:,} {limit.unit}{about}, and {limit.bound:,} is the limit ({limit.source})."
        )
        fix = "split the change into several pull requests" if limit.bound else "rename what does not fit"
        severity = Severity.ERROR if limit.hard else Severity.WARNING
        return Finding(rule="github-limit", message=message, fix=fix, severity=severity)


def utf16_bytes(text: str) -> int:
    """The size of a text as GitHub estimates it.

    >>> utf16_bytes("ab"), utf16_bytes("\U0001f40e")
    (4, 4)
    """
    return len(text.encode("utf-16-le"))


def measures(plan: Written, outputs: Mapping[str, str], fleet: Fleet | None = None) -> Iterator[Measure]:
    """The plan against every limit. ``outputs`` are the planning job's; ``fleet`` tells how many runners there are."""
    shards = split(jobs_of(plan.rows.values(), plan.canary))
    written = [utf16_bytes(json.dumps([job.record() for job in shard], separators=(",", ":"))) for shard in shards]
    planning = sum(utf16_bytes(name) + utf16_bytes(value) for name, value in outputs.items())
    jobs = len(plan.rows) + len(shards) * _JOBS_OF_A_SHARD + _JOBS_BESIDE
    longest = max(plan.rows, key=len, default="")
    odd = [name for name in plan.rows if _ID.match(name) is None]
    slowest = max(plan.minutes, key=lambda name: plan.minutes[name], default="")
    yield _measure("jobs of one matrix", max(map(len, shards), default=0))
    yield _measure("shards of a run", len(shards))
    yield _measure("outputs of the planning job", planning)
    yield _measure("outputs of a shard's first job", max(written, default=0))
    yield _measure("outputs of the run", planning + sum(written))
    yield _measure("longest id", len(longest), longest[:80] if len(longest) > _BOUNDS["longest id"].bound else "")
    yield _measure("letters outside ids' alphabet", len(odd), ascii(odd[0]) if odd else "")
    yield _measure("run time of a job", plan.minutes.get(slowest, 0), slowest)
    if fleet is not None:
        label, minutes = max(_waits(plan, fleet), key=lambda wait: wait[1], default=("", 0))
        yield _measure("wait for a runner", minutes, label)
        yield _measure("run time of the run", minutes + plan.minutes.get(slowest, 0), label)
    yield _measure("check runs of the commit", jobs)
    yield _measure("jobs on the page of the run", jobs)


def _measure(name: str, value: int, about: str = "") -> Measure:
    return Measure(_BOUNDS[name], value, about)


def _waits(plan: Written, fleet: Fleet) -> Iterable[tuple[str, int]]:
    """For each runner label how long its last job waits at least: the stated durations, on every node of the label."""
    work: dict[str, int] = {}
    for row in plan.rows.values():
        nodes = row.get("node-count") or 1
        work[row["runner"]] = work.get(row["runner"], 0) + nodes * int(row.get("duration") or 0)
    for label, seconds in sorted(work.items()):
        yield label, seconds // (60 * max(1, len(set(fleet.nodes(label)))))
