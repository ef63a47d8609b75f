"""`runners.follow` and `runners.watch` on a real Slurm: every way in which a job can end, or seem to."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.display import PlainDisplay
from runners.follow import Followed, FollowPatience, follow
from runners.job import ExitCode, JobId
from runners.signals import Signals
from runners.slurm import Slurm
from runners.verdict import Outcome
from runners.watch import End, Live, Patience, Watch
from tests.runners import follow_driver
from tests.slurm.cluster import Cluster, until

# Ends are looked for more often than a user would, so that the tests are short; nothing else is different.
SOON = Patience(first=0.25, longest=1.0, unverified=3.0)


class Following:
    """A job followed in this process, with what was shown."""

    def __init__(self, job: JobId, log: Path | None = None) -> None:
        self.job = job
        self.log = log
        self.stream = io.StringIO()

    def __call__(self) -> Followed:
        clock = Signals()
        return follow(
            self.job,
            slurm=Slurm(interrupt=clock.fileno),
            clock=clock,
            display=PlainDisplay(self.stream),
            log=self.log,
            patience=FollowPatience(watch=SOON, pulse=0.25, quiet=0.25),
        )

    @property
    def shown(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    def says(self, text: str) -> bool:
        return text in self.stream.getvalue()


def meanwhile(following: Following, action: Callable[[], object]) -> Followed:
    """Follow, and do something in another thread once the job runs."""
    failures: list[BaseException] = []

    def act() -> None:
        try:
            until(lambda: following.says("RUNNING"), 30, following.stream.getvalue)
            action()
        except BaseException as failure:  # noqa: BLE001 - it is raised again in the thread of the test
            failures.append(failure)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        return following()
    finally:
        thread.join(60)
        for failure in failures:
            raise failure


# --- ends ----------------------------------------------------------------------------------------

ENDS = {
    "success": ("echo hello; exit 0", Outcome.PASSED, ExitCode(0, 0)),
    "exit 3": ("echo hello; exit 3", Outcome.FAILED, ExitCode(3, 0)),
    "killed": ("echo hello; kill -9 $$", Outcome.FAILED, ExitCode(0, 9)),
    "segmentation fault": ("echo hello; kill -SEGV $$", Outcome.FAILED, ExitCode(0, 11)),
    "child killed": ("echo hello; sh -c 'kill -9 $$'; exit $?", Outcome.FAILED, ExitCode(137, 0)),
    "step failed": ("echo hello; srun false; exit 0", Outcome.FAILED, ExitCode(0, 0)),
    "words of failure": ("echo hello; echo 'error: Killed CANCELLED'; exit 0", Outcome.PASSED, ExitCode(0, 0)),
}


def test_the_ends_of_jobs(cluster: Cluster) -> None:
    """One after the other they would wait a second each for the scheduler."""
    followings = {name: Following(cluster.submit(script)) for name, (script, _, _) in ENDS.items()}
    ends = {name: following() for name, following in followings.items()}
    wanted = {name: (outcome, code) for name, (_, outcome, code) in ENDS.items()}
    assert {name: (end.verdict.outcome, end.record and end.record.exit) for name, end in ends.items()} == wanted
    for name, end in ends.items():
        assert end.exit_status == int(wanted[name][0] is not Outcome.PASSED), name
        assert end.log == cluster.log(end.job), name
        assert "hello" in followings[name].shown, name


def test_a_job_that_cannot_be_launched_has_no_log(cluster: Cluster) -> None:
    following = Following(cluster.submit("echo hello", "--output=/proc/no/such/%j.out"))
    followed = following()
    assert followed.verdict.outcome is Outcome.FAILED
    assert "output folder" in followed.verdict.why
    assert followed.log is None


def test_every_line_is_shown_up_to_the_last_one_without_an_end(cluster: Cluster) -> None:
    following = Following(cluster.submit("for i in $(seq 20000); do echo line $i; done; printf last"))
    assert following().verdict.passed
    lines = [line for line in following.shown if line.startswith(("line", "last"))]
    assert lines == [*(f"line {number}" for number in range(1, 20001)), "last"]


def test_a_log_that_appears_late(cluster: Cluster, tmp_path: Path) -> None:
    """As on a shared file system: the job has ended, and its log is not to be seen yet."""
    job = cluster.submit("echo early", f"--output={tmp_path}/hidden-%j")
    log = tmp_path / f"late-{job}.log"

    def appear() -> None:
        cluster.wait(job, ["COMPLETED"])
        time.sleep(2)
        (tmp_path / f"hidden-{job}").rename(log)

    thread = threading.Thread(target=appear)
    thread.start()
    following = Following(job, log)
    followed = following()
    thread.join()
    assert followed.verdict.passed
    assert "early" in following.shown
    assert followed.log == log


@pytest.mark.slow
def test_a_job_that_runs_into_its_time_limit(cluster: Cluster) -> None:
    following = Following(cluster.submit("sleep 600", "--time=1"))

    def shorten() -> None:
        cluster.run("scontrol", "update", f"jobid={following.job}", "EndTime=now+1")

    followed = meanwhile(following, shorten)
    assert followed.verdict.outcome is Outcome.FAILED
    assert "time limit" in followed.verdict.why
    assert followed.record is not None
    assert followed.record.word == "TIMEOUT"


def test_a_job_that_somebody_else_cancels(cluster: Cluster) -> None:
    following = Following(cluster.submit("trap 'exit 0' TERM; sleep 600 & wait"))
    followed = meanwhile(following, lambda: cluster.run("scancel", str(following.job)))
    assert followed.verdict.outcome is Outcome.CANCELLED
    assert (followed.exit_status, followed.signal, followed.cancelled) == (1, None, False)


# --- jobs that wait ------------------------------------------------------------------------------


def test_why_a_job_waits(cluster: Cluster) -> None:
    failed = cluster.submit("exit 1")
    cluster.wait(failed, ["FAILED"])
    for node in ("node2", "node3"):
        cluster.set_node(node, "drain")
    waiting = {
        cluster.submit("true", "--hold"): "scontrol release",
        cluster.submit("true", f"--dependency=afterok:{failed}"): "will never start",
        cluster.submit("true", "-N2"): "sinfo -R",
    }
    told: list[str] = []
    clock = Signals()
    watch = Watch(Slurm(), waiting, clock=clock, tell=told.append, patience=SOON)
    deadline = clock.now() + 30
    while len(told) < 3 and clock.now() < deadline:
        clock.sleep(watch.due - clock.now())
        watch.tick()
    for job, words in waiting.items():
        assert [line for line in told if f"job {job} waits" in line and words in line], told
    assert watch.open == tuple(waiting)
    cluster.run("scancel", *map(str, waiting))
    while watch.open and clock.now() < deadline:
        clock.sleep(watch.due - clock.now())
        watch.tick()
    assert watch.open == ()
    assert len(told) == 3


# --- jobs that are taken away --------------------------------------------------------------------


def taken_away(cluster: Cluster, requeue: str, take: Callable[[JobId], None]) -> tuple[Followed, Following]:
    job = cluster.submit("echo run $SLURM_RESTART_COUNT; sleep 3", requeue, "--open-mode=append", "-w", "node1")
    following = Following(job)
    return meanwhile(following, lambda: take(job)), following


def resume(cluster: Cluster, job: JobId) -> None:
    cluster.wait(job, ["PENDING"])
    # Slurm holds a requeued job back for two minutes. A job that starts in the second in which its node was told to end
    # it fails there: the node still takes it for the old one.
    cluster.run("scontrol", "update", f"jobid={job}", "StartTime=now+2")


def test_a_node_that_fails_ends_a_job_that_may_not_be_requeued(cluster: Cluster) -> None:
    followed, _ = taken_away(cluster, "--no-requeue", lambda _: cluster.set_node("node1", "down"))
    assert followed.verdict.outcome is Outcome.INFRASTRUCTURE
    assert followed.record is not None
    assert followed.record.word == "NODE_FAIL"


def test_a_node_that_fails_puts_a_job_back_and_that_is_no_end(cluster: Cluster) -> None:
    def fail(job: JobId) -> None:
        cluster.set_node("node1", "down")
        cluster.wait(job, ["PENDING"])
        cluster.set_node("node1", "resume")
        resume(cluster, job)

    followed, following = taken_away(cluster, "--requeue", fail)
    assert followed.record is not None
    assert (followed.record.word, followed.record.restarts) == ("COMPLETED", 1)
    assert followed.verdict.outcome is Outcome.FAILED
    assert "again once" in followed.verdict.why
    assert [line for line in following.shown if line.startswith("run")] == ["run", "run 1"]


def urgent(cluster: Cluster) -> None:
    job = cluster.submit("true", "--partition=urgent", "--exclusive", "-w", "node1")
    cluster.wait(job, ["COMPLETED"])


def test_a_preempted_job_that_may_not_be_requeued_has_ended(cluster: Cluster) -> None:
    followed, _ = taken_away(cluster, "--no-requeue", lambda _: urgent(cluster))
    assert followed.verdict.outcome is Outcome.INFRASTRUCTURE
    assert "preempted" in followed.verdict.why


def test_a_preempted_job_that_is_requeued_goes_on(cluster: Cluster) -> None:
    def preempt(job: JobId) -> None:
        urgent(cluster)
        resume(cluster, job)

    followed, following = taken_away(cluster, "--requeue", preempt)
    assert followed.record is not None, followed.verdict
    assert (followed.record.word, followed.record.restarts) == ("COMPLETED", 1), followed
    assert followed.verdict.outcome is Outcome.FAILED
    assert following.says("back in the queue")


# --- controllers and memories --------------------------------------------------------------------


@pytest.mark.slow
def test_a_controller_that_dies_and_comes_back(cluster: Cluster) -> None:
    following = Following(cluster.submit("sleep 12; exit 9"))

    def outage() -> None:
        cluster.kill_controller(following.job)
        until(lambda: following.says("does not answer"), 60, following.stream.getvalue)
        cluster.start_controller()

    followed = meanwhile(following, outage)
    assert followed.verdict.outcome is Outcome.FAILED
    assert followed.record is not None
    assert followed.record.exit == ExitCode(9, 0)
    assert sum("does not answer" in line for line in following.shown) == 1
    assert sum("answers again" in line for line in following.shown) == 1


def test_a_controller_that_has_lost_its_memory(cluster: Cluster) -> None:
    """The state of the job is gone everywhere: that is a failure, and not one to wait for for ever."""
    following = Following(cluster.submit("sleep 600"))

    def forget() -> None:
        cluster.end("slurmctld")
        cluster.start_controller(cold=True)

    followed = meanwhile(following, forget)
    assert followed.verdict.outcome is Outcome.UNVERIFIED
    assert "cannot be verified" in followed.verdict.why
    assert "accounting storage is disabled" in followed.verdict.why
    assert followed.exit_status == 1


@pytest.mark.slow
def test_jobs_that_the_controller_has_purged(cluster: Cluster) -> None:
    cluster.set_min_job_age(2)
    jobs = {cluster.submit("exit 0"): Outcome.PASSED, cluster.submit("exit 3"): Outcome.FAILED}
    for job in jobs:
        until(lambda job=job: cluster.state(job) == "", 60, cluster.logs)  # type: ignore[misc]
    for job, outcome in jobs.items():
        followed = Following(job, cluster.log(job))()
        assert followed.verdict.outcome is outcome
        assert followed.record is not None
        assert followed.record.source == "sacct -c"


def test_thirty_jobs_at_once(cluster: Cluster) -> None:
    jobs = [cluster.submit(f"exit {number % 3}") for number in range(30)]
    clock = Signals()
    watch = Watch(Slurm(), jobs, clock=clock, tell=lambda _: None, patience=SOON)
    deadline = clock.now() + 60
    while watch.open and clock.now() < deadline:
        clock.sleep(watch.due - clock.now())
        watch.tick()
    ends = {job: watch.status(job) for job in jobs}
    assert not any(isinstance(end, Live) for end in ends.values())
    codes = [end.record.exit.code for end in ends.values() if isinstance(end, End) and end.record and end.record.exit]
    assert codes == [number % 3 for number in range(30)]


# --- signals -------------------------------------------------------------------------------------


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
