"""`Result`: what one launch has left behind, read from the files that `runners launch` writes.

The form of those files is stated in `docs/running.md`, and this is the one place of `matrix` that knows it. A folder of
results holds a ``receipt.json`` for each launch, at any depth: artifacts are unpacked into folders of their own, and
earlier launches of a point lie in ``.earlier``. Beside it lies ``summary.json`` with the figures.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.source import read_bytes
from matrix.errors import RefusedError
from matrix.findings import Finding, Severity, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["RECEIPT", "SUMMARY", "Result", "read_results", "undated"]

RECEIPT: Final = "receipt.json"
SUMMARY: Final = "summary.json"

_VERSION: Final = 1
_STEPS: Final = frozenset(("prepared", "submitting", "submitted", "ended"))
_MOST_BYTES: Final = 1 << 26
_LONGEST: Final = 366 * 86_400
_SKEW: Final = timedelta(days=1)
"""Clocks of two machines, or of two zones that somebody mixed up, differ by so much; more is no time to go by."""
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


class Result(NamedTuple):
    """One launch. ``success``: its job passed and its results were verified.

    ``ended``: when, None while it has not, and of a summary without its receipt. ``verdict`` and ``why``: how it ended,
    for people. ``seconds``: how long its job ran. ``row`` is that of the point as it was launched. ``figures``: what
    was measured, a mapping for each concurrency or evaluation.
    """

    id: str
    digest: str
    path: str
    success: bool = False
    open: bool = False
    ended: datetime | None = None
    verdict: str = ""
    why: str = ""
    job: str = ""
    nodes: str = ""
    seconds: float | None = None
    row: Mapping[str, Any] = _EMPTY
    figures: tuple[Mapping[str, Any], ...] = ()


def read_results(folders: Iterable[str | os.PathLike[str]]) -> tuple[tuple[Result, ...], tuple[Finding, ...]]:
    """Every launch below some folders, in the order of their paths; a file that cannot be read is a warning.

    Raises:
        RefusedError: a folder is not there.
    """
    results: list[Result] = []
    findings: list[Finding] = []
    missing = []
    for folder in folders:
        if not os.path.isdir(folder):  # noqa: PTH112 - strings, as everywhere that paths are only told
            missing.append(_missing(os.fspath(folder)))
            continue
        for place in _places(os.fspath(folder)):
            try:
                results.append(_read(place))
            except RefusedError as error:
                findings += [finding._replace(severity=Severity.WARNING) for finding in error.findings]
    if missing:
        raise RefusedError(missing)
    return tuple(results), tuple(findings)


def undated(results: Iterable[Result], now: datetime) -> tuple[tuple[Result, ...], tuple[Finding, ...]]:
    """The results as far as their times can be: one that ends long after ``now`` has none, which is a warning."""
    kept: list[Result] = []
    findings: list[Finding] = []
    for result in results:
        if result.ended is None or result.ended - now <= _SKEW:
            kept.append(result)
            continue
        kept.append(result._replace(ended=None))
        message = (
            f"it ended at {result.ended.isoformat(timespec='seconds')}, which is still to come: its age is unknown."
        )
        fix = "set the clock of the machine that launched it, and launch the point again"
        place = Span(result.path)
        findings.append(Finding(rule="result-time", message=message, fix=fix, span=place, severity=Severity.WARNING))
    return tuple(kept), tuple(findings)


def _places(folder: str) -> Iterator[str]:
    """The folders that a launch has written into; links are not followed."""
    for place, inside, files in os.walk(folder):
        inside.sort()
        if RECEIPT in files or SUMMARY in files:
            yield place


def _read(place: str) -> Result:
    receipt, summary = f"{place}/{RECEIPT}", f"{place}/{SUMMARY}"
    if not os.path.isfile(receipt):  # noqa: PTH113
        return _of_summary(_load(summary, "summary"), summary)
    result = _of_receipt(_load(receipt, "receipt"), receipt)
    if result.ended is None or not os.path.isfile(summary):  # noqa: PTH113
        return result
    record = _load(summary, "summary")
    # A summary that lies there from another launch measured another job.
    return result._replace(figures=_figures(record, summary)) if record.get("digest") == result.digest else result


def _load(path: str, what: str) -> dict[str, Any]:
    try:
        record = json.loads(read_bytes(path, limit=_MOST_BYTES, what=what))
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"it is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise _unreadable(path, "it is no mapping")
    return record


def _of_receipt(record: dict[str, Any], path: str) -> Result:
    if record.get("version") != _VERSION or record.get("step") not in _STEPS:
        raise _unreadable(path, f"this is no receipt of version {_VERSION}")
    point, job, times, outcome = (_mapping(record, name, path) for name in ("point", "job", "times", "outcome"))
    ended = record["step"] == "ended"
    return Result(
        id=_text(point, "id", path),
        digest=_text(point, "digest", path),
        path=path,
        success=ended and outcome.get("success") is True,
        open=record["step"] in ("submitting", "submitted"),
        ended=_time(times.get("ended"), path) if ended else None,
        verdict=str(outcome.get("verdict") or ""),
        why=str(outcome.get("why") or ""),
        job=str(job.get("id") or ""),
        nodes=str(job.get("nodes") or ""),
        seconds=_seconds(times.get("ran-seconds")),
        row=_mapping(point, "row", path),
    )


def _of_summary(record: dict[str, Any], path: str) -> Result:
    return Result(
        id=_text(record, "id", path),
        digest=_text(record, "digest", path),
        path=path,
        success=record.get("success") is True,
        verdict=str(record.get("verdict") or ""),
        why=str(record.get("why") or ""),
        job=str(record.get("job") or ""),
        figures=_figures(record, path),
    )


def _figures(record: dict[str, Any], path: str) -> tuple[Mapping[str, Any], ...]:
    figures = record.get("figures", [])
    if not isinstance(figures, list) or not all(isinstance(one, dict) for one in figures):
        raise _unreadable(path, "its figures are no list of mappings")
    return tuple(figures)


def _mapping(record: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    value = record.get(name, _EMPTY)
    if not isinstance(value, dict | MappingProxyType):
        raise _unreadable(path, f"its {name} is no mapping")
    return value


def _text(record: Mapping[str, Any], name: str, path: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise _unreadable(path, f"it does not say its point's {name}")
    return value


def _time(value: Any, path: str) -> datetime:
    try:
        when = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _unreadable(path, f"it has ended, and says {value!r} for the time") from None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def _seconds(value: Any) -> float | None:
    """How long a job ran; None for what no clock can have told."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LONGEST
    return float(value) if known else None


def _unreadable(path: str, why: str) -> RefusedError:
    message = f"this says nothing of a launch: {why}."
    fix = "launch the point again, or move the file away"
    return RefusedError([Finding(rule="result-unreadable", message=message, fix=fix, span=Span(path))])


def _missing(folder: str) -> Finding:
    message = "there is no such folder of results."
    fix = "name the folder that `python -m runners launch --results` wrote, or unpack the artifacts of a run"
    return Finding(rule="results-missing", message=message, fix=fix, span=Span(folder))
