"""Findings as annotation_lines of GitHub Actions: workflow commands on standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matrix.findings import Finding

__all__ = ["annotation_lines"]

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def annotation_lines(findings: Iterable[Finding]) -> Iterator[str]:
    r"""One line a finding. The rule is the title; the second place and the fix are lines of the message.

    >>> from matrix.findings import Finding, Span
    >>> list(annotation_lines([Finding("recipe-tp", "50% of 8, not 4.", "write 8", Span("a,b.yaml", 3, 7))]))
    ['::error file=a%2Cb.yaml,line=3,col=7,title=recipe-tp::50%25 of 8, not 4.%0Afix: write 8']
    """
    for finding in findings:
        properties = {}
        if finding.span is not None:
            properties["file"] = finding.span.file
            if finding.span.line:
                properties["line"] = str(finding.span.line)
            if finding.span.column:
                properties["col"] = str(finding.span.column)
        properties["title"] = finding.rule
        said = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
        lines = [finding.message, *(f"{related.span}: {related.note}" for related in finding.related)]
        lines += [f"fix: {finding.fix}"] if finding.fix else []
        yield f"::{_COMMANDS[finding.severity]} {said}::{_data(chr(10).join(lines))}"


def _data(text: str) -> str:
    """Escaped as the runner unescapes it; the percent sign first, since it is what the others become."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
