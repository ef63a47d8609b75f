"""Where a check stands: whose pull requests the log links to, which of them this is, and how far it has come."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from matrix.changelog.entries import Entry

__all__ = ["DEFAULT_REPOSITORY", "PLACEHOLDER", "Context", "Stage"]

DEFAULT_REPOSITORY: Final = "SemiAnalysisAI/InferenceX"
PLACEHOLDER: Final = "XXX"
"""Stands for the number of a pull request that has none yet."""


class Stage(StrEnum):
    """``PULL_REQUEST`` may still hold placeholders; what is to be merged, or was, may not."""

    PULL_REQUEST = "pull-request"
    MERGE = "merge"


class Context(NamedTuple):
    """What the links of new entries must be, and what refusals call the two files.

    >>> context = Context(number=77)
    >>> context.accepts("https://github.com/SemiAnalysisAI/InferenceX/pull/77"), context.accepts("XXX")
    (True, True)
    >>> context.accepts("https://github.com/SemiAnalysisAI/InferenceX/pull/70")
    False
    """

    repository: str = DEFAULT_REPOSITORY
    number: int | None = None
    stage: Stage = Stage.PULL_REQUEST
    base_name: str = "base:perf-changelog.yaml"
    head_name: str = "perf-changelog.yaml"

    def link(self, number: int | str | None = None) -> str:
        """The canonical link of a pull request; of this one, or with the placeholder, when none is named."""
        number = self.number if number is None else number
        return f"https://github.com/{self.repository}/pull/{PLACEHOLDER if number is None else number}"

    def is_canonical(self, link: str) -> bool:
        """Whether a link names a pull request of this repository, and nothing beside it."""
        number = link.removeprefix(self.link(""))
        return number != link and number.isascii() and number.isdigit() and number[0] != "0"

    def is_placeholder(self, link: str) -> bool:
        """Whether a link waits for the number of its pull request."""
        return link in (PLACEHOLDER, self.link(PLACEHOLDER))

    def accepts(self, link: str) -> bool:
        """Whether a new entry may carry this link here."""
        if self.stage is Stage.PULL_REQUEST and self.is_placeholder(link):
            return True
        return link == self.link() if self.number is not None else self.is_canonical(link)

    def refusal(self, entry: Entry) -> tuple[str, str]:
        """Why the link of a new entry is refused, and what to write instead."""
        link = entry.pr_link
        wanted = f"write pr-link: {self.link('<number>' if self.number is None else self.number)}"
        if self.is_placeholder(link):
            return f"pr-link is still the placeholder {link}. What is merged links its pull request.", wanted
        if self.is_canonical(link):
            return f"pr-link names another pull request ({link}). A new entry links the one that adds it.", wanted
        import re

        other = re.fullmatch(r"https?://(?:www\.)?github\.com/([^/]+/[^/]+)/pull/([0-9]+)(.*)", link)
        if other and other[1] != self.repository:
            return f"pr-link names the repository {other[1]}, and this log is about {self.repository}.", wanted
        if other and self.number is None:
            return f"pr-link is not in its canonical form: {link}.", f"write pr-link: {self.link(int(other[2]))}"
        return f"pr-link is not the link of a pull request: {link or 'empty'}.", wanted
