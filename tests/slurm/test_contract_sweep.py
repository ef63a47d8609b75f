"""`python -m runners sweep` on a real Slurm: many points beside each other, each with a receipt, none twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.runners.standin import World, world
from tests.slurm.cluster import Cluster, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def make(tmp_path: Path, cluster: Cluster, shared_cache: Path) -> Callable[..., World]:
    def build(*, evals: bool = False, **variants: dict[str, Any]) -> World:
        made = world(tmp_path, variants, cluster.env, shared_cache)
        done = subprocess.run(
            [sys.executable, "-m", "matrix", "expand", "--format", "json", *(["--all-evals"] if evals else [])],
            cwd=made.checkout, env=made.env, capture_output=True, text=True, check=True,
        )  # fmt: skip
        (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "points": json.loads(done.stdout)}))
        return made

    return build


def argv(made: World, *words: str) -> list[str]:
    named = ["--cluster", "local", "--results", str(made.results), "--repository", str(made.checkout)]
    return made.argv("sweep", "--plan", str(made.folder / "plan.json"), *named, *words)


def sweep(made: World, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv(made, *words), env=made.env, capture_output=True, text=True, timeout=200, check=False)


def test_points_run_beside_each_other_and_a_second_sweep_has_nothing_to_do(make: Callable[..., World]) -> None:
    made = make(**{f"v{conc}": {"conc": conc} for conc in range(1, 31)})
    done = sweep(made, "--max-parallel", "30")
    assert done.returncode == 0, done.stderr + done.stdout
    receipts = [made.receipt(f"v{conc}", conc) for conc in range(1, 31)]
    assert all(receipt["outcome"]["success"] for receipt in receipts)
    assert len({receipt["job"]["id"] for receipt in receipts}) == 30
    assert made.jobs() == []
    again = sweep(made)
    assert again.returncode == 0
    assert again.stdout.count("done before") == 30
    assert [made.receipt(f"v{conc}", conc) for conc in range(1, 31)] == receipts


def test_a_failure_leaves_the_others_alone_and_only_it_runs_again(make: Callable[..., World]) -> None:
    made = make(good={"conc": 1}, bad={"conc": 2, "command": "exit 3"})
    done = sweep(made)
    assert done.returncode == 1
    assert "FAILED 3:0" in done.stdout
    before = made.receipt("good", 1)
    assert before["outcome"]["success"] is True
    again = sweep(made)
    assert again.returncode == 1
    assert again.stdout.count("done before") == 1
    assert made.receipt("good", 1) == before


def test_after_a_failure_the_rest_is_cancelled_when_that_is_asked_for(
    make: Callable[..., World], cluster: Cluster
) -> None:
    made = make(bad={"conc": 1, "command": "exit 3"}, long={"conc": 2, "command": "sleep 60"}, later={"conc": 3})
    done = sweep(made, "--fail-fast", "--max-parallel", "2")
    assert done.returncode == 1
    assert cluster.queue() == []
    assert made.receipt("long", 2)["outcome"]["verdict"] == "cancelled"
    assert "not started" in done.stdout
    assert not (made.results / made.id("later", 3)).exists()


def test_a_signal_cancels_every_job_of_the_sweep(make: Callable[..., World], cluster: Cluster) -> None:
    made = make(**{f"v{conc}": {"conc": conc, "command": "touch /logs/started; sleep 60"} for conc in range(1, 5)})
    process = subprocess.Popen(
        argv(made, "--max-parallel", "3"), env=made.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    outputs = made.folder / "local" / "outputs"
    until(lambda: len(list(outputs.glob("*/logs/started"))) == 3, 30, lambda: "three jobs do not run")
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 143, stderr
    assert cluster.queue() == []
    assert stdout.count("CANCELLED") == 3
    assert all(made.receipt(f"v{conc}", conc)["outcome"]["exit-status"] == 143 for conc in range(1, 4))


def test_nothing_starts_before_every_point_is_known_to_be_the_planned_one(
    make: Callable[..., World], cluster: Cluster
) -> None:
    made = make(one={"conc": 1}, two={"conc": 2})
    path = made.folder / "plan.json"
    plan = json.loads(path.read_text())
    plan["points"][1]["digest"] = "0" * 64
    path.write_text(json.dumps(plan))
    done = sweep(made)
    assert done.returncode == 1
    assert "launch-drift" in done.stderr
    assert not made.results.exists()
    assert sweep(made, "--select", "*c1--*").returncode == 0
    assert sweep(made, "--select", "nothing").returncode == 3
    assert cluster.queue() == []


def test_evaluations_of_one_workspace_run_one_after_another(make: Callable[..., World]) -> None:
    made = make(evals=True, one={"conc": 16}, two={"conc": 32})
    done = sweep(made)
    assert done.returncode == 0, done.stderr + done.stdout
    found = [json.loads(path.read_text()) for path in made.results.glob("*--eval/receipt.json")]
    first, second = sorted((receipt["job"]["slurm-start"], receipt["job"]["slurm-end"]) for receipt in found)
    assert first[1] <= second[0]
    assert all(receipt["results"][0]["file"] == "eval_results_1.json" for receipt in found)
    workspace = made.folder / "local" / "workspace"
    assert list(workspace.glob("results*")) == []
    (workspace / "results_old.json").write_text('{"results": {"gsm8k": {"exact_match": 1.0}}}')
    again = sweep(made, "--results", str(made.folder / "other"))
    assert again.returncode == 1
    assert again.stdout.count("left results_old.json") == 2, again.stdout
