"""A plan as a file: ``plan.json``, and the shape in which InferenceX's planner prints one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.points.row import scenario_name

if TYPE_CHECKING:
    from matrix.changelog.entries import Entry
    from matrix.plan.history import Revision
    from matrix.plan.plan import Cost, Plan
    from matrix.points.point import Point

__all__ = ["VERSION", "bucket_of", "buckets", "cost_record", "plan_record"]

VERSION: Final = 1
"""Of the shape of ``plan.json``; a reader refuses one that it does not know."""

_EVAL_LISTS: Final = ("evals", "agentic_evals", "multinode_evals", "multinode_agentic_evals")


def plan_record(plan: Plan) -> dict[str, Any]:
    """``plan.json``. Buckets hold ids; the rows are in ``points``, each once."""
    return {
        "version": VERSION,
        "reason": plan.reason,
        "base": _revision(plan.base),
        "head": _revision(plan.head),
        "cost": cost_record(plan.cost),
        "changelog": _metadata(plan),
        "buckets": _sorted_into(plan, lambda point: point.id),
        "points": [point.row() for point in plan.points],
        "gpus": {point.id: point.deployment.gpus for point in plan.points},
        "left-out": [{"what": one.what, "rule": one.rule, "reason": one.reason} for one in plan.left_out],
    }


def cost_record(cost: Cost) -> dict[str, Any]:
    """What jobs add up to."""
    return {
        "jobs": cost.jobs,
        "nodes": cost.nodes,
        "gpu-hours": round(cost.gpu_hours, 3),
        "jobs-of-unknown-length": cost.untimed,
    }


def buckets(plan: Plan) -> dict[str, Any]:
    """InferenceX's own output: rows sorted into buckets, the defaults of its row schema filled in."""
    return {**_sorted_into(plan, _filled_row), "changelog_metadata": _metadata(plan)}


def bucket_of(point: Point) -> tuple[str, str]:
    """The bucket of a point, and within ``single_node`` and ``multi_node`` its workload; InferenceX's words."""
    deployment = point.deployment
    if point.eval_only:
        return f"{'multinode_' if deployment.multinode else ''}{'agentic_' if deployment.agentic else ''}evals", ""
    workload = scenario_name(deployment.scenario)
    return ("multi_node" if deployment.multinode else "single_node"), workload.replace("-", "_")


def _sorted_into(plan: Plan, show: Any) -> dict[str, Any]:
    sorted_: dict[str, Any] = {"single_node": {}, "multi_node": {}, **{name: [] for name in _EVAL_LISTS}}
    for point in plan.points:
        bucket, workload = bucket_of(point)
        home = sorted_[bucket].setdefault(workload, []) if workload else sorted_[bucket]
        home.append(show(point))
    return sorted_


def _filled_row(point: Point) -> dict[str, Any]:
    row = point.row()
    deployment = point.deployment
    if deployment.multinode:
        for role in ("prefill", "decode"):
            row[role] = {**row[role], "additional-settings": row[role].get("additional-settings", [])}
    if not deployment.agentic:
        row.setdefault("eval-only", False)
        if not point.eval_only:
            row.setdefault("require-power", False)
        if deployment.multinode:
            row.setdefault("eval-all-concs", False)
    return row


def _metadata(plan: Plan) -> dict[str, Any]:
    return {
        "base_ref": plan.base.commit if plan.base else None,
        "head_ref": plan.head.commit if plan.head else None,
        "entries": [_entry_record(entry) for entry in plan.entries],
    }


def _entry_record(entry: Entry) -> dict[str, Any]:
    record: dict[str, Any] = {
        "config-keys": list(entry.config_keys),
        "description": list(entry.description),
        "pr-link": entry.pr_link,
        "evals-only": entry.evals_only,
        "all-evals": entry.all_evals,
        "no-evals": entry.no_evals,
        "append-only": entry.append_only,
    }
    if entry.eval_min_prefill_ep is not None:
        record["eval-min-prefill-ep"] = entry.eval_min_prefill_ep
    if "scenario-type" in entry.node:
        record["scenario-type"] = list(entry.node["scenario-type"])
    return record


def _revision(revision: Revision | None) -> dict[str, str] | None:
    return None if revision is None else {"ref": revision.name, "commit": revision.commit}
