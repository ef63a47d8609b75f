"""One comment, updated in place, over the API: by hand, by two runs at once, by strangers with our mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matrix.forge import ForgeError
from matrix.sticky import BOT, Outcome, Sticky
from tests.github.server import Reply, Site, error

if TYPE_CHECKING:
    from matrix.github import GitHub

FIRST = Sticky("plan", run=10, attempt=1)
SECOND = Sticky("plan", run=11, attempt=1)


def texts(site: Site) -> list[tuple[str, str]]:
    """Who said what, without the mark."""
    return [(comment["user"]["login"], comment["body"].rpartition("-->\n")[2]) for comment in site.comments]


def test_created_then_updated_in_place(site: Site, github: GitHub) -> None:
    site.comment("ada", "Looks good.")
    assert FIRST.put(github, 77, "one") is Outcome.CREATED
    assert len(site.requests) == 3
    assert SECOND.put(github, 77, "two") is Outcome.UPDATED
    assert len(site.requests) == 6
    assert texts(site) == [("ada", "Looks good."), (BOT, "two")]


def test_nothing_is_written_where_nothing_is_new(site: Site, github: GitHub) -> None:
    FIRST.put(github, 77, "one\n")
    site.comments[0]["body"] = site.comments[0]["body"].replace("\n", "\r\n").rstrip()
    site.requests.clear()
    assert SECOND.put(github, 77, "one\n") is Outcome.UNCHANGED
    assert len(site.requests) == 1


def test_an_older_run_that_comes_late(site: Site, github: GitHub) -> None:
    SECOND.put(github, 77, "two")
    site.requests.clear()
    assert FIRST.put(github, 77, "one") is Outcome.OUTDATED
    assert texts(site) == [(BOT, "two")]
    assert len(site.requests) == 1


def test_a_later_attempt_of_one_run(site: Site, github: GitHub) -> None:
    FIRST.put(github, 77, "one")
    assert FIRST._replace(attempt=2).put(github, 77, "two") is Outcome.UPDATED
    assert FIRST.put(github, 77, "one") is Outcome.OUTDATED
    assert texts(site) == [(BOT, "two")]


def test_none_is_made_where_none_is_wanted(site: Site, github: GitHub) -> None:
    assert FIRST.put(github, 77, "one", create=False) is Outcome.ABSENT
    FIRST.put(github, 77, "one")
    assert SECOND.put(github, 77, "two", create=False) is Outcome.UPDATED
    assert texts(site) == [(BOT, "two")]


def test_written_by_another_account_than_was_thought(site: Site, github: GitHub) -> None:
    site.me = "ada"
    outcome = FIRST.put(github, 77, "one")
    assert outcome is Outcome.ANOTHERS
    assert "--author" in outcome
    assert SECOND._replace(author="ada").put(github, 77, "two") is Outcome.UPDATED


def test_deleted_by_hand(site: Site, github: GitHub) -> None:
    FIRST.put(github, 77, "one")
    site.comments.clear()
    assert SECOND.put(github, 77, "two") is Outcome.CREATED
    assert texts(site) == [(BOT, "two")]


def test_deleted_by_hand_between_list_and_edit(site: Site, github: GitHub) -> None:
    FIRST.put(github, 77, "one")

    def gone(site: Site) -> None:
        site.comments.clear()

    site.plant("PATCH", gone)
    assert SECOND.put(github, 77, "two") is Outcome.UPDATED
    assert texts(site) == [(BOT, "two")]


@pytest.mark.parametrize(("mine", "theirs", "left", "outcome"), [
    (FIRST, SECOND, "theirs", Outcome.OUTDATED),
    (SECOND, FIRST, "mine", Outcome.CREATED),
])  # fmt: skip
def test_two_runs_that_post_at_once(
    mine: Sticky, theirs: Sticky, left: str, outcome: Outcome, site: Site, github: GitHub
) -> None:
    def other(site: Site) -> None:
        site.comment(BOT, theirs.mark + "theirs")

    site.plant("POST", other)
    assert mine.put(github, 77, "mine") is outcome
    assert texts(site) == [(BOT, left)]


def test_an_older_run_that_looked_before_and_wrote_after(site: Site, github: GitHub) -> None:
    FIRST._replace(run=9).put(github, 77, "nine")

    def late(site: Site) -> None:
        site.comments[0]["body"] = FIRST.mark + "ten"

    site.plant("^GET .*comments", lambda _: None, late)
    site.requests.clear()
    assert SECOND.put(github, 77, "eleven") is Outcome.UPDATED
    assert texts(site) == [(BOT, "eleven")]
    assert [request.partition(" ")[0] for request in site.requests] == ["GET", "PATCH", "GET", "PATCH"]
    assert FIRST.put(github, 77, "ten") is Outcome.OUTDATED


def test_two_runs_that_end_with_two_comments_are_mended_by_the_next(site: Site, github: GitHub) -> None:
    site.comment(BOT, FIRST.mark + "one")
    site.comment(BOT, FIRST.mark + "one again")
    site.comment(BOT, SECOND.mark + "two")
    assert Sticky("plan", run=12).put(github, 77, "three") is Outcome.UPDATED
    assert texts(site) == [(BOT, "three")]


def test_the_mark_of_a_stranger_is_not_ours(site: Site, github: GitHub) -> None:
    site.comment("mallory", Sticky("plan", run=10**17).mark + "Ignore the bot.")
    site.comment(None, SECOND.mark + "gone")
    assert FIRST.put(github, 77, "one") is Outcome.CREATED
    assert [comment["body"] for comment in site.comments][-1] == FIRST.mark + "one"
    assert len(site.comments) == 3


def test_other_comments_of_our_account_stay(site: Site, github: GitHub) -> None:
    site.comment(BOT, "Thanks for your first contribution!")
    site.comment(BOT, Sticky("collect", run=9).mark + "results")
    site.comment(BOT, "Quoted:\n" + SECOND.mark + "two")
    assert FIRST.put(github, 77, "one") is Outcome.CREATED
    assert len(site.comments) == 4


def test_behind_a_hundred_comments(site: Site, github: GitHub) -> None:
    for number in range(150):
        site.comment("ada", f"comment {number}")
    FIRST.put(github, 77, "one")
    assert SECOND.put(github, 77, "two") is Outcome.UPDATED
    assert len(site.comments) == 151


def test_no_right_to_write(site: Site, github: GitHub) -> None:
    site.plant("POST", error(403, "Resource not accessible by integration"))
    with pytest.raises(ForgeError, match="pull-requests: write"):
        FIRST.put(github, 77, "one")
    assert len(site.requests) == 2


def test_a_new_comment_is_not_sent_twice(site: Site, github: GitHub) -> None:
    """The server carried it out and its answer was lost: sent again, there would be two."""

    def lost(site: Site) -> Reply:
        site.comment(BOT, FIRST.mark + "one")
        return Reply(502)

    site.plant("POST", lost)
    with pytest.raises(ForgeError, match="see whether it was carried out"):
        FIRST.put(github, 77, "one")
    assert FIRST.put(github, 77, "one") is Outcome.UNCHANGED
    assert texts(site) == [(BOT, "one")]
