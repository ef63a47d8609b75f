"""``matrix comment``: the one comment on a pull request that says what its sweep does and why."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import click

from matrix.cli.command import option
from matrix.cli.simulate import labels_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matrix.findings import Finding
    from matrix.plan.event import Event
    from matrix.report.comment import Effect

__all__ = ["comment"]

_MAX_FINDINGS: Final = 32 << 20
_SHAPE: Final = "give what a command printed with --format json"


@click.command(short_help="Say on a pull request what its sweep does.")
@click.argument("path", metavar="PLAN", type=click.Path())
@option("--event", "event_path", type=click.Path(), required=True, help="The event file of the pull request.")
@option("--findings", "reports", type=click.Path(), multiple=True, help="Findings as JSON; repeat for several.")
@option("--labels", type=click.Path(), help="The label registry.")
@option("--author", metavar="LOGIN", help="Whose comment is updated. [default: github-actions[bot]]")
@option("--dry-run", "dry", is_flag=True, help="Print the comment, and ask GitHub nothing.")
def comment(
    *, path: str, event_path: str, reports: tuple[str, ...], labels: str | None, author: str | None, dry: bool
) -> int:
    """Write the comment of a plan.json on its pull request, or bring the one that is there up to date.

    In a workflow the job needs `permissions: pull-requests: write` and GITHUB_TOKEN. Of two runs the newer one's text
    stays. The exit status is 1 where GitHub does not take it.
    """
    from matrix.plan.event import Kind, read_event
    from matrix.plan.form import hold_to_form
    from matrix.plan.sweep import read_plan
    from matrix.report.comment import comment_text

    event = read_event(event_path)
    if event.kind is not Kind.PULL_REQUEST:
        message = f"a comment needs a pull request, and the event is a {event.kind}."
        raise click.UsageError(message)
    record = read_plan(path).record
    hold_to_form(record, path)
    findings = [*_listed(record, path), *(finding for report in reports for finding in _findings(report))]
    text = comment_text(record, findings, _effects(event, labels), url=_run_page(os.environ))
    if dry:
        click.echo(text, nl=False)
        return 0
    click.echo(f"the comment on pull request {event.number}: {_put(event, text, author, os.environ)}")
    return 0


def _effects(event: Event, labels: str | None) -> tuple[Effect, ...]:
    from matrix.report.comment import label_effects

    return label_effects(event, labels_of(labels))


def _put(event: Event, text: str, author: str | None, environment: Mapping[str, str]) -> str:
    from matrix.cli.forge import forge_of, sticky_of

    with forge_of(event.repository, environment) as forge:
        return sticky_of("plan", environment, author).put(forge, event.number, text)


def _run_page(environment: Mapping[str, str]) -> str:
    """Where people look at the run; empty outside of GitHub Actions."""
    from matrix.cli.forge import number_of

    server, repository = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_REPOSITORY", "")
    run = number_of(environment.get("GITHUB_RUN_ID", ""))
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and run else ""


def _findings(path: str) -> list[Finding]:
    """The findings of a report as ``--format json`` prints it."""
    import json

    from matrix.config.source import read_bytes

    try:
        report = json.loads(read_bytes(path, limit=_MAX_FINDINGS, what="report"))
    except (ValueError, RecursionError) as error:
        raise _no_report(path, error) from None
    return _listed(report, path, needed=True)


def _listed(report: Any, path: str, *, needed: bool = False) -> list[Finding]:
    """The findings that a report or a plan lists.

    Raises:
        RefusedError: the file is something else.
    """
    from matrix.report.json import finding_of

    try:
        return [finding_of(record) for record in (report["findings"] if needed else report.get("findings", ()))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _no_report(path, error) from None


def _no_report(path: str, error: Exception) -> Exception:
    from matrix.errors import RefusedError
    from matrix.findings import Finding, Span

    message = f"this is no report of findings: {type(error).__name__} {error}."
    return RefusedError([Finding(rule="comment-findings", message=message, fix=_SHAPE, span=Span(path))])
