"""One point, one job: prepare -> submit -> follow -> verdict -> collect -> receipt.

The point's folder below the results folder holds the receipt and what is kept. It is locked while a launch is alive. A
receipt that says "submitted" without a living launch belongs to one that was killed: its job is followed then, and no
second one is submitted.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.errors import RefusedError
from matrix.findings import Finding
from runners import srtctl
from runners.cancel import find_tagged
from runners.finish import finish
from runners.flight import Flight, Launch, fault
from runners.follow import follow
from runners.leftover import find_leftover
from runners.pointfolder import own_folder, put_aside
from runners.prepare import Prepared, prepare
from runners.process import InterruptedCallError
from runners.receipt import Receipt, Step, now
from runners.slurm import SlurmError
from runners.submission import Submission, SubmissionError
from runners.verdict import Outcome, judge
from runners.workspace import JobFolder, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable

    from runners.job import JobId
    from runners.profile import Profile
    from runners.target import Target

__all__ = ["begin", "fly", "launch", "left_behind", "submit"]

_REJECTED: Final = "Batch job submission failed:"
_DOUBTFUL: Final = ("timed out", "contact", "Zero Bytes")
"""After these Slurm may have taken the job all the same."""
_TAGGED_SIGNAL_SECONDS: Final = 3.0
"""After a signal: GitHub kills a cancelled step 10 s after the first one."""


def launch(target: Target, profile: Profile, run: Launch) -> int:
    """Run one point to its receipt; the exit status: 0 for a verified success, 128+n after signal n, else 1.

    Raises:
        RefusedError: nothing was submitted.
    """
    with own_folder(run.results, str(target.row["id"])) as folder:
        flight = left_behind(folder, target, run) or begin(target, profile, folder, run)
        if isinstance(flight, int):
            return flight
        return fly(flight, run)


def fly(flight: Flight, run: Launch) -> int:
    """Follow a job to its last receipt; the exit status."""
    if flight.ended is not None:
        return int(not finish(flight, judge(flight.ended, ends_steps=True), flight.ended, run))
    followed = follow(
        flight.job,
        slurm=run.slurm,
        clock=run.clock,
        display=run.display,
        log=flight.log,
        patience=run.patience,
        since=flight.since,
        ends_steps=True,
    )
    flight.receipt.times |= {"waited-seconds": round(followed.waited, 1), "ran-seconds": round(followed.ran, 1)}
    success = finish(flight, followed.verdict, followed.record, run, exit_status=followed.exit_status)
    return followed.exit_status or int(not success)


def begin(target: Target, profile: Profile, folder: Path, run: Launch) -> Flight | int:
    """Prepare and submit; or the exit status when a signal came before there was a job.

    Raises:
        RefusedError: it cannot be prepared, or srtctl refuses it.
    """
    try:
        prepared = prepare(target, profile, run.repository, run.environ, run.wishes, interrupt=run.clock.fileno())
    except InterruptedCallError:
        return 128 + (run.clock.received or 0)
    except OSError as error:
        message = f"the launch cannot be prepared: {error.strerror or error}."
        place = Path(error.filename) if isinstance(error.filename, str) else folder
        raise RefusedError([fault("launch-prepare", message, place, "python -m runners doctor")]) from None
    for warning in prepared.warnings:
        run.tell(str(warning))
    try:
        put_aside(folder)
        prepared.receipt.write(folder)
        write_atomic(folder / "recipe.yaml", prepared.resolved.text)
        write_atomic(folder / "srtslurm.yaml", prepared.folder.cluster_file.read_text(encoding="utf-8"))
        if run.clock.received is not None:
            return _stopped(prepared.receipt, folder, run.clock.received, prepared.folder)
        return submit(prepared, folder, run)
    except OSError as error:
        prepared.folder.remove()
        message = f"the point's folder cannot be written: {error.strerror}."
        fix = "name a folder that you may write to, on a disk with room: --results DIR"
        raise RefusedError([fault("launch-results", message, folder, fix)]) from None
    except RefusedError:
        # Where nobody can tell whether there is a job, it may be running from this folder.
        if not prepared.receipt.open:
            prepared.folder.remove()
        raise


def submit(prepared: Prepared, folder: Path, run: Launch) -> Flight | int:
    """Let srtctl submit a prepared job. A job that it does not name is looked for by its tag.

    Raises:
        RefusedError: there is no job.
    """
    receipt, since = prepared.receipt, datetime.now()  # noqa: DTZ005 - Slurm tells local times
    receipt.step = Step.SUBMITTING
    receipt.times["submitting"] = now()
    try:
        receipt.write(folder)
    except RefusedError:
        receipt.step = Step.PREPARED
        raise
    try:
        submission = srtctl.submit(
            prepared.folder,
            prepared.srtctl,
            prepared.environ,
            remembered=prepared.options,
            interrupt=run.clock.fileno(),
        )
    except RefusedError as refused:
        _close(receipt, folder, Outcome.FAILED.value, refused.findings[0].message)
        raise
    except (InterruptedCallError, SubmissionError) as error:
        said = str(error) or "a signal came during the submission"
        job = _by_tag(prepared.tag, run, said)
        if job is None:
            _close(receipt, folder, Outcome.FAILED.value, f"nothing was submitted: {said}")
            if run.clock.received is not None:
                return _stopped(receipt, folder, run.clock.received, prepared.folder)
            fix = "mend what sbatch says in the recipe or the profile, and launch again"
            raise RefusedError([fault("launch-submit", f"no job was submitted. {said}", folder, fix)]) from None
        run.tell(f"the job was found by its tag {prepared.tag}: {job}")
        submission = Submission(job=job, output=None)
    output = submission.output or prepared.profile.outputs / str(submission.job)
    flight = Flight(
        receipt=receipt,
        folder=folder,
        job=submission.job,
        output=output,
        since=since,
        row=prepared.target.row,
    )
    _note_submitted(flight, run.tell)
    run.tell(f"job {flight.job} submitted, output {flight.output}")
    return flight


def left_behind(folder: Path, target: Target, run: Launch) -> Flight | int | None:
    """The job that a launch which was killed has left, None when there is none; an exit status after a signal.

    Raises:
        RefusedError: there may be one, and it is another job than the one that is asked for, or nobody can tell.
    """
    left = find_leftover(folder)
    if left is None:
        return None
    receipt, job, output = left.receipt, left.job, left.output
    if job is None or output is None:
        job = _by_tag(left.tag, run, "an earlier launch was killed while it submitted")
        if job is None:
            run.tell(f"an earlier launch was killed before it had submitted the job {left.tag}")
            left.place.remove()
            return None
        output = left.outputs / str(job)
        receipt.job |= {"id": _written(job), "output": str(output)}
    flight = Flight(receipt=receipt, folder=folder, job=job, output=output, since=left.since, row=left.row)
    flight.ended = left.ended
    if receipt.point["digest"] == target.row["digest"]:
        run.tell(f"job {job} was submitted by an earlier launch; it is followed, and nothing is submitted")
        return flight
    try:
        row = run.slurm.queue([job]).get(job) if left.ended is None else None
    except InterruptedCallError:
        # That job goes on, as it did before: nobody asked for an end of it.
        return 128 + (run.clock.received or 0)
    if row is not None and not row.state.terminal:
        message = f"job {job} of an earlier launch is still {row.word}, and its digest is {receipt.point['digest']}."
        fix = f"python -m runners cancel {job}, then launch again"
        receipt.write(folder)
        raise RefusedError([fault("launch-other", message, folder, fix)])
    run.tell(f"job {job} of an earlier launch, with another digest, has ended; it is written down first")
    fly(flight, run)
    return None


def _by_tag(tag: str, run: Launch, said: str) -> JobId | None:
    """The one job with a tag.

    Raises:
        RefusedError: nobody can tell whether there is one, or there are several.
    """
    within = run.tagged if run.clock.received is None else min(run.tagged, _TAGGED_SIGNAL_SECONDS)
    if _REJECTED in said and not any(word in said for word in _DOUBTFUL):
        within = 0.0
    run.clock.acknowledge()
    try:
        jobs = find_tagged(run.slurm, tag, clock=run.clock, within=within)
    except SlurmError as error:
        message = f"{said}; and Slurm does not say whether there is a job with the tag {tag}: {error}."
        fix = f"once Slurm answers: squeue --me -o '%i %k' | grep {tag}"
        raise RefusedError([Finding(rule="launch-unknown", message=message, fix=fix)]) from None
    if len(jobs) > 1:
        message = f"{said}; and {len(jobs)} jobs have the tag {tag}: {', '.join(map(str, jobs))}."
        fix = f"python -m runners cancel {' '.join(map(str, jobs))}"
        raise RefusedError([Finding(rule="launch-unknown", message=message, fix=fix)])
    return jobs[0] if jobs else None


def _note_submitted(flight: Flight, tell: Callable[[str], None]) -> None:
    receipt = flight.receipt
    receipt.step = Step.SUBMITTED
    receipt.job |= {"id": _written(flight.job), "output": str(flight.output)}
    receipt.times["submitted"] = now()
    try:
        receipt.write(flight.folder)
    except RefusedError as refused:
        # The job exists, so it is followed all the same.
        tell(str(refused))


def _written(job: JobId) -> str:
    return f"{job};{job.cluster}" if job.cluster else str(job)


def _stopped(receipt: Receipt, folder: Path, number: int, job: JobFolder) -> int:
    _close(receipt, folder, Outcome.CANCELLED.value, f"signal {number} came before there was a job", 128 + number)
    job.remove()
    return 128 + number


def _close(receipt: Receipt, folder: Path, verdict: str, why: str, status: int = 1) -> None:
    receipt.step = Step.ENDED
    receipt.times["ended"] = now()
    receipt.outcome = {"success": False, "verdict": verdict, "why": why, "exit-status": status}
    receipt.write(folder)
