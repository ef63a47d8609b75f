"""``budget-gpu-hours``: the most that a plan may take, unless somebody who may let it take more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matrix.plan.labels import Registry
    from matrix.plan.plan import Plan

__all__ = ["approving_label", "over_budget"]

_NAMED: Final = 3
"""Of the configs that cost most."""


def over_budget(plan: Plan, most: float | None, *, approved: bool = False, way_out: str = "") -> Finding | None:
    """What refuses a plan that takes more GPU-hours than ``most``; None where it may run.

    Jobs whose length nobody stated count as none. ``way_out`` says how somebody may let it run all the same.
    """
    cost = plan.cost
    if most is None or approved or cost.gpu_hours <= most:
        return None
    hours: dict[str, float] = {}
    for point in plan.points:
        deployment = point.deployment
        taken = deployment.gpus * (point.seconds or 0) / 3600
        hours[deployment.config.key] = hours.get(deployment.config.key, 0.0) + taken
    ranked = sorted(hours.items(), key=lambda item: -item[1])
    rest = len([key for key, taken in ranked[_NAMED:] if taken])
    named = ", ".join(f"{key} {_hours(taken)}" for key, taken in ranked[:_NAMED] if taken)
    more = f", and {rest:,} more configs" if rest > 1 else ", and 1 more config" if rest else ""
    untimed = f" {_jobs(cost.untimed)} of unknown length, which count as none, come on top." if cost.untimed else ""
    message = (
        f"the plan takes {_hours(cost.gpu_hours)} GPU-hours in {_jobs(cost.jobs)}, and budget-gpu-hours allows"
        f" {_hours(most)}. Most of it: {named}{more}.{untimed}"
    )
    fewer = "sweep fewer points, as --trim-conc and a label that trims do"
    *first, last = filter(None, (fewer, way_out, "raise budget-gpu-hours in [tool.matrix]"))
    return Finding(rule="plan-budget", message=message, fix=f"{', '.join(first)}, or {last}")


def approving_label(registry: Registry) -> str:
    """How somebody may let a plan run that is over the budget; empty where the registry has no label for it."""
    from matrix.plan.labels import Effect

    found: Iterable[str] = (
        f"have somebody with {label.set_by} permission set {label.name}"
        for label in registry.modifiers.values()
        if label.effect is Effect.OVER_BUDGET
    )
    return next(iter(found), "")


def _hours(hours: float) -> str:
    return f"{hours:,.1f}".removesuffix(".0")


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
