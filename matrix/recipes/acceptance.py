"""What a run is told about acceptance: the golden length in a throughput run, nothing at all in any other.

Injection is a pure function of a resolved recipe. Whatever acceptance the recipe itself forces is taken out, in every
run. Then an agentic throughput run that drafts is given the golden length of its draft, in each role that drafts. The
generating role (decode, else agg) alone decides the value: prefill may draft less, or not at all.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.model import Aggregated, Disaggregated, ScenarioKind
from matrix.config.source import plain
from matrix.findings import Finding
from matrix.recipes.draft import FRAMEWORKS, Draft, Engine, engine_of, read_draft
from matrix.recipes.forced import Change, force
from matrix.recipes.golden import DEFAULT_THINKING, CurveBook, GoldenError, GoldenLength, LookUp
from matrix.recipes.recipe import Recipe
from matrix.recipes.roles import RecipeView, Role, ViewError, view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from matrix.config.model import Config, Entry, Scenario

__all__ = [
    "THINKING_MODE",
    "AcceptanceRecord",
    "AcceptanceRequest",
    "Reason",
    "drafts_of",
    "framework_of",
    "inject",
    "injector",
    "length_for",
    "request_of",
    "settings_of",
]

THINKING_MODE: Final = "THINKING_MODE="
"""The setting of a point that says how its model is asked."""


class Reason(StrEnum):
    """Why a run is given a length, or none."""

    THROUGHPUT = "agentic throughput run"
    ACCURACY = "accuracy run: real drafts are verified"
    NOT_AGENTIC = "fixed-length workload: acceptance is real"
    NO_SPECULATION = "the row says spec-decoding none"
    NO_DRAFT = "the generating role does not draft"


class AcceptanceRequest(NamedTuple):
    """What of a point decides its acceptance; ``spec_decoding`` and ``framework`` as the row says them."""

    model_prefix: str
    framework: str
    spec_decoding: str
    agentic: bool
    eval_only: bool = False
    thinking: str = DEFAULT_THINKING

    @property
    def idle(self) -> Reason | None:
        """Why this run is given no length, as far as the row says."""
        if self.eval_only:
            return Reason.ACCURACY
        if not self.agentic:
            return Reason.NOT_AGENTIC
        return Reason.NO_SPECULATION if self.spec_decoding == "none" else None


class AcceptanceRecord(NamedTuple):
    """What was done to a recipe. ``engine`` and ``golden`` are None where no length was given."""

    reason: Reason
    engine: Engine | None = None
    golden: GoldenLength | None = None
    changes: tuple[Change, ...] = ()

    @property
    def length(self) -> str | None:
        """The golden length, in the shortest exact decimal text."""
        return self.golden.text if self.golden is not None else None

    def as_json(self) -> dict[str, Any]:
        """For receipts: curve file, cell, value, engine and every change."""
        golden = self.golden
        return {
            "reason": self.reason.value,
            "engine": self.engine.value if self.engine is not None else None,
            "curve": golden.curve.path.name if golden is not None else None,
            "thinking": golden.thinking if golden is not None else None,
            "draft-tokens": golden.tokens if golden is not None else None,
            "length": self.length,
            "changes": [
                {"path": ".".join(change.path), "before": plain(change.before), "after": plain(change.after)}
                for change in self.changes
            ],
        }


def inject(recipe: Recipe, request: AcceptanceRequest, curves: CurveBook) -> tuple[Recipe, AcceptanceRecord]:
    """The recipe as this run gets it, and what was done to it. The given recipe is not changed.

    Raises:
        GoldenError: the recipe does not say clearly what it drafts, or there is no golden length for that.
    """
    return _inject(_view(recipe), request, curves)


def _inject(view: RecipeView, request: AcceptanceRequest, curves: CurveBook) -> tuple[Recipe, AcceptanceRecord]:
    recipe = view.recipe
    drafts = () if request.idle else drafts_of(view, request)
    golden = length_for(drafts[0], request, curves) if drafts else None
    lengths = {draft.role: (draft.engine, golden.value) for draft in drafts} if golden is not None else {}
    data, changes = force(view, lengths)
    record = AcceptanceRecord(
        reason=request.idle or (Reason.THROUGHPUT if drafts else Reason.NO_DRAFT),
        engine=drafts[0].engine if drafts else None,
        golden=golden,
        changes=changes,
    )
    return (Recipe(recipe.reference, data, recipe.document, recipe.path) if changes else recipe), record


def injector(
    curves: CurveBook,
) -> Callable[[Recipe, Config, Scenario, Entry], tuple[Recipe, Recipe, str | None]]:
    """A function of a recipe and the entry that names it: throughput recipe, accuracy recipe, golden length.

    Entries that name one recipe and ask alike are given the very same recipes.
    """

    @cache
    def both(recipe: Recipe, request: AcceptanceRequest) -> tuple[Recipe, Recipe, str | None]:
        view = _view(recipe)
        throughput, record = _inject(view, request, curves)
        if record.golden is None:
            return throughput, throughput, None
        accuracy, _ = _inject(view, request._replace(eval_only=True), curves)
        return throughput, accuracy, record.length

    return lambda recipe, config, scenario, entry: both(recipe, request_of(config, scenario, entry))


def request_of(config: Config, scenario: Scenario, entry: Entry, *, eval_only: bool = False) -> AcceptanceRequest:
    """What decides the acceptance of an entry's points.

    Raises:
        GoldenError: its roles say different thinking modes.
    """
    said = {text.removeprefix(THINKING_MODE) for text in settings_of(entry) if text.startswith(THINKING_MODE)}
    if len(said) > 1:
        message = f"the roles say {' and '.join(sorted(said))} for {THINKING_MODE.rstrip('=')}, and a run has one."
        span = config.document.span(entry.node.mark)
        raise GoldenError([Finding(rule="golden-thinking", message=message, fix="keep one", span=span)])
    return AcceptanceRequest(
        model_prefix=config.model_prefix,
        framework=config.framework,
        spec_decoding=entry.spec_decoding,
        agentic=scenario.kind is ScenarioKind.AGENTIC,
        eval_only=eval_only,
        thinking=said.pop() if said else DEFAULT_THINKING,
    )


def framework_of(recipe: Recipe) -> str:
    """A framework name for a recipe that no config names yet: the plainest of its engine's.

    Raises:
        GoldenError: the recipe cannot be read, or its engine is none that can be told a length.
    """
    view = _view(recipe)
    generating = view.generating
    engine = engine_of(generating, "") if generating is not None else None
    if generating is None or engine is None:
        from matrix.findings import did_you_mean

        said = generating.engine if generating is not None else ""
        message = f"the recipe's engine {said or '(none)'} is none that can be told an acceptance length."
        finding = Finding(rule="golden-engine", message=message, fix=did_you_mean(said, Engine), span=recipe.home())
        raise GoldenError([finding])
    return next(name for name, own in FRAMEWORKS.items() if own is engine)


def settings_of(entry: Entry) -> tuple[str, ...]:
    """The settings of every role of an entry, in order."""
    match entry.topology:
        case Disaggregated(prefill, decode):
            return (*prefill.settings, *decode.settings)
        case Aggregated(worker):
            return worker.settings
        case _:
            return ()


def drafts_of(view: RecipeView, request: AcceptanceRequest) -> tuple[Draft, ...]:
    """The drafts that can be given a length, the generating role's first; none where that role does not draft.

    Raises:
        GoldenError: an unknown engine, half a setting, or a scheduler that no forced length survives.
    """
    generating = view.generating
    if generating is None:
        return ()
    faults = list(_engine_faults(view, generating, request.framework))
    if faults:
        raise GoldenError(faults)
    found: list[Draft] = []
    for role in (generating, *(role for role in view.roles.values() if role is not generating)):
        engine = engine_of(role, request.framework)
        # TileRT simulates in its decode server alone; its first token and draft cache come from a real prefill.
        if engine is None or (request.framework == "tilert" and role.name != "decode"):
            continue
        try:
            draft = read_draft(view.recipe, role, engine, request.spec_decoding)
        except GoldenError as error:
            faults.extend(error.findings)
            continue
        if draft is not None:
            faults.extend(_scheduler_faults(draft))
            found.append(draft)
    if faults:
        raise GoldenError(_once(faults))
    return tuple(found) if found and found[0].role == generating.name else ()


def length_for(draft: Draft, request: AcceptanceRequest, curves: CurveBook) -> GoldenLength:
    """The golden length for a draft.

    Raises:
        GoldenError: there is none, or it is not the only one.
    """
    wanted = LookUp(
        model_prefix=request.model_prefix,
        method=draft.method,
        tokens=draft.tokens,
        draft_model=draft.model,
        draft_sampling=draft.sampling,
        thinking=request.thinking,
    )
    return curves.look_up(wanted, draft.span)


def _view(recipe: Recipe) -> RecipeView:
    try:
        return view_of(recipe)
    except ViewError as error:
        raise GoldenError([error.finding]) from None


def _engine_faults(view: RecipeView, generating: Role, framework: str) -> Iterator[Finding]:
    wanted, own = FRAMEWORKS.get(framework), engine_of(generating, framework)
    home = view.recipe.home()
    if wanted is None:
        from matrix.findings import did_you_mean

        message = f"nothing is known about forcing an acceptance length in the framework {framework}."
        yield Finding(rule="golden-engine", message=message, fix=did_you_mean(framework, FRAMEWORKS), span=home)
    elif own is not wanted:
        message = (
            f"the framework {framework} is {wanted}, and role {generating.name} of the recipe runs {generating.engine}."
        )
        yield Finding(rule="golden-engine", message=message, fix="make the two agree", span=home)


def _once(faults: list[Finding]) -> Iterable[Finding]:
    """Without repetitions: roles often share their arguments by an anchor, and one wrong line is one cause."""
    unique: dict[tuple[object, ...], Finding] = {}
    for fault in faults:
        # The message begins with "role NAME".
        unique.setdefault((fault.rule, fault.span, fault.message.split(" ", 2)[-1]), fault)
    return unique.values()


def _scheduler_faults(draft: Draft) -> Iterator[Finding]:
    if draft.scheduled is not None:
        message = (
            f"role {draft.role} has DSpark's confidence scheduler on. It cuts the verified length at run time, so ATOM"
            " refuses it beside a forced length."
        )
        fix = "drop confidence_schedule from dspark-config"
        yield Finding(rule="golden-scheduler", message=message, fix=fix, span=draft.scheduled)
