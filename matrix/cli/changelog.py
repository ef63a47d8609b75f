"""``matrix changelog``: check, fix and merge the log of sweeps. ``validate_perf_changelog`` is its check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matrix.cli.command import option
from matrix.cli.options import file_options
from matrix.cli.report import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matrix.changelog.context import Context
    from matrix.changelog.rules import Verdict
    from matrix.findings import Finding
    from matrix.plan.claims import Options
    from matrix.plan.history import History
    from matrix.plan.plan import Plan
    from matrix.plan.revisions import Revisions

__all__ = ["changelog", "context_of", "history_of", "judge", "proof_options", "revisions_of"]

_PATH = click.Path(dir_okay=False)
_HISTORY = "matrix.history"


@click.group(short_help="Check, fix and merge perf-changelog.yaml.")
def changelog() -> None:
    """Check, fix and merge perf-changelog.yaml, the append-only log of what was swept and why."""


def revision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What is compared, and whose links are right."""
    options = [
        option("--file", "path", type=_PATH, help="The log. [default: perf-changelog.yaml]"),
        option("--base-ref", metavar="REF", help="Compare with this commit. [default: where the branch began]"),
        option("--base-file", type=_PATH, help="Compare with this file; git is not asked."),
        option("--head-file", type=_PATH, help="The changed file; goes with --base-file."),
        option("--pr", "number", type=click.IntRange(min=1), metavar="N", help="This pull request's number."),
        option("--repository", metavar="SLUG", help="Whose pull requests links name. [default: from settings]"),
    ]
    for add in reversed(options):
        command = add(command)
    return command


def proof_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a change is proven by: the configs of both its revisions."""
    options = [
        option("--base-config", "base_masters", type=_PATH, multiple=True, help="Master config of --base-file."),
        option("--head-ref", metavar="REF", help="The changed commit. [default: HEAD]"),
        option("--worktree", is_flag=True, help="Take what lies in the working tree instead of a commit."),
        option("--merge", "merging", is_flag=True, help="As on main: no placeholder links."),
        option(
            "--allow-uncovered", "waivers", nargs=2, multiple=True, metavar="PATTERN REASON",
            help="Configs that may change without an entry, and why.",
        ),
    ]  # fmt: skip
    command = file_options(command)
    for add in reversed(options):
        command = add(command)
    return revision_options(command)


@changelog.command(short_help="Refuse a change to the log that could not be merged.")
@proof_options
@option("--bytes-only", is_flag=True, help="Bytes, entries and links alone; no configs.")
@option("--format", "style", type=click.Choice(["text", "json", "github"]), default="text", help="How to report.")
def check(*, style: str, bytes_only: bool, **options: Any) -> int:
    """Refuse a change to the log that could not be merged, with every fault and its repair.

    The bare command compares HEAD with the commit where it left the default branch. Beyond the log itself it proves
    the plan: keys exist, every entry runs something, and every config that changed is named by a new entry. A change
    that only corrects links of old entries is right, and runs nothing.
    """
    revisions = revisions_of(options)
    findings, verdict, plan = judge(revisions, options, bytes_only=bytes_only)
    return _report(findings, verdict, revisions, plan, style)


@changelog.command(short_help="Mend a change to the log.")
@revision_options
@option("--check", "dry", is_flag=True, help="Show the difference and exit 1 instead of writing.")
def fix(*, dry: bool, **options: Any) -> int:
    """Mend the log in the working tree: history as the base has it, then this branch's own entries, well separated.

    Conflict markers are resolved too: the entries of both sides stay, the base side first. What was done goes to
    stderr; what no tool can decide is reported, and exits 1.
    """
    from matrix.changelog.repair import repair

    revisions = revisions_of({**options, "worktree": True, "head_ref": None, "conflicts": True})
    mended = repair(revisions.base, revisions.head, context_of(revisions, options))
    changed = mended.data != revisions.head
    if changed and dry:
        _show_difference(revisions, mended.data)
    elif changed:
        from matrix.cli.files import replace

        replace(revisions.head_name, mended.data)
        click.echo("".join(f"{step}\n" for step in mended.steps), err=True, nl=False)
    elif not mended.findings:
        click.echo(f"{revisions.head_name}: nothing to mend.")
    tell(mended.findings)
    return int(changed and dry)


@changelog.command("merge-driver", short_help="Merge two appended logs; for git.", hidden=True)
@click.argument("ancestor", type=_PATH)
@click.argument("ours", type=_PATH)
@click.argument("theirs", type=_PATH)
@option("--path", default="perf-changelog.yaml", help="The file that is merged (%P).")
@option("--marker-size", type=int, default=7, help="Length of conflict markers (%L).")
def merge_driver(*, ancestor: str, ours: str, theirs: str, path: str, marker_size: int) -> int:
    """Merge two branches that both append to the log; leave anything else to git's own merge."""
    from matrix.plan.driver import append_both, merge_lines

    merged = append_both(".", path, ancestor, ours, theirs)
    if merged is None:
        return merge_lines(ancestor, ours, theirs, marker_size=marker_size)
    from matrix.cli.files import replace

    replace(ours, merged)
    return 0


