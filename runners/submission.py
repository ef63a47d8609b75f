"""What srtctl says of a submission. A job that it does not name is looked for by its tag, never guessed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matrix.errors import MatrixError, RefusedError
from matrix.findings import Finding
from runners.job import JobId
from runners.jsontext import parse

__all__ = ["Submission", "SubmissionError", "read_submission"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job that srtctl says it has submitted. ``output`` is where its logs will be, None where it does not say."""

    job: JobId
    output: Path | None


class SubmissionError(MatrixError):
    """srtctl did not say which job it submitted; whether there is one is to be looked up by its tag."""


def read_submission(status: int, stdout: str, stderr: str) -> Submission:
    """What ``srtctl apply --json`` said: one JSON object a job on stdout, prose on stderr.

    Raises:
        RefusedError: it says itself that nothing was submitted.
        SubmissionError: there is no id, or more than one; both streams are quoted.
    """
    records = []
    for line in stdout.splitlines():
        try:
            record = parse(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    quoted = f"status {status}, stdout {_tail(stdout)!r}, stderr {_tail(stderr)!r}"
    submitted = [record for record in records if record.get("status") == "submitted"]
    if not submitted and any(record.get("status") == "error" for record in records):
        said = next(str(record.get("error")) for record in records if record.get("status") == "error")
        if "sbatch" in said:
            # Slurm may have taken the job and failed to say so.
            msg = f"sbatch failed in srtctl: {quoted}"
            raise SubmissionError(msg)
        message = f"srtctl refuses the job: {said}. {_tail(stderr)}"
        fix = "mend what it names, in the recipe or the profile; --keep with --dry-run leaves both as srtctl gets them"
        raise RefusedError([Finding(rule="launch-srtctl", message=message.strip(), fix=fix)])
    if len(submitted) != 1 or status:
        msg = f"srtctl named {len(submitted)} jobs where one was to be submitted: {quoted}"
        raise SubmissionError(msg)
    record = submitted[0]
    try:
        job = JobId.parse(str(record.get("slurm_job_id", "")))
    except RefusedError as refused:
        msg = f"{refused.findings[0].message} {quoted}"
        raise SubmissionError(msg) from None
    output = record.get("output_dir")
    # Logs are packed from there: a relative path would mean a folder of ours.
    place = Path(output) if isinstance(output, str) else Path()
    return Submission(job=job, output=place if place.is_absolute() else None)


def _tail(text: str, most: int = 2000) -> str:
    stripped = text.strip()
    return stripped if len(stripped) <= most else f"… {stripped[-most:]}"
