"""Texts of the Slurm programs, and what is asked of them. The samples were recorded from Slurm 22.05.8."""

from datetime import datetime

import pytest

from runners.job import ExitCode, JobId, JobState
from runners.slurm import QueueRow, Slurm, SlurmError, read_accounting, read_job, read_queue
from tests.runners.scripted import NO_ACCOUNTING, NO_CONTROLLER, NO_SUCH_JOB, TIMED_OUT, Programs, failed

QUEUE = """\
3 PENDING 0:00 ReqNodeNotAvail, UnavailableNodes:node1
7 NODE_FAIL 0:02 NodeDown
13 PENDING 0:00 Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions
16 RUNNING 1-02:03:04 None
18_0 PENDING 0:00 Resources
19+1 PENDING 0:00 Resources
"""

# Job name and comment are as awkward as they were in the recording.
JOB = """\
JobId=1 JobName=a b JobState=FAILED
   UserId=root(0) GroupId=root(0) MCS_label=N/A
   Priority=4294901759 Nice=0 Account=(null) QOS=(null)
   JobState=COMPLETED Reason=None Dependency=(null)
   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0
   DerivedExitCode=0:9
   RunTime=00:00:02 TimeLimit=UNLIMITED TimeMin=N/A
   SubmitTime=2026-11-30T21:48:20 EligibleTime=2026-11-30T21:48:20
   StartTime=2026-11-30T21:48:20 EndTime=2026-11-30T21:48:22 Deadline=N/A
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=node[1-2]
   BatchHost=node1
   JOB_GRES=(null)
     Nodes=node1 CPU_IDs=0 Mem=0 GRES=
   Command=/home/u/j1.sh
   WorkDir=/home/u
   Comment=tag 1 ExitCode=7:0 \n\
   StdErr=/home/u/my runs/slurm-1.out
   StdIn=/dev/null
   StdOut=/home/u/my runs/slurm-1.out
   Power=
"""


def test_rows_of_squeue() -> None:
    rows = read_queue(QUEUE)
    assert list(rows) == [3, 7, 13, 16]
    assert rows[3].reason == "ReqNodeNotAvail, UnavailableNodes:node1"
    assert rows[7] == QueueRow(JobState.NODE_FAIL, "NODE_FAIL", "0:02", "NodeDown")
    assert rows[13].reason.endswith("partitions")
    assert rows[16].reason == ""
    assert read_queue("900 RUNNING\n\nCLUSTER: x\n") == {900: QueueRow(JobState.RUNNING, "RUNNING", "", "")}


@pytest.mark.parametrize("text", [JOB, f"\n{JOB}\n"])
def test_a_record_of_scontrol(text: str) -> None:
    record = read_job(text, JobId(1))
    assert record is not None
    assert (record.state, record.exit, record.derived) == (JobState.COMPLETED, ExitCode(0, 0), ExitCode(0, 9))
    assert (record.requeue, record.restarts, record.reason) == (True, 2, "")
    assert (record.nodes, record.comment) == ("node[1-2]", "tag 1 ExitCode=7:0")
    assert record.stdout == "/home/u/my runs/slurm-1.out"
    assert (record.start, record.end) == ("2026-11-30T21:48:20", "2026-11-30T21:48:22")


@pytest.mark.parametrize("text", ["", "\n", "No jobs in the system\n", "JobId=2 JobName=x\n   JobState=COMPLETED\n"])
def test_no_record_in_scontrol(text: str) -> None:
    assert read_job(text, JobId(1)) is None


RERUN = """\
14|PREEMPTED|0:0|0:0|2026-11-30T21:50:51|2026-11-30T21:50:54|node1
15|COMPLETED|0:0|0:0|2026-11-30T21:50:51|2026-11-30T21:59:54|node2
14|CANCELLED by 0|0:15|0:0|2026-11-30T21:50:59|2026-11-30T21:51:01|node3
"""


@pytest.mark.parametrize("text", [RERUN, "\n".join(reversed(RERUN.splitlines()))])
def test_the_last_run_counts_whatever_the_order(text: str) -> None:
    record = read_accounting(text, JobId(14), "sacct -c")
    assert record is not None
    assert (record.word, record.nodes, record.exit) == ("CANCELLED by 0", "node3", ExitCode(0, 15))
    assert record.restarts == 0
    again = read_accounting(text, JobId(14), "sacct -c", datetime(2026, 11, 30))  # noqa: DTZ001 - Slurm writes local times
    assert again is not None
    assert again.restarts == 1


def test_a_run_that_goes_on_counts_before_one_that_has_ended() -> None:
    text = "14|RUNNING|0:0|0:0|2026-11-30T21:50:59|Unknown|node3\n14|NODE_FAIL|0:0|0:0|x|2026-11-30T21:50:51|node1\n"
    record = read_accounting(text, JobId(14), "sacct")
    assert record is not None
    assert record.state is JobState.RUNNING


