"""What a page tells beside its points: commands, golden curves, coverage, a plan's decision, a diff."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from matrix.answers.diff import Kind
from matrix.answers.fields import ABSENT
from matrix.config.source import plain
from matrix.recipes.acceptance import drafts_of, length_for, request_of
from matrix.recipes.commands import CommandsError, commands_of
from matrix.recipes.golden import GoldenError
from matrix.recipes.roles import ViewError, view_of
from matrix.report.commands import render_text
from matrix.report.golden import curve_record
from matrix.report.page_points import Interned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matrix.answers.coverage import Coverage
    from matrix.answers.diff import Diff
    from matrix.answers.results import Result
    from matrix.answers.side import Side
    from matrix.plan.snapshot import Label
    from matrix.plan.sweep import Written
    from matrix.points.point import Deployment, Point
    from matrix.recipes.acceptance import AcceptanceRequest
    from matrix.recipes.golden import CurveBook, GoldenLength
    from matrix.recipes.recipe import Recipe

__all__ = ["Commands", "Golden", "coverage_part", "diff_part", "plan_part"]

_NO_RECIPE: Final = "No recipe was found for this point, so there are no commands to show."


class Commands:
    """What clusters are told, a list of line numbers for each resolved recipe: most lines are in many of them."""

    def __init__(self, label: Label) -> None:
        self.label = label
        self.lines: Interned[str] = Interned()
        self.texts: Interned[list[int]] = Interned()
        self._of: dict[Recipe | None, int] = {}

    def number(self, recipe: Recipe | None) -> int:
        """The number of a recipe's commands, rendered once."""
        found = self._of.get(recipe)
        if found is None:
            lines = [self.lines(line) for line in self._text(recipe).splitlines()]
            found = self._of[recipe] = self.texts(lines, tuple(lines))
        return found

    def record(self) -> dict[str, Any]:
        """For the page."""
        return {"lines": self.lines.items, "texts": self.texts.items}

    def _text(self, recipe: Recipe | None) -> str:
        if recipe is None:
            return _NO_RECIPE
        try:
            return render_text(commands_of(recipe))
        except CommandsError as error:
            return "\n".join(["These commands cannot be rendered:", *map(str, self.label.relabel(error.findings))])


class Golden:
    """The golden lengths that points were given, and the curves that they are on."""

    def __init__(self, curves: CurveBook | None, label: Label) -> None:
        self.book = curves
        self.label = label
        self.curves: Interned[dict[str, Any]] = Interned()
        self.used: Interned[list[Any]] = Interned()
        self._looked_up = cache(self._look_up)

    def number(self, point: Point) -> int | None:
        """The number of a point's golden length; None where it was given none."""
        deployment = point.deployment
        if point.eval_only or deployment.golden is None or self.book is None:
            return None
        length = self._length(deployment)
        if length is None:
            return None
        curve = self.curves(_curve(length), length.curve.name)
        return self.used(
            [curve, length.thinking, length.tokens, deployment.golden, str(self.label.place(length.span))],
            (curve, length.thinking, length.tokens, deployment.golden),
        )

    def record(self) -> dict[str, Any]:
        """For the page."""
        return {"curves": self.curves.items, "used": self.used.items}

    def _length(self, deployment: Deployment) -> GoldenLength | None:
        """The length that injection gave a deployment, looked up once more for its place on the curve."""
        # The accuracy recipe drafts alike, and nothing is forced in it.
        recipe = deployment.eval_recipe
        if recipe is None:
            return None
        try:
            return self._looked_up(recipe, request_of(deployment.config, deployment.scenario, deployment.entry))
        except (GoldenError, ViewError):
            return None

    def _look_up(self, recipe: Recipe, request: AcceptanceRequest) -> GoldenLength | None:
        assert self.book is not None  # noqa: S101 - asked only of points that were given a length
        drafts = drafts_of(view_of(recipe), request)
        return length_for(drafts[0], request, self.book) if drafts else None


def _curve(length: GoldenLength) -> dict[str, Any]:
    record = curve_record(length.curve)
    return {name: record[name] for name in ("name", "model", "values")}


def coverage_part(coverage: Coverage) -> dict[str, Any]:
    """Of each point its status, the age in days, and the numbers of the result that decides and of the last launch."""
    results: Interned[dict[str, Any]] = Interned()

    def number(result: Result | None) -> int | None:
        return None if result is None else results(_result(result), result.path)

    points = [
        [
            point.status.value,
            None if point.age is None else round(point.age.total_seconds() / 86_400, 2),
            number(point.result),
            number(point.last),
        ]
        for point in coverage.points
    ]
    return {"days": coverage.days, "points": points, "results": results.items, "strangers": len(coverage.strangers)}


def _result(result: Result) -> dict[str, Any]:
    return {
        "file": result.path,
        "ended": result.ended.isoformat(timespec="seconds") if result.ended is not None else "",
        "success": result.success,
        "open": result.open,
        "verdict": result.verdict,
        "why": result.why,
        "job": result.job,
        "nodes": result.nodes,
        "digest": result.digest,
        "figures": list(result.figures),
    }


def plan_part(plan: Written, path: str, side: Side) -> dict[str, Any]:
    """The decision of a plan, and what it says of each point; ``other``: it has the id, for another job."""
    record = plan.record
    points = []
    for name in side.ids:
        row = plan.rows.get(name)
        if row is None:
            points.append("out")
        elif row["digest"] != side.digest(name):
            points.append("other")
        else:
            points.append("canary" if name == plan.canary else "runs")
    ids = frozenset(side.ids)
    # A plan that no event made has no decision; what it holds is what it runs.
    action = str(record.get("decision") or ("run" if plan.rows else "skip"))
    return {
        "file": path,
        "decision": action,
        "reason": str(record.get("reason") or ""),
        "mode": record.get("mode") or {},
        "base": _commit(record.get("base")),
        "head": _commit(record.get("head")),
        "jobs": len(plan.rows),
        "shards": list(plan.sizes),
        "points": points,
        "absent": [name for name in plan.rows if name not in ids],
        "why": {str(one["what"]): f"{one['rule']}: {one['reason']}" for one in _left_out(record)},
    }


def diff_part(diff: Diff, side: Side) -> dict[str, Any]:
    """What became of each point, and what is gone. A value that is not there on one side is null."""
    numbers = {change.id: number for number, change in enumerate(diff.changes) if change.kind is not Kind.REMOVED}
    return {
        "before": diff.before,
        "after": diff.after,
        "counts": {kind.value: diff.count(kind) for kind in Kind},
        "hours": round(diff.new.gpu_hours - diff.old.gpu_hours, 2),
        "changes": [
            {
                "kind": change.kind.value,
                "id": change.id,
                "was": change.was,
                "fields": [[field.path, _value(field.old), _value(field.new)] for field in change.fields],
            }
            for change in diff.changes
        ],
        "points": [numbers.get(name) for name in side.ids],
    }


def _value(value: Any) -> Any:
    return None if value is ABSENT else plain(value)


def _commit(revision: Any) -> str:
    return str(revision.get("commit", ""))[:12] if isinstance(revision, dict) else ""


def _left_out(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a plan says it leaves out, as far as it says so in the form of a plan."""
    listed = record.get("left-out")
    wanted = {"what", "rule", "reason"}
    return [one for one in listed if isinstance(one, dict) and wanted <= one.keys()] if isinstance(listed, list) else []
