"""The record of a page: everything that its script shows, and nothing that it would have to ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from matrix import __version__
from matrix.answers.cost import Basis, timed_job
from matrix.recipes.golden import CurveBook
from matrix.report.page_parts import Commands, Golden, coverage_part, diff_part, plan_part
from matrix.report.page_points import Points

if TYPE_CHECKING:
    from datetime import datetime

    from matrix.answers.cost import History
    from matrix.answers.coverage import Coverage
    from matrix.answers.diff import Diff
    from matrix.answers.side import Side
    from matrix.plan.sweep import Written
    from matrix.points.point import Point

__all__ = ["Extras", "page_record"]


class Extras(NamedTuple):
    """What a page shows where it is given.

    ``plan`` comes with the name of its file. ``history`` tells how long jobs ran, ``assumed`` the seconds of those of
    which nothing tells it.
    """

    coverage: Coverage | None = None
    plan: tuple[Written, str] | None = None
    diff: Diff | None = None
    history: History | None = None
    assumed: float | None = None


def page_record(side: Side, made: datetime, title: str, extras: Extras = Extras()) -> dict[str, Any]:  # noqa: B008
    """Everything about a side that was expanded; ``made`` is the time that the page tells."""
    record: dict[str, Any] = {
        "version": 1,
        "title": title,
        "side": side.name,
        "made": made.isoformat(timespec="minutes"),
        "program": f"matrix {__version__}",
        "bases-of-length": [basis.value for basis in Basis],
        **_points(side, extras),
    }
    if extras.coverage is not None:
        record["coverage"] = coverage_part(extras.coverage)
    if extras.plan is not None:
        record["plan"] = plan_part(*extras.plan, side)
    if extras.diff is not None:
        record["diff"] = diff_part(extras.diff, side)
    return record


def _points(side: Side, extras: Extras) -> dict[str, Any]:
    workspace = side.workspace
    assert workspace is not None  # noqa: S101 - what was not expanded is refused before
    folder = workspace.settings.golden
    commands = Commands(side.label)
    golden = Golden(CurveBook(folder) if folder is not None else None, side.label)

    def beside(point: Point) -> list[Any]:
        deployment = point.deployment
        recipe = deployment.eval_recipe if point.eval_only else deployment.recipe
        return [commands.number(recipe), golden.number(point)]

    points = Points(workspace.facts.fleet, side.label, beside)
    numbers = {basis: number for number, basis in enumerate(Basis)}
    for name, point in side.points.items():
        job, basis = timed_job(side, name, extras.history, extras.assumed)
        points.add(name, point, None if job.seconds is None else job.gpu_hours, numbers[basis])
    return {**points.record(), "commands": commands.record(), "golden": golden.record()}
