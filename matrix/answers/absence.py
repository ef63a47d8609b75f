"""Why a point is not selected: every verdict against it, in the order of the pipeline, and what would change each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.answers.declare import add_config, add_scenario
from matrix.answers.edit import Action, Edit
from matrix.answers.nearest import near_of
from matrix.answers.reshape import add_concurrency, add_entry, place_of
from matrix.answers.verdicts import Absence, Cause
from matrix.config.model import MAX_CONCURRENCY, is_config_key
from matrix.points.evals import EvalMode
from matrix.points.parts import differences, parts_of
from matrix.points.row import scenario_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matrix.answers.space import Space
    from matrix.config.source import Document
    from matrix.findings import Span
    from matrix.points.evals import EvalPolicy
    from matrix.points.parts import Parts
    from matrix.points.point import Deployment, Point
    from matrix.points.request import Filters
    from matrix.points.select import Selector

__all__ = ["absence_of", "eval_cause", "lower_words", "undeclared"]


def absence_of(name: str, space: Space, evals: Document | None = None) -> Absence:
    """What removes an id that is none of ``space.selected``. ``evals``: the eval policy's file, if there is one."""
    point = space.whole.get(name)
    if point is None and space.request.evals is EvalMode.ALL:
        point = space.all_evals.get(name)
    if point is not None:
        return Absence(name, tuple(_verdicts(point, space)))
    parts = parts_of(name)
    if parts is not None and parts.run:
        throughput = space.whole.get(parts.throughput)
        if throughput is not None:
            return Absence(name, (eval_cause(name, throughput, space, evals),))
    return undeclared(name, parts, space)


# -- what a request leaves out -----------------------------------------------------------------------------------------


def _verdicts(point: Point, space: Space) -> Iterator[Cause]:
    request, seen = space.request, False
    for selector in space.expansion.selectors:
        verdict = selector(point)
        if verdict.point is None or verdict.point.concs != point.concs:
            seen = True
            yield Cause(selector.rule, verdict.reason, None, (_widened(selector, point, request.filters),))
    for option, reason in _modes(point, space):
        seen = True
        yield Cause(option, reason, None, (Edit(Action.OPTION, old=option),))
    if not space.named(point.id):
        seen = True
        words = ",".join(request.ids)
        yield Cause("--ids", "the ids that are asked for do not name it", None,
                    (Edit(Action.OPTION, old=f"--ids {words}", new=f"--ids {words},{point.id}"),))  # fmt: skip
    if seen:
        return
    option = "--smoke" if request.smoke else "--trim-conc"
    if (request.trim or request.smoke) and (lower := space.lowest.of(point)) is not None:
        yield Cause(option, lower_words(lower), place_of(lower.deployment), (Edit(Action.OPTION, old=option),))
        return
    # What is left of a ladder has another median.
    scenario = point.deployment.scenario
    others = [one for one in space.selected.values() if one.eval_only and one.deployment.scenario is scenario]
    whole = (Edit(Action.OPTION, new="--all-evals"),) if point.id in space.all_evals else ()
    yield Cause("evals", f"of what these options leave {_picks(others)}", None, whole)


def _modes(point: Point, space: Space) -> Iterator[tuple[str, str]]:
    request = space.request
    if point.eval_only and request.evals is EvalMode.NONE:
        yield "--no-evals", "it leaves out every accuracy run"
    elif not point.eval_only and request.evals_only:
        option = "--all-evals" if request.evals is EvalMode.ALL else "--evals-only"
        yield option, "it lists accuracy runs alone, and this is a throughput run"


def _widened(selector: Selector, point: Point, filters: Filters) -> Edit:
    """The option with room for the point, or without it where it takes no value."""
    rule = selector.rule
    field = rule.removeprefix("--").replace("-", "_")
    value = getattr(filters, field)
    if value is True:
        return Edit(Action.OPTION, old=rule)
    deployment = point.deployment
    config = deployment.config
    mine = {
        "config_keys": config.key,
        "model_prefix": config.model_prefix,
        "precision": config.precision,
        "framework": config.framework,
        "runner_type": config.runner,
        "scenario_type": deployment.scenario.kind.value,
        "seq_lens": scenario_name(deployment.scenario),
        "conc": ",".join(map(str, point.concs)),
        "exp_names": point.exp_name,
        "min_conc": str(min(point.concs)),
        "max_conc": str(max(point.concs)),
    }.get(field)
    if mine is None:
        worker = deployment.entry.topology.workers[0]
        mine = str(worker.tp if field == "max_tp" else worker.ep)
    if isinstance(value, tuple):
        words = ",".join(map(str, value))
        return Edit(Action.OPTION, old=f"{rule} {words}", new=f"{rule} {words},{mine}")
    return Edit(Action.OPTION, old=f"{rule} {value}", new=f"{rule} {mine}")


def lower_words(lower: Point) -> str:
    """Why a trim removes a point, once it is known which one it kept."""
    return f"its family has a lower concurrency, {min(lower.concs)}, and a trim keeps the lowest alone"


# -- accuracy runs -----------------------------------------------------------------------------------------------------


