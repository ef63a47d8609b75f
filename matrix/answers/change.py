"""Why a point is in the plan of a change, or is not: refs, entries, labels, what the base has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from matrix.answers.absence import eval_cause, lower_words, undeclared
from matrix.answers.edit import Action, Edit
from matrix.answers.presence import declared_at
from matrix.answers.reshape import place_of, remove_point
from matrix.answers.space import Lowest
from matrix.answers.verdicts import Absence, Cause, Fact, Presence
from matrix.changelog.keys import named_by
from matrix.findings import Span, errors_of
from matrix.plan.claims import claims
from matrix.plan.labels import Effect
from matrix.points.evals import EvalMode
from matrix.points.parts import parts_of
from matrix.points.provenance import sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.answers.space import Space
    from matrix.changelog.entries import Entry
    from matrix.config.source import Document
    from matrix.findings import Finding
    from matrix.plan.claims import Claim, Options
    from matrix.plan.labels import Mode, Registry
    from matrix.plan.plan import LeftOut, Plan
    from matrix.points.point import Point

__all__ = ["Change", "absent_from_change", "present_in_change"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """A change that was planned.

    ``log`` are the bytes of the head's changelog, ``log_name`` its name. ``head`` and ``base`` are all points of both
    revisions, ``mode`` is that of the labels that were asked about, ``evals`` the file of the eval policy.
    """

    plan: Plan
    findings: tuple[Finding, ...]
    entries: tuple[Entry, ...]
    options: Options
    log: bytes
    log_name: str
    head: Space
    base: Space | None = None
    registry: Registry | None = None
    mode: Mode | None = None
    evals: Document | None = None

    @cached_property
    def points(self) -> dict[str, Point]:
        """What is planned, by id; nothing where the change is refused."""
        return {} if errors_of(self.findings) else {point.id: point for point in self.plan.points}

    @cached_property
    def lowest(self) -> Lowest:
        """Of what is planned the lowest of each family."""
        return Lowest(self.plan.points)

    @cached_property
    def left_out(self) -> dict[tuple[str, str, bool], list[tuple[frozenset[int], LeftOut]]]:
        """What was left out, by an id without its concurrencies and whether it is an accuracy run."""
        found: dict[tuple[str, str, bool], list[tuple[frozenset[int], LeftOut]]] = {}
        for one in self.plan.left_out:
            if (parts := parts_of(one.what)) is not None:
                key = (parts.stem, parts.tail, bool(parts.run))
                found.setdefault(key, []).append((frozenset(parts.concs), one))
        return found

    @cached_property
    def claims(self) -> dict[str, list[Claim]]:
        """What the entries claim, by config key."""
        found: dict[str, list[Claim]] = {}
        for claim in claims(self.entries, self.head.workspace.configs, self.options):
            for config in claim.configs:
                found.setdefault(config.key, []).append(claim)
        return found


def present_in_change(name: str, change: Change) -> Presence | None:
    """The point with an id in the plan; None where it is not in it."""
    point = change.points.get(name)
    if point is None:
        return None
    space = change.head
    return Presence(
        name,
        point.row(),
        point,
        sources(point, space.workspace.facts.fleet),
        tuple(declared_at(point)),
        tuple(_kept(point, change)),
        (),
        remove_point(point, 2),
    )


def _kept(point: Point, change: Change) -> Iterator[Fact]:
    kind = point.deployment.scenario.kind
    run = EvalMode.NONE if not point.eval_only else None
    for claim in change.claims.get(point.deployment.config.key, ()):
        mine = claim.granted and kind in claim.kinds and (claim.evals is run or (run is None and claim.evals))
        if mine and (claim.evals is EvalMode.NONE) == (not point.eval_only):
            entry = claim.entry
            yield Fact("changelog", f"entry {entry.number} asks for it: {entry.pr_link}", _at(entry, change))
            if entry.append_only:
                yield Fact("append-only", "the base has not got it")
            if point.eval_only:
                every = claim.evals is EvalMode.ALL
                yield Fact("evals", "every eligible point is evaluated" if every else "the policy picks it")
            break
    if change.mode is not None:
        mode = change.mode
        trimmed = "; it has the lowest concurrency of its family" if mode.trim and not point.eval_only else ""
        yield Fact("label", f"{mode.label} runs it{trimmed}")


def absent_from_change(name: str, change: Change) -> Absence:
    """What keeps an id out of the plan, the first cause first."""
    parts = parts_of(name)
    point = change.head.whole.get(name) or change.head.all_evals.get(name)
    if point is None:
        answer = undeclared(name, parts, change.head)
        before = change.base.whole.get(name) if change.base is not None else None
        if before is None:
            return answer
        edits = tuple(edit for cause in answer.causes for edit in cause.edits)
        cause = Cause("removed", "the base has it, and this change removed it", place_of(before.deployment), edits)
        return Absence(name, (cause,))
    return Absence(name, tuple(_causes(point, change)))


def _causes(point: Point, change: Change) -> Iterator[Cause]:
    """The first cause; a change that is refused, or all of whose entries are append-only, has more than one."""
    deployment = point.deployment
    config, kind = deployment.config, deployment.scenario.kind
    naming = [entry for entry in change.entries if named_by(entry, (config.key,))]
    if not naming:
        said = f"no new entry names {config.key}" if change.entries else "the change adds no entry to the log"
        place = config.document.span(config.mark)
        yield Cause("changelog", said, place, (_new_entry(config.key, change),))
        return
    if refused := errors_of(change.findings):
        for finding in refused:
            fix = f" fix: {finding.fix}" if finding.fix else ""
            yield Cause("refused", f"{finding.rule}: {finding.message}{fix}", finding.span)
        return
    in_scope = [entry for entry in naming if kind.value in entry.scenario_types]
    if not in_scope:
        entry = naming[0]
        reason = f"entry {entry.number} is for {' and '.join(entry.scenario_types)} alone"
        yield _of_field(entry, "scenario-type", reason, change)
        return
    unclaimed = _unclaimed(point, change)
    if unclaimed is not None:
        yield unclaimed
        return
    entry = next((claim.entry for claim in _claims(point, change) if claim.granted), in_scope[0])
    cause = _left_out(point, change, entry)
    if cause.rule != "append-only":
        yield cause
        return
    # One of them beside an entry that is not is refused. The last first: so the lines of the others stay.
    for one in sorted(change.entries, key=lambda one: -one.line):
        reason = f"entry {one.number} is append-only, and so is every entry of this change"
        yield cause if one is entry else _of_field(one, "append-only", reason, change)


def _claims(point: Point, change: Change) -> list[Claim]:
    """Those for the point's config, scenario and kind of run."""
    kind = point.deployment.scenario.kind
    return [
        claim
        for claim in change.claims.get(point.deployment.config.key, ())
        if kind in claim.kinds and (claim.evals is EvalMode.NONE) != point.eval_only
    ]


