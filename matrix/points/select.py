"""Selectors: each looks at a point and says whether it stays, by which rule, and why. It only removes.

A point with several concurrencies is the set of them: a selector on concurrency removes members, and the point goes
with the last one.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple, Protocol

from matrix.config.model import ScenarioKind, SingleNode
from matrix.points.row import scenario_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matrix.config.model import Config, Scenario
    from matrix.points.point import Point
    from matrix.points.request import Filters

__all__ = [
    "ConfigSelector",
    "ScenarioSelector",
    "Selector",
    "Verdict",
    "config_selectors",
    "point_selectors",
    "scenario_selectors",
]


class Verdict(NamedTuple):
    """What a selector leaves of a point (None: nothing), the rule it went by, and the reason in words."""

    point: Point | None
    rule: str
    reason: str = ""


class Selector(Protocol):
    """Looks at one point."""

    @property
    def rule(self) -> str:
        """The option that asks for it."""

    def looks_at(self, point: Point) -> bool:
        """Whether the point is of the kind that the selector judges; others stay unseen."""

    def __call__(self, point: Point) -> Verdict:
        """The verdict."""


class ConfigSelector(NamedTuple):
    """Keeps the configs whose ``text`` is one of ``wanted``; what it removes is never expanded."""

    rule: str
    wanted: tuple[str, ...]
    text: Callable[[Config], str]
    globs: bool = False

    def admits(self, config: Config) -> bool:
        """Whether the config stays."""
        text = self.text(config)
        return any(matches(pattern, text) for pattern in self.wanted) if self.globs else text in self.wanted

    def looks_at(self, point: Point) -> bool:
        """Every point has a config."""
        return True

    def __call__(self, point: Point) -> Verdict:
        """The verdict on the point's config."""
        config = point.deployment.config
        if self.admits(config):
            return Verdict(point, self.rule)
        return Verdict(None, self.rule, f"{self.text(config)} is not {_or(self.wanted)}")


class ScenarioSelector(NamedTuple):
    """Keeps the scenarios of the wanted kinds."""

    rule: str
    wanted: tuple[str, ...]

    def admits(self, scenario: Scenario) -> bool:
        """Whether the scenario stays."""
        return scenario.kind.value in self.wanted

    def looks_at(self, point: Point) -> bool:
        """Every point has a scenario."""
        return True

    def __call__(self, point: Point) -> Verdict:
        """The verdict on the point's scenario."""
        kind = point.deployment.scenario.kind.value
        return Verdict(point if kind in self.wanted else None, self.rule, f"{kind} is not {_or(self.wanted)}")


class SequenceSelector(NamedTuple):
    """Keeps fixed-length points of the wanted lengths; agentic points have none and are not looked at."""

    rule: str
    wanted: tuple[str, ...]

    def looks_at(self, point: Point) -> bool:
        """Fixed-length points."""
        return point.deployment.scenario.kind is ScenarioKind.FIXED

    def __call__(self, point: Point) -> Verdict:
        """The verdict on the point's sequence lengths."""
        name = scenario_name(point.deployment.scenario)
        if not self.looks_at(point) or name in self.wanted:
            return Verdict(point, self.rule)
        return Verdict(None, self.rule, f"{name} is not {_or(self.wanted)}")


class ConcurrencySelector(NamedTuple):
    """Keeps concurrencies within bounds, or of a set."""

    rule: str
    low: int | None = None
    high: int | None = None
    wanted: frozenset[int] = frozenset()

    def looks_at(self, point: Point) -> bool:
        """Every point has a concurrency."""
        return True

    def __call__(self, point: Point) -> Verdict:
        """The verdict, on each concurrency of the point."""
        left = tuple(conc for conc in point.concs if self._admits(conc))
        if left == point.concs:
            return Verdict(point, self.rule)
        gone = ", ".join(str(conc) for conc in point.concs if conc not in left)
        reason = f"concurrency {gone} is {self._bound()}"
        return Verdict(point._replace(concs=left) if left else None, self.rule, reason)

    def _admits(self, conc: int) -> bool:
        if self.low is not None and conc < self.low:
            return False
        if self.high is not None and conc > self.high:
            return False
        return not self.wanted or conc in self.wanted

    def _bound(self) -> str:
        if self.low is not None:
            return f"below {self.low}"
        if self.high is not None:
            return f"above {self.high}"
        return f"not {_or([str(conc) for conc in sorted(self.wanted)])}"


