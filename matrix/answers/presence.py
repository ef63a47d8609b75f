"""Why a point is there: where it is declared, what let it pass, and what each label would do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.answers.absence import lower_words
from matrix.answers.reshape import place_of, remove_point
from matrix.answers.space import Lowest
from matrix.answers.verdicts import Fact, Presence
from matrix.changelog.keys import pattern_matches
from matrix.points.evals import EvalMode, trim
from matrix.points.provenance import sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matrix.answers.space import Space
    from matrix.changelog.entries import Log
    from matrix.findings import Finding
    from matrix.plan.labels import Registry
    from matrix.points.point import Point

__all__ = ["declared_at", "labels_on", "named_in", "presence_of"]


def presence_of(point: Point, space: Space, log: Log | None = None, registry: Registry | None = None) -> Presence:
    """A selected point of a search space. ``log`` is its changelog, ``registry`` its labels, where it has them."""
    declared = (
        *declared_at(point, space.findings),
        *(_swept(point, log) if log is not None else ()),
    )
    return Presence(
        point.id,
        point.row(),
        point,
        sources(point, space.workspace.facts.fleet),
        declared,
        tuple(_kept(point, space)),
        tuple(labels_on(point, space, registry)) if registry is not None else (),
        remove_point(point, space.request.step),
    )


def declared_at(point: Point, findings: Iterable[Finding] = ()) -> Iterator[Fact]:
    """Config and entry of a point, and what else declares it, as the findings of its expansion tell."""
    deployment = point.deployment
    config, scenario = deployment.config, deployment.scenario
    yield Fact("config", config.key, config.document.span(config.mark))
    number = next(i for i, entry in enumerate(scenario.entries, 1) if entry is deployment.entry)
    of = f"entry {number} of {len(scenario.entries)}, {deployment.frame.scenario_name}"
    yield Fact("entry", of, place_of(deployment))
    for finding in findings:
        if finding.rule == "point-duplicate" and finding.message.startswith(f"{point.id} "):
            yield Fact("duplicate", "declared again, and one job runs", finding.span)


def named_in(key: str, kind: str, log: Log) -> Iterator[Fact]:
    """The entries of a changelog that name a config and this kind of scenario, the newest first."""
    for entry in reversed(log.entries):
        if kind in entry.scenario_types and any(pattern_matches(pattern, key) for pattern in entry.config_keys):
            number = next(i for i, pattern in enumerate(entry.config_keys) if pattern_matches(pattern, key))
            keys = entry.node["config-keys"]
            place = log.document.of_value(keys, number) if log.document is not None else None
            yield Fact("changelog", f"entry {entry.number} names it: {entry.pr_link}", place)


def _swept(point: Point, log: Log) -> tuple[Fact, ...]:
    deployment = point.deployment
    found = list(named_in(deployment.config.key, deployment.scenario.kind.value, log))
    if not found:
        return (Fact("changelog", "no entry names the config: nothing sweeps it yet"),)
    earlier = len(found) - 1
    more = f" (and {earlier} earlier)" if earlier else ""
    return (found[0]._replace(text=f"{found[0].text}{more}"),)


def _kept(point: Point, space: Space) -> Iterator[Fact]:
    request = space.request
    for selector in space.expansion.selectors:
        yield Fact(selector.rule, "keeps it" if selector.looks_at(point) else "does not look at points of its kind")
    if point.eval_only:
        yield Fact("evals", "the policy picks it")
    elif point.run_eval:
        yield Fact("evals", f"picked: its accuracy is measured by …{_end(point)}")
    elif request.evals is not EvalMode.NONE:
        yield Fact("evals", "no accuracy run is picked for it")
    if request.trim or request.smoke:
        yield Fact("--smoke" if request.smoke else "--trim-conc", "it has the lowest concurrency of its family")


def labels_on(point: Point, space: Space, registry: Registry) -> Iterator[Fact]:
    """What each primary label would do with a point, if its config were swept together with the whole search space."""
    throughput = [one for one in space.whole.values() if not one.eval_only]
    trimmed: Sequence[Point] | None = None
    for label in registry.primaries.values():
        if point.eval_only or not label.trim:
            yield Fact(label.name, "runs it")
            continue
        if trimmed is None:
            family = point.deployment.family
            trimmed = list(trim([one for one in throughput if one.deployment.family == family]))
        kept = {one.id for one in trimmed}
        lower = Lowest(trimmed).of(point)
        if point.id in kept:
            yield Fact(label.name, "runs it: it has the lowest concurrency of its family")
        elif lower is not None and lower.deployment is point.deployment and len(point.concs) > 1:
            yield Fact(label.name, f"runs {lower.id} of it")
        else:
            yield Fact(label.name, f"leaves it out: {lower_words(lower) if lower else 'it is trimmed'}")


def _end(point: Point) -> str:
    """How the id of its accuracy run goes on."""
    return point._replace(eval_only=True).id.removeprefix(point.id.removesuffix(point.deployment.node_end))
