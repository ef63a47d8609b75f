"""Jobs, watched until their ends: one squeue a tick for all of them, and no silence ever taken for an end.

Where the end is looked up, in this order: squeue, scontrol, sacct, ``sacct -c``. A controller that does not answer says
nothing about a job, so that is waited out. A job that the controller does not know, and no record names, is not a
success and not worth waiting for for ever either: within a bound it ends as unverified.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runners.job import JobId, JobRecord, JobState
from runners.reasons import explain
from runners.slurm import SlurmError
from runners.verdict import Outcome, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from runners.signals import Clock
    from runners.slurm import QueueRow, Slurm

__all__ = ["End", "Live", "Patience", "Watch", "span"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for what, all in seconds."""

    first: float = 1.0
    """Between two looks, after something has changed."""
    growth: float = 1.2
    """Factor from one look to the next while nothing changes: an end is seen late by a fifth of the run, at most."""
    longest: float = 30.0
    outage: float = 1800.0
    """For a controller that does not answer."""
    unverified: float = 60.0
    """For a final state, once the controller does not know the job."""
    settle: float = 3.0
    """For a job that Slurm may requeue to show up in the queue again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A job that has not ended, as last seen. Before the first look it counts as pending."""

    state: JobState = JobState.PENDING
    word: str = "PENDING"
    elapsed: str = ""
    reason: str = ""
    restarts: int = 0
    """How often it was seen going back into the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A job that is watched no longer."""

    verdict: Verdict
    record: JobRecord | None = None
    """None where nobody knows: the outcome is then unverified or unreachable."""


# The states from which Slurm puts a job back into the queue by itself.
_MAY_RETURN: Final = frozenset({JobState.BOOT_FAIL, JobState.NODE_FAIL, JobState.PREEMPTED})