def test_a_job_of_the_same_number_from_before_is_not_ours() -> None:
    text = "14|COMPLETED|0:0|0:0|2025-01-01T00:00:00|2025-01-01T00:10:00|node3\n"
    submitted = datetime(2026, 11, 30, 12)  # noqa: DTZ001 - Slurm writes local times
    assert read_accounting(text, JobId(14), "sacct", submitted) is None
    assert read_accounting(text, JobId(14), "sacct") is not None
    assert read_accounting(text.replace("2025", "2027"), JobId(14), "sacct", submitted) is not None


def test_accounting_without_rows_or_state() -> None:
    assert read_accounting("", JobId(1), "sacct") is None
    assert read_accounting("11|COMPLETED|0:0|0:0\n1.batch|COMPLETED|0:0|\n", JobId(1), "sacct") is None
    with pytest.raises(SlurmError, match="no state for job 1"):
        read_accounting("1||0:0|0:0\n", JobId(1), "sacct")


# --- what is asked -------------------------------------------------------------------------------


def test_one_squeue_for_all_jobs_of_a_cluster() -> None:
    programs = Programs(squeue=["1 RUNNING 0:01 None\n2 PENDING 0:00 Priority\n"])
    found = Slurm(call=programs).queue([JobId(1), JobId(2), JobId(3), JobId(1), JobId(4, "far")])
    assert {str(job): row.word for job, row in found.items()} == {"1": "RUNNING", "2": "PENDING"}
    asked = [call[1:-2] for call in programs.of("squeue")]
    assert asked == [("-h", "-t", "all", "-j", "1,2,3"), ("-M", "far", "-h", "-t", "all", "-j", "4")]
    assert Slurm(call=programs).queue([]) == {}
    assert len(programs.calls) == 2


def test_a_job_that_is_not_known_is_no_failure_of_the_controller() -> None:
    slurm = Slurm(call=Programs(squeue=[NO_SUCH_JOB], scontrol=[NO_SUCH_JOB]))
    assert slurm.queue([JobId(1)]) == {}
    assert slurm.show(JobId(1)) is None


@pytest.mark.parametrize("reply", [NO_CONTROLLER, TIMED_OUT, failed("", 255)])
def test_silence_is_an_error_and_never_an_empty_queue(reply: object) -> None:
    replies = [reply]
    slurm = Slurm(call=Programs(squeue=replies, scontrol=replies, scancel=replies))  # type: ignore[arg-type]
    with pytest.raises(SlurmError):
        slurm.queue([JobId(1)])
    with pytest.raises(SlurmError):
        slurm.show(JobId(1))
    with pytest.raises(SlurmError):
        slurm.tagged("t-1")
    with pytest.raises(SlurmError):
        slurm.cancel([JobId(1)])


def test_an_error_quotes_the_program() -> None:
    with pytest.raises(SlurmError, match="sacct: Slurm accounting storage is disabled"):
        Slurm(call=Programs(sacct=[NO_ACCOUNTING])).accounting(JobId(1))


def test_jobs_are_cancelled_by_id_alone() -> None:
    programs = Programs()
    Slurm(call=programs).cancel([JobId(1), JobId(2), JobId(1), JobId(3, "far")])
    assert programs.calls == [("scancel", "1", "2"), ("scancel", "-M", "far", "3")]


@pytest.mark.parametrize(
    "stderr",
    [
        "scancel: error: Kill job error on job id 1: Invalid job id specified\n",
        "scancel: error: Kill job error on job id 1: Job/step already completing or completed\n",
    ],
)
def test_a_job_that_has_ended_needs_no_cancel(stderr: str) -> None:
    Slurm(call=Programs(scancel=[failed(stderr)])).cancel([JobId(1)])
    with pytest.raises(SlurmError, match="Access"):
        Slurm(call=Programs(scancel=[failed(f"{stderr}Access/permission denied\n")])).cancel([JobId(1)])


def test_a_tag_is_the_whole_comment() -> None:
    programs = Programs(squeue=["7 t-1\n8 t-12\n9 (null)\n10 t-1 x\n11_0 t-1\n12  t-1 \n"])
    assert Slurm(call=programs).tagged("t-1") == (JobId(7), JobId(12))
    for text in ("", "a b", "-x", "(null)"):
        with pytest.raises(ValueError, match="no tag"):
            Slurm(call=programs).tagged(text)


def test_habits_of_the_user_do_not_change_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    habits = ("SQUEUE_FORMAT", "SQUEUE_STATES", "SACCT_FORMAT", "SCANCEL_INTERACTIVE", "SLURM_TIME_FORMAT")
    for name in habits:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("SLURM_CONF", "here")
    programs = Programs()
    Slurm(call=programs).cancel([JobId(1)])
    assert not set(habits) & programs.envs[0].keys()
    assert (programs.envs[0]["SLURM_CONF"], programs.envs[0]["LC_ALL"]) == ("here", "C")


def test_programs_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "squeue" in Slurm().missing()
    with pytest.raises(SlurmError, match="squeue: cannot be started"):
        Slurm().queue([JobId(1)])
