"""`Sweep`: a plan together with the decision that lets it run, as ``plan.json`` and as the outputs of the planning job.

The file carries the rows. The outputs carry words, counts, and the one canary; a whole plan would not fit into them.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.source import read_bytes
from matrix.errors import RefusedError
from matrix.findings import Finding, Span, did_you_mean
from matrix.plan.decision import Action
from matrix.plan.document import VERSION, cost_record, plan_record
from matrix.plan.plan import Plan
from matrix.plan.shards import Job, canary_of, minutes_of, shard_sizes

if TYPE_CHECKING:
    from matrix.plan.decision import Decision
    from matrix.plan.plan import Cost
    from matrix.points.point import Point

__all__ = ["Sweep", "Written", "outputs_of", "outputs_of_written", "read_plan", "sweep_of", "written_of"]

_MAX_BYTES: Final = 1 << 30
_FIX: Final = "give the plan.json of this run's planning job"


class Sweep(NamedTuple):
    """What an event starts. ``plan`` is None where nothing was planned; ``canary`` is one of its points.

    ``budget`` is the bound that it is held to, in GPU-hours. As records, ``receipts``: who set each label that shaped
    it; ``reuse``: what an earlier run stands in for; ``findings``: what was told; ``changes``: which jobs the change
    changes, whatever of them runs.
    """

    decision: Decision
    plan: Plan | None = None
    canary: Point | None = None
    receipts: tuple[dict[str, Any], ...] = ()
    reuse: dict[str, Any] | None = None
    findings: tuple[dict[str, Any], ...] = ()
    changes: dict[str, Any] | None = None
    budget: float | None = None

    @property
    def points(self) -> tuple[Point, ...]:
        """The points that run; none unless the decision says run."""
        return self.plan.points if self.plan is not None and self.decision.action is Action.RUN else ()

    @property
    def refused(self) -> Cost | None:
        """What the plan would have taken that was refused; None where there was none."""
        refused = self.decision.action is Action.REFUSE and self.plan is not None and self.plan.points
        return self.plan.cost if refused and self.plan is not None else None

    def record(self) -> dict[str, Any]:
        """``plan.json``. Of a refused plan no point is in it, so that nobody runs one."""
        refused = self.refused
        plan = (self.plan or Plan())._replace(points=self.points)
        decision, mode = self.decision, self.decision.mode
        rest = len(self.points) - (self.canary is not None)
        return {
            **plan_record(plan),
            "decision": decision.action.value,
            "reason": decision.reason,
            "mode": None if mode is None else mode._asdict(),
            "approval": None if decision.approval is None else decision.approval._asdict(),
            "receipts": list(self.receipts),
            "reuse": self.reuse,
            "findings": list(self.findings),
            "changes": self.changes,
            "refused": None if refused is None else cost_record(refused),
            "budget-gpu-hours": self.budget,
            "canary": None if self.canary is None else self.canary.id,
            "shards": shard_sizes(rest),
            "minutes": {point.id: minutes_of(point) for point in self.points},
        }

    def text(self) -> str:
        """``plan.json`` as it is written: one line, so that equal plans are equal bytes."""
        return json.dumps(self.record(), separators=(",", ":")) + "\n"


def sweep_of(decision: Decision, plan: Plan | None = None) -> Sweep:
    """The sweep of a decision and its plan. A plan without points skips, with the plan's reason."""
    if decision.action is not Action.RUN or plan is None:
        return Sweep(decision)
    if not plan.points:
        return Sweep(decision._replace(action=Action.SKIP, reason=f"nothing to run: {plan.reason}"), plan)
    canary = canary_of(plan.points) if decision.mode is not None and decision.mode.canary else None
    shard_sizes(len(plan.points) - (canary is not None))
    return Sweep(decision, plan, canary)


def outputs_of(sweep: Sweep, text: str) -> dict[str, str]:
    """The outputs of the planning job; ``text`` is the ``plan.json`` they go with.

    No output holds anything that a stranger wrote, but the id of the canary, which is inert.
    """
    points, canary, mode = sweep.points, sweep.canary, sweep.decision.mode
    return _outputs(
        sweep.decision.action.value,
        Job(canary.id, canary.deployment.runner) if canary is not None else None,
        len(points),
        has_evals=any(point.eval_only for point in points),
        has_reuse=sweep.reuse is not None,
        fail_fast=mode is not None and mode.fail_fast,
        digest=sha256(text.encode()).hexdigest(),
    )


def outputs_of_written(written: Written) -> dict[str, str]:
    """The outputs that went with a plan that was read back, but for its digest, of which only the length is right."""
    record, canary = written.record, written.canary
    return _outputs(
        str(record.get("decision", Action.RUN.value)),
        Job(canary, written.rows[canary]["runner"]) if canary is not None else None,
        len(written.rows),
        has_evals=any(row.get("eval-only") for row in written.rows.values()),
        has_reuse=record.get("reuse") is not None,
        fail_fast=bool((record.get("mode") or {}).get("fail_fast")),
        digest="0" * 64,
    )


