"""``matrix simulate``: what an event would start, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matrix.cli.command import option

if TYPE_CHECKING:
    from matrix.plan.decision import Decision
    from matrix.plan.event import Event
    from matrix.plan.labels import Permission, Registry

__all__ = ["Given", "labels_of", "simulate"]

PERMISSIONS = ["admin", "maintain", "write", "triage", "read", "none", "unknown"]


class Given:
    """Answers that a command line gives; the subject of a commit is read from git where none was given."""

    def __init__(self, permission: str, subject: str | None = None, folder: str = ".") -> None:
        self._permission = permission
        self._subject = subject
        self._folder = folder

    def permission(self, login: str) -> Permission | None:
        """The permission that was given; None for ``unknown``."""
        from matrix.plan.labels import Permission

        return None if self._permission == "unknown" else Permission(self._permission)

    def subject(self, sha: str) -> str:
        """The first line of the commit's message; empty where the commit is not here."""
        if self._subject is not None or not sha:
            return self._subject or ""
        import subprocess

        command = ["git", "show", "--no-patch", "--format=%s", f"{sha}^{{commit}}", "--"]
        try:
            result = subprocess.run(command, cwd=self._folder, capture_output=True, check=False)
        except OSError:  # no git
            return ""
        return result.stdout.decode("utf-8", "replace").rstrip("\n")


def labels_of(path: str | None) -> Registry:
    """The label registry that is named, or the repository's.

    Raises:
        RefusedError: there is none, or it is broken.
    """
    from matrix.plan.labels import load_labels

    if path is None:
        from matrix.config.settings import find_settings

        path = find_settings(".").labels
    if path is None:
        from matrix.errors import RefusedError
        from matrix.findings import Finding

        message = "no label registry is named, and there is no configs/labels.yaml."
        fix = "name it with --labels FILE, or in [tool.matrix] of pyproject.toml"
        raise RefusedError([Finding(rule="settings-missing", message=message, fix=fix)])
    return load_labels(path)


@click.command(short_help="Say what an event would start, and why.")
@option("--event", "path", type=click.Path(), required=True, help="An event file, as GITHUB_EVENT_PATH names it.")
@option("--event-name", "name", metavar="NAME", help="What GitHub calls the event. [default: by its shape]")
@option("--label", metavar="NAME", help="As if this label were set now.")
@option("--labels", type=click.Path(), help="The label registry.")
@option(
    "--permission", type=click.Choice(PERMISSIONS), default="write", show_default=True,
    help="What whoever did it may do in the repository.",
)  # fmt: skip
@option("--subject", metavar="TEXT", help="The subject of the head commit. [default: from git]")
@option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="How to report.")
def simulate(
    *,
    path: str,
    name: str | None,
    label: str | None,
    labels: str | None,
    permission: str,
    subject: str | None,
    style: str,
) -> int:
    """Say what an event would start, and why. Nothing is asked of GitHub, and nothing starts.

    Exit status 1 where the event would be refused; a sweep that is skipped or cancelled is no fault.
    """
    from matrix.plan.decision import Action, decide
    from matrix.plan.event import Kind, read_event

    registry = labels_of(labels)
    event = read_event(path, name)
    if label is not None:
        if event.kind is not Kind.PULL_REQUEST:
            message = f"--label sets a label on a pull request, and the event is a {event.kind}."
            raise click.UsageError(message)
        event = event._replace(action="labeled", label=label, labels=(*event.labels, label))
    decision = decide(event, registry, Given(permission, subject))
    if style == "json":
        from json import dumps

        click.echo(dumps(_record(event, registry, decision)))
    else:
        _tell(event, registry, decision)
    return int(decision.action is Action.REFUSE)


def _record(event: Event, registry: Registry, decision: Decision) -> dict[str, Any]:
    from matrix.plan.decision import concurrency_group, supersedes

    mode, approval = decision.mode, decision.approval
    return {
        "version": 1,
        "decision": decision.action.value,
        "reason": decision.reason,
        "mode": None if mode is None else mode._asdict(),
        "approval": None if approval is None else approval._asdict(),
        "group": concurrency_group(event, registry, "N"),
        "ends-what-runs": supersedes(event, registry),
    }


def _tell(event: Event, registry: Registry, decision: Decision) -> None:
    from matrix.plan.decision import concurrency_group, supersedes

    click.echo(f"{decision.action}: {decision.reason}")
    mode = decision.mode
    if mode is not None:
        canary = "first, and the rest after its success" if mode.canary else "none"
        click.echo(f"canary: {canary}")
        click.echo(f"failure: {'stops the rest' if mode.fail_fast else 'stops nothing else'}")
        points = "the lowest concurrency of each family" if mode.trim else "all"
        click.echo(f"throughput: {'none' if mode.evals_only else points}")
        click.echo(f"accuracy: {'every eligible point' if mode.all_evals else 'the picked points'}")
    over = "ends the sweep that this pull request has under way" if supersedes(event, registry) else "ends nothing"
    click.echo(f"group: {concurrency_group(event, registry, 'N')}, {over}")
