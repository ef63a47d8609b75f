"""Slurm, asked through the text formats of its programs.

Why text: ``scontrol`` has no JSON before 23.02, ``squeue --json`` passes over its own filters, and the shape of the
JSON differs from version to version. Every call has a time of its own; a controller that is down takes up to 20 s to be
reported as such. Jobs are named by id alone, never by user or name.
"""

from __future__ import annotations

import os
import re
import shutil
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from matrix.errors import MatrixError
from runners import process
from runners.job import ExitCode, JobId, JobRecord, JobState, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = [
    "PROGRAMS",
    "Call",
    "DeniedError",
    "QueueRow",
    "Slurm",
    "SlurmError",
    "read_accounting",
    "read_job",
    "read_queue",
]

PROGRAMS: Final = ("sbatch", "squeue", "scontrol", "sacct", "scancel")
"""What has to be on PATH of a host that launches."""

# The first two columns stand alone in some recorded outputs; the reason is last because it may hold spaces.
_QUEUE: Final = "%i %T %M %r"
_ACCOUNTING: Final = ("JobID", "State", "ExitCode", "DerivedExitCode", "Start", "End", "NodeList")
_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*", re.ASCII)
_GONE: Final = "Invalid job id specified"
_DENIED: Final = "Access/permission denied"
_NOTHING_TO_CANCEL: Final = (_GONE, "already completing or completed")
# They choose columns, filters, time formats or questions, and would change what is asked here.
_DISTORTING: Final = ("SACCT_", "SCANCEL_", "SQUEUE_", "SLURM_TIME_FORMAT")
_SKEW: Final = timedelta(days=1)


class SlurmError(MatrixError):
    """A Slurm program gave no answer. During an outage of the controller every call ends so."""

    def __init__(self, program: str, said: str) -> None:
        self.program = program
        self.said = said
        super().__init__(f"{program}: {said}")


class DeniedError(SlurmError):
    """Slurm has answered, and does not let us. Asking again changes nothing."""


class QueueRow(NamedTuple):
    """One job in the output of squeue."""

    state: JobState
    word: str
    elapsed: str
    """Run time so far, ``[days-]hours:minutes:seconds``."""
    reason: str


class Call(Protocol):
    """How a program is run: `runners.process.run`, or what a test puts in its place."""

    def __call__(
        self, argv: Sequence[str], *, timeout: float, env: Mapping[str, str], interrupt: int | None
    ) -> process.Done:
        """Run it. Raises CallError and InterruptedCallError."""


def _no_interrupt() -> int | None:
    return None


