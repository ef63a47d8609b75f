"""``matrix reuse``: what an earlier sweep can stand in for, said when it is asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import click

from matrix.cli.command import option
from matrix.cli.simulate import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matrix.forge import Forge
    from matrix.plan.labels import Registry
    from matrix.plan.reuse import Request, Reuse

__all__ = ["asked_reuse", "reuse"]

_WORKFLOW: Final = "run-sweep.yml"


@click.command(short_help="Say what an earlier sweep can stand in for.")
@option("--number", type=click.IntRange(min=1), required=True, metavar="N", help="The pull request.")
@option("--plan", "path", type=click.Path(), help="A plan.json: which of its points it is.")
@option("--repository", metavar="OWNER/NAME", envvar="GITHUB_REPOSITORY", required=True, help="On GitHub.")
@option("--labels", type=click.Path(), help="The label registry.")
@option("--reply", is_flag=True, help="Answer in a comment too, updated in place.")
@option("--author", metavar="LOGIN", help="Whose comment the answer is. [default: github-actions[bot]]")
@option("--allow-empty", is_flag=True, help="Exit 0, not 3, when nobody who may has asked.")
def reuse(
    *,
    number: int,
    path: str | None,
    repository: str,
    labels: str | None,
    reply: bool,
    author: str | None,
    allow_empty: bool,
) -> int:
    """Say what the comments of a pull request let be reused, and from which run.

    /reuse-sweep-run alone on a line takes the newest full sweep of the pull request's commits, /reuse-sweep-run RUN
    that run. Exit status 1 where it cannot be had, with the cure; 3 where nobody who may has asked.
    """
    from matrix.cli.forge import forge_of
    from matrix.errors import RefusedError
    from matrix.plan.approval import Asking
    from matrix.plan.reuse import COMMAND, find_request
    from matrix.report.comment import reuse_text

    registry = labels_of(labels)
    with forge_of(repository, os.environ) as forge:
        try:
            request = find_request(forge.comments(number), Asking(forge, str))
            if request is None:
                if reply:
                    _withdraw(forge, number, author)
                click.echo(f"matrix: nobody with write permission has asked with {COMMAND}", err=True)
                return 0 if allow_empty else 3
            lines = _answer(request, number, forge, registry, path)
        except RefusedError as error:
            if reply and error.findings[0].rule.startswith("reuse-"):
                _reply(forge, number, reuse_text("", error.findings), author)
            raise
        if reply:
            _reply(forge, number, reuse_text(lines[0]), author)
    for line in lines:
        click.echo(line)
    return 0


def _answer(request: Request, number: int, forge: Forge, registry: Registry, path: str | None) -> list[str]:
    """The run, and for a plan what becomes of each of its points."""
    from matrix.plan.reuse import find_reuse, find_source, reused_by

    if path is None:
        run, earlier = find_source(request, number, forge=forge, registry=registry, workflow=_WORKFLOW)
        kept = len(earlier.results)
        jobs = "1 job" if kept == 1 else f"{kept:,} jobs"
        reused = reused_by(earlier)
        also = f", and with {len(reused.points):,} results that it reused itself" if reused is not None else ""
        said = f"Run {run.id} at {run.head_sha[:12]} stands in, with what {jobs} left that is still kept{also}. "
        return [said + "When a label is set, the very same jobs are reused, and the others run."]
    from matrix.plan.sweep import read_plan

    rows = read_plan(path).rows
    found = find_reuse(request, rows.values(), number, forge=forge, registry=registry, workflow=_WORKFLOW)
    said = f"Run {found.run_id} at {found.head_sha[:12]} stands in for {len(found.points):,} of {len(rows):,} points."
    return [said, *(name for name in rows if name in found.points)]


def _reply(forge: Forge, number: int, text: str, author: str | None, *, create: bool = True) -> None:
    from matrix.cli.forge import sticky_of

    outcome = sticky_of("reuse", os.environ, author).put(forge, number, text, create=create)
    click.echo(f"the answer on pull request {number}: {outcome}", err=True)


def _withdraw(forge: Forge, number: int, author: str | None) -> None:
    """Nobody asks any more, so an earlier answer must not stand."""
    from matrix.report.comment import reuse_text

    _reply(forge, number, reuse_text("Nobody asks for a reuse; a sweep runs everything."), author, create=False)


def asked_reuse(forge: Forge, number: int, rows: Iterable[Mapping[str, Any]], registry: Registry) -> Reuse | None:
    """What the comments of a pull request ask for; None where they ask for nothing.

    Raises:
        RefusedError: it cannot be had, or GitHub does not answer.
    """
    from matrix.plan.approval import Asking
    from matrix.plan.reuse import find_request, find_reuse

    request = find_request(forge.comments(number), Asking(forge, str))
    if request is None:
        return None
    return find_reuse(request, rows, number, forge=forge, registry=registry, workflow=_WORKFLOW)
