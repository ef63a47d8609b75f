"""One Slurm job: its id, the words that Slurm has for states, and what Slurm records of it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from matrix.errors import RefusedError
from matrix.findings import Finding

__all__ = [
    "ExitCode",
    "JobId",
    "JobRecord",
    "JobState",
    "job_id_of",
    "state_of",
]

# A cluster name goes into the argument list of the next command: it must never look like an option.
_ID: Final = re.compile(r"(?P<number>[1-9][0-9]{0,9})(?:;(?P<cluster>[A-Za-z0-9_][\w.-]*))?", re.ASCII)
_SUBMITTED: Final = re.compile(
    r"Submitted batch job (?P<number>[1-9][0-9]{0,9})(?: on cluster (?P<cluster>[A-Za-z0-9_][\w.-]*))?", re.ASCII
)


class JobId(NamedTuple):
    """The id of one job; `cluster` is empty for the cluster that the Slurm programs talk to by themselves."""

    number: int
    cluster: str = ""

    def __str__(self) -> str:
        return str(self.number)

    @classmethod
    def parse(cls, text: str) -> JobId:
        """Read an id as ``sbatch --parsable`` and the JSON of srtctl give it: digits, then perhaps ``;cluster``.

        >>> JobId.parse("75168975;nautilus")
        JobId(number=75168975, cluster='nautilus')

        Raises:
            RefusedError: it is anything else; array tasks and het components are not ours either.
        """
        match = _ID.fullmatch(text.strip())
        if match is None:
            message = f"{text!r} is not a job id. One is digits, or digits;cluster."
            raise RefusedError([Finding("job-id", message, "squeue --me names yours; a receipt has that of its point")])
        return cls(int(match["number"]), match["cluster"] or "")


def job_id_of(output: str) -> JobId:
    """The id in the standard output of sbatch. Chatter of the site around the one line that counts is passed over.

    Never give it standard error: what stands there is for people, and may well hold numbers.

    >>> job_id_of("Balance: 497,218.77 hours (99% remaining)\\nSubmitted batch job 1556425\\n")
    JobId(number=1556425, cluster='')

    Raises:
        RefusedError: no line, or lines with different ids; the output is quoted.
    """
    lines = (line.strip() for line in output.splitlines())
    matches = (_SUBMITTED.fullmatch(line) or _ID.fullmatch(line) for line in lines)
    ids = {JobId(int(match["number"]), match["cluster"] or ""): None for match in matches if match}
    if len(ids) == 1:
        return next(iter(ids))
    what = f"holds {len(ids)} job ids" if ids else "holds no job id"
    fix = "look for the job by its tag before anything is submitted again."
    raise RefusedError([Finding("job-id", f"the output of the submission {what}: {output!r}.", fix)])


class JobState(StrEnum):
    """The states of Slurm's manual; `UNKNOWN` is ours, for a word that is none of them."""

    BOOT_FAIL = "BOOT_FAIL"
    CANCELLED = "CANCELLED"
    COMPLETED = "COMPLETED"
    DEADLINE = "DEADLINE"
    FAILED = "FAILED"
    NODE_FAIL = "NODE_FAIL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    PREEMPTED = "PREEMPTED"
    TIMEOUT = "TIMEOUT"

    COMPLETING = "COMPLETING"
    CONFIGURING = "CONFIGURING"
    EXPEDITING = "EXPEDITING"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    PENDING = "PENDING"
    POWER_UP_NODE = "POWER_UP_NODE"
    RECONFIG_FAIL = "RECONFIG_FAIL"
    REQUEUED = "REQUEUED"
    REQUEUE_FED = "REQUEUE_FED"
    REQUEUE_HOLD = "REQUEUE_HOLD"
    RESIZING = "RESIZING"
    RESV_DEL_HOLD = "RESV_DEL_HOLD"
    REVOKED = "REVOKED"
    RUNNING = "RUNNING"
    SIGNALING = "SIGNALING"
    SPECIAL_EXIT = "SPECIAL_EXIT"
    STAGE_OUT = "STAGE_OUT"
    STOPPED = "STOPPED"
    SUSPENDED = "SUSPENDED"
    UPDATE_DB = "UPDATE_DB"

    UNKNOWN = "UNKNOWN"

    @property
    def terminal(self) -> bool:
        """Whether the job has ended. An unknown state counts as not ended: a wrong end would leave a job behind."""
        return self in _TERMINAL

    @property
    def waiting(self) -> bool:
        """Whether the job holds no node and waits in the queue, for the first time or again."""
        return self in _WAITING


