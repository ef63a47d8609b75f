"""`matrix plan --event`, `matrix reuse` and `matrix comment` one after the other: a real repository, a real API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.changelog.support import Repository
from tests.cli.support import cli
from tests.github.clock import FakeClock
from tests.github.events import payload
from tests.github.server import REPOSITORY, SECONDARY, Server, Site, error
from tests.github.test_reuse import result

LABEL: Final = "full-sweep-fail-fast"
ENTRY: Final = b"""
- config-keys:
    - qwen3-0.6b-fp16-mi300x-sglang
  description:
    - "Sweep it again."
  no-evals: true
  pr-link: https://github.com/org/bench/pull/77
"""
IDS: Final = (
    "qwen3-0.6b-fp16-mi300x-sglang--1k1k--1w-tp1--c1--override_tp1_c1",
    "qwen3-0.6b-fp16-mi300x-sglang--1k1k--1w-tp1--c16--override_tp1_c16",
    "qwen3-0.6b-fp16-mi300x-sglang--agentic--1w-tp1--c8--override_tp1_c8",
)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server, site: Site) -> Repository:
    """Pull request 77 sweeps the example of `matrix init`; Ada, who may write, has set the label."""
    clone = Repository(tmp_path / "clone")
    monkeypatch.chdir(clone.folder)
    monkeypatch.setenv("GITHUB_API_URL", server.url)
    monkeypatch.setenv("GITHUB_TOKEN", "t0ken")
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS", "GITHUB_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    assert cli("init", "--repository", REPOSITORY).status == 0
    site.base = clone.commit(message="begin")
    clone.git("switch", "--quiet", "--create", "feature")
    log = (clone.folder / "perf-changelog.yaml").read_bytes()
    site.head = clone.commit(log + ENTRY)
    site.commits[:] = [site.head]
    site.labels.append(LABEL)
    site.events.append(("labeled", "ada", LABEL))
    site.people["ada"] = ("write", "write")
    event(clone, site)
    return clone


def event(clone: Repository, site: Site) -> None:
    """The event file of the label, as of the head that the site has now."""
    (clone.folder.parent / "event.json").write_text(json.dumps(payload(site.head, site.base, LABEL)), encoding="utf-8")


def planned(status: int = 0) -> dict[str, Any]:
    outcome = cli("plan", "--event", "../event.json", "--output", "../plan.json")
    assert outcome.status == status, outcome
    found: dict[str, Any] = json.loads(Path("../plan.json").read_text(encoding="utf-8"))
    return found


def swept(site: Site, plan: dict[str, Any], *names: str) -> None:
    """Run 1001 swept that plan, and has these results."""
    site.add_run(1001, plan["head"]["commit"])
    site.add_artifact(1001, "plan", **{"plan.json": json.dumps(plan)})
    for row in plan["points"]:
        if row["id"] in names:
            result(site, 1001, row["id"], row["digest"])


def test_the_plan_says_who_let_it_run(clone: Repository, site: Site) -> None:
    plan = planned()
    assert plan["decision"] == "run"
    assert [row["id"] for row in plan["points"]] == list(IDS)
    assert plan["receipts"] == [
        {"label": LABEL, "by": "ada", "at": "2026-11-30T10:00:00Z", "permission": "write", "head_sha": site.head}
    ]
    assert plan["reuse"] is None
    assert len(site.requests) == 5
    assert cli("job", "--plan", "../plan.json", "--id", IDS[0], "--checkout", site.head).status == 0
    moved = cli("job", "--plan", "../plan.json", "--id", IDS[0], "--checkout", clone.commit(message="later"))
    assert moved.status == 1
    assert "plan-approval" in moved.err


def test_a_push_voids_the_approval(clone: Repository, site: Site) -> None:
    site.head = clone.commit(message="pushed after the label was set")
    plan = planned()
    assert plan["decision"] == "skip"
    assert "set the label again" in plan["reason"]
    assert plan["points"] == []


@pytest.mark.usefixtures("clone")
def test_what_an_earlier_sweep_has_does_not_run(site: Site) -> None:
    first = planned()
    digests = {row["id"]: row["digest"] for row in first["points"]}
    swept(site, first, *IDS[:2])
    comment = site.comment("ada", "The fix is in the documentation.\n\n/reuse-sweep-run\n")
    site.comment("mallory", "/reuse-sweep-run 9999", "NONE")
    plan = planned()
    assert [row["id"] for row in plan["points"]] == [IDS[2]]
    assert plan["canary"] == IDS[2]
    assert plan["reuse"] == {
        "run-id": 1001, "attempt": 1, "head-sha": site.head, "by": "ada", "comment": comment,
        "points": {name: name for name in IDS[:2]},
        "digests": {name: digests[name] for name in IDS[:2]},
    }  # fmt: skip
    left_out = [one["what"] for one in plan["left-out"] if one["rule"] == "reuse"]
    assert left_out == list(IDS[:2])
    told = cli("comment", "../plan.json", "--event", "../event.json", "--dry-run")
    assert "- 2 results of run `1001` reused, as `ada` asked" in told.out


@pytest.mark.usefixtures("clone")
def test_when_everything_is_reused_nothing_runs(site: Site) -> None:
    swept(site, planned(), *IDS)
    site.comment("ada", "/reuse-sweep-run 1001")
    plan = planned()
    assert plan["decision"] == "skip"
    assert "run 1001 has the results of all points" in plan["reason"]
    assert len(plan["reuse"]["points"]) == 3


def test_a_third_sweep_reuses_what_the_second_had_of_the_first(clone: Repository, site: Site) -> None:
    swept(site, planned(), *IDS[:2])
    site.comment("ada", "/reuse-sweep-run")
    second = planned()
    assert [row["id"] for row in second["points"]] == [IDS[2]]
    site.add_run(1002, site.head)
    site.add_artifact(1002, "plan", **{"plan.json": json.dumps(second)})
    result(site, 1002, IDS[2], second["points"][0]["digest"])
    site.head = clone.commit(b"More words.\n", "README.md", "Say more")
    site.commits.append(site.head)
    event(clone, site)
    third = planned()
    assert third["decision"] == "skip"
    assert third["reason"] == "nothing to run: runs 1001, 1002 have the results of all points"
    assert (third["reuse"]["run-id"], third["reuse"]["runs"]) == (1002, dict.fromkeys(IDS[:2], 1001))
    told = cli("comment", "../plan.json", "--event", "../event.json", "--dry-run")
    assert "- 2 results of run `1001`, 1 result of run `1002` reused, as `ada` asked" in told.out
    asked = cli("reuse", "--number", "77", "--repository", REPOSITORY)
    assert "with what 1 job left that is still kept, and with 2 results that it reused itself" in asked.out


@pytest.mark.usefixtures("clone")
def test_a_reuse_that_cannot_be_had_is_refused_with_its_cure(site: Site) -> None:
    swept(site, planned(), *IDS)
    site.runs[-1]["head_sha"] = "d" * 40
    site.comment("ada", "/reuse-sweep-run")
    plan = planned(status=1)
    assert plan["decision"] == "refuse"
    [finding] = plan["findings"]
    assert finding["rule"] == "reuse-orphan"
    assert finding["fix"] == "pin the run id: /reuse-sweep-run 1001"
    assert cli("comment", "../plan.json", "--event", "../event.json").status == 0
    assert "fix: pin the run id: /reuse-sweep-run 1001" in site.comments[-1]["body"]


@pytest.mark.usefixtures("clone")
def test_asked_before_anything_depends_on_it(site: Site) -> None:
    swept(site, planned(), IDS[0])
    words = ("reuse", "--number", "77", "--repository", REPOSITORY)
    nobody = cli(*words)
    assert (nobody.status, nobody.out) == (3, "")
    assert cli(*words, "--allow-empty").status == 0
    site.comment("ada", "/reuse-sweep-run")
    found = cli(*words)
    assert found.status == 0
    assert found.out.startswith(f"Run 1001 at {site.head[:12]} stands in, with what 1 job left")
    of_a_plan = cli(*words, "--plan", "../plan.json")
    assert of_a_plan.out.splitlines() == [f"Run 1001 at {site.head[:12]} stands in for 1 of 3 points.", IDS[0]]
    site.labels.clear()
    refused = cli(*words)
    assert refused.status == 1
    assert "reuse-label: no label asks for a full sweep" in refused.err


@pytest.mark.usefixtures("clone")
def test_the_answer_is_a_comment_that_is_updated_in_place(site: Site) -> None:
    swept(site, planned(), *IDS)
    words = ("reuse", "--number", "77", "--repository", REPOSITORY, "--reply")
    site.comment("mallory", "/reuse-sweep-run", "NONE")
    assert cli(*words, "--allow-empty").status == 0
    assert len(site.comments) == 1
    site.comment("ada", "/reuse-sweep-run 4")
    assert cli(*words).status == 1
    assert "### Reuse refused" in site.comments[-1]["body"]
    assert "there is no run 4" in site.comments[-1]["body"]
    site.comment("ada", "/reuse-sweep-run")
    assert cli(*words).status == 0
    answers = [one["body"] for one in site.comments if one["user"]["login"] == site.me]
    assert len(answers) == 1
    assert "### Reuse\n\nRun 1001" in answers[0]
    site.comments[:] = [one for one in site.comments if one["user"]["login"] != "ada"]
    assert cli(*words, "--allow-empty").status == 0
    [answer] = [one["body"] for one in site.comments if one["user"]["login"] == site.me]
    assert "Nobody asks for a reuse; a sweep runs everything." in answer


def test_an_unchanged_log_is_believed_only_where_github_agrees(clone: Repository, site: Site) -> None:
    clone.git("revert", "--no-edit", "HEAD")
    site.head = clone.git("rev-parse", "HEAD").strip()
    event(clone, site)
    site.files[:] = [f"docs/{number}.md" for number in range(412)]
    plan = planned()
    assert plan["decision"] == "skip"
    assert "no entry was added" in plan["reason"]
    site.files[350] = "perf-changelog.yaml"
    plan = planned(status=1)
    assert [finding["rule"] for finding in plan["findings"]] == ["touched-log"]
    site.changed_files = 413  # one is not listed: git is asked what the pull request touches
    assert planned()["decision"] == "skip"
    # The first answer is for the approval, the second for this.
    site.plant("pulls/77$", lambda _: None, error(403, "Resource not accessible by integration"))
    assert planned(status=1)["findings"][0]["rule"] == "github-permission"


@pytest.mark.usefixtures("clone")
def test_patience_is_for_the_whole_command(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr("matrix.github.SystemClock", lambda: clock)
    site.comment("ada", "/reuse-sweep-run")
    for place in ("pulls/77$", "comments"):
        site.plant(place, error(403, SECONDARY, retry_after="500"))
    plan = planned(status=1)
    [finding] = plan["findings"]
    assert finding["rule"] == "github-limit"
    assert "It may come again in 500 s, and 400 s are left to wait" in finding["message"]
    assert clock.slept == [500]


@pytest.mark.usefixtures("clone")
def test_without_an_answer_nothing_runs(site: Site) -> None:
    site.plant("permission", error(403, "Resource not accessible by integration"))
    plan = planned(status=1)
    assert plan["decision"] == "refuse"
    assert plan["findings"][0]["rule"] == "github-permission"
    assert plan["points"] == []


def test_a_push_to_a_changed_config_runs_what_changed(clone: Repository, site: Site) -> None:
    swept(site, planned(), *IDS)
    recipe = clone.folder / "configs/recipes/qwen3-0.6b/sglang/mi300x-fp16/agg.yaml"
    recipe.write_text(recipe.read_text(encoding="utf-8").replace('CONC: "16"', 'CONC: "16", X: "1"'), encoding="utf-8")
    site.head = clone.commit(message="another environment")
    site.commits.append(site.head)
    event(clone, site)
    site.comment("ada", "/reuse-sweep-run")
    plan = planned()
    assert [row["id"] for row in plan["points"]] == [IDS[1]]
    assert plan["reuse"]["head-sha"] == site.commits[0]
