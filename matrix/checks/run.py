"""Runs checks over a space: joins faults of one cause, honours waivers, and says what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.checks.case import Case, Space
from matrix.checks.rule import ROLE, Fault
from matrix.checks.waivers import Waivers
from matrix.findings import Finding, Related, Severity, errors_of
from matrix.recipes.roles import RecipeView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matrix.checks.rule import Rule
    from matrix.checks.waivers import Waived
    from matrix.findings import Span

MOST_PLACES: Final = 3
"""On the other side of a cause; the rest is counted by the points."""

__all__ = ["Outcome", "Report", "check_recipes", "check_space", "joined"]


class Outcome(NamedTuple):
    """A finding and the ids of the points that it is about; none where it is about a file."""

    finding: Finding
    points: tuple[str, ...] = ()


class Report(NamedTuple):
    """What the checks found, in the order of the places, and how much they looked at."""

    outcomes: tuple[Outcome, ...]
    points: int
    configs: int
    recipes: int
    waived: tuple[Waived, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings without their points."""
        return tuple(outcome.finding for outcome in self.outcomes)

    def refuses(self, *, strict: bool = False) -> bool:
        """Whether anything found is reason enough to run nothing: an error, or anything where it is strict."""
        return bool(self.outcomes) if strict else bool(errors_of(self.findings))


def check_space(space: Space, rules: Sequence[Rule[Any]], known: Mapping[str, bool]) -> Report:
    """Run the rules over a space and its entries. A waiver is judged only by rules that ran.

    ``known``: every rule there is, and whether an entry can waive it.
    """
    causes = _Causes()
    waivers = Waivers(space.cases, known)
    for rule in rules:
        if rule.subject is Space:
            causes.add(rule, rule.check(space), None)
    # What expansion finds under a name that no rule has is refused all the same.
    outcomes = [Outcome(finding) for finding in space.found if finding.rule not in known]
    for case in space.cases:
        for rule in rules:
            subject = case if rule.subject is Case else case.view if rule.subject is RecipeView else None
            if subject is None:
                continue
            faults = tuple(rule.check(subject))
            if faults and not waivers.cover(case, rule.name):
                causes.add(rule, faults, case)
    outcomes += [*causes.outcomes(), *map(Outcome, waivers.findings(rules))]
    return Report(
        outcomes=_in_order(outcomes),
        points=sum(len(case.points) for case in space.cases),
        configs=len(space.configs),
        recipes=len({case.view.recipe.path for case in space.cases if case.view is not None}),
        waived=tuple(waivers.used.values()),
    )


def check_recipes(views: Sequence[RecipeView], rules: Sequence[Rule[Any]]) -> Report:
    """Run the rules that need no row over some recipes."""
    causes = _Causes()
    for view in views:
        for rule in rules:
            if rule.subject is RecipeView:
                causes.add(rule, rule.check(view), None)
    return Report(_in_order(causes.outcomes()), 0, 0, len({view.recipe.path for view in views}))


def joined(reports: Sequence[Report]) -> Report:
    """Several reports as one."""
    if len(reports) == 1:
        return reports[0]
    return Report(
        outcomes=_in_order(outcome for report in reports for outcome in report.outcomes),
        points=sum(report.points for report in reports),
        configs=sum(report.configs for report in reports),
        recipes=sum(report.recipes for report in reports),
        waived=tuple(waived for report in reports for waived in report.waived),
    )


class _Cause:
    """Faults of one rule that say the same and share a place: the line of the master, or the one of the recipe."""

    def __init__(self, rule: Rule[Any], fault: Fault) -> None:
        self.rule = rule
        self.fault = fault
        self.masters: dict[Span, str] = {}
        self.recipes: dict[Span, str] = {}
        self.roles: dict[str, None] = {}
        self.points: dict[str, None] = {}

    def shares(self, fault: Fault) -> bool:
        if fault.recipe is not None and fault.recipe in self.recipes:
            return True
        # The line that only names a recipe is no cause.
        return fault.master in self.masters if fault.master is not None and not fault.recipe_first else False

    def add(self, fault: Fault, ids: Iterable[str]) -> None:
        if fault.master is not None:
            self.masters.setdefault(fault.master, fault.note)
        if fault.recipe is not None:
            self.recipes.setdefault(fault.recipe, fault.note)
        self.roles |= {fault.role: None} if fault.role else {}
        self.points |= dict.fromkeys(ids)

    def outcome(self) -> Outcome:
        fault, names, ids = self.fault, list(self.roles), tuple(self.points)
        who = f"role {names[0]}" if len(names) == 1 else f"roles {' and '.join(names)}"
        message = fault.message.replace(ROLE, who)
        if ids:
            message += f" Point {ids[0]}." if len(ids) == 1 else f" {len(ids):,} points, the first is {ids[0]}."
        first, second = [*self.masters.items()], [*self.recipes.items()]
        if fault.recipe_first or not first:
            first, second = second, first
        finding = Finding(
            rule=self.rule.name,
            message=message,
            fix=fault.fix,
            span=first[0][0] if first else None,
            severity=fault.severity or self.rule.severity,
            related=tuple(Related(span, note) for span, note in second[:MOST_PLACES]),
        )
        return Outcome(finding, ids)


class _Causes:
    """Faults, joined by their cause; findings that a check tells itself are only counted."""

    def __init__(self) -> None:
        self.whole: dict[Finding, tuple[Finding, dict[str, None]]] = {}
        self.joined: dict[tuple[object, ...], list[_Cause]] = {}

    def add(self, rule: Rule[Any], faults: Iterable[Fault | Finding], case: Case | None) -> None:
        ids = tuple(point.id for point in case.points) if case is not None else ()
        for fault in faults:
            if isinstance(fault, Finding):
                _, points = self.whole.setdefault(fault._replace(related=()), (fault, {}))
                points |= dict.fromkeys(ids)
                continue
            placed = _placed(fault, case) if case is not None else fault
            alike = self.joined.setdefault((rule.name, fault.message, fault.fix, fault.severity), [])
            cause = next((cause for cause in alike if cause.shares(placed)), None)
            if cause is None:
                cause = _Cause(rule, placed)
                alike.append(cause)
            cause.add(placed, ids)

    def outcomes(self) -> list[Outcome]:
        told = [Outcome(finding, tuple(points)) for finding, points in self.whole.values()]
        return told + [cause.outcome() for alike in self.joined.values() for cause in alike]


def _placed(fault: Fault, case: Case) -> Fault:
    """Without a place in the master it is the line that names the recipe."""
    if fault.master is not None:
        return fault
    note = fault.note or f"named by {case.config.key}"
    return fault._replace(master=case.named, note=note, recipe_first=fault.recipe is not None)


def _in_order(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    from matrix.findings import Span

    return tuple(
        sorted(
            outcomes,
            key=lambda outcome: (
                outcome.finding.span or Span(""),
                outcome.finding.severity is Severity.WARNING,
                outcome.finding.rule,
                outcome.finding.message,
            ),
        )
    )
