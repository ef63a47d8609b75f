"""Many points through the code of one: Slurm schedules, one squeue a tick watches them all, one board shows them.

A point whose receipt says that the same digest succeeded is not run again, so a sweep that was interrupted goes on
where it was.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from matrix.errors import MatrixError, RefusedError
from runners.cancel import cancel
from runners.finish import finish
from runners.job import JobState
from runners.launch import begin, left_behind
from runners.pointfolder import own_folder
from runners.process import InterruptedCallError
from runners.receipt import NAME, read_receipt
from runners.results import Kind, kinds_of
from runners.verdict import Outcome, Verdict
from runners.watch import End, Live, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from runners.flight import Flight, Launch
    from runners.job import JobRecord
    from runners.profile import Profile
    from runners.target import Target

__all__ = ["Entry", "Stage", "Sweep", "already_done", "sweep"]


class Stage(StrEnum):
    """Where a point stands in a sweep."""

    WAITING = "waiting"
    SKIPPED = "done before"
    SUBMITTED = "submitted"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    NOT_STARTED = "not started"

    @property
    def good(self) -> bool:
        """Whether nothing is left to do for the point."""
        return self in {Stage.SKIPPED, Stage.PASSED}


@dataclass(slots=True, kw_only=True)
class Entry:
    """One point of a sweep, as the board shows it."""

    target: Target
    stage: Stage = Stage.WAITING
    job: str = ""
    elapsed: str = ""
    note: str = ""
    flight: Flight | None = None
    hold: ExitStack = field(default_factory=ExitStack)

    @property
    def id(self) -> str:
        """The point's."""
        return str(self.target.row["id"])


@dataclass(slots=True, kw_only=True)
class Sweep:
    """How it ended."""

    entries: list[Entry]
    signal: int | None = None

    @property
    def exit_status(self) -> int:
        """128+n after signal n, 0 when every point is done, else 1."""
        if self.signal is not None:
            return 128 + self.signal
        return int(not all(entry.stage.good for entry in self.entries))


def already_done(results: Path, target: Target) -> bool:
    """Whether a receipt says that this very job succeeded, and what it names is there still."""
    folder = results / str(target.row["id"])
    if not (folder / NAME).is_file():
        return False
    try:
        receipt = read_receipt(folder)
    except RefusedError:
        return False
    if not receipt.succeeded or receipt.point["digest"] != target.row["digest"]:
        return False
    return all(_is_there(folder / entry["file"], entry.get("bytes")) for entry in receipt.results)


def _is_there(path: Path, size: int | None) -> bool:
    """Sizes are enough here: `collect` holds every file to its hash, and logs are large."""
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def sweep(
    targets: Sequence[Target],
    profile_of: Callable[[Target], Profile],
    run: Launch,
    *,
    most: int,
    fail_fast: bool = False,
    show: Callable[[Sequence[Entry]], None],
) -> Sweep:
    """Run points, at most ``most`` jobs in the queue at once.

    Args:
        targets: The points, in the order in which they are started.
        profile_of: The cluster of a point.
        run: What launches share.
        most: Jobs at once.
        fail_fast: Cancel and start nothing more after the first failure.
        show: Takes the entries whenever one has changed.
    """
    return _Sweeping(targets, profile_of, run, most, show, fail_fast=fail_fast).to_the_end()


