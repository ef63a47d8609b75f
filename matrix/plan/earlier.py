"""`Earlier`: what an earlier run planned, and which of its points have a verified result, out of its artifacts.

The artifacts were written by other code at another time, so nothing in them is taken for granted.
"""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from matrix.errors import RefusedError
from matrix.findings import Finding
from matrix.forge import ForgeError, ForgeRule
from matrix.plan.event import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from matrix.forge import Artifact, Forge, Run

__all__ = ["PLAN", "RESULT", "Earlier", "TooManyError", "is_id", "read_earlier", "zip_faults"]

PLAN: Final = "plan"
"""The artifact that holds ``plan.json``."""
RESULT: Final = "result-"
"""An artifact of this name and a point's id holds what the job of that point left, good or bad."""
_ID: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_GONE: Final = (404, 410)
_SUMMARY: Final = "summary.json"
_MAX_PLAN: Final = 1 << 29
"""Bytes of a plan as unpacked: a small file can be packed so that it fills any memory."""
_MAX_SUMMARY: Final = 1 << 24
_MAX_READ: Final = 200
"""Results that are looked into; each costs two requests, of which GitHub grants a workflow's token 1,000 an hour."""


def is_id(name: object) -> TypeGuard[str]:
    """Whether it is the id of a point: nothing that leads anywhere as the name of a file.

    >>> is_id("a--8k1k--tp8--c4"), is_id("../a"), is_id(""), is_id(7)
    (True, False, False, False)
    """
    return isinstance(name, str) and _ID.fullmatch(name) is not None


class TooManyError(Exception):
    """More results than are read one by one."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(count)


class Earlier(NamedTuple):
    """A plan that was read back. ``results``: by id, what is still kept; ``succeeded``: every job of it did."""

    record: dict[str, Any]
    mode: dict[str, Any]
    results: Mapping[str, Artifact]
    succeeded: bool

    @property
    def is_full(self) -> bool:
        """Whether every throughput point of its change ran, or was reused of a run before it."""
        whole = self.mode.get("trim") is False and self.mode.get("evals_only") is False
        decision, reused = self.record.get("decision"), isinstance(self.record.get("reuse"), dict)
        return whole and (decision == "run" or (decision == "skip" and reused))

    @property
    def label(self) -> str:
        """What started it."""
        label = self.mode.get("label")
        modifiers = " with evals-only" if self.mode.get("evals_only") is True else ""
        return f"{shown(label)}{modifiers}" if isinstance(label, str) else "an unknown label"

    def jobs(self) -> Iterator[tuple[str, str]]:
        """Digest and id of every point."""
        points = self.record.get("points")
        for row in points if isinstance(points, list) else ():
            digest, name = (row.get("digest"), row.get("id")) if isinstance(row, dict) else (None, None)
            if isinstance(digest, str) and digest and is_id(name):
                yield digest, name

    def verified(self, jobs: Mapping[str, str], forge: Forge) -> frozenset[str]:
        """Which of these jobs (digest to id) have a verified result that is still kept.

        A job that fails leaves an artifact too. Where the whole run succeeded, every job did; else each one is asked.

        Raises:
            TooManyError: too many would have to be asked.
            ForgeError: the forge does not answer.
        """
        kept = {digest: self.results[name] for digest, name in jobs.items() if name in self.results}
        if self.succeeded:
            return frozenset(kept)
        if len(kept) > _MAX_READ:
            raise TooManyError(len(kept))
        return frozenset(digest for digest, one in kept.items() if _is_good(forge, one, jobs[digest], digest))


def read_earlier(run: Run, forge: Forge) -> Earlier | None:
    """What a run left behind; None when its plan expired or is none that we read."""
    kept = [one for one in forge.artifacts(run.id) if not one.expired]
    plans = [one for one in kept if one.name == PLAN]
    record = _member(BytesIO(forge.download(plans[0])), "plan.json", _MAX_PLAN) if plans else None
    mode = record.get("mode") if isinstance(record, dict) else None
    if not isinstance(record, dict) or not isinstance(mode, dict):
        return None
    # The newest comes first, and a later attempt of the run has the last word on a point.
    results = {one.name.removeprefix(RESULT): one for one in reversed(kept) if one.name.startswith(RESULT)}
    return Earlier(record, mode, results, run.conclusion == "success")


def _is_good(forge: Forge, artifact: Artifact, name: str, digest: str) -> bool:
    """Whether the summary of a launch says that this very job succeeded. Its logs may be large, so it takes a file.

    Raises:
        RefusedError: there is no room for the file.
        ForgeError: the forge does not answer; that it has no such file, or none that can be read, is an answer.
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    try:
        with TemporaryDirectory(prefix="matrix-") as folder:
            packed = Path(folder, "result.zip")
            forge.save(artifact, packed)
            summary = _member(packed, f"{name}/{_SUMMARY}", _MAX_SUMMARY)
    except ForgeError as error:
        if error.status in _GONE or error.rule is ForgeRule.ANSWER:
            return False
        raise
    except OSError as error:
        message = f"the results of an earlier run cannot be looked at here: {error.strerror or error}."
        fix = "make room for temporary files, or name a run that ended with success"
        raise RefusedError([Finding(rule="reuse-room", message=message, fix=fix)]) from None
    if not isinstance(summary, dict):
        return False
    return summary.get("success") is True and summary.get("digest") == digest and summary.get("id") == name


def _member(packed: Path | BytesIO, name: str, limit: int) -> Any:
    """A JSON file of a zip file; None where it is not there, is no JSON, or is larger than ``limit`` bytes."""
    from zipfile import ZipFile

    try:
        with ZipFile(packed) as archive:
            member = archive.getinfo(name)
            if member.file_size > limit:
                return None
            with archive.open(member) as stream:
                return json.loads(stream.read(limit))
    except zip_faults():
        return None
    except (OSError, KeyError):
        # OSError: bz2 says so of its data.
        return None


def zip_faults() -> tuple[type[Exception], ...]:
    """What comes of bytes that are no whole zip file, or one that is encrypted or packed in an unknown way.

    ``bz2`` raises OSError besides, without a number.
    """
    from zipfile import BadZipFile
    from zlib import error as ZlibError  # noqa: N812 - it is a class

    try:
        from lzma import LZMAError
    except ImportError:
        # What it packs is then told by a RuntimeError of zipfile.
        return BadZipFile, ZlibError, EOFError, RuntimeError, ValueError
    return BadZipFile, ZlibError, LZMAError, EOFError, RuntimeError, ValueError
