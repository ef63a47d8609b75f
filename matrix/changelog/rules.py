"""The one verdict over two revisions of the log: the same in the editor hook, the pull request and the merge.

Every rule of the byte-exact log is asked for from here: the file rules, the fields, history, links, separators. A
finding names the first byte that is wrong and the exact repair; one cause is one finding, and a fault that the base has
already is told as the base's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from matrix.changelog.entries import read
from matrix.changelog.past import Correction, Past, examine
from matrix.changelog.tail import examine_tail, separator
from matrix.changelog.text import LINK_LINE, Text, first_difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.changelog.context import Context
    from matrix.changelog.entries import Entry, Log
    from matrix.findings import Finding

__all__ = ["Change", "Verdict", "check"]


class Change(StrEnum):
    """What a change does to the log."""

    NONE = "none"
    ADDITIONS = "additions"
    CORRECTIONS = "corrections"
    REFUSED = "refused"


class Verdict(NamedTuple):
    """``additions`` and ``corrections`` are told of a refused change too, as far as they can be read.

    ``log`` knows the place of every field of an addition.
    """

    change: Change
    additions: tuple[Entry, ...] = ()
    corrections: tuple[Correction, ...] = ()
    log: Log | None = None


def check(base: bytes, head: bytes, context: Context) -> tuple[tuple[Finding, ...], Verdict]:
    """Every fault of the change from ``base`` to ``head``, in the order of the file, and what the change is.

    An absent log is ``b""`` on either side.
    """
    old, new = Text(context.base_name, base), Text(context.head_name, head)
    findings = _byte_faults(old, new)
    if findings and not (old.readable and new.readable):
        return _verdict(findings, Verdict(change=Change.REFUSED))

    appends = new.data.startswith(old.data)
    log = read(new, since=len(old.data) if appends else 0)
    past = examine(old, new, context)
    clean_history = appends and not past.findings and not log.findings
    if not clean_history:
        before = read(old)
        findings += map(_of_base, before.findings)
        findings += _not_of_base(log.findings, before.findings, old, new)
    broken = {finding.rule for finding in log.findings}
    # Text that is no YAML may have been meant for any entry, so what it does to the last old one is no second fault.
    findings += () if appends and "yaml-syntax" in broken else past.findings
    starts = {new.starts[at] for at in past.new}
    additions = tuple(entry for entry in log.entries if entry.start in starts)
    if "changelog-entry-inside" not in broken:
        findings += examine_tail(old, new, past.appended, past.tail)
    findings += _links(additions, log, context)
    if past.corrections and (additions or past.new):
        findings.append(_mixed(past, new))
    if not any(finding.severity == "error" for finding in findings):
        findings += _exactly(old, new, past)
    change = Change.ADDITIONS if additions else Change.CORRECTIONS if past.corrections else Change.NONE
    return _verdict(findings, Verdict(change=change, additions=additions, corrections=past.corrections, log=log))


def _byte_faults(old: Text, new: Text) -> list[Finding]:
    if new.is_clean and old.raw.endswith(b"\n") and new.raw.startswith(old.raw):
        return []
    findings = [_of_base(fault) for fault in old.faults()]
    findings += new.faults(since=first_difference(old.raw, new.raw))
    return findings


def _verdict(findings: list[Finding], verdict: Verdict) -> tuple[tuple[Finding, ...], Verdict]:
    if not findings:
        return (), verdict
    from matrix.findings import errors_of, in_order

    if errors_of(findings):
        verdict = verdict._replace(change=Change.REFUSED)
    return tuple(in_order(findings)), verdict


def _of_base(finding: Finding) -> Finding:
    from matrix.findings import Finding

    message = f"the base file has this fault already: {finding.message}"
    fix = f"repair the base branch first: {finding.fix}"
    return Finding(
        rule=finding.rule,
        message=message,
        fix=fix,
        span=finding.span,
        severity=finding.severity,
        related=finding.related,
    )


def _not_of_base(findings: tuple[Finding, ...], known: tuple[Finding, ...], old: Text, new: Text) -> Iterator[Finding]:
    """The findings of the head without those that the same line of the base has already."""
    lines = {finding.rule: set[bytes]() for finding in known}
    for finding in known:
        if finding.span:
            lines[finding.rule].add(old.line_at(finding.span.line))
    byte_faults = new.raw != new.data
    for finding in findings:
        if finding.rule == "yaml-syntax" and (byte_faults or "yaml-syntax" in lines):
            continue
        if finding.span and new.line_at(finding.span.line) in lines.get(finding.rule, ()):
            continue
        yield finding


def _links(additions: tuple[Entry, ...], log: Log, context: Context) -> Iterator[Finding]:
    for entry in additions:
        if not isinstance(entry.node.get("pr-link"), str) or context.accepts(entry.pr_link):
            continue
        from matrix.findings import Finding

        message, fix = context.refusal(entry)
        yield Finding(rule="changelog-link", message=message, fix=fix, span=log.span(entry, "pr-link"))


def _mixed(past: Past, new: Text) -> Finding:
    first = past.corrections[0]
    many = f"{len(past.corrections)} links" if len(past.corrections) > 1 else "a link"
    message = f"{many} of history corrected and entries added in one change. The one runs nothing, the other a sweep."
    fix = f"restore pr-link: {first.old} here, and correct links in a pull request of their own"
    return new.finding(first.offset, "changelog-mixed", message, fix)


def _exactly(old: Text, new: Text, past: Past) -> Iterator[Finding]:
    """The rule without exceptions, which no explanation above may miss: new bytes after old bytes, or link lines."""
    if past.corrections:
        lines, others = old.data.split(b"\n"), new.data.split(b"\n")
        changed = [(one, other) for one, other in zip(lines, others, strict=False) if one != other]
        right = (
            len(lines) == len(others)
            and len(changed) == len(past.corrections)
            and all(line.startswith(LINK_LINE) for pair in changed for line in pair)
        )
    elif past.new:
        gap = separator(old.data) if old.data.strip() else b""
        right = new.data.startswith(old.data + gap) and past.appended == past.new
    else:
        right = new.data == old.data
    if right:
        return
    message = "bytes changed, and no entry came with them. History stays byte for byte."
    fix = "restore the file as the base has it, or run `matrix changelog fix`"
    yield new.finding(min(first_difference(old.data, new.data), len(new.data)), "changelog-changed", message, fix)