class SizeSelector(NamedTuple):
    """Keeps single-node fixed-length points whose tp or ep is not above a bound; no other point is looked at."""

    rule: str
    field: str
    high: int

    def looks_at(self, point: Point) -> bool:
        """Single-node points of fixed length."""
        deployment = point.deployment
        return isinstance(deployment.entry.topology, SingleNode) and deployment.scenario.kind is ScenarioKind.FIXED

    def __call__(self, point: Point) -> Verdict:
        """The verdict on the worker's size."""
        topology = point.deployment.entry.topology
        if not isinstance(topology, SingleNode) or not self.looks_at(point):
            return Verdict(point, self.rule)
        size = topology.worker.tp if self.field == "tp" else topology.worker.ep
        if size <= self.high:
            return Verdict(point, self.rule)
        return Verdict(None, self.rule, f"{self.field} {size} is above {self.high}")


class NameSelector(NamedTuple):
    """Keeps the points whose exp-name is one of the wanted."""

    rule: str
    wanted: frozenset[str]

    def looks_at(self, point: Point) -> bool:
        """Every point has an exp-name."""
        return True

    def __call__(self, point: Point) -> Verdict:
        """The verdict on the exp-name."""
        name = point.exp_name
        return Verdict(point if name in self.wanted else None, self.rule, f"exp-name {name} is not {_or(self.wanted)}")


def matches(pattern: str, key: str) -> bool:
    """Whether a key is meant: exactly, or by glob where the pattern has ``*`` or ``?``; then ``[ ]`` works too."""
    return fnmatchcase(key, pattern) if "*" in pattern or "?" in pattern else key == pattern


def config_selectors(filters: Filters) -> tuple[ConfigSelector, ...]:
    """The selectors that can judge a config before it is expanded."""
    nodes = (
        () if filters.single_node == filters.multi_node else ("single-node" if filters.single_node else "multi-node",)
    )
    table: tuple[tuple[str, tuple[str, ...], Callable[[Config], str], bool], ...] = (
        ("--config-keys", filters.config_keys, lambda config: config.key, True),
        ("--model-prefix", filters.model_prefix, lambda config: config.model_prefix, False),
        ("--precision", filters.precision, lambda config: config.precision, False),
        ("--framework", filters.framework, lambda config: config.framework, False),
        ("--runner-type", filters.runner_type, lambda config: config.runner, False),
        (
            f"--{nodes[0]}" if nodes else "",
            nodes,
            lambda config: "multi-node" if config.multinode else "single-node",
            False,
        ),
    )
    return tuple(ConfigSelector(rule, wanted, text, globs) for rule, wanted, text, globs in table if wanted)


def scenario_selectors(filters: Filters) -> tuple[ScenarioSelector, ...]:
    """The selectors that can judge a scenario before it is expanded."""
    return (ScenarioSelector("--scenario-type", filters.scenario_type),) if filters.scenario_type else ()


def point_selectors(filters: Filters) -> tuple[Selector, ...]:
    """The selectors that need the point itself."""
    found: list[Selector] = []
    if filters.seq_lens:
        found.append(SequenceSelector("--seq-lens", filters.seq_lens))
    if filters.max_tp is not None:
        found.append(SizeSelector("--max-tp", "tp", filters.max_tp))
    if filters.max_ep is not None:
        found.append(SizeSelector("--max-ep", "ep", filters.max_ep))
    if filters.min_conc is not None:
        found.append(ConcurrencySelector("--min-conc", low=filters.min_conc))
    if filters.max_conc is not None:
        found.append(ConcurrencySelector("--max-conc", high=filters.max_conc))
    if filters.conc:
        found.append(ConcurrencySelector("--conc", wanted=frozenset(filters.conc)))
    if filters.exp_names:
        found.append(NameSelector("--exp-names", frozenset(filters.exp_names)))
    return tuple(found)


def _or(names: Iterable[str]) -> str:
    listed: Sequence[str] = sorted(names)
    return " or ".join(listed[:4]) + (f" or {len(listed) - 4} more" if len(listed) > 4 else "")