class Slurm:
    """The client programs of one Slurm installation, as they are found on PATH."""

    def __init__(
        self, *, interrupt: Callable[[], int | None] = _no_interrupt, timeout: float = 30.0, call: Call = process.run
    ) -> None:
        """Make a client.

        Args:
            interrupt: Gives the descriptor that ends a call early; `runners.signals.Clock.fileno`.
            timeout: Seconds for each call.
            call: Runs a program.
        """
        self._interrupt = interrupt
        self._timeout = timeout
        self._call = call

    def missing(self) -> tuple[str, ...]:
        """The programs that are not on PATH."""
        return tuple(program for program in PROGRAMS if shutil.which(program) is None)

    def ping(self) -> str:
        """What ``scontrol ping`` says of the controllers.

        Raises:
            SlurmError: none of them is up.
        """
        return self._run("scontrol", "ping").strip()

    def queue(self, jobs: Iterable[JobId]) -> dict[JobId, QueueRow]:
        """All these jobs in one call a cluster. A job that the controller does not know (any more) is left out.

        Raises:
            SlurmError: the controller did not answer; that says nothing about the jobs.
        """
        found: dict[JobId, QueueRow] = {}
        for cluster, ids in _by_cluster(jobs).items():
            wanted = ",".join(map(str, ids))
            text = self._known("squeue", *_at(cluster), "-h", "-t", "all", "-j", wanted, "-o", _QUEUE)
            rows = read_queue(text)
            found |= {job: rows[job.number] for job in ids if job.number in rows}
        return found

    def show(self, job: JobId) -> JobRecord | None:
        """The controller's own record of a job, None when it does not know it (any more).

        Raises:
            SlurmError: the controller did not answer.
        """
        # Without -d the derived exit code is left out.
        return read_job(self._known("scontrol", *_at(job.cluster), "-d", "show", "job", str(job)), job)

    def accounting(self, job: JobId, since: datetime | None = None) -> JobRecord | None:
        """The record of a job in the accounting database, None when it has none (yet).

        Args:
            job: The job.
            since: Local time of the submission; an older job of the same number is passed over.

        Raises:
            SlurmError: there is no accounting, or it did not answer.
        """
        return self._sacct(job, since, "-D")

    def completion(self, job: JobId, since: datetime | None = None) -> JobRecord | None:
        """The same from the job completion log, which some sites keep without any database.

        Raises:
            SlurmError: there is no such log, or it cannot be read here.
        """
        return self._sacct(job, since, "-c")

    def tagged(self, tag: str, cluster: str = "") -> tuple[JobId, ...]:
        """Our jobs whose comment is this tag, ended ones too while the controller remembers them.

        Raises:
            ValueError: the tag could not be told from other text in a comment.
            SlurmError: the controller did not answer.
        """
        if _TAG.fullmatch(tag) is None:
            msg = f"{tag!r} is no tag: letters, digits and ._:- only"
            raise ValueError(msg)
        text = self._run("squeue", *_at(cluster), "-h", "--me", "-t", "all", "-o", "%i %k")
        rows = (line.strip().partition(" ") for line in text.splitlines())
        return tuple(
            JobId(int(number), cluster) for number, _, comment in rows if number.isdecimal() and comment.strip() == tag
        )

    def cancel(self, jobs: Iterable[JobId]) -> None:
        """Cancel these jobs, pending or running. One that has ended, or is unknown, is no fault.

        Raises:
            DeniedError: a job is somebody else's; the others were cancelled.
            SlurmError: a controller did not take the order; those of other clusters have.
        """
        program, failure = "scancel", None
        for cluster, ids in _by_cluster(jobs).items():
            try:
                done = self._attempt((program, *_at(cluster), *map(str, ids)))
            except SlurmError as error:
                failure = error
                continue
            if done.status and not _all_say(done.stderr, _NOTHING_TO_CANCEL):
                denied = _all_say(done.stderr, (_DENIED, *_NOTHING_TO_CANCEL))
                failure = (DeniedError if denied else SlurmError)(program, _said(done))
        if failure is not None:
            raise failure

    def _sacct(self, job: JobId, since: datetime | None, *options: str) -> JobRecord | None:
        source = "sacct -c" if "-c" in options else "sacct"
        argv = (*options, *_at(job.cluster), "-n", "-P", "-X", "-j", str(job), f"--format={','.join(_ACCOUNTING)}")
        return read_accounting(self._run("sacct", *argv), job, source, since)

    def _known(self, program: str, *arguments: str) -> str:
        """The output, empty when the controller says that it does not know the job."""
        done = self._attempt((program, *arguments))
        if done.status and _GONE in done.stderr:
            return ""
        if done.status:
            raise SlurmError(program, _said(done))
        return done.stdout

    def _run(self, program: str, *arguments: str) -> str:
        done = self._attempt((program, *arguments))
        if done.status:
            raise SlurmError(program, _said(done))
        return done.stdout

    def _attempt(self, argv: Sequence[str]) -> process.Done:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_DISTORTING)}
        environment["LC_ALL"] = "C"
        try:
            return self._call(argv, timeout=self._timeout, env=environment, interrupt=self._interrupt())
        except process.CallError as error:
            raise SlurmError(argv[0], error.said) from None


def _by_cluster(jobs: Iterable[JobId]) -> dict[str, list[JobId]]:
    groups: dict[str, list[JobId]] = {}
    for job in dict.fromkeys(jobs):
        groups.setdefault(job.cluster, []).append(job)
    return groups


def _at(cluster: str) -> tuple[str, ...]:
    return ("-M", cluster) if cluster else ()


