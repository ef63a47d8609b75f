"""Two branches that both append to the log, merged without a conflict: the base side first, byte for byte.

git cannot know that two additions at one place of this file belong one after the other, nor which one comes first. The
base side is the one that the default branch has already; its bytes must stay where they are.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from matrix.changelog.compare import identity
from matrix.changelog.context import Context
from matrix.changelog.past import examine
from matrix.changelog.tail import examine_tail, separator
from matrix.changelog.text import Text
from matrix.findings import errors_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matrix.changelog.text import Block

__all__ = ["Side", "base_side", "merge"]


class Side(StrEnum):
    """A side of a merge, as git names it: in a rebase, ``OURS`` is the branch that is rebased onto."""

    OURS = "ours"
    THEIRS = "theirs"


def base_side(ours: bytes, theirs: bytes, published: Iterable[bytes]) -> Side:
    """The side that comes first: the one that a default branch (``published``, its revisions of the log) holds.

    >>> base_side(b"old mine", b"old", [b"old and more"])
    <Side.THEIRS: 'theirs'>
    >>> base_side(b"old", b"old mine", [b"old and more"])
    <Side.OURS: 'ours'>
    """
    known = tuple(published)
    holds_ours = any(data.startswith(ours) for data in known)
    holds_theirs = any(data.startswith(theirs) for data in known)
    return Side.THEIRS if holds_theirs and not holds_ours else Side.OURS


def merge(ancestor: bytes, ours: bytes, theirs: bytes, first: Side, context: Context | None = None) -> bytes | None:
    """The merged log, the ``first`` side's bytes at its beginning; None unless both sides did nothing but append.

    An entry that both sides added (a branch that was merged once already) is kept once, as the first side has it.
    """
    context = context or Context()
    old = Text("", ancestor)
    head, follower = (ours, theirs) if first is Side.OURS else (theirs, ours)
    leading, trailing = Text("", head), Text("", follower)
    before, after = _appended(old, leading, context), _appended(old, trailing, context)
    if before is None or after is None or leading.preamble != trailing.preamble:
        return None
    added = [block for block in after if not _take(block, before, context)]
    if not added:
        return head
    if len(added) == len(after):
        rest = follower[after[0].start :]
    else:
        rest = b"\n\n".join(block.data for block in added) + b"\n"
    return head + separator(head) + rest


def _appended(old: Text, new: Text, context: Context) -> list[Block] | None:
    """The blocks that one side added; None when it did anything else, or did not do it well."""
    if not (old.readable and new.readable and new.data == new.raw and (not new.raw or new.raw.endswith(b"\n"))):
        return None
    if not new.data.startswith(old.data) or (old.data and not old.data.endswith(b"\n")):
        return None
    past = examine(old, new, context)
    if past.findings or errors_of(examine_tail(old, new, past.appended, past.tail)):
        return None
    if not past.appended and new.data != old.data:
        return None
    return [new.blocks[at] for at in past.appended]


def _take(block: Block, others: list[Block], context: Context) -> bool:
    """Whether the other side added the entry too: equal, or with its link filled in on one side."""
    content, link = identity(block.data)
    for other in others:
        found = identity(other.data)
        same_link = link == found.link or context.is_placeholder(link) or context.is_placeholder(found.link)
        if content == found.content and same_link:
            others.remove(other)
            return True
    return False
