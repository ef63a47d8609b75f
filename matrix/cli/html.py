"""``matrix report``: the search space as one page that people open, search and pass on."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matrix.cli.command import option
from matrix.cli.coverage import DEFAULT_RESULTS, days_option, found_results, results_option
from matrix.cli.expand import request_of, selection_options
from matrix.cli.options import Positive, file_options
from matrix.cli.report import tell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from matrix.answers.diff import Diff
    from matrix.answers.side import Side
    from matrix.plan.snapshot import Named
    from matrix.points.request import Request
    from matrix.report.page import Extras

__all__ = ["report"]


@click.command(short_help="Write the search space as one page.")
@option("-o", "--output", required=True, metavar="FILE", help="The page; - is standard output.")
@file_options
@results_option
@days_option
@option("--plan", "plan_file", type=click.Path(), metavar="FILE", help="A plan.json, whose decision is shown.")
@option("--diff", "range_", metavar="A..B", help="The page of B, and what changed since A; see matrix diff.")
@option(
    "--assume",
    type=Positive(),
    metavar="MINUTES",
    help="The length of a job of which none is known.",
)
@option("--title", default="Benchmark matrix", show_default=True, help="What stands at the top.")
@selection_options
@option("--allow-empty", is_flag=True, help="Write a page without points, too.")
def report(
    *,
    output: str,
    folders: tuple[str, ...],
    days: float,
    plan_file: str | None,
    range_: str | None,
    assume: float | None,
    title: str,
    allow_empty: bool,
    **options: Any,
) -> int:
    """Write one page with every point: a matrix to search and filter, and of each point its row with the line of every
    value, its commands and its golden length.

    The page is one file and asks nothing of any network. With --results (the folder results where it is there) it shows
    what is covered and how long jobs ran, with --plan what an event decided. A point has an address: report.html#ID.
    """
    from matrix.config.source import places_noted
    from matrix.plan.snapshot import Named
    from matrix.report.html import page_html
    from matrix.report.page import page_record

    now, extras = _extras(plan_file, assume)
    files = Named(*(options.pop(name) for name in ("masters", "runners", "recipes", "golden")))
    # The page tells the place of every value of every point.
    with places_noted(), _asked(range_, files, request_of(options)) as (side, diff):
        if not side.ids and not allow_empty:
            click.echo("matrix: no point is selected, so there is no page to write", err=True)
            return 3
        extras = _covered(extras._replace(diff=diff), side, folders, days, now)
        text = page_html(page_record(side, now, title, extras), title)
        count = len(side.ids)
    if output == "-":
        click.echo(text, nl=False)
        return 0
    from matrix.cli.files import replace

    replace(output, text)
    noun = "point" if count == 1 else "points"
    click.echo(f"{output}: {count:,} {noun}, {len(text.encode()) / 1e6:.1f} MB", err=True)
    return 0


def _extras(plan_file: str | None, assume: float | None) -> tuple[datetime, Extras]:
    from datetime import UTC, datetime

    from matrix.report.page import Extras

    extras = Extras(assumed=None if assume is None else assume * 60)
    if plan_file is not None:
        from matrix.plan.sweep import read_plan

        extras = extras._replace(plan=(read_plan(plan_file), plan_file))
    return datetime.now(UTC), extras


@contextmanager
def _asked(range_: str | None, files: Named, request: Request) -> Iterator[tuple[Side, Diff | None]]:
    """The side that the page is of, and what changed up to it where that is asked for."""
    if range_ is None:
        from matrix.answers.side import open_side

        with open_side(None, files, request) as side:
            tell(side.findings)
            yield side, None
        return
    from matrix.cli.diff import opened

    with opened((range_,), files, request) as (diff, side):
        if side.workspace is None:
            message = f"--diff {range_}: {side.name} has no configuration; a page is of a commit or the working tree."
            raise click.UsageError(message)
        yield side, diff


def _covered(extras: Extras, side: Side, folders: tuple[str, ...], days: float, now: datetime) -> Extras:
    if not folders and not Path(DEFAULT_RESULTS).is_dir():
        return extras
    from matrix.answers.cost import history_of
    from matrix.answers.coverage import coverage_of

    results, findings = found_results(folders, now)
    tell(findings)
    return extras._replace(coverage=coverage_of(side, results, now, days), history=history_of(results))
