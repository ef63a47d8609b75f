"""`Edit`: one thing to change, precise enough for a program to do it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matrix.findings import Span

__all__ = ["Action", "Edit"]


class Action(StrEnum):
    """What is done.

    ``WRITE``: at the place ``new`` takes the room of the text ``old``. ``ADD``: ``new`` are whole lines that go below
    the line of the place. ``REMOVE``: ``old`` are whole lines, the first at the place, that go. ``OPTION``: on the
    command line ``new`` takes the place of ``old``. ``LABEL``: of the pull request's labels ``old`` goes and ``new``
    comes. ``COMMENT``: a comment that begins with ``old`` is deleted from the pull request.
    """

    WRITE = "write"
    ADD = "add"
    REMOVE = "remove"
    OPTION = "option"
    LABEL = "label"
    COMMENT = "comment"


class Edit(NamedTuple):
    """An action and where; see `Action`. ``note``: what else it changes."""

    action: Action
    place: Span | None = None
    old: str = ""
    new: str = ""
    note: str = ""
