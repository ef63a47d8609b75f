"""What is an end, and what only looks like one."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from runners.job import ExitCode, JobId, JobRecord, JobState
from runners.slurm import Slurm
from runners.verdict import Outcome
from runners.watch import End, Live, Patience, Watch
from tests.runners.scripted import (
    INTERRUPTED,
    NO_ACCOUNTING,
    NO_CONTROLLER,
    NO_SUCH_JOB,
    TIMED_OUT,
    FakeClock,
    Programs,
    Reply,
    scontrol,
)

JOB = JobId(900)
RUNNING = "900 RUNNING 0:01 None\n"
PENDING = "900 PENDING 0:00 Priority\n"
DONE = "900 COMPLETED 0:10 None\n"

Replies = Sequence[Reply | str]


class Watched:
    """One job and the scripted programs around it."""

    def __init__(self, patience: Patience | None = None, since: datetime | None = None, **replies: Replies) -> None:
        self.clock = FakeClock()
        self.programs = Programs(self.clock, **replies)
        self.told: list[str] = []
        self.watch = Watch(
            Slurm(call=self.programs), [JOB], clock=self.clock, tell=self.told.append, patience=patience, since=since
        )

    def tick(self) -> Live | End:
        self.clock.sleep(max(0.0, self.watch.due - self.clock.now()))
        self.watch.tick()
        return self.watch.status(JOB)

    def end(self) -> End:
        while isinstance(status := self.tick(), Live):
            pass
        return status


def test_from_the_queue_to_the_end() -> None:
    watched = Watched(squeue=[PENDING, RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED", NodeList="node[1-2]")])
    first, second = watched.tick(), watched.tick()
    assert isinstance(first, Live)
    assert isinstance(second, Live)
    assert (first.state, second.state) == (JobState.PENDING, JobState.RUNNING)
    end = watched.end()
    assert end.verdict.passed
    assert end.record is not None
    assert end.record.nodes == "node[1-2]"
    assert watched.told == []
    assert watched.watch.open == ()


# --- a controller that is away -------------------------------------------------------------------


@pytest.mark.parametrize("silence", [NO_CONTROLLER, TIMED_OUT])
def test_an_outage_is_waited_out_and_told_once(silence: Reply) -> None:
    watched = Watched(squeue=[RUNNING, *[silence] * 5, RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED")])
    assert watched.end().verdict.passed
    assert len(watched.told) == 2
    assert "does not answer" in watched.told[0]
    assert "answers again, after 0:00:31" in watched.told[1]
    away = watched.programs.times[1:7]
    assert [round(later - sooner) for sooner, later in pairwise(away)] == [1, 2, 4, 8, 16]
    assert watched.programs.of("scancel") == []


def test_an_outage_without_end_has_a_bound() -> None:
    watched = Watched(squeue=[RUNNING, NO_CONTROLLER])
    end = watched.end()
    assert end.verdict.outcome is Outcome.UNREACHABLE
    assert "controller unreachable for 0:30" in end.verdict.why
    assert "connect failure" in end.verdict.why
    assert 1800 <= watched.clock.now() <= 1840
    assert len(watched.told) == 1
    assert watched.programs.of("scancel") == []


def test_an_outage_between_two_questions_is_one_as_well() -> None:
    watched = Watched(squeue=[DONE], scontrol=[NO_CONTROLLER, NO_CONTROLLER, scontrol(900, "FAILED", ExitCode="3:0")])
    assert watched.end().verdict.why == "job 900 FAILED 3:0: it exited with 3"
    assert len(watched.told) == 2


def test_one_job_that_nothing_is_learned_of_does_not_hold_up_the_others() -> None:
    clock = FakeClock()
    programs = Programs(
        clock, squeue=["1 COMPLETED\n2 COMPLETED\n"], scontrol=[NO_CONTROLLER, scontrol(2, "COMPLETED"), NO_CONTROLLER]
    )
    told: list[str] = []
    watch = Watch(Slurm(call=programs), [JobId(1), JobId(2)], clock=clock, tell=told.append)
    watch.tick()
    assert watch.open == (JobId(1),)
    assert watch.outage == 0.0
    assert len(told) == 1


# --- no trace of a job ---------------------------------------------------------------------------


def test_a_job_that_the_controller_has_forgotten_is_looked_up() -> None:
    watched = Watched(squeue=[RUNNING, ""], scontrol=[NO_SUCH_JOB], sacct=["900|COMPLETED|0:0|0:0\n"])
    end = watched.end()
    assert end.verdict.passed
    assert end.record is not None
    assert end.record.source == "sacct"


def test_without_accounting_the_completion_log_is_asked() -> None:
    watched = Watched(
        squeue=[RUNNING, NO_SUCH_JOB], scontrol=[""], sacct=[NO_ACCOUNTING], sacct_c=["900|FAILED|3:0|3:0\n"]
    )
    end = watched.end()
    assert end.record is not None
    assert (end.record.source, end.verdict.outcome) == ("sacct -c", Outcome.FAILED)
    assert [call[1] for call in watched.programs.of("sacct")] == ["-D", "-c"]


def test_an_empty_queue_is_no_success() -> None:
    watched = Watched(squeue=[RUNNING, ""], scontrol=[NO_SUCH_JOB], sacct=[NO_ACCOUNTING], sacct_c=[""])
    end = watched.end()
    assert end.verdict.outcome is Outcome.UNVERIFIED
    assert end.record is None
    for part in ("final state cannot be verified", "accounting storage is disabled", "sacct -c: knows no job 900"):
        assert part in end.verdict.why
    assert 60 <= watched.clock.now() < 100


def test_an_accounting_that_lags_is_waited_for() -> None:
    lag = ["", "", "900|RUNNING|0:0|0:0\n", "", "900|CANCELLED by 7|0:15|0:0\n"]
    watched = Watched(squeue=[""], scontrol=[NO_SUCH_JOB], sacct=lag)
    assert watched.end().verdict.why == "job 900 CANCELLED by 7 0:15: it was cancelled"


def test_an_unknown_state_in_accounting_fails_and_is_named() -> None:
    watched = Watched(squeue=[""], scontrol=[""], sacct=["900|SOME_NEW_STATE|0:0|0:0\n"])
    end = watched.end()
    assert end.verdict.outcome is Outcome.FAILED
    assert "SOME_NEW_STATE" in end.verdict.why


def test_an_old_job_of_the_same_number_is_no_success() -> None:
    old = "900|COMPLETED|0:0|0:0|2020-01-01T00:00:00|2020-01-01T01:00:00|node1\n"
    since = datetime(2026, 11, 30)  # noqa: DTZ001 - Slurm writes local times
    watched = Watched(since=since, squeue=[""], scontrol=[NO_SUCH_JOB], sacct=[old])
    assert watched.end().verdict.outcome is Outcome.UNVERIFIED


def test_a_requeue_that_nobody_saw_is_read_from_accounting() -> None:
    rows = "900|NODE_FAIL|0:0|0:0|x|2026-11-30T01:00:00|n\n900|COMPLETED|0:0|0:0|x|2026-11-30T02:00:00|n\n"
    since = datetime(2026, 11, 30)  # noqa: DTZ001 - Slurm writes local times
    watched = Watched(since=since, squeue=[""], scontrol=[NO_SUCH_JOB], sacct=[rows])
    end = watched.end()
    assert end.verdict.outcome is Outcome.FAILED
    assert "again once" in end.verdict.why


def test_a_job_that_is_lost_and_found_again_goes_on() -> None:
    watched = Watched(squeue=[RUNNING, "", RUNNING, DONE], scontrol=[NO_SUCH_JOB, scontrol(900, "COMPLETED")])
    assert watched.end().verdict.passed


# --- ends that are none --------------------------------------------------------------------------


def test_squeue_alone_cannot_call_a_job_a_success() -> None:
    watched = Watched(squeue=[DONE], scontrol=[""], sacct=[NO_ACCOUNTING])
    assert watched.end().verdict.outcome is Outcome.UNVERIFIED
    assert watched.clock.now() >= 60


def test_squeue_alone_can_call_it_a_failure() -> None:
    watched = Watched(squeue=["900 TIMEOUT 1:00 TimeLimit\n"], scontrol=[""], sacct=[NO_ACCOUNTING])
    assert watched.end().verdict.outcome is Outcome.FAILED


def test_a_requeue_is_no_end_and_no_success_either() -> None:
    back = "900 PENDING 0:00 BeginTime\n"
    watched = Watched(squeue=[RUNNING, back, back, RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED", Restarts=1)])
    end = watched.end()
    assert end.verdict.outcome is Outcome.FAILED
    assert "again once" in end.verdict.why
    assert watched.told[0] == "job 900 is back in the queue (BeginTime), waiting for it to start again"
    assert "start time has not come" in watched.told[1]
    assert len(watched.told) == 2


def test_a_requeue_that_accounting_does_not_tell_of_is_remembered() -> None:
    watched = Watched(squeue=[RUNNING, PENDING, RUNNING, ""], scontrol=[""], sacct=["900|COMPLETED|0:0|0:0\n"])
    assert watched.end().verdict.outcome is Outcome.FAILED


@pytest.mark.parametrize("state", ["PREEMPTED", "NODE_FAIL", "BOOT_FAIL"])
def test_a_job_that_may_come_back_gets_time_to(state: str) -> None:
    lost = scontrol(900, state, Requeue=1)
    watched = Watched(
        squeue=[RUNNING, f"900 {state}\n", PENDING, RUNNING, DONE], scontrol=[lost, scontrol(900, "FAILED")]
    )
    assert "FAILED" in watched.end().verdict.why
    watched = Watched(squeue=[RUNNING, f"900 {state}\n"], scontrol=[lost])
    assert watched.end().verdict.outcome is Outcome.INFRASTRUCTURE
    assert len(watched.programs.of("squeue")) > 2


def test_a_job_that_may_not_come_back_has_ended() -> None:
    watched = Watched(squeue=["900 NODE_FAIL\n"], scontrol=[scontrol(900, "NODE_FAIL", Requeue=0)])
    watched.end()
    assert len(watched.programs.of("squeue")) == 1


def test_a_job_that_came_back_between_two_questions_is_live() -> None:
    watched = Watched(squeue=["900 PREEMPTED\n", DONE], scontrol=[scontrol(900, "PENDING"), scontrol(900, "COMPLETED")])
    assert isinstance(watched.tick(), Live)
    watched.end()


def test_an_unknown_state_in_the_queue_is_told_and_is_no_end() -> None:
    watched = Watched(squeue=[*["900 SOME_NEW_STATE\n"] * 50, DONE], scontrol=[scontrol(900, "COMPLETED")])
    assert watched.end().verdict.passed
    assert len(watched.told) == 1
    assert "SOME_NEW_STATE" in watched.told[0]


# --- how often -----------------------------------------------------------------------------------


def test_looks_become_rare_while_nothing_changes_and_frequent_when_something_does() -> None:
    watched = Watched(squeue=[*[PENDING] * 60, RUNNING, RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED")])
    watched.end()
    times = watched.programs.times
    gaps = [round(later - sooner, 6) for sooner, later in pairwise(times)]
    calm, after_start = gaps[:59], gaps[60]
    assert calm == sorted(calm)
    assert (calm[0], calm[-1], after_start) == (1.0, 30.0, 1.0)
    within_a_minute = [time for time in times if time <= 60]
    assert len(within_a_minute) <= 16


def test_hurry_looks_at_once() -> None:
    watched = Watched(squeue=[PENDING])
    for _ in range(30):
        watched.tick()
    watched.watch.hurry()
    assert watched.watch.due == watched.clock.now()
    watched.tick()
    assert watched.watch.due == watched.clock.now() + 1.0


def test_a_signal_in_a_look_leaves_everything_as_it_was() -> None:
    watched = Watched(squeue=[RUNNING, INTERRUPTED, RUNNING])
    watched.tick()
    with pytest.raises(type(INTERRUPTED)):
        watched.tick()
    assert watched.watch.due <= watched.clock.now()
    assert watched.watch.outage is None
    assert isinstance(watched.tick(), Live)


def test_stuck_states_are_explained_once_each() -> None:
    held = "900 PENDING 0:00 JobHeldUser\n"
    never = "900 PENDING 0:00 DependencyNeverSatisfied\n"
    gone = "900 CANCELLED 0:00 None\n"
    watched = Watched(squeue=[held, held, held, never, never, PENDING, gone], scontrol=[scontrol(900, "CANCELLED")])
    watched.end()
    assert len(watched.told) == 2
    assert "scontrol release 900" in watched.told[0]
    assert "will never start" in watched.told[1]


def test_recorded_outage(shared: Path) -> None:
    folder = shared / "cases" / "C50"
    replies: dict[str, list[Reply | str]] = {}
    for program in ("squeue", "sacct"):
        rows = [line.split("|") for line in (folder / f"{program}.seq").read_text().splitlines()]
        replies[program] = [NO_CONTROLLER if status != "0" else out.replace("~", "|") + "\n" for status, out, _ in rows]
    watched = Watched(squeue=replies["squeue"], sacct=replies["sacct"])
    assert watched.end().verdict.passed
    assert sum("does not answer" in line for line in watched.told) == 1
    assert watched.programs.of("scancel") == []


def test_a_job_whose_end_is_known_is_looked_up_no_more() -> None:
    clock, programs = FakeClock(), Programs(squeue=[NO_SUCH_JOB])
    record = JobRecord(
        job=JOB, state=JobState.COMPLETED, word="COMPLETED", source="test", exit=ExitCode(0, 0), derived=ExitCode(0, 9)
    )
    for ends_steps in (True, False):
        watch = Watch(Slurm(call=programs), clock=clock, tell=lambda _: None, ends_steps=ends_steps)
        watch.ended(JOB, record)
        watch.tick()
        status = watch.status(JOB)
        assert isinstance(status, End)
        assert status.verdict.passed is ends_steps
    assert programs.calls == []
