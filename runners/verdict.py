"""What a job's last record means: nothing but COMPLETED 0:0 is a success."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, assert_never

from runners.job import ExitCode, JobState

if TYPE_CHECKING:
    from runners.job import JobRecord

__all__ = ["Outcome", "Verdict", "judge"]


class Outcome(StrEnum):
    """The kinds of ends. A success of Slurm is not yet one of the point: its results are still to be verified."""

    PASSED = "passed"
    FAILED = "failed"
    INFRASTRUCTURE = "failed (infrastructure)"
    """The cluster took the job away; the same job may well pass elsewhere."""
    CANCELLED = "cancelled"
    UNVERIFIED = "unverified"
    """Nobody can say how the job ended."""
    UNREACHABLE = "controller unreachable"
    """The controller did not answer for too long. The job may still be running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a job ended, and the sentence that says why."""

    outcome: Outcome
    why: str

    @property
    def passed(self) -> bool:
        """Whether Slurm saw the job succeed."""
        return self.outcome is Outcome.PASSED


_LAST_SIGNAL: Final = 64
_ENDED_BY_SIGNAL: Final = frozenset({ExitCode(0, 9), ExitCode(0, 15), ExitCode(137, 0), ExitCode(143, 0)})
"""What Slurm derives of steps that the job itself has ended: KILL, TERM, or how the shell around one tells of them."""


def judge(record: JobRecord, *, ends_steps: bool = False) -> Verdict:
    """The verdict on a job that has ended: only COMPLETED with 0:0, and 0:0 of all its steps, passes.

    A job that was put back into the queue fails even when its last run passes: two runs wrote into one folder.

    Args:
        record: Slurm's last record of it.
        ends_steps: Whether its script kills steps of its own when it is done, and fails when one has ended before. The
            sweep driver of srtctl does so with its servers, so Slurm derives a signal from every good run. A step that
            ended by KILL or TERM is no failure of such a job; its results are held against theirs in any case.
    """
    state = record.state
    outcome, why = Outcome.FAILED, ""
    match state:
        case JobState.COMPLETED:
            outcome, why = _completed(record, ends_steps=ends_steps)
        case JobState.FAILED:
            why = _ended_with(record)
        case JobState.CANCELLED:
            outcome, why = Outcome.CANCELLED, "it was cancelled"
        case JobState.TIMEOUT:
            why = "it ran into its time limit"
        case JobState.DEADLINE:
            why = "its deadline came before its end"
        case JobState.OUT_OF_MEMORY:
            why = "it used more memory than it was given"
        case JobState.NODE_FAIL:
            outcome, why = Outcome.INFRASTRUCTURE, "a node of it failed"
        case JobState.BOOT_FAIL:
            outcome, why = Outcome.INFRASTRUCTURE, "a node of it did not boot"
        case JobState.PREEMPTED:
            outcome, why = Outcome.INFRASTRUCTURE, "it was preempted by another job"
        case JobState.UNKNOWN:
            why = "this version does not know that state, and only COMPLETED is a success"
        case (
            JobState.COMPLETING
            | JobState.CONFIGURING
            | JobState.EXPEDITING
            | JobState.LAUNCH_FAILED
            | JobState.PENDING
            | JobState.POWER_UP_NODE
            | JobState.RECONFIG_FAIL
            | JobState.REQUEUED
            | JobState.REQUEUE_FED
            | JobState.REQUEUE_HOLD
            | JobState.RESIZING
            | JobState.RESV_DEL_HOLD
            | JobState.REVOKED
            | JobState.RUNNING
            | JobState.SIGNALING
            | JobState.SPECIAL_EXIT
            | JobState.STAGE_OUT
            | JobState.STOPPED
            | JobState.SUSPENDED
            | JobState.UPDATE_DB
        ):
            outcome, why = Outcome.UNVERIFIED, "that is no end, so its final state cannot be verified"
        case _:
            assert_never(state)
    said = " ".join(part for part in (record.word, f"{record.exit}" if record.exit else "") if part)
    return Verdict(outcome=outcome, why=f"job {record.job} {said}: {why}")


def _completed(record: JobRecord, *, ends_steps: bool) -> tuple[Outcome, str]:
    if record.exit is None:
        return Outcome.UNVERIFIED, f"{record.source} gives no exit code with it"
    if record.exit != (0, 0):
        return Outcome.FAILED, _ended_with(record)
    ended = ends_steps and record.derived in _ENDED_BY_SIGNAL
    if record.derived not in {None, (0, 0)} and not ended:
        return Outcome.FAILED, f"a step of it failed, with {record.derived}"
    if record.restarts:
        times = "once" if record.restarts == 1 else f"{record.restarts} times"
        return Outcome.FAILED, f"Slurm started it again {times}, so its folder mixes what several runs wrote"
    return Outcome.PASSED, f"it succeeded, and ended its servers ({record.derived})" if ended else "it succeeded"


def _ended_with(record: JobRecord) -> str:
    if record.never_started:
        return "Slurm could not start it; most often its output folder cannot be written from the node"
    if record.exit is None:
        return "it failed"
    code, signal = record.exit
    if signal:
        return f"it was ended by signal {signal}"
    if 128 < code <= 128 + _LAST_SIGNAL:
        return f"it exited with {code}, which is how a shell tells of signal {code - 128}"
    return f"it exited with {code}" if code else "Slurm calls it failed, whatever it exited with"
