"""Whatever GitHub answers to one request, a command ends with a message and a status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.cli.support import cli
from tests.github.server import REPOSITORY, Reply
from tests.github.test_sweep_event import IDS, clone, planned, swept

if TYPE_CHECKING:
    from tests.changelog.support import Repository
    from tests.github.server import Site

__all__ = ["clone"]

PLAN: Final = ("plan", "--event", "../event.json", "--output", "../plan.json")
REUSE: Final = ("reuse", "--number", "77", "--repository", REPOSITORY, "--reply")
COMMENT: Final = ("comment", "../plan.json", "--event", "../event.json")
COMMANDS: Final = {"plan": PLAN, "comment": COMMENT, "reuse": REUSE}
BODIES: Final[tuple[Any, ...]] = (
    None, 7, [], {}, [None], [[]], {"message": 5}, {"artifacts": {}}, {"artifacts": [None]}, {"permission": ["write"]},
    [{"id": 1, "user": {}, "body": 7, "html_url": "x"}], [{"event": "labeled", "label": None}], [{"name": None}],
    {"number": 77, "head": None, "base": {}}, b"", b"\xff\xfe", b"[" * 99_999,
)  # fmt: skip
STATUSES: Final = (204, 301, 304, 400, 404, 410, 422)
ANSWERS: Final = (*(Reply(200, body) for body in BODIES), *(Reply(status, {"message": "odd"}) for status in STATUSES))


@pytest.fixture
def asked(clone: Repository, site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A pull request whose sweep reuses an earlier one, so that every kind of request is made."""
    monkeypatch.setattr("matrix.retry.SystemClock.sleep", lambda *_: None)
    swept(site, planned(), *IDS[:2])
    site.comment("ada", "/reuse-sweep-run")
    assert planned()["reuse"]["run-id"] == 1001
    assert clone.folder.is_dir()
    return site


@pytest.mark.parametrize("name", COMMANDS)
def test_any_answer(name: str, asked: Site) -> None:
    words = COMMANDS[name]
    asked.requests.clear()
    assert cli(*words).status == 0
    requests = list(asked.requests)
    assert len(requests) >= 3
    kept, begun = list(asked.comments), asked.next_id
    for place, request in enumerate(requests):
        if name == "reuse" and request.startswith("GET "):
            continue  # Planning asks the same.
        # A third of the answers at each request, another one at the next: all of them take a minute.
        for reply in ANSWERS[place % 3 :: 3]:
            asked.comments[:], asked.next_id = list(kept), begun
            asked.planted.clear()
            asked.plant("", *[lambda _: None] * place, reply)
            outcome = cli(*words)
            told = (request, reply, outcome)
            assert "internal error" not in outcome.err, told
            assert outcome.status in (0, 1, 3), told
            assert outcome.status != 1 or outcome.err or outcome.out.startswith("refuse: "), told
