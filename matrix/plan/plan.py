"""`Plan`: what one change runs, what it does not and why, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from matrix.changelog.keys import named_by
from matrix.checks.changed import changed_configs
from matrix.checks.changelog import check_coverage, check_entries
from matrix.config.model import Aggregated, Disaggregated
from matrix.findings import Finding, Severity, errors_of
from matrix.plan.append import Delta, delta_of
from matrix.plan.checked import faults_of, with_checks
from matrix.plan.claims import Options, claims
from matrix.points.evals import EvalMode, trim
from matrix.points.pipeline import expand
from matrix.points.request import Filters, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matrix.changelog.entries import Entry, Log
    from matrix.changelog.rules import Verdict
    from matrix.checks.changelog import Waiver
    from matrix.config.model import Config
    from matrix.plan.claims import Claim
    from matrix.plan.history import Revision
    from matrix.points.point import Point
    from matrix.workspace import Workspace

__all__ = ["Cost", "LeftOut", "Plan", "plan_change"]

_KEPT_WARNINGS = frozenset({"hardware-missing", "git-behind"})
"""What stays a warning where every point is about to be run; the rest of expand's warnings is refused."""


class LeftOut(NamedTuple):
    """Something that was looked at and is not run: a point's id, or a config's scenario; by which rule, and why."""

    what: str
    rule: str
    reason: str


class Cost(NamedTuple):
    """What the points add up to. GPU-hours count the points whose duration is known; ``untimed`` the others."""

    jobs: int = 0
    nodes: int = 0
    gpu_hours: float = 0.0
    untimed: int = 0


