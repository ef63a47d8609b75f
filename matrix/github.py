"""`Forge`, answered by GitHub's REST API through PyGithub.

PyGithub signs the requests and speaks HTTP; its own retries are off, because `matrix.retry` decides page by page and
has to be bounded. Every list is read to its last page, and an answer of another shape than GitHub documents is an
error, never an empty list.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote, urljoin, urlsplit

from matrix.address import API, address_of, origin, token_of
from matrix.forge import (
    Artifact,
    ChangedFiles,
    Comment,
    ForgeError,
    ForgeRule,
    Labelling,
    Permission,
    PullRequest,
    Run,
)
from matrix.refusal import Record, cause, impatient, odd_answer, parsed, refusal
from matrix.retry import Answer, Patience, SystemClock, wait_for
from matrix.store import fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from matrix.retry import Clock

__all__ = ["API", "MAX_DOWNLOAD", "MAX_SAVED", "GitHub"]

MAX_DOWNLOAD: Final = 64 * 1024 * 1024
"""Bytes of an artifact that are read into memory; a plan of 65,536 points takes a tenth of it."""
MAX_SAVED: Final = 4 * 1024**3
"""Bytes of an artifact that are written to a file; the packed logs of a point are most of it."""
_MAX_FILES: Final = 3000
"""GitHub lists no more files of a pull request than this."""
_MAX_PAGES: Final = 1000
_PAGE: Final = 100
_PERMISSION: Final = "permission"
_COARSE: Final = frozenset({"admin", "write", "read", "none"})
_LIST: Final = "list"
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_NEXT: Final = re.compile(r'<([^<>]+)>\s*;[^,<]*\brel="?next"?')


class GitHub:
    """One repository. A context manager: it keeps a connection until it is closed."""

    def __init__(
        self,
        repository: str,
        token: str | None = None,
        *,
        api: str = API,
        patience: Patience = Patience(),  # noqa: B008 - immutable
        clock: Clock | None = None,
        timeout: int = 30,
    ) -> None:
        from github import Auth, Github

        if not _REPOSITORY.fullmatch(repository):
            message = f"{repository!r} is no repository."
            raise ForgeError(ForgeRule.REPOSITORY, message, "write owner/name")
        self.repository = repository
        self._api = address_of(api)
        token = token_of(token)
        self._stranger = token is None
        self._patience = patience
        self._clock: Clock = clock or SystemClock()
        self._until: float | None = None
        self._timeout = timeout
        self._secure = self._api.startswith("https:")
        self._github = Github(
            auth=Auth.Token(token) if token else None,
            base_url=self._api,
            timeout=timeout,
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._github.close()

    # -- pull requests ------------------------------------------------------------------------------------------------

    def pull(self, number: int) -> PullRequest:
        """One pull request."""
        found = self._one("GET", f"pulls/{number}", needs="pull-requests: read")
        head, base = found.part("head"), found.part("base")
        return PullRequest(
            number=found.number("number"),
            head_sha=head.text("sha"),
            head_ref=head.text("ref"),
            base_sha=base.text("sha"),
            head_repository=_full_name(head, "repo"),
            author=_login(found, "user"),
            draft=found.flag("draft"),
            is_open=found.text("state") == "open",
            changed_files=found.number("changed_files"),
            commits=found.number("commits"),
        )

    def labels(self, number: int) -> tuple[str, ...]:
        """The labels that are on it now, all of them."""
        return tuple(one.text("name") for one in self._all(f"issues/{number}/labels", needs="pull-requests: read"))

    def labellings(self, number: int) -> tuple[Labelling, ...]:
        """For each label that was set and not taken off since: who set it last."""
        last: dict[str, Labelling] = {}
        listed = self._all(f"issues/{number}/events", needs="pull-requests: read")
        known = [(one, one.text("event")) for one in listed]
        ours = [(one, event) for one, event in known if event in ("labeled", "unlabeled")]
        # GitHub documents no order. Events of one second stay as they come.
        for one, event in sorted(ours, key=lambda found: found[0].text("created_at")):
            label = one.part("label").text("name")
            last.pop(label.casefold(), None)
            if event == "labeled":
                last[label.casefold()] = Labelling(label, _login(one, "actor"), one.text("created_at"))
        return tuple(last.values())

    def permission(self, login: str) -> Permission:
        """What somebody may do here. A custom role counts as what it lets people push."""
        try:
            found = self._one("GET", f"collaborators/{quote(login, safe='')}/permission", needs="metadata: read")
        except ForgeError as error:
            if error.status == 404:
                return Permission.NONE
            raise
        coarse = found.text("permission")
        if coarse not in _COARSE:
            raise odd_answer(found.where, _PERMISSION, coarse)
        role = found.text("role_name") if found.has("role_name") else coarse
        plain = Permission(coarse)
        fine = Permission(role) if role in tuple(Permission) else plain
        return fine if fine.covers(Permission.WRITE) == plain.covers(Permission.WRITE) else plain

    def changed_files(self, pull: PullRequest) -> ChangedFiles:
        """What a pull request touches."""
        # A push between two pages moves files over their border: a name can come twice, and another one never.
        names, old_names = set(), set()
        for one in self._all(f"pulls/{pull.number}/files", needs="pull-requests: read"):
            names.add(one.text("filename"))
            if one.has("previous_filename"):
                old_names.add(one.text("previous_filename"))
        complete = len(names) == pull.changed_files and len(names) < _MAX_FILES
        return ChangedFiles(frozenset(names | old_names), complete)

    def commits(self, number: int) -> tuple[str, ...]:
        """Its commits, oldest first; GitHub lists at most 250."""
        return tuple(one.text("sha") for one in self._all(f"pulls/{number}/commits", needs="pull-requests: read"))

    # -- runs ---------------------------------------------------------------------------------------------------------

    def runs(self, workflow: str, branch: str) -> tuple[Run, ...]:
        """The runs of a workflow file for pull requests from a branch, the newest first."""
        path = f"actions/workflows/{quote(workflow, safe='')}/runs"
        listed = self._all(path, needs="actions: read", key="workflow_runs", branch=branch, event="pull_request")
        # A repository with a new name redirects to a list that nobody filtered.
        found = {run.id: run for run in map(_run, listed) if run.event == "pull_request"}
        return tuple(found[number] for number in sorted(found, reverse=True))

    def run(self, run_id: int) -> Run | None:
        """One run; None when there is none with this id."""
        try:
            return _run(self._one("GET", f"actions/runs/{run_id}", needs="actions: read"))
        except ForgeError as error:
            if error.status == 404:
                return None
            raise

    def artifacts(self, run_id: int) -> tuple[Artifact, ...]:
        """What a run left behind, the newest first."""
        found = {
            one.number("id"): Artifact(
                one.number("id"), one.text("name"), one.number("size_in_bytes"), one.flag("expired")
            )
            for one in self._all(f"actions/runs/{run_id}/artifacts", needs="actions: read", key="artifacts")
        }
        return tuple(found[number] for number in sorted(found, reverse=True))

    def download(self, artifact: Artifact) -> bytes:
        """The zip file of a small artifact; the store that GitHub points to is never shown the token."""
        from io import BytesIO

        stream = BytesIO()
        self._fetch(artifact, stream, MAX_DOWNLOAD)
        return stream.getvalue()

    def save(self, artifact: Artifact, path: Path) -> None:
        """The zip file of an artifact of any size that one job leaves. Raises OSError when it cannot be written."""
        with path.open("wb") as stream:
            self._fetch(artifact, stream, MAX_SAVED)

    def _fetch(self, artifact: Artifact, into: BinaryIO, most: int) -> None:
        what = f"artifact {artifact.name!r}"
        if artifact.size > most:
            message = f"{what} has {artifact.size:,} bytes, and at most {most:,} are read."
            raise ForgeError(ForgeRule.ANSWER, message, "check what was uploaded under this name")
        path = f"/repos/{self.repository}/actions/artifacts/{artifact.id}/zip"
        answer = self._ask("GET", path, needs="actions: read", good=(302,))
        target = answer.headers.get("location", "")
        if origin(target).partition(":")[0] not in (("https",) if self._secure else ("https", "http")):
            message = f"{what} is said to be at {target!r}, which is no web address."
            raise ForgeError(ForgeRule.ANSWER, message, "try again")
        where = f"GET the file of {what}"
        self._patiently(where, "actions: read", (200,), lambda: fetch(target, self._timeout, into, most))
        if into.tell() > most:
            message = f"{what} is larger than {most:,} bytes, and was announced with {artifact.size:,}."
            raise ForgeError(ForgeRule.ANSWER, message, "check what was uploaded under this name")

    # -- comments -----------------------------------------------------------------------------------------------------

    def comments(self, number: int) -> Iterator[Comment]:
        """The comments of a pull request, oldest first."""
        for one in self._all(f"issues/{number}/comments", needs="pull-requests: read"):
            yield _comment(one)

    def post(self, number: int, body: str) -> Comment:
        """A new comment."""
        path = f"issues/{number}/comments"
        return _comment(self._one("POST", path, needs="pull-requests: write", content={"body": body}))

    def edit(self, comment_id: int, body: str) -> Comment | None:
        """A comment's new text; None when the comment is gone."""
        path = f"issues/comments/{comment_id}"
        try:
            return _comment(self._one("PATCH", path, needs="pull-requests: write", content={"body": body}))
        except ForgeError as error:
            if error.status in (404, 410):
                return None
            raise

    def delete(self, comment_id: int) -> None:
        """Take a comment away; nothing happens when it is gone."""
        path = f"/repos/{self.repository}/issues/comments/{comment_id}"
        self._ask("DELETE", path, needs="pull-requests: write", good=(204, 404, 410))

    # -- requests -----------------------------------------------------------------------------------------------------

    def _one(self, verb: str, path: str, *, needs: str, content: dict[str, str] | None = None) -> Record:
        path = f"/repos/{self.repository}/{path}"
        return Record(f"{verb} {path}", parsed(f"{verb} {path}", self._ask(verb, path, needs=needs, content=content)))

    def _all(self, path: str, *, needs: str, key: str = "", **query: str) -> Iterator[Record]:
        """Every member of a list; ``key``: where it is, when it is not the answer itself."""
        url, seen = f"/repos/{self.repository}/{path}", set[str]()
        where = f"GET {url}"
        parameters: dict[str, Any] | None = {**query, "per_page": _PAGE}
        while url:
            seen.add(url)
            answer = self._ask("GET", url, needs=needs, parameters=parameters)
            found = parsed(where, answer)
            members = found.get(key) if key and isinstance(found, dict) else found
            if not isinstance(members, list):
                raise odd_answer(where, key or _LIST, found)
            yield from (Record(where, member) for member in members)
            url, parameters = self._following(where, answer, url), None
            if url in seen or len(seen) > _MAX_PAGES:
                message = f"{where}: the pages of the answer have no end."
                raise ForgeError(ForgeRule.ANSWER, message, "try again")

    def _following(self, where: str, answer: Answer, url: str) -> str:
        """The address of the next page, empty where there is none. The token goes to no other host."""
        following = _NEXT.search(answer.headers.get("link", ""))
        if following is None:
            return ""
        try:
            found: str = urljoin(url if url.startswith("http") else self._api + url, following[1])
        except ValueError:
            found = ""
        if origin(found) != origin(self._api):
            raise odd_answer(where, "next page", following[1])
        return found

    def _ask(
        self,
        verb: str,
        url: str,
        *,
        needs: str,
        good: tuple[int, ...] = (200, 201),
        parameters: dict[str, Any] | None = None,
        content: dict[str, str] | None = None,
    ) -> Answer:
        from requests import RequestException

        requester = self._github.requester

        def attempt() -> Answer:
            try:
                status, headers, text = requester.requestJson(verb, url, parameters, {}, content)
            except RequestException as error:
                return Answer(0, {}, cause(error))
            except RecursionError:
                return Answer(301, {}, "the redirections have no end")
            except (RuntimeError, ValueError, AssertionError) as error:
                # PyGithub follows no redirection to another host, and takes each for an address.
                return Answer(301, {}, cause(error))
            return Answer(status, headers, text)

        return self._patiently(f"{verb} {urlsplit(url).path}", needs, good, attempt)

    def _patiently(self, where: str, needs: str, good: tuple[int, ...], attempt: Callable[[], Answer]) -> Answer:
        """One request, made again as `matrix.retry` allows and within what is left of the patience."""
        if self._until is None:
            self._until = self._clock.now() + self._patience.total
        failures = 0
        while True:
            if self._clock.now() >= self._until:
                message = f"{where}: {self._patience.total:.0f} s have passed, which is as long as a command waits."
                raise ForgeError(ForgeRule.DOWN, message, "run the command again later")
            answer = attempt()
            if answer.status in good:
                return answer
            failures += 1
            wait = wait_for(where.partition(" ")[0], answer, failures)
            if wait is None or failures >= self._patience.attempts:
                raise refusal(where, needs, answer, failures, stranger=self._stranger)
            left = self._until - self._clock.now()
            if wait >= left:
                raise impatient(where, answer, wait, left, stranger=self._stranger)
            self._clock.sleep(wait)


def _full_name(record: Record, name: str) -> str | None:
    return record.part(name).text("full_name") if record.has(name) else None


def _login(record: Record, name: str) -> str | None:
    """Null stands for a deleted account."""
    return record.part(name).text("login") if record.has(name) else None


def _run(one: Record) -> Run:
    return Run(
        id=one.number("id"),
        attempt=one.number("run_attempt"),
        workflow=one.text("path").partition("@")[0],
        event=one.text("event"),
        head_sha=one.text("head_sha"),
        head_repository=_full_name(one, "head_repository"),
        status=one.text("status"),
        conclusion=one.text("conclusion") if one.has("conclusion") else None,
        url=one.text("html_url"),
    )


def _comment(one: Record) -> Comment:
    body = one.text("body") if one.has("body") else ""
    return Comment(one.number("id"), _login(one, "user"), body, one.text("html_url"))
