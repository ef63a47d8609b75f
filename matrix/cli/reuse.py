"""``matrix reuse``: what an earlier sweep would give, asked before anything depends on it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import click

from matrix.cli.simulate import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matrix.plan.labels import Registry
    from matrix.plan.reuse import Reuse

__all__ = ["asked_reuse", "reuse"]

_TOKEN: Final = "GITHUB_TOKEN"  # noqa: S105 - where it is, not what it is
_WORKFLOW: Final = "run-sweep.yml"


@click.command(short_help="Say what an earlier sweep can stand in for.")
@click.argument("path", metavar="PLAN", type=click.Path())
@click.option("--number", type=click.IntRange(min=1), required=True, help="The pull request.")
@click.option("--repository", metavar="OWNER/NAME", envvar="GITHUB_REPOSITORY", required=True, help="On GitHub.")
@click.option("--labels", type=click.Path(), help="The label registry.")
def reuse(*, path: str, number: int, repository: str, labels: str | None) -> int:
    """Say which points of a plan.json the comments of a pull request let be reused, and from which run.

    /reuse-sweep-run alone on a line takes the newest full sweep of the pull request's commits, /reuse-sweep-run RUN
    that run. Exit status 1 where it cannot be had, with the cure; 3 where nobody who may has asked.
    """
    from matrix.plan.reuse import COMMAND
    from matrix.plan.sweep import read_plan

    rows = read_plan(path).rows
    found = asked_reuse(repository, number, rows.values(), labels_of(labels), os.environ)
    if found is None:
        click.echo(f"matrix: nobody with write permission has asked with {COMMAND}", err=True)
        return 3
    for name in rows:
        click.echo(f"{name}: {f'run {found.run_id}' if name in found.points else 'has to run'}")
    return 0


def asked_reuse(
    repository: str,
    number: int,
    rows: Iterable[Mapping[str, Any]],
    registry: Registry,
    environment: Mapping[str, str],
) -> Reuse | None:
    """What the comments of a pull request ask for; None where they ask for nothing.

    Raises:
        RefusedError: it cannot be had, or GitHub does not answer.
    """
    from matrix.github import API, GitHub
    from matrix.plan.approval import Asking
    from matrix.plan.reuse import find_request, find_reuse

    with GitHub(repository, environment.get(_TOKEN), api=environment.get("GITHUB_API_URL", API)) as forge:
        request = find_request(forge.comments(number), Asking(forge, str))
        if request is None:
            return None
        return find_reuse(request, rows, number, forge=forge, registry=registry, workflow=_WORKFLOW)
