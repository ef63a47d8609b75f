"""``python -m runners sweep``: many points of a plan."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runners.cli.launch import cluster_options, opened, profile_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from matrix.findings import Finding
    from matrix.workspace import Workspace
    from runners.profile import Profile
    from runners.target import Target

__all__ = ["sweep"]


@click.command(short_help="Run the points of a plan, without those that succeeded.")
@click.option("--plan", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The plan.")
@click.option("--select", multiple=True, metavar="GLOB", help="Points of these ids alone. Repeatable.")
@click.option("--max-parallel", type=click.IntRange(min=1), default=4, show_default=True, help="Jobs at once.")
@click.option("--fail-fast", is_flag=True, help="Cancel the rest after the first failure.")
@cluster_options
def sweep(  # noqa: PLR0913 - its options
    *,
    plan: Path,
    select: tuple[str, ...],
    max_parallel: int,
    fail_fast: bool,
    cluster: str | None,
    workspace: Path | None,
    results: Path,
    repository: Path | None,
    allow_drift: bool,
    rdma_userspace: bool,
    keep: bool,
) -> None:
    """Run the points of a plan; those whose receipt says that the same job succeeded are skipped.

    Exit status: 0 when every point is done, 128+n after signal n, else 1.
    """
    from runners.board import Above, Board, table
    from runners.harmless import for_log
    from runners.prepare import Wishes
    from runners.session import session
    from runners.sweep import sweep as run_points
    from runners.target import read_plan

    space, root = opened(repository)
    rows = _chosen(read_plan(plan), select)
    targets = _resolved(rows, space, plan, allow_drift=allow_drift)
    profiles: dict[str, Profile] = {}

    def profile_of(target: Target) -> Profile:
        runner = str(target.row["runner"])
        if runner not in profiles:
            profiles[runner] = profile_for(cluster, runner, workspace, space)
        return profiles[runner]

    for target in targets:
        profile_of(target)
    board = Board(sys.stderr)
    with session(root, results, Wishes(rdma=rdma_userspace, allow_drift=allow_drift), keep=keep) as run:
        if board.live:
            run = replace(run, display=Above(board))  # noqa: PLW2901 - the same launch, shown elsewhere
        done = run_points(targets, profile_of, run, most=max_parallel, fail_fast=fail_fast, show=board.show)
    click.echo(for_log(table(done.entries)))
    click.get_current_context().exit(done.exit_status)


def _chosen(rows: Mapping[str, Mapping[str, Any]], select: tuple[str, ...]) -> dict[str, Mapping[str, Any]]:
    from matrix.errors import NothingSelectedError
    from matrix.points.select import matches

    chosen = {name: row for name, row in rows.items() if not select or any(matches(glob, name) for glob in select)}
    if not chosen:
        msg = "no point of the plan is selected" if rows else "the plan has no points"
        raise NothingSelectedError(msg)
    return chosen


def _resolved(
    rows: Mapping[str, Mapping[str, Any]], space: Workspace, plan: Path, *, allow_drift: bool
) -> list[Target]:
    """All points, or one refusal with everything that is wrong with any of them: nothing is started before that."""
    from matrix.errors import RefusedError
    from runners.prepare import drift
    from runners.target import target_of

    targets: list[Target] = []
    findings: list[Finding] = []
    for name, row in rows.items():
        try:
            target = target_of(name, space, row, source=str(plan))
        except RefusedError as refused:
            findings += refused.findings
            continue
        targets.append(target)
        if target.drifted and not allow_drift:
            findings.append(drift(target))
    if findings:
        raise RefusedError(findings)
    return targets
