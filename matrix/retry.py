"""When a request is made again, and how long to wait for it.

GitHub's own rules ("Best practices for using the REST API"): wait as long as ``Retry-After`` says, else until
``x-ratelimit-reset`` when no request is left, else at least a minute, growing, when the limit is a secondary one.
A limit means that the request was not carried out, so any verb may come again. After a server error nobody knows, so
only GET does. A refusal for lack of rights is an answer, not a fault.
"""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Answer", "Clock", "Patience", "SystemClock", "is_limited", "wait_for"]

_SECONDARY_WAIT: Final = 60.0
_SERVER_WAIT: Final = 1.0
_SPARE: Final = 1.0
"""Seconds after the reset: its time is rounded down."""
_RIGHTS: Final = ("not accessible by", "must have", "is locked", "saml enforcement", "forbidden by")
"""GitHub's words for a missing right, which hold also where the request was the last one that the limit let through."""
_TOLD: Final = ("secondary rate limit", "abuse detection", "api rate limit exceeded", "temporarily blocked from")


class Clock(Protocol):
    """The seconds that pass; a test brings its own."""

    def now(self) -> float:
        """Seconds since some moment."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Patience(NamedTuple):
    """How long a command waits for the API: seconds for all its requests together, and attempts of one request."""

    total: float = 900.0
    attempts: int = 6


class Answer(NamedTuple):
    """What came back. ``status`` 0: no answer, ``text`` says why. Names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str


def is_limited(answer: Answer) -> bool:
    """Whether a request was turned away for being one too many.

    >>> is_limited(Answer(403, {}, '{"message": "Resource not accessible by integration"}'))
    False
    >>> is_limited(Answer(403, {"x-ratelimit-remaining": "0"}, ""))
    True
    """
    if answer.status not in (403, 429):
        return False
    told = answer.text.casefold()
    return (
        answer.status == 429
        or "retry-after" in answer.headers
        or any(words in told for words in _TOLD)
        or (answer.headers.get("x-ratelimit-remaining") == "0" and not any(words in told for words in _RIGHTS))
    )


def wait_for(verb: str, answer: Answer, failures: int) -> float | None:
    """Seconds until a request may be made again; None when it must not be. ``failures`` so far, this one included.

    >>> wait_for("POST", Answer(403, {"retry-after": "7"}, ""), 1)
    7.0
    >>> wait_for("GET", Answer(502, {}, ""), 3)
    4.0
    >>> wait_for("POST", Answer(502, {}, ""), 1) is None
    True
    """
    if is_limited(answer):
        told = _seconds(answer.headers.get("retry-after", ""), answer.headers)
        if told is None and answer.headers.get("x-ratelimit-remaining") == "0":
            told = _until_reset(answer.headers)
        return _SECONDARY_WAIT * 2.0 ** (failures - 1) if told is None else told
    if verb == "GET" and (answer.status == 0 or answer.status >= 500):
        told = _seconds(answer.headers.get("retry-after", ""), answer.headers)
        return max(told or 0.0, _SERVER_WAIT * 2.0 ** (failures - 1))
    return None


def _seconds(text: str, headers: Mapping[str, str]) -> float | None:
    """``Retry-After``: seconds, or a date, which is measured from the server's own ``Date``."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    until, now = _moment(text), _moment(headers.get("date", ""))
    return None if until is None or now is None else max(0.0, until - now)


def _until_reset(headers: Mapping[str, str]) -> float | None:
    """The reset is a moment of the server's clock; ours may be wrong, so the answer's ``Date`` is what counts."""
    reset, now = headers.get("x-ratelimit-reset", ""), _moment(headers.get("date", ""))
    if not (reset.isascii() and reset.isdigit()) or now is None:
        return None
    return max(0.0, float(reset[:12]) - now) + _SPARE


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
