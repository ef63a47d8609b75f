"""Which points are evaluated for accuracy, and the trim to the lowest concurrency.

The policy is data (``configs/evals.yaml``): the least concurrency that is evaluated, the sequence length that is, the
default suite and the suites of single models. Source of the rules: InferenceX's eval selection and trim, except that a
family is all points of one recipe file (they differ in its selector alone), that agentic picks are made per topology,
and that evals never push each other out (point ids are unique).
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from matrix.config.model import SingleNode
from matrix.points.point import Evaluation, Point
from matrix.record import Record

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from matrix.config.source import Document
    from matrix.points.expand import Selection
    from matrix.points.point import Deployment

__all__ = ["EvalMode", "EvalPolicy", "Suite", "mark_evals", "only_evals", "policy_of", "smoke", "trim"]


class EvalMode(StrEnum):
    """``MARK``: throughput rows carry the marks; ``ONLY``: accuracy runs alone; ``ALL``: of every eligible point."""

    NONE = "none"
    MARK = "mark"
    ONLY = "only"
    ALL = "all"


class Suite(Record):
    """An accuracy suite and the framework that runs it. The empty suite of lm-eval is GSM8K."""

    framework: str
    suite: str


_GSM8K: Final = Suite("lm-eval", "")


_VENDOR_SUITES: Final = MappingProxyType(
    {
        "kimik3": Suite("kimi-vendor", "kimi_tool_call_schema_full"),
        "minimaxm3": Suite("minimax-vendor", "minimax_m3_full"),
    }
)


class EvalPolicy(Record):
    """What ``configs/evals.yaml`` says; the defaults hold where there is no such file."""

    minimum_concurrency: int = 16
    isl: int = 8192
    osl: int = 1024
    default: Suite = _GSM8K
    model_suites: Mapping[str, Suite] = _VENDOR_SUITES

    def eligible(self, deployment: Deployment) -> bool:
        """Whether the workload is one that is evaluated at all."""
        scenario = deployment.scenario
        return deployment.agentic or (scenario.isl == self.isl and scenario.osl == self.osl)

    def vendor(self, deployment: Deployment) -> Suite | None:
        """The model's own suite, which every agentic point of it runs."""
        return self.model_suites.get(deployment.config.model_prefix) if deployment.agentic else None


def policy_of(document: Document) -> EvalPolicy:
    """The policy of an evals file that its schema has accepted.

    Raises:
        RefusedError: a model's own suite runs in the default's framework, which is what tells their ids apart.
    """
    root = document.root
    sequence, default = root.get("sequence", {}), root.get("default", {})
    fallback = EvalPolicy()
    policy = EvalPolicy(
        minimum_concurrency=root.get("minimum-concurrency", fallback.minimum_concurrency),
        isl=sequence.get("isl", fallback.isl),
        osl=sequence.get("osl", fallback.osl),
        default=Suite(default.get("framework", _GSM8K.framework), default.get("suite", _GSM8K.suite)),
        model_suites={
            prefix: Suite(suite["framework"], suite["suite"]) for prefix, suite in root.get("model-suites", {}).items()
        },
    )
    shared = [prefix for prefix, suite in policy.model_suites.items() if suite.framework == policy.default.framework]
    if shared:
        from matrix.errors import RefusedError
        from matrix.findings import Finding

        raise RefusedError(
            Finding(
                rule="evals-framework",
                message=f"model-suites.{prefix}.framework is {policy.default.framework}, the default's as well. A point"
                " that runs both suites would have two accuracy runs with one id.",
                fix="give the model's suite a framework name of its own",
                span=document.of_value(root["model-suites"][prefix], "framework"),
            )
            for prefix in shared
        )
    return policy


def mark_evals(points: Selection, policy: EvalPolicy, mode: EvalMode) -> Iterable[Point]:
    """The points with their marks; for ``ALL`` the accuracy runs alone.

    ``ONLY`` marks like ``MARK``: the filter is `only_evals`, behind the trim.
    """
    if mode is EvalMode.NONE:
        return points
    if mode is EvalMode.ALL:
        return list(_all_evals(points, policy))
    return _Marked(points, policy)


def only_evals(points: Iterable[Point]) -> Iterator[Point]:
    """The marked points, as accuracy runs."""
    for point in points:
        if point.run_eval:
            yield point if point.eval_only else point._replace(eval_only=True)


