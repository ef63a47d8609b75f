"""Shards and limits: how many, how even, and what does not fit; summaries that stay below 1 MiB."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.config.loading import load_fleet
from matrix.errors import RefusedError
from matrix.findings import Finding, Severity, Span
from matrix.plan.decision import Action, Decision
from matrix.plan.labels import load_labels
from matrix.plan.limits import LIMITS, MAX_SUMMARY, Measure, measures, utf16_bytes
from matrix.plan.plan import Plan
from matrix.plan.shards import MAX_JOBS, Job, jobs_of, shard_sizes, split
from matrix.plan.sweep import Written, outputs_of, outputs_of_written, read_plan, sweep_of, written_of
from matrix.points.pipeline import expand
from matrix.points.request import Request
from matrix.report.summary import summary_text
from matrix.workspace import open_workspace
from tests.plan.events import FAST, HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.plan.labels import Mode


@pytest.fixture(scope="module")
def mode(root: Path) -> Mode:
    registry = load_labels(str(root / "configs/labels.yaml"))
    return registry.mode(registry.primaries[FAST])


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"k--8k1k--tp8--c{n}", "runner": "r", "digest": "d", **more} for n in range(count)]


def written(count: int, canary: str | None = None, **more: Any) -> Written:
    listed = rows(count, **more)
    minutes = {row["id"]: 90 for row in listed}
    return written_of({"version": 1, "decision": "run", "points": listed, "canary": canary, "minutes": minutes})


def measured(plan: Written) -> dict[str, Measure]:
    return {one.limit.name: one for one in measures(plan, outputs_of_written(plan))}


@given(st.integers(min_value=0, max_value=MAX_JOBS * MAX_JOBS))
def test_shards_are_few_balanced_and_hold_all(count: int) -> None:
    sizes = shard_sizes(count)
    assert sum(sizes) == count
    assert len(sizes) == -(-count // MAX_JOBS)
    assert max(sizes, default=0) <= MAX_JOBS
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    assert 0 not in sizes


@given(st.integers(min_value=0, max_value=1000), st.booleans())
def test_splitting_keeps_each_job_once_and_in_order(count: int, has_canary: bool) -> None:
    listed = rows(count)
    canary = listed[count // 2]["id"] if has_canary and listed else None
    parts = split(jobs_of(listed, canary))
    told = [job.id for part in parts for job in part]
    assert told == [row["id"] for row in listed if row["id"] != canary]
    plan = written(count, canary)
    assert parts == [plan.shard(number) for number in range(1, len(plan.sizes) + 1)]


@pytest.mark.parametrize("count", [65_537, 70_000])
def test_more_than_256_shards_are_refused_with_the_numbers(count: int) -> None:
    with pytest.raises(RefusedError, match=f"{count:,} jobs.* 256 x 256 = 65,536"):
        shard_sizes(count)


def test_a_plan_of_70000_points_is_refused_not_cut(mode: Mode, points: tuple[Any, ...]) -> None:
    plan = Plan(points * (70_000 // len(points) + 1))
    with pytest.raises(RefusedError, match="plan-too-large"):
        sweep_of(Decision(Action.RUN, "", mode), plan)


@pytest.mark.parametrize("count", [0, 1, 5, 256, 257, 5000])
def test_plans_that_fit(count: int) -> None:
    found = measured(written(count))
    assert not [name for name, one in found.items() if not one.fits and one.limit.hard]
    assert found["jobs of one matrix"].value == max(shard_sizes(count), default=0)
    assert found["check runs of the commit"].value == count + len(shard_sizes(count)) + 4


def test_every_limit_is_measured(root: Path) -> None:
    fleet = load_fleet(str(root / "configs/runners.yaml"))
    plan = written(3)
    assert {one.limit for one in measures(plan, outputs_of_written(plan), fleet)} == set(LIMITS)


def test_what_does_not_fit(root: Path) -> None:
    def over(plan: Written) -> dict[str, Severity]:
        fleet = load_fleet(str(root / "configs/runners.yaml"))
        found = measures(plan, outputs_of_written(plan), fleet)
        return {one.limit.name: one.finding().severity for one in found if not one.fits}

    assert over(written(600)) == {"jobs on the page of the run": Severity.WARNING}
    assert over(written(60_000))["check runs of the commit"] is Severity.WARNING
    assert over(written(200, runner="x" * 4000)) == {"outputs of a shard's first job": Severity.ERROR}
    assert over(written(26_000, runner="x" * 1000))["outputs of the run"] is Severity.ERROR
    long = "k" * 300
    plan = written_of({"version": 1, "points": [{"id": long, "runner": "r", "digest": "d"}]})
    assert over(plan) == {"longest id": Severity.ERROR}
    plan = written_of({"version": 1, "points": [{"id": "$(x)", "runner": "r", "digest": "d"}]})
    assert over(plan) == {"letters outside ids' alphabet": Severity.ERROR}
    plan = written_of({"version": 1, "points": rows(1), "minutes": {rows(1)[0]["id"]: 8000}})
    assert over(plan) == {"run time of a job": Severity.ERROR}
    assert over(written(30, duration=3600)) == {"wait for a runner": Severity.WARNING}
    assert "run time of the run" in over(written(900, duration=3600))


def test_utf16() -> None:
    assert [utf16_bytes(text) for text in ("", "a", "é", "\U0001f40e")] == [0, 2, 2, 4]


# -- the published cases ----------------------------------------------------------------------------------------------


def sweep_file(shared: Path, case: str, mode: Mode, tmp_path: Path) -> tuple[Written, dict[str, str], str]:
    folder = shared / "cases" / case
    space = open_workspace(str(tmp_path), masters=[str(folder / "X.yaml")], runners=str(folder / "R.yaml"))
    found = tuple(expand(space.configs, space.facts, space.policy, Request()).points)
    sweep = sweep_of(Decision(Action.RUN, "test", mode), Plan(found))
    text = sweep.text()
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    outputs = outputs_of(sweep, text)
    return read_plan(str(tmp_path / "plan.json"), outputs["plan-digest"]), outputs, summary_text(sweep)


def test_257_points(shared: Path, tmp_path: Path, mode: Mode) -> None:
    plan, outputs, _ = sweep_file(shared, "C57", mode._replace(canary=False), tmp_path)
    assert json.loads(outputs["shards"]) == [{"number": 1, "count": 129}, {"number": 2, "count": 128}]
    told = [job.id for number in (1, 2) for job in plan.shard(number)]
    assert told == list(plan.rows)
    assert len(set(told)) == 257


def test_a_plan_of_2_megabytes_stays_out_of_the_outputs(shared: Path, tmp_path: Path, mode: Mode) -> None:
    plan, outputs, summary = sweep_file(shared, "C59", mode, tmp_path)
    assert len(plan.rows) == 2032
    assert (tmp_path / "plan.json").stat().st_size > 900_000
    assert sum(map(utf16_bytes, outputs.values())) < 2_000
    assert all(one.fits for name, one in measured(plan).items() if one.limit.hard), name_of_misfit(plan)
    assert len(summary.encode()) < MAX_SUMMARY
    assert f"`{list(plan.rows)[-1]}`" in summary


def name_of_misfit(plan: Written) -> str:
    return ", ".join(name for name, one in measured(plan).items() if not one.fits)


# -- the summary ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def points(root: Path) -> tuple[Any, ...]:
    space = open_workspace(str(root))
    return tuple(expand(space.configs, space.facts, space.policy, Request()).points)


def test_a_summary_begins_with_the_decision(points: tuple[Any, ...], mode: Mode) -> None:
    sweep = sweep_of(Decision(Action.RUN, "labeled by ada", mode._replace(trim=True)), Plan(points))
    finding = Finding(rule="some-rule", message="what|why", span=Span("a.yaml", 3, 1), severity=Severity.WARNING)
    lines = summary_text(sweep, [finding]).splitlines()
    assert lines[:3] == ["## Run", "", "labeled by ada"]
    heads = [line for line in lines if line.startswith("### ")]
    assert heads == ["### Not as usual", "### Points", "### Cost", "### Findings (1)"]
    assert sum(line.startswith("| `") for line in lines) == len(points)
    assert sum(line.endswith("| canary |") for line in lines) == 1


def test_a_summary_stays_below_its_limit(points: tuple[Any, ...], mode: Mode) -> None:
    many = Plan(points * (20_000 // len(points)))
    findings = [Finding(rule="r", message="x" * 1000, span=Span("a.yaml", n, 1)) for n in range(2000)]
    text = summary_text(sweep_of(Decision(Action.RUN, "é" * 100, mode), many), findings)
    assert 900_000 < len(text.encode()) <= MAX_SUMMARY
    assert "more points; plan.json has them all" in text
    assert "more findings" in text
    assert "### Cost" in text


def test_a_summary_of_one_endless_line(mode: Mode) -> None:
    finding = Finding(rule="r", message="x" * 3_000_000, span=Span("a.yaml", 1, 1))
    text = summary_text(sweep_of(Decision(Action.REFUSE, "y" * 3_000_000, mode)), [finding])
    assert len(text.encode()) <= MAX_SUMMARY


def test_hostile_text_stays_text(mode: Mode) -> None:
    text = summary_text(sweep_of(Decision(Action.SKIP, f"{HOSTILE} <img src=x> | @org/team", mode)))
    assert len(text.splitlines()) == 3
    assert "<img" not in text.replace("\\<", "")
    assert " @org" not in text


def test_a_job_is_two_words() -> None:
    assert Job("a", "b").record() == {"id": "a", "runner": "b"}
