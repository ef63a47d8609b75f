"""``python -m runners collect``: what many launches have measured, held to the plan that they were for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from matrix.findings import Finding
    from runners.collect import Row

__all__ = ["collect"]

_MINUTES = 50
"""How long fetching may take: packed logs are large, and the job ends after an hour."""
_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("folder", metavar="[DIR]", type=_FOLDER, default=Path("results"))
@click.option("--plan", type=_FILE, help="Hold them to this plan: a point of it without a result is a fault.")
@click.option("--plan-digest", metavar="SHA256", help="What the planning job gave out as sha256 of the plan.")
@click.option(
    "--repository",
    metavar="OWNER/NAME",
    envvar="GITHUB_REPOSITORY",
    help="On GitHub: where the plan reuses an earlier run, its results are fetched.",
)
@click.option("--json", "record", type=_FILE, help="Write the JSON to this file as well.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True,
    help="Output.",
)  # fmt: skip
def collect(
    folder: Path, plan: Path | None, plan_digest: str | None, repository: str | None, record: Path | None, form: str
) -> None:
    """Show what the launches below DIR (results) have measured. Kept files are held against their receipts.

    With --plan every point of the plan has its line: what ran now, what an earlier run has the result of, and what is
    missing. A result counts when its digest is the planned one. Exit status 1 when a point is missing, or a kept file
    is another one.
    """
    from matrix.errors import RefusedError
    from runners.collect import collect as gather
    from runners.harmless import for_log
    from runners.outcomes import markdown, records, table

    if plan is None and plan_digest is not None:
        msg = "--plan-digest goes with --plan"
        raise click.UsageError(msg)
    if plan is None:
        rows, findings = gather(folder)
    else:
        rows, findings = _tallied(folder, plan, plan_digest, repository)
    text = json.dumps(records(rows), indent=2)
    if rows:
        planned = plan is not None
        match form:
            case "json":
                click.echo(text)
            case "markdown":
                click.echo(markdown(rows, planned=planned))
            case _:
                click.echo(for_log(table(rows, planned=planned)))
    if record is not None:
        _write(record, f"{text}\n")
    if findings:
        raise RefusedError(findings)


def _tallied(folder: Path, plan: Path, digest: str | None, repository: str | None) -> tuple[list[Row], list[Finding]]:
    """The points of a plan. GitHub is asked only where the plan says that an earlier run has results."""
    from matrix.plan.reuse import reuse_of
    from matrix.plan.sweep import read_plan
    from runners.tally import Planned, tally

    written = read_plan(str(plan), digest)
    reuse = reuse_of(written.record, str(plan))
    planned = Planned({name: str(row["digest"]) for name, row in written.rows.items()}, reuse)
    if reuse is None or repository is None:
        return tally(planned, folder)
    from matrix.cli.forge import forge_of

    with forge_of(repository, os.environ, minutes=_MINUTES) as forge:
        return tally(planned, folder, forge)


def _write(path: Path, text: str) -> None:
    from matrix.errors import RefusedError
    from matrix.findings import Finding, Span
    from runners.workspace import write_atomic

    try:
        write_atomic(path, text)
    except OSError as error:
        message = f"the JSON cannot be written: {error.strerror}."
        fix = "name a file in a folder that you may write to"
        raise RefusedError([Finding(rule="collect-write", message=message, fix=fix, span=Span(str(path)))]) from None