class _Marked:
    """The points, each with its mark; behind them accuracy-only copies of those that run a model's own suite."""

    def __init__(self, points: Selection, policy: EvalPolicy) -> None:
        self.points = points
        self.policy = policy
        self.picks = _Picks(points, policy)

    def __iter__(self) -> Iterator[Point]:
        copies: list[Point] = []
        taken: set[_Group] = set()
        groups, suite, policy = self.picks.groups, self.policy.default, self.policy
        usual = Evaluation(suite.framework, suite.suite)
        last: Deployment | None = None
        for deployment, concs in self.points.allocations():
            if deployment is not last:
                last, multinode, own = deployment, deployment.multinode, policy.vendor(deployment)
                group = groups.get(id(deployment))
                if group is not None and group.spare is not None and not group.wanted:
                    group = group.spare
                wanted = () if group is None else group.wanted
            if len(concs) == 1:
                picked = concs[0] if concs[0] in wanted else 0
            else:
                picked = max([conc for conc in wanted if conc in concs], default=0)
            if picked and group is not None and group.once:
                if group in taken:
                    picked = 0
                taken.add(group)
            if own is not None or picked:
                evaluation = Evaluation(suite.framework, suite.suite, picked) if picked and multinode else usual
                if own is not None:
                    conc = max(concs) if multinode else None
                    yield Point(deployment, concs, True, Evaluation(own.framework, own.suite, conc))
                    if picked:
                        copies.append(Point(deployment, concs, True, evaluation, True))
                else:
                    yield Point(deployment, concs, True, evaluation)
            else:
                yield Point(deployment, concs, False)
        yield from copies


