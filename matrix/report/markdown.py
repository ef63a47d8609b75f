"""Findings as a Markdown table, for a job summary or a comment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from matrix.findings import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matrix.findings import Finding

__all__ = ["cell", "findings_table"]

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|~#@!])")
"""What Markdown, HTML in it, or GitHub (mentions, references) would read as more than text."""


def findings_table(findings: Iterable[Finding]) -> Iterator[str]:
    """The lines of the table; none where there is nothing to tell."""
    opened = False
    for finding in findings:
        if not opened:
            opened = True
            yield "| | rule | where | what | fix |"
            yield "|---|---|---|---|---|"
        places = [finding.span, *(related.span for related in finding.related)]
        where = "<br>".join(cell(str(place)) for place in places if place is not None)
        what = "<br>".join([cell(finding.message), *(cell(f"{r.span}: {r.note}") for r in finding.related if r.note)])
        yield f"| {finding.severity} | {cell(finding.rule)} | {where} | {what} | {cell(finding.fix)} |"


def cell(text: str) -> str:
    r"""Text that stays text inside a table, on one line.

    >>> cell("a|b <x>\n*c*")
    'a\\|b \\<x\\> \\*c\\*'
    """
    return _SPECIAL.sub(r"\\\1", printable(" ".join(text.split())))
