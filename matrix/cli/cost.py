"""``matrix cost``: what jobs take, before anybody starts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matrix.cli.command import option
from matrix.cli.expand import request_of, selection_options
from matrix.cli.options import Positive, file_options, terminal_width, workspace_of
from matrix.cli.report import tell

if TYPE_CHECKING:
    from matrix.answers.side import Side
    from matrix.config.fleet import Fleet
    from matrix.points.request import Request

__all__ = ["cost"]


@click.command(short_help="Say what jobs take.")
@click.argument("path", metavar="[PLAN.json]", required=False)
@file_options
@selection_options
@option("--base", metavar="REF", help="Of a change: from this commit, what its new log entries run.")
@option("--head", metavar="REF", help="To this commit. [default: HEAD]")
@option(
    "--history",
    "folders",
    type=click.Path(),
    multiple=True,
    metavar="DIR",
    help="What launches have left: how long the same jobs ran. Repeatable.",
)
@option(
    "--assume",
    type=Positive(),
    metavar="MINUTES",
    help="The length of a job of which none is known. [default: it is not counted]",
)
@option(
    "--format", "style", type=click.Choice(["text", "json", "markdown"]), default="text", help="How to report."
)  # fmt: skip
def cost(
    *,
    path: str | None,
    base: str | None,
    head: str | None,
    folders: tuple[str, ...],
    assume: float | None,
    style: str,
    **options: Any,
) -> int:
    """Say how many jobs, nodes and GPU-hours the points take, and how long the machines of each label are busy.

    The points are those that `matrix expand` shows with the same options, and the accuracy runs that it marks; or those
    of a plan file; or with --base those of a change. Throughput runs of agentic points take an hour, others an unknown
    time, unless --history or --assume tells it.
    """
    from matrix.answers.cost import estimate, history_of
    from matrix.answers.results import read_results
    from matrix.config.settings import find_settings
    from matrix.report.cost import cost_lines, cost_markdown, cost_record

    files = {name: options.pop(name) for name in ("masters", "runners", "recipes", "golden")}
    side, fleet, why = _asked(path, base, head, request_of(options), files)
    if not side.ids:
        click.echo(f"matrix: {why}", err=True)
        return 3
    results, findings = read_results(folders)
    tell([*findings, *side.findings])
    history = history_of(results) if folders else None
    found = estimate(side, fleet, history, None if assume is None else assume * 60)
    budget = find_settings(".").budget_gpu_hours
    if style == "json":
        from json import dumps

        click.echo(dumps(cost_record(found, budget)))
        return 0
    lines = cost_markdown(found, budget) if style == "markdown" else cost_lines(found, terminal_width(), budget)
    for line in lines:
        click.echo(line)
    return 0


def _asked(
    path: str | None, base: str | None, head: str | None, request: Request, files: dict[str, Any]
) -> tuple[Side, Fleet | None, str]:
    """The points that are asked about, whose machines run them, and what is said when there are none."""
    from matrix.answers.side import WORKING_TREE, plan_side, points_side
    from matrix.plan.snapshot import in_folder
    from matrix.points.request import Request

    if path is not None and (base or head):
        message = "a plan file holds the points of its change; leave out --base and --head, or the file."
        raise click.UsageError(message)
    if head and not base:
        message = "--head goes with --base: without it there is no change."
        raise click.UsageError(message)
    if path is not None:
        if request != Request():
            message = f"{path} was selected when it was made; the options that select do not go with it."
            raise click.UsageError(message)
        return plan_side(path), _fleet(files["runners"]), f"{path} has no point"
    if base is not None:
        return _change(base, head, request, files)
    workspace = workspace_of(**files)
    side = points_side(WORKING_TREE, in_folder(workspace), request)
    return side, workspace.facts.fleet, "no point is selected; see what `matrix expand` says with the same options"


def _change(base: str, head: str | None, request: Request, files: dict[str, Any]) -> tuple[Side, Fleet | None, str]:
    """What `matrix plan` would run between two commits."""
    from matrix.answers.side import Side
    from matrix.cli.changelog import judge, revisions_of
    from matrix.plan.claims import Options
    from matrix.points.evals import EvalMode
    from matrix.points.request import Request

    all_evals = request.evals is EvalMode.ALL
    wanted = Options(request.trim, all_evals, request.evals_only and not all_evals)
    left = request._replace(trim=False, evals_only=False, evals=EvalMode.MARK if all_evals else request.evals)
    if left != Request():
        message = "of a change the log selects; --trim-conc, --all-evals and --evals-only alone go with --base."
        raise click.UsageError(message)
    options: dict[str, Any] = {
        **files, "base_ref": base, "head_ref": head, "base_file": None, "head_file": None, "path": None,
        "worktree": False, "number": None, "repository": None, "merging": False, "waivers": (), "base_masters": (),
    }  # fmt: skip
    findings, _, plan = judge(revisions_of(options), options, wanted)
    tell(findings)
    if plan is None:
        message = "no master config is there to plan with; name one with --config."
        raise click.UsageError(message)
    name = f"{plan.base} -> {plan.head}"
    side = Side(name, {point.id: point for point in plan.points})
    return side, _fleet(files["runners"]), f"nothing to run: {plan.reason}."


def _fleet(runners: str | None) -> Fleet | None:
    """The machines of the runners file that is named, or of the repository's."""
    from matrix.config.loading import load_fleet
    from matrix.config.settings import find_settings

    path = runners or find_settings(".").runners
    return None if path is None else load_fleet(path)
