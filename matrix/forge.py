"""What the core asks of the place where pull requests live, and the values that it is answered with.

`matrix.github` answers with GitHub's API. The core knows these names alone, so a decision can be tested without a
server.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from matrix.errors import RefusedError
from matrix.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "Artifact",
    "ChangedFiles",
    "Comment",
    "Forge",
    "ForgeError",
    "ForgeRule",
    "Labelling",
    "Permission",
    "PullRequest",
    "Run",
]


class ForgeRule(StrEnum):
    """What stands before the message of a `ForgeError`."""

    ADDRESS = "github-address"
    ANSWER = "github-answer"
    DOWN = "github-down"
    LIMIT = "github-limit"
    MISSING = "github-missing"
    MOVED = "github-moved"
    PERMISSION = "github-permission"
    REPOSITORY = "github-repository"
    TOKEN = "github-token"  # noqa: S105 - a rule about one


class ForgeError(RefusedError):
    """The forge did not answer, or not what was asked. ``status`` is the HTTP status, 0 when there was no answer."""

    def __init__(self, rule: ForgeRule, message: str, fix: str, *, status: int = 0) -> None:
        self.rule = rule
        self.status = status
        super().__init__([Finding(rule=rule, message=message, fix=fix)])


class Permission(StrEnum):
    """What somebody may do in a repository, weakest first. Triage may set labels and may not push.

    >>> Permission.ADMIN.covers(Permission.WRITE), Permission.TRIAGE.covers(Permission.WRITE)
    (True, False)
    """

    NONE = "none"
    READ = "read"
    TRIAGE = "triage"
    WRITE = "write"
    MAINTAIN = "maintain"
    ADMIN = "admin"

    def covers(self, wanted: Permission) -> bool:
        """Whether it is enough where another one is wanted."""
        order = list(Permission)
        return order.index(self) >= order.index(wanted)


class PullRequest(NamedTuple):
    """A pull request as it is now. ``head_repository`` and ``author`` are None when they were deleted."""

    number: int
    head_sha: str
    head_ref: str
    base_sha: str
    head_repository: str | None
    author: str | None
    draft: bool
    is_open: bool
    changed_files: int
    commits: int


class Labelling(NamedTuple):
    """That somebody set a label: their login, None for a deleted account; ``at`` is ISO 8601, the server's clock."""

    label: str
    by: str | None
    at: str


class ChangedFiles(NamedTuple):
    """Every path that a pull request touches, old names of renamed files too.

    ``complete`` is False when the forge lists fewer files than it counts; then a path that is not in the list may
    still have changed.
    """

    paths: frozenset[str]
    complete: bool


class Run(NamedTuple):
    """A run of a workflow. ``conclusion`` is None while it runs; ``attempt`` counts from 1."""

    id: int
    attempt: int
    workflow: str
    event: str
    head_sha: str
    head_repository: str | None
    status: str
    conclusion: str | None
    url: str


class Artifact(NamedTuple):
    """A file that a run left behind; ``size`` in bytes as zipped."""

    id: int
    name: str
    size: int
    expired: bool


class Comment(NamedTuple):
    """A comment on a pull request. ``author`` is None for a deleted account. Ids grow with time."""

    id: int
    author: str | None
    body: str
    url: str = ""


class Forge(Protocol):
    """Everything the core asks. Each method may raise `ForgeError`."""

    def pull(self, number: int) -> PullRequest:
        """One pull request."""

    def labels(self, number: int) -> tuple[str, ...]:
        """The labels that are on it now, all of them."""

    def labellings(self, number: int) -> tuple[Labelling, ...]:
        """For each label that was set and not taken off since: who set it last. Labels differ in more than case."""

    def permission(self, login: str) -> Permission:
        """What somebody may do in this repository; a stranger has none."""

    def changed_files(self, pull: PullRequest) -> ChangedFiles:
        """What a pull request touches."""

    def commits(self, number: int) -> tuple[str, ...]:
        """Its commits, oldest first; GitHub lists at most 250."""

    def runs(self, workflow: str, branch: str) -> tuple[Run, ...]:
        """The runs of a workflow file for pull requests from a branch, the newest first."""

    def run(self, run_id: int) -> Run | None:
        """One run; None when there is none with this id."""

    def artifacts(self, run_id: int) -> tuple[Artifact, ...]:
        """What a run left behind, expired ones too, the newest first."""

    def download(self, artifact: Artifact) -> bytes:
        """The zip file of a small artifact."""

    def save(self, artifact: Artifact, path: Path) -> None:
        """The zip file of an artifact, written to a path. May raise OSError as well."""

    def comments(self, number: int) -> Iterator[Comment]:
        """The comments of a pull request, oldest first."""

    def post(self, number: int, body: str) -> Comment:
        """A new comment."""

    def edit(self, comment_id: int, body: str) -> Comment | None:
        """A comment's new text; None when the comment is gone."""

    def delete(self, comment_id: int) -> None:
        """Take a comment away; nothing happens when it is gone."""
