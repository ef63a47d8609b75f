"""``repro``, ``cancel``, ``doctor``: how to run a point again, how to end it, and what this host lacks for it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runners.cli.launch import opened, profile_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matrix.findings import Finding
    from runners.job import JobId
    from runners.receipt import Receipt

__all__ = ["cancel", "doctor", "repro"]

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(short_help="Show how to run a point again, and what has changed since.")
@click.argument("name", metavar="ID|RECEIPT")
@click.option("--cluster", help="Cluster profile. [default: the receipt's, or the one of the point's runner]")
@click.option("--workspace", type=_FOLDER, help="Checkout with the benchmark client, instead of the profile's.")
@click.option("--results", type=_FOLDER, default=Path("results"), show_default=True, help="Where receipts are.")
@click.option("--repository", type=_FOLDER, help="Checkout with the search space. [default: the one around here]")
def repro(name: str, cluster: str | None, workspace: Path | None, results: Path, repository: Path | None) -> None:
    """Show the commands that run a point again, and what has changed since its receipt.

    A receipt is looked for at the path, else as that of the ID below the results folder.
    """
    from runners.repro import changes, commands
    from runners.target import target_of

    receipt = _receipt(name, results)
    point = str(receipt.point["id"]) if receipt is not None else name
    cluster = cluster or (str(receipt.inputs.get("profile")) if receipt is not None else None)
    space, root = opened(repository)
    target = target_of(point, space)
    profile = profile_for(cluster, str(target.row["runner"]), workspace, space)
    click.echo("\n".join(commands(point, profile.cluster, receipt)))
    if receipt is None:
        click.echo("no receipt: this point has not been launched from here", err=True)
        return
    found = list(changes(receipt, target, profile, _software(root)))
    click.echo("changed since:" if found else "nothing has changed since", err=True)
    for change in found:
        click.echo(f"  {change}", err=True)


@click.command()
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
def cancel(jobs: tuple[str, ...]) -> None:
    """Cancel jobs by their ids, each once. Jobs that have ended are no fault."""
    from runners.cancel import after_the_order
    from runners.cancel import cancel as order
    from runners.session import need_slurm
    from runners.signals import Signals
    from runners.slurm import Slurm

    ids = _ids(jobs)
    slurm = Slurm()
    need_slurm(slurm)
    taken = order(slurm, ids, clock=Signals(), tell=lambda text: click.echo(text, err=True))
    for line in after_the_order(slurm, ids) if taken else ():
        click.echo(line, err=True)
    click.get_current_context().exit(0 if taken else 1)


@click.command()
@click.option("--cluster", help="Cluster profile. [default: the one of RUNNER_NAME]")
@click.option("--workspace", type=_FOLDER, help="Checkout with the benchmark client, instead of the profile's.")
@click.option("--repository", type=_FOLDER, help="Checkout with the search space. [default: the one around here]")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def doctor(cluster: str | None, workspace: Path | None, repository: Path | None, form: str) -> None:
    """Say what this host lacks for launches, each thing with its fix.

    Exit status 1 when something that is needed is missing.
    """
    from matrix.errors import RefusedError
    from runners.doctor import Check, examine, examine_profile

    space, root = opened(repository)
    checks = list(examine(root, os.environ))
    runner = os.environ.get("RUNNER_NAME", "")
    if cluster or runner:
        try:
            checks += examine_profile(profile_for(cluster, runner, workspace, space))
        except RefusedError as refused:
            checks += [
                Check(what="profile", good=False, said=f"{finding.span}: {finding.message}", fix=finding.fix)
                for finding in refused.findings
            ]
    else:
        fix = "name one: --cluster NAME"
        checks.append(
            Check(what="profile", good=None, said="no cluster is named, so nothing of it was looked at", fix=fix)
        )
    if form == "json":
        rows: list[dict[str, Any]] = [
            {"what": check.what, "good": check.good, "said": check.said, "fix": check.fix} for check in checks
        ]
        click.echo(json.dumps(rows, indent=2))
    else:
        for check in checks:
            mark = {True: "good", False: "MISSING", None: "-"}[check.good]
            fix = f"  fix: {check.fix}" if check.fix and check.good is not True else ""
            click.echo(f"{mark:8} {check.what}: {check.said}{fix}")
    sys.stdout.flush()
    click.get_current_context().exit(int(any(check.good is False for check in checks)))


def _ids(words: Iterable[str]) -> list[JobId]:
    from matrix.errors import RefusedError
    from runners.job import JobId

    ids: list[JobId] = []
    findings: list[Finding] = []
    for word in words:
        try:
            ids.append(JobId.parse(word))
        except RefusedError as refused:
            findings += refused.findings
    if findings:
        raise RefusedError(findings)
    return ids


def _receipt(name: str, results: Path) -> Receipt | None:
    from runners.receipt import NAME, read_receipt

    for path in (Path(name), results / name / NAME):
        if path.exists():
            return read_receipt(path)
    if "/" in name or name.endswith(".json"):
        return read_receipt(Path(name))
    return None


def _software(root: Path) -> dict[str, Any]:
    from runners.pin import read_pin
    from runners.series import load_series

    patches = load_series(root / "runners" / "srt-slurm" / "patches").record
    return {"pin": read_pin(root).commit, "patches": dict(patches)}
