"""Every rule by name, and which of them a command line means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.checks import (
    admission,
    budget,
    engine,
    identity,
    lengths,
    naming,
    reading,
    references,
    router,
    speculation,
    topology,
    workload,
)
from matrix.checks.case import Case, Space, space_of
from matrix.checks.rule import Rule
from matrix.checks.run import Outcome, check_space
from matrix.checks.waivers import UNKNOWN, UNUSED
from matrix.findings import Severity
from matrix.recipes.roles import RecipeView

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType

    from matrix.checks.run import Report
    from matrix.config.model import Config
    from matrix.points.expand import Facts
    from matrix.recipes.golden import CurveBook

__all__ = ["BY_FAMILY", "FAMILIES", "RULES", "WAIVABLE", "UnknownRuleError", "check_configs", "chosen"]

FAMILIES: Final[tuple[tuple[str, ModuleType], ...]] = (
    ("The recipe that an entry names", reading),
    ("What is served", identity),
    ("Workers, GPUs and nodes", topology),
    ("The measurement", workload),
    ("Admission and graphs", admission),
    ("KV blocks in host memory", budget),
    ("Speculative decoding", speculation),
    ("Golden acceptance lengths", lengths),
    ("Arguments of engines", engine),
    ("Routers and transfer", router),
    ("Names and settings", naming),
    ("Entries and variants", references),
)
"""The modules with rules, in the order in which people meet what they check."""


class UnknownRuleError(Exception):
    """No rule has a name that was asked for; the text says which are near."""


def _nothing(_: Space) -> Iterator[Any]:
    """Waivers are judged by what the other rules did not find."""
    return iter(())


_WAIVERS: Final = (
    Rule(
        name=UNUSED,
        subject=Space,
        severity=Severity.WARNING,
        check=_nothing,
        text="A rule that an entry waives would have found something.\n\n"
        "Why: the waiver would hide the next fault, which nobody has looked at.\n"
        "Fix: remove it from `check-waivers`.",
    ),
    Rule(
        name=UNKNOWN,
        subject=Space,
        severity=Severity.ERROR,
        check=_nothing,
        text="A rule that an entry waives exists, and is about entries.\n\n"
        "Why: a waiver with a slip in it waives nothing, and the reason it gives is lost.\n"
        "Fix: write one of the names of this page.",
    ),
)


def _of(module: ModuleType) -> list[Rule[Any]]:
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, Rule) and value.check.__module__ == module.__name__
    ]
    return [*own, *(module.GOLDEN_RULES if module is lengths else ())]


BY_FAMILY: Final = (
    *((title, tuple(_of(module))) for title, module in FAMILIES),
    ("Waivers", _WAIVERS),
)
RULES: Final[tuple[Rule[Any], ...]] = tuple(rule for _, rules in BY_FAMILY for rule in rules)
WAIVABLE: Final = {
    rule.name: any(other.subject in (Case, RecipeView) for other in RULES if other.name == rule.name) for rule in RULES
}
"""Every rule name, and whether an entry can waive it."""


def chosen(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule[Any], ...]:
    """The selected rules, all where none is selected, without the ignored ones. A name may be a glob.

    Raises:
        UnknownRuleError: a name is no rule's.
    """
    wanted, unwanted = _names(select), _names(ignore)
    return tuple(rule for rule in RULES if (not wanted or rule.name in wanted) and rule.name not in unwanted)


def check_configs(
    configs: Sequence[Config], facts: Facts, *, curves: CurveBook | None = None, names: Sequence[str] = ()
) -> Report:
    """Every rule over some configs, or over the points and configs that ``names`` select: what a launch has to pass.

    An unknown name is among the findings.
    """
    space, unknown = space_of(configs, facts, names=names, curves=curves, complete=False)
    report = check_space(space, RULES, WAIVABLE)
    return report._replace(outcomes=(*map(Outcome, unknown), *report.outcomes))


def _names(patterns: Iterable[str]) -> set[str]:
    from fnmatch import filter as matching

    found: set[str] = set()
    for pattern in patterns:
        hits = matching(WAIVABLE, pattern)
        if not hits:
            from matrix.findings import did_you_mean

            msg = f"there is no rule {pattern}; {did_you_mean(pattern, WAIVABLE)}"
            raise UnknownRuleError(msg)
        found.update(hits)
    return found
