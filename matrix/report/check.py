"""What a check found, in every form that it is told in."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING

from matrix.findings import Severity
from matrix.report.json import finding_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.checks.run import Report

__all__ = ["FORMATS", "report_lines", "summary"]

FORMATS = ("text", "json", "github", "markdown")


def report_lines(report: Report, style: str, *, strict: bool = False) -> Iterator[str]:
    """The lines for standard output. Text has none: findings go to people, on standard error."""
    match style:
        case "json":
            yield dumps(_document(report, strict=strict), indent=2)
        case "github":
            from matrix.report.github import annotation_lines

            yield from annotation_lines(report.findings)
        case "markdown":
            from matrix.report.markdown import findings_table

            yield summary(report)
            yield from ("", *findings_table(report.findings)) if report.findings else ()
        case _:
            pass


def summary(report: Report) -> str:
    """One line: how much was looked at, and how much was found."""
    counts = [(report.points, "point"), (report.configs, "config"), (report.recipes, "recipe")]
    looked = ", ".join(_counted(number, noun) for number, noun in counts if number) or "nothing looked at"
    waived = f", {len(report.waived)} waived" if report.waived else ""
    return f"{looked}: {_found(report)}{waived}"


def _found(report: Report) -> str:
    kinds = [finding.severity for finding in report.findings]
    errors, warnings = kinds.count(Severity.ERROR), kinds.count(Severity.WARNING)
    told = [_counted(number, noun) for number, noun in ((errors, "error"), (warnings, "warning")) if number]
    return ", ".join(told) or "no finding"


def _document(report: Report, *, strict: bool) -> dict[str, object]:
    return {
        "version": 1,
        "refused": report.refuses(strict=strict),
        "points": report.points,
        "configs": report.configs,
        "recipes": report.recipes,
        "findings": [
            {**finding_record(outcome.finding), **({"points": list(outcome.points)} if outcome.points else {})}
            for outcome in report.outcomes
        ],
        "waived": [
            {"rule": waived.rule, "reason": waived.reason, "file": waived.span.file, "line": waived.span.line}
            for waived in report.waived
        ],
    }


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
