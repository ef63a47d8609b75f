"""``matrix shard`` and ``matrix job``: what one job of a sweep reads out of ``plan.json``."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from matrix.cli.command import option
from matrix.cli.complete import offer_ids_of_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matrix.plan.sweep import Written

__all__ = ["job", "shard"]


def plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which plan, and the proof that it is the one."""
    options = [
        option("--plan", "path", type=click.Path(), required=True, help="The plan.json of this run."),
        option("--plan-digest", "digest", metavar="SHA256", help="What the planning job said of its bytes."),
    ]
    for add in reversed(options):
        command = add(command)
    return command


@click.command(short_help="The jobs of one shard of a plan.")
@plan_options
@option("--number", type=click.IntRange(min=1), required=True, help="The shard, counted from 1.")
def shard(*, path: str, digest: str | None, number: int) -> int:
    """Print the jobs of one shard as JSON, {id, runner} each; in GitHub Actions as the outputs jobs and has-jobs."""
    found = [one.record() for one in _read(path, digest).shard(number)]
    _emit({"has-jobs": "true" if found else "false", "jobs": json.dumps(found, separators=(",", ":"))}, os.environ)
    return 0


@click.command(short_help="One job of a plan.")
@plan_options
@option("--id", "name", metavar="ID", required=True, help="The point.", shell_complete=offer_ids_of_plan)
@option("--checkout", metavar="SHA", help="The commit that is checked out; another one than planned is refused.")
def job(*, path: str, digest: str | None, name: str, checkout: str | None) -> int:
    """Print runner, digest and time limit of one point; in GitHub Actions as outputs."""
    from matrix.plan.shards import USUAL_MINUTES

    written = _read(path, digest)
    row = written.row(name)
    if checkout is not None:
        _fits(written, checkout)
    minutes = written.minutes.get(name, USUAL_MINUTES)
    _emit({"runner": row["runner"], "digest": row["digest"], "minutes": str(minutes)}, os.environ)
    return 0


def _read(path: str, digest: str | None) -> Written:
    from matrix.plan.sweep import read_plan

    return read_plan(path, digest)


def _fits(written: Written, checkout: str) -> None:
    from matrix.errors import RefusedError
    from matrix.plan.approval import misfit

    if (finding := misfit(written.record, checkout)) is not None:
        raise RefusedError([finding])


def _emit(outputs: dict[str, str], environment: Mapping[str, str]) -> None:
    lines = "".join(f"{name}={value}\n" for name, value in outputs.items())
    click.echo(lines, nl=False)
    if file := environment.get("GITHUB_OUTPUT"):
        from matrix.cli.files import append

        append(file, lines)
