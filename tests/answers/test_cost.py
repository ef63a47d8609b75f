"""What jobs take: lengths and where they come from, machines, the clock; and the command over trees, plans, changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.answers.cost import Basis, Estimate, History, estimate, history_of
from matrix.answers.results import Result
from matrix.answers.side import Side, open_side
from matrix.cli.cost import cost as command
from matrix.cli.main import run
from matrix.cli.plan import plan
from matrix.config.fleet import Fleet, fleet_of
from matrix.config.source import loads
from matrix.report.cost import cost_lines
from tests.changelog.support import Repository
from tests.plan.support import added, commit, files, multi, of, single

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FLEET: Final = """\
labels:
  slow: [s0, s1]
  cluster:big: [b0, b1, b2, b3]
  part: [b2, b3]
hardware: {}
"""


def fleet() -> Fleet:
    return fleet_of(loads(FLEET.encode(), "runners.yaml"))


def side(*jobs: tuple[str, str, int, int | None]) -> Side:
    """Rows of id, runner, nodes and minutes; each node has 8 GPUs."""
    rows = {
        name: {
            "id": name, "runner": runner, "digest": f"d-{name}", "node-count": nodes,
            "config-key": name.split("--")[0], **({"duration": minutes * 60} if minutes is not None else {}),
        }
        for name, runner, nodes, minutes in jobs
    }  # fmt: skip
    return Side("jobs", written=rows, record={"gpus": {name: 8 * nodes for name, _, nodes, _ in jobs}})


def ends(found: Estimate) -> dict[str, float | None]:
    return {pool.label: None if pool.seconds is None else pool.seconds / 60 for pool in found.pools}


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([("a", "slow", 1, 60)], {"slow": 60}),
        ([("a", "slow", 1, 60), ("b", "slow", 1, 30)], {"slow": 60}),
        ([("a", "slow", 1, 60), ("b", "slow", 1, 30), ("c", "slow", 1, 10)], {"slow": 60}),
        ([("a", "slow", 1, 60), ("b", "slow", 1, 30), ("c", "slow", 1, 40)], {"slow": 70}),
        ([("a", "slow", 1, 60), ("b", "slow", 2, 30)], {"slow": 90}),
        ([("a", "cluster:big", 3, 60), ("b", "cluster:big", 2, 60)], {"cluster:big": 120}),
        ([("a", "cluster:big", 2, 60), ("b", "cluster:big", 2, 60)], {"cluster:big": 60}),
        ([("a", "slow", 3, 60), ("b", "slow", 1, 10)], {"slow": None}),
        ([("a", "nowhere", 1, 60)], {"nowhere": None}),
        ([("a", "b3", 1, 60), ("b", "b3", 1, 60)], {"b3": 120}),
        ([("a", "cluster:big", 4, 60), ("b", "part", 2, 30), ("c", "slow", 1, 5)],
         {"cluster:big": 60, "part": 90, "slow": 5}),
    ],
)  # fmt: skip
def test_the_clock_is_that_of_list_scheduling(jobs: Any, expected: dict[str, float | None]) -> None:
    found = estimate(side(*jobs), fleet())
    assert ends(found) == expected
    known = [end for end in expected.values() if end is not None]
    assert found.seconds == (None if None in expected.values() else max(known) * 60)


def test_labels_that_share_machines_say_so() -> None:
    found = estimate(side(("a", "cluster:big", 1, 1), ("b", "part", 1, 1), ("c", "slow", 1, 1)), fleet())
    assert {pool.label: pool.share for pool in found.pools} == {
        "cluster:big": ("part",), "part": ("cluster:big",), "slow": (),
    }  # fmt: skip


def test_without_a_runners_file_there_is_no_clock() -> None:
    found = estimate(side(("a", "slow", 1, 60)), None)
    assert (found.seconds, found.total.gpu_hours) == (None, 8)


def result(name: str, seconds: float | None, *, digest: str = "", success: bool = True) -> Result:
    return Result(id=name, digest=digest or f"d-{name}", path=name, success=success, seconds=seconds)


def test_lengths_are_of_the_job_then_of_its_config_then_of_its_row() -> None:
    history = history_of(
        [
            result("k--1", 600),
            result("k--1", 1200),
            result("k--1", 6000),
            result("k--1", 9, success=False),
            result("k--1", None),
            result("k--old", 3600, digest="gone"),
            result("k--1--eval", 60, digest="accuracy"),
        ]
    )
    assert history == History({"d-k--1": 1200, "gone": 3600, "accuracy": 60}, {("k", False): 2400, ("k", True): 60})
    names = ("k--1", "k--2", "k--2--eval", "n--1", "n--2")
    jobs = [(name, "slow", 1, 30 if name == "n--1" else None) for name in names]
    found = estimate(side(*jobs), fleet(), history)
    assert {basis: count for basis, count in found.bases.items() if count} == {
        Basis.JOB: 1, Basis.CONFIG: 2, Basis.STATED: 1, Basis.UNKNOWN: 1,
    }  # fmt: skip
    seconds = 1200 + 2400 + 60 + 1800
    assert found.total.gpu_hours == pytest.approx(8 * seconds / 3600)
    assert found.total.untimed == 1
    assumed = estimate(side(*jobs), fleet(), history, 600)
    assert assumed.total.gpu_hours == pytest.approx(8 * (seconds + 600) / 3600)
    assert (assumed.total.untimed, assumed.bases[Basis.ASSUMED]) == (0, 1)


def test_the_dearest_config_comes_first() -> None:
    found = estimate(side(("a--1", "slow", 1, 10), ("b--1", "slow", 2, 10), ("c--1", "slow", 1, None)), fleet())
    assert [config.key for config in found.configs] == ["b", "a", "c"]


A: Final = single("a", "[4, 16]", "[1, 2]") + multi("m", (1, "[8, 32]", "override_a"), recipe="r.yaml")


class Said:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    scratch = Repository(tmp_path / "scratch")
    commit(scratch, A)
    monkeypatch.chdir(scratch.folder)
    monkeypatch.setenv("COLUMNS", "80")
    return scratch


@pytest.fixture
def cost(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def call(*args: str) -> Said:
        status = run(command, args, prog="matrix cost")
        return Said(status, *capsys.readouterr())

    return call


@pytest.mark.parametrize("width", [40, 50, 60, 80, 120])
def test_no_number_is_cut_where_the_terminal_is_narrow(width: int) -> None:
    key = "dsv4-fp4-mi355x-sglang-disagg-agentic-hicache-mtp"
    found = estimate(side(*[(f"{key}--{number}", "cluster:big", 2, 600) for number in range(1234)]), fleet())

    def row(columns: int) -> str:
        return next(line for line in cost_lines(found, columns) if line.startswith("dsv4-") and "1,234" in line)

    name, *numbers = row(width).split()
    assert (len(row(width)) <= width, numbers[0], numbers[-2:]) == (True, "1,234", row(200).split()[-2:])
    begin, cut, end = name.partition("…")
    assert name == key if not cut else (key.startswith(begin), key.endswith(end), width < 80) == (True, True, True)


@pytest.mark.usefixtures("repository")
def test_the_working_tree(cost: Callable[..., Said]) -> None:
    said = cost()
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == "working tree: 16 jobs, 18 nodes, 16 GPU-hours; at least 1 h 0 min on the clock"
    assert [line.split() for line in lines[2:4]] == [
        ["pool", "jobs", "nodes", "GPU-hours", "untimed", "machines", "clock"],
        ["cluster:mi355x-a", "16", "18", "16", "14", "2", "at", "least", "1", "h", "0", "min"],
    ]
    assert max(map(len, lines)) <= 80
    record = cost("--format", "json").record()
    with open_side(None) as tree:
        assert record["jobs"] == len(tree.ids)
    assert sum(config["jobs"] for config in record["configs"]) == record["jobs"]
    assert record["lengths"] == {"job": 0, "config": 0, "stated": 2, "assumed": 0, "unknown": 14}


@pytest.mark.usefixtures("repository")
def test_the_filters_are_those_of_expand(cost: Callable[..., Said]) -> None:
    assert cost("--config-keys", "a", "--scenario-type", "agentic-coding", "--format", "json").record()["jobs"] == 3
    assert cost("--config-keys", "m", "--no-evals", "--format", "json").record()["nodes"] == 2
    assert cost("--config-keys", "nothing").status == 1
    empty = cost("--config-keys", "m", "--single-node")
    assert (empty.status, empty.out) == (3, "")


@pytest.mark.usefixtures("repository")
def test_history_and_assumption(tmp_path: Path, cost: Callable[..., Said]) -> None:
    with open_side(None) as tree:
        name = next(name for name in tree.ids if "agentic" in name)
        receipt = {
            "version": 1, "step": "ended", "point": {"id": name, "digest": tree.digest(name), "row": tree.row(name)},
            "software": {}, "inputs": {}, "job": {}, "results": [], "outcome": {"success": True},
            "times": {"ended": "2026-11-01T00:00:00+00:00", "ran-seconds": 5400.0},
        }  # fmt: skip
    folder = tmp_path / "earlier" / name
    folder.mkdir(parents=True)
    (folder / "receipt.json").write_text(json.dumps(receipt), encoding="utf-8")
    record = cost(
        "--config-keys", "a", "--no-evals", "--history", str(tmp_path / "earlier"), "--format", "json"
    ).record()
    assert record["lengths"] == {"job": 1, "config": 3, "stated": 0, "assumed": 0, "unknown": 0}
    assert record["gpu-hours"] == 4 * 8 * 1.5
    text = cost("--config-keys", "a", "--history", str(tmp_path / "earlier")).out
    assert "67% measured (1 measured of this very job, 3 the median of its config" in " ".join(text.split())
    assert cost("--config-keys", "m", "--no-evals", "--assume", "30", "--format", "json").record()["gpu-hours"] == 8
    assert cost("--history", str(tmp_path / "nowhere")).status == 1


def test_a_change_is_what_its_log_entries_run(repository: Repository, cost: Callable[..., Said]) -> None:
    base = repository.git("rev-parse", "HEAD").strip()
    commit(repository, A.replace("[1, 2]", "[1, 2, 3]"), added(of("a")))
    change = cost("--base", base, "--format", "json").record()
    assert change["gpu-hours"] == 24
    assert change["name"].startswith(base[:12])


def test_a_plan_file(repository: Repository, cost: Callable[..., Said], capsys: pytest.CaptureFixture[str]) -> None:
    base = repository.git("rev-parse", "HEAD").strip()
    commit(repository, A.replace("[1, 2]", "[1, 2, 3]"), added(of("a"), of("m")))
    assert run(plan, ["--base-ref", base, "--format", "json"], prog="matrix plan") == 0
    repository.write(capsys.readouterr().out.encode(), "plan.json")
    whole = cost("plan.json", "--format", "json").record()
    change = cost("--base", base, "--head", "HEAD", "--format", "json").record()
    assert {**whole, "name": ""} == {**change, "name": ""}
    assert whole["gpu-hours"] == 24
    plan_record = json.loads((repository.folder / "plan.json").read_text(encoding="utf-8"))
    assert whole["nodes"] == plan_record["cost"]["nodes"]
    assert whole["gpu-hours"] == plan_record["cost"]["gpu-hours"]
    trimmed = cost("--base", base, "--trim-conc", "--format", "json").record()
    assert trimmed["jobs"] < change["jobs"]


@pytest.mark.parametrize(
    "args",
    [
        ("plan.json", "--base", "HEAD"), ("--head", "HEAD"), ("plan.json", "--trim-conc"),
        ("--base", "HEAD", "--config-keys", "a"), ("--base", "HEAD", "--no-evals"), ("--assume", "0"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("repository")
def test_what_does_not_go_together(cost: Callable[..., Said], args: tuple[str, ...]) -> None:
    assert cost(*args).status == 2


@pytest.mark.usefixtures("repository")
def test_a_change_that_runs_nothing(cost: Callable[..., Said]) -> None:
    said = cost("--base", "HEAD")
    assert (said.status, said.out, said.err) == (3, "", "matrix: nothing to run: no entry was added.\n")


def test_the_budget_is_told(repository: Repository, cost: Callable[..., Said]) -> None:
    repository.write(b"[tool.matrix]\nbudget-gpu-hours = 20\n", "pyproject.toml")
    assert "budget-gpu-hours: 16 of 20, 80%\n" in cost().out
    repository.write(b"[tool.matrix]\nbudget-gpu-hours = 10\n", "pyproject.toml")
    said = cost()
    assert said.status == 0
    assert "budget-gpu-hours: 16 of 10, 160%; a plan that takes so much is refused" in said.out
    assert "budget-gpu-hours: 16 of 10" in cost("--format", "markdown").out


def test_jobs_that_no_machine_can_run(repository: Repository, cost: Callable[..., Said]) -> None:
    for name, text in files(A).items():
        repository.write(text.replace("[mi355x-a_00, mi355x-a_01]", "[mi355x-a_00]").encode(), name)
    said = cost("--config-keys", "m")
    assert "wants more nodes than its 1" in " ".join(said.out.split())
    assert "no end" in said.out
