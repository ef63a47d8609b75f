"""Follow one job to its end: its log as it is written, its state, and the signals that cancel it.

A log is shown, never judged: good runs hold words like "Killed" and "CANCELLED", and bad runs need not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals as SignalNumber
from typing import TYPE_CHECKING

from runners.cancel import cancel
from runners.job import JobState
from runners.joblog import JobLog, carries
from runners.process import InterruptedCallError
from runners.slurm import SlurmError
from runners.verdict import Outcome, Verdict
from runners.watch import End, Live, Patience, Watch, span

if TYPE_CHECKING:
    from datetime import datetime

    from runners.display import Display
    from runners.job import JobId, JobRecord
    from runners.signals import Clock
    from runners.slurm import Slurm

__all__ = ["FollowPatience", "Followed", "follow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowPatience:
    """How long to wait for what, all in seconds."""

    watch: Patience = field(default_factory=Patience)
    pulse: float = 1.0
    """Between two looks into the log."""
    cancel: float = 60.0
    """For the controller to take the order to cancel."""
    taken: float = 5.0
    """For the job to leave the states it can run in, once it has."""
    ended: float = 60.0
    """For the end of a job that is being cleaned up after a cancel."""
    quiet: float = 1.0
    """After the end: a log that has not grown for so long is complete."""
    late: float = 10.0
    """After the end: for a log that has not appeared, or does not stop growing."""
    reader: float = 30.0
    """After the end: for a reader of ours that has stopped reading."""

    @classmethod
    def for_actions(cls) -> FollowPatience:
        """GitHub kills a cancelled step 10 s after the first signal; receipt and results must be written by then."""
        return cls(cancel=6.0, taken=4.0, ended=3.5, late=1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How it ended."""

    job: JobId
    verdict: Verdict
    record: JobRecord | None
    """Slurm's last record; None where there is none, or the wait for it was cut short."""
    signal: int | None
    """The signal that ended the following."""
    cancelled: bool
    """Whether the controller took our order to cancel the job."""
    log: Path | None
    """The log, when it was seen."""
    waited: float
    """Seconds in the queue, up to the first look that saw it started."""
    ran: float
    """Seconds from there to the end."""

    @property
    def exit_status(self) -> int:
        """128+n after signal n, 0 for a job that passed, else 1."""
        if self.signal is not None:
            return 128 + self.signal
        return 0 if self.verdict.passed else 1


def follow(
    job: JobId,
    *,
    slurm: Slurm,
    clock: Clock,
    display: Display,
    log: Path | None = None,
    patience: FollowPatience | None = None,
    since: datetime | None = None,
    ends_steps: bool = False,
) -> Followed:
    """Follow a job to its end.

    The first INT, TERM or HUP cancels it, once, and the end is waited for; what comes later changes nothing.
    A controller that stays away for too long ends the following as a failure and leaves the job alone.

    Args:
        job: An own job.
        slurm: Made with ``interrupt=clock.fileno``, or a signal waits until a call has ended.
        clock: The entered `runners.signals.Signals`; entered before the submission, it covers that too.
        display: Where log and states are shown.
        log: The output file, Slurm's own entry for it by default.
        patience: Bounds.
        since: Local time of the submission.
        ends_steps: Whether its script ends its own steps: see `runners.verdict.judge`.
    """
    patience = patience or FollowPatience()
    watch = Watch(
        slurm, [job], clock=clock, tell=display.note, patience=patience.watch, since=since, ends_steps=ends_steps
    )
    run = _Following(job, slurm, clock, display, log, patience, watch)
    try:
        return run.to_the_end()
    finally:
        display.close()


