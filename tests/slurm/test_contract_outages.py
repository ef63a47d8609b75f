"""What is known of a job when the controller is away, has forgotten it, or knows many: on a real Slurm."""

import pytest

from runners.job import ExitCode
from runners.signals import Signals
from runners.slurm import Slurm
from runners.verdict import Outcome
from runners.watch import End, Live, Watch
from tests.slurm.cluster import Cluster, until
from tests.slurm.following import SOON, Following, meanwhile


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
