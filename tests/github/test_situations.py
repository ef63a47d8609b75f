"""A table of what GitHub's API does, and where each of it ends: value or rule, requests made, seconds waited."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from matrix.forge import ForgeError, ForgeRule, Permission
from matrix.github import GitHub
from tests.github.planting import (
    artifacts,
    changed,
    crowded,
    deleted_twice,
    failing_page,
    files,
    history,
    huge,
    labels,
    last_comment,
    limited_page,
    listed,
    may,
    moved,
    no_comment,
    old_file,
    page,
    people,
    plan_file,
    planted,
    post,
    pushed_between_pages,
    renamed,
    runs,
    saved,
    stored,
    sweep_label,
    sweeps,
    with_labels,
)
from tests.github.server import (
    INTEGRATION,
    NOW,
    PRIMARY,
    REPOSITORY,
    SECONDARY,
    Reply,
    Site,
    error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.github.clock import FakeClock


class Situation(NamedTuple):
    """``wanted`` is what the call returns, or the rule that it is refused by."""

    call: Callable[[GitHub], Any]
    wanted: Any
    requests: int
    plant: Callable[[Site], object] = id
    slept: Sequence[float] = ()


AHEAD: Final = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(NOW + 90)}
LONG: Final = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(NOW + 3000)}
GONE: Final = Reply(cut=True)
LINK: Final = {"Link": f'</repos/{REPOSITORY}/issues/77/labels?page=1>; rel="next"'}

FULL: Final = "full-sweep-enabled"

SITUATIONS: Final[dict[str, Situation]] = {
    # -- lists, to their end
    "36 labels": Situation(labels, 36, 1, with_labels(36)),
    "no label": Situation(labels, 0, 1),
    "exactly one page": Situation(labels, 100, 1, with_labels(100)),
    "three pages": Situation(labels, 201, 3, with_labels(201)),
    "412 files": Situation(changed, (412, True), 6, files(412)),
    "3,000 files, where the list may have been cut": Situation(changed, (3000, False), 31, files(3000)),
    "4,000 files, of which 3,000 are listed": Situation(changed, (3000, False), 31, files(4000)),
    "fewer files listed than counted": Situation(changed, (5, False), 2, files(5, told=6)),
    "none listed and some counted": Situation(changed, (0, False), 2, files(0, told=1)),
    "a push between two pages": Situation(changed, (149, False), 3, pushed_between_pages),
    "a renamed file has two names": Situation(changed, (3, True), 2, renamed),
    "102 comments, one by a deleted account": Situation(
        last_comment, (102, "by a deleted account", None), 2, crowded
    ),
    "258 runs of one branch": Situation(runs, (258, 267), 3, sweeps),
    "artifacts, one expired": Situation(listed, [("old", True), ("plan", False)], 1, artifacts),
    "pages that lead back to the first": Situation(
        labels, ForgeRule.ANSWER, 2, planted(*[Reply(200, [], LINK)] * 3)
    ),
    "a next page at another host": Situation(labels, ForgeRule.ANSWER, 1, planted(page("https://evil.example/x"))),
    "a next page behind a name that begins like the host's": Situation(
        labels, ForgeRule.ANSWER, 1, planted(page("//127.0.0.1.evil.example/x"))
    ),
    "a next page at another port": Situation(labels, ForgeRule.ANSWER, 1, planted(page("http://127.0.0.1:9/x"))),
    "a next page that is no address": Situation(labels, ForgeRule.ANSWER, 1, planted(page("http://[x"))),
    "a link that is none": Situation(labels, 0, 1, planted(Reply(200, [], {"Link": "next"}))),
    "a next page told without quotes": Situation(
        labels, 3, 2, planted(Reply(200, [{"name": "first"}], {"Link": "<?page=1>; rel=next"}))
    ),
    # -- who set a label
    "the last to set it counts": Situation(
        sweep_label, ("full-sweep-enabled", "bob"), 1,
        history(("labeled", "ada", "full-sweep-enabled"), ("labeled", "bob", "full-sweep-enabled"),
                ("labeled", "eve", "other")),
    ),
    "in another case": Situation(
        sweep_label, ("Full-Sweep-Enabled", "ada"), 1, history(("labeled", "ada", "Full-Sweep-Enabled"))
    ),
    "taken off since": Situation(
        sweep_label, None, 1,
        history(("labeled", "ada", "full-sweep-enabled"), ("unlabeled", "eve", "full-sweep-enabled")),
    ),
    "set by a deleted account": Situation(
        sweep_label, ("full-sweep-enabled", None), 1, history(("labeled", None, "full-sweep-enabled"))
    ),
    "on the third page of events": Situation(
        sweep_label, ("full-sweep-enabled", "ada"), 3,
        history(("labeled", "ada", "full-sweep-enabled"), padding=250),
    ),
    "set again by somebody else": Situation(
        sweep_label, ("full-sweep-enabled", "bob"), 1,
        history(("labeled", "ada", FULL), ("unlabeled", "eve", FULL), ("labeled", "bob", FULL)),
    ),
    "set again by somebody else, told in another order": Situation(
        sweep_label, ("full-sweep-enabled", "bob"), 1,
        history(("labeled", "bob", FULL), ("unlabeled", "eve", FULL), ("labeled", "ada", FULL), times=(9, 5, 1)),
    ),
    "taken off at last, told in another order": Situation(
        sweep_label, None, 1, history(("unlabeled", "eve", FULL), ("labeled", "ada", FULL), times=(9, 1))
    ),
    "set and taken off in one second": Situation(
        sweep_label, None, 1, history(("labeled", "ada", FULL), ("unlabeled", "ada", FULL), times=(1, 1))
    ),
    "never set": Situation(sweep_label, None, 1),
    # -- what somebody may do
    "admin": Situation(may("a"), Permission.ADMIN, 1, people(a=("admin", "admin"))),
    "maintain is told as write": Situation(may("a"), Permission.MAINTAIN, 1, people(a=("write", "maintain"))),
    "triage is told as read": Situation(may("a"), Permission.TRIAGE, 1, people(a=("read", "triage"))),
    "a custom role that may push": Situation(may("a"), Permission.WRITE, 1, people(a=("write", "release-crew"))),
    "a custom role that may not": Situation(may("a"), Permission.READ, 1, people(a=("read", "admins"))),
    "a role that contradicts the permission": Situation(may("a"), Permission.READ, 1, people(a=("read", "admin"))),
    "an unknown permission": Situation(may("a"), ForgeRule.ANSWER, 1, people(a=("root", "root"))),
    "a stranger": Situation(may("mallory"), Permission.NONE, 1),
    "a bot": Situation(may("dependabot[bot]"), Permission.NONE, 1),
    "a login with a slash": Situation(may("a/../b"), Permission.NONE, 1),
    # -- limits
    "secondary, told how long": Situation(
        labels, 2, 2, planted(error(403, SECONDARY, retry_after="17")), [17]
    ),
    "secondary, not told": Situation(labels, 2, 2, planted(error(403, SECONDARY)), [60]),
    "secondary, not told, three times": Situation(
        labels, 2, 4, planted(*[error(403, SECONDARY)] * 3), [60, 120, 240]
    ),
    "secondary as 429": Situation(labels, 2, 2, planted(error(429, SECONDARY)), [60]),
    "told a date": Situation(
        labels, 2, 2, planted(error(429, SECONDARY, retry_after=formatdate(NOW + 45, usegmt=True))), [45]
    ),
    "told nonsense": Situation(labels, 2, 2, planted(error(429, SECONDARY, retry_after="soon")), [60]),
    "secondary on a new comment": Situation(
        post, "text", 2, planted(error(403, SECONDARY, retry_after="5")), [5]
    ),
    "primary, until the reset of the server's clock": Situation(
        labels, 2, 2, planted(Reply(403, {"message": PRIMARY}, AHEAD)), [91]
    ),
    "primary as 429": Situation(labels, 2, 2, planted(Reply(429, {"message": PRIMARY}, AHEAD)), [91]),
    "primary, later than patience lasts": Situation(
        labels, ForgeRule.LIMIT, 1, planted(Reply(403, {"message": PRIMARY}, LONG))
    ),
    "primary, whose reset has passed": Situation(
        labels, 2, 2, planted(Reply(403, {"message": PRIMARY}, {**AHEAD, "x-ratelimit-reset": str(NOW - 9)})), [1]
    ),
    "limits until patience ends": Situation(
        labels, ForgeRule.LIMIT, 4, planted(*[error(429, SECONDARY)] * 9), [60, 120, 240]
    ),
    "short limits without end": Situation(
        labels, ForgeRule.LIMIT, 6, planted(*[error(429, SECONDARY, retry_after="1")] * 9), [1] * 5
    ),
    "a limit on the second page": Situation(
        labels, 150, 3, limited_page, [60]
    ),
    # -- servers that fail
    "502, then well": Situation(labels, 2, 2, planted(Reply(502, "<html>")), [1]),
    "500, 503, 504, then well": Situation(
        labels, 2, 4, planted(Reply(500), Reply(503), Reply(504)), [1, 2, 4]
    ),
    "503, told how long": Situation(labels, 2, 2, planted(error(503, "busy", retry_after="20")), [20]),
    "down": Situation(labels, ForgeRule.DOWN, 6, planted(*[Reply(503)] * 9), [1, 2, 4, 8, 16]),
    "502 for a new comment": Situation(post, ForgeRule.DOWN, 1, planted(Reply(502))),
    "connection cut, then well": Situation(labels, 2, 2, planted(GONE), [1]),
    "connection cut for ever": Situation(labels, ForgeRule.DOWN, 6, planted(*[GONE] * 9), [1, 2, 4, 8, 16]),
    "connection cut for a new comment": Situation(post, ForgeRule.DOWN, 1, planted(GONE)),
    "502 while a page is read": Situation(
        changed, (150, True), 4, failing_page, [1]
    ),
    # -- refusals, which are not made again
    "a token without rights": Situation(post, ForgeRule.PERMISSION, 1, planted(error(403, INTEGRATION))),
    "no right to read": Situation(labels, ForgeRule.PERMISSION, 1, planted(error(403, INTEGRATION))),
    "no right, told by the last request that the limit lets through": Situation(
        post, ForgeRule.PERMISSION, 1, planted(Reply(403, {"message": INTEGRATION}, AHEAD))
    ),
    "an invalid token": Situation(labels, ForgeRule.TOKEN, 1, planted(error(401, "Bad credentials"))),
    "no such pull request": Situation(lambda github: github.pull(78), ForgeRule.MISSING, 1),
    "a locked conversation": Situation(
        post, ForgeRule.PERMISSION, 1, planted(error(403, "Unable to create comment because issue is locked."))
    ),
    "a comment that is too long": Situation(
        lambda github: github.post(77, "x" * 70_000), ForgeRule.ANSWER, 1
    ),
    "a renamed repository": Situation(
        post, ForgeRule.MOVED, 1, planted(Reply(307, {"message": "Moved"}, {"Location": "/repositories/5/issues"}))
    ),
    "a renamed repository, read": Situation(
        labels, 2, 2, planted(moved("http://127.0.0.1:{port}/repos/org/bench/issues/77/labels"))
    ),
    "an API that leads to another host": Situation(labels, ForgeRule.MOVED, 1, planted(moved("http://localhost:9/x"))),
    "an API that leads to another protocol": Situation(labels, ForgeRule.MOVED, 1, planted(moved("https://127.0.0.1/x"))),
    "an API that leads to no address": Situation(labels, ForgeRule.MOVED, 1, planted(moved("http://[x"))),
    "an API that leads nowhere": Situation(labels, ForgeRule.MOVED, 1, planted(Reply(301, {"message": "Moved"}))),
    "no such run": Situation(lambda github: github.run(4), None, 1),
    "a comment deleted by hand is not edited": Situation(no_comment, None, 1),
    "a comment is deleted twice": Situation(deleted_twice, None, 3),
    # -- answers that are none
    "not JSON": Situation(labels, ForgeRule.ANSWER, 1, planted(Reply(200, b"<html>proxy</html>"))),
    "nested without end": Situation(labels, ForgeRule.ANSWER, 1, planted(Reply(200, b"[" * 99_999))),
    "a number without end": Situation(
        lambda github: github.run(4), ForgeRule.ANSWER, 1, planted(Reply(200, b'{"id": ' + b"9" * 9999 + b"}"))
    ),
    "nothing at all": Situation(labels, ForgeRule.ANSWER, 1, planted(Reply(204))),
    "half of the JSON": Situation(labels, ForgeRule.ANSWER, 1, planted(Reply(200, b'[{"name": "x"'))),
    "an object for a list": Situation(labels, ForgeRule.ANSWER, 1, planted(Reply(200, {"labels": []}))),
    "a member without its name": Situation(labels, ForgeRule.ANSWER, 1, planted(Reply(200, [{"id": 1}]))),
    "a list for an object": Situation(
        lambda github: github.pull(77), ForgeRule.ANSWER, 1, planted(Reply(200, []))
    ),
    "a number as text": Situation(
        lambda github: github.run(4), ForgeRule.ANSWER, 1, planted(Reply(200, {"id": "4"}))
    ),
    # -- files of runs
    "an artifact": Situation(plan_file, True, 3, artifacts),
    "an expired artifact": Situation(old_file, ForgeRule.MISSING, 2, artifacts),
    "a store that fails once": Situation(plan_file, True, 4, stored(Reply(500), at="store"), [1]),
    "a store that stops half way": Situation(
        plan_file, True, 4, stored(Reply(200, b"PK", {"Content-Length": "999"}), at="store"), [1]
    ),
    "a large artifact, as a file": Situation(saved, True, 3, artifacts),
    "a large artifact that stops half way, as a file": Situation(
        saved, True, 4, stored(Reply(200, b"PK" * 500, {"Content-Length": "1001"}), at="store"), [1]
    ),
    "a store that refuses": Situation(plan_file, ForgeRule.PERMISSION, 3, stored(Reply(403), at="store")),
    "a store that is a file": Situation(
        plan_file, ForgeRule.ANSWER, 2, stored(Reply(302, None, {"Location": "file:///etc/passwd"}), at="zip$")
    ),
    "a store that is no address": Situation(
        plan_file, ForgeRule.MOVED, 2, stored(Reply(302, None, {"Location": "http://[x"}), at="zip$")
    ),
    "a store with a name that no host has": Situation(
        plan_file, ForgeRule.DOWN, 2,
        stored(Reply(302, None, {"Location": f"http://{'a' * 64}/x"}), at="zip$"), [1, 2, 4, 8, 16],
    ),
    "an artifact of a gigabyte": Situation(huge, ForgeRule.ANSWER, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_situation(name: str, site: Site, github: GitHub, clock: FakeClock) -> None:
    situation = SITUATIONS[name]
    situation.plant(site)
    if isinstance(situation.wanted, ForgeRule):
        with pytest.raises(ForgeError) as caught:
            situation.call(github)
        assert caught.value.rule is situation.wanted
        [finding] = caught.value.findings
        assert finding.message
        assert finding.fix
    else:
        assert situation.call(github) == situation.wanted
    assert len(site.requests) == situation.requests
    assert clock.slept == list(situation.slept)


def test_there_are_enough_situations() -> None:
    assert len(SITUATIONS) >= 40
