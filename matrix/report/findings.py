"""Findings for people: one line each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TextIO

from matrix.findings import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matrix.findings import Finding, Severity

__all__ = ["print_findings"]

MOST_PER_RULE: Final = 50
"""More findings of one rule than this tell nothing new; the rest is counted."""


def print_findings(findings: Iterable[Finding], stream: TextIO) -> None:
    """One line each, in the given order; of one rule at most ``MOST_PER_RULE`` and then the count of the others."""
    told: Counter[tuple[str, Severity]] = Counter()
    for finding in findings:
        key = (finding.rule, finding.severity)
        told[key] += 1
        if told[key] <= MOST_PER_RULE:
            print(one_line(str(finding)), file=stream)
    for (rule, severity), count in told.items():
        if count > MOST_PER_RULE:
            print(f"{severity}: {rule}: {count - MOST_PER_RULE:,} more like these", file=stream)
