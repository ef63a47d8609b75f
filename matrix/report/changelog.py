"""The verdict over a change of the log, for people, for programs and as annotations of a workflow run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matrix.changelog.rules import Change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.changelog.rules import Verdict
    from matrix.findings import Finding
    from matrix.plan.plan import Cost, Plan
    from matrix.plan.revisions import Revisions

__all__ = ["annotation", "cost_line", "summary", "verdict_record"]


def summary(verdict: Verdict, revisions: Revisions, plan: Plan | None, unproven: str) -> str:
    """One line about an accepted change; ``unproven`` says why there is no plan, where there is none."""
    where = f"{revisions.head_name} against {revisions.base_name}"
    count = len(verdict.additions) or len(verdict.corrections)
    match verdict.change:
        case Change.ADDITIONS if plan is not None:
            return f"{where}: {_some(count, 'entry', 'entries')} added, {cost_line(plan.cost)}."
        case Change.ADDITIONS:
            added = f"{_some(count, 'entry', 'entries')} added"
            return f"{where}: {added}. Bytes, fields and links are right; config keys were not checked: {unproven}."
        case Change.CORRECTIONS:
            return f"{where}: {_some(count, 'link', 'links')} corrected, nothing to run."
        case _:
            configs = ", and no config changed without an entry" if plan is not None else ""
            return f"{where}: the log is the same{configs}. Nothing to check."


def cost_line(cost: Cost) -> str:
    """Jobs, nodes and GPU-hours in words."""
    hours = f", {cost.gpu_hours:,.0f} GPU-hours" if cost.gpu_hours else ""
    unknown = f" ({_some(cost.untimed, 'job', 'jobs')} of unknown length not counted)" if hours and cost.untimed else ""
    return f"{_some(cost.jobs, 'job', 'jobs')}, {_some(cost.nodes, 'node', 'nodes')}{hours}{unknown}"


def _some(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def verdict_record(verdict: Verdict, findings: Sequence[Finding], plan: Plan | None) -> dict[str, Any]:
    """The verdict as JSON has it; ``version`` is that of the shape."""
    from matrix.report.json import finding_record

    return {
        "version": 1,
        "change": verdict.change.value,
        "additions": [{"number": entry.number, "line": entry.line} for entry in verdict.additions],
        "corrections": [
            {"number": one.number, "line": one.line, "old": one.old, "new": one.new} for one in verdict.corrections
        ],
        "jobs": None if plan is None else plan.cost.jobs,
        "findings": [finding_record(finding) for finding in findings],
    }


def annotation(finding: Finding) -> str:
    """A finding as a workflow command of GitHub Actions; its text is escaped as those commands want it."""
    place = f" title={finding.rule}"
    if finding.span is not None:
        file = _escaped(finding.span.file).replace(":", "%3A").replace(",", "%2C")
        place = f" file={file},line={finding.span.line},col={finding.span.column},title={finding.rule}"
    fix = f" fix: {finding.fix}" if finding.fix else ""
    return f"::{finding.severity}{place}::{_escaped(finding.message + fix)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
