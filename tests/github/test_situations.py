"""A table of what GitHub's API does, and where each of it ends: value or rule, requests made, seconds waited."""

from __future__ import annotations

from email.utils import formatdate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from matrix.forge import Artifact, ForgeError, ForgeRule, Permission
from matrix.github import GitHub
from tests.github.server import (
    INTEGRATION,
    NOW,
    PRIMARY,
    REPOSITORY,
    SECONDARY,
    Reply,
    Site,
    error,
    zipped,
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


def labels(github: GitHub) -> int:
    return len(github.labels(77))


def post(github: GitHub) -> str:
    return github.post(77, "text").body


def planted(*replies: Reply | Callable[[Site], Reply], at: str = "") -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.labels += ["one", "two"]
        site.plant(at, *replies)

    return plant


def page(following: str) -> Reply:
    return Reply(200, [], {"Link": f'<{following}>; rel="next"'})


def moved(to: str) -> Callable[[Site], Reply]:
    return lambda site: Reply(301, {"message": "Moved"}, {"Location": to.format(port=site.port)})


def files(count: int, told: int | None = None) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.files += [f"docs/{number}.md" for number in range(count)]
        site.changed_files = told

    return plant


def changed(github: GitHub) -> tuple[int, bool]:
    found = github.changed_files(github.pull(77))
    return len(found.paths), found.complete


def renamed(site: Site) -> None:
    site.files += [("old.yaml", "new.yaml"), "other"]


def pushed_between_pages(site: Site) -> None:
    """The 101st file moved to the 100th place, so that it is listed twice and another one never."""
    files(150)(site)

    def shift(site: Site) -> None:
        site.files[:] = ["docs/new.md", *site.files[:-1]]

    site.plant(r"files\?.*page=2", shift)


def limited_page(site: Site) -> None:
    with_labels(150)(site)
    site.plant("page=2", error(403, SECONDARY))


def failing_page(site: Site) -> None:
    files(150)(site)
    site.plant("page=2", Reply(502))


def with_labels(count: int) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.labels += [f"l{number}" for number in range(count)]

    return plant


def history(
    *events: tuple[str, str | None, str], padding: int = 0, times: tuple[int, ...] = ()
) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.events += [("mentioned", "bob", "")] * padding
        site.events += events
        site.event_times = times

    return plant


def sweep_label(github: GitHub) -> tuple[str, str | None] | None:
    found = {one.label.lower(): (one.label, one.by) for one in github.labellings(77)}
    return found.get("full-sweep-enabled")


def people(**roles: tuple[str, str]) -> Callable[[Site], None]:
    return lambda site: site.people.update(roles)


def may(login: str) -> Callable[[GitHub], Permission]:
    return lambda github: github.permission(login)


def sweeps(site: Site) -> None:
    site.add_run(1, "a" * 40, head_branch="another")
    site.add_run(2, "c" * 40, event="workflow_dispatch")
    for number in range(10, 268):
        site.add_run(number, "c" * 40, None if number == 267 else "success")
    site.add_run(300, "c" * 40, path=".github/workflows/ci.yml")


def runs(github: GitHub) -> tuple[int, int]:
    found = github.runs("run-sweep.yml", "feature")
    return len(found), found[0].id


def artifacts(site: Site) -> None:
    site.add_artifact(5, "plan", **{"plan.json": "{}"})
    site.add_artifact(5, "old", x="y")
    site.expired.add("old")


def listed(github: GitHub) -> list[tuple[str, bool]]:
    return [(one.name, one.expired) for one in github.artifacts(5)]


def plan_file(github: GitHub) -> bool:
    [found] = [one for one in github.artifacts(5) if one.name == "plan"]
    return github.download(found) == zipped({"plan.json": "{}"})


def saved(github: GitHub) -> bool:
    [found] = [one for one in github.artifacts(5) if one.name == "plan"]
    with TemporaryDirectory() as folder:
        path = Path(folder, "plan.zip")
        github.save(found, path)
        return path.read_bytes() == zipped({"plan.json": "{}"})


def old_file(github: GitHub) -> bytes:
    [found] = [one for one in github.artifacts(5) if one.name == "old"]
    return github.download(found)


def stored(*replies: Reply, at: str) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        artifacts(site)
        site.plant(at, *replies)

    return plant


def huge(github: GitHub) -> bytes:
    return github.download(Artifact(5000, "plan", 10**9, expired=False))


def no_comment(github: GitHub) -> Any:
    return github.edit(1, "text")


def deleted_twice(github: GitHub) -> None:
    number = github.post(77, "text").id
    github.delete(number)
    github.delete(number)


def crowded(site: Site) -> None:
    for number in range(101):
        site.comment("ada", str(number))
    site.comment(None, "by a deleted account")


def last_comment(github: GitHub) -> tuple[int, str, str | None]:
    found = list(github.comments(77))
    return len(found), found[-1].body, found[-1].author


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
