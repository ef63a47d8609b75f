"""Points and findings for programs."""

from __future__ import annotations

from itertools import islice
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from matrix.findings import Finding, Span
    from matrix.points.point import Point

__all__ = ["finding_of", "finding_record", "lines", "rows_json", "rows_jsonl"]

_PIECE: Final = 16
_ROW_JSON: Final = methodcaller("row_json")


def rows_json(points: Iterable[Point]) -> Iterator[str]:
    """One JSON array, a row a line, in pieces."""
    opening = "[\n"
    for rows in _pieces(map(_ROW_JSON, points)):
        yield opening + ",\n".join(rows)
        opening = ",\n"
    yield "[]\n" if opening == "[\n" else "\n]\n"


def rows_jsonl(points: Iterable[Point]) -> Iterator[str]:
    """A JSON object a line, in pieces."""
    return lines(map(_ROW_JSON, points))


def lines(texts: Iterable[str]) -> Iterator[str]:
    """The texts as lines, many at a time: a write per line costs more than the line, and so does much fresh memory."""
    for piece in _pieces(texts):
        yield "\n".join(piece) + "\n"


def _pieces(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while piece := list(islice(stream, _PIECE)):
        yield piece


def finding_record(finding: Finding) -> dict[str, Any]:
    """A finding as JSON has it; ``version`` is that of the shape."""
    record: dict[str, Any] = {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "message": finding.message,
        "fix": finding.fix,
    }
    if finding.span is not None:
        record |= _place(finding.span)
    if finding.related:
        record["related"] = [{**_place(related.span), "note": related.note} for related in finding.related]
    return record


def finding_of(record: Mapping[str, Any]) -> Finding:
    """The finding of a record that `finding_record` made.

    Raises:
        KeyError, TypeError, ValueError: it is another record.
    """
    from matrix.findings import Finding, Related, Severity, Span

    def place(of: Mapping[str, Any]) -> Span:
        return Span(str(of["file"]), int(of["line"]), int(of["column"]))

    rule, message, fix = (str(record[name]) for name in ("rule", "message", "fix"))
    related = tuple(Related(place(one), str(one["note"])) for one in record.get("related", ()))
    span = place(record) if "file" in record else None
    return Finding(rule, message, fix, span, Severity(record["severity"]), related)


def _place(span: Span) -> dict[str, Any]:
    return {"file": span.file, "line": span.line, "column": span.column}
