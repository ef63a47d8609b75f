"""Entries and variants belong together one to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.checks.case import Case, Space
from matrix.checks.rule import Fault, rule
from matrix.findings import Finding, Severity, Span
from matrix.recipes.recipe import RecipeError, variants

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["recipe_unreferenced", "variant_shared", "variant_unreferenced"]


@rule("variant-shared", Case, Severity.WARNING)
def variant_shared(case: Case) -> Iterator[Fault]:
    """No two entries name one variant.

    Why: it runs once for each of them, on nodes that one run would have done with. Mostly an entry was copied and its
    selector was not changed.
    Fix: give the entry a variant of its own, or remove it.
    """
    if case.earlier:
        key, span = case.earlier[0]
        whose = "an earlier entry" if key == case.config.key else f"an entry of {key}"
        message = f"{case.deployment.reference} already belongs to {whose}."
        yield Fault(message, "give this entry a variant of its own", case.named, span, "the other entry")


@rule("recipe-unreferenced", Space, Severity.WARNING)
def recipe_unreferenced(space: Space) -> Iterator[Finding]:
    """Every recipe file below the recipe roots is named by an entry. Looked at where everything is checked.

    Why: nobody runs it and nobody keeps it up, until somebody copies it.
    Fix: add an entry, or remove the file.
    """
    if not space.complete or space.facts.recipes is None:
        return
    used = _used(space)
    for path, name in space.facts.recipes.files():
        if name not in used:
            yield Finding(
                rule="recipe-unreferenced",
                message="no entry names this recipe.",
                fix="add an entry with it, or remove the file",
                span=Span(str(path)),
                severity=Severity.WARNING,
            )


@rule("variant-unreferenced", Space, Severity.WARNING)
def variant_unreferenced(space: Space) -> Iterator[Finding]:
    """Every variant of a recipe that is in use is named by an entry. Looked at where everything is checked.

    Why: a point was meant to be there, or is no longer.
    Fix: add an entry, or remove the variant.
    """
    if not space.complete or space.facts.recipes is None:
        return
    for name in sorted(_used(space)):
        try:
            document = space.facts.recipes.document(name)
        except RecipeError:
            continue
        known = [f"{name}:{variant}" for variant in variants(document.root)]
        named = {reference for reference in space.named if reference.startswith(f"{name}:")}
        # A selector that is none of them (or none at all) is refused; it may well have meant what looks unused.
        if name in space.named or not named <= {*known, f"{name}:base"}:
            continue
        unused: dict[str, list[str]] = {}
        for variant in known:
            if variant not in named:
                selector = variant.removeprefix(f"{name}:")
                unused.setdefault(selector.split("[")[0], []).append(selector)
        for key, selectors in unused.items():
            yield Finding(
                rule="variant-unreferenced",
                message=f"no entry names {', '.join(selectors)}.",
                fix="add an entry, or remove the variant",
                span=document.of_key(document.root, key),
                severity=Severity.WARNING,
            )


def _used(space: Space) -> set[str]:
    """The recipe files that an entry names, as paths below a root."""
    return {reference.rpartition(":")[0] or reference for reference in space.named}
