"""An append-only change: what it adds to existing curves, and the proof that nothing old moved.

Source of the rules: InferenceX's planner. A curve is what a chart draws as one line; an addition joins one that is
there already, with the one image that all of it was measured with.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from matrix.checks.changed import points_of
from matrix.findings import Finding, Related

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matrix.changelog.entries import Entry, Log
    from matrix.config.model import Config, ScenarioKind
    from matrix.points.point import Deployment, Point
    from matrix.workspace import Workspace

__all__ = ["Delta", "delta_of"]


class Delta(NamedTuple):
    """The concurrencies that are new, by row without concurrency; and what refuses the change."""

    new: dict[str, frozenset[int]]
    findings: tuple[Finding, ...]

    def take(self, points: Iterable[Point]) -> Iterator[Point]:
        """Of some points of the head what is new, in their order."""
        for point in points:
            fresh = self.new.get(point.deployment.texts.canonical, frozenset())
            concs = tuple(conc for conc in point.concs if conc in fresh)
            if concs:
                yield point._replace(concs=concs)


class _Curve(NamedTuple):
    """One row without its concurrency: where it stands, and the digest of each concurrency."""

    deployment: Deployment
    digests: dict[int, str]


def delta_of(
    entries: Sequence[Entry], log: Log, head: Workspace, base: Workspace | None, named: Sequence[Config]
) -> Delta:
    """Compare the ``named`` configs of both revisions within the scenarios of the append-only ``entries``."""
    kinds = {kind for entry in entries for kind in entry.scenario_types}
    before = {config.key: config for config in base.configs} if base else {}
    place = log.span(entries[0], "append-only")
    missing = [config.key for config in named if config.key not in before]
    if base is None or missing:
        message = f"append-only adds to what the base has, and the base has no config {', '.join(missing)}."
        return Delta({}, (Finding(rule="append-only-base", message=message, fix="remove append-only", span=place),))
    findings: list[Finding] = []
    scoped = []
    for config in named:
        outside = list(_outside(config, before[config.key], kinds))
        findings += outside
        # What moved there is told already, and would be told again of every row.
        scoped += [] if outside else [config]
    chosen = set(kinds)
    old = _curves(points_of(base, [before[config.key] for config in scoped]), chosen)
    new = _curves(points_of(head, scoped), chosen)
    findings += _moved(old, new)
    if not old and not findings:
        message = "append-only adds to an existing curve, and the selected configs have none in the base."
        findings.append(Finding(rule="append-only-base", message=message, fix="remove append-only", span=place))
    added = {
        key: frozenset(curve.digests) - frozenset(old[key].digests if key in old else ()) for key, curve in new.items()
    }
    added = {key: concs for key, concs in added.items() if concs}
    if not findings and not added:
        message = f"{', '.join(config.key for config in named)}: append-only, and no point was added."
        fix = "add concurrencies or topologies to the config, or remove the entry"
        findings.append(Finding(rule="append-only-empty", message=message, fix=fix, span=place))
    if not findings:
        findings += _strangers(old, {key: new[key].deployment for key in added})
    return Delta(added, tuple(findings))


def _curves(points: Iterable[Point], kinds: set[Any]) -> dict[str, _Curve]:
    curves: dict[str, _Curve] = {}
    for point in points:
        deployment = point.deployment
        if deployment.scenario.kind.value not in kinds:
            continue
        curve = curves.setdefault(deployment.texts.canonical, _Curve(deployment, {}))
        for conc in point.concs:
            curve.digests[conc] = point._replace(concs=(conc,)).digest
    return curves


def _outside(config: Config, before: Config, kinds: set[Any]) -> Iterator[Finding]:
    """What an entry for one scenario may not touch: the other one, and what both share."""
    span = config.document.span(config.mark)
    held, was = ({scenario.kind for scenario in one.scenarios} for one in (config, before))
    if held != was:
        message = f"{config.key}: append-only, and the scenarios changed from {_listed(was)} to {_listed(held)}."
        yield Finding(rule="append-only-scope", message=message, fix="keep the scenarios of the base", span=span)
        return
    left_out = [kind for kind in held if kind.value not in kinds]
    if not left_out:
        return
    shared = [
        key for key in config.node | before.node if key != "scenarios" and config.node.get(key) != before.node.get(key)
    ]
    if shared:
        message = f"{config.key}: {', '.join(shared)} changed, which the scenario outside this entry has too."
        fix = "keep it, or leave scenario-type out of the entry"
        yield Finding(
            rule="append-only-scope", message=message, fix=fix, span=config.document.of_key(config.node, shared[0])
        )
    for kind in left_out:
        if config.node["scenarios"][kind.value] != before.node["scenarios"][kind.value]:
            message = f"{config.key}: its {kind.value} points changed, and the entry does not select them."
            fix = "keep them, or leave scenario-type out of the entry"
            yield Finding(rule="append-only-scope", message=message, fix=fix, span=span)


def _moved(old: dict[str, _Curve], new: dict[str, _Curve]) -> Iterator[Finding]:
    """Old rows that are gone or changed, old concurrencies that are gone, old points with another recipe."""
    told: set[tuple[str, str]] = set()
    for key, curve in old.items():
        key_of = curve.deployment.config.key
        found = new.get(key)
        if found is None:
            finding = _changed_row(curve, new)
            # One edit of a field that the whole config shares changes every row of it.
            if (what := (key_of, finding.message.partition(": ")[2])) not in told:
                told.add(what)
                yield finding
            continue
        place = _place(found.deployment)
        lost = sorted(conc for conc in curve.digests if conc not in found.digests)
        if lost:
            message = f"{key_of}: append-only may remove nothing, and concurrency {_listed(lost)} is gone."
            related = (Related(_place(curve.deployment), "the entry in the base"),)
            fix = f"put {_listed(lost)} back"
            yield Finding(rule="append-only-removed", message=message, fix=fix, span=place, related=related)
        moved = sorted(conc for conc, digest in curve.digests.items() if found.digests.get(conc, digest) != digest)
        if moved:
            message = f"{key_of}: append-only may change nothing, and the recipe of concurrency {_listed(moved)} did."
            fix = "give the new points a recipe variant of their own"
            yield Finding(rule="append-only-changed", message=message, fix=fix, span=place)


def _changed_row(curve: _Curve, new: dict[str, _Curve]) -> Finding:
    """The row that took a lost one's place is the one that shares most fields with it."""
    was = curve.deployment
    row = _fields(was)
    candidates = [other.deployment for other in new.values() if other.deployment.config.key == was.config.key]
    nearest = max(candidates, key=lambda one: _shared(row, _fields(one)), default=None)
    label = f"{was.config.key} {was.topology}"
    if nearest is None:
        message = f"{label}: append-only may remove nothing, and all its points are gone."
        span = _place(was)
        return Finding(rule="append-only-removed", message=message, fix="put the entry back", span=span)
    now = _fields(nearest)
    fields = [name for name in row | now if row.get(name) != now.get(name)]
    told = "; ".join(f"{name} changed from {row.get(name)} to {now.get(name)}" for name in fields[:3])
    message = f"{label}: append-only may change nothing, and {told}."
    related = (Related(_place(was), "the entry in the base"),)
    fix = f"restore {', '.join(fields[:3])}"
    return Finding(rule="append-only-changed", message=message, fix=fix, span=_place(nearest), related=related)


