"""One plan followed through the workflows' own expressions, from the planning job's outputs to every single job."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.cli.main import matrix, run
from matrix.findings import errors_of
from matrix.plan.decision import Action, Decision
from matrix.plan.labels import Registry, load_labels
from matrix.plan.limits import MAX_SUMMARY, measures, utf16_bytes
from matrix.plan.plan import Plan
from matrix.plan.sweep import outputs_of, outputs_of_written, read_plan, sweep_of, written_of
from matrix.points.pipeline import expand
from matrix.points.request import Request
from matrix.report.summary import summary_text
from matrix.workspace import open_workspace
from tests.plan.events import FAST, REPOSITORY, labeled
from tests.plan.support import RUNNERS, single

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.plan.sweep import Sweep, Written
    from tests.workflows.evaluator import Evaluator

JOB_LIMIT: Final = 1 << 20
RUN_LIMIT: Final = 50 << 20
GITHUB: Final = {"event_name": "pull_request", "event": labeled(FAST), "repository": REPOSITORY, "run_id": 1}


@pytest.fixture(scope="module")
def registry(root: Path) -> Registry:
    return load_labels(str(root / "configs/labels.yaml"))


def sweep_with(count: int, folder: Path, registry: Registry) -> Sweep:
    """A sweep of so many points, behind a canary, expanded from a real config."""
    (folder / "X.yaml").write_text(single("alpha", str(list(range(1, count + 1)))), encoding="utf-8")
    (folder / "R.yaml").write_text(RUNNERS, encoding="utf-8")
    space = open_workspace(str(folder), masters=[str(folder / "X.yaml")], runners=str(folder / "R.yaml"))
    found = expand(space.configs, space.facts, space.policy, Request())
    assert not errors_of(found.findings)
    mode = registry.mode(registry.primaries[FAST])
    return sweep_of(Decision(Action.RUN, "test", mode), Plan(tuple(found.points)))


class Run:
    """A run of the workflow: asks GitHub's evaluator what starts, and keeps the jobs that reached a machine."""

    def __init__(self, github: Evaluator, plan: Written, outputs: dict[str, str]) -> None:
        self.github = github
        self.plan = plan
        self.outputs = outputs
        self.needs: dict[str, Any] = {"plan": {"result": "success", "outputs": outputs}}
        self.ran: Counter[tuple[str, str]] = Counter()
        self.sizes = [sum(utf16_bytes(name) + utf16_bytes(value) for name, value in outputs.items())]

    def ask(self, workflow: str, job: str, what: str, **contexts: Any) -> Any:
        given = {"github": GITHUB, "needs": self.needs, "inputs": {}, "vars": {}, **contexts}
        return self.github.value(workflow, job, what, given)

    def follow(self) -> None:
        """Canary, then every shard, then every job of it, each as its expressions say."""
        if self.ask("run-sweep", "canary", "if"):
            self.benchmark(self.ask("run-sweep", "canary", "input-values"))
        self.needs["canary"] = {"result": "success" if self.ran else "skipped", "outputs": {}}
        if not self.ask("run-sweep", "sweep", "if"):
            return
        include = self.ask("run-sweep", "sweep", "strategy")["matrix"]["include"]
        assert 0 < len(include) <= 256
        for row in include:
            assert row.keys() == {"number", "count"}
            self.shard(self.ask("run-sweep", "sweep", "input-values", matrix=row), row["count"])

    def shard(self, inputs: dict[str, Any], count: int) -> None:
        jobs = [job.record() for job in self.plan.shard(inputs["number"])]
        outputs = {"has-jobs": "true", "jobs": json.dumps(jobs, separators=(",", ":"))}
        self.sizes.append(sum(utf16_bytes(name) + utf16_bytes(value) for name, value in outputs.items()))
        needs = {"points": {"result": "success", "outputs": outputs}}
        assert self.ask("sweep-shard", "benchmark", "if", needs=needs, inputs=inputs) is True
        include = self.ask("sweep-shard", "benchmark", "strategy", needs=needs, inputs=inputs)["matrix"]["include"]
        assert len(include) == count <= 256
        for row in include:
            # GitHub fills in `with:` by the same two expressions for each row; a sample of them is evaluated.
            if row is include[0] or row is include[-1]:
                given = self.ask("sweep-shard", "benchmark", "input-values", matrix=row, inputs=inputs, needs=needs)
                assert given == {**row, "plan-digest": self.outputs["plan-digest"]}
            self.benchmark({**row, "plan-digest": inputs["plan-digest"]})

    def benchmark(self, inputs: dict[str, Any]) -> None:
        assert inputs["plan-digest"] == self.outputs["plan-digest"]
        self.ran[inputs["id"], inputs["runner"]] += 1


@pytest.mark.parametrize("count", [1, 5, 256, 257, 258, 5000, 65_536])
def test_every_point_runs_exactly_once(count: int, github: Evaluator, tmp_path: Path, registry: Registry) -> None:
    sweep = sweep_with(count, tmp_path, registry)
    text = sweep.text()
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    outputs = outputs_of(sweep, text)
    written = read_plan(str(path), outputs["plan-digest"])
    run_ = Run(github, written, outputs)
    run_.follow()
    wanted = Counter((row["id"], row["runner"]) for row in written.rows.values())
    assert len(wanted) == count
    assert run_.ran == wanted
    assert max(run_.sizes) <= JOB_LIMIT
    assert sum(run_.sizes) <= RUN_LIMIT
    assert max(map(utf16_bytes, outputs.values())) < 20_000
    assert len(summary_text(sweep).encode()) <= MAX_SUMMARY
    assert [one.limit.name for one in measures(written, outputs_of_written(written)) if not one.fits] == [
        *(["check runs of the commit"] if count > 50_000 else ()),
        *(["jobs on the page of the run"] if count > 494 else ()),
    ]


def test_what_the_first_job_of_a_shard_really_prints(
    tmp_path: Path, registry: Registry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    sweep = sweep_with(600, tmp_path, registry)
    path = tmp_path / "plan.json"
    path.write_text(sweep.text(), encoding="utf-8")
    digest = outputs_of(sweep, sweep.text())["plan-digest"]
    told: list[str] = []
    for number in (1, 2, 3):
        words = ["shard", "--plan", str(path), "--plan-digest", digest, "--number", str(number)]
        assert run(matrix, words, prog="matrix") == 0
        outputs = dict(line.split("=", 1) for line in capsys.readouterr().out.splitlines())
        assert outputs["has-jobs"] == "true"
        told += [job["id"] for job in json.loads(outputs["jobs"])]
    assert told == [point.id for point in sweep.points if point is not sweep.canary]


def test_a_plan_one_larger_is_refused(tmp_path: Path, registry: Registry) -> None:
    with pytest.raises(Exception, match="65,537 jobs"):
        sweep_with(65_538, tmp_path, registry)


def test_nothing_starts_without_jobs(github: Evaluator) -> None:
    empty = outputs_of(sweep_of(Decision(Action.SKIP, "no label")), "")
    run_ = Run(github, written_of({"version": 1, "points": []}), empty)
    run_.follow()
    assert not run_.ran
