"""The receipt of a launch: what ran, provably, and how it ended. One JSON file, written whole or not at all.

It is written before a job is submitted, with the tag by which the job can be found, and again at every step. So a
launch that was killed leaves enough behind to follow its job instead of submitting a second one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from os import fsencode
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import read_bytes
from matrix.errors import RefusedError
from matrix.findings import Finding, Span
from runners.jsontext import parse
from runners.workspace import write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["NAME", "Receipt", "Step", "now", "read_receipt", "refusal"]

NAME: Final = "receipt.json"
_VERSION: Final = 1


class Step(StrEnum):
    """How far a launch has come."""

    PREPARED = "prepared"
    SUBMITTING = "submitting"
    SUBMITTED = "submitted"
    ENDED = "ended"


def now() -> str:
    """The time, as receipts write it: UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(slots=True, kw_only=True)
class Receipt:
    """What is known of a launch so far; ``parts`` are the sections of the file.

    ``point``: id, digest, the digest that was planned. ``software``: pin, tree, patches, packages. ``inputs``: hashes
    of recipe and cluster file, profile, workspace commit. ``job``: tag, id, folders, nodes. ``times`` and ``outcome``:
    verdict, exit status. ``results``: file, bytes and sha256 of everything kept.
    """

    step: Step
    point: dict[str, Any]
    software: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    job: dict[str, Any] = field(default_factory=dict)
    times: dict[str, Any] = field(default_factory=dict)
    outcome: dict[str, Any] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def succeeded(self) -> bool:
        """Whether the job passed and its results were verified."""
        return self.step is Step.ENDED and self.outcome.get("success") is True

    @property
    def open(self) -> bool:
        """Whether a job of this launch may be in the queue, unwatched."""
        return self.step in {Step.SUBMITTING, Step.SUBMITTED}

    def as_json(self) -> dict[str, Any]:
        """The file's content."""
        return {
            "version": _VERSION,
            "step": self.step.value,
            "point": self.point,
            "software": self.software,
            "inputs": self.inputs,
            "job": self.job,
            "times": self.times,
            "outcome": self.outcome,
            "results": self.results,
        }

    def write(self, folder: Path) -> None:
        """Write it into the folder of its point.

        Raises:
            RefusedError: it cannot be written.
        """
        path = folder / NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(path, json.dumps(self.as_json(), indent=2) + "\n")
        except OSError as error:
            message = f"the receipt cannot be written: {error.strerror}."
            fix = "name a folder that you may write to, on a disk with room: --results DIR"
            raise RefusedError(
                [Finding(rule="receipt-write", message=message, fix=fix, span=Span(str(path)))]
            ) from None


def read_receipt(path: Path) -> Receipt:
    """Read a receipt; a folder stands for the one in it.

    Raises:
        RefusedError: it is not there, or no receipt of a known version.
    """
    path = path / NAME if path.is_dir() else path
    try:
        found = parse(read_bytes(path, what="receipt"))
    except ValueError as error:
        raise refusal(path, f"it is not valid JSON: {error}") from None
    if not isinstance(found, dict) or found.get("version") != _VERSION:
        version = found.get("version") if isinstance(found, dict) else None
        raise refusal(path, f"its version is {version!r}, and {_VERSION} is the one that is known here")
    try:
        sections: Mapping[str, Any] = {name: found[name] for name in _SECTIONS}
        if not all(isinstance(value, list if name == "results" else dict) for name, value in sections.items()):
            raise TypeError
        receipt = Receipt(step=Step(found["step"]), **sections)
    except (KeyError, TypeError, ValueError):
        raise refusal(path, "a section of it is missing or of the wrong kind") from None
    if not all(isinstance(receipt.point.get(name), str) for name in ("id", "digest")):
        raise refusal(path, "its point has no id or no digest")
    if not all(map(_is_kept, receipt.results)):
        raise refusal(path, "its results are not files of this folder, each with its sha256")
    return receipt


def _is_kept(entry: Any) -> bool:
    if not isinstance(entry, dict) or not all(isinstance(entry.get(name), str) for name in ("file", "sha256")):
        return False
    name: str = entry["file"]
    try:
        fsencode(name)
    except UnicodeEncodeError:
        return False
    return name == PurePath(name).name and "\0" not in name


_SECTIONS: Final = ("point", "software", "inputs", "job", "times", "outcome", "results")


def refusal(path: Path, why: str) -> RefusedError:
    """That a file is no receipt that anything can be done on the word of."""
    message = f"this is no receipt: {why}."
    fix = "move the file away; nothing is known of the job that it may have had"
    return RefusedError([Finding(rule="receipt-read", message=message, fix=fix, span=Span(str(path)))])
