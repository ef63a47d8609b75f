"""`Event`: what happened on GitHub, read from an event file. Its texts are written by strangers and stay data.

The file holds the payload alone, as ``GITHUB_EVENT_PATH`` does, or ``{"event_name": ..., "payload": ...}``. Where
nobody says which event it is, the shape tells.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.source import read_bytes
from matrix.errors import RefusedError
from matrix.findings import Finding, Span, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Event", "Kind", "event_of", "read_event", "shown"]

_MAX_LOGIN: Final = 100


class Kind(StrEnum):
    """The events that a decision is made about."""

    PULL_REQUEST = "pull_request"
    DISPATCH = "workflow_dispatch"
    PUSH = "push"
    MERGE_GROUP = "merge_group"


class Event(NamedTuple):
    """One event. ``head_repository`` is None where the fork is gone; ``label`` is the one that was set or removed."""

    kind: Kind
    repository: str
    action: str = ""
    number: int = 0
    draft: bool = False
    closed: bool = False
    merged: bool = False
    head_sha: str = ""
    head_repository: str | None = None
    base_sha: str = ""
    labels: tuple[str, ...] = ()
    label: str | None = None
    sender: str = ""
    inputs: tuple[tuple[str, str], ...] = ()

    @property
    def fork(self) -> bool:
        """Whether the head is in another repository, or in one that is gone."""
        repository = self.head_repository
        return repository is None or repository.lower() != self.repository.lower()


def read_event(path: str, name: str | None = None) -> Event:
    """The event of a file; ``name`` is what GitHub calls it (``GITHUB_EVENT_NAME``).

    Raises:
        RefusedError: the file is no event, is cut off, or is one that no decision is made about.
    """
    data = read_bytes(path, what="event file")
    try:
        payload = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _refuse(Span(path), "event-json", f"this is not UTF-8, at byte {error.start}.", "") from None
    except json.JSONDecodeError as error:
        cut = " The file is cut off." if error.pos >= len(data.decode("utf-8-sig").rstrip()) else ""
        message = f"this is not JSON: {error.msg}.{cut}"
        raise _refuse(Span(path, error.lineno, error.colno), "event-json", message, _FIX) from None
    except RecursionError:
        raise _refuse(Span(path), "event-json", "this is nested deeper than any event.", _FIX) from None
    return event_of(payload, name, path)


_FIX: Final = "give the file that GITHUB_EVENT_PATH names"


def event_of(payload: Any, name: str | None = None, path: str = "event") -> Event:
    """The event of a payload. See `read_event`."""
    if isinstance(payload, dict) and payload.keys() == {"event_name", "payload"}:
        name, payload = str(payload["event_name"]), payload["payload"]
    if not isinstance(payload, dict):
        message = "an event is a JSON object, and this is something else."
        raise _refuse(Span(path), "event-shape", message, _FIX)
    kind = _kind(name or _guess(payload), path)
    reader = _Reader(payload, path)
    event = reader.pull_request() if kind is Kind.PULL_REQUEST else reader.other(kind)
    if reader.findings:
        raise RefusedError(reader.findings)
    return event


def _guess(payload: dict[str, Any]) -> str:
    if "pull_request" in payload:
        return "pull_request"
    if "merge_group" in payload:
        return "merge_group"
    if "inputs" in payload or "workflow" in payload:
        return "workflow_dispatch"
    if "ref" in payload and "before" in payload:
        return "push"
    return ""


def _kind(name: str, path: str) -> Kind:
    try:
        return Kind(name)
    except ValueError:
        pass
    if not name:
        message = f"this is none of the events that a sweep knows: {', '.join(Kind)}."
        raise _refuse(Span(path), "event-kind", message, "name the event with --event-name")
    message = f"the event is {shown(name)}, and no decision is made about it."
    if name == "pull_request_target":
        fix = "trigger by pull_request: pull_request_target would run a stranger's change with our rights"
    else:
        fix = did_you_mean(name, Kind)
    raise _refuse(Span(path), "event-kind", message, fix)


def _refuse(span: Span, rule: str, message: str, fix: str) -> RefusedError:
    return RefusedError([Finding(rule=rule, message=message, fix=fix, span=span)])


class _Reader:
    """Takes typed values out of a payload, and collects what is not as GitHub writes it."""

    def __init__(self, payload: dict[str, Any], path: str) -> None:
        self.payload = payload
        self.path = path
        self.findings: list[Finding] = []

    def pull_request(self) -> Event:
        labels = self.at(list, "pull_request", "labels")
        action = self.at(str, "action")
        concerned = action in ("labeled", "unlabeled")
        head = self.find("pull_request", "head", "repo")
        return Event(
            kind=Kind.PULL_REQUEST,
            repository=self.at(str, "repository", "full_name"),
            action=action,
            number=self.number(),
            draft=self.at(bool, "pull_request", "draft"),
            closed=self.find("pull_request", "state") == "closed",
            merged=self.find("pull_request", "merged") is True,
            head_sha=self.sha("pull_request", "head", "sha"),
            head_repository=None if head is None else self.at(str, "pull_request", "head", "repo", "full_name"),
            base_sha=self.sha("pull_request", "base", "sha") if self.find("pull_request", "base", "sha") else "",
            labels=tuple(self.names(labels)),
            label=self.at(str, "label", "name") if concerned else None,
            sender=self.login(),
        )

    def other(self, kind: Kind) -> Event:
        inputs = self.find("inputs") or {}
        if not isinstance(inputs, dict):
            self.wrong(("inputs",), "an object")
            inputs = {}
        return Event(
            kind=kind,
            repository=self.at(str, "repository", "full_name"),
            sender=self.login(),
            inputs=tuple((str(name), _text(value)) for name, value in inputs.items()),
        )

    def find(self, *path: str) -> Any:
        value: Any = self.payload
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def at(self, kind: type[Any], *path: str) -> Any:
        """The value at a path; where it has another type, a finding and an empty value."""
        value = self.find(*path)
        if type(value) is kind:
            return value
        self.wrong(path, _KINDS[kind])
        return kind()

    def number(self) -> int:
        for path in (("pull_request", "number"), ("number",)):
            value = self.find(*path)
            if type(value) is int and value > 0:
                return value
        self.wrong(("number",), "a number above 0")
        return 0

    def sha(self, *path: str) -> str:
        value: str = self.at(str, *path)
        if value and not set(value) <= set("0123456789abcdef"):
            self.wrong(path, "a commit id")
        return value

    def names(self, labels: list[Any]) -> Iterator[str]:
        for label in labels:
            name = label.get("name") if isinstance(label, dict) else None
            if isinstance(name, str):
                yield name
            else:
                self.wrong(("pull_request", "labels"), "a list of objects with a name")
                return

    def login(self) -> str:
        """Who did it; empty where the event does not say."""
        value = self.find("sender", "login")
        return value if isinstance(value, str) and len(value) <= _MAX_LOGIN else ""

    def wrong(self, path: tuple[str, ...], wanted: str) -> None:
        value = self.find(*path)
        what = "is missing" if value is None else f"is {shown(json.dumps(value))}"
        message = f"{'.'.join(path)} {what}, and {wanted} is wanted."
        self.findings.append(Finding(rule="event-shape", message=message, fix=_FIX, span=Span(self.path)))


_KINDS: Final = {str: "text", bool: "true or false", list: "a list"}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def shown(text: str, limit: int = 60) -> str:
    r"""A stranger's text, fit for a line of a log: no line break, no control character, not endless.

    Runners obey ``::command::`` at the beginning of a line and ``##[command]`` anywhere in it.

    >>> shown("needs review"), shown("x\n::set-output name=a::b"), shown("##[add-mask]e")
    ('needs review', '"x\\n::set-output name=a::b"', '# #[add-mask]e')
    """
    clipped = (text if len(text) <= limit else text[: limit - 1] + "…").replace("##[", "# #[")
    return clipped if clipped.isprintable() and clipped.strip() == clipped != "" else json.dumps(clipped)
