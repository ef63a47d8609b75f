"""``matrix changelog``: check, fix and merge the log of sweeps. ``validate_perf_changelog`` is its check."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from matrix.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matrix.changelog.context import Context
    from matrix.changelog.rules import Verdict
    from matrix.findings import Finding
    from matrix.plan.revisions import Revisions

__all__ = ["changelog", "validate_main"]

_PATH = click.Path(dir_okay=False)


@click.group(short_help="Check, fix and merge perf-changelog.yaml.")
def changelog() -> None:
    """Check, fix and merge perf-changelog.yaml, the append-only log of what was swept and why."""


def _revision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What both ``check`` and ``fix`` compare, and whose links are right."""
    options = [
        click.option("--file", "path", type=_PATH, help="The log. [default: perf-changelog.yaml]"),
        click.option("--base-ref", metavar="REF", help="Compare with this commit. [default: where the branch began]"),
        click.option("--base-file", type=_PATH, help="Compare with this file; git is not asked."),
        click.option("--head-file", type=_PATH, help="The changed file; goes with --base-file."),
        click.option("--pr", "number", type=click.IntRange(min=1), metavar="N", help="This pull request's number."),
        click.option("--repository", metavar="SLUG", help="Whose pull requests links name. [default: from settings]"),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@changelog.command(short_help="Refuse a change to the log that could not be merged.")
@_revision_options
@click.option("--head-ref", metavar="REF", help="The changed commit. [default: HEAD]")
@click.option("--worktree", is_flag=True, help="Check the file in the working tree instead of a commit.")
@click.option("--merge", "merging", is_flag=True, help="As on main: no placeholder links.")
@click.option("--bytes-only", is_flag=True, help="Bytes, entries and links alone; no config keys.")
@click.option("--format", "style", type=click.Choice(["text", "json", "github"]), default="text", help="How to report.")
def check(*, style: str, merging: bool, bytes_only: bool, **options: Any) -> int:
    """Refuse a change to the log that could not be merged, with every fault and its repair.

    The bare command compares HEAD with the commit where it left the default branch. A change that only corrects links
    of old entries is right, and runs nothing.
    """
    from matrix.changelog.rules import check as check_rules

    del bytes_only
    revisions = _revisions(options)
    findings, verdict = check_rules(revisions.base, revisions.head, _context(revisions, options, merging=merging))
    return _report(findings, verdict, revisions, style)


@changelog.command(short_help="Mend a change to the log.")
@_revision_options
@click.option("--check", "dry", is_flag=True, help="Show the difference and exit 1 instead of writing.")
def fix(*, dry: bool, **options: Any) -> int:
    """Mend the log in the working tree: history as the base has it, then this branch's own entries, well separated.

    Conflict markers are resolved too: the entries of both sides stay, the base side first. What was done goes to
    stderr; what no tool can decide is reported, and exits 1.
    """
    from matrix.changelog.repair import repair

    revisions = _revisions({**options, "worktree": True, "head_ref": None, "conflicts": True})
    mended = repair(revisions.base, revisions.head, _context(revisions, options))
    changed = mended.data != revisions.head
    if changed and dry:
        _show_difference(revisions, mended.data)
    elif changed:
        _write(revisions.head_name, mended.data)
        click.echo("".join(f"{step}\n" for step in mended.steps), err=True, nl=False)
    return max(_refuse(mended.findings), int(changed and dry))


@changelog.command("merge-driver", short_help="Merge two appended logs; for git.", hidden=True)
@click.argument("ancestor", type=_PATH)
@click.argument("ours", type=_PATH)
@click.argument("theirs", type=_PATH)
@click.option("--path", default="perf-changelog.yaml", help="The file that is merged (%P).")
@click.option("--marker-size", type=int, default=7, help="Length of conflict markers (%L).")
def merge_driver(*, ancestor: str, ours: str, theirs: str, path: str, marker_size: int) -> int:
    """Merge two branches that both append to the log; leave anything else to git's own merge."""
    from matrix.plan.driver import append_both, merge_lines

    merged = append_both(".", path, ancestor, ours, theirs)
    if merged is None:
        return merge_lines(ancestor, ours, theirs, marker_size=marker_size)
    _write(ours, merged)
    return 0


@changelog.command("install-merge-driver", short_help="Let git append both sides of a merge.")
@click.option("--file", "path", type=_PATH, default="perf-changelog.yaml", help="The log.")
def install_merge_driver(*, path: str) -> int:
    """Tell this clone's git to merge the log by appending both sides, and .gitattributes to ask for it."""
    from matrix.plan.driver import install

    for step in install(".", path):
        click.echo(step)
    return 0


def validate_main(args: Sequence[str] | None = None) -> NoReturn:
    """The console script ``validate_perf_changelog``."""
    gc.disable()
    sys.exit(run(check, args, prog="validate_perf_changelog"))


def _revisions(options: dict[str, Any]) -> Revisions:
    from matrix.config.settings import find_settings
    from matrix.plan.revisions import USUAL_NAME, of_commits, of_files, of_worktree

    base_file, head_file, base_ref = options["base_file"], options["head_file"], options["base_ref"]
    if base_file or head_file:
        if not (base_file and head_file) or base_ref or options["head_ref"] or options["path"]:
            message = "--base-file and --head-file go together, and with no ref and no --file."
            raise click.UsageError(message)
        return of_files(base_file, head_file)
    settings = find_settings(".")
    path = options["path"] or settings.changelog or (settings.root and f"{settings.root}/{USUAL_NAME}")
    if not options["worktree"]:
        return of_commits(".", path, base_ref, options["head_ref"])
    if options["head_ref"]:
        message = "--worktree and --head-ref name two heads; leave one of them out."
        raise click.UsageError(message)
    return of_worktree(".", path, base_ref, tip_for_conflicts="conflicts" in options)


def _context(revisions: Revisions, options: dict[str, Any], *, merging: bool = False) -> Context:
    from matrix.changelog.context import DEFAULT_REPOSITORY, Context, Stage
    from matrix.config.settings import find_settings

    slug = options["repository"] or find_settings(".").repository or DEFAULT_REPOSITORY
    if slug.count("/") != 1 or not all(slug.split("/")):
        message = f"--repository {slug}: a slug is OWNER/NAME."
        raise click.UsageError(message)
    return Context(
        repository=slug,
        number=options["number"],
        stage=Stage.MERGE if merging else Stage.PULL_REQUEST,
        base_name=revisions.base_name,
        head_name=revisions.head_name,
    )


# -- reports -----------------------------------------------------------------------------------------------------------


def _report(findings: Sequence[Finding], verdict: Verdict, revisions: Revisions, style: str) -> int:
    """What the check found: for people on stderr, for programs on stdout."""
    from matrix.findings import errors_of

    hint = revisions.hint() if errors_of(findings) else None
    told = [*findings, *([hint] if hint else [])]
    if style == "json":
        _print_json(told, verdict)
    elif style == "github":
        for finding in told:
            click.echo(_annotation(finding))
    else:
        _refuse(told)
    if not errors_of(findings) and style == "text":
        click.echo(_summary(verdict, revisions))
    return 1 if errors_of(findings) else 0


def _refuse(findings: Sequence[Finding]) -> int:
    from matrix.findings import errors_of

    if findings:
        from matrix.report.text import print_findings

        print_findings(findings, sys.stderr)
    return 1 if errors_of(findings) else 0


def _summary(verdict: Verdict, revisions: Revisions) -> str:
    from matrix.changelog.rules import Change

    where = f"{revisions.head_name} against {revisions.base_name}"
    count = len(verdict.additions) or len(verdict.corrections)
    match verdict.change:
        case Change.ADDITIONS:
            noun = "entry" if count == 1 else "entries"
            return f"{where}: {count} {noun} added. Bytes, fields and links are right; config keys were not checked."
        case Change.CORRECTIONS:
            noun = "link" if count == 1 else "links"
            return f"{where}: {count} {noun} corrected, nothing to run."
        case _:
            return f"{where}: the log is the same, nothing to check."


def _print_json(findings: Sequence[Finding], verdict: Verdict) -> None:
    from json import dumps

    from matrix.report.json import finding_record

    record = {
        "version": 1,
        "change": verdict.change.value,
        "additions": [{"number": entry.number, "line": entry.line} for entry in verdict.additions],
        "corrections": [
            {"number": one.number, "line": one.line, "old": one.old, "new": one.new} for one in verdict.corrections
        ],
        "findings": [finding_record(finding) for finding in findings],
    }
    click.echo(dumps(record))


def _annotation(finding: Finding) -> str:
    """A finding as a workflow command of GitHub Actions; its text is escaped as those commands want it."""
    escaped = f"{finding.message} fix: {finding.fix}".replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    place = ""
    if finding.span is not None:
        file = finding.span.file.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
        place = f" file={file},line={finding.span.line},col={finding.span.column},title={finding.rule}"
    return f"::{finding.severity}{place}::{escaped}"


def _show_difference(revisions: Revisions, data: bytes) -> None:
    from difflib import unified_diff

    before, after = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (revisions.head, data))
    for line in unified_diff(before, after, revisions.head_name, f"{revisions.head_name} (mended)"):
        click.echo(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n", nl=False)


def _write(name: str, data: bytes) -> None:
    """Replace a file at once: nobody ever sees half a log."""
    import os
    import tempfile
    from pathlib import Path

    path = Path(name)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(temporary).chmod(path.stat().st_mode & 0o777)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
