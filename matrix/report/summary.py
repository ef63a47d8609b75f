"""The step summary of the planning job: the decision first, then what is unusual, points, cost, changes, findings.

A summary above 1 MiB is lost whole, so the table gives way: what it leaves out is counted, and stands in ``plan.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.plan.decision import Action
from matrix.plan.limits import MAX_SUMMARY
from matrix.report.markdown import cell, findings_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matrix.findings import Finding
    from matrix.plan.sweep import Sweep
    from matrix.points.point import Point

__all__ = ["summary_text"]

_ROOM: Final = MAX_SUMMARY - 4096
"""What the parts may take together; the rest is for the lines that say what was left out."""

_FINDINGS_ROOM: Final = _ROOM // 4
_LONGEST: Final = 4000
"""Characters of one text. Nobody reads on, and one text must not push out the rest."""

_WORDS: Final = {Action.RUN: "Run", Action.SKIP: "Skip", Action.CANCEL: "Cancel", Action.REFUSE: "Refuse"}


def summary_text(sweep: Sweep, findings: Sequence[Finding] = ()) -> str:
    """The summary as Markdown, below GitHub's limit whatever the plan."""
    decision = sweep.decision
    head = [f"## {_WORDS[decision.action]}", "", cell(_clipped(decision.reason)), ""]
    if unusual := [f"- {cell(line)}" for line in _unusual(sweep)]:
        head += ["### Not as usual", "", *_within(unusual, _FINDINGS_ROOM, "such lines"), ""]
    tail = []
    cost = sweep.plan.cost if sweep.points and sweep.plan is not None else sweep.refused
    if cost is not None:
        hours = f", {cost.gpu_hours:,.0f} GPU-hours of known length" if cost.gpu_hours else ""
        unknown = f", {cost.untimed:,} jobs of unknown length" if cost.untimed else ""
        title = "What it would have taken" if sweep.refused else "Cost"
        tail += [f"### {title}", "", f"{cost.jobs:,} jobs, {cost.nodes:,} nodes{hours}{unknown}", ""]
    if sweep.changes is not None:
        from matrix.report.diff import diff_markdown

        more = "; `matrix diff` shows them, and plan.json has them all"
        tail += ["### Jobs that change", "", *diff_markdown(sweep.changes, _FINDINGS_ROOM, more), ""]
    if findings:
        clipped = (finding._replace(message=_clipped(finding.message)) for finding in findings)
        said = _within(findings_table(clipped), _FINDINGS_ROOM, "findings")
        tail += [f"### Findings ({len(findings):,})", "", *said, ""]
    room = _ROOM - _bytes(head) - _bytes(tail)
    table = ["### Points", "", *_within(_points(sweep), room, "points; plan.json has them all"), ""]
    return "\n".join([*head, *(table if sweep.points else ()), *tail])


def _unusual(sweep: Sweep) -> Iterator[str]:
    """What differs from a whole sweep behind a canary that stops at the first failure."""
    mode = sweep.decision.mode
    if mode is not None:
        if mode.trim:
            yield "Of each family of throughput points only the lowest concurrency."
        if mode.evals_only:
            yield "Accuracy runs alone."
        if mode.all_evals:
            yield "An accuracy run of every eligible point."
        if not mode.fail_fast:
            yield "A failure stops nothing else."
        if sweep.points and sweep.canary is None:
            yield "No canary: everything starts at once."
    if sweep.plan is not None:
        for entry in sweep.plan.entries:
            flags = {"evals-only": entry.evals_only, "all-evals": entry.all_evals, "no-evals": entry.no_evals}
            flags["append-only"] = entry.append_only
            for name in (name for name, value in flags.items() if value):
                yield f"Entry {entry.number} of the log has {name}."
        if left := len(sweep.plan.left_out):
            yield f"{left:,} left out; plan.json says why."


def _points(sweep: Sweep) -> Iterator[str]:
    yield "| point | runner | nodes | GPUs | |"
    yield "|---|---|--:|--:|---|"
    canary = sweep.canary
    for point in sweep.points:
        yield _row(point, "canary" if point is canary else "")


def _row(point: Point, mark: str) -> str:
    deployment = point.deployment
    return f"| `{point.id}` | {cell(deployment.runner)} | {deployment.nodes or 1} | {deployment.gpus} | {mark} |"


def _within(lines: Iterable[str], room: int, what: str) -> Iterator[str]:
    """The first lines that fit, and how many more there are."""
    left_out = 0
    for line in lines:
        size = len(line.encode()) + 1
        if left_out or size > room:
            left_out += 1
        else:
            room -= size
            yield line
    if left_out:
        yield ""
        yield f"… {left_out:,} more {what}"


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _bytes(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
