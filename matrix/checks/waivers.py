"""Waivers: an entry may say, with a reason, that a rule does not apply to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.findings import Finding, Severity, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matrix.checks.case import Case
    from matrix.checks.rule import Rule
    from matrix.findings import Span

__all__ = ["UNKNOWN", "UNUSED", "Waived", "Waivers"]

UNUSED: Final = "waiver-unused"
UNKNOWN: Final = "waiver-unknown"


class Waived(NamedTuple):
    """A rule that an entry waives and that would have found something: the reason it gives, and where."""

    rule: str
    reason: str
    span: Span


class Waivers:
    """The ``check-waivers`` of some entries, and which of them were of use.

    ``known``: every rule there is, and whether an entry can waive it; one about files or whole configs it cannot.
    """

    def __init__(self, cases: Sequence[Case], known: Mapping[str, bool]) -> None:
        self.cases = cases
        self.known = known
        self.used: dict[tuple[int, int], Waived] = {}

    def cover(self, case: Case, rule: str) -> bool:
        """Whether the entry waives the rule, by which something is wrong with it."""
        found = [(index, waived) for index, waived in _waivers(case) if waived.rule == rule]
        self.used |= {(id(case), index): waived for index, waived in found}
        return bool(found)

    def findings(self, ran: Sequence[Rule[Any]]) -> Iterator[Finding]:
        """What is wrong with the waivers themselves, as far as the rules that ran can tell."""
        severities = {rule.name: rule.severity for rule in ran}
        for case in self.cases:
            for index, waived in _waivers(case):
                name = waived.rule
                if not self.known.get(name):
                    if UNKNOWN in severities:
                        yield self._unknown(waived, severities[UNKNOWN])
                elif {UNUSED, name} <= severities.keys() and (id(case), index) not in self.used and _judged(case):
                    message = f"the entry waives {name}, and nothing is wrong by that rule."
                    yield _finding(UNUSED, message, "remove the waiver", waived.span, severities[UNUSED])

    def _unknown(self, waived: Waived, severity: Severity) -> Finding:
        if waived.rule in self.known:
            message = f"{waived.rule} is about files or whole configs, so an entry cannot waive it."
            return _finding(UNKNOWN, message, f"remove it, or run with --ignore {waived.rule}", waived.span, severity)
        message = f"the entry waives {waived.rule}, and there is no such rule."
        return _finding(UNKNOWN, message, did_you_mean(waived.rule, self.known), waived.span, severity)


def _judged(case: Case) -> bool:
    """Nothing is certain of a part of an entry, nor of one whose recipe could not be read."""
    return case.whole and (case.view is not None or case.deployment.reference is None)


def _waivers(case: Case) -> Iterator[tuple[int, Waived]]:
    for index, node in enumerate(case.entry.node.get("check-waivers", ())):
        yield index, Waived(node["rule"], node["reason"], case.said(node, "rule"))


def _finding(rule: str, message: str, fix: str, span: Span, severity: Severity) -> Finding:
    return Finding(rule=rule, message=message, fix=fix, span=span, severity=severity)
