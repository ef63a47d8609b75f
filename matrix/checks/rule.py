"""`Rule`: one check with its id. `Fault`: what it says of one entry or recipe.

Many entries can share one cause, such as a wrong image in the base of a recipe. So a fault names no point: faults that
differ in their entry or role alone become one finding, which says how many points it is about.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import getdoc
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from matrix.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from matrix.findings import Span

__all__ = ["ROLE", "Fault", "Rule", "rule"]

ROLE = "{role}"
"""In a message: ``role prefill``, or ``roles prefill and decode`` where both share a cause."""

Subject = TypeVar("Subject")


class Fault(NamedTuple):
    """One thing wrong with an entry or a recipe, before equal ones are joined.

    ``master`` and ``recipe`` are the two places that disagree; ``note`` says what is at the second one. The master's is
    told first, unless ``recipe_first``. Without a place in the master it is the line that names the recipe. ``role``
    replaces `ROLE` in the message. ``severity`` is the rule's where it is None.
    """

    message: str
    fix: str
    master: Span | None = None
    recipe: Span | None = None
    note: str = ""
    role: str = ""
    recipe_first: bool = False
    severity: Severity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[Subject]):
    """A check: ``name`` is its stable id, ``subject`` the type that it looks at, ``text`` what, why and how to mend it.

    ``check`` yields a `Finding` where it knows best how to tell it; that one is passed on as it is.
    """

    name: str
    subject: type[Subject]
    severity: Severity
    check: Callable[[Subject], Iterable[Fault | Finding]]
    text: str


def rule(
    name: str, subject: type[Subject], severity: Severity = Severity.ERROR
) -> Callable[[Callable[[Subject], Iterable[Fault | Finding]]], Rule[Subject]]:
    """Make a check of a function; its docstring becomes the text."""

    def named(check: Callable[[Subject], Iterable[Fault | Finding]]) -> Rule[Subject]:
        return Rule(name=name, subject=subject, severity=severity, check=check, text=getdoc(check) or "")

    return named