def _fields(deployment: Deployment) -> dict[str, Any]:
    """What makes a curve: the row without what a single point has of its own."""
    fields: dict[str, Any] = json.loads(deployment.texts.canonical)
    return fields


def _shared(one: dict[str, Any], other: dict[str, Any]) -> int:
    return sum(other.get(name) == value for name, value in one.items())


def _strangers(old: dict[str, _Curve], added: dict[str, Deployment]) -> Iterator[Finding]:
    """Additions that join no curve of the base, or one that was measured with other images."""
    images: dict[Any, set[str]] = {}
    for curve in old.values():
        images.setdefault(_series(curve.deployment), set()).add(curve.deployment.config.image)
    for deployment in added.values():
        known = images.get(_series(deployment), set())
        image = deployment.config.image
        if known == {image}:
            continue
        label = f"{deployment.config.key} {deployment.topology}"
        if not known:
            message = f"{label}: it joins no curve of the base, and append-only starts none."
        else:
            message = f"{label}: its image is {image}, and the curve that it joins has {_listed(known)}."
        fix = "remove append-only from the entry, so that the whole curve runs"
        yield Finding(rule="append-only-curve", message=message, fix=fix, span=_place(deployment))


def _series(deployment: Deployment) -> tuple[Any, ...]:
    """What a chart draws as one line."""
    config, scenario, entry = deployment.config, deployment.scenario, deployment.entry
    row = _fields(deployment)
    hardware = tuple(row.get(role, {}).get("hardware") for role in ("prefill", "decode"))
    spec = None if deployment.agentic else entry.spec_decoding
    what = (config.model, config.model_prefix, config.precision, config.framework, deployment.runner, config.disagg)
    return (*what, scenario.kind, scenario.isl, scenario.osl, entry.offload.mode != "none", spec, hardware)


def _place(deployment: Deployment) -> Any:
    return deployment.config.document.span(deployment.entry.node.mark)


def _listed(values: Iterable[ScenarioKind | int | str]) -> str:
    return ", ".join(sorted(map(str, values), key=lambda text: (len(text), text))) or "none"
