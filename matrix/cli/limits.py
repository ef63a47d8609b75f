"""``matrix limits``: a plan against every limit of GitHub Actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matrix.cli.command import option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.config.fleet import Fleet
    from matrix.plan.limits import Measure

__all__ = ["limits"]


@click.command(short_help="Hold a plan to the limits of GitHub Actions.")
@click.argument("path", metavar="PLAN", type=click.Path())
@option("--runners", type=click.Path(), help="The runners file, for how long jobs wait. [default: from settings]")
@option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="How to report.")
def limits(*, path: str, runners: str | None, style: str) -> int:
    """Hold a plan.json to the limits of GitHub Actions, and show what it comes to.

    Exit status 1 where GitHub would refuse it. Bounds beyond which people saw trouble are told and refuse nothing.
    """
    from matrix.findings import Severity
    from matrix.plan.limits import measures
    from matrix.plan.sweep import outputs_of_written, read_plan

    written = read_plan(path)
    found = list(measures(written, outputs_of_written(written), _fleet(runners)))
    if style == "json":
        from json import dumps

        click.echo(dumps({"version": 1, "limits": [_record(one) for one in found]}))
    else:
        _table(found)
    over = [one.finding() for one in found if not one.fits]
    for finding in over:
        click.echo(finding, err=True)
    return int(any(finding.severity is Severity.ERROR for finding in over))


def _fleet(path: str | None) -> Fleet | None:
    from matrix.config.loading import load_fleet
    from matrix.config.settings import find_settings

    path = path or find_settings(".").runners
    return load_fleet(path) if path is not None else None


def _record(measure: Measure) -> dict[str, Any]:
    limit = measure.limit
    return {
        "name": limit.name, "value": measure.value, "bound": limit.bound, "unit": limit.unit, "hard": limit.hard,
        "fits": measure.fits, "about": measure.about, "source": limit.source,
    }  # fmt: skip


def _table(found: Sequence[Measure]) -> None:
    from tabulate import tabulate

    rows = [[one.limit.name, f"{one.value:,}", f"{one.limit.bound:,}", one.limit.unit, _verdict(one)] for one in found]
    head = ["limit", "plan", "bound", "unit", ""]
    align = ("left", "right", "right", "left", "left")
    click.echo(tabulate(rows, head, tablefmt="plain", disable_numparse=True, colalign=align))


def _verdict(measure: Measure) -> str:
    if measure.fits:
        return "fits"
    return "does not fit" if measure.limit.hard else "look out"
