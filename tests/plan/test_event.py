"""Events and decisions: every row of the table, the published cases, and files that are no events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from matrix.cli.simulate import simulate
from matrix.errors import RefusedError
from matrix.plan.decision import Action, concurrency_group, decide
from matrix.plan.event import Kind, event_of, read_event, shown
from matrix.plan.labels import Registry, load_labels
from tests.plan.events import FAST, FORK, TABLE, Answers, Row, labeled, pull

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def registry(root: Path) -> Registry:
    return load_labels(str(root / "configs/labels.yaml"))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_decisions(row: Row, registry: Registry) -> None:
    event = event_of(row.payload, row.event_name)
    decision = decide(event, registry, Answers(row.permission, row.subject))
    assert decision.action == row.action
    assert row.reason in decision.reason
    assert concurrency_group(event, registry, "9") == ("run-sweep-pr-77" if row.ends else "run-sweep-run-9")
    assert (decision.mode is not None) == (row.action == "run")
    assert decision.reason.isprintable()


def test_the_table_is_large_enough_and_names_its_rows() -> None:
    assert len(TABLE) >= 60
    assert len({row.name for row in TABLE}) == len(TABLE)
    assert {row.action for row in TABLE} == set(Action)


def test_the_kind_is_told_by_the_shape() -> None:
    for row in TABLE:
        assert event_of(row.payload) == event_of(row.payload, row.event_name), row.name


def test_an_approval_is_for_one_commit(registry: Registry) -> None:
    decision = decide(event_of(labeled(FAST)), registry, Answers("write", ""))
    assert decision.approval is not None
    assert decision.approval.head_sha == labeled(FAST)["pull_request"]["head"]["sha"]
    assert decision.approval.by == "ada"


def test_published_events(registry: Registry, shared: Path) -> None:
    events = json.loads((shared / "cases/C61/events.json").read_text(encoding="utf-8"))
    found = [decide(event_of(event), registry, Answers("write", "")) for event in events]
    assert [decision.action.value for decision in found] == ["refuse", "skip", "skip", "skip", "run", "run"]
    assert "full-sweep-enabled and full-sweep-fail-fast" in found[0].reason
    for decision, word in zip(found[1:4], ("draft", "fork", "no label"), strict=True):
        assert word in decision.reason
    assert found[4].mode is not None
    assert found[4].mode.label == "full-sweep-enabled"


BAD: Final[dict[str, tuple[str, str, str]]] = {
    "empty": ("", "event-json", "cut off"),
    "cut off": (json.dumps(labeled(FAST))[:200], "event-json", "line 1"),
    "a list": ("[]", "event-shape", "something else"),
    "a word": ('"pull_request"', "event-shape", "something else"),
    "nothing in it": ("{}", "event-kind", "--event-name"),
    "an issue comment": ('{"event_name": "issue_comment", "payload": {}}', "event-kind", "issue_comment"),
    "target": ('{"event_name": "pull_request_target", "payload": {}}', "event-kind", "trigger by pull_request"),
    "hostile name": (json.dumps({"event_name": "x\n::error::y", "payload": {}}), "event-kind", r'"x\n::error::y"'),
    "null": ("null", "event-shape", "something else"),
    "too deep": ("[" * 100_000, "event-json", ""),
}


@pytest.mark.parametrize("what", BAD)
def test_files_that_are_no_events(what: str, tmp_path: Path) -> None:
    text, rule, word = BAD[what]
    path = tmp_path / "event.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RefusedError) as caught:
        read_event(str(path))
    (finding,) = caught.value.findings
    assert finding.rule == rule
    assert str(finding).isprintable()
    if word != "line 1":
        assert word in str(finding)
    else:
        assert finding.span is not None
        assert finding.span.column > 150


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(RefusedError, match="event-json"):
        read_event(str(path))
    with pytest.raises(RefusedError, match="file-missing"):
        read_event(str(tmp_path / "no.json"))


WRONG: Final[dict[str, Any]] = {
    "action": 7,
    "number": -1,
    "repository": {"full_name": None},
    "label": "name",
    "pull_request": {"draft": "no", "labels": [{"nom": 1}], "head": {"sha": "main", "repo": {}}, "base": {"sha": "x"}},
}


def test_all_faults_of_a_payload_come_together() -> None:
    with pytest.raises(RefusedError) as caught:
        event_of(WRONG)
    told = "\n".join(finding.message for finding in caught.value.findings)
    for path in (
        "action",
        "number",
        "repository.full_name",
        "draft",
        "labels",
        "head.sha",
        "head.repo.full_name",
        "base.sha",
    ):
        assert path in told


def test_a_label_event_names_its_label() -> None:
    payload = labeled(FAST)
    del payload["label"]
    with pytest.raises(RefusedError, match=r"label\.name is missing"):
        event_of(payload)


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(where=st.sampled_from(["action", "label", "pull_request", "repository", "sender", "number"]), value=JSON)
def test_any_value_anywhere_is_read_or_refused(where: str, value: Any, registry: Registry) -> None:
    payload = labeled(FAST) | {where: value}
    try:
        event = event_of(payload, "pull_request")
    except RefusedError:
        return
    assert decide(event, registry, Answers("write", "")).reason.isprintable()


@given(st.text(max_size=200))
def test_a_strangers_text_is_inert(text: str) -> None:
    said = f"label {shown(text)}"
    assert said.isprintable()
    assert "##[" not in said
    assert len(said) < 6 * 60 + 10


def test_a_fork_with_a_label_of_its_own_never_runs(registry: Registry) -> None:
    for action in ("labeled", "synchronize", "ready_for_review", "unlabeled"):
        payload = pull(action, FAST, "self-hosted", head=FORK, label=FAST)
        assert decide(event_of(payload), registry, Answers("admin", "")).action is Action.SKIP


def test_kinds() -> None:
    assert [event_of(row.payload).kind for row in TABLE][-2:] == [Kind.PUSH, Kind.MERGE_GROUP]


@pytest.fixture
def event_file(tmp_path: Path) -> Path:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(pull("synchronize")), encoding="utf-8")
    return path


def test_simulate(event_file: Path, root: Path) -> None:
    words = ["--event", str(event_file), "--labels", str(root / "configs/labels.yaml")]
    result = CliRunner().invoke(simulate, words, standalone_mode=False)
    assert result.return_value == 0
    assert result.stdout.startswith("skip: no label asks for a sweep")
    result = CliRunner().invoke(simulate, [*words, "--label", FAST], standalone_mode=False)
    assert result.stdout.startswith(f"run: labeled by ada, write: {FAST}")
    result = CliRunner().invoke(simulate, [*words, "--label", FAST, "--permission", "triage"], standalone_mode=False)
    assert (result.return_value, result.stdout[:7]) == (1, "refuse:")
    result = CliRunner().invoke(simulate, [*words, "--label", FAST, "--format", "json"], standalone_mode=False)
    assert json.loads(result.stdout)["mode"]["canary"] is True