def eval_cause(name: str, point: Point, space: Space, evals: Document | None = None) -> Cause:
    """Why the policy does not pick the accuracy run of a throughput point."""
    policy, deployment = space.workspace.policy, point.deployment
    if not policy.eligible(deployment):
        what = scenario_name(deployment.scenario)
        reason = f"{what} is not evaluated; {policy.isl}-{policy.osl} and agentic are"
        return Cause("evals", reason, *_sequence(point, policy, evals))
    if name not in space.all_evals:
        return Cause("evals", f"no accuracy run of the point has this id; {_names(point, space)}")
    whole = (Edit(Action.OPTION, new="--all-evals"),)
    if max(point.concs) < policy.minimum_concurrency and (deployment.multinode or not deployment.agentic):
        place = evals.of_value(evals.root, "minimum-concurrency") if evals is not None else None
        return Cause("evals", f"it is below minimum-concurrency {policy.minimum_concurrency}", place, whole)
    return Cause("evals", _picks(space.picks.get(id(deployment.scenario), [])), None, whole)


def _sequence(point: Point, policy: EvalPolicy, evals: Document | None) -> tuple[Span | None, tuple[Edit, ...]]:
    """Where the evaluated lengths are written, and the one edit that makes them the point's, where one is enough."""
    sequence = evals.root.get("sequence") if evals is not None else None
    if evals is None or sequence is None:
        return None, ()
    scenario = point.deployment.scenario
    wanted = {"isl": scenario.isl, "osl": scenario.osl}
    note = f"{policy.isl}-{policy.osl} is then not evaluated"
    edits = tuple(
        Edit(Action.WRITE, evals.of_value(sequence, key), evals.written(sequence.marks[key][1]), str(value), note)
        for key, value in wanted.items()
        if sequence.get(key) not in (None, value)
    )
    return evals.of_key(evals.root, "sequence"), edits if len(edits) == 1 else ()


def _names(point: Point, space: Space) -> str:
    """The accuracy runs that a point has."""
    found = [name for name, one in space.all_evals.items() if one.deployment.stem == point.deployment.stem
             and one.deployment.tail == point.deployment.tail]  # fmt: skip
    return f"it has {' and '.join(found)}" if found else "it has none"


def _picks(others: list[Point]) -> str:
    if not others:
        return "the policy picks none of its scenario"
    shown = ", ".join(other.id for other in others[:2]) + (f" and {len(others) - 2} more" if len(others) > 2 else "")
    return f"the policy picks other points of its scenario: {shown}"


# -- what was never declared -------------------------------------------------------------------------------------------


def undeclared(name: str, parts: Parts | None, space: Space) -> Absence:
    """An id that the search space does not make: what would make it, and the points that come nearest."""
    near = near_of(name, parts, space)
    if parts is None:
        shape = "<config-key>--<scenario>--<topology>--c<concurrency>[--<variant>][--eval]"
        return Absence(name, (Cause("id", f"this is not the shape of an id: {shape}"),), False, near)
    impossible = [conc for conc in parts.concs if not 0 < conc <= MAX_CONCURRENCY]
    if impossible:
        reason = f"a concurrency is 1 to {MAX_CONCURRENCY:,}, and not {_spaced(impossible)}"
        return Absence(name, (Cause("concurrency", reason),), False, near)
    deployments = list(space.deployments())
    mine = [one for one in deployments if one.config.key == parts.key]
    if not mine:
        configs = {config.key: config for config in space.workspace.configs}
        if parts.key in configs:
            return Absence(name, (Cause("config-key", f"{parts.key}: it has no point"),), False, near)
        models = [space.whole[one.id].deployment for one in near] if is_config_key(parts.key) else []
        edit = next((edit for model in models if (edit := add_config(model, parts)) is not None), None)
        reason = f"{parts.key}: no master has a config of this key"
        return Absence(name, (Cause("config-key", reason, None, (edit,) if edit else ()),), False, near)
    there = [one for one in mine if one.frame.scenario_name == parts.scenario]
    if not there:
        known = " and ".join(dict.fromkeys(one.frame.scenario_name for one in mine))
        place = mine[0].config.document.span(mine[0].config.mark)
        edit = add_scenario(min(mine, key=lambda one: _distance(parts, one)), parts)
        reason = f"the config has {known}, and not {parts.scenario}"
        return Absence(name, (Cause("scenario", reason, place, (edit,) if edit else ()),), False, near)
    same = [one for one in there if (one.stem, one.tail) == (parts.stem, parts.tail)]
    step = space.request.step
    for one in same:
        ladder = list(one.entry.ladder(step))
        place = place_of(one)
        if one.multinode and set(parts.concs) < set(ladder):
            whole = " ".join(map(str, ladder))
            reason = f"one job runs concurrency {whole}; a filter makes a job of {_spaced(parts.concs)} alone"
            words = ",".join(map(str, parts.concs))
            return Absence(name, (Cause("allocation", reason, place, (Edit(Action.OPTION, new=f"--conc {words}"),)),),
                           False, near)  # fmt: skip
        reason = f"the entry runs concurrency {_spaced(ladder)}, and not {_spaced(parts.concs)}"
        edit = add_concurrency(one, parts.concs, step) or add_entry(one, parts)
        return Absence(name, (Cause("concurrency", reason, place, (edit,) if edit else ()),), False, near)
    model = min(there, key=lambda one: _distance(parts, one))
    edit = add_entry(model, parts)
    variant = f" and variant {parts.variant}" if parts.variant else ""
    reason = f"no entry has topology {parts.topology}{variant}"
    return Absence(name, (Cause("entry", reason, place_of(model), (edit,) if edit else ()),), False, near)


def _spaced(concs: Iterable[int]) -> str:
    return " ".join(map(str, concs))


def _distance(parts: Parts, deployment: Deployment) -> int:
    other = parts_of(f"{deployment.stem}{parts.concs[0]}{deployment.tail}")
    return len(differences(parts, other)) if other is not None else 99
