"""What a host can do to a launch on a real Slurm: a full disk, folders that nobody can write to, a clock that jumps."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runners.standin import World
    from tests.slurm.cluster import Cluster

# A small disk of its own below the results folder, seen by this process and its children alone; what is on it goes with
# them, so the receipts are copied out.
ON_A_SMALL_DISK = """
set -u
results=$1 out=$2 size=$3
shift 3
mkdir -p "$results"
mount -t tmpfs -o size="$size" none "$results"
"$@" 2>"$out/first"
echo $? >"$out/status"
find "$results" -type f >"$out/files"
cat "$results"/*/receipt.json >"$out/receipt" 2>/dev/null
mount -o remount,size=64m "$results"
"$@" 2>"$out/second"
echo $? >>"$out/status"
cat "$results"/*/receipt.json >"$out/receipt-again"
"""
BIG = """printf '{"completed": 4, "num_prompts": 4, "pad": "%0600000d"}' 0 >/logs/results_concurrency_$CONC.json"""


def on_a_small_disk(made: World, size: str, *argv: str) -> list[int]:
    """The statuses of two launches: on a disk of this size, and when it has grown."""
    alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    probe = subprocess.run(
        [*alone, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        pytest.skip(f"a disk cannot be mounted here: {probe.stderr.strip()}")
    words = [*alone, "sh", "-c", ON_A_SMALL_DISK, "sh", str(made.results), str(made.folder), size, *argv]
    subprocess.run(words, env=made.env, check=True, timeout=120)
    return [int(word) for word in (made.folder / "status").read_text().split()]


def tags(cluster: Cluster, made: World, name: str) -> list[str]:
    """The tags of all jobs that the cluster remembers of a point."""
    known = cluster.run("squeue", "-h", "-t", "all", "-o", "%k").split()
    return [tag for tag in known if tag.startswith(f"{made.id(name)}.")]


def test_a_disk_that_is_full_before_the_submission_has_no_job(make: Callable[..., World], cluster: Cluster) -> None:
    made = make(fits={})
    statuses = on_a_small_disk(made, "4k", *made.launch_argv(made.id("fits")))
    first = (made.folder / "first").read_text()
    assert statuses == [1, 0], first + (made.folder / "second").read_text()
    assert "No space left on device" in first
    assert "Traceback" not in first
    again = json.loads((made.folder / "receipt-again").read_text())
    assert tags(cluster, made, "fits") == [again["job"]["tag"]], "the first launch has submitted nothing"
    assert cluster.queue() == []


def test_a_disk_too_small_for_the_results_is_a_failure_until_it_has_grown(
    make: Callable[..., World], cluster: Cluster
) -> None:
    """No second job is run for what the first one has measured."""
    made = make(big={"command": BIG})
    statuses = on_a_small_disk(made, "300k", *made.launch_argv(made.id("big")))
    first = (made.folder / "first").read_text()
    assert statuses == [1, 0], first + (made.folder / "second").read_text()
    assert "result-copy" in first
    assert "No space left on device" in first
    assert "Traceback" not in first
    # Half a copy would have taken the room of the receipt.
    receipt = json.loads((made.folder / "receipt").read_text())
    assert (receipt["step"], receipt["outcome"]["success"]) == ("submitted", False)
    names = {line.rpartition("/")[2] for line in (made.folder / "files").read_text().splitlines()}
    assert names <= {"receipt.json", "recipe.yaml", "srtslurm.yaml", "summary.json", "server-logs.tar.gz", ".lock"}
    assert cluster.queue() == []
    again = json.loads((made.folder / "receipt-again").read_text())
    assert (again["step"], again["outcome"]["success"]) == ("ended", True)
    assert tags(cluster, made, "big") == [receipt["job"]["tag"]] == [again["job"]["tag"]]
    assert {each["file"] for each in again["results"]} == {"server-logs.tar.gz", "result_conc1.json"}
    assert made.jobs() == []


def test_a_folder_of_outputs_that_cannot_be_made_has_no_job(make: Callable[..., World], cluster: Cluster) -> None:
    made = make(nowhere={})
    (made.folder / "local" / "outputs").write_text("a file")
    end = made.run(made.id("nowhere"))
    assert end.returncode == 1
    assert str(made.folder / "local" / "outputs") in end.stderr
    assert "Traceback" not in end.stderr
    assert cluster.queue() == []
    assert tags(cluster, made, "nowhere") == []


CLOCK = """
import datetime, os, random, time
real, now = time.time, datetime.datetime.now
def shift():
    return random.uniform(-7200, 7200)
time.time = lambda: real() + shift()
class Jumping(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return now(tz) + datetime.timedelta(seconds=shift())
datetime.datetime = Jumping
"""


def test_a_clock_that_jumps_changes_no_verdict_and_no_wait(make: Callable[..., World], cluster: Cluster) -> None:
    made = make(good={}, bad={"conc": 2, "command": "exit 3"})
    (made.folder / "sitecustomize.py").write_text(CLOCK)
    env = {**made.env, "PYTHONPATH": f"{made.folder}{os.pathsep}{made.env['PYTHONPATH']}"}

    def launch(point: str) -> subprocess.CompletedProcess[str]:
        argv = made.launch_argv(point)
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)

    with ThreadPoolExecutor() as pool:
        good, bad = pool.map(launch, [made.id("good"), made.id("bad", 2)])
    assert (good.returncode, bad.returncode) == (0, 1), good.stderr + bad.stderr
    assert "FAILED 3:0" in bad.stderr
    for name, conc in (("good", 1), ("bad", 2)):
        times = made.receipt(name, conc)["times"]
        assert 0 <= times["waited-seconds"] + times["ran-seconds"] < 60
    assert cluster.queue() == []
