"""`python -m runners launch` on a real Slurm, srt-slurm stood in for: no orphan, no lost result, no green lie."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.runners.standin import CLIENT, World
from tests.slurm.cluster import Cluster, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


LONG = "touch /logs/started; sleep 60"


def started(made: World) -> Path | None:
    return next(iter((made.folder / "local" / "outputs").glob("*/logs/started")), None)


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    def ready() -> bool:
        assert process.poll() is None, process.communicate()
        return bool(condition())

    until(ready, 30, lambda: "the launch has not come so far")


def test_a_good_point_ends_verified_and_leaves_only_its_results(make: Callable[..., World], cluster: Cluster) -> None:
    made = make(good={"conc": 4}, late={"conc": 8, "env": {"STANDIN": "late"}})
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(made.run, [made.id("good", 4), made.id("late", 8)])
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    for name, conc in (("good", 4), ("late", 8)):
        receipt = made.receipt(name, conc)
        assert receipt["outcome"]["success"] is True
        assert receipt["job"]["state"] == "COMPLETED"
        kept = {path.name for path in (made.results / made.id(name, conc)).iterdir()}
        wanted = {"receipt.json", "recipe.yaml", "srtslurm.yaml", "summary.json", "server-logs.tar.gz"}
        assert kept == wanted | {f"result_conc{conc}.json", ".lock"}
    assert "Benchmark ended with 0" in second.stderr
    assert made.jobs() == []
    assert first.stdout == ""
    comment = cluster.run("scontrol", "show", "job", str(made.receipt("good", 4)["job"]["id"]))
    assert f"Comment={made.receipt('good', 4)['job']['tag']}" in comment
    assert "Requeue=0" in comment


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "exit 3": ({"command": "echo half > /logs/result.txt; exit 3"}, "FAILED 3:0"),
    "killed": ({"command": "kill -9 $$"}, "FAILED 137:0"),
    "worker that exits 0 and no result": ({"command": "true"}, "Slurm's word alone is no success"),
    "half written": (
        {"command": "echo '{\"completed\":' > /logs/results_concurrency_$CONC.json"},
        "may be half written",
    ),
    "nothing succeeded": (
        {"command": "echo '{\"completed\": 0}' > /logs/results_concurrency_$CONC.json"},
        "no request succeeded",
    ),
}


def test_a_bad_job_is_a_failure_and_says_why(make: Callable[..., World]) -> None:
    made = make(**{f"v{index}": {"conc": index + 1, **change} for index, (change, _) in enumerate(BAD.values())})
    with ThreadPoolExecutor() as pool:
        ends = list(pool.map(made.run, [made.id(f"v{index}", index + 1) for index in range(len(BAD))]))
    for index, (end, (_, words)) in enumerate(zip(ends, BAD.values(), strict=True)):
        receipt = made.receipt(f"v{index}", index + 1)
        assert end.returncode == 1
        assert words in end.stderr
        assert receipt["outcome"]["success"] is False
        assert receipt["step"] == "ended"
        assert {"server-logs.tar.gz"} <= {entry["file"] for entry in receipt["results"]}
    assert len(made.jobs()) == len(BAD), "the folders of failed jobs are kept"


def test_a_job_that_srtctl_does_not_name_is_found_by_its_tag(make: Callable[..., World]) -> None:
    made = make(mute={"env": {"STANDIN": "mute"}})
    end = made.run(made.id("mute"))
    assert end.returncode == 0, end.stderr
    assert "found by its tag" in end.stderr


def test_what_is_refused_leaves_no_job_and_a_receipt_that_says_so(make: Callable[..., World], cluster: Cluster) -> None:
    made = make(
        refused={"env": {"STANDIN": "refused"}},
        partition={"conc": 2, "top": {"slurm": {"partition": "nowhere"}}},
        client={"conc": 3, "command": "bash /infmax-workspace/benchmarks/client.sh"},
        model={"conc": 4, "top": {"model": {"path": "/no/such/tiny"}}},
    )
    for name, conc, words in (
        ("refused", 1, "Preflight failed"),
        ("partition", 2, "invalid partition specified: nowhere"),
    ):
        end = made.run(made.id(name, conc))
        assert end.returncode == 1
        assert words in end.stderr
        assert "Traceback" not in end.stderr
        assert made.receipt(name, conc)["outcome"]["success"] is False
    for name, conc, words in (
        ("client", 3, "has no benchmarks/client.sh"),
        ("model", 4, "the folder of the model /no/such/tiny is not there"),
    ):
        end = made.run(made.id(name, conc))
        assert end.returncode == 1
        assert words in end.stderr
        assert not (made.results / made.id(name, conc) / "receipt.json").exists()
    assert cluster.queue() == []
    assert made.jobs() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_job_and_is_the_exit_status(
    make: Callable[..., World], cluster: Cluster, number: signal.Signals
) -> None:
    made = make(long={"command": LONG})
    process = made.start(made.id("long"))
    wait_for(lambda: started(made), process)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + number, stderr
    assert cluster.queue() == []
    receipt = made.receipt("long")
    assert receipt["outcome"]["verdict"] == "cancelled"
    assert receipt["outcome"]["exit-status"] == 128 + number


@pytest.mark.parametrize("wait", [0.5, 3.6])
def test_a_signal_during_the_submission_leaves_no_job(
    make: Callable[..., World], cluster: Cluster, wait: float
) -> None:
    """Before sbatch has run and after it."""
    made = make(slow={"command": LONG, "env": {"STANDIN": "slow"}})
    process = made.start(made.id("slow"))
    path = made.results / made.id("slow") / "receipt.json"
    wait_for(lambda: path.is_file() and "submitting" in path.read_text(), process)
    time.sleep(wait)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 143, stderr
    time.sleep(0.5)
    assert cluster.queue() == []
    assert json.loads(path.read_text())["step"] == "ended"


def test_a_launch_that_was_killed_is_taken_up_and_nothing_is_submitted_twice(
    make: Callable[..., World], cluster: Cluster
) -> None:
    made = make(good={"command": f"touch /logs/started; sleep 6; {CLIENT}"})
    process = made.start(made.id("good"))
    wait_for(lambda: started(made), process)
    process.kill()
    process.communicate()
    assert len(cluster.queue()) == 1, "the job goes on"
    end = made.run(made.id("good"))
    assert end.returncode == 0, end.stderr
    assert "submitted by an earlier launch" in end.stderr
    assert made.receipt("good")["outcome"]["success"] is True
    assert cluster.run("squeue", "-h", "-t", "all", "-o", "%A %k").count(str(made.receipt("good")["job"]["tag"])) == 1


def test_a_job_of_another_digest_is_in_the_way(make: Callable[..., World], cluster: Cluster) -> None:
    made = make(long={"command": LONG})
    process = made.start(made.id("long"))
    wait_for(lambda: started(made), process)
    process.kill()
    process.communicate()
    recipe = made.checkout / "configs" / "recipes" / "t.yaml"
    recipe.write_text(recipe.read_text().replace("sleep 60", "sleep 61"))
    end = made.run(made.id("long"))
    assert end.returncode == 1
    assert "runners cancel" in end.stderr
    (job,) = cluster.queue()
    done = subprocess.run(made.argv("cancel", job, "999999"), env=made.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert re.search(rf"^{job}: (cancelled|it is being cancelled)", done.stderr, re.MULTILINE)
    assert "999999: the controller knows no such job" in done.stderr
    until(lambda: not cluster.queue(), 20, lambda: "the job does not end")
    recipe.write_text(recipe.read_text().replace("sleep 61", json.dumps(CLIENT)[1:-1]))
    end = made.run(made.id("long"))
    assert end.returncode == 0, end.stderr
    earlier = json.loads((made.results / ".earlier" / made.id("long") / "1" / "receipt.json").read_text())
    assert earlier["outcome"]["verdict"] == "cancelled"


def test_two_launches_of_one_point_are_one_job(make: Callable[..., World], cluster: Cluster) -> None:
    made = make(long={"command": "touch /logs/started; sleep 4; false"})
    process = made.start(made.id("long"))
    wait_for(lambda: started(made), process)
    second = made.run(made.id("long"))
    assert second.returncode == 1
    assert "another launch of this point is at work" in second.stderr
    assert len(cluster.queue()) == 1
    process.communicate(timeout=30)
    assert process.returncode == 1


def test_a_plan_binds_a_launch_to_its_digest(make: Callable[..., World], tmp_path: Path) -> None:
    made = make(good={})
    rows = subprocess.run(
        [sys.executable, "-m", "matrix", "expand", "--format", "json"],
        cwd=made.checkout, env=made.env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (row,) = json.loads(rows.stdout)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "points": [row]}))
    fits = made.run("--plan", str(plan), "--id", row["id"], "--dry-run")
    assert fits.returncode == 0, fits.stderr
    planned = "0" * 64
    plan.write_text(json.dumps({"version": 1, "points": [{**row, "digest": planned}]}))
    end = made.run("--plan", str(plan), "--id", row["id"])
    assert end.returncode == 1
    assert planned in end.stderr
    assert row["digest"] in end.stderr
    assert not (made.results / row["id"] / "receipt.json").exists()
    end = made.run("--plan", str(plan), "--id", row["id"], "--allow-drift")
    assert end.returncode == 0, end.stderr
    assert made.receipt("good")["point"]["planned-digest"] == planned
    assert made.receipt("good")["point"]["digest"] == row["digest"]


def test_results_of_an_earlier_launch_are_put_aside(make: Callable[..., World]) -> None:
    made = make(good={})
    assert made.run(made.id("good")).returncode == 0
    first = made.receipt("good")
    assert made.run(made.id("good")).returncode == 0
    earlier = json.loads((made.results / ".earlier" / made.id("good") / "1" / "receipt.json").read_text())
    assert earlier == first
    assert made.receipt("good")["job"]["id"] != first["job"]["id"]


def test_a_results_folder_that_cannot_be_made_is_refused_before_anything_runs(
    make: Callable[..., World], cluster: Cluster
) -> None:
    made = make(good={})
    made.results.write_text("a file")
    end = made.run(made.id("good"), "--results", str(made.results / "below"))
    assert end.returncode == 1
    assert "point's folder cannot be made" in end.stderr
    assert cluster.queue() == []
    assert made.jobs() == []