class _Sweeping:
    def __init__(
        self,
        targets: Sequence[Target],
        profile_of: Callable[[Target], Profile],
        run: Launch,
        most: int,
        show: Callable[[Sequence[Entry]], None],
        *,
        fail_fast: bool,
    ) -> None:
        self.entries = [Entry(target=target) for target in targets]
        self.profile_of = profile_of
        self.run = run
        self.most = most
        self.show = show
        self.fail_fast = fail_fast
        self.watch = Watch(run.slurm, clock=run.clock, tell=run.tell, patience=run.patience.watch, ends_steps=True)
        self.stopped = False
        self.cancelled = False
        self.deadline: float | None = None

    def to_the_end(self) -> Sweep:
        for entry in self.entries:
            if already_done(self.run.results, entry.target):
                entry.stage = Stage.SKIPPED
        clock = self.run.clock
        while True:
            self.show(self.entries)
            if clock.received is not None and not self.cancelled:
                self._stop(f"signal {clock.received}")
            self._start_some()
            flying = self._flying()
            if not flying and (self.stopped or not self._waiting()):
                break
            self._look(flying)
            if self.deadline is not None and clock.now() >= self.deadline:
                self._give_up()
        for entry in self._waiting():
            entry.stage = Stage.NOT_STARTED
        self.show(self.entries)
        return Sweep(entries=self.entries, signal=clock.received)

    def _waiting(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.stage is Stage.WAITING]

    def _flying(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.flight is not None]

    def _start_some(self) -> None:
        """Start what fits; between two submissions what runs is looked at when that is due."""
        for entry in self._waiting():
            if self.stopped or self.run.clock.received is not None or len(self._flying()) >= self.most:
                return
            if _evaluates(entry) and any(_evaluates(other) for other in self._flying()):
                # Evaluations write into the workspace by fixed names, so two would take each other's results.
                continue
            self._start(entry)
            self.show(self.entries)
            if self.run.clock.now() >= self.watch.due:
                self._look(self._flying())

    def _start(self, entry: Entry) -> None:
        try:
            profile = self.profile_of(entry.target)
            folder = entry.hold.enter_context(own_folder(self.run.results, entry.id))
            flight = left_behind(folder, entry.target, self.run) or begin(entry.target, profile, folder, self.run)
        except MatrixError as error:
            self._settle(entry, Stage.FAILED, str(error))
            return
        if isinstance(flight, int):
            self._settle(entry, Stage.NOT_STARTED, "a signal came")
            return
        entry.flight, entry.stage, entry.job = flight, Stage.SUBMITTED, str(flight.job)
        if flight.ended is not None:
            self.watch.ended(flight.job, flight.ended)
        else:
            self.watch.add(flight.job)

    def _look(self, flying: list[Entry]) -> None:
        clock = self.run.clock
        if clock.now() < self.watch.due:
            clock.sleep(max(0.0, self.watch.due - clock.now()))
            if clock.received is not None and not self.cancelled:
                return
        try:
            self.watch.tick()
        except InterruptedCallError:
            return
        for entry in flying:
            assert entry.flight is not None  # noqa: S101 - it flies
            status = self.watch.status(entry.flight.job)
            if isinstance(status, End):
                self._end(entry, status.verdict, status.record)
            else:
                self._note(entry, status)

    @staticmethod
    def _note(entry: Entry, status: Live) -> None:
        entry.stage = Stage.SUBMITTED if status.state.waiting else Stage.RUNNING
        entry.elapsed = status.elapsed
        entry.note = status.reason if status.state is JobState.PENDING else ""

    def _end(self, entry: Entry, verdict: Verdict, record: JobRecord | None) -> None:
        assert entry.flight is not None  # noqa: S101 - it flies
        number = self.run.clock.received
        status = 128 + number if number is not None and not verdict.passed else None
        success = finish(entry.flight, verdict, record, self.run, exit_status=status)
        self._settle(entry, Stage.PASSED if success else Stage.FAILED, str(entry.flight.receipt.outcome["why"]))

    def _settle(self, entry: Entry, stage: Stage, note: str) -> None:
        entry.stage, entry.note, entry.flight = stage, note, None
        entry.hold.close()
        if stage is Stage.FAILED and self.fail_fast and not self.stopped:
            self._stop(f"{entry.id} has failed")

    def _stop(self, why: str) -> None:
        """Start nothing more, and cancel what runs, once."""
        self.stopped = self.cancelled = True
        clock, patience = self.run.clock, self.run.patience
        if clock.received is not None:
            clock.acknowledge()
        jobs = [entry.flight.job for entry in self._flying() if entry.flight is not None]
        taken = cancel(self.run.slurm, jobs, clock=clock, tell=self.run.tell, within=patience.cancel)
        self.run.tell(f"{why}: {len(jobs)} jobs are {'being' if taken else 'NOT'} cancelled, no more are started")
        self.deadline = clock.now() + patience.taken + patience.ended
        self.watch.hurry()

    def _give_up(self) -> None:
        for entry in self._flying():
            assert entry.flight is not None  # noqa: S101 - it flies
            why = f"job {entry.flight.job} was told to end and had not when the wait for it ended"
            self._end(entry, Verdict(outcome=Outcome.CANCELLED, why=why), None)


def _evaluates(entry: Entry) -> bool:
    return Kind.EVAL in kinds_of(entry.target.row)