class _Following:
    """The state of one call of `follow`."""

    def __init__(
        self,
        job: JobId,
        slurm: Slurm,
        clock: Clock,
        display: Display,
        log: Path | None,
        patience: FollowPatience,
        watch: Watch,
    ) -> None:
        self.job = job
        self.slurm = slurm
        self.clock = clock
        self.display = display
        self.patience = patience
        self.watch = watch
        self.log = self._own(log) if log is not None else None
        self.asks_for_log = log is None
        self.beginnings = 0
        self.phase = ""
        self.cancelled = False
        self.deadline: float | None = None
        """After a signal: when to stop waiting for the end."""
        self.begun = clock.now()
        self.started: float | None = None
        self.seen = self.begun
        """When the state was last looked at."""

    def to_the_end(self) -> Followed:
        while True:
            if self.clock.received is not None and self.deadline is None:
                self._cancel()
            try:
                self._look()
            except InterruptedCallError:
                continue
            status = self.watch.status(self.job)
            self._show_state(status)
            self._show_log()
            if isinstance(status, End):
                self._drain(status)
                return self._followed(status.verdict, status.record)
            if self._given_up(status):
                return self._followed(self._unseen(status), None)
            blocked = self.display.blocked
            if blocked is not None or self.log is None or not self.log.behind:
                self.clock.sleep(max(0.0, min(self.patience.pulse, self.watch.due - self.clock.now())), blocked)

    def _look(self) -> None:
        if self.clock.now() >= self.watch.due:
            self.watch.tick()
            self.seen = self.clock.now()
            if self.asks_for_log:
                self._ask_for_log()

    # --- signals ---------------------------------------------------------------------------------

    def _cancel(self) -> None:
        """Cancel first and tell afterwards: there may be 10 s in all, and nobody to read it any more."""
        self.clock.acknowledge()
        self.deadline = self.clock.now() + self.patience.taken
        if isinstance(self.watch.status(self.job), End):
            return
        self.cancelled = cancel(
            self.slurm, [self.job], clock=self.clock, tell=self.display.note, within=self.patience.cancel
        )
        self.deadline = self.clock.now() + (self.patience.taken if self.cancelled else 0.0)
        self.watch.hurry()
        name = SignalNumber(self.clock.received or 0).name
        if self.cancelled:
            self.display.note(f"{name}: job {self.job} is being cancelled, waiting for its end")

    def _given_up(self, status: Live) -> bool:
        if self.deadline is None:
            return False
        more = self.patience.ended if status.state is JobState.COMPLETING else 0.0
        return self.clock.now() >= self.deadline + more

    def _unseen(self, status: Live) -> Verdict:
        """The verdict of a job that was still there when the wait after a signal ended."""
        if self.cancelled:
            why = f"job {self.job}: Slurm took the order to cancel it; it was {status.word} when last seen"
            return Verdict(outcome=Outcome.CANCELLED, why=why)
        why = f"job {self.job}: it could not be cancelled, and may still run. fix: scancel {self.job}"
        return Verdict(outcome=Outcome.UNREACHABLE, why=why)

    # --- what is shown ---------------------------------------------------------------------------

    def _own(self, path: Path) -> JobLog | None:
        if carries(path, self.job):
            return JobLog(path)
        self.display.note(
            f"the log {path} is not shown: without the id {self.job} in its name, other jobs may write it"
        )
        return None

    def _ask_for_log(self) -> None:
        try:
            record = self.slurm.show(self.job)
        except SlurmError:
            return
        self.asks_for_log = False
        if record is not None and record.stdout not in {"", "/dev/null"}:
            self.log = self._own(Path(record.stdout))

    def _show_log(self) -> None:
        self.display.flush()
        # A reader that is slower than the job holds up the reading of its log, and nothing else.
        if self.log is None or self.display.blocked is not None:
            return
        lines = self.log.read()
        self._tell_beginning()
        self.display.log(lines)

    def _tell_beginning(self) -> None:
        if self.log is not None and self.log.beginnings > self.beginnings:
            if self.beginnings:
                self.display.note(f"the log {self.log.path} was begun anew")
            self.beginnings = self.log.beginnings

    def _show_state(self, status: Live | End) -> None:
        now = self.clock.now()
        if isinstance(status, End):
            return
        if not status.state.waiting and self.started is None:
            self.started = now
        phase = f"job {self.job} {status.word}"
        if phase != self.phase:
            self.phase = phase
            self.display.phase(phase)
        spent = now - (self.begun if self.started is None else self.started)
        parts = [phase, span(spent), f"({status.reason})" if status.reason else ""]
        if (outage := self.watch.outage) is not None:
            parts.append(f"no answer from the controller for {span(outage)}")
        self.display.live("  ".join(part for part in parts if part))

    def _drain(self, end: End) -> None:
        """Read the log until it has been quiet for a while: a shared file system shows the last lines late."""
        self.display.live("")
        if self.log is None:
            return
        ran = end.record is None or _may_have_written(end.record, started=self.started is not None)
        last = self.clock.now()
        limit = last + (self.patience.late if ran or self.log.size else 0.0)
        while self._reader_is_there():
            lines = self.log.finish()
            self._tell_beginning()
            self.display.log(lines)
            now = self.clock.now()
            if lines:
                last = now
            complete = self.log.beginnings and not self.log.behind and now - last >= self.patience.quiet
            if complete or now >= limit:
                break
            if not self.log.behind:
                self.clock.sleep(self.patience.quiet / 4)
        if not self.log.beginnings and ran:
            self.display.note(f"no log has appeared at {self.log.path}")
        self._reader_is_there()

    def _reader_is_there(self) -> bool:
        """Wait until everything is shown, while there is progress; after a signal a moment has to do."""
        last = self.clock.now()
        while (blocked := self.display.blocked) is not None:
            before = self.clock.now()
            if before - last >= (self.patience.reader if self.clock.received is None else self.patience.quiet):
                return False
            self.clock.sleep(self.patience.quiet, blocked)
            self.display.flush()
            now = self.clock.now()
            if now - before < self.patience.quiet and self.clock.received is None:
                last = now
        return True

    def _followed(self, verdict: Verdict, record: JobRecord | None) -> Followed:
        now = self.clock.now()
        started = now if self.started is None else self.started
        return Followed(
            job=self.job,
            verdict=verdict,
            record=record,
            signal=self.clock.received,
            cancelled=self.cancelled,
            log=self.log.path if self.log is not None and self.log.beginnings else None,
            waited=started - self.begun,
            ran=now - started,
        )


def _may_have_written(record: JobRecord, *, started: bool) -> bool:
    """Whether a job may have a log: it was seen started or got nodes, and Slurm could launch it there."""
    return (started or record.nodes != "") and not record.never_started
