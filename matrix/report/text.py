"""Points for people: a table of them grouped by config, and what they add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.findings import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matrix.points.point import Point

__all__ = ["Totals", "points_table"]


class Totals:
    """What a list of points adds up to. GPU-hours only of points whose duration is known."""

    __slots__ = ("evals", "gpu_hours", "nodes", "points", "untimed")

    def __init__(self) -> None:
        self.points = 0
        self.nodes = 0
        self.gpu_hours = 0.0
        self.untimed = 0
        self.evals = 0

    def add(self, point: Point) -> None:
        """Count one point."""
        self.points += 1
        self.nodes += point.deployment.nodes or 1
        self.evals += bool(point.run_eval)
        seconds = point.seconds
        if seconds is None:
            self.untimed += 1
        else:
            self.gpu_hours += point.deployment.gpus * seconds / 3600

    def __str__(self) -> str:
        jobs = "1 job" if self.points == 1 else f"{self.points:,} jobs"
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes:,} nodes"
        parts = [jobs, nodes]
        if self.gpu_hours:
            parts.append(f"{self.gpu_hours:,.0f} GPU-hours")
        if self.untimed and self.gpu_hours:
            untimed = "1 job" if self.untimed == 1 else f"{self.untimed:,} jobs"
            parts[-1] += f" ({untimed} untimed)"
        if self.evals:
            parts.append(f"{self.evals:,} evaluated")
        return ", ".join(parts)


def points_table(points: Iterable[Point], width: int) -> Iterator[str]:
    """The points grouped by config, as text lines that fit ``width`` columns, and the totals."""
    from itertools import groupby

    everything = Totals()
    configs = 0
    for config, members in groupby(points, key=lambda point: point.deployment.config):
        listed = list(members)
        totals = Totals()
        for point in listed:
            totals.add(point)
            everything.add(point)
        configs += 1
        yield _clip(config.key, width)
        about = one_line(f"  {config.model}  {config.precision}  {config.framework}  {config.runner}")
        if len(about) + len(str(totals)) + 2 <= width:
            yield f"{about}  {totals}"
        else:
            yield _clip(about, width)
            yield _clip(f"  {totals}", width)
        yield from _rows(listed, width)
        yield ""
    noun = "config" if configs == 1 else "configs"
    points_noun = "point" if everything.points == 1 else "points"
    counted = f"{everything.points:,} {points_noun} in {configs:,} {noun}:"
    if len(counted) + len(str(everything)) < width:
        yield f"{counted} {everything}"
    else:
        yield _clip(counted, width)
        yield _clip(f"  {everything}", width)


def _rows(points: Sequence[Point], width: int) -> Iterator[str]:
    from tabulate import tabulate

    from matrix.points.row import scenario_name

    head = ["scenario", "topology", "conc", "spec", "offload", "nodes", "GPUs", "eval", "variant"]
    rows: list[list[str | int]] = []
    for point in points:
        deployment, entry = point.deployment, point.deployment.entry
        offload = entry.offload
        backend = offload.backend["name"] if offload.backend is not None else ""
        rows.append(
            [
                scenario_name(deployment.scenario),
                deployment.topology,
                " ".join(map(str, point.concs)),
                "" if entry.spec_decoding == "none" else entry.spec_decoding,
                "" if offload.mode == "none" else f"{offload.mode} {backend}",
                deployment.nodes or 1,
                deployment.gpus,
                _eval_text(point),
                deployment.selector or "",
            ]
        )
    used = [i for i, _ in enumerate(head) if any(row[i] not in ("", None) for row in rows)]
    dropped = [name for name in ("GPUs", "offload", "spec") if name in head]
    while True:
        # The head goes in as a row: tabulate would widen every headed column by two.
        table = tabulate(
            [[head[i] for i in used], *([row[i] for i in used] for row in rows)],
            tablefmt="plain",
            disable_numparse=True,
            colalign=["right" if head[i] in ("nodes", "GPUs") else "left" for i in used],
        )
        lines = table.splitlines()
        if max(map(len, lines)) + 2 <= width or not dropped:
            break
        index = head.index(dropped.pop(0))
        used = [i for i in used if i != index]
    for line in lines:
        yield _clip(f"  {line}".rstrip(), width)


def _eval_text(point: Point) -> str:
    evaluation = point.evaluation
    if not point.run_eval or evaluation is None:
        return ""
    name = "GSM8K" if (evaluation.framework, evaluation.suite) == ("lm-eval", "") else evaluation.framework
    if point.eval_only:
        name += " only"
    return f"{name} @{evaluation.conc}" if evaluation.conc is not None and len(point.concs) > 1 else name


def _clip(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
