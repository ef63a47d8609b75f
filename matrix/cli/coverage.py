"""``matrix coverage``: which points have new results, and what nobody runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matrix.answers.coverage import DEFAULT_DAYS
from matrix.cli.command import option
from matrix.cli.options import Positive, file_options, terminal_width
from matrix.cli.report import tell

if TYPE_CHECKING:
    from datetime import datetime

    from matrix.answers.results import Result
    from matrix.findings import Finding

__all__ = ["DEFAULT_RESULTS", "coverage", "days_option", "found_results", "results_option"]

DEFAULT_RESULTS = "results"
"""Where `runners launch` writes unless told otherwise."""

results_option = option(
    "--results",
    "folders",
    type=click.Path(),
    multiple=True,
    metavar="DIR",
    help="What launches have left, at any depth below. Repeatable. [default: results]",
)
days_option = option(
    "--days",
    type=Positive(),
    default=DEFAULT_DAYS,
    show_default=True,
    metavar="N",
    help="A result is new for so many days.",
)


@click.command(short_help="Show which points have new results.")
@file_options
@results_option
@days_option
@option("--format", "style", type=click.Choice(["table", "json", "markdown"]), default="table", help="How.")
def coverage(*, folders: tuple[str, ...], days: float, style: str, **files: Any) -> int:
    """Show which points have results of today's job that are new, and which are stale, superseded or never run.

    A result counts when its launch was a verified success. Superseded: there are results of its id, and the job has
    changed since. Also told: recipe files and variants that no entry names, jobs declared twice, results of no point.
    """
    from datetime import UTC, datetime

    from matrix.answers.coverage import coverage_of, unused_of
    from matrix.answers.side import open_side
    from matrix.plan.snapshot import Named
    from matrix.report.coverage import coverage_markdown, coverage_record, coverage_table

    now = datetime.now(UTC)
    results, findings = found_results(folders, now)
    with open_side(None, Named(**files)) as side:
        tell([*findings, *side.findings])
        found = coverage_of(side, results, now, days)
        # Of other masters than the repository's own, its recipes may be without an entry.
        complete = not files["masters"] or bool(files["recipes"])
        unused = unused_of(side, complete=complete)
    if style == "json":
        from json import dumps

        click.echo(dumps(coverage_record(found, unused), indent=2))
        return 0
    lines = coverage_markdown(found, unused) if style == "markdown" else coverage_table(found, unused, terminal_width())
    for line in lines:
        click.echo(line)
    return 0


def found_results(folders: tuple[str, ...], now: datetime) -> tuple[tuple[Result, ...], tuple[Finding, ...]]:
    """What launches have left in the folders of the command line, or where they usually write, up to a time."""
    from pathlib import Path

    from matrix.answers.results import read_results, undated
    from matrix.findings import Finding, Severity

    if folders or Path(DEFAULT_RESULTS).is_dir():
        results, unread = read_results(folders or (DEFAULT_RESULTS,))
        results, ahead = undated(results, now)
        return results, (*unread, *ahead)
    message = f"there is no folder {DEFAULT_RESULTS} here, so no point has a result."
    fix = "name the folders that launches wrote into with --results DIR"
    return (), (Finding(rule="results-missing", message=message, fix=fix, severity=Severity.WARNING),)
