"""expand -> select -> mark evals -> trim, joined: what ``expand`` shows is what every other command works on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.points.evals import EvalMode, mark_evals, only_evals, smoke, trim
from matrix.points.expand import Selection, survey
from matrix.points.request import EVERYTHING
from matrix.points.unique import Distinct, suspects
from matrix.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matrix.config.model import Config
    from matrix.findings import Finding
    from matrix.points.evals import EvalPolicy
    from matrix.points.expand import Facts
    from matrix.points.point import Point
    from matrix.points.request import Filters, Request
    from matrix.points.select import ConfigSelector, ScenarioSelector, Selector

__all__ = ["Expansion", "expand"]


class Expansion(Record):
    """The points (iterable again and again), what was found on the way, and the selectors that judged them."""

    points: Iterable[Point]
    findings: tuple[Finding, ...]
    selectors: tuple[Selector, ...]


def expand(configs: Sequence[Config], facts: Facts, policy: EvalPolicy, request: Request) -> Expansion:
    """The points that a request selects. Refuses nothing itself: error findings do, by whoever asked."""
    filters = request.filters
    findings: list[Finding] = []
    if filters != EVERYTHING:
        from matrix.points.unknown import unknown_words

        findings += unknown_words(configs, filters, facts.fleet)
    by_config, by_scenario, by_point = _selectors(filters)
    chosen = [config for config in configs if all(selector.admits(config) for selector in by_config)]
    found = survey(
        chosen,
        facts,
        keep=(lambda _, scenario: all(selector.admits(scenario) for selector in by_scenario)) if by_scenario else None,
        node_filter=request.node_filter,
    )
    findings += found.findings
    selection = Selection(found.groups, by_point, request.step)
    if filters.exp_names:
        from matrix.points.unknown import unknown_exp_names

        findings += unknown_exp_names(selection, filters.exp_names)
    points: Iterable[Point] = mark_evals(selection, policy, request.evals)
    if request.smoke:
        points = _Again(smoke, points)
    elif request.trim:
        points = _Again(trim, points)
    if request.evals_only:
        points = _Again(only_evals, points)
    if request.ids:
        from matrix.points.unknown import unknown_ids

        findings += unknown_ids(points, request.ids)
        points = _Again(_ByName(request.ids), points)
    whole = not (by_point or request.trim or request.smoke or request.evals is EvalMode.ALL)
    distinct = Distinct(points, suspects(found.groups, step=request.step, whole=whole))
    return Expansion(distinct, (*findings, *distinct.findings), (*by_config, *by_scenario, *by_point))


def _selectors(
    filters: Filters,
) -> tuple[tuple[ConfigSelector, ...], tuple[ScenarioSelector, ...], tuple[Selector, ...]]:
    if filters == EVERYTHING:
        return (), (), ()
    from matrix.points.select import config_selectors, point_selectors, scenario_selectors

    return config_selectors(filters), scenario_selectors(filters), point_selectors(filters)


class _Again:
    """A stage over points that can be iterated again and again."""

    def __init__(self, stage: Callable[[Iterable[Point]], Iterator[Point]], points: Iterable[Point]) -> None:
        self.stage = stage
        self.points = points

    def __iter__(self) -> Iterator[Point]:
        return self.stage(self.points)


class _ByName:
    """Keeps the points whose id is wanted; last of all, so that a point's marks do not depend on its being alone."""

    def __init__(self, wanted: tuple[str, ...]) -> None:
        from matrix.points.select import matches

        self.wanted = wanted
        self.matches = matches

    def __call__(self, points: Iterable[Point]) -> Iterator[Point]:
        exact = {name for name in self.wanted if "*" not in name and "?" not in name}
        globs = [name for name in self.wanted if name not in exact]
        for point in points:
            name = point.id
            if name in exact or any(self.matches(pattern, name) for pattern in globs):
                yield point
