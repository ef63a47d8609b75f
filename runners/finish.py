"""The end of a job: wait for its results, verify and keep them, judge, and write the last receipt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from matrix.errors import RefusedError
from matrix.findings import errors_of
from runners.flight import fault
from runners.receipt import Step, now
from runners.resolved import WORKSPACE
from runners.results import (
    Collected,
    Kept,
    Kind,
    Places,
    clear_leftovers,
    collect,
    kinds_of,
    pack_logs,
    settled,
    take_away,
)
from runners.workspace import JobFolder, write_atomic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runners.flight import Flight, Launch
    from runners.job import JobRecord
    from runners.verdict import Verdict

__all__ = ["finish"]

_OF_THIS_HOST: Final = frozenset({"result-copy", "result-logs", "result-unread"})


def finish(
    flight: Flight, verdict: Verdict, record: JobRecord | None, run: Launch, *, exit_status: int | None = None
) -> bool:
    """Collect, judge and write the last receipt; whether the point is a verified success.

    Where only this host is at fault, that the results of a good job are not kept, the receipt stays open: the next
    launch collects them, and runs nothing again.
    """
    receipt = flight.receipt
    places = Places(
        output=flight.output,
        workspace=Path(receipt.job.get("workspace", "")),
        scratch=JobFolder(root=Path(receipt.job["folder"])).scratch,
    )
    if verdict.passed:
        _wait_for_results(flight, places, run)
    found = _collected(flight, places)
    if Kind.EVAL in kinds_of(flight.row):
        clear_leftovers(places.workspace, flight.output)
    kept = list(found.kept)
    if run.clock.received is not None:
        # Whoever sent the signal may kill this process any moment, and logs take long to pack.
        _judge(flight, verdict, record, found, kept, exit_status)
        _write_down(flight, found, run)
    if logs := _packed(flight, found):
        kept.append(logs)
    success = _judge(flight, verdict, record, found, kept, exit_status)
    for finding in found.findings if verdict.passed else ():
        run.tell(str(finding))
    if receipt.step is not Step.ENDED:
        run.tell("nothing is lost: mend that, and launch again. The results are collected then, and no job is run")
    why = str(receipt.outcome["why"])
    if fault_of_disk := _write_down(flight, found, run):
        success, why = False, f"{why}, and it could not be written down: {fault_of_disk}"
    _clean(JobFolder(root=Path(receipt.job["folder"])), run, success=success)
    run.tell(f"{'success' if success else 'failure'}: {why}")
    return success


def _judge(
    flight: Flight,
    verdict: Verdict,
    record: JobRecord | None,
    found: Collected,
    kept: Sequence[Kept],
    exit_status: int | None,
) -> bool:
    """Put what is known of the end into the receipt; whether the point is a verified success."""
    receipt, faults = flight.receipt, errors_of(found.findings)
    success = verdict.passed and not faults and not _signal_status(exit_status)
    receipt.results = [each.as_json() for each in kept]
    receipt.job |= _of_record(record) if record is not None else {}
    receipt.outcome = {
        "success": success,
        "verdict": verdict.outcome.value,
        "why": _why(verdict, found, success=success),
        "results-verified": found.verified,
        "faults": [str(finding) for finding in found.findings],
        "exit-status": exit_status if exit_status not in (None, 0) else int(not success),
    }
    if not verdict.passed or not faults or any(each.rule not in _OF_THIS_HOST for each in faults):
        receipt.step = Step.ENDED
        receipt.times["ended"] = now()
    return success


def _write_down(flight: Flight, found: Collected, run: Launch) -> str:
    """Write summary and receipt, and let go of what they say is kept; else why not."""
    receipt, outcome = flight.receipt, flight.receipt.outcome
    summary = {
        "id": receipt.point["id"],
        "digest": receipt.point["digest"],
        "job": str(flight.job),
        **{name: outcome[name] for name in ("success", "verdict", "why")},
        "figures": found.figures,
    }
    try:
        write_atomic(flight.folder / "summary.json", json.dumps(summary, indent=2) + "\n")
        receipt.write(flight.folder)
    except (OSError, RefusedError) as error:
        return str(error)
    if receipt.step is Step.ENDED:
        for warning in take_away(found):
            run.tell(str(warning))
    return ""


def _why(verdict: Verdict, found: Collected, *, success: bool) -> str:
    if not verdict.passed or success:
        return verdict.why
    faults = errors_of(found.findings)
    if not faults:
        return f"{verdict.why}, but a signal ended the launch before it knew that"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{verdict.why}, but {faults[0].message.rstrip('.')}{more}; Slurm's word alone is no success"


def _of_record(record: JobRecord) -> dict[str, Any]:
    return {
        "state": record.word,
        "exit": str(record.exit) if record.exit else None,
        "derived-exit": str(record.derived) if record.derived else None,
        "nodes": record.nodes,
        "slurm-start": record.start,
        "slurm-end": record.end,
        "record-source": record.source,
    }


def _packed(flight: Flight, found: Collected) -> Kept | None:
    try:
        return pack_logs(flight.output, flight.folder)
    except OSError as error:
        message = f"the logs cannot be packed: {error.strerror or error}."
        found.findings.append(fault("result-logs", message, flight.output, "make room for them in the results folder"))
        return None


def _collected(flight: Flight, places: Places) -> Collected:
    receipt = flight.receipt
    try:
        return collect(
            flight.row,
            places,
            str(receipt.job["tag"]),
            flight.folder,
            agentic_folder=str(receipt.job.get("agentic-folder", WORKSPACE)),
            golden=receipt.point.get("golden"),
        )
    except OSError as error:
        # A file server that is away takes the results out of reach. The job has ended all the same.
        message = f"the results cannot be read: {error.strerror or error}."
        fix = "see whether its file system is there"
        return Collected(findings=[fault("result-unread", message, flight.output, fix)])


def _wait_for_results(flight: Flight, places: Places, run: Launch) -> None:
    """A shared file system may show the last files of a node some seconds after its job has ended."""
    receipt, deadline = flight.receipt, run.clock.now() + run.lag
    folder = str(receipt.job.get("agentic-folder", WORKSPACE))
    while run.clock.received is None and run.clock.now() < deadline:
        if settled(flight.row, places, str(receipt.job["tag"]), agentic_folder=folder):
            return
        run.clock.sleep(0.5)


def _clean(folder: JobFolder, run: Launch, *, success: bool) -> None:
    if success and not run.keep:
        folder.remove()
    elif folder.root.exists():
        run.tell(f"the job's folder is kept: {folder.root}")


def _signal_status(status: int | None) -> bool:
    return status is not None and status > 128
