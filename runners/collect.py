"""What many launches have measured: their receipts and summaries in one table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import read_bytes
from matrix.errors import NothingSelectedError, RefusedError
from matrix.findings import Finding, Span
from runners.receipt import NAME, Receipt, Step, read_receipt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["Row", "collect", "markdown", "records", "table"]

_SHOWN: Final = {
    "tok/s": ("total-tokens-per-second", "total.tokens_per_second"),
    "ttft ms": ("median-ttft-ms",),
    "tpot ms": ("median-tpot-ms",),
}
"""Column -> the figures that it may stand for: a fixed-length client's, the agentic client's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One launch: its receipt, and what its summary measured."""

    receipt: Receipt
    figures: tuple[dict[str, Any], ...]

    @property
    def end(self) -> str:
        """How it ended, in one word or two."""
        if self.receipt.step is not Step.ENDED:
            return str(self.receipt.step)
        if self.receipt.succeeded:
            return "success"
        verdict = str(self.receipt.outcome.get("verdict", "failed"))
        return "no result" if verdict == "passed" else verdict


def collect(folder: Path) -> tuple[list[Row], list[Finding]]:
    """The launches below a results folder, by id, and what is wrong with them.

    Raises:
        NothingSelectedError: there is none.
    """
    rows: list[Row] = []
    findings: list[Finding] = []
    for path in sorted(folder.glob(f"*/{NAME}")):
        try:
            receipt = read_receipt(path)
            figures = _figures(path.parent) if receipt.step is Step.ENDED else ()
        except RefusedError as refused:
            findings += refused.findings
            continue
        rows.append(Row(receipt=receipt, figures=figures))
        findings += _changed(receipt, path.parent)
    if not rows and not findings:
        msg = f"{folder}: no launch has left a receipt here"
        raise NothingSelectedError(msg)
    return rows, findings


def _figures(folder: Path) -> tuple[dict[str, Any], ...]:
    path = folder / "summary.json"
    if not path.is_file():
        return ()
    try:
        found = json.loads(read_bytes(path, what="summary"))
        return tuple(dict(each) for each in found["figures"])
    except (ValueError, TypeError, KeyError) as error:
        message = f"this summary cannot be read: {error!r}."
        raise RefusedError([Finding(rule="collect-summary", message=message, span=Span(str(path)))]) from None


def _changed(receipt: Receipt, folder: Path) -> Iterator[Finding]:
    """Files that are not what the receipt says they are."""
    for entry in receipt.results:
        path = folder / str(entry.get("file"))
        if not path.is_file():
            message = "the receipt names this file, and it is not here."
        elif sha256(path.read_bytes()).hexdigest() != entry.get("sha256"):
            message = "this file is not the one that the receipt names: its sha256 is another one."
        else:
            continue
        yield Finding(rule="collect-changed", message=message, fix="take the file of the launch", span=Span(str(path)))


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For machines: everything that a table shows, and the figures whole."""
    return [
        {
            "id": row.receipt.point.get("id"),
            "digest": row.receipt.point.get("digest"),
            "success": row.receipt.succeeded,
            "end": row.end,
            "job": row.receipt.job.get("id"),
            "nodes": row.receipt.job.get("nodes"),
            "why": row.receipt.outcome.get("why"),
            "figures": list(row.figures),
        }
        for row in rows
    ]


_HEADERS: Final = ("point", "end", "job", "conc", "requests", *_SHOWN, "accuracy")


def table(rows: Sequence[Row], style: str = "simple") -> str:
    """For people, one line a measurement; ``github`` is markdown."""
    from tabulate import tabulate

    return tabulate(list(_lines(rows)), headers=_HEADERS, tablefmt=style, disable_numparse=True)


def markdown(rows: Sequence[Row]) -> str:
    """For a summary page: the table, and below it why what failed has failed."""
    failed = [row for row in rows if not row.receipt.succeeded]
    good = len(rows) - len(failed)
    parts = [f"{good} of {len(rows)} points succeeded.", "", table(rows, "github")]
    if failed:
        parts += [
            "",
            *(f"- `{row.receipt.point.get('id')}`: {row.receipt.outcome.get('why') or row.end}" for row in failed),
        ]
    return "\n".join(parts)


def _lines(rows: Sequence[Row]) -> Iterator[list[Any]]:
    for row in rows:
        head = [row.receipt.point.get("id"), row.end, row.receipt.job.get("id")]
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
