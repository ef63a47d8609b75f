"""Points and findings for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from matrix.findings import Finding, Span
    from matrix.points.point import Point

__all__ = ["finding_of", "finding_record", "rows_json", "rows_jsonl"]


def rows_json(points: Iterable[Point]) -> Iterator[str]:
    """One JSON array, a row a line."""
    opening = "["
    for point in points:
        yield f"{opening}\n{point.row_json()}"
        opening = ","
    yield "[]\n" if opening == "[" else "\n]\n"


def rows_jsonl(points: Iterable[Point]) -> Iterator[str]:
    """A JSON object a line."""
    for point in points:
        yield f"{point.row_json()}\n"


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
