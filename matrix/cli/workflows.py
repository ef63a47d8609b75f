"""``matrix workflows``: write the workflows of a repository, and hold them to their templates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from matrix.cli.command import option
from matrix.cli.report import tell
from matrix.cli.simulate import labels_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from matrix.findings import Finding
    from matrix.plan.labels import Registry
    from matrix.plan.workflows import State

__all__ = ["workflows"]


@click.group(short_help="Write the workflows of a repository, and check them.")
def workflows() -> None:
    """Write the workflows that run a sweep into a repository, and hold them to their templates."""


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which folder, and which labels."""
    options = [
        option("--folder", type=click.Path(), help="Where they are. [default: workflows of [tool.matrix]]"),
        option("--labels", type=click.Path(), help="The label registry."),
    ]
    for add in reversed(options):
        command = add(command)
    return command


@workflows.command(short_help="Write the workflows.")
@place_options
def write(*, folder: str | None, labels: str | None) -> int:
    """Write the workflows. A file that somebody else wrote is never touched, and newer pins of actions stay."""
    from matrix.cli.files import replace

    states, _ = _states(folder, labels)
    tell([state.finding() for state in states if state.foreign])
    for state in states:
        if state.right:
            click.echo(f"{state.path}: as it should be")
            continue
        state.path.parent.mkdir(parents=True, exist_ok=True)
        replace(state.path, state.text)
        click.echo(f"{state.path}: written")
    return 0


@workflows.command(short_help="Hold the workflows to their templates.")
@place_options
def check(*, folder: str | None, labels: str | None) -> int:
    """Show how the workflows differ from their templates, and what no linter finds in any workflow of the folder.

    Exit status 1 where anything is found. A newer pin of the same action is no difference.
    """
    states, registry = _states(folder, labels)
    findings = [state.finding() for state in states if not state.right]
    for state in states:
        for line in () if state.right or state.foreign else state.difference():
            click.echo(line)
    findings += _linted(states, registry)
    tell(findings)
    click.echo(f"{len(states)} workflows are as their templates have them.")
    return 0


def _states(folder: str | None, labels: str | None) -> tuple[list[State], Registry]:
    from matrix.config.settings import find_settings
    from matrix.plan.workflows import compare, render

    settings = find_settings(".")
    root = Path(settings.root or ".")
    registry = labels_of(labels)
    where = Path(folder) if folder else Path(settings.workflows or root / ".github" / "workflows")
    return compare(where, render(registry, root)), registry


def _linted(states: list[State], registry: Registry) -> list[Finding]:
    from matrix.errors import RefusedError
    from matrix.plan.workflow_lint import lint

    folders = dict.fromkeys(state.path.parent for state in states)
    paths = [path for folder in folders for path in sorted(folder.glob("*.y*ml"))]
    findings: list[Finding] = []
    for path in paths:
        try:
            findings += lint(str(path), registry)
        except RefusedError as error:
            findings += error.findings
    return findings
