"""The job that a launch which was killed has left behind, as its receipt has it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matrix.errors import RefusedError
from runners.job import ExitCode, JobId, JobRecord, state_of
from runners.receipt import NAME, Receipt, read_receipt, refusal
from runners.verdict import Outcome
from runners.workspace import JobFolder

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Leftover", "find_leftover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A launch that has not ended. ``job`` is None where it was killed before it knew the id."""

    receipt: Receipt
    tag: str
    place: JobFolder
    outputs: Path
    """Where jobs of the profile write."""
    job: JobId | None
    output: Path | None
    """Where this job writes."""
    since: datetime
    """Local time of the submission, without a zone."""
    row: Mapping[str, Any]
    ended: JobRecord | None
    """Slurm's last record, of a job that has passed and whose results could not be kept yet. Slurm may forget it."""


def find_leftover(folder: Path) -> Leftover | None:
    """What the receipt in a point's folder says of a launch that has not ended; None when there is none.

    Raises:
        RefusedError: the receipt cannot be read, or not followed. Nothing is removed or cancelled on its word.
    """
    if not (folder / NAME).is_file():
        return None
    receipt = read_receipt(folder)
    if not receipt.open:
        return None
    try:
        return _read(receipt)
    except (KeyError, TypeError, ValueError, RefusedError):
        why = "its launch has not ended, and it does not say which job it had"
        raise refusal(folder / NAME, why) from None


def _read(receipt: Receipt) -> Leftover:
    said, tag = receipt.job, _text(receipt.job["tag"])
    place = Path(_text(said["folder"]))
    # It is removed after a success, so it has to be the folder that was made for this tag.
    if place.name != tag or not place.is_absolute():
        raise ValueError
    Path(_text(said["workspace"])), float(receipt.point.get("golden") or 0)
    row = dict(receipt.point["row"])
    concs = row["conc"] if isinstance(row["conc"], list) else [row["conc"]]
    [int(conc) for conc in concs]
    job = JobId.parse(_text(said["id"])) if said.get("id") is not None else None
    submitting = receipt.times.get("submitting")
    return Leftover(
        receipt=receipt,
        tag=tag,
        place=JobFolder(root=place),
        outputs=Path(_text(said["outputs"])),
        job=job,
        output=Path(_text(said["output"])) if job is not None else None,
        since=_local(submitting) if submitting is not None else datetime.now(),  # noqa: DTZ005 - as Slurm tells it
        row=row,
        ended=_ended(receipt, job) if job is not None else None,
    )


def _ended(receipt: Receipt, job: JobId) -> JobRecord | None:
    if receipt.outcome.get("verdict") != Outcome.PASSED.value:
        return None
    said = {name: str(receipt.job.get(name) or "") for name in ("state", "exit", "derived-exit", "record-source")}
    return JobRecord(
        job=job,
        state=state_of(said["state"]),
        word=said["state"],
        source=said["record-source"],
        exit=ExitCode.parse(said["exit"]),
        derived=ExitCode.parse(said["derived-exit"]),
        nodes=str(receipt.job.get("nodes") or ""),
        start=str(receipt.job.get("slurm-start") or ""),
        end=str(receipt.job.get("slurm-end") or ""),
    )


def _local(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone().replace(tzinfo=None)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value
