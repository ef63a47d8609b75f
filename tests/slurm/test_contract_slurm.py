"""What `runners.slurm` makes of the texts of a real Slurm."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runners import process
from runners.job import ExitCode, JobId, JobState
from runners.slurm import PROGRAMS, DeniedError, Slurm, SlurmError
from runners.verdict import judge
from tests.slurm.cluster import NODES, Cluster, alive, until

UNKNOWN = JobId(999_999)


@pytest.fixture
def slurm() -> Slurm:
    return Slurm()


@pytest.mark.usefixtures("cluster")
def test_everything_that_a_launch_needs_is_there(slurm: Slurm) -> None:
    assert slurm.missing() == ()
    assert set(PROGRAMS) >= {"sbatch", "squeue", "scontrol", "sacct", "scancel"}
    assert "UP" in slurm.ping()


def test_fake_gpus_are_handed_out(cluster: Cluster) -> None:
    jobs = [cluster.submit("echo $CUDA_VISIBLE_DEVICES", "--gres=gpu:4", "-w", "node1") for _ in range(2)]
    for job in jobs:
        cluster.wait(job, ["COMPLETED"])
    assert [cluster.log(job).read_text().split() for job in jobs] == [["0,1,2,3"], ["4,5,6,7"]]
    wide = cluster.submit("srun -N3 --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME'", "-N3", "--gres=gpu:8")
    cluster.wait(wide, ["COMPLETED"])
    assert sorted(cluster.log(wide).read_text().split()) == list(NODES)


def test_states_of_several_jobs_in_one_call(cluster: Cluster, slurm: Slurm) -> None:
    held = cluster.submit("true", "--hold")
    runs = cluster.submit("sleep 60")
    ended = cluster.submit("exit 3")
    cluster.wait(ended, ["FAILED"])
    cluster.wait(runs, ["RUNNING"])
    rows = slurm.queue([held, runs, ended, UNKNOWN])
    assert {job: row.state for job, row in rows.items()} == {
        held: JobState.PENDING,
        runs: JobState.RUNNING,
        ended: JobState.FAILED,
    }
    assert rows[held].reason == "JobHeldUser"
    assert rows[runs].reason == ""
    assert rows[runs].elapsed
    assert slurm.queue([UNKNOWN]) == {}


def test_the_record_of_a_job_with_awkward_names(cluster: Cluster, slurm: Slurm, tmp_path: Path) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    job = cluster.submit(
        "srun sh -c 'exit 5'; exit 3",
        "--job-name=a b JobState=COMPLETED ExitCode=0:0",
        "--comment=tag-1",
        f"--output={folder}/x ExitCode=9:9 %j.out",
    )
    cluster.wait(job, ["FAILED"])
    record = slurm.show(job)
    assert record is not None
    assert (record.state, record.exit, record.derived) == (JobState.FAILED, ExitCode(3, 0), ExitCode(5, 0))
    assert (record.reason, record.comment, record.nodes) == ("NonZeroExitCode", "tag-1", "node1")
    assert record.stdout == f"{folder}/x ExitCode=9:9 {job}.out"
    assert (record.requeue, record.restarts) == (False, 0)
    assert record.start <= record.end
    assert slurm.show(UNKNOWN) is None


def test_a_job_is_found_by_its_tag_and_no_other(cluster: Cluster, slurm: Slurm) -> None:
    ours = cluster.submit("true", "--hold", "--comment=matrix-12")
    cluster.submit("true", "--hold", "--comment=matrix-123")
    cluster.submit("true", "--hold", "--job-name=matrix-12")
    assert slurm.tagged("matrix-12") == (ours,)
    slurm.cancel([ours])
    cluster.wait(ours, ["CANCELLED"])
    assert slurm.tagged("matrix-12") == (ours,)
    assert slurm.tagged("matrix-1") == ()


def test_cancelling_touches_nothing_else(cluster: Cluster, slurm: Slurm) -> None:
    ended = cluster.submit("true")
    cluster.wait(ended, ["COMPLETED"])
    first, second = cluster.submit("sleep 60", "--job-name=x"), cluster.submit("sleep 60", "--job-name=x")
    slurm.cancel([first, ended, UNKNOWN])
    cluster.wait(first, ["CANCELLED"])
    assert cluster.state(second) in {"PENDING", "RUNNING"}
    assert cluster.state(ended) == "COMPLETED"


def test_no_accounting_is_an_error_and_the_completion_log_answers(cluster: Cluster, slurm: Slurm) -> None:
    job = cluster.submit("srun sh -c 'kill -9 $$'; exit 3")
    cluster.wait(job, ["FAILED"])
    with pytest.raises(SlurmError, match="accounting storage is disabled"):
        slurm.accounting(job)
    record = slurm.completion(job)
    assert record is not None
    assert (record.state, record.exit, record.source) == (JobState.FAILED, ExitCode(3, 0), "sacct -c")
    assert record.nodes == "node1"
    assert slurm.completion(UNKNOWN) is None


def test_steps_that_a_job_ends_itself_are_no_failure(cluster: Cluster, slurm: Slurm, tmp_path: Path) -> None:
    """What the verdict on a job of srtctl rests on: it ends its workers like this in every good run.

    Slurm kills the processes of a step one by one. When the child goes first, its shell may tell of that, and then go.
    """
    ready = tmp_path / "ready"
    step = f"srun sh -c 'trap \"exit 3\" TERM; touch {ready}; sleep 60'"
    job = cluster.submit(f"{step} & until [ -e {ready} ]; do sleep 0.1; done; kill $!; wait; exit 0")
    cluster.wait(job, ["COMPLETED"])
    record = slurm.show(job)
    assert record is not None
    assert record.exit == ExitCode(0, 0)
    assert record.derived in {ExitCode(0, 9), ExitCode(137, 0)}
    assert judge(record, ends_steps=True).passed
    assert not judge(record).passed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_job_of_somebody_else_is_not_ours_to_cancel(cluster: Cluster, slurm: Slurm) -> None:
    job = cluster.submit("sleep 60")
    somebody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

    def as_somebody(argv: Sequence[str], **how: Any) -> process.Done:
        return process.run([*somebody, *argv], **how)

    with pytest.raises(DeniedError, match="Access/permission denied"):
        Slurm(call=as_somebody).cancel([job, UNKNOWN])
    assert slurm.queue([job])[job].state in {JobState.PENDING, JobState.RUNNING}


def test_habits_of_the_user_change_nothing(cluster: Cluster, slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    job = cluster.submit("sleep 60", "--comment=matrix-5")
    cluster.wait(job, ["RUNNING"])
    monkeypatch.setenv("SQUEUE_FORMAT", "%j")
    monkeypatch.setenv("SQUEUE_STATES", "FAILED")
    monkeypatch.setenv("SQUEUE_PARTITION", "urgent")
    monkeypatch.setenv("SACCT_FORMAT", "user")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    monkeypatch.setenv("SCANCEL_INTERACTIVE", "1")
    monkeypatch.setenv("SCANCEL_STATE", "PENDING")
    assert slurm.queue([job])[job].state is JobState.RUNNING
    assert slurm.tagged("matrix-5") == (job,)
    record = slurm.show(job)
    assert record is not None
    assert record.start.startswith("20")
    slurm.cancel([job])
    cluster.wait(job, ["CANCELLED"])


@pytest.mark.slow
def test_a_controller_that_is_down_or_hangs_is_an_error_of_every_call(cluster: Cluster) -> None:
    job = cluster.submit("sleep 60")
    cluster.wait(job, ["RUNNING"])
    controller = cluster.daemons["slurmctld"]
    controller.send_signal(signal.SIGSTOP)
    slurm = Slurm(timeout=1)
    with pytest.raises(SlurmError, match="has not ended after 1 s"):
        slurm.queue([job])
    controller.send_signal(signal.SIGCONT)
    cluster.kill_controller(job)
    slurm = Slurm()
    with pytest.raises(SlurmError, match="Unable to contact slurm controller"):
        slurm.show(job)
    cluster.start_controller()
    until(lambda: cluster.attempt("scontrol", "ping").returncode == 0, 30, cluster.logs)
    assert slurm.queue([job])[job].state is JobState.RUNNING


# --- the cluster itself --------------------------------------------------------------------------

OWNER = """\
import os, sys, time
from tests.slurm import cluster
with cluster.running() as started:
    job = started.submit("sleep 600")
    started.wait(job, ["RUNNING"])
    sys.stdout.write(f"{started.folder}\\n")
    sys.stdout.flush()
    time.sleep(600)
"""


def test_nothing_is_left_when_the_owner_is_killed(cluster: Cluster, root: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], env={**os.environ, "PYTHONPATH": str(root)}, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert folder != cluster.folder
        assert len(alive(folder)) >= 6
        owner.kill()
    deadline = time.monotonic() + 30
    while (alive(folder) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive(folder) == []
    assert not folder.exists()
    assert cluster.idle()