_TERMINAL: Final = frozenset({
    JobState.BOOT_FAIL, JobState.CANCELLED, JobState.COMPLETED, JobState.DEADLINE, JobState.FAILED,
    JobState.NODE_FAIL, JobState.OUT_OF_MEMORY, JobState.PREEMPTED, JobState.TIMEOUT,
})  # fmt: skip
_WAITING: Final = frozenset({
    JobState.PENDING, JobState.REQUEUED, JobState.REQUEUE_FED, JobState.REQUEUE_HOLD, JobState.RESV_DEL_HOLD,
    JobState.SPECIAL_EXIT,
})  # fmt: skip


_STATES: Final = {state.value: state for state in JobState}


def state_of(text: str) -> JobState:
    """The state in a column that may carry more than it, or less.

    >>> [str(state_of(text)) for text in ("CANCELLED by 1001", "CANCELLED+", "OUT_OF_ME+", "SOME_NEW_STATE", "RE+")]
    ['CANCELLED', 'CANCELLED', 'OUT_OF_MEMORY', 'UNKNOWN', 'UNKNOWN']
    """
    word = text.split(maxsplit=1)[0].upper() if text.strip() else ""
    begun = word.rstrip("+")
    if begun in _STATES:
        return _STATES[begun]
    # A cut word stands for a state only when no other one begins like it.
    whole = [state for state in JobState if begun and begun != word and state.startswith(begun)]
    return whole[0] if len(whole) == 1 else JobState.UNKNOWN


class ExitCode(NamedTuple):
    """How a job or a step ended: the status it exited with, and the signal that ended it, apart."""

    code: int
    signal: int

    def __str__(self) -> str:
        return f"{self.code}:{self.signal}"

    @classmethod
    def parse(cls, text: str) -> ExitCode | None:
        """``code:signal``, or None where Slurm has left the column empty.

        >>> ExitCode.parse("0:15"), ExitCode.parse("")
        (ExitCode(code=0, signal=15), None)
        """
        code, _, signal = text.strip().partition(":")
        return cls(int(code), int(signal)) if code.isdecimal() and signal.isdecimal() else None


_NOT_STARTED: Final = ExitCode(0, 53)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """What Slurm says of a job; empty texts and None where the source of the record does not say.

    Times are written as Slurm writes them: local time of the cluster, ISO 8601 without a zone.
    """

    job: JobId
    state: JobState
    word: str
    """The state as written, such as ``CANCELLED by 1001``."""
    source: str
    """The command that said so, such as ``sacct -c``."""
    exit: ExitCode | None = None
    derived: ExitCode | None = None
    """The highest of what the steps ended with."""
    reason: str = ""
    nodes: str = ""
    """Node list in Slurm's short form, such as ``node[1-2]``."""
    start: str = ""
    end: str = ""
    requeue: bool = False
    """Whether Slurm may put it back into the queue."""
    restarts: int = 0
    comment: str = ""
    stdout: str = ""
    """Path of the job's output file."""

    @property
    def never_started(self) -> bool:
        """Whether Slurm could not start it on its node. It gives the same reason when the script is killed."""
        return self.reason == "JobLaunchFailure" and (self.exit is None or self.exit == _NOT_STARTED)
