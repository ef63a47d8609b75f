"""``matrix why`` and ``matrix why-not``: what kept a point, or what removed it and what would bring it back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from matrix.cli.command import option
from matrix.cli.complete import offer
from matrix.cli.expand import request_of, selection_options
from matrix.cli.options import file_options, kept, terminal_width, workspace_of
from matrix.cli.report import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from matrix.answers.verdicts import Absence, Ground, Presence
    from matrix.changelog.entries import Log
    from matrix.config.source import Document
    from matrix.plan.labels import Registry
    from matrix.points.request import Request
    from matrix.workspace import Workspace

__all__ = ["why", "why_not"]

_FILES: Final = ("masters", "runners", "recipes", "golden")
_CHANGE: Final = ("plan", "base_ref", "head_ref", "worktree", "label")


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What both commands are asked with."""
    options = [
        option("--plan", type=click.Path(dir_okay=False), help="Ask about this plan.json."),
        option("--base-ref", metavar="REF", help="Ask about the plan of a change from this commit."),
        option("--head-ref", metavar="REF", help="Ask about the plan of a change to this commit."),
        option("--worktree", is_flag=True, help="Ask about the plan of what lies in the working tree."),
        option(
            "--label",
            multiple=True,
            metavar="NAME",
            help="As if the pull request had this label.",
            shell_complete=offer("label"),
        ),
        option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="For whom."),
    ]
    command = selection_options(command)
    for add in reversed(options):
        command = add(command)
    return file_options(command)


@click.command(short_help="Say why a point is there.")
@click.argument("name", metavar="ID", shell_complete=offer("id"))
@common_options
def why(*, name: str, style: str, **options: Any) -> int:
    """Say why the point with this ID is there: what declares it, what kept it, and where each of its values is written.

    Asked is the working tree; with the options of matrix expand, what they select; with --base-ref, --head-ref,
    --worktree or --label the plan of a change, as matrix plan makes it; with --plan a plan file. A point that is not
    there gets the answer of why-not.

    Exit status: 0 answered; 1 there is no such point.
    """
    if _is_pattern(name):
        message = f"why takes one id, and {name} is a pattern; why-not takes patterns."
        raise click.UsageError(message)
    return _answer(name, style, options, whole=True)


@click.command("why-not", short_help="Say why a point is not there, and what would bring it back.")
@click.argument("name", metavar="ID|PATTERN", shell_complete=offer("id"))
@common_options
def why_not(*, name: str, style: str, **options: Any) -> int:
    """Say what removed a point, and what to change to have it: a line of a file, an option, a label.

    Asked is what matrix why asks. * and ? make a pattern: every point that matches is answered for, those of one cause
    together. Of an id that the search space never makes the nearest are named, and what would make it.

    Exit status: 0 answered; 1 there is no such point; 3 no point matches the pattern.
    """
    return _answer_all(name, style, options) if _is_pattern(name) else _answer(name, style, options, whole=False)


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _answer(name: str, style: str, options: dict[str, Any], *, whole: bool) -> int:
    from matrix.answers.verdicts import Absence

    with _ground(options, name) as ground:
        answer = ground.answer(name)
        _print(answer, style, ground.where, whole=whole)
    return int(isinstance(answer, Absence) and not answer.declared)


def _answer_all(pattern: str, style: str, options: dict[str, Any]) -> int:
    from matrix.answers.verdicts import Absence
    from matrix.points.select import matches

    with _ground(options, None) as ground:
        names = [name for name in ground.ids() if matches(pattern, name)]
        answers = [ground.answer(name) for name in names if not ground.holds(name)]
        absent = [one for one in answers if isinstance(one, Absence)]
    if not names:
        click.echo(f"matrix: no point matches {pattern}.", err=True)
        return 3
    present, where = len(names) - len(absent), ground.where
    if style == "json":
        from json import dumps

        from matrix.report.why import absence_record

        record = {"version": 1, "pattern": pattern, "where": where, "present": present}
        click.echo(dumps({**record, "absent": [absence_record(one, where) for one in absent]}, indent=2))
        return 0
    from matrix.report.why import absences_text

    _echo(absences_text(absent, where, terminal_width()))
    verb = "is" if present == 1 else "are"
    click.echo(f"{present} of {len(names)} matching points {verb} in {where}")
    return 0


@contextmanager
def _ground(options: dict[str, Any], name: str | None) -> Iterator[Ground]:
    """What is asked about. The files of commits can be read as long as the context lasts."""
    change = {key: options.pop(key) for key in _CHANGE}
    files = {key: options.pop(key) for key in _FILES}
    request: Request = request_of(options)
    if not any(change.values()):
        yield _space(files, request, name)
        return
    from matrix.cli.why_change import ground_of
    from matrix.points.request import Request

    if request != Request():
        message = "the options of matrix expand do not go with --plan, --base-ref, --head-ref, --worktree or --label."
        raise click.UsageError(message)
    with ground_of(change, files) as ground:
        yield ground


def _space(files: dict[str, Any], request: Request, name: str | None) -> Ground:
    from matrix.answers.grounds import OfSpace
    from matrix.answers.space import Space
    from matrix.points.parts import parts_of
    from matrix.points.request import Request

    where = "the search space" if request == Request() else "what these options select"
    parts = parts_of(name) if name is not None else None
    if parts is not None and parts.node and request.node_filter is None:
        request = request._replace(node_filter=parts.node)
    workspace = workspace_of(*(files[key] for key in _FILES))
    space = Space(workspace, request)
    tell(space.findings)
    ground = OfSpace(space, where, _log(workspace), registry_of(workspace), evals_of(workspace))
    return kept(ground)


def _print(answer: Presence | Absence, style: str, where: str, *, whole: bool) -> None:
    from matrix.answers.verdicts import Presence
    from matrix.report.why import absence_record, absence_text, presence_record, presence_text

    if style == "json":
        from json import dumps

        record = presence_record(answer, where) if isinstance(answer, Presence) else absence_record(answer, where)
        click.echo(dumps(record, indent=2))
    elif isinstance(answer, Presence):
        _echo(presence_text(answer, where, terminal_width(), whole=whole))
    else:
        _echo(absence_text(answer, where, terminal_width()))


def _echo(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _log(workspace: Workspace) -> Log | None:
    """The changelog of the repository, where there is one."""
    path = workspace.settings.changelog
    if path is None:
        return None
    from matrix.changelog.entries import read
    from matrix.changelog.text import MAX_BYTES, Text
    from matrix.config.source import read_bytes

    log = read(Text(path, read_bytes(path, limit=MAX_BYTES, what="changelog")))
    return log if log.document is not None else None


def registry_of(workspace: Workspace) -> Registry | None:
    """The label registry of the repository, where there is one."""
    if workspace.settings.labels is None:
        return None
    from matrix.plan.labels import load_labels

    return load_labels(workspace.settings.labels)


def evals_of(workspace: Workspace) -> Document | None:
    """The file of the eval policy, where there is one."""
    if workspace.settings.evals is None:
        return None
    from matrix.config.source import load

    return load(workspace.settings.evals)