def _of_field(entry: Entry, field: str, reason: str, change: Change) -> Cause:
    """A field of an entry as the cause, cured by taking it out."""
    return Cause(field, reason, _field_place(entry, field, change), (_without_field(entry, field, change),))


def _unclaimed(point: Point, change: Change) -> Cause | None:
    """The reason where no claim for the point's kind of run was granted."""
    mine = _claims(point, change)
    if not mine or any(claim.granted for claim in mine):
        return None
    claim = mine[0]
    entry, field = claim.entry, claim.reason.partition(":")[0].partition(" ")[0]
    if field in entry.node:
        return _of_field(entry, field, f"entry {entry.number}: {claim.reason}", change)
    return Cause(field, claim.reason, None, (Edit(Action.LABEL, old=_modifier(change, Effect.EVALS_ONLY)),))


def _left_out(point: Point, change: Change, entry: Entry) -> Cause:
    """What the planner wrote down, or the eval policy."""
    deployment = point.deployment
    for concs, one in change.left_out.get((deployment.stem, deployment.tail, point.eval_only), ()):
        if not concs & set(point.concs):
            continue
        match one.rule:
            case "trim-conc":
                lower = change.lowest.of(point)
                label = change.mode.label if change.mode is not None else ""
                reason = f"{f'{label}: ' if label else ''}{lower_words(lower) if lower else one.reason}"
                edit = Edit(Action.LABEL, old=label, new=_whole(change))
                return Cause(one.rule, reason, place_of(lower.deployment) if lower else None, (edit,))
            case "append-only" | "eval-min-prefill-ep":
                return _of_field(entry, one.rule, f"entry {entry.number}: {one.reason}", change)
            case _:
                return Cause(one.rule, one.reason)
    throughput = change.head.whole.get(parts.throughput) if (parts := parts_of(point.id)) is not None else None
    cause = eval_cause(point.id, throughput or point, change.head, change.evals)
    if cause.edits and cause.edits[0].action is Action.OPTION:
        label = _modifier(change, Effect.ALL_EVALS)
        note = "the entry then runs accuracy alone"
        line = Edit(Action.ADD, Span(change.log_name, _last_line(entry, change)), "", "  all-evals: true\n", note)
        cause = cause._replace(edits=(*((Edit(Action.LABEL, new=label),) if label else ()), line))
    return cause


# -- labels ------------------------------------------------------------------------------------------------------------


def _modifier(change: Change, effect: Effect) -> str:
    found = change.registry.modifiers.values() if change.registry is not None else ()
    return next((label.name for label in found if label.effect is effect), "")


def _whole(change: Change) -> str:
    """The first label that trims nothing."""
    found = change.registry.primaries.values() if change.registry is not None else ()
    return next((label.name for label in found if not label.trim), "")


# -- lines of the log --------------------------------------------------------------------------------------------------


def _new_entry(key: str, change: Change) -> Edit:
    log = change.log
    lines = log.count(b"\n") + bool(log and not log.endswith(b"\n"))
    blank = "\n" if log.strip() and not log.endswith(b"\n\n") else ""
    text = f'{blank}- config-keys:\n    - {key}\n  description:\n    - "Run {key}."\n  pr-link: XXX\n'
    return Edit(Action.ADD, Span(change.log_name, lines), "", text, "say in the description what changed")


def _at(entry: Entry, change: Change) -> Span:
    return Span(change.log_name, entry.line, 1)


def _last_line(entry: Entry, change: Change) -> int:
    return entry.line + change.log[entry.start : entry.end].rstrip(b"\n").count(b"\n")


def _field(entry: Entry, field: str, change: Change) -> tuple[int, str]:
    """The line where a field of an entry begins, and all its lines."""
    lines = change.log[entry.start : entry.end].decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines):
        if line.startswith(f"  {field}:"):
            end = number + 1
            while end < len(lines) and lines[end].startswith("   "):
                end += 1
            return entry.line + number, "".join(f"{text}\n" for text in lines[number:end])
    return entry.line, ""


def _field_place(entry: Entry, field: str, change: Change) -> Span:
    return Span(change.log_name, _field(entry, field, change)[0], 3)


def _without_field(entry: Entry, field: str, change: Change) -> Edit:
    line, text = _field(entry, field, change)
    return Edit(Action.REMOVE, Span(change.log_name, line, 1), text)
