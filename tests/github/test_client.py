"""The client itself: its patience, its addresses, its tokens, and what it shows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matrix.forge import ForgeError, ForgeRule
from matrix.github import GitHub
from matrix.retry import Patience
from tests.github.planting import artifacts, plan_file, with_labels
from tests.github.server import REPOSITORY, SECONDARY, Reply, Server, Site, error

if TYPE_CHECKING:
    from tests.github.clock import FakeClock


def test_a_server_that_hangs(server: Server, site: Site, clock: FakeClock) -> None:
    site.plant("", Reply(hang=1.5), Reply(hang=1.5))
    with (
        GitHub(REPOSITORY, api=server.url, clock=clock, timeout=1, patience=Patience(attempts=2)) as github,
        pytest.raises(ForgeError, match="timed out") as caught,
    ):
        github.labels(77)
    assert caught.value.rule is ForgeRule.DOWN
    assert len(site.requests) == 2


def test_a_server_that_hangs_in_the_middle_of_its_answer(server: Server, site: Site, clock: FakeClock) -> None:
    site.labels += ["one", "two"]
    slow = Reply(200, [{"name": "one"}, {"name": "two"}], stall=1.5)
    with GitHub(REPOSITORY, api=server.url, clock=clock, timeout=1, patience=Patience(attempts=2)) as github:
        site.plant("", slow)
        assert github.labels(77) == ("one", "two")
        site.plant("POST", Reply(201, {"id": 1}, stall=1.5))
        with pytest.raises(ForgeError, match="timed out") as caught:
            github.post(77, "text")
    assert caught.value.rule is ForgeRule.DOWN
    assert [request.partition(" ")[0] for request in site.requests] == ["GET", "GET", "POST"]


def test_patience_is_for_all_requests_together(server: Server, site: Site, clock: FakeClock) -> None:
    with GitHub(REPOSITORY, api=server.url, clock=clock, patience=Patience(total=100, attempts=2)) as github:
        for _ in range(2):
            site.plant("", error(403, SECONDARY, retry_after="40"))
            assert github.labels(77) == ()
        site.plant("", error(403, SECONDARY, retry_after="40"))
        with pytest.raises(ForgeError, match="It may come again in 40 s, and 20 s are left to wait"):
            github.labels(77)
    assert len(site.requests) == 5


def test_patience_ends_between_pages_too(server: Server, site: Site, clock: FakeClock) -> None:
    with_labels(300)(site)

    def slow(_: Site) -> None:
        clock.time += 30

    site.plant("", slow, slow, slow)
    with (
        GitHub(REPOSITORY, api=server.url, clock=clock, patience=Patience(total=50)) as github,
        pytest.raises(ForgeError, match="50 s have passed"),
    ):
        github.labels(77)
    assert len(site.requests) == 2


def test_nobody_listens(clock: FakeClock) -> None:
    with (
        GitHub(REPOSITORY, api="http://127.0.0.1:9", clock=clock) as github,
        pytest.raises(ForgeError, match="no answer 6 times: ConnectionRefusedError"),
    ):
        github.labels(77)


def test_the_token_goes_to_the_api_alone(site: Site, github: GitHub) -> None:
    artifacts(site)
    assert plan_file(github)
    assert site.tokens == {"token t0ken"}
    assert site.store_tokens == {None}


def test_a_message_shows_no_control_characters(site: Site, github: GitHub) -> None:
    site.plant("", error(422, "a\x1b[31mb\u202ec"))
    with pytest.raises(ForgeError, match=r"422: a\?\[31mb\?c"):
        github.labels(77)


@pytest.mark.parametrize(
    "api",
    ["", " ", "127.0.0.1:80", "ftp://a", "http://", "http://a:99999", "http://a:b", "http://[a", "https://me:pw@a"],
)
def test_no_address(api: str) -> None:
    with pytest.raises(ForgeError, match="is not the address of an API") as caught:
        GitHub(REPOSITORY, api=api)
    assert caught.value.rule is ForgeRule.ADDRESS
    assert "pw" not in str(caught.value)


def test_an_enterprise_server(server: Server, site: Site, clock: FakeClock) -> None:
    site.prefix = "/api/v3"
    with_labels(201)(site)
    with GitHub(REPOSITORY, api=f"{server.url}/api/v3/", clock=clock) as github:
        assert len(github.labels(77)) == 201
    assert [request.partition("?")[0] for request in site.requests] == [
        "GET /api/v3/repos/org/bench/issues/77/labels"
    ] * 3


@pytest.mark.parametrize("token", ["s3cret t0ken", "s3cret\x00", "s3crét", "s3cret\n.", "s3cret\u2028."])
def test_a_token_that_is_none_is_shown_to_nobody(token: str) -> None:
    with pytest.raises(ForgeError) as caught:
        GitHub(REPOSITORY, token)
    assert caught.value.rule is ForgeRule.TOKEN
    assert "s3cr" not in str(caught.value)


@pytest.mark.parametrize(("token", "sent"), [(" t0ken\r\n", "token t0ken"), ("", None), (" \n", None), (None, None)])
def test_a_token_out_of_a_file(token: str | None, sent: str | None, server: Server, site: Site) -> None:
    with GitHub(REPOSITORY, token, api=server.url) as github:
        github.labels(77)
    assert site.tokens == {sent}


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (error(404, "Not Found"), ForgeRule.MISSING),
        (error(401, "Requires authentication"), ForgeRule.TOKEN),
        (error(403, "Forbidden"), ForgeRule.PERMISSION),
        (error(429, SECONDARY, retry_after="9999"), ForgeRule.LIMIT),
    ],
)
def test_without_a_token_it_is_told_what_one_is_for(
    reply: Reply, rule: ForgeRule, server: Server, site: Site, clock: FakeClock
) -> None:
    for token, wanted in ((None, True), ("t0ken", False)):
        site.plant("", reply)
        with GitHub(REPOSITORY, token, api=server.url, clock=clock) as github, pytest.raises(ForgeError) as caught:
            github.labels(77)
        assert caught.value.rule is rule
        assert ("without it GitHub answers as it does to strangers" in str(caught.value)) is wanted


@pytest.mark.parametrize("name", ["", "bench", "org/bench/..", "org/be nch", "../x y"])
def test_no_repository(name: str) -> None:
    with pytest.raises(ForgeError, match="write owner/name"):
        GitHub(name)
