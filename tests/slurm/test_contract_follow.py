"""`runners.follow` and `runners.watch` on a real Slurm: every way in which a job can end, wait or be taken away."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.follow import Followed
from runners.job import ExitCode, JobId
from runners.signals import Signals
from runners.slurm import Slurm
from runners.verdict import Outcome
from runners.watch import Watch
from tests.slurm.cluster import Cluster
from tests.slurm.following import SOON, Following, meanwhile

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
    assert "ended by signal 9" in ends["killed"].verdict.why


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