class Plan(NamedTuple):
    """The jobs of one change, throughput first. ``reason`` says why there are none."""

    points: tuple[Point, ...] = ()
    entries: tuple[Entry, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    reason: str = ""
    base: Revision | None = None
    head: Revision | None = None

    @property
    def cost(self) -> Cost:
        """What running all of it takes."""
        cost = Cost()
        for point in self.points:
            seconds = point.seconds
            hours = 0.0 if seconds is None else point.deployment.gpus * seconds / 3600
            nodes = cost.nodes + (point.deployment.nodes or 1)
            cost = Cost(cost.jobs + 1, nodes, cost.gpu_hours + hours, cost.untimed + (seconds is None))
        return cost


def plan_change(
    verdict: Verdict,
    head: Workspace,
    base: Workspace | None,
    options: Options = Options(),  # noqa: B008 - immutable
    waivers: Sequence[Waiver] = (),
    same_recipe: Callable[[str], bool] | None = None,
) -> tuple[Plan, tuple[Finding, ...]]:
    """The plan of a change whose log was judged, and what refuses it besides bytes.

    ``same_recipe`` tells by its path whether a recipe file is the same in both revisions, where that is known.
    """
    entries, log = verdict.additions, verdict.log
    before = [config.key for config in base.configs] if base else []
    findings: list[Finding] = []
    if log is not None and entries:
        findings += check_entries(entries, log, head.configs, before)
    changed = changed_configs(head, base, same_recipe) if base else {}
    findings += check_coverage(entries, head.configs, changed, waivers)
    if log is None or not entries:
        corrected = len(verdict.corrections)
        links = "1 link" if corrected == 1 else f"{corrected} links"
        reason = f"{links} corrected, nothing to run" if corrected else "no entry was added"
        return Plan(reason=reason), tuple(findings)
    delta = None
    appending = [entry for entry in entries if entry.append_only]
    if appending and len(appending) == len(entries):
        if options.all_evals or options.evals_only:
            message = "an append-only change runs throughput alone, and accuracy runs were asked for."
            place = log.span(appending[0], "append-only")
            fix = "remove append-only from the entry, or the request for accuracy runs"
            findings.append(Finding(rule="append-only-evals", message=message, fix=fix, span=place))
        if named := _named(appending, head.configs):
            delta = delta_of(appending, log, head, base, named)
            findings += delta.findings
    findings += _conflicting(entries, verdict, options)
    checked = faults_of(_named(entries, head.configs), head)
    if errors_of(findings):
        return Plan(entries=entries), (*findings, *checked)
    planner = _Planner(head, options, delta)
    for claim in claims(entries, head.configs, options):
        planner.serve(claim)
    findings += with_checks(planner.findings, checked)
    if not errors_of(findings):
        findings += _idle(planner, log)
    return planner.plan(entries), tuple(findings)


def _named(entries: Iterable[Entry], configs: Sequence[Config]) -> list[Config]:
    """The configs that the entries name, in the order in which they do."""
    by_key = {config.key: config for config in configs}
    return [by_key[key] for key in dict.fromkeys(key for entry in entries for key in named_by(entry, by_key))]


def _conflicting(entries: Sequence[Entry], verdict: Verdict, options: Options) -> Iterator[Finding]:
    """``no-evals`` of an entry against a plan of accuracy runs."""
    for entry in entries:
        if entry.no_evals and (options.all_evals or options.evals_only) and verdict.log is not None:
            asked = "all-evals" if options.all_evals else "evals-only"
            message = f"entry {entry.number} has no-evals, and the plan was asked for {asked}."
            fix = "remove one of the two"
            place = verdict.log.span(entry, "no-evals")
            yield Finding(rule="changelog-exclusive", message=message, fix=fix, span=place)


def _idle(planner: _Planner, log: Log) -> Iterator[Finding]:
    """Entries that run nothing although nobody runs it for them; what a whole plan leaves out is not their fault."""
    if planner.options.evals_only:
        return
    for entry, count in planner.served.items():
        if not count:
            why = "; ".join(dict.fromkeys(one.reason for one in planner.left_out if one.rule == "eval-min-prefill-ep"))
            what = f"none of its points is left ({why})" if why else "none of its points is one that it asks for"
            message = f"entry {entry} runs nothing: {what}."
            fix = "see what `matrix expand --evals-only` marks for its configs, and change the fields that choose"
            (found,) = (one for one in log.entries if one.number == entry)
            yield Finding(rule="changelog-empty", message=message, fix=fix, span=log.span(found, "config-keys"))


class _Planner:
    def __init__(self, workspace: Workspace, options: Options, delta: Delta | None) -> None:
        self.workspace = workspace
        self.options = options
        self.delta = delta
        self.throughput: list[Point] = []
        self.accuracy: list[Point] = []
        self.left_out: list[LeftOut] = []
        self.findings: list[Finding] = []
        self.told: set[Finding] = set()
        self.served: dict[int, int] = {}

    def serve(self, claim: Claim) -> None:
        """Expand what a claim was granted, or write down why it was not."""
        runs = "throughput" if claim.evals is EvalMode.NONE else "accuracy"
        if not claim.granted:
            for config in claim.configs:
                held = {scenario.kind for scenario in config.scenarios}
                for kind in (kind for kind in claim.kinds if kind in held):
                    self.left_out.append(LeftOut(f"{config.key} {kind.value} {runs}", "claim", claim.reason))
            return
        points = self.expand(claim)
        if claim.evals is EvalMode.NONE:
            points = list(self.added(points)) if self.delta else points
            self.throughput += points
        else:
            points = list(self.with_prefill_ep(points, claim.entry.eval_min_prefill_ep))
            self.accuracy += points
        number = claim.entry.number
        self.served[number] = self.served.get(number, 0) + len(points)

    def expand(self, claim: Claim) -> list[Point]:
        filters = Filters(scenario_type=tuple(kind.value for kind in claim.kinds))
        request = Request(filters=filters, evals=claim.evals, evals_only=claim.evals is not EvalMode.NONE)
        found = expand(claim.configs, self.workspace.facts, self.workspace.policy, request)
        points = list(found.points)
        for finding in found.findings:
            severe = finding.rule not in _KEPT_WARNINGS
            told = finding._replace(severity=Severity.ERROR) if severe else finding
            if told not in self.told:
                self.told.add(told)
                self.findings.append(told)
        return points

    def added(self, points: list[Point]) -> Iterator[Point]:
        assert self.delta is not None  # noqa: S101 - asked for by the caller
        fresh = list(self.delta.take(points))
        kept = {(point.deployment.texts.canonical, conc) for point in fresh for conc in point.concs}
        for point in points:
            old = [conc for conc in point.concs if (point.deployment.texts.canonical, conc) not in kept]
            if old:
                name = point._replace(concs=tuple(old)).id
                self.left_out.append(LeftOut(name, "append-only", "the base has it"))
        yield from fresh

    def with_prefill_ep(self, points: list[Point], least: int | None) -> Iterator[Point]:
        for point in points:
            ep = _prefill_ep(point)
            if least is None or ep is None or ep >= least:
                yield point
            else:
                self.left_out.append(LeftOut(point.id, "eval-min-prefill-ep", f"prefill ep {ep} is below {least}"))

    def plan(self, entries: tuple[Entry, ...]) -> Plan:
        throughput = self.throughput
        if self.options.trim:
            throughput = list(trim(self.throughput))
            self.left_out += self.trimmed(throughput)
        points = (*throughput, *self.accuracy)
        reason = "" if points else "no point is left: see what was left out and why"
        return Plan(points, entries, tuple(self.left_out), reason)

    def trimmed(self, kept: Iterable[Point]) -> Iterator[LeftOut]:
        left = {(id(point.deployment), conc) for point in kept for conc in point.concs}
        for point in self.throughput:
            gone = tuple(conc for conc in point.concs if (id(point.deployment), conc) not in left)
            if gone:
                yield LeftOut(point._replace(concs=gone).id, "trim-conc", "its family has a lower concurrency")


def _prefill_ep(point: Point) -> int | None:
    """The prefill side's ep of a multi-node point; None for a single-node one, which is always kept."""
    topology = point.deployment.entry.topology
    if isinstance(topology, Disaggregated):
        return topology.prefill.ep
    return topology.worker.ep if isinstance(topology, Aggregated) else None