def _outputs(
    decision: str, canary: Job | None, count: int, *, has_evals: bool, has_reuse: bool, fail_fast: bool, digest: str
) -> dict[str, str]:
    sizes = shard_sizes(count - (canary is not None))
    shards = [{"number": number, "count": size} for number, size in enumerate(sizes, start=1)]
    return {
        "decision": decision,
        "has-jobs": _word(count > 0),
        "has-canary": _word(canary is not None),
        "has-shards": _word(bool(shards)),
        "has-evals": _word(has_evals),
        "has-reuse": _word(has_reuse),
        "canary": json.dumps(canary.record() if canary is not None else {}, separators=(",", ":")),
        "shards": json.dumps(shards, separators=(",", ":")),
        "fail-fast": _word(fail_fast),
        "plan-digest": digest,
    }


def _word(value: bool) -> str:
    return "true" if value else "false"


class Written(NamedTuple):
    """A ``plan.json`` that was read back."""

    rows: dict[str, dict[str, Any]]
    canary: str | None
    sizes: tuple[int, ...]
    minutes: dict[str, int]
    record: dict[str, Any]

    def shard(self, number: int) -> tuple[Job, ...]:
        """The jobs of a shard, counted from 1.

        Raises:
            RefusedError: there is no such shard.
        """
        if not 1 <= number <= len(self.sizes):
            message = f"the plan has {len(self.sizes)} shards, and number {number} is asked for."
            raise RefusedError([Finding(rule="plan-shard", message=message, fix=_FIX)])
        names = [name for name in self.rows if name != self.canary]
        start = sum(self.sizes[: number - 1])
        return tuple(Job(name, self.rows[name]["runner"]) for name in names[start : start + self.sizes[number - 1]])

    def row(self, name: str) -> dict[str, Any]:
        """The row with an id.

        Raises:
            RefusedError: the plan has none.
        """
        if name not in self.rows:
            message = f"the plan has no point {name}."
            raise RefusedError([Finding(rule="point-unknown", message=message, fix=did_you_mean(name, self.rows))])
        return self.rows[name]


def read_plan(path: str, digest: str | None = None) -> Written:
    """Read ``plan.json``; ``digest`` is the sha256 of its bytes that the planning job gave out.

    Raises:
        RefusedError: it is another file, of another version, or not whole.
    """
    data = read_bytes(path, limit=_MAX_BYTES, what="plan")
    if digest is not None and (found := sha256(data).hexdigest()) != digest:
        message = f"the plan's digest is {found[:12]}, and {digest[:12]} is wanted: this is another plan."
        raise _refuse(path, "plan-digest", message)
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _refuse(path, "plan-json", f"this is not JSON: {error}.") from None
    return written_of(record, path)


def written_of(record: Any, path: str = "plan.json") -> Written:
    """What a ``plan.json`` holds. See `read_plan`."""
    version = record.get("version") if isinstance(record, dict) else None
    if not isinstance(record, dict) or type(version) is not int or version != VERSION:
        message = f"this is no plan of version {VERSION}" + (
            "." if version is None else f": its version is {version!r}."
        )
        raise _refuse(path, "plan-version", message)
    points = record.get("points")
    if not isinstance(points, list) or not all(map(_is_row, points)):
        raise _refuse(path, "plan-points", "its points are not rows with id, runner and digest.")
    rows = {row["id"]: row for row in points}
    canary, minutes, gpus = record.get("canary"), record.get("minutes", {}), record.get("gpus", {})
    good = isinstance(record.get("mode"), dict | None) and isinstance(canary, str | None)
    if not good or not _counts(minutes) or not _counts(gpus):
        raise _refuse(path, "plan-form", "its mode, canary, minutes or gpus are not as a plan has them.")
    if len(rows) != len(points):
        twice = next(name for name, count in Counter(row["id"] for row in points).items() if count > 1)
        raise _refuse(path, "plan-points", f"two of its points have one id: {twice}.")
    if canary is not None and canary not in rows:
        raise _refuse(path, "plan-canary", "its canary is none of its points.")
    sizes = shard_sizes(len(rows) - (canary is not None))
    if record.get("shards", sizes) != sizes:
        raise _refuse(path, "plan-shard", f"it counts its shards as {record['shards']}, and they are {sizes}.")
    return Written(rows, canary, tuple(sizes), minutes, record)


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("id", "runner", "digest")):
        return False
    return all(isinstance(row.get(key, 0), int) for key in ("node-count", "duration"))


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and all(type(count) is int for count in value.values())


def _refuse(path: str, rule: str, message: str) -> RefusedError:
    return RefusedError([Finding(rule=rule, message=message, fix=_FIX, span=Span(path))])
