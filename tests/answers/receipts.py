"""Results as launches leave them: written by the class that launches write them with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from runners.receipt import Receipt, Step

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from matrix.points.point import Point

__all__ = ["FIGURES", "launched"]

FIGURES: Final = (
    {"conc": 4, "successful": 40, "total": 40, "total-tokens-per-second": 1234.5, "median-ttft-ms": 88.0},
)


def launched(
    folder: Path,
    point: Point,
    ended: datetime | None,
    *,
    success: bool = True,
    step: Step = Step.ENDED,
    figures: tuple[Mapping[str, Any], ...] = FIGURES,
    **changes: Any,
) -> Path:
    """A launch of a point in the folder of its own; ``changes`` are to what its receipt says of the point."""
    row = point.row()
    verdict, why = ("passed", "it succeeded") if success else ("failed", "it exited with 1")
    place = folder / point.id
    receipt = Receipt(
        step=step,
        point={"id": row["id"], "digest": row["digest"], "golden": None, "row": row, **changes},
        job={"id": "4711", "nodes": "node[1-2]"},
        times={"submitted": "2026-11-01T00:00:00+00:00", "ran-seconds": 3600.5},
    )
    if step is Step.ENDED and ended is not None:
        receipt.times["ended"] = ended.isoformat(timespec="seconds")
        receipt.outcome = {"success": success, "verdict": verdict, "why": why, "exit-status": int(not success)}
        summary = {**{name: receipt.point[name] for name in ("id", "digest")}, "job": "4711", "success": success}
        summary |= {"verdict": verdict, "why": why, "figures": list(figures) if success else []}
        place.mkdir(parents=True, exist_ok=True)
        (place / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    receipt.write(place)
    return place