class _Group:
    """Deployments that are compared with each other, and the concurrencies of them that are evaluated.

    ``once``: at the first point that has one of them, not at each. ``spare``: the group of an agentic multi-node
    topology. It stands in when nothing of the topology is high enough, so that no topology loses its accuracy run.
    """

    __slots__ = ("found", "once", "served", "spare", "wanted")

    def __init__(self, *, once: bool, spare: _Group | None = None) -> None:
        self.once = once
        self.spare = spare
        self.found: list[int] = []
        self.served = False
        self.wanted: tuple[int, ...] = ()

    def settle(self, *, median: bool) -> None:
        """Decide: of what was found the highest, and the upper median where that is wanted too."""
        if self.found and not self.served:
            if median:
                ladder = sorted(set(self.found))
                self.wanted = (ladder[-1], ladder[len(ladder) // 2])
            else:
                self.wanted = (max(self.found),)


class _Picks:
    """The group of each deployment, by its ``id()``; none for one whose workload is not evaluated."""

    def __init__(self, points: Selection, policy: EvalPolicy) -> None:
        self.groups: dict[int, _Group] = {}
        self.by_key: dict[Hashable, _Group] = {}
        groups, minimum, eligible = self.groups, policy.minimum_concurrency, policy.eligible
        for deployment, tops in points.tops():
            if not eligible(deployment):
                continue
            group = groups.get(id(deployment))
            if group is None:
                group = groups[id(deployment)] = self.group(deployment)
            least = minimum if deployment.multinode or not deployment.agentic else 0
            high = [top for top in tops if top >= least]
            group.found += high
            if group.spare is not None:
                group.spare.served |= bool(high)
                group.spare.found += tops
        for group in self.by_key.values():
            group.settle(median=not group.once)

    def group(self, deployment: Deployment) -> _Group:
        """The group that a deployment belongs to, made for its first member."""
        key, spare = _keys(deployment)
        group = self.by_key.get(key)
        if group is None:
            if spare is not None and spare not in self.by_key:
                self.by_key[spare] = _Group(once=True)
            once = deployment.multinode or deployment.agentic
            group = self.by_key[key] = _Group(once=once, spare=self.by_key.get(spare))
        return group


def _keys(deployment: Deployment) -> tuple[Hashable, Hashable]:
    """What deployments of one group have in common, and those of one agentic multi-node topology (else None)."""
    config, scenario, topology = deployment.config, deployment.scenario, deployment.entry.topology
    where = (config.model, deployment.runner, config.framework, config.precision)
    if not isinstance(topology, SingleNode):
        # Only agentic points fall back, so a fixed-length one must neither take the mark nor count as having it.
        if not deployment.agentic:
            return deployment.family, None
        prefill, decode = topology.workers[0], topology.workers[1]
        return deployment.family, (where, prefill.replicas, prefill.sizes, decode.replicas, decode.sizes)
    w = topology.worker
    key = (where, deployment.entry.spec_decoding, w.dp_attn, w.attn_dp)
    if deployment.agentic:
        return (key, config.image, w.tp, w.ep, w.pp, w.dcp, w.pcp), None
    return (key, scenario.isl, scenario.osl), None


def _all_evals(points: Iterable[Point], policy: EvalPolicy) -> Iterator[Point]:
    """An accuracy run of every eligible point; the concurrencies of one multi-node deployment share an allocation."""
    merged: dict[Any, set[int]] = {}
    for point in points:
        deployment = point.deployment
        if deployment.multinode and policy.eligible(deployment):
            merged.setdefault((deployment.family, deployment.selector), set()).update(point.concs)
    default = policy.default
    for point in points:
        deployment = point.deployment
        if not policy.eligible(deployment):
            continue
        vendor = policy.vendor(deployment)
        if vendor is not None:
            own = max(point.concs) if deployment.multinode else None
            yield Point(deployment, point.concs, True, Evaluation(vendor.framework, vendor.suite, own), True)
        if not deployment.multinode:
            yield Point(deployment, point.concs, True, Evaluation(default.framework, default.suite), True)
            continue
        concs = tuple(sorted(merged.pop((deployment.family, deployment.selector), ())))
        if concs:
            top, all_concs = (concs[-1], None) if deployment.agentic else (None, True)
            yield Point(deployment, concs, True, Evaluation(default.framework, default.suite, top, all_concs), True)


class _Lowest:
    """Of one family while it is trimmed: the survivor, and the marked member with the highest concurrency."""

    __slots__ = ("all_concs", "conc", "evaluation", "marked_conc", "ordinal")

    def __init__(self, conc: int, ordinal: int) -> None:
        self.conc = conc
        self.ordinal = ordinal
        self.evaluation: Evaluation | None = None
        self.marked_conc = 0
        self.all_concs: bool | None = None


def trim(points: Iterable[Point]) -> Iterator[Point]:
    """Of each family the point with the lowest concurrency, in its place; it is evaluated if any member was.

    The survivor takes framework and suite of the highest marked member. ``points`` must be iterable again and again.
    """
    for point, lowest in _survivors(points):
        if lowest.evaluation is None:
            yield point
            continue
        conc = lowest.conc if point.deployment.multinode else None
        yield point._replace(run_eval=True, evaluation=lowest.evaluation.at(conc, lowest.all_concs))


def smoke(points: Iterable[Point]) -> Iterator[Point]:
    """The lowest throughput point of each family, then the lowest accuracy run of each family that has one.

    ``points`` are marked ones, iterable again and again.
    """
    throughput = [point for point in points if not point.eval_only]
    for point, _ in _survivors(throughput):
        yield point._replace(run_eval=False)
    yield from trim([_smoke_copy(point) for point in points if point.run_eval])


def _survivors(points: Iterable[Point]) -> Iterator[tuple[Point, _Lowest]]:
    families: dict[Any, _Lowest] = {}
    for ordinal, point in enumerate(points):
        key, conc = _trim_key(point), min(point.concs)
        lowest = families.get(key)
        if lowest is None:
            lowest = families[key] = _Lowest(conc, ordinal)
        elif conc < lowest.conc:
            lowest.conc, lowest.ordinal = conc, ordinal
        evaluation = point.evaluation
        if point.run_eval and evaluation is not None:
            if evaluation.all_concs is not None:
                lowest.all_concs = bool(lowest.all_concs) or evaluation.all_concs
            at = evaluation.conc or max(point.concs)
            if at > lowest.marked_conc:
                lowest.marked_conc, lowest.evaluation = at, evaluation
    for ordinal, point in enumerate(points):
        lowest = families[_trim_key(point)]
        if lowest.ordinal == ordinal:
            yield _shrunk(point, lowest.conc), lowest


def _shrunk(point: Point, conc: int) -> Point:
    if not point.deployment.multinode:
        return point
    evaluation = point.evaluation
    if evaluation is not None and evaluation.conc is not None:
        evaluation = evaluation.at(conc, evaluation.all_concs)
    return point._replace(concs=(conc,), evaluation=evaluation)


def _trim_key(point: Point) -> Any:
    if point.eval_only and point.evaluation is not None:
        return (point.deployment.family, point.evaluation.framework, point.evaluation.suite)
    return point.deployment.family


def _smoke_copy(point: Point) -> Point:
    evaluation = point.evaluation
    if point.deployment.multinode and evaluation is not None:
        conc = evaluation.conc or max(point.concs)
        evaluation = evaluation.at(conc, False)
        return point._replace(concs=(conc,), evaluation=evaluation, eval_only=True)
    return point._replace(eval_only=True)
