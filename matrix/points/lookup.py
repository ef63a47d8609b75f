"""From an id to its point, whatever kind of run the id names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.points.evals import EvalMode
from matrix.points.pipeline import expand
from matrix.points.point import Evaluation, Point
from matrix.points.request import Filters, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.config.model import Config
    from matrix.findings import Finding
    from matrix.points.evals import EvalPolicy
    from matrix.points.expand import Facts

__all__ = ["accuracy_run", "find_point"]


def find_point(
    name: str, configs: Sequence[Config], facts: Facts, policy: EvalPolicy
) -> tuple[Point, tuple[Finding, ...]]:
    """The point with an id, as a throughput or as an accuracy run, and what was found in its config on the way.

    Raises:
        RefusedError: no point has the id; the near ones are named.
    """
    key = name.split("--", 1)[0]
    mine = [config for config in configs if config.key == key]
    node = name.rsplit("--on-", 1)[1] if "--on-" in name else None
    filters = Filters(config_keys=(key,)) if mine else Filters()
    near: list[str] = []
    for request in _requests(filters, node):
        if not mine:
            break
        expansion = expand(mine, facts, policy, request)
        for point in expansion.points:
            if point.id == name:
                return point, expansion.findings
            near.append(point.id)
    raise _unknown(name, key, near, configs)


def accuracy_run(point: Point, policy: EvalPolicy) -> Point:
    """The point as an accuracy run of its default suite, whether or not the policy picks it."""
    if point.eval_only:
        return point
    conc = max(point.concs) if point.deployment.multinode else None
    suite = policy.default
    return Point(point.deployment, point.concs, True, Evaluation(suite.framework, suite.suite, conc), True)


def _requests(filters: Filters, node: str | None) -> list[Request]:
    base = Request(filters=filters, node_filter=node)
    return [base, base._replace(evals_only=True), base._replace(evals=EvalMode.ALL, evals_only=True)]


def _unknown(name: str, key: str, near: list[str], configs: Sequence[Config]) -> Exception:
    from matrix.errors import RefusedError
    from matrix.findings import Finding, did_you_mean

    if near:
        message, fix = f"no point has the id {name}.", did_you_mean(name, near)
    else:
        message = f"no point has the id {name}: its first part, {key}, is no config key."
        fix = did_you_mean(key, [config.key for config in configs])
    return RefusedError([Finding(rule="point-unknown", message=message, fix=fix)])
