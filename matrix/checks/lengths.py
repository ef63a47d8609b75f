"""The golden rules, as `matrix.checks.golden` and the look-up tell them, each by its own name."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from matrix.checks.case import Case, Space
from matrix.checks.golden import check_acceptance, check_curves
from matrix.checks.rule import Fault, Rule, rule
from matrix.checks.speculation import is_golden, recipe_speculation
from matrix.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matrix.recipes.golden import CurveBook

__all__ = ["GOLDEN_RULES", "golden_unread"]


@rule("golden-unread", Case, Severity.WARNING)
def golden_unread(case: Case) -> Iterator[Fault]:
    """An agentic speculative entry names a recipe.

    Why: without one nothing says what it drafts, so no golden length can be looked up.
    Fix: name the recipe with CONFIG_FILE.
    """
    if is_golden(case) and case.deployment.reference is None:
        message = f"{case.config.key} speculates and names no recipe, so nothing says here what is drafted."
        yield Fault(message, "name the recipe with CONFIG_FILE=…", case.place)


_TEXTS: Final = {
    "golden-ambiguous": "Two curves are never for the same runs.",
    "golden-condition": "A run says enough to tell the curves of its model and method apart.",
    "golden-draft-json": "`speculative-config` holds a JSON object.",
    "golden-draft-length": "A role that drafts says how many tokens: a whole number of 1 or more.",
    "golden-engine": "The engine is the one of the framework, and one that can be told a length.",
    "golden-folder": "There is a folder of curves, and it holds nothing else.",
    "golden-hard-coded": "No recipe or setting forces a length: it would stay in accuracy runs (InferenceX #2665).",
    "golden-identity": "A curve says which runs it is for.",
    "golden-length-and-rate": "ATOM is not told a length and a rate.",
    "golden-level": "The levels of a curve are whole numbers of 1 or more.",
    "golden-method": "A role that drafts names its method.",
    "golden-missing": "There is a curve for the model prefix and the method.",
    "golden-model": "A curve file holds one model.",
    "golden-no-draft": "The role that generates drafts where the row says so.",
    "golden-range": "A length lies between 1 and the draft length plus 1.",
    "golden-request": "A look-up asks for what a curve can have.",
    "golden-roles": "The roles of a recipe draft alike.",
    "golden-scheduler": "DSpark's confidence scheduler is off: no forced length survives it.",
    "golden-thinking": "The roles of an entry say one thinking mode, and a curve has no others than are known.",
    "golden-two-spellings": "A draft setting that is there in two spellings says one thing.",
    "golden-unmeasured": "The curve has the thinking mode and the draft length of the run.",
    "golden-value": "The cells of a curve are lengths.",
}
_MORE: Final = "Why and how to mend it: [golden.md](golden.md)."


def _entries(name: str) -> Callable[[Case], Iterator[Fault]]:
    def check(case: Case) -> Iterator[Fault]:
        for finding in _acceptance(case):
            if finding.rule == name:
                in_master = finding.span is not None and finding.span.file == case.config.document.name
                yield Fault(
                    message=finding.message,
                    fix=finding.fix,
                    master=finding.span if in_master else None,
                    recipe=None if in_master else finding.span,
                    severity=finding.severity,
                )

    return check


@lru_cache(maxsize=1)
def _acceptance(case: Case) -> tuple[Finding, ...]:
    """What the golden rules say of an entry; kept for one, since they ask in turn.

    How its roles draft is recipe-speculation's to tell, where it has something to tell.
    """
    if case.curves is None:
        return ()
    told = {"golden-no-draft", "golden-roles"} if any(recipe_speculation.check(case)) else set()
    recipe = case.view.recipe if case.view is not None else None
    found = check_acceptance(case.config, case.scenario, case.entry, recipe, case.curves)
    of_curves = {finding._replace(related=()) for finding in _faults(case.curves)}
    return tuple(
        finding for finding in found if finding.rule not in told and finding._replace(related=()) not in of_curves
    )


def _curves(name: str) -> Callable[[Space], Iterator[Finding]]:
    def check(space: Space) -> Iterator[Finding]:
        if space.curves is None:
            yield from _no_folder(space) if name == "golden-folder" else ()
        else:
            yield from (finding for finding in _faults(space.curves) if finding.rule == name)

    return check


@lru_cache(maxsize=1)
def _faults(curves: CurveBook) -> tuple[Finding, ...]:
    return tuple(check_curves(curves))


def _no_folder(space: Space) -> Iterator[Finding]:
    count = sum(len(case.points) for case in space.cases if is_golden(case))
    if count:
        points = "1 agentic point drafts" if count == 1 else f"{count} agentic points draft"
        message = f"no folder of golden curves is named, and {points}."
        fix = "name it with --golden DIR or [tool.matrix] golden"
        yield Finding(rule="golden-folder", message=message, fix=fix)


def _rules() -> Iterator[Rule[Any]]:
    """Two for each name: a curve can be wrong, and an entry against its curve."""
    for name, text in _TEXTS.items():
        text = f"{text}\n\n{_MORE}"  # noqa: PLW2901 - completed
        yield Rule(name=name, subject=Space, severity=Severity.ERROR, check=_curves(name), text=text)
        yield Rule(name=name, subject=Case, severity=Severity.ERROR, check=_entries(name), text=text)


GOLDEN_RULES: Final = tuple(_rules())
