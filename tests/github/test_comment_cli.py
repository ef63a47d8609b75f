"""`matrix comment`, from files to a comment on the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from matrix.cli.comment import comment
from matrix.cli.main import run
from matrix.findings import Finding, Related, Span
from matrix.report.json import finding_of, finding_record
from tests.github.events import ROOT, payload
from tests.github.server import REPOSITORY, Server, Site, error
from tests.github.test_comment import changes, plan

LABELS: Final = str(ROOT / "configs" / "labels.yaml")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_API_URL", server.url)
    monkeypatch.setenv("GITHUB_TOKEN", "t0ken")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
    monkeypatch.setenv("GITHUB_RUN_ID", "1001")
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "2")
    (tmp_path / "plan.json").write_text(json.dumps(plan()), encoding="utf-8")
    (tmp_path / "event.json").write_text(json.dumps(payload()), encoding="utf-8")
    found = [finding_record(Finding(rule="r", message="m @ada", fix="f", span=Span("a.yaml", 1, 2)))]
    (tmp_path / "findings.json").write_text(json.dumps({"findings": found}), encoding="utf-8")
    return tmp_path


def call(*arguments: str) -> int:
    return run(comment, ["plan.json", "--event", "event.json", "--labels", LABELS, *arguments], prog="matrix")


@pytest.mark.usefixtures("files")
def test_posted_and_brought_up_to_date(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--findings", "findings.json") == 0
    assert capsys.readouterr().out == "the comment on pull request 77: created\n"
    [one] = site.comments
    assert one["body"].startswith("<!-- matrix:plan run=1001 attempt=2 -->\n### Sweep\n")
    assert "a.yaml:1:2: r: m @ada\n  fix: f" in one["body"]
    assert "[the run](https://github.com/org/bench/actions/runs/1001)" in one["body"]
    assert "| `sweep-enabled` | runs |" in one["body"]
    assert call() == 0
    assert capsys.readouterr().out == "the comment on pull request 77: updated\n"
    assert len(site.comments) == 1
    assert site.tokens == {"token t0ken"}


@pytest.mark.usefixtures("files")
def test_dry_run_asks_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--dry-run") == 0
    assert capsys.readouterr().out.startswith("### Sweep\n")
    assert site.requests == []


@pytest.mark.usefixtures("files")
def test_another_account(site: Site) -> None:
    site.me = "sweep-bot"
    assert call("--author", "sweep-bot") == 0
    assert call("--author", "sweep-bot") == 0
    assert len(site.comments) == 1


@pytest.mark.usefixtures("files")
def test_without_the_right(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.plant("POST", error(403, "Resource not accessible by integration"))
    assert call() == 1
    assert "github-permission: POST /repos/org/bench/issues/77/comments: 403: " in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_the_other_places_of_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    other = Related(Span("recipes/b.yaml", 11, 16), "model.container")
    found = Finding(rule="r", message="m", fix="f", span=Span("a.yaml", 1, 2), related=(other,))
    assert finding_of(finding_record(found)) == found
    Path("findings.json").write_text(json.dumps({"findings": [finding_record(found)]}), encoding="utf-8")
    assert call("--findings", "findings.json", "--dry-run") == 0
    assert "a.yaml:1:2: r: m (recipes/b.yaml:11:16: model.container)\n  fix: f" in capsys.readouterr().out


@pytest.mark.usefixtures("files")
def test_of_what_is_refused_no_label_runs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("plan.json").write_text(json.dumps(plan(0, decision="refuse")), encoding="utf-8")
    assert call("--findings", "findings.json", "--dry-run") == 0
    assert "| `sweep-enabled` | held to the same checks |" in capsys.readouterr().out
    assert call("--dry-run") == 0
    assert "| `sweep-enabled` | runs |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"findings": [1]}',
        '{"findings": [{"rule": "r"}]}',
        '{"findings": [{"rule": "r", "message": "m", "fix": "f", "related": [1]}]}',
        "[" * 99_999,
    ],
)
def test_a_report_that_is_none(text: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "findings.json").write_text(text, encoding="utf-8")
    assert call("--findings", "findings.json") == 1
    assert "findings.json: comment-findings: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"receipts": [7]}, "receipts.0 is not as a plan has it: 7 is not of type 'object'"),
        ({"receipts": {}}, "receipts is not"),
        ({"cost": {"jobs": "many"}}, "cost.jobs is not"),
        ({"reuse": {"run-id": 1}}, "reuse is not"),
        ({"changes": {**changes(1), "jobs": [1]}}, "changes.jobs is not"),
        ({"changes": {**changes(1), "configs": [{"key": 7, "differences": "x"}]}}, "changes.configs.0.key is not"),
        ({"refused": 7, "budget-gpu-hours": "::x"}, "budget-gpu-hours is not"),
        ({"\x1b[31m\n::error::": 1}, "the plan is not"),
    ],
)
def test_a_plan_that_is_none(
    changed: dict[str, Any], told: str, files: Path, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "plan.json").write_text(json.dumps(plan(**changed)), encoding="utf-8")
    assert call() == 1
    err = capsys.readouterr().err
    assert f"plan.json: plan-form: {told}" in err
    assert "\x1b" not in err
    assert site.requests == []


def test_no_pull_request(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    push = {"ref": "refs/heads/main", "before": "a", "repository": {"full_name": REPOSITORY}}
    (files / "event.json").write_text(json.dumps(push), encoding="utf-8")
    assert call() == 2
    assert "the event is a push" in capsys.readouterr().err
