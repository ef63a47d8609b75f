"""``matrix plan``: what a change runs, what it does not and why, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matrix.cli.changelog import judge, proof_options, revisions_of
from matrix.cli.command import option
from matrix.cli.event import event_options, plan_event
from matrix.cli.options import terminal_width
from matrix.cli.report import tell

if TYPE_CHECKING:
    from matrix.plan.plan import Plan

__all__ = ["plan"]


@click.command(short_help="Show what a change runs.")
@proof_options
@option("--trim-conc", "trim", is_flag=True, help="Of each family of throughput points the lowest concurrency.")
@option("--all-evals", is_flag=True, help="An accuracy run of every eligible point.")
@option("--evals-only", is_flag=True, help="Accuracy runs alone.")
@option("--over-budget-approved", "over_budget", is_flag=True, help="It may take more than budget-gpu-hours.")
@option("--format", "style", type=click.Choice(["table", "json", "buckets"]), default="table", help="How.")
@option("--allow-empty", is_flag=True, help="Exit 0, not 3, when nothing is left to run.")
@event_options
def plan(
    *,
    style: str,
    allow_empty: bool,
    trim: bool,
    all_evals: bool,
    evals_only: bool,
    over_budget: bool,
    **options: Any,
) -> int:
    """Show what the new entries of perf-changelog.yaml run.

    The log and the configs of two commits are compared, the working tree is not read. --format json is plan.json;
    buckets is the shape that InferenceX's planner prints. Nothing to run is exit status 3, with the reason.

    With --event the event says what is compared and how it is run. plan.json is written, and the outputs of the
    planning job are printed, or go where GitHub Actions wants them. Exit status 1 where the event is refused, else 0.
    """
    if options["event"] is not None:
        flags = {"trim": trim, "all_evals": all_evals, "evals_only": evals_only, "allow_empty": allow_empty}
        flags["over_budget"] = over_budget
        return plan_event({**options, **flags})
    from matrix.plan.claims import Options

    findings, _, found = judge(revisions_of(options), options, Options(trim, all_evals, evals_only))
    tell(findings)
    if found is None:
        message = "no master config is there to plan with; name one with --config."
        raise click.UsageError(message)
    if not over_budget:
        _hold_to_budget(found)
    _print(found, style)
    if found.points:
        return 0
    click.echo(f"matrix: nothing to run: {found.reason}.", err=True)
    return 0 if allow_empty else 3


def _hold_to_budget(found: Plan) -> None:
    """Refuse a plan that costs more than the repository allows, as its sweep would be refused."""
    from matrix.config.settings import find_settings
    from matrix.plan.allowance import over_budget

    fault = over_budget(found, find_settings(".").budget_gpu_hours, way_out="give --over-budget-approved")
    tell([fault] if fault is not None else [])


def _print(found: Plan, style: str) -> None:
    if style != "table":
        from json import dumps

        from matrix.plan.document import buckets, plan_record

        click.echo(dumps(plan_record(found) if style == "json" else buckets(found)))
        return
    from matrix.report.text import points_table

    for line in points_table(found.points, terminal_width()) if found.points else ():
        click.echo(line)
    for one in found.left_out:
        click.echo(f"left out: {one.what}: {one.rule}: {one.reason}")
