"""A sweep by hand: the points that a request selects, as a label would run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.findings import Finding, Severity
from matrix.plan.checked import faults_of, with_checks
from matrix.plan.plan import Plan
from matrix.points.evals import EvalMode
from matrix.points.pipeline import expand
from matrix.points.select import matches
from matrix.points.unknown import unknown_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matrix.plan.labels import Mode
    from matrix.points.point import Point
    from matrix.points.request import Request
    from matrix.workspace import Workspace

__all__ = ["plan_selection"]

_KEPT_WARNINGS: Final = frozenset({"hardware-missing", "filter-word-unknown"})
"""What stays a warning where every point is about to be run."""


def plan_selection(workspace: Workspace, request: Request, mode: Mode) -> tuple[Plan, tuple[Finding, ...]]:
    """Throughput first, then accuracy, each as the mode wants it; and what refuses the selection.

    ``request.ids`` are looked for among both kinds; its other marks for evals are the mode's to say.
    """
    base = request._replace(ids=(), trim=mode.trim or request.trim)
    wanted = []
    if not mode.evals_only and not request.evals_only:
        wanted.append(base._replace(evals=EvalMode.NONE))
    if request.evals is not EvalMode.NONE:
        marks = EvalMode.ALL if mode.all_evals else request.evals
        wanted.append(base._replace(evals=marks, evals_only=True, trim=False))
    findings: dict[Finding, None] = {}
    points: list[Point] = []
    for one in wanted:
        found = expand(workspace.configs, workspace.facts, workspace.policy, one)
        points += found.points
        findings.update(dict.fromkeys(map(_told, found.findings)))
    if request.ids:
        findings.update(dict.fromkeys(unknown_ids(points, request.ids)))
        points = list(_named(points, request.ids))
    reason = "" if points else "no point passes the selection"
    configs = {id(point.deployment.config): point.deployment.config for point in points}
    checked = faults_of(tuple(configs.values()), workspace)
    return Plan(tuple(points), reason=reason), with_checks(findings, checked)


def _told(finding: Finding) -> Finding:
    return finding if finding.rule in _KEPT_WARNINGS else finding._replace(severity=Severity.ERROR)


def _named(points: Sequence[Point], ids: Sequence[str]) -> Iterator[Point]:
    for point in points:
        if any(matches(pattern, point.id) for pattern in ids):
            yield point
