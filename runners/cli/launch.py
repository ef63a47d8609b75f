"""``python -m runners launch``: one point, from here to a verified result."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from matrix.workspace import Workspace
    from runners.profile import Profile
    from runners.target import Target

__all__ = ["cluster_options", "launch", "opened", "profile_for"]

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name the cluster, the folders and the checkout."""
    options = [
        click.option("--cluster", help="Cluster profile, by name or path. [default: the one of the point's runner]"),
        click.option("--workspace", type=_FOLDER, help="Checkout with the benchmark client, instead of the profile's."),
        click.option("--results", type=_FOLDER, default=Path("results"), show_default=True, help="Where results go."),
        click.option(
            "--repository", type=_FOLDER, help="Checkout with the search space. [default: the one around here]"
        ),
        click.option("--allow-drift", is_flag=True, help="Run what is here although it is not what was planned."),
        click.option("--rdma-userspace", is_flag=True, help="Mount the host's RDMA libraries into the containers."),
        click.option("--keep", is_flag=True, help="Keep the job's folder after a success as well."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def opened(repository: Path | None) -> tuple[Workspace, Path]:
    """The search space and the folder of its checkout."""
    from matrix.workspace import open_workspace

    workspace = open_workspace(str(repository or "."))
    return workspace, Path(workspace.settings.root or repository or ".").resolve()


def profile_for(cluster: str | None, runner: str, workspace: Path | None, space: Workspace) -> Profile:
    """The profile of a launch: the repository's own, else one of the package."""
    from runners.profile import find_profile, profile_folders

    instead = {"workspace": str(workspace.resolve())} if workspace is not None else {}
    folders = profile_folders(space.settings.clusters)
    return find_profile(cluster, runner, os.environ, folders=folders, instead=instead)


@click.command()
@click.argument("point_id", metavar="[ID]", required=False)
@click.option("--plan", type=_FILE, help="A plan; --id names the point of it.")
@click.option("--id", "named", metavar="ID", help="The point of the plan.")
@click.option("--point", "row_file", type=_FILE, help="A row as a file.")
@cluster_options
@click.option("--dry-run", is_flag=True, help="Everything but the submission. Needs no Slurm.")
@click.option("--off-cluster", is_flag=True, help="With --dry-run: this host is not the cluster's login node.")
def launch(  # noqa: PLR0913 - its options
    *,
    point_id: str | None,
    plan: Path | None,
    named: str | None,
    row_file: Path | None,
    cluster: str | None,
    workspace: Path | None,
    results: Path,
    repository: Path | None,
    allow_drift: bool,
    rdma_userspace: bool,
    keep: bool,
    dry_run: bool,
    off_cluster: bool,
) -> None:
    """Run one point: ID, or --plan FILE --id ID, or --point FILE.

    Exit status: 0 for a job that passed with verified results, 128+n after signal n, else 1.
    """
    from runners.prepare import Wishes

    if off_cluster and not dry_run:
        msg = "--off-cluster is for --dry-run"
        raise click.UsageError(msg)
    space, root = opened(repository)
    target = _target(point_id, plan, named, row_file, space)
    wishes = Wishes(rdma=rdma_userspace, allow_drift=allow_drift, off_cluster=off_cluster)
    if dry_run:
        from runners.dryrun import rehearse

        profile = _rehearsal_profile(cluster, target, workspace, space, off_cluster=off_cluster)
        warnings, told = rehearse(target, profile, root, os.environ, wishes, keep=keep)
        for warning in warnings:
            click.echo(str(warning), err=True)
        click.echo(told)
        return
    from runners.session import session

    profile = profile_for(cluster, str(target.row["runner"]), workspace, space)
    with session(root, results, wishes, keep=keep) as run:
        from runners.launch import launch as run_point

        status = run_point(target, profile, run)
    click.get_current_context().exit(status)


def _target(
    point_id: str | None, plan: Path | None, named: str | None, row_file: Path | None, space: Workspace
) -> Target:
    from runners.target import find_target, read_plan, read_row, target_of

    given = [plan is not None, row_file is not None, point_id is not None]
    if sum(given) != 1 or (plan is None) != (named is None):
        msg = "name one point: ID, or --plan FILE --id ID, or --point FILE"
        raise click.UsageError(msg)
    if plan is not None and named is not None:
        return find_target(read_plan(plan), named, space, str(plan))
    if row_file is not None:
        row = read_row(row_file)
        return target_of(str(row["id"]), space, row, source=str(row_file))
    return target_of(str(point_id), space)


def _rehearsal_profile(
    cluster: str | None, target: Target, workspace: Path | None, space: Workspace, *, off_cluster: bool
) -> Profile:
    if not off_cluster:
        return profile_for(cluster, str(target.row["runner"]), workspace, space)
    from runners.dryrun import away
    from runners.profile import profile_folders

    instead = {"workspace": str(workspace.resolve())} if workspace is not None else {}
    folders = profile_folders(space.settings.clusters)
    return away(cluster, str(target.row["runner"]), os.environ, instead, folders)
