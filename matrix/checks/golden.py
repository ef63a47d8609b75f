"""Checks of golden acceptance: the curves themselves, and every entry of a master against its recipe and its curve."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.config.model import Aggregated, Disaggregated
from matrix.config.source import Map
from matrix.findings import Finding, Related, Severity, Span
from matrix.points.expand import survey
from matrix.recipes.acceptance import AcceptanceRequest, drafts_of, length_for, request_of
from matrix.recipes.draft import Engine
from matrix.recipes.forced import Leftover, given_text, is_variable, leftovers
from matrix.recipes.golden import CurveBook, GoldenError, GoldenLength
from matrix.recipes.roles import ViewError, view_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matrix.config.model import Config, Entry, Scenario, Worker
    from matrix.points.expand import Facts
    from matrix.recipes.curve import Curve
    from matrix.recipes.draft import Draft
    from matrix.recipes.recipe import Recipe
    from matrix.recipes.roles import RecipeView

__all__ = ["check_acceptance", "check_curves", "check_golden"]

_FORCING: Final = re.compile(r"SYNTHETIC_ACCEPT|SIMULATE_ACC|SPEC_DECODE_ACCEPT|FORCE_NUM_ACCEPTED")
"""Settings of a point that force an acceptance length, in whichever launcher's spelling."""

_SAME: Final = "neither belongs here: the curve's length is given at launch"


def check_curves(curves: CurveBook) -> Iterator[Finding]:
    """golden-*: each curve file is one model's, its identity can be asked for, its cells are lengths.

    A level is a whole number of 1 or more and its length lies in [1, level + 1]; lengths may fall again. No two curves
    are for the same runs.
    """
    try:
        found = curves.curves
    except GoldenError as error:
        yield from error.findings
        return
    if not found:
        message = "the folder holds no golden curve (*.yaml)."
        yield Finding(rule="golden-folder", message=message, fix="add one", span=Span(str(curves.folder)))
    for path in sorted(Path(curves.folder).glob("*.yml")):
        message = "this file is not read: a curve ends in .yaml."
        yield Finding(rule="golden-folder", message=message, fix=f"rename it {path.stem}.yaml", span=Span(str(path)))
    for curve in found:
        yield from curve.faults
    yield from _overlaps(found)


def check_golden(configs: Sequence[Config], facts: Facts, curves: CurveBook) -> Iterator[Finding]:
    """The curves, then every entry of the configs that names a readable recipe.

    A recipe that is not there is an error here: nobody can say that its points have a golden length. Each finding comes
    once, however many entries lead to it.
    """
    told: set[Finding] = set()
    for finding in _everything(configs, facts, curves):
        bare = finding._replace(related=())
        if bare not in told:
            told.add(bare)
            yield finding


def _everything(configs: Sequence[Config], facts: Facts, curves: CurveBook) -> Iterator[Finding]:
    yield from check_curves(curves)
    found = survey(configs, facts._replace(inject=None))
    for finding in found.findings:
        if finding.rule.startswith("recipe"):
            yield finding._replace(severity=Severity.ERROR)
        elif finding.severity is Severity.ERROR:
            yield finding
    unread: Counter[str] = Counter()
    for group in found.groups:
        one = group[0]
        config, entry = one.config, one.entry
        if one.reference is None and one.agentic and entry.spec_decoding != "none":
            unread[config.key] += 1
        yield from check_acceptance(config, one.scenario, entry, one.recipe, curves)
    for config in configs:
        if count := unread[config.key]:
            entries = "1 speculative entry names" if count == 1 else f"{count} speculative entries name"
            message = f"{config.key}: {entries} no recipe, so nothing says here what is drafted."
            span = config.document.span(config.mark)
            yield Finding(rule="golden-unread", message=message, span=span, severity=Severity.WARNING)


