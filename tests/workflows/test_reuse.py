"""The answer to `/reuse-sweep-run`: which comments get a machine, and that none of their text gets further."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.workflows.evaluator import Evaluator


def given(
    body: str, *, pull: bool = True, state: str = "open", number: int = 77, run: int = 1, before: str | None = None
) -> dict[str, Any]:
    issue: dict[str, Any] = {"number": number, "state": state}
    if pull:
        issue["pull_request"] = {"url": "https://api.github.com/repos/org/bench/pulls/77"}
    event: dict[str, Any] = {"action": "created", "issue": issue}
    event["comment"] = {"body": body, "author_association": "NONE"}
    if before is not None:
        event |= {"action": "edited", "changes": {"body": {"from": before}}}
    return {"github": {"event_name": "issue_comment", "event": event, "run_id": run}, "needs": {}, "inputs": {}}


@pytest.mark.parametrize(
    ("context", "answered"),
    [
        (given("/reuse-sweep-run"), True),
        (given("The same code.\n/reuse-sweep-run 1001"), True),
        (given("please do not use `/reuse-sweep-run` here"), True),  # looked at, and then not heard
        (given("Looks good."), False),
        (given("Never mind.", before="/reuse-sweep-run"), True),
        (given("/reuse-sweep-run 7", before="/reuse-sweep-run"), True),
        (given("Looks good!", before="Looks good."), False),
        (given(""), False),
        (given("/reuse-sweep-run", pull=False), False),
        (given("/reuse-sweep-run", state="closed"), False),
    ],
)
def test_which_comments_get_a_machine(context: dict[str, Any], answered: bool, github: Evaluator) -> None:
    assert bool(github.value("reuse", "answer", "if", context)) is answered


def test_answers_of_one_pull_request_wait_for_each_other(github: Evaluator) -> None:
    def group(context: dict[str, Any]) -> str:
        found = github.value("reuse", None, "concurrency", context)
        assert found["cancel-in-progress"] is False
        name: str = found["group"]
        return name

    asked = group(given("/reuse-sweep-run", run=1))
    assert asked == group(given("again: /reuse-sweep-run 7", run=2))
    assert asked == group(given("Never mind.", before="/reuse-sweep-run", run=4))
    assert asked != group(given("/reuse-sweep-run", number=78))
    # A comment about something else must not push an answer that waits out of the queue.
    assert asked != group(given("Looks good.", run=3)) != group(given("Looks good.", run=4))


def test_no_text_of_a_comment_gets_further(root: Path) -> None:
    text = (root / ".github/workflows/reuse.yml").read_text(encoding="utf-8")
    for place in ("github.event.comment.body", "github.event.changes.body.from"):
        assert text.count(place) == text.count(f"contains({place}, '/reuse-sweep-run')") == 2
    assert text.count("github.event.comment") == text.count("github.event.changes") == 2
    assert "head.sha" not in text
    assert "head.ref" not in text
