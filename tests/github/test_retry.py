"""When a request may come again: a pure function of the answer, by table and by law."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.retry import Answer, Patience, is_limited, wait_for
from tests.github.server import INTEGRATION, NOW, PRIMARY, SECONDARY

if TYPE_CHECKING:
    from collections.abc import Mapping

DATE: Final = {"date": formatdate(NOW, usegmt=True)}
VERBS: Final = ("GET", "POST", "PATCH", "DELETE")


def until(seconds: int, **more: str) -> dict[str, str]:
    return {**DATE, "x-ratelimit-remaining": "0", "x-ratelimit-reset": str(NOW + seconds), **more}


@pytest.mark.parametrize(
    ("headers", "text", "failures", "wait"),
    [
        ({"retry-after": "30"}, SECONDARY, 1, 30.0),
        ({"retry-after": "30"}, SECONDARY, 5, 30.0),
        ({"retry-after": "0"}, SECONDARY, 1, 0.0),
        ({"retry-after": "-5"}, SECONDARY, 1, 60.0),
        ({"retry-after": "1e9"}, SECONDARY, 1, 60.0),
        ({"retry-after": "²"}, SECONDARY, 1, 60.0),
        ({"retry-after": ""}, SECONDARY, 1, 60.0),
        ({"retry-after": formatdate(NOW + 9, usegmt=True), **DATE}, SECONDARY, 1, 9.0),
        ({"retry-after": formatdate(NOW - 9, usegmt=True), **DATE}, SECONDARY, 1, 0.0),
        ({"retry-after": formatdate(NOW + 9, usegmt=True)}, SECONDARY, 1, 60.0),
        ({}, SECONDARY, 1, 60.0),
        ({}, SECONDARY.upper(), 2, 120.0),
        ({}, "You have triggered an abuse detection mechanism.", 3, 240.0),
        (until(100), PRIMARY, 1, 101.0),
        (until(-50), PRIMARY, 1, 1.0),
        (until(100, date="yesterday"), PRIMARY, 1, 60.0),
        ({"x-ratelimit-remaining": "0", **DATE}, PRIMARY, 1, 60.0),
        (until(100, **{"retry-after": "7"}), SECONDARY, 1, 7.0),
    ],
)
@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("verb", VERBS)
def test_a_limit(verb: str, status: int, headers: Mapping[str, str], text: str, failures: int, wait: float) -> None:
    assert wait_for(verb, Answer(status, headers, text), failures) == wait


@pytest.mark.parametrize("text", [INTEGRATION, "", "Must have admin rights", "issue is locked"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_missing_right_never(verb: str, text: str) -> None:
    assert not is_limited(Answer(403, {"x-ratelimit-remaining": "4999"}, text))
    assert wait_for(verb, Answer(403, {"x-ratelimit-remaining": "4999"}, text), 1) is None


@pytest.mark.parametrize("text", [INTEGRATION, "Must have admin rights to Repository.", "the issue is locked"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_missing_right_never_although_no_request_is_left(verb: str, text: str) -> None:
    assert wait_for(verb, Answer(403, until(100), text), 1) is None


@pytest.mark.parametrize("status", [400, 401, 404, 409, 410, 422, 301, 307])
@pytest.mark.parametrize("verb", VERBS)
def test_an_answer_is_an_answer(verb: str, status: int) -> None:
    assert wait_for(verb, Answer(status, {"retry-after": "1"}, SECONDARY), 1) is None


@pytest.mark.parametrize("status", [0, 500, 502, 503, 504])
def test_a_fault_of_the_server_for_reading_alone(status: int) -> None:
    assert [wait_for("GET", Answer(status, {}, ""), failures) for failures in range(1, 6)] == [1, 2, 4, 8, 16]
    assert {wait_for(verb, Answer(status, {}, ""), 1) for verb in VERBS[1:]} == {None}


@given(st.sampled_from([0, 403, 429, 500, 503]), st.text(), st.text(), st.text(), st.text(), st.integers(1, 20))
def test_whatever_the_headers_say(status: int, after: str, reset: str, date: str, text: str, failures: int) -> None:
    headers = {"retry-after": after, "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset, "date": date}
    wait = wait_for("GET", Answer(status, headers, text), failures)
    assert wait is not None
    assert wait >= 0


def test_patience_is_less_than_a_job_waits() -> None:
    assert Patience().total == 900
