"""What became of the entries that the base already had: of a head that appends to them, or does anything else."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from matrix.changelog.text import Text

if TYPE_CHECKING:
    from matrix.changelog.context import Context
    from matrix.findings import Finding

__all__ = ["Correction", "Past", "examine"]


class Correction(NamedTuple):
    """A new link on old entry ``number``: its ``line`` in the head and the byte where that begins."""

    number: int
    line: int
    offset: int
    old: str
    new: str


class Past(NamedTuple):
    """What became of history.

    ``new`` are the indices of the head's new blocks, ``appended`` those of them that follow all history. ``tail`` is
    where the bytes of history end and the first appended entry may begin; None where that cannot be told.
    """

    new: tuple[int, ...]
    appended: tuple[int, ...]
    tail: int | None
    findings: tuple[Finding, ...] = ()
    corrections: tuple[Correction, ...] = ()


def examine(old: Text, new: Text, context: Context) -> Past:
    """Compare the history of two readable revisions."""
    if not new.data.startswith(old.data):
        from matrix.changelog.immutable import rewritten

        return rewritten(old, new, context)
    count = bisect_left(new.starts, len(old.data))
    added = tuple(range(count, len(new.starts)))
    if count and old.data.endswith(b"\n"):
        after = new.block(count - 1).data
        before = Text("", old.data[new.starts[count - 1] :]).block(0).data
        if before != after:
            from matrix.changelog.compare import identity
            from matrix.changelog.immutable import edited

            if identity(before) != identity(after):
                return Past(added, added, None, (edited(old, new, count - 1, count - 1),))
    return Past(added, added, len(old.data))