def _said(done: process.Done) -> str:
    """What a program that failed had to say, on one line."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return "; ".join(lines) or f"ended with status {done.status} and said nothing"


def _all_say(stderr: str, harmless: Sequence[str]) -> bool:
    lines = [line for line in stderr.splitlines() if line.strip()]
    return bool(lines) and all(any(text in line for text in harmless) for line in lines)


# --- formats -------------------------------------------------------------------------------------


def read_queue(text: str) -> dict[int, QueueRow]:
    """The rows of ``squeue -h -o '%i %T %M %r'``, by job number. Other lines, array tasks too, are passed over.

    >>> read_queue("7 PENDING 0:00 Nodes required for job are DOWN\\n")[7].reason
    'Nodes required for job are DOWN'
    """
    rows: dict[int, QueueRow] = {}
    for line in text.splitlines():
        number, word, elapsed, reason = (*line.split(None, 3), "", "", "", "")[:4]
        if number.isdecimal() and word:
            rows[int(number)] = QueueRow(state_of(word), word, elapsed, _value(reason))
    return rows


# Their values may hold spaces, and each has a line of its own.
_WHOLE_LINE: Final = frozenset({"Comment", "StdOut"})


def read_job(text: str, job: JobId) -> JobRecord | None:
    """The record in the output of ``scontrol -d show job``, None when there is no such job in it."""
    fields: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        name, _, value = line.partition("=")
        # What follows on the first line is the job's name, and a name can hold anything.
        parts = [line] if name in _WHOLE_LINE else line.split()[: 1 if name == "JobId" else None]
        for part in parts:
            name, _, value = part.partition("=")
            fields.setdefault(name, value)
    if fields.get("JobId") != str(job):
        return None
    word = fields.get("JobState", "")
    restarts = fields.get("Restarts", "")
    return JobRecord(
        job=job,
        state=state_of(word),
        word=word,
        source="scontrol",
        exit=ExitCode.parse(fields.get("ExitCode", "")),
        derived=ExitCode.parse(fields.get("DerivedExitCode", "")),
        reason=_value(fields.get("Reason", "")),
        nodes=_value(fields.get("NodeList", "")),
        start=_value(fields.get("StartTime", "")),
        end=_value(fields.get("EndTime", "")),
        requeue=fields.get("Requeue") == "1",
        restarts=int(restarts) if restarts.isdecimal() else 0,
        comment=_value(fields.get("Comment", "")),
        stdout=_value(fields.get("StdOut", "")),
    )


def read_accounting(text: str, job: JobId, source: str, since: datetime | None = None) -> JobRecord | None:
    """The record in the output of ``sacct -n -P -X``. A job that ran more than once has several rows: the last counts.

    How often it was started again is read only where `since` tells its rows from those of an older job.

    Raises:
        SlurmError: a row of the job has no state in it.
    """
    rows = [dict(zip(_ACCOUNTING, line.split("|"), strict=False)) for line in text.splitlines()]
    ours = [row for row in rows if row["JobID"].strip() == str(job) and not _older(row.get("End", ""), since)]
    if not ours:
        return None
    # Texts of ISO 8601 sort like the times; "Unknown", of a run that has not ended, comes after them all.
    row = max(enumerate(ours), key=lambda numbered: (numbered[1].get("End", ""), numbered[0]))[1]
    word = row.get("State", "").strip()
    runs = [each for each in ours if each is row or state_of(each.get("State", "")) is not JobState.RESIZING]
    if not word:
        raise SlurmError(source, f"no state for job {job}: {text.strip()!r}")
    return JobRecord(
        job=job,
        state=state_of(word),
        word=word,
        source=source,
        exit=ExitCode.parse(row.get("ExitCode", "")),
        derived=ExitCode.parse(row.get("DerivedExitCode", "")),
        nodes=_value(row.get("NodeList", "")),
        start=_value(row.get("Start", "")),
        end=_value(row.get("End", "")),
        restarts=0 if since is None else len(runs) - 1,
    )


def _older(end: str, since: datetime | None) -> bool:
    """Whether a run ended long before a submission: job numbers begin anew when a cluster is set up again."""
    try:
        ended = datetime.fromisoformat(end)
    except ValueError:
        return False
    # A day of grace swallows every difference of clocks and zones.
    return since is not None and ended.replace(tzinfo=None) < since.replace(tzinfo=None) - _SKEW


def _value(text: str) -> str:
    """A value, empty where Slurm writes a word for "nothing"."""
    stripped = text.strip()
    return "" if stripped in {"(null)", "None", "Unknown", "N/A", "None assigned"} else stripped
