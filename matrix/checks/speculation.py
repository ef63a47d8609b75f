"""Speculative decoding: the recipe drafts when the row says so, by the kind that the row names, alike in all roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.checks.case import Case
from matrix.checks.rule import ROLE, Fault, rule
from matrix.findings import Severity
from matrix.recipes.draft import engine_of, read_draft
from matrix.recipes.golden import GoldenError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.recipes.draft import Draft
    from matrix.recipes.roles import RecipeView, Role

__all__ = ["is_golden", "recipe_speculation", "speculation_label"]

_OWN_MODEL: Final = ("dspark", "dflash")
"""Methods whose draft is a model of its own, also where it is part of the checkpoint."""


@rule("recipe-speculation", Case)
def recipe_speculation(case: Case) -> Iterator[Fault]:
    """The roles of the recipe draft exactly when spec-decoding of the row is not none, by one method and length.

    A role drafts with a method and a number of tokens: ATOM's `method` and `num-speculative-tokens`, SGLang's
    `speculative-algorithm` and `speculative-num-steps`, vLLM's `speculative-config`.

    Why: the row says what the result was measured with; roles that draft differently hold different state of a request
    (InferenceX #2816, where one setting was missing).
    Fix: correct the row, or give each role the same draft settings.
    """
    view = case.view
    if view is None:
        return
    spec, drafts = case.entry.spec_decoding, _drafts(case, view)
    master = case.said(case.entry.node, "spec-decoding")
    generating = view.generating
    for role, draft in drafts:
        if isinstance(draft, GoldenError):
            # The golden rules tell it where the point is given a length; elsewhere it is told here.
            if not is_golden(case):
                yield from (Fault(fault.message, fault.fix, recipe=fault.span) for fault in draft.findings)
        elif draft is not None and spec == "none":
            message = f"the row says spec-decoding none, and the recipe drafts {_short(draft)} ({ROLE})."
            fix = "write spec-decoding in the row, or take the draft settings out of the variant"
            yield Fault(message, fix, master, draft.span, "the draft", role.name)
        elif draft is None and spec != "none":
            message = f"the row says spec-decoding {spec}, and the recipe does not draft ({ROLE})."
            fix = "give each role its draft settings, or drop spec-decoding from the row"
            yield Fault(message, fix, master, view.recipe.home(), "the variant", role.name)
    clear = {role.name: draft for role, draft in drafts if draft is not None and not isinstance(draft, GoldenError)}
    first = clear.get(generating.name) if generating is not None else None
    for draft in clear.values():
        if first is not None and (draft.method, draft.tokens) != (first.method, first.tokens):
            message = f"{draft.role} drafts {_short(draft)}, and {first.role} {_short(first)}."
            yield Fault(message, "give both roles one draft length and method", master, draft.span, "the draft")


@rule("speculation-label", Case, Severity.WARNING)
def speculation_label(case: Case) -> Iterator[Fault]:
    """spec-decoding of the row names the kind of draft: `mtp` for the model's own heads, `draft_model` for DSpark.

    Why: points are grouped by it; a DSpark point was published as mtp (InferenceX #3158).
    Fix: correct the row.
    """
    view = case.view
    if view is None:
        return
    spec = case.entry.spec_decoding
    for role, draft in _drafts(case, view):
        if draft is None or isinstance(draft, GoldenError) or spec == "none":
            continue
        kind = "draft_model" if draft.method in _OWN_MODEL else "mtp" if "mtp" in draft.method else spec
        if kind != spec:
            message = f"the row says spec-decoding {spec}, and the recipe drafts by {draft.method} ({ROLE})."
            master = case.said(case.entry.node, "spec-decoding")
            yield Fault(message, f"write spec-decoding: {kind}", master, draft.span, "the draft", role.name)


def is_golden(case: Case) -> bool:
    """Whether the entry's points are given a golden length."""
    return case.deployment.agentic and case.entry.spec_decoding != "none"


def _drafts(case: Case, view: RecipeView) -> list[tuple[Role, Draft | GoldenError | None]]:
    """Each role with its draft, or with what is unclear about it; roles of unknown engines are left out."""
    found: list[tuple[Role, Draft | GoldenError | None]] = []
    for role in view.roles.values():
        engine = engine_of(role, case.config.framework)
        if engine is None:
            continue
        try:
            found.append((role, read_draft(view.recipe, role, engine, case.entry.spec_decoding)))
        except GoldenError as error:
            found.append((role, error))
    return found


def _short(draft: Draft) -> str:
    return f"{draft.tokens} tokens by {draft.method}"
