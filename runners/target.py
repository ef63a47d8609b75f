"""From what a command line names to the one point that is run, resolved anew from the files of this checkout.

A plan and a row say what somebody else resolved. They are never run as they are: the point is resolved here, and its
digest is held against theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import read_bytes
from matrix.errors import RefusedError
from matrix.findings import Finding, Severity, Span, did_you_mean, errors_of
from matrix.plan.checked import with_checks
from matrix.plan.sweep import read_plan as read_written
from matrix.points.evals import EvalMode
from matrix.points.lookup import find_point
from matrix.points.pipeline import expand
from matrix.points.request import Filters, Request
from runners.jsontext import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from matrix.points.point import Point
    from matrix.workspace import Workspace

__all__ = ["Target", "find_target", "read_plan", "read_row", "target_of"]

_LATER: Final = frozenset({"recipe-missing", "recipe-selector"})
"""Warnings of an expansion that nothing can be run with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A point to run. ``claimed`` is the digest that a plan or a row gives it, None where only an id was named."""

    point: Point
    row: Mapping[str, Any]
    claimed: str | None = None
    source: str = ""
    """The file that claims it."""
    warnings: tuple[Finding, ...] = ()

    @property
    def drifted(self) -> bool:
        """Whether the point is another job than the one that was planned."""
        return self.claimed is not None and self.claimed != self.row["digest"]


def target_of(name: str, workspace: Workspace, row: Mapping[str, Any] | None = None, *, source: str = "") -> Target:
    """Resolve a point by its id, and take the digest and the run-eval mark of the row that was planned.

    Raises:
        RefusedError: there is no such point, or its config or recipe has a fault.
    """
    try:
        point, findings = find_point(name, workspace.configs, workspace.facts, workspace.policy)
    except RefusedError as refused:
        # What has no place of its own is told at that of the plan, which names the point.
        raise RefusedError(_placed(refused.findings, source)) from None
    if row is not None and point.eval_only and point.digest != row.get("digest"):
        point = _evaluated_as(point, row, workspace)
    deployment = point.deployment
    recipe = deployment.eval_recipe if point.eval_only else deployment.recipe
    findings = with_checks(findings, _checked(point, workspace))
    faults = errors_of(findings)
    if recipe is None and not any(finding.rule.startswith("recipe-") for finding in faults):
        told = [finding._replace(severity=Severity.ERROR) for finding in findings if finding.rule in _LATER]
        message = f"the point {name} has no recipe, so nothing says what to run."
        fix = "name one by CONFIG_FILE in its additional-settings"
        faults = (*faults, *(told or [Finding(rule="launch-recipe", message=message, fix=fix)]))
    if faults:
        raise RefusedError(faults)
    own = point.row()
    claimed = None
    if row is not None:
        claimed = row.get("digest")
        if not isinstance(claimed, str) or not claimed:
            message = f"the row of {name} has no digest, so it cannot be told whether this is the job that was planned."
            fix = "make it again: python -m matrix expand --format json"
            raise RefusedError([Finding(rule="launch-row", message=message, fix=fix, span=Span(source))])
        own["run-eval"] = bool(row.get("run-eval"))
    warnings = tuple(finding for finding in findings if finding.severity is Severity.WARNING)
    return Target(point=point, row=own, claimed=claimed, source=source, warnings=warnings)


def _placed(findings: Iterable[Finding], source: str) -> list[Finding]:
    return [each if each.span or not source else each._replace(span=Span(source)) for each in findings]


def _evaluated_as(point: Point, row: Mapping[str, Any], workspace: Workspace) -> Point:
    """The accuracy run as it was planned: one id is of one concurrency or of all, as the plan was asked for."""
    config = point.deployment.config
    filters = Filters(config_keys=(config.key,))
    node = point.deployment.runner if point.deployment.on_node else None
    for mode in EvalMode:
        request = Request(filters=filters, node_filter=node, evals=mode, evals_only=True)
        for other in expand([config], workspace.facts, workspace.policy, request).points:
            if other.id == point.id and other.digest == row.get("digest"):
                return other
    return point


def _checked(point: Point, workspace: Workspace) -> tuple[Finding, ...]:
    """What `matrix check` says of the entry that makes the point."""
    from matrix.checks.registry import check_configs
    from matrix.recipes.golden import CurveBook

    deployment, golden = point.deployment, workspace.settings.golden
    # A check looks at entries: an accuracy run, or one node of a label, comes from the same one.
    name = deployment.config.key if deployment.on_node else type(point)(deployment, point.concs).id
    curves = CurveBook(golden) if golden is not None else None
    return check_configs(workspace.configs, workspace.facts, curves=curves, names=(name,)).findings


def find_target(rows: Mapping[str, Mapping[str, Any]], name: str, workspace: Workspace, source: str) -> Target:
    """The point of a plan with an id.

    Raises:
        RefusedError: the plan has no such point.
    """
    if name not in rows:
        message = f"the plan has no point {name}."
        fix = did_you_mean(name, rows)
        raise RefusedError([Finding(rule="plan-point", message=message, fix=fix, span=Span(source))])
    return target_of(name, workspace, rows[name], source=source)


def read_plan(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """The rows of a plan file by id, in its order.

    Raises:
        RefusedError: it is no plan, or one of a version that this reader does not know.
    """
    return read_written(str(path)).rows


def read_row(path: Path) -> Mapping[str, Any]:
    """A row as a file: what ``matrix expand --format json`` and ``matrix show --format json`` give.

    Raises:
        RefusedError: it is no row, or several.
    """
    found = _json(path, "row")
    if isinstance(found, list):
        if len(found) != 1:
            fix = "keep one of them, or name one: --plan FILE --id ID"
            raise _refusal(path, f"this file has {len(found)} rows, and one is run", fix)
        found = found[0]
    if isinstance(found, dict) and isinstance(found.get("row"), dict):
        found = found["row"]
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        raise _refusal(path, "this is no row: a row is a mapping with an id", "python -m matrix show ID --format json")
    return found


def _json(path: Path, what: str) -> Any:
    data = read_bytes(path, what=what)
    try:
        return parse(data)
    except ValueError as error:
        raise _refusal(path, f"this {what} is not valid JSON: {error}", f"make the {what} again") from None


def _refusal(path: Path, message: str, fix: str) -> RefusedError:
    return RefusedError([Finding(rule="launch-input", message=f"{message}.", fix=fix, span=Span(str(path)))])