class Watch:
    """Some jobs of one Slurm. `tick` looks once; `due` says when to look again."""

    def __init__(
        self,
        slurm: Slurm,
        jobs: Iterable[JobId] = (),
        *,
        clock: Clock,
        tell: Callable[[str], None],
        patience: Patience | None = None,
        since: datetime | None = None,
        ends_steps: bool = False,
    ) -> None:
        """Watch some jobs.

        Args:
            slurm: Where they are.
            jobs: The first of them; `add` takes more.
            clock: Time.
            tell: Takes each line that a person should read, once.
            patience: Bounds.
            since: Local time before which none of `jobs` was submitted.
            ends_steps: Of all of them: see `runners.verdict.judge`.
        """
        self._ends_steps = ends_steps
        self._slurm = slurm
        self._clock = clock
        self._tell = tell
        self._patience = patience or Patience()
        self._since: dict[JobId, datetime | None] = {}
        self._statuses: dict[JobId, Live | End] = {}
        self._gone: dict[JobId, float] = {}
        self._returning: dict[JobId, float] = {}
        self._waits: dict[JobId, tuple[str, int]] = {}
        self._silent: dict[JobId, float] = {}
        self._delay = 0.0
        self.due = clock.now()
        """When to call `tick` next, on the clock."""
        for job in jobs:
            self.add(job, since)

    def add(self, job: JobId, since: datetime | None = None) -> None:
        """Watch one more; `since` is the local time of its submission, when that is known."""
        self._statuses.setdefault(job, Live())
        self._since[job] = since
        self.hurry()

    def ended(self, job: JobId, record: JobRecord) -> None:
        """Take a job for one that has ended, with this record, and look it up no more."""
        self._statuses[job] = End(verdict=judge(record, ends_steps=self._ends_steps), record=record)
        self.hurry()

    def hurry(self) -> None:
        """Look again at once, and often from there: something has been done to a job."""
        self._delay = 0.0
        self.due = self._clock.now()

    def status(self, job: JobId) -> Live | End:
        """How a job was last seen."""
        return self._statuses[job]

    @property
    def open(self) -> tuple[JobId, ...]:
        """The jobs that have not ended."""
        return tuple(job for job, status in self._statuses.items() if isinstance(status, Live))

    @property
    def outage(self) -> float | None:
        """For how many seconds the controller has not answered; None while it does."""
        return self._clock.now() - min(self._silent.values()) if self._silent else None

    def tick(self) -> None:
        """Look at all jobs that have not ended.

        Raises:
            InterruptedCallError: a signal came meanwhile; look again after acting on it.
        """
        before = dict(self._statuses)
        errors: dict[JobId, SlurmError] = {}
        try:
            rows = self._slurm.queue(self.open)
        except SlurmError as error:
            errors = dict.fromkeys(self.open, error)
        else:
            for job in self.open:
                try:
                    self._look(job, rows.get(job))
                except SlurmError as error:
                    errors[job] = error
        self._listen(errors)
        changed = any(_kind(before[job]) != _kind(status) for job, status in self._statuses.items())
        self._schedule(changed=changed)

    def _schedule(self, *, changed: bool) -> None:
        patience = self._patience
        if changed or not self._delay:
            self._delay = patience.first
        else:
            troubled = self._silent or self._gone or self._returning
            self._delay = min(patience.longest, self._delay * (2.0 if troubled else patience.growth))
        self.due = self._clock.now() + self._delay

    # --- the controller --------------------------------------------------------------------------

    def _listen(self, errors: Mapping[JobId, SlurmError]) -> None:
        """Keep account of the jobs of which nothing could be learned in this look."""
        now = self._clock.now()
        if errors and not self._silent:
            self._delay = 0.0
            self._tell(f"the Slurm controller does not answer, waiting for it ({next(iter(errors.values()))})")
        if self._silent and not errors:
            self._delay = 0.0
            self._tell(f"the Slurm controller answers again, after {span(now - min(self._silent.values()))}")
        self._silent = {job: self._silent.get(job, now) for job in errors}
        for job, since in self._silent.items():
            if now - since >= self._patience.outage:
                why = f"job {job}: controller unreachable for {span(now - since)} ({errors[job]}). It may still run"
                self._statuses[job] = End(verdict=Verdict(outcome=Outcome.UNREACHABLE, why=why))

    # --- one job ---------------------------------------------------------------------------------

    def _look(self, job: JobId, row: QueueRow | None) -> None:
        if row is not None and not row.state.terminal:
            self._live(job, Live(state=row.state, word=row.word, elapsed=row.elapsed, reason=row.reason))
            return
        record = self._slurm.show(job)
        notes: list[str] = []
        if record is None:
            record = self._recorded(job, notes)
        if record is None and row is not None and row.state is not JobState.COMPLETED:
            # No exit code is to be had, and none is needed to know that this is no success.
            record = JobRecord(job=job, state=row.state, word=row.word, source="squeue", reason=row.reason)
        if record is None:
            self._unknown(job, notes)
        elif record.source == "scontrol" and not record.state.terminal:
            self._live(job, Live(state=record.state, word=record.word, reason=record.reason))
        elif not self._may_return(record):
            self._end(job, record)

    def _recorded(self, job: JobId, notes: list[str]) -> JobRecord | None:
        """The record of an end outside of the controller, or why there is none."""
        for name, source in (("sacct", self._slurm.accounting), ("sacct -c", self._slurm.completion)):
            try:
                record = source(job, self._since[job])
            except SlurmError as error:
                notes.append(f"{name}: {error.said}")
                continue
            if record is None:
                notes.append(f"{name}: knows no job {job}")
            elif record.state.terminal or record.state is JobState.UNKNOWN:
                return record
            else:
                # The database hears of an end later than we do, or has missed it.
                notes.append(f"{name}: still says {record.word}")
        return None

    def _live(self, job: JobId, seen: Live) -> None:
        before = self._statuses[job]
        restarts = before.restarts if isinstance(before, Live) else 0
        if isinstance(before, Live) and seen.state.waiting and not before.state.waiting:
            restarts += 1
            self._tell(f"job {job} is back in the queue ({seen.reason or seen.word}), waiting for it to start again")
        if seen.state is JobState.UNKNOWN and _kind(before) != _kind(seen):
            self._tell(f"job {job} is {seen.word}, a state that this version does not know; it counts as not ended")
        self._gone.pop(job, None)
        self._returning.pop(job, None)
        self._statuses[job] = dataclasses.replace(seen, restarts=restarts)
        self._explain(job, seen)

    def _explain(self, job: JobId, seen: Live) -> None:
        """Tell why a job is stuck, once for each reason; the second look proves that it is no passing state."""
        reason = seen.reason if seen.state.waiting else ""
        told, looks = self._waits.get(job, ("", 0))
        looks = looks + 1 if reason == told else 1
        self._waits[job] = (reason, looks)
        if looks == 2 and (words := explain(reason, job)):
            self._tell(f"job {job} waits ({reason}): {words}")

    def _may_return(self, record: JobRecord) -> bool:
        if not record.requeue or record.state not in _MAY_RETURN:
            return False
        first = self._returning.setdefault(record.job, self._clock.now())
        return self._clock.now() - first < self._patience.settle

    def _unknown(self, job: JobId, notes: list[str]) -> None:
        if job not in self._gone:
            self._gone[job] = self._clock.now()
            self._delay = 0.0
        if self._clock.now() - self._gone[job] < self._patience.unverified:
            return
        why = f"job {job}: its final state cannot be verified. The controller does not know it; {'; '.join(notes)}"
        self._statuses[job] = End(verdict=Verdict(outcome=Outcome.UNVERIFIED, why=why))

    def _end(self, job: JobId, record: JobRecord) -> None:
        before = self._statuses[job]
        if isinstance(before, Live) and before.restarts > record.restarts:
            record = dataclasses.replace(record, restarts=before.restarts)
        self._gone.pop(job, None)
        self._returning.pop(job, None)
        self._statuses[job] = End(verdict=judge(record, ends_steps=self._ends_steps), record=record)


def _kind(status: Live | End) -> tuple[str, str] | None:
    """What has to change between two looks for the next one to come soon."""
    return (status.word, status.reason) if isinstance(status, Live) else None


def span(seconds: float) -> str:
    """A length of time for people.

    >>> span(3725.9)
    '1:02:05'
    """
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
