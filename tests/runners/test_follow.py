"""Following with scripted programs: what is shown, when it ends, and what a signal does at any moment."""

import io
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from runners.display import PlainDisplay
from runners.follow import Followed, FollowPatience, follow
from runners.job import JobId
from runners.slurm import Slurm
from runners.verdict import Outcome
from tests.runners.scripted import (
    INTERRUPTED,
    NO_ACCOUNTING,
    NO_CONTROLLER,
    NO_SUCH_JOB,
    FakeClock,
    Programs,
    Reply,
    scontrol,
)

JOB = JobId(900)
RUNNING = "900 RUNNING 0:01 None\n"
PENDING = "900 PENDING 0:00 Priority\n"
DONE = "900 COMPLETED 0:10 None\n"
CANCELLED = "900 CANCELLED 0:10 None\n"

Replies = Sequence[Reply | str]


class Run:
    """One call of `follow` in scripted time."""

    def __init__(
        self,
        log: Path | None = None,
        signals: dict[float, int] | None = None,
        patience: FollowPatience | None = None,
        **replies: Replies,
    ) -> None:
        self.clock = FakeClock(signals)
        self.programs = Programs(self.clock, **replies)
        self.stream = io.StringIO()
        self.log = log
        self.patience = patience

    def __call__(self, *, ends_steps: bool = False) -> Followed:
        return follow(
            JOB,
            slurm=Slurm(call=self.programs),
            clock=self.clock,
            display=PlainDisplay(self.stream),
            log=self.log,
            patience=self.patience,
            ends_steps=ends_steps,
        )

    @property
    def shown(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "sweep_900.log"


# --- to the end ----------------------------------------------------------------------------------


def test_states_log_and_success(log: Path) -> None:
    log.write_text("one\nslurmstepd: error: *** STEP 900.0 CANCELLED ***\nsrun: error: task 0: Killed\nlast")
    run = Run(log, squeue=[PENDING, RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED", DerivedExitCode="0:9")])
    followed = run(ends_steps=True)
    assert followed.verdict.passed
    assert (followed.exit_status, followed.signal, followed.cancelled) == (0, None, False)
    assert followed.log == log
    assert [line for line in run.shown if line.startswith("job")] == ["job 900 PENDING", "job 900 RUNNING"]
    assert run.shown[-1] == "last"
    assert followed.waited == 1.0
    assert run.programs.of("scancel") == []


def test_a_failed_job_is_a_failure_whatever_its_log_says(log: Path) -> None:
    log.write_text("All good. SUCCESS.\n")
    run = Run(log, squeue=[RUNNING, "900 FAILED\n"], scontrol=[scontrol(900, "FAILED", ExitCode="3:0")])
    followed = run()
    assert followed.exit_status == 1
    assert followed.verdict.why == "job 900 FAILED 3:0: it exited with 3"


def test_the_log_is_that_of_slurm_by_default(log: Path) -> None:
    log.write_text("text\n")
    answers: list[Reply | str] = [
        NO_CONTROLLER,
        scontrol(900, "RUNNING", StdOut=log),
        scontrol(900, "COMPLETED", StdOut=log),
    ]
    run = Run(squeue=[RUNNING, RUNNING, DONE], scontrol=answers)
    assert run().log == log
    assert "text" in run.shown


@pytest.mark.parametrize("name", ["slurm.out", "sweep_9001.log", "sweep_1900.log"])
def test_a_log_that_other_jobs_may_write_is_not_shown(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("somebody else's\n")
    run = Run(tmp_path / name, squeue=[RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED")])
    followed = run()
    assert followed.verdict.passed
    assert followed.log is None
    assert "somebody else's" not in run.shown
    assert "without the id 900" in run.shown[0]


def test_lines_that_come_after_the_end_are_waited_for(log: Path) -> None:
    run = Run(log, squeue=[RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED")])
    ended: list[float] = []

    def late(program: str) -> None:
        if program == "scontrol":
            ended.append(run.clock.now())

    class Late(FakeClock):
        def sleep(self, seconds: float, writable: int | None = None) -> None:
            super().sleep(seconds, writable)
            if ended and self.now() > ended[0] + 5 and not log.exists():
                log.write_text("first\n")
            elif log.exists() and self.now() > ended[0] + 5.7 and "last" not in log.read_text():
                log.write_text("first\nlast")

    run.programs.on_call = late
    run.clock = Late()
    assert run().log == log
    assert run.shown[-2:] == ["first", "last"]


def test_a_log_that_never_appears_is_told_of_within_a_bound(log: Path) -> None:
    run = Run(log, squeue=[RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED")])
    followed = run()
    assert followed.log is None
    assert run.shown[-1] == f"no log has appeared at {log}"
    assert run.clock.now() < 15


def test_a_job_that_never_started_has_no_log_to_wait_for(log: Path) -> None:
    run = Run(log, squeue=[PENDING, CANCELLED], scontrol=[scontrol(900, "CANCELLED", StartTime="Unknown")])
    followed = run()
    assert followed.verdict.outcome is Outcome.CANCELLED
    assert followed.exit_status == 1
    assert run.clock.now() == 1.0


def test_a_job_that_could_not_be_launched_has_no_log_to_wait_for(log: Path) -> None:
    record = scontrol(900, "FAILED", NodeList="node1", ExitCode="0:53").replace(
        "Reason=None", "Reason=JobLaunchFailure"
    )
    run = Run(log, squeue=[RUNNING, "900 FAILED\n"], scontrol=[record])
    assert "output folder" in run().verdict.why
    assert run.clock.now() == 1.0


def test_a_log_that_grows_for_ever_ends_within_a_bound(log: Path) -> None:
    class Endless(FakeClock):
        def sleep(self, seconds: float, writable: int | None = None) -> None:
            super().sleep(seconds, writable)
            with log.open("a") as file:
                file.write("more\n")

    run = Run(log, squeue=[RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED")])
    run.clock = Endless()
    assert run().verdict.passed
    assert run.clock.now() < 15


def test_a_log_that_is_begun_anew_is_told_of(log: Path) -> None:
    def truncate(program: str) -> None:
        if program == "squeue" and len(run.programs.of("squeue")) == 3:
            log.write_text("second\n")

    log.write_text("first run of it\n")
    back = "900 PENDING 0:00 BeginTime\n"
    run = Run(log, squeue=[RUNNING, back, RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED", Restarts=1)])
    run.programs.on_call = truncate
    assert run().exit_status == 1
    assert f"the log {log} was begun anew" in run.shown
    assert run.shown.count("second") == 1


def test_no_answer_in_the_end_leaves_the_job_alone() -> None:
    run = Run(squeue=[RUNNING, NO_CONTROLLER], scontrol=[""])
    followed = run()
    assert (followed.verdict.outcome, followed.exit_status) == (Outcome.UNREACHABLE, 1)
    assert run.programs.of("scancel") == []


def test_no_record_in_the_end_is_a_failure() -> None:
    followed = Run(squeue=[RUNNING, ""], scontrol=[NO_SUCH_JOB], sacct=[NO_ACCOUNTING])()
    assert (followed.verdict.outcome, followed.exit_status) == (Outcome.UNVERIFIED, 1)


def test_a_minute_of_following_starts_few_programs() -> None:
    class Stop(Exception):  # noqa: N818
        pass

    class Minute(FakeClock):
        def sleep(self, seconds: float, writable: int | None = None) -> None:
            super().sleep(seconds, writable)
            if self.time > 60:
                raise Stop

    run = Run(squeue=[RUNNING], scontrol=[scontrol(900, "RUNNING")])
    run.clock = Minute()
    with pytest.raises(Stop):
        run()
    assert len(run.programs.calls) <= 17
    assert len(run.clock.sleeps) <= 80


def test_a_step_that_was_killed_is_a_failure_of_a_job_that_kills_none() -> None:
    run = Run(None, squeue=[RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED", DerivedExitCode="0:9")])
    followed = run()
    assert followed.verdict.outcome is Outcome.FAILED
    assert "0:9" in followed.verdict.why


# --- signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("before", [[PENDING], [RUNNING]])
def test_a_signal_cancels_once_and_waits_for_the_end(number: int, before: Replies) -> None:
    signals = {40.0: int(number), 40.5: int(signal.SIGTERM), 41.0: int(signal.SIGINT)}
    run = Run(signals=signals, squeue=[*before], scontrol=[""])

    def ends(program: str) -> None:
        if program == "scancel":
            run.programs.answer(squeue=[*before, CANCELLED], scontrol=[scontrol(900, "CANCELLED")])

    run.programs.on_call = ends
    followed = run()
    assert followed.exit_status == 128 + number
    assert (followed.signal, followed.cancelled) == (number, True)
    assert followed.verdict.outcome is Outcome.CANCELLED
    assert run.programs.of("scancel") == [("scancel", "900")]
    assert run.clock.now() < 44


def test_a_job_that_does_not_end_after_the_cancel_is_left_within_a_bound() -> None:
    run = Run(signals={3.5: 2, 11.0: 15}, squeue=[RUNNING], scontrol=[""])
    followed = run()
    assert followed.exit_status == 130
    assert followed.cancelled
    assert followed.verdict.outcome is Outcome.CANCELLED
    assert "took the order" in followed.verdict.why
    assert run.programs.of("scancel") == [("scancel", "900")]
    # GitHub sends the next signal 7.5 s after the first, and ends everything 2.5 s later.
    assert run.clock.now() - 3.5 < 7.5


def test_a_job_that_cleans_up_gets_its_time() -> None:
    completing = "900 COMPLETING 0:10 None\n"
    squeue = [RUNNING, RUNNING, *[completing] * 12, CANCELLED]
    followed = Run(signals={1.5: 15}, squeue=squeue, scontrol=["", scontrol(900, "CANCELLED")])()
    assert followed.exit_status == 143
    assert followed.record is not None


def test_a_signal_cuts_a_call_short() -> None:
    run = Run(squeue=[RUNNING, INTERRUPTED, CANCELLED], scontrol=["", scontrol(900, "CANCELLED")])

    def come(program: str) -> None:
        if program == "squeue" and len(run.programs.of("squeue")) == 2:
            run.clock.received = run.clock.received or 15

    run.programs.on_call = come
    assert run().exit_status == 143
    assert [call[0] for call in run.programs.calls[-4:]] == ["squeue", "scancel", "squeue", "scontrol"]


def test_a_signal_before_the_first_look_cancels_before_anything_else() -> None:
    run = Run(squeue=[CANCELLED], scontrol=[scontrol(900, "CANCELLED")])
    run.clock.received = 15
    assert run().exit_status == 143
    assert run.programs.calls[0] == ("scancel", "900")


def test_a_signal_after_the_end_cancels_nothing(log: Path) -> None:
    log.write_text("text\n")
    run = Run(log, signals={1.5: 15}, squeue=[RUNNING, DONE], scontrol=[scontrol(900, "COMPLETED")])
    followed = run()
    assert run.programs.of("scancel") == []
    assert followed.verdict.passed
    assert followed.exit_status == 143


def test_a_job_that_cannot_be_cancelled_is_told_of() -> None:
    run = Run(signals={0.5: 15}, squeue=[RUNNING, NO_CONTROLLER], scontrol=[""], scancel=[NO_CONTROLLER])
    followed = run()
    assert (followed.exit_status, followed.cancelled) == (143, False)
    assert followed.verdict.outcome is Outcome.UNREACHABLE
    assert followed.verdict.why.endswith("fix: scancel 900")
    assert len(run.programs.of("scancel")) > 1
