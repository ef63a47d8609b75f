"""Every point of a plan and what became of it: it ran now, an earlier run had its result, or nobody has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from matrix.errors import NothingSelectedError, RefusedError
from matrix.findings import Finding, Span
from runners.collect import Row, changed, launches, read_row
from runners.receipt import NAME
from runners.reused import Brought, bring

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from matrix.forge import Forge
    from matrix.plan.reuse import Reuse

__all__ = ["Planned", "tally"]

_NAMED: Final = 20
"""Points that one message names; all of them are in what is printed."""


class Planned(NamedTuple):
    """The points of a plan by id, each with its digest; ``reuse``: those that an earlier run stands in for."""

    digests: Mapping[str, str]
    reuse: Reuse | None = None


def tally(plan: Planned, results: Path, forge: Forge | None = None) -> tuple[list[Row], list[Finding]]:
    """One row a point, in the order of the plan, those that are reused last; and what is wrong with them.

    A result counts when its receipt has the digest that was planned; what does not count is missing, and a fault.

    Raises:
        NothingSelectedError: the plan has no point.
    """
    if not plan.digests and plan.reuse is None:
        msg = "the plan has no point, so there is nothing to collect"
        raise NothingSelectedError(msg)
    here, findings = launches(results)
    found = {row.id: row for row in here}
    rows = [_held(name, digest, found.get(name), results) for name, digest in plan.digests.items()]
    for row in rows:
        findings += changed(row.receipt, results / row.id) if row.receipt is not None else ()
    if plan.reuse is not None:
        reused, more = _reused(plan.reuse, results, forge)
        rows += reused
        findings += more
    return rows, [*findings, *_missing(rows)]


def _held(name: str, digest: str, row: Row | None, results: Path) -> Row:
    """A launch held to the plan."""
    if row is None or row.receipt is None:
        why = (
            "the receipt in its folder does not count"
            if (results / name / NAME).is_file()
            else "it has left no receipt"
        )
        return Row(id=name, digest=digest, why=why)
    if row.digest != digest:
        why = f"the receipt {results / name} is of another job: its digest is {row.digest[:12]}, not {digest[:12]}"
        return Row(id=name, digest=digest, why=why)
    return row


def _reused(reuse: Reuse, results: Path, forge: Forge | None) -> tuple[list[Row], list[Finding]]:
    brought, findings = _brought(reuse, results, forge)
    rows: list[Row] = []
    for name, then in reuse.points.items():
        digest, run_id = reuse.digests[name], reuse.run_of(name)
        place = brought[run_id].places.get(then)
        row = _proven(name, then, digest, place) if place is not None else brought[run_id].missing[then]
        if isinstance(row, str):
            row = Row(id=name, digest=digest, why=row)
        rows.append(Row(row.id, row.digest, row.why, row.receipt, row.figures, run_id, then))
    return rows, findings


def _brought(reuse: Reuse, results: Path, forge: Forge | None) -> tuple[dict[int, Brought], list[Finding]]:
    """By run: the results that are reused of it. What GitHub does not answer for one is not asked for the next."""
    names: dict[int, list[str]] = {}
    for name, then in reuse.points.items():
        names.setdefault(reuse.run_of(name), []).append(then)
    brought: dict[int, Brought] = {}
    findings: list[Finding] = []
    for run_id, wanted in names.items():
        try:
            brought[run_id] = bring(wanted, run_id, results, forge, silent=bool(findings))
        except OSError as error:
            message = f"the results of run {run_id} cannot be kept here: {error.strerror or error}."
            fix = "name a folder that you may write to, on a disk with room"
            span = Span(str(results))
            raise RefusedError([Finding(rule="collect-write", message=message, fix=fix, span=span)]) from None
        findings += brought[run_id].findings
    return brought, findings


def _proven(name: str, then: str, digest: str, place: Path) -> Row | str:
    """The row of a result of an earlier run; else why it is none. Other code wrote it, so nothing is believed."""
    try:
        row = read_row(place)
    except RefusedError as refused:
        return f"its result cannot be read: {refused.findings[0].message.rstrip('.')}"
    if row.receipt is None or row.id != then:
        return f"the receipt is of {row.id}, not of {then}"
    if row.digest != digest:
        return f"the receipt is of another job: its digest is {row.digest[:12]}, not {digest[:12]}"
    if not row.succeeded:
        return f"it did not succeed there: {row.why or row.end}"
    if fault := next(changed(row.receipt, place), None):
        return f"{fault.span}: {fault.message.rstrip('.')}"
    return Row(name, digest, row.why, row.receipt, row.figures)


def _missing(rows: list[Row]) -> Iterator[Finding]:
    """One finding a cause: a sweep that ended early has thousands of points without a result."""
    causes: dict[str, list[str]] = {}
    for row in rows:
        if row.receipt is None:
            causes.setdefault(row.why, []).append(row.id)
    for why, names in causes.items():
        who = f"{len(names):,} of {len(rows):,} points" if len(rows) > 1 else "the point"
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        verb = "count" if len(names) > 1 else "counts"
        message = f"{who} {verb} as missing, {why}: {', '.join(names[:_NAMED])}{more}."
        fix = "see what became of the job of each, and run those again: python -m runners launch ID"
        yield Finding(rule="collect-missing", message=message, fix=fix)
