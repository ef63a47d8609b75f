"""``matrix diff``: which jobs a change changes."""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from matrix.cli.command import option
from matrix.cli.options import file_options, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.answers.diff import Diff
    from matrix.answers.side import Side
    from matrix.findings import Finding
    from matrix.plan.snapshot import Named
    from matrix.points.request import Request

__all__ = ["compared", "diff", "opened"]

_HEAD: Final = "HEAD"
_RANGE: Final = re.compile(r"((?:\.\./)*.*?)(\.{2,3})(?!/)(.*)")
"""A..B or A...B. No name of a commit has two dots in a row; paths of plan files may begin with ``../``."""


@click.command(short_help="Show which jobs a change changes.")
@click.argument("sides", metavar="[A..B]", nargs=-1)
@file_options
@option("--format", "style", type=click.Choice(["text", "json", "markdown"]), default="text", help="How to report.")
@option("--full", is_flag=True, help="Every id and every value whole, not differences in short.")
@option("--exit-code", is_flag=True, help="Exit 1 where a job changes, as git diff does.")
def diff(
    *,
    sides: tuple[str, ...],
    masters: tuple[str, ...],
    runners: str | None,
    recipes: tuple[str, ...],
    golden: str | None,
    style: str,
    full: bool,
    exit_code: bool,
) -> int:
    """Show which jobs are added, removed, changed and renamed from A to B, whatever was edited.

    A and B are commits, or plan files (*.json). Without B it is the working tree, without both HEAD against it. A..B
    and A B are the same; A...B begins where B left A; an empty side is HEAD. Commits are read from git objects alone.

    Equal digests are the same job: an edit of comments or order is "no change of any job". Changed or not, the exit
    status is 0, unless --exit-code asks for 1.
    """
    from matrix.plan.snapshot import Named
    from matrix.report.diff import diff_lines, diff_markdown, diff_record

    found = compared(sides, Named(masters, runners, recipes, golden))
    if style == "json":
        from json import dumps

        click.echo(dumps(diff_record(found, full=True)))
    else:
        lines = diff_markdown(diff_record(found)) if style == "markdown" else None
        for line in lines or diff_lines(found, terminal_width(), full=full):
            click.echo(line)
    return int(exit_code and bool(found.changes))


def compared(words: tuple[str, ...], named: Named) -> Diff:
    """The difference of what the words name; tells on stderr what only one side is warned of."""
    with opened(words, named) as (found, _):
        return found


@contextmanager
def opened(words: tuple[str, ...], named: Named, request: Request | None = None) -> Iterator[tuple[Diff, Side]]:
    """The same of the points that a request selects, with the newer side, whose files can be read meanwhile."""
    from matrix.answers.diff import difference
    from matrix.answers.side import is_plan, open_sides
    from matrix.cli.report import tell
    from matrix.plan.history import History
    from matrix.points.request import Request

    one, other, fork = _sides(words)
    with ExitStack() as stack:
        history = None
        if any(word is not None and not is_plan(word) for word in (one, other)):
            history = stack.enter_context(History("."))
        if fork and history is not None and one is not None and other is not None:
            one = history.merge_base(history.revision(one), history.revision(other)).commit
        wanted = Request() if request is None else request
        before, after, unchanged = stack.enter_context(open_sides(one, other, named, wanted, history=history))
        tell(_warnings(before, after))
        yield difference(before, after, unchanged), after


def _sides(words: tuple[str, ...]) -> tuple[str | None, str | None, bool]:
    """What is compared with what, and whether from where they parted; None is the working tree."""
    from matrix.answers.side import is_plan

    if len(words) > 2:
        message = f"two sides are compared, and {len(words)} are named."
        raise click.UsageError(message)
    if len(words) == 2:
        return words[0], words[1], False
    word = words[0] if words else _HEAD
    found = None if is_plan(word) and Path(word).exists() else _RANGE.fullmatch(word)
    if found is None:
        return word, None, False
    one, dots, other = found.groups()
    if dots == "..." and (is_plan(one) or is_plan(other)):
        message = f"{word}: a plan file has no history, so it left no commit; write {one}..{other}."
        raise click.UsageError(message)
    return one or _HEAD, other or _HEAD, dots == "..."


def _warnings(before: Side, after: Side) -> list[Finding]:
    """What one side is warned of and the other is not; what both are, ``matrix expand`` tells.

    That recipes are unread is told in any case: what is in them was not compared.
    """
    kept = [finding for finding in after.findings if finding.rule == "recipe-root"]
    return [*kept, *_own(before, after), *_own(after, before)]


def _own(side: Side, other: Side) -> list[Finding]:
    """What the side is warned of and the other is not. What both are, `matrix expand` tells."""
    known = {_unplaced(finding, other) for finding in other.findings} | {("recipe-root", "")}
    return [finding for finding in side.findings if _unplaced(finding, side) not in known]


def _unplaced(finding: Finding, side: Side) -> tuple[str, str]:
    label = side.label.text
    if finding.rule == "recipe-root":
        return finding.rule, ""
    return finding.rule, finding.message.replace(label, "") if label else finding.message