def check_acceptance(
    config: Config, scenario: Scenario, entry: Entry, recipe: Recipe | None, curves: CurveBook
) -> Iterator[Finding]:
    """golden-*: an agentic speculative point has exactly one golden length, and nothing else says another.

    ``recipe`` is the resolved recipe as written, before injection; without one only the settings can be looked at.
    """
    place = config.document.span(entry.node.mark)
    try:
        request = request_of(config, scenario, entry)
    except GoldenError as error:
        yield from error.findings
        return
    golden: GoldenLength | None = None
    engine: Engine | None = None
    if recipe is not None:
        try:
            view = view_of(recipe)
        except ViewError as error:
            yield error.finding
            view = None
        if view is not None:
            drafts, faults = _drafts(view, request)
            if drafts:
                engine = drafts[0].engine
                try:
                    golden = length_for(drafts[0], request, curves)
                except GoldenError as error:
                    faults = error.findings
            named = (Related(place, f"a point of {config.key}"),)
            for fault in faults:
                yield fault if fault.related else fault._replace(related=named)
            for fault in (*_hard_coded(view, _says(golden, engine)), *_role_faults(view, drafts, golden)):
                yield fault._replace(related=named)
    yield from _settings(config, entry, _says(golden, engine))


def _drafts(view: RecipeView, request: AcceptanceRequest) -> tuple[tuple[Draft, ...], tuple[Finding, ...]]:
    if request.idle:
        return (), ()
    try:
        drafts = drafts_of(view, request)
    except GoldenError as error:
        return (), error.findings
    if drafts or view.generating is None:
        return drafts, ()
    message = (
        f"the row says spec-decoding {request.spec_decoding}, and role {view.generating.name} does not draft, so there"
        " is no golden length to hold it to."
    )
    fix = "give the role its draft settings, or drop spec-decoding from the row"
    return (), (Finding(rule="golden-no-draft", message=message, fix=fix, span=view.recipe.home()),)


def _overlaps(curves: tuple[Curve, ...]) -> Iterator[Finding]:
    """Curves that some run matches equally: the same prefix, method and conditions."""
    seen: dict[tuple[str, str, str | None, str | None], Curve] = {}
    for curve in curves:
        identity = curve.identity
        if identity is None:
            continue
        pattern = identity.draft_model.pattern if identity.draft_model is not None else None
        runs = [
            (prefix, method, pattern, identity.draft_sampling)
            for prefix in identity.model_prefixes
            for method in identity.methods
        ]
        shared = [(run, seen[run]) for run in runs if run in seen]
        for other, group in groupby(shared, key=lambda pair: pair[1]):
            runs_of = ", ".join(f"{prefix} {method}" for (prefix, method, _, _), _ in group)
            message = f"{curve.path.name} and {other.path.name} are both for {runs_of}, on the same conditions."
            related = (Related(other.span(), "the other one"),)
            yield Finding(
                rule="golden-ambiguous",
                message=message,
                fix="make one identity narrower, or remove a file",
                span=curve.span(),
                related=related,
            )
        seen |= {run: curve for run in runs if run not in seen}


def _says(golden: GoldenLength | None, engine: Engine | None) -> str:
    if golden is None or engine is None:
        return "a length is given at launch, from the golden curve, to agentic throughput runs alone"
    cell = f"{golden.thinking} and {golden.tokens} draft tokens"
    given = given_text(engine, golden.value)
    unit = "" if given == golden.text else f", as {given} in {engine}'s unit"
    return f"{golden.curve.path.name} says {golden.text} for {cell}, and that is given at launch{unit}"


