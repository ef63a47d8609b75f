"""Coverage for people and for programs: a line for each config and runner, then what is in nobody's way but unused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.answers.coverage import Coverage, Status, Unused, by_pool
from matrix.report.json import finding_record
from matrix.report.markdown import cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta

    from matrix.answers.coverage import Pool
    from matrix.answers.results import Result

__all__ = ["age_text", "coverage_markdown", "coverage_record", "coverage_table"]

_MOST_LISTED: Final = 20
"""Ids of one kind; a longer list is counted, and whole in JSON."""


def coverage_table(coverage: Coverage, unused: Unused, width: int) -> Iterator[str]:
    """A table, or where that does not fit ``width`` columns two lines a config; the totals, and what is unused."""
    pools = by_pool(coverage)
    shown = _shown(coverage)
    lines = list(_table(pools, shown)) if pools else []
    yield from lines if all(len(line) <= width for line in lines) else _listed(pools)
    if pools:
        yield ""
    yield totals_text(coverage)
    for title, told in _lists(coverage, unused):
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in told)


def _table(pools: Sequence[Pool], shown: list[Status]) -> Iterator[str]:
    from tabulate import tabulate

    head = ["config", "runner", "points", *shown, "newest"]
    # The head goes in as a row: tabulate would widen every headed column by two.
    rows = [head, *([pool.config, pool.runner, *_cells(pool, shown)] for pool in pools)]
    align = ["left", "left", *(["right"] * (len(head) - 2))]
    table = tabulate(rows, tablefmt="plain", disable_numparse=True, colalign=align)
    yield from (line.rstrip() for line in table.splitlines())


def _listed(pools: Sequence[Pool]) -> Iterator[str]:
    for pool in pools:
        newest = f"; newest {age_text(pool.newest)}" if pool.newest is not None else ""
        yield pool.config
        yield f"  {pool.runner}: {_told(pool)}{newest}"


def coverage_markdown(coverage: Coverage, unused: Unused) -> Iterator[str]:
    """The same for a page or a comment."""
    shown = _shown(coverage)
    yield totals_text(coverage)
    yield ""
    yield f"| config | runner | points | {' | '.join(shown)} | newest |"
    yield f"|---|---|--:|{'--:|' * len(shown)}--:|"
    for pool in by_pool(coverage):
        yield f"| {cell(pool.config)} | {cell(pool.runner)} | {' | '.join(_cells(pool, shown))} |"
    for title, lines in _lists(coverage, unused):
        yield ""
        yield f"**{title}**"
        yield ""
        yield from (f"- {cell(line)}" for line in lines)


def coverage_record(coverage: Coverage, unused: Unused) -> dict[str, Any]:
    """Everything, for programs. Ages are in days; null where nobody can tell."""
    return {
        "version": 1,
        "now": coverage.now.isoformat(timespec="seconds"),
        "days": coverage.days,
        "totals": _counts(coverage),
        "configs": [
            {
                "config-key": pool.config,
                "runner": pool.runner,
                "points": len(pool.points),
                **_counts(pool),
                "newest-days": _days(pool.newest),
            }
            for pool in by_pool(coverage)
        ],
        "points": [
            {
                "id": point.id,
                "status": point.status.value,
                "age-days": _days(point.age),
                "result": _result_record(point.result),
                "last": _result_record(point.last),
            }
            for point in coverage.points
        ],
        "unused": {
            "complete": unused.complete,
            "recipes": [finding_record(finding) for finding in unused.recipes],
            "variants": [finding_record(finding) for finding in unused.variants],
        },
        "duplicates": {
            "declared-twice": [finding_record(finding) for finding in unused.repeated],
            "equal-jobs": [list(names) for names in unused.alike],
        },
        "results-of-no-point": [_result_record(result) for result in coverage.strangers],
    }


def totals_text(coverage: Coverage) -> str:
    """One line: how many points there are, and how many of each status."""
    total = len(coverage.points)
    noun = "point" if total == 1 else "points"
    return f"{total:,} {noun}, results current for {coverage.days:g} days: {_told(coverage) or 'nothing to cover'}"


def age_text(age: timedelta | None) -> str:
    """An age as people say it.

    >>> from datetime import timedelta
    >>> age_text(timedelta(days=3, hours=5)), age_text(timedelta(hours=5)), age_text(timedelta(minutes=2))
    ('3 d', '5 h', 'now')
    """
    if age is None:
        return ""
    hours = age.total_seconds() / 3600
    return f"{hours / 24:,.0f} d" if hours >= 48 else f"{hours:.0f} h" if hours >= 1 else "now"


def _shown(coverage: Coverage) -> list[Status]:
    """The columns: those that are always wanted, and the rare ones where they hold something."""
    rare = (Status.FAILED, Status.RUNNING, Status.SUPERSEDED)
    return [status for status in Status if status not in rare or coverage.count(status)]


def _cells(pool: Pool, shown: list[Status]) -> list[str]:
    counts = [pool.count(status) for status in shown]
    return [str(len(pool.points)), *(str(count) if count else "-" for count in counts), age_text(pool.newest) or "-"]


def _told(counted: Coverage | Pool) -> str:
    return ", ".join(f"{counted.count(status):,} {status}" for status in Status if counted.count(status))


def _lists(coverage: Coverage, unused: Unused) -> Iterator[tuple[str, list[str]]]:
    if not unused.complete:
        yield (
            "recipes without a point",
            ["not looked for: other masters may name them; name all with --config and the roots with --recipes"],
        )
    parts = (
        ("recipes that no entry names", [_place(finding) for finding in unused.recipes]),
        ("variants that no entry names", [_place(finding) for finding in unused.variants]),
        ("declared twice", [f"{_place(finding)}: {finding.message}" for finding in unused.repeated]),
        ("one job under several ids", [" = ".join(names) for names in unused.alike]),
        ("results of no point", [f"{result.path}: {result.id}" for result in coverage.strangers]),
    )
    for title, lines in parts:
        if lines:
            more = len(lines) - _MOST_LISTED
            rest = [f"… {more:,} more; --format json has them all"] if more > 0 else []
            yield f"{title} ({len(lines):,})", [*lines[:_MOST_LISTED], *rest]


def _place(finding: Any) -> str:
    named = finding.message.removeprefix("no entry names ").rstrip(".")
    return f"{finding.span}: {named}" if finding.rule == "variant-unreferenced" else str(finding.span)


def _counts(counted: Coverage | Pool) -> dict[str, int]:
    return {status.value.replace(" ", "-"): counted.count(status) for status in Status}


def _days(age: timedelta | None) -> float | None:
    return None if age is None else round(age.total_seconds() / 86_400, 3)


def _result_record(result: Result | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "id": result.id,
        "digest": result.digest,
        "file": result.path,
        "success": result.success,
        "ended": result.ended.isoformat(timespec="seconds") if result.ended is not None else None,
        "verdict": result.verdict,
        "why": result.why,
        "job": result.job,
    }
