"""A follower that is told to stop, on a real Slurm: one cancel of its own job, whatever the job and Slurm do then."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.job import JobId
from tests.runners import follow_driver
from tests.slurm.cluster import Cluster, until


class Driver:
    """`follow` in a process of its own, with every scancel written down."""

    def __init__(self, job: JobId, folder: Path, root: Path) -> None:
        self.job = job
        self.calls = folder / "calls"
        programs = folder / "bin"
        programs.mkdir(parents=True)
        scancel = programs / "scancel"
        scancel.write_text(f'#!/bin/sh\necho "$*" >> {self.calls}\nPATH=${{PATH#*:}} exec scancel "$@"\n')
        scancel.chmod(0o755)
        self.errors = (folder / "stderr").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, follow_driver.__file__, str(job)],
            env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(root)},
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def shown(self) -> str:
        return Path(self.errors.name).read_text()

    def wait_for(self, text: str) -> None:
        until(lambda: text in self.shown(), 30, self.shown)

    def end(self) -> dict[str, object]:
        output, _ = self.process.communicate(timeout=60)
        return json.loads(output)  # type: ignore[no-any-return]


@pytest.fixture
def drive(cluster: Cluster, tmp_path: Path, root: Path) -> Iterator[Callable[[JobId], Driver]]:
    """Follow a job of the cluster in another process; it ends with the test."""
    assert cluster.idle()
    drivers: list[Driver] = []

    def start(job: JobId) -> Driver:
        drivers.append(Driver(job, tmp_path / str(job), root))
        return drivers[-1]

    yield start
    for driver in drivers:
        with driver.process, driver.errors:
            driver.process.kill()


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_a_signal_cancels_the_job_once_and_only_that(
    cluster: Cluster, drive: Callable[[JobId], Driver], state: str
) -> None:
    other = cluster.submit("sleep 600")
    drivers: dict[signal.Signals, Driver] = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        drivers[number] = drive(cluster.submit("sleep 600", *(["--hold"] if state == "PENDING" else [])))
    for number, driver in drivers.items():
        driver.wait_for(f"job {driver.job} {state}")
        driver.process.send_signal(number)
        until(driver.calls.exists, 30, driver.shown)
        driver.process.send_signal(signal.SIGTERM)
        driver.process.send_signal(signal.SIGINT)
    for number, driver in drivers.items():
        result = driver.end()
        assert driver.process.returncode == 128 + number
        assert (result["state"], result["signal"], result["cancelled"]) == ("CANCELLED", number, True)
        assert driver.calls.read_text().splitlines() == [str(driver.job)]
        if state == "RUNNING":
            assert re.search(rf"JOB {driver.job} ON node\d CANCELLED", driver.shown())
    assert cluster.state(other) in {"PENDING", "RUNNING"}


def test_a_job_that_resists_is_waited_for(cluster: Cluster, drive: Callable[[JobId], Driver]) -> None:
    job = cluster.submit("srun sh -c 'trap \"\" TERM; while :; do sleep 1; done'")
    driver = drive(job)
    driver.wait_for(f"job {job} RUNNING")
    driver.process.send_signal(signal.SIGTERM)
    result = driver.end()
    assert driver.process.returncode == 143
    assert result["state"] == "CANCELLED"
    assert cluster.state(job) == "CANCELLED"


@pytest.mark.slow
def test_a_signal_while_the_controller_is_away_cancels_when_it_is_back(
    cluster: Cluster, drive: Callable[[JobId], Driver]
) -> None:
    job = cluster.submit("sleep 600")
    driver = drive(job)
    driver.wait_for(f"job {job} RUNNING")
    cluster.kill_controller(job)
    driver.process.send_signal(signal.SIGTERM)
    driver.wait_for("was not taken")
    cluster.start_controller()
    result = driver.end()
    assert driver.process.returncode == 143
    assert result["state"] == "CANCELLED"