def _hard_coded(view: RecipeView, says: str) -> Iterator[Finding]:
    """An acceptance setting in a recipe is one cause a mapping, however many variables it takes and roles share it."""
    told: set[Span] = set()
    for _, group in groupby((*leftovers(view), *_launcher_variables(view)), key=lambda leftover: leftover.path[:-1]):
        found = [leftover for leftover in group if leftover.span not in told]
        if not found:
            continue
        told |= {leftover.span for leftover in found}
        names = {leftover.path[-1].replace("_", "-") for leftover in found}
        said = ", ".join(map(str, found))
        span = found[0].span
        if {"spec-decode-acceptance-length", "spec-decode-acceptance-rate"} <= names:
            message = f"the recipe says {said}. ATOM takes one of the two; {_SAME}."
            yield Finding(rule="golden-length-and-rate", message=message, fix="remove both", span=span)
        else:
            message = f"the recipe forces an acceptance of its own ({said}); {says}."
            yield Finding(rule="golden-hard-coded", message=message, fix=_removal(found), span=span)


def _launcher_variables(view: RecipeView) -> Iterator[Leftover]:
    """Variables that other launchers take a length from; no engine reads them, so injection lets them be."""
    client = view.benchmark.get("env")
    environments: list[tuple[tuple[str, ...], Map]] = [(("environment",), view.environment)]
    environments += [(("roles", role.name, "env"), role.env) for role in view.roles.values()]
    environments += [(("benchmark", "env"), client)] if isinstance(client, Map) else []
    for path, env in environments:
        for key, value in env.items():
            if _FORCING.search(key) and not is_variable(key):
                yield Leftover((*path, key), value, None, view.recipe.document.of_key(env, key))


def _removal(found: list[Leftover]) -> str:
    return "remove it" if len(found) == 1 else f"remove all {len(found)}"


def _settings(config: Config, entry: Entry, says: str) -> Iterator[Finding]:
    for worker in _workers(entry):
        forcing = [
            (index, text)
            for index, text in enumerate(worker.settings)
            if _FORCING.search(text.partition("=")[0].upper())
        ]
        if not forcing:
            continue
        said = " and ".join(text for _, text in forcing)
        numbers = [index for index, text in forcing if any(digit.isdigit() for digit in text.partition("=")[2])]
        span = config.document.of_value(worker.node["additional-settings"], (numbers or [forcing[0][0]])[0])
        message = f"{config.key} forces an acceptance of its own ({said}); {says}."
        fix = "remove the setting" if len(forcing) == 1 else f"remove the {len(forcing)} settings"
        yield Finding(rule="golden-hard-coded", message=message, fix=fix, span=span)


def _workers(entry: Entry) -> tuple[Worker, ...]:
    match entry.topology:
        case Disaggregated(prefill, decode):
            return (prefill, decode)
        case Aggregated(worker):
            return (worker,)
        case _:
            return ()


def _role_faults(view: RecipeView, drafts: tuple[Draft, ...], golden: GoldenLength | None) -> Iterator[Finding]:
    """What the other roles make of the generating role's length."""
    if not drafts or golden is None:
        return
    first = drafts[0]
    for draft in drafts[1:]:
        if (draft.tokens, draft.method) == (first.tokens, first.method):
            continue
        given = given_text(draft.engine, golden.value)
        message = (
            f"role {draft.role} drafts {draft.tokens} tokens with {draft.method}, {first.role} {first.tokens} with"
            f" {first.method}; {first.role} decides, and both are given {given}."
        )
        # ATOM checks the range at start-up, and the worker would not come up.
        refused = golden.value > draft.tokens + 1 and draft.engine is Engine.ATOM
        if refused:
            message += f" ATOM refuses more than {draft.tokens + 1} for {draft.tokens} draft tokens."
        severity = Severity.ERROR if refused else Severity.WARNING
        fix = "give both roles one draft length and method"
        yield Finding(rule="golden-roles", message=message, fix=fix, span=draft.span, severity=severity)
    silent = [role.name for role in view.roles.values() if role.name not in {draft.role for draft in drafts}]
    if silent and first.engine is not Engine.TILERT:
        message = f"role {silent[0]} does not draft and is given no length; {first.role} is given {golden.text}."
        fix = f"give {silent[0]} the draft settings of {first.role}, unless it is meant"
        yield Finding(rule="golden-roles", message=message, fix=fix, span=first.span, severity=Severity.WARNING)
