"""What was collected, for machines, for a terminal, and for the summary page of a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from matrix.report.markdown import cell
from runners.harmless import on_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from runners.collect import Row

__all__ = ["SUMMARY", "markdown", "records", "table"]

SUMMARY: Final = 1_000_000
"""Bytes of a page; GitHub loses a step's summary whole when it has more than 1 MiB."""
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]|_(?=[A-Za-z0-9]))*")
"""A text that Markdown has no other reading of: ids, states and numbers."""
_LONGEST: Final = 300
"""Letters of a reason on a page."""
_LISTED: Final = 100
"""Points that a page names one by one, with the reason, before the table."""

_SHOWN: Final = {
    "tok/s": ("total-tokens-per-second", "total.tokens_per_second"),
    "ttft ms": ("median-ttft-ms",),
    "tpot ms": ("median-tpot-ms",),
}
"""Column -> the figures that it may stand for: a fixed-length client's, the agentic client's."""


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For machines: everything that a table shows, and the figures whole."""
    return [
        {
            "id": row.id,
            "digest": row.digest,
            "success": row.succeeded,
            "end": row.end,
            "job": row.of_job("id"),
            "nodes": row.of_job("nodes"),
            "why": row.why or None,
            "reused": None if row.run is None else {"run-id": row.run, "id": row.then},
            "figures": list(row.figures),
        }
        for row in rows
    ]


def table(rows: Sequence[Row], *, planned: bool = False) -> str:
    """For people, one line a measurement. ``planned``: with where each result is from."""
    return _table(rows, "simple", str, planned=planned)


def _table(rows: Sequence[Row], style: str, written: Callable[[str], str], *, planned: bool) -> str:
    from tabulate import tabulate

    origin = ("from",) if planned else ()
    headers = ("point", "end", *origin, "job", "conc", "requests", *_SHOWN, "accuracy")
    # Receipts and results are what jobs and other runs wrote.
    lines = [
        [written(on_one_line("" if value is None else str(value))) for value in line]
        for line in _lines(rows, planned=planned)
    ]
    return tabulate(lines, headers=headers, tablefmt=style, disable_numparse=True)


def markdown(rows: Sequence[Row], *, planned: bool = False, room: int = SUMMARY) -> str:
    """For a summary page: how many succeeded, why what failed or is missing has no result, and the table.

    Lines of the table that would make it larger than ``room`` bytes are left out, and counted.
    """
    good = sum(row.succeeded for row in rows)
    missing = sum(row.receipt is None for row in rows)
    reused: dict[int, int] = {}
    for row in rows:
        if row.run is not None and row.succeeded:
            reused[row.run] = reused.get(row.run, 0) + 1
    parts = [f"{good:,} of {len(rows):,} points succeeded"]
    parts += [f"{missing:,} {_are(missing)} missing"] if missing else []
    parts += [f"{count:,} {_are(count)} reused from run {run}" for run, count in reused.items()]
    bad = [row for row in rows if not row.succeeded]
    lines = [f"{', '.join(parts)}.", ""]
    lines += [f"- {_code(row.id)}: {cell(on_one_line(row.why or row.end)[:_LONGEST])}" for row in bad[:_LISTED]]
    lines += [f"- and {len(bad) - _LISTED:,} more, which the table names"] if len(bad) > _LISTED else []
    lines += [""] if bad else []
    shown = _table(rows, "github", _cell, planned=planned).splitlines()
    room -= len("\n".join(lines).encode()) + 100
    kept = list(_within(shown, room))
    more = len(shown) - len(kept)
    lines += [*kept, *(["", f"… {more:,} more lines: see the JSON."] if more else [])]
    return "\n".join(lines)


def _within(lines: Iterable[str], room: int) -> Iterator[str]:
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            return
        yield line


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _cell(text: str) -> str:
    return text if _NAME.fullmatch(text) else cell(text)


def _code(name: str) -> str:
    """A name as code, where it is one."""
    return f"`{name}`" if _NAME.fullmatch(name) else cell(on_one_line(name))


def _lines(rows: Sequence[Row], *, planned: bool) -> Iterator[list[Any]]:
    for row in rows:
        origin = [("now" if row.run is None else f"run {row.run}") if row.receipt is not None else ""]
        head = [row.id, row.end, *(origin if planned else ()), row.of_job("id")]
        if not row.figures:
            yield head
        for figures in row.figures:
            requests = f"{figures['successful']}/{figures.get('total', '?')}" if "successful" in figures else ""
            shown = [
                next((_round(figures[name]) for name in names if name in figures), "") for names in _SHOWN.values()
            ]
            yield [*head, figures.get("conc", ""), requests, *shown, _accuracy(figures)]


def _accuracy(figures: dict[str, Any]) -> str:
    return ", ".join(
        f"{task} {_round(value, 4)}"
        for task, scores in (figures.get("eval") or {}).items()
        for name, value in scores.items()
        if "stderr" not in name
    )


def _round(value: Any, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if isinstance(value, int | float) else str(value)
