"""`Space`: every point that a workspace declares, and those of them that a request selects."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from matrix.points.evals import EvalMode, only_evals
from matrix.points.pipeline import expand
from matrix.points.request import Request

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from matrix.findings import Finding
    from matrix.points.pipeline import Expansion
    from matrix.points.point import Deployment, Point
    from matrix.workspace import Workspace

__all__ = ["Lowest", "Space"]


class Lowest:
    """Of each family of some points the one with the lowest concurrency; accuracy runs apart."""

    def __init__(self, points: Iterable[Point]) -> None:
        self._found: dict[tuple[bool, Hashable], Point] = {}
        for point in points:
            key = (point.eval_only, point.deployment.family)
            if key not in self._found or min(point.concs) < min(self._found[key].concs):
                self._found[key] = point

    def of(self, point: Point) -> Point | None:
        """The lowest of a point's family."""
        return self._found.get((point.eval_only, point.deployment.family))


class Space:
    """Throughput points and accuracy runs by id. What nobody asks for is never expanded."""

    def __init__(self, workspace: Workspace, request: Request) -> None:
        self.workspace = workspace
        self.request = request
        self._plain = Request(step=request.step, node_filter=request.node_filter)

    @cached_property
    def expansion(self) -> Expansion:
        """What the request selects."""
        return self._expand(self.request._replace(ids=()))

    @cached_property
    def _everything(self) -> Expansion:
        return self.expansion if self.request == self._plain else self._expand(self._plain)

    @cached_property
    def whole(self) -> dict[str, Point]:
        """Every point of the search space, then the accuracy runs that the policy picks."""
        return _by_id(self._everything.points)

    @cached_property
    def selected(self) -> dict[str, Point]:
        """What the request selects; without a mode of its own the accuracy runs as well that are marks in a list."""
        if self.request == self._plain:
            return self.whole
        found, ids = _by_id(self.expansion.points), self.request.ids
        return {name: point for name, point in found.items() if self.named(name)} if ids else found

    def named(self, name: str) -> bool:
        """Whether the ids that are asked for allow an id."""
        from matrix.points.select import matches

        ids = self.request.ids
        return not ids or any(matches(pattern, name) for pattern in ids)

    @cached_property
    def lowest(self) -> Lowest:
        """Of what is selected the lowest of each family."""
        return Lowest(self.selected.values())

    @cached_property
    def picks(self) -> dict[int, list[Point]]:
        """The accuracy runs that the policy picks of the whole, by scenario (its ``id()``)."""
        found: dict[int, list[Point]] = {}
        for point in self.whole.values():
            if point.eval_only:
                found.setdefault(id(point.deployment.scenario), []).append(point)
        return found

    @cached_property
    def all_evals(self) -> dict[str, Point]:
        """An accuracy run of every eligible point."""
        request = self._plain._replace(evals=EvalMode.ALL, evals_only=True)
        return {point.id: point for point in self._expand(request).points}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found on the way."""
        return self.expansion.findings

    def deployments(self) -> Iterable[Deployment]:
        """Every deployment that has a point, once."""
        return {id(point.deployment): point.deployment for point in self.whole.values()}.values()

    def _expand(self, request: Request) -> Expansion:
        return expand(self.workspace.configs, self.workspace.facts, self.workspace.policy, request)


def _by_id(points: Iterable[Point]) -> dict[str, Point]:
    found = {point.id: point for point in points}
    found.update({point.id: point for point in only_evals(points)})
    return found
