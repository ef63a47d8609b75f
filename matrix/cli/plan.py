"""``matrix plan``: what a change runs, what it does not and why, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matrix.cli.changelog import context_of, revision_options, revisions_of
from matrix.cli.options import file_options, terminal_width
from matrix.cli.report import tell

if TYPE_CHECKING:
    from matrix.plan.plan import Plan

__all__ = ["plan"]


@click.command(short_help="Show what a change runs.")
@revision_options
@file_options
@click.option("--base-config", "base_masters", type=click.Path(), multiple=True, help="A master config of --base-file.")
@click.option("--head-ref", metavar="REF", help="The changed commit. [default: HEAD]")
@click.option("--worktree", is_flag=True, help="Plan what lies in the working tree instead of a commit.")
@click.option("--merge", "merging", is_flag=True, help="As on main: no placeholder links.")
@click.option("--trim-conc", "trim", is_flag=True, help="Of each family of throughput points the lowest concurrency.")
@click.option("--all-evals", is_flag=True, help="An accuracy run of every eligible point.")
@click.option("--evals-only", is_flag=True, help="Accuracy runs alone.")
@click.option(
    "--allow-uncovered", "waivers", nargs=2, multiple=True, metavar="PATTERN REASON",
    help="Configs that may change without an entry, and why.",
)  # fmt: skip
@click.option("--format", "style", type=click.Choice(["table", "json", "buckets"]), default="table", help="How.")
@click.option("--allow-empty", is_flag=True, help="Exit 0, not 3, when nothing is left to run.")
def plan(*, style: str, allow_empty: bool, **options: Any) -> int:
    """Show what the new entries of perf-changelog.yaml run.

    The log and the configs of two commits are compared, the working tree is not read. --format json is plan.json;
    buckets is the shape that InferenceX's planner prints. Nothing to run is exit status 3, with the reason.
    """
    found = _planned(options)
    if style == "table":
        _print_table(found)
    else:
        from json import dumps

        from matrix.plan.document import buckets, plan_record

        click.echo(dumps(plan_record(found) if style == "json" else buckets(found)))
    if found.points:
        return 0
    click.echo(f"matrix: nothing to run: {found.reason}", err=True)
    return 0 if allow_empty else 3


def _planned(options: dict[str, Any]) -> Plan:
    """The plan, or a refusal with every fault of log and configs."""
    from matrix.changelog.rules import check
    from matrix.errors import RefusedError
    from matrix.plan.claims import Options
    from matrix.plan.proof import prove
    from matrix.plan.snapshot import Named

    revisions = revisions_of(options)
    context = context_of(revisions, options, merging=options["merging"])
    findings, verdict = check(revisions.base, revisions.head, context)
    if verdict.log is None or (verdict.log.findings and not verdict.log.entries):
        raise RefusedError(findings)
    named = Named(options["masters"], options["runners"], options["recipes"], options["golden"])
    wanted = Options(options["trim"], options["all_evals"], options["evals_only"])
    proof = prove(
        revisions, verdict, named, base_masters=options["base_masters"], options=wanted, waivers=options["waivers"]
    )
    for pattern, reason in options["waivers"]:
        click.echo(f"matrix: {pattern} may change without an entry: {reason}", err=True)
    tell([*findings, *proof.findings])
    if proof.plan is None:
        message = "no master config is there to plan with; name one with --config"
        raise click.UsageError(message)
    return proof.plan


def _print_table(found: Plan) -> None:
    from matrix.report.text import points_table

    for line in points_table(found.points, terminal_width()) if found.points else ():
        click.echo(line)
    for one in found.left_out:
        click.echo(f"left out: {one.what}: {one.rule}: {one.reason}")
