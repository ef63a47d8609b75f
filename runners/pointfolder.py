"""The folder of one point below the results folder: one launch at a time works in it, and none loses what was there."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from matrix.errors import RefusedError
from matrix.findings import Finding, Span
from runners.workspace import clear_temporary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["own_folder", "put_aside"]


@contextmanager
def own_folder(results: Path, name: str) -> Iterator[Path]:
    """The folder of a point, locked for this process.

    Raises:
        RefusedError: another launch has it, or it cannot be made.
    """
    folder = results / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / ".lock").open("a", encoding="utf-8")
    except OSError as error:
        message = f"the point's folder cannot be made: {error.strerror}."
        fix = "name a folder that you may write to, on a disk with room: --results DIR"
        raise RefusedError([Finding(rule="launch-results", message=message, fix=fix, span=Span(str(folder)))]) from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = "another launch of this point is at work here."
            fix = "wait for it, or give this one a folder of its own: --results DIR"
            raise RefusedError(
                [Finding(rule="launch-busy", message=message, fix=fix, span=Span(str(folder)))]
            ) from None
        except OSError as error:
            # A launch without the lock could submit what another one has submitted.
            message = f"the point's folder cannot be locked: {error.strerror}."
            fix = "name a folder on a file system that has locks: --results DIR"
            raise RefusedError(
                [Finding(rule="launch-results", message=message, fix=fix, span=Span(str(folder)))]
            ) from None
        with suppress(OSError):  # what cannot be removed is in nobody's way
            clear_temporary(folder)
        yield folder


def put_aside(folder: Path) -> None:
    """Move what an earlier launch kept out of the way, so that no result is lost and none is mixed."""
    mine = [path for path in folder.iterdir() if path.name != ".lock"]
    if not mine:
        return
    earlier = folder.parent / ".earlier" / folder.name
    number = 1 + max((int(path.name) for path in earlier.glob("*") if path.name.isdecimal()), default=0)
    (earlier / str(number)).mkdir(parents=True)
    for path in mine:
        path.replace(earlier / str(number) / path.name)