@changelog.command("install-merge-driver", short_help="Let git append both sides of a merge.")
@option("--file", "path", type=_PATH, default="perf-changelog.yaml", help="The log.")
def install_merge_driver(*, path: str) -> int:
    """Tell this clone's git to merge the log by appending both sides, and .gitattributes to ask for it."""
    from matrix.plan.driver import install

    for step in install(".", path):
        click.echo(step)
    return 0


def revisions_of(options: dict[str, Any]) -> Revisions:
    """What the options compare."""
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
        return of_commits(".", path, base_ref, options["head_ref"], history_of())
    if options["head_ref"]:
        message = "--worktree and --head-ref name two heads; leave one of them out."
        raise click.UsageError(message)
    return of_worktree(".", path, base_ref, history_of(), tip_for_conflicts="conflicts" in options)


def history_of() -> History | None:
    """The one reader of the repository that a command opens; click closes it behind the command. None outside one."""
    from matrix.plan.history import History

    context = click.get_current_context(silent=True)
    if context is None:
        return None
    if _HISTORY not in context.meta:
        context.meta[_HISTORY] = context.with_resource(History("."))
    history: History = context.meta[_HISTORY]
    return history


def context_of(revisions: Revisions, options: dict[str, Any], *, merging: bool = False) -> Context:
    """Whose links are right for the compared revisions."""
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


def judge(
    revisions: Revisions, options: dict[str, Any], wanted: Options | None = None, *, bytes_only: bool = False
) -> tuple[list[Finding], Verdict, Plan | None]:
    """Everything that is wrong with a change, its verdict, and its plan where there are configs to plan with."""
    from matrix.changelog.rules import check as check_rules

    context = context_of(revisions, options, merging=options["merging"])
    findings, verdict = check_rules(revisions.base, revisions.head, context)
    log = verdict.log
    if bytes_only or log is None or (log.findings and not log.entries):
        return list(findings), verdict, None
    from matrix.errors import RefusedError
    from matrix.plan.claims import Options
    from matrix.plan.proof import prove
    from matrix.plan.snapshot import Named

    named = Named(options["masters"], options["runners"], options["recipes"], options["golden"])
    waivers = options["waivers"]
    for pattern, reason in waivers:
        click.echo(f"{pattern} may change without an entry: {reason}", err=True)
    try:
        plan, more = prove(
            revisions,
            verdict,
            named,
            base_masters=options["base_masters"],
            options=wanted or Options(),
            waivers=waivers,
            given=history_of() if revisions.base_revision else None,
        )
    except RefusedError as error:
        return [*findings, *error.findings], verdict, None
    return [*findings, *more], verdict, plan


def _report(findings: Sequence[Finding], verdict: Verdict, revisions: Revisions, plan: Plan | None, style: str) -> int:
    """What the check found: for people on stderr, for programs on stdout."""
    from matrix.report.changelog import annotation, summary, verdict_record

    refused = any(finding.severity == "error" for finding in findings)
    hint = revisions.hint() if refused else None
    told = [*findings, *([hint] if hint else [])]
    if told:
        from matrix.findings import in_order

        told = in_order(told)
    if style == "json":
        from json import dumps

        click.echo(dumps(verdict_record(verdict, told, plan)))
    elif style == "github":
        for finding in told:
            click.echo(annotation(finding))
    else:
        tell(told)
        click.echo(summary(verdict, revisions, plan, "no master config was read"))
    return int(refused)


def _show_difference(revisions: Revisions, data: bytes) -> None:
    from difflib import unified_diff

    before, after = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (revisions.head, data))
    for line in unified_diff(before, after, revisions.head_name, f"{revisions.head_name} (mended)"):
        click.echo(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n", nl=False)
