"""`Sticky`: one comment on a pull request, updated in place, whoever else comments and however many runs write at once.

The first line of the comment is a mark that GitHub does not show. It says which comment this is and which run wrote it.
Runs are numbered in the order in which they began, so an older run that comes late leaves a newer one's text alone; no
clock is asked. Only comments of our own account count: anybody can write the mark.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from matrix.forge import Comment, Forge

__all__ = ["BOT", "Outcome", "Sticky"]

BOT: Final = "github-actions[bot]"
"""Whose comments those of a workflow with its own token are."""
_MARK: Final = re.compile(r"<!-- matrix:([a-z-]{1,40}) run=([0-9]{1,18}) attempt=([0-9]{1,9}) -->\n?")


class Outcome(StrEnum):
    """What became of the text."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    OUTDATED = "outdated"
    """A newer run has written already."""
    ABSENT = "absent"
    """There is none, and none was to be made."""
    ANOTHERS = "created by another account; name that with --author, or each run makes a new one"


class Sticky(NamedTuple):
    """Which comment (``name``: lower-case letters), the run that writes, its attempt, and our account."""

    name: str
    run: int = 0
    attempt: int = 0
    author: str = BOT

    @property
    def mark(self) -> str:
        """The first line of the comment."""
        return f"<!-- matrix:{self.name} run={self.run} attempt={self.attempt} -->\n"

    def put(self, forge: Forge, number: int, text: str, *, create: bool = True) -> Outcome:
        """Let the comment of a pull request say ``text``; where there are several of ours, one is left.

        ``create``: whether there is to be one where there is none.

        Raises:
            ForgeError: the forge does not answer, or does not let us write.
        """
        body = self.mark + text
        ours = self._ours(forge, number)
        if not ours and not create:
            return Outcome.ABSENT
        if not ours:
            if forge.post(number, body).author != self.author:
                return Outcome.ANOTHERS
            return Outcome.CREATED if self._settle(forge, number, body) else Outcome.OUTDATED
        order, kept = ours[-1]
        self._remove(forge, [comment for _, comment in ours[:-1]])
        if order > self._order:
            return Outcome.OUTDATED
        if _without_mark(kept.body) == _without_mark(body):
            return Outcome.UNCHANGED
        if forge.edit(kept.id, body) is None:
            # Somebody deleted it by hand since it was listed.
            forge.post(number, body)
        return Outcome.UPDATED if self._settle(forge, number, body) else Outcome.OUTDATED

    @property
    def _order(self) -> tuple[int, int]:
        return self.run, self.attempt

    def _settle(self, forge: Forge, number: int, body: str) -> bool:
        """Two runs may have written at once. Both look again, and both keep the comment of the newer one.

        An older one that looked before us and wrote after us is written over. GitHub has no update that is refused
        where the text is another by now, so one that writes after this look stays until the next run.
        """
        ours = self._ours(forge, number)
        self._remove(forge, [comment for _, comment in ours[:-1]])
        if ours and ours[-1][0] < self._order:
            forge.edit(ours[-1][1].id, body)
        return not ours or ours[-1][0] <= self._order

    def _ours(self, forge: Forge, number: int) -> list[tuple[tuple[int, int], Comment]]:
        """Our comments of this name: of the oldest run first, and of one run the last comment first."""
        found = []
        for comment in forge.comments(number):
            mark = _MARK.match(comment.body)
            if comment.author == self.author and mark is not None and mark[1] == self.name:
                found.append(((int(mark[2]), int(mark[3])), comment))
        return sorted(found, key=lambda one: (one[0], -one[1].id))

    @staticmethod
    def _remove(forge: Forge, comments: list[Comment]) -> None:
        for comment in comments:
            forge.delete(comment.id)


def _without_mark(body: str) -> str:
    """What people see. GitHub may give line ends back as CRLF, and without blanks at the end."""
    return _MARK.sub("", body.replace("\r\n", "\n"), count=1).strip()
