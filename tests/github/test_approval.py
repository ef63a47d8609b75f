"""Who let a sweep run, over the API: what is asked, what it ends in, and how many requests it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from matrix.forge import ForgeError
from matrix.plan.approval import Asking, Receipt, approve, misfit
from matrix.plan.decision import Action
from matrix.plan.event import Event, Kind
from matrix.plan.labels import Permission
from tests.github.events import FULL, HEAD, event, registry
from tests.github.server import INTEGRATION, REPOSITORY, Reply, Site, error

if TYPE_CHECKING:
    from collections.abc import Callable

    from matrix.github import GitHub

OTHER: Final = "d" * 40
ROLES: Final = {
    "ada": ("write", "write"),
    "boss": ("admin", "admin"),
    "tri": ("read", "triage"),
    "max": ("write", "maintain"),
}


def usual(site: Site) -> None:
    """Ada, who may write, set the label."""
    site.people.update(ROLES)
    site.labels.append(FULL)
    site.events.append(("labeled", "ada", FULL))


class Case(NamedTuple):
    event: Event
    change: Callable[[Site], object]
    action: Action
    reason: str
    requests: int


def closed(site: Site) -> None:
    site.state = "closed"


def pushed(site: Site) -> None:
    site.head = OTHER


def moved_to_a_fork(site: Site) -> None:
    site.head_repository = "mallory/bench"


def fork_gone(site: Site) -> None:
    site.head_repository = None


def draft(site: Site) -> None:
    site.draft = True


def label_off(site: Site) -> None:
    site.labels.clear()


def second_label(site: Site) -> None:
    site.labels.append("sweep-enabled")


def set_by(login: str | None) -> Callable[[Site], object]:
    return lambda site: site.events.append(("labeled", login, FULL))


def modifier(login: str) -> Callable[[Site], object]:
    def change(site: Site) -> None:
        site.labels.append("all-evals")
        site.events.append(("labeled", login, "all-evals"))

    return change


def nothing_known(site: Site) -> None:
    site.events.clear()


def demoted(site: Site) -> None:
    site.people["ada"] = ("read", "read")


CASES: Final[dict[str, Case]] = {
    "set by one who may": Case(event(), id, Action.RUN, "labeled by ada, write", 4),
    "set by one with triage": Case(event(sender="tri"), set_by("tri"), Action.REFUSE, "tri has triage", 1),
    "repeated when the setter lost the right": Case(event(), demoted, Action.REFUSE, "ada has read", 1),
    "set by a stranger": Case(event(sender="eve"), set_by("eve"), Action.REFUSE, "eve has none", 1),
    "set again by one with triage": Case(
        event(), set_by("tri"), Action.REFUSE, "tri, who set full-sweep-enabled, has triage", 5
    ),
    "set by a deleted account": Case(event(), set_by(None), Action.REFUSE, "nobody who is still there", 4),
    "nobody knows who set it": Case(event(), nothing_known, Action.REFUSE, "nobody who is still there", 4),
    "a push since": Case(event(), pushed, Action.SKIP, "the head is dddddddddddd by now", 2),
    "closed since": Case(event(), closed, Action.SKIP, "was closed since", 2),
    "a fork since": Case(event(), moved_to_a_fork, Action.SKIP, "in a fork by now", 2),
    "a fork that is gone": Case(event(), fork_gone, Action.SKIP, "in a fork by now", 2),
    "a draft since": Case(event(), draft, Action.SKIP, "is a draft", 3),
    "taken off since": Case(event(), label_off, Action.SKIP, "no label asks for a sweep", 3),
    "a second label since": Case(event(), second_label, Action.REFUSE, "ask for different sweeps", 3),
    "a modifier by one who may": Case(event(), modifier("max"), Action.RUN, "with all-evals", 5),
    "a modifier by one with triage": Case(
        event(), modifier("tri"), Action.REFUSE, "tri, who set all-evals, has triage", 5
    ),
    "a push by one who may, on a label by one who may": Case(
        event("synchronize", sender="boss"), id, Action.RUN, "pushed by boss", 5
    ),
    "a push by one who may, on a label by one with triage": Case(
        event("synchronize", sender="boss"), set_by("tri"), Action.REFUSE, "tri, who set", 5
    ),
    "a push by a stranger": Case(event("synchronize", sender="eve"), id, Action.SKIP, "eve has none", 1),
    "another label": Case(event(label="docs"), id, Action.SKIP, "the label docs", 0),
    "no sender": Case(event(sender=""), id, Action.REFUSE, "nobody could tell", 0),
    "a push to main": Case(Event(kind=Kind.PUSH, repository=REPOSITORY), id, Action.SKIP, "never sweeps", 0),
}


def subject(_: str) -> str:
    return "Raise the batch"


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, site: Site, github: GitHub) -> None:
    usual(site)
    case = CASES[name]
    case.change(site)
    decision, receipts = approve(case.event, registry(), github, Asking(github, subject))
    assert (decision.action, len(site.requests)) == (case.action, case.requests)
    assert case.reason in decision.reason
    assert bool(receipts) == (decision.action is Action.RUN)


def test_the_receipt(site: Site, github: GitHub) -> None:
    usual(site)
    modifier("max")(site)
    _, receipts = approve(event(), registry(), github, Asking(github, subject))
    assert receipts == (
        Receipt(FULL, "ada", "2026-11-30T10:00:00Z", Permission.WRITE, HEAD),
        Receipt("all-evals", "max", "2026-11-30T10:01:00Z", Permission.MAINTAIN, HEAD),
    )


@pytest.mark.parametrize("reply", [error(403, INTEGRATION), Reply(200, {"permission": "?"}), error(401, "Bad")])
def test_no_answer_is_no_permission(reply: Reply, site: Site, github: GitHub) -> None:
    usual(site)
    site.plant("permission", reply)
    with pytest.raises(ForgeError):
        approve(event(), registry(), github, Asking(github, subject))


APPROVED: Final = {"approval": {"by": "ada", "head_sha": HEAD}, "head": {"ref": "x", "commit": OTHER}}
BY_HAND: Final = {"approval": None, "head": {"ref": "x", "commit": HEAD}}


@pytest.mark.parametrize(
    ("record", "checkout", "told"),
    [
        (APPROVED, HEAD, None),
        (BY_HAND, HEAD, None),
        (APPROVED, OTHER, "is for cccccccccccc, and dddddddddddd is checked out"),
        (BY_HAND, OTHER, "is for cccccccccccc"),
        (APPROVED, "", "no commit is checked out"),
        (APPROVED, HEAD[:12], "is for"),
        ({}, HEAD, "says of no commit"),
        ({"approval": {}, "head": None}, HEAD, "says of no commit"),
        ({"approval": {"head_sha": ""}, "head": {"commit": OTHER}}, "", "says of no commit"),
        ({"approval": {"head_sha": 7}}, "7", "says of no commit"),
        ({**APPROVED, "receipts": [{"label": "a", "head_sha": HEAD}]}, HEAD, None),
        ({**APPROVED, "receipts": [{"head_sha": HEAD}, {"head_sha": OTHER}]}, HEAD, "is for dddddddddddd, and ccc"),
        ({**APPROVED, "receipts": [{"label": "a"}]}, HEAD, "says of no commit"),
        ({**APPROVED, "receipts": ["a"]}, HEAD, "says of no commit"),
        ({**APPROVED, "receipts": 7}, HEAD, "says of no commit"),
    ],
)
def test_a_plan_fits_one_commit(record: dict[str, Any], checkout: str, told: str | None) -> None:
    found = misfit(record, checkout)
    assert (found is None) == (told is None)
    if found is not None and told is not None:
        assert told in found.message
