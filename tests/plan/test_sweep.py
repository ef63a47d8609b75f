"""From an event to plan.json, outputs and summary, in a scratch repository; and back from plan.json to jobs."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.cli.diff import diff
from matrix.cli.main import matrix, run
from matrix.errors import RefusedError
from matrix.plan.claims import Options
from matrix.plan.labels import load_labels
from matrix.plan.limits import measures
from matrix.plan.selection import plan_selection
from matrix.plan.shards import canary_of
from matrix.plan.sweep import outputs_of_written, read_plan, written_of
from matrix.points.request import Request
from tests.changelog.support import BASE, Repository
from tests.plan.events import FAST, FULL, TRIMMED, dispatch, labeled, pull
from tests.plan.support import added, commit, of, planned, single, workspace

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.plan.plan import Plan

LABELS = "configs/labels.yaml"


class Lab:
    """A repository with a base and a head commit, and what a runner of GitHub Actions gives a step."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.repository = Repository(folder / "repository")
        self.folder = self.repository.folder
        self.labels = (root / LABELS).read_text(encoding="utf-8")
        self.environment = {
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GITHUB_ACTIONS": "true",
        }

    def commit(self, masters: str, log: bytes, subject: str = "change") -> str:
        commit(self.repository, masters, log, **{LABELS: self.labels, "note.txt": subject})
        self.repository.git("add", "--all")
        self.repository.git("commit", "--quiet", "--amend", "--message", subject)
        return self.repository.git("rev-parse", "HEAD").strip()

    def outputs(self) -> dict[str, str]:
        with open(self.environment["GITHUB_OUTPUT"], encoding="utf-8") as stream:  # noqa: PTH123
            return dict(line.rstrip("\n").split("=", 1) for line in stream)

    @property
    def summary(self) -> str:
        with open(self.environment["GITHUB_STEP_SUMMARY"], encoding="utf-8") as stream:  # noqa: PTH123
            return stream.read()

    def plan(self, payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch, permission: str = "write") -> int:
        monkeypatch.chdir(self.folder)
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
            monkeypatch.delenv(name, raising=False)
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)
        event = self.folder / "event.json"
        event.write_text(json.dumps(payload), encoding="utf-8")
        return run(matrix, ["plan", "--event", str(event), "--permission", permission], prog="matrix")


@pytest.fixture
def lab(tmp_path: Path, root: Path) -> Lab:
    return Lab(tmp_path, root)


def request_for(head: str, base: str, *labels: str, **more: Any) -> dict[str, Any]:
    payload = labeled(*labels, **more)
    payload["pull_request"]["head"]["sha"] = head
    payload["pull_request"]["base"]["sha"] = base
    return payload


def changed(lab: Lab, concs: str = "[4, 16, 64]", subject: str = "change") -> tuple[str, str]:
    base = lab.commit("", BASE, "base")
    lab.repository.git("switch", "--quiet", "--create", "feature")
    return base, lab.commit(single("alpha", concs), added(of("alpha")), subject)


def test_a_label_becomes_jobs(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    base, head = changed(lab)
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 0
    outputs = lab.outputs()
    plan = lab.folder / "plan.json"
    canary = {"id": "alpha--8k1k--tp8--c4", "runner": "cluster:mi355x-a"}
    assert outputs == {
        "decision": "run", "has-jobs": "true", "has-canary": "true", "has-shards": "true", "has-evals": "true",
        "has-reuse": "false", "canary": json.dumps(canary, separators=(",", ":")), "shards": '[{"number":1,"count":3}]',
        "fail-fast": "true", "plan-digest": sha256(plan.read_bytes()).hexdigest(),
    }  # fmt: skip
    written = read_plan(str(plan), outputs["plan-digest"])
    assert [job.id for job in written.shard(1)] == [name for name in written.rows if name != canary["id"]]
    assert written.record["approval"] == {"by": "ada", "permission": "write", "head_sha": head}
    assert written.record["head"]["commit"] == head
    assert lab.summary.startswith(f"## Run\n\nlabeled by ada, write: {FAST} at {head[:12]}")
    assert "canary" in lab.summary


@pytest.mark.parametrize("labels", [(FAST,), (TRIMMED, FULL), ("bug",), ("evals-only", FULL)])
def test_plan_json_is_as_its_schema_says(
    lab: Lab, root: Path, labels: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = json.loads((root / "matrix/schemas/plan.json").read_text(encoding="utf-8"))
    base, head = changed(lab)
    lab.plan(request_for(head, base, *labels), monkeypatch)
    jsonschema.Draft202012Validator(schema).validate(read_plan(str(lab.folder / "plan.json")).record)


def test_modes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    base, head = changed(lab)
    assert lab.plan(request_for(head, base, TRIMMED), monkeypatch) == 0
    outputs = lab.outputs()
    assert (outputs["has-canary"], outputs["canary"], outputs["fail-fast"]) == ("false", "{}", "false")
    assert outputs["shards"] == '[{"number":1,"count":2}]'
    assert "lowest concurrency" in lab.summary


def test_accuracy_alone_has_no_canary(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    base, head = changed(lab)
    assert lab.plan(request_for(head, base, "evals-only", FAST), monkeypatch) == 0
    outputs = lab.outputs()
    assert (outputs["has-canary"], outputs["has-evals"], outputs["has-shards"]) == ("false", "true", "true")


def test_a_lone_point_is_the_canary_and_leaves_no_shard(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    base, head = changed(lab, "[4]")
    assert lab.plan(request_for(head, base, FULL), monkeypatch) == 0
    outputs = lab.outputs()
    assert (outputs["has-jobs"], outputs["has-canary"], outputs["has-shards"]) == ("true", "true", "false")
    assert outputs["shards"] == "[]"


def test_nothing_to_run_skips(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    base = lab.commit("", BASE, "base")
    lab.repository.git("switch", "--quiet", "--create", "feature")
    head = lab.commit("# a comment\n", BASE)
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 0
    outputs = lab.outputs()
    assert (outputs["decision"], outputs["has-jobs"], outputs["has-shards"]) == ("skip", "false", "false")
    assert "no entry was added" in lab.summary


def test_the_skip_word_is_read_from_git(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    base, head = changed(lab, subject="Tidy [skip-sweep]")
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 0
    assert lab.outputs()["decision"] == "skip"
    head = lab.commit(single("alpha", "[8]"), added(of("alpha")), "Tidy\n\nNo [skip-sweep] here.")
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 0
    assert lab.outputs()["decision"] == "run"


def test_faults_refuse(lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    base = lab.commit("", BASE, "base")
    lab.repository.git("switch", "--quiet", "--create", "feature")
    head = lab.commit(single("alpha"), added(of("alfa")))
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 1
    outputs = lab.outputs()
    assert (outputs["decision"], outputs["has-jobs"]) == ("refuse", "false")
    assert json.loads((lab.folder / "plan.json").read_text(encoding="utf-8"))["points"] == []
    assert "changelog-key" in lab.summary
    out, err = capsys.readouterr()
    assert "changelog-key" in err
    assert "::error file=" in out


def test_a_refusal_is_an_annotation(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = changed(lab)
    assert lab.plan(request_for(head, base, FAST, FULL), monkeypatch) == 1
    assert "::error title=sweep::the labels" in capsys.readouterr().out


def test_a_plan_beyond_the_budget_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    base, _ = changed(lab)
    (lab.folder / "pyproject.toml").write_text("[tool.matrix]\nbudget-gpu-hours = 10\n", encoding="utf-8")
    head = lab.commit(single("alpha", agentic="[1, 2]"), added(of("alpha")))
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 1
    assert "takes 16 GPU-hours in 7 jobs, and budget-gpu-hours allows 10. Most of it: alpha 16." in lab.summary
    assert "5 jobs of unknown length, which count as none" in lab.summary
    assert "have somebody with maintain permission set over-budget-approved" in lab.summary
    record = json.loads((lab.folder / "plan.json").read_text(encoding="utf-8"))
    assert record["points"] == []
    assert record["refused"] == {"jobs": 7, "nodes": 7, "gpu-hours": 16.0, "jobs-of-unknown-length": 5}
    assert record["budget-gpu-hours"] == 10
    assert record["changes"]["points"]["added"] == 7
    assert "### What it would have taken\n\n7 jobs, 7 nodes, 16 GPU-hours of known length" in lab.summary
    outputs = lab.outputs()
    assert (outputs["has-jobs"], outputs["has-canary"], outputs["has-shards"]) == ("false", "false", "false")
    assert lab.plan(request_for(head, base, FAST, "over-budget-approved"), monkeypatch) == 1
    assert lab.plan(request_for(head, base, FAST, "over-budget-approved"), monkeypatch, "maintain") == 0
    assert lab.outputs()["decision"] == "run"
    record = json.loads((lab.folder / "plan.json").read_text(encoding="utf-8"))
    assert (record["refused"], record["budget-gpu-hours"]) == (None, 10)


def test_a_plan_with_faults_says_what_it_changes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    base, _ = changed(lab)
    head = lab.commit(single("alpha") + single("beta"), added(of("alpha")))
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 1
    record = json.loads((lab.folder / "plan.json").read_text(encoding="utf-8"))
    assert [finding["rule"] for finding in record["findings"]] == ["changelog-uncovered"]
    assert {one["key"] for one in record["changes"]["configs"]} == {"alpha", "beta"}
    assert "### Jobs that change" in lab.summary


def test_a_change_of_its_own_bounds_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.repository.git("config", "core.autocrlf", "false")
    lab.repository.write(b"[tool.matrix]\nbudget-gpu-hours = 10\n", "pyproject.toml")
    base, _ = changed(lab)
    lab.repository.write(b"[tool.matrix]\nbudget-gpu-hours = 1_000\n", "pyproject.toml")
    head = lab.commit(single("alpha", agentic="[1, 2]"), added(of("alpha")))
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 0
    record = json.loads((lab.folder / "plan.json").read_text(encoding="utf-8"))
    [told] = [one["message"] for one in record["findings"] if one["rule"] == "sweep-bounds"]
    assert told == "this change raises budget-gpu-hours from 10 to 1,000, and its own sweep is held to that."
    assert "raises budget" in lab.summary.replace("\\", "")


def test_the_plan_says_which_jobs_change(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = changed(lab)
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 0
    capsys.readouterr()
    told = json.loads((lab.folder / "plan.json").read_text(encoding="utf-8"))["changes"]
    monkeypatch.chdir(lab.folder)
    assert run(diff, [f"{base}..{head}", "--format", "json"], prog="matrix diff") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown.pop("changes")
    assert told == shown
    assert told["same"] is False
    assert f"### Jobs that change\n\n`{base[:12]}` to `{head[:12]}`: 1 config: 4 added" in lab.summary


@pytest.mark.parametrize(
    ("payload", "status", "decision"),
    [
        (pull("closed", FAST), 0, "cancel"),
        (labeled("bug", FAST), 0, "skip"),
        (labeled(FAST, head="x/y"), 0, "skip"),
        (labeled("agentx-fast"), 1, "refuse"),
        ({}, 1, "refuse"),
    ],
)
def test_statuses(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, payload: dict[str, Any], status: int, decision: str
) -> None:
    lab.commit("", BASE, "base")
    assert lab.plan(payload, monkeypatch) == status
    outputs = lab.outputs()
    assert (outputs["decision"], outputs["has-jobs"], outputs["shards"]) == (decision, "false", "[]")


def test_by_hand(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.commit(single("alpha"), BASE, "base")
    wanted = "alpha--8k1k--tp8--c4, alpha--8k1k--tp8--c64--eval"
    assert lab.plan(dispatch(label=FULL, ids=wanted), monkeypatch) == 0
    assert list(read_plan(str(lab.folder / "plan.json")).rows) == wanted.split(", ")
    head = lab.repository.git("rev-parse", "HEAD").strip()
    words = ["job", "--plan", "plan.json", "--id", "alpha--8k1k--tp8--c4", "--checkout"]
    assert run(matrix, [*words, head], prog="matrix") == 0
    assert run(matrix, [*words, "f" * 40], prog="matrix") == 1
    assert lab.plan(dispatch(label=TRIMMED, select="--config-keys alpha --no-evals"), monkeypatch) == 0
    assert list(read_plan(str(lab.folder / "plan.json")).rows) == ["alpha--8k1k--tp8--c4"]


@pytest.mark.parametrize(
    "inputs", [{"ids": "alpha--8k1k--tp8--c5"}, {"select": "--conk 4"}, {"select": "'"}, {"select": "--help"}]
)
def test_by_hand_and_not_understood(lab: Lab, monkeypatch: pytest.MonkeyPatch, inputs: dict[str, str]) -> None:
    lab.commit(single("alpha"), BASE, "base")
    assert lab.plan(dispatch(label=FULL, **inputs), monkeypatch) == 1
    assert lab.outputs()["decision"] == "refuse"


def test_outputs_are_printed_where_there_is_no_runner(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = changed(lab)
    lab.environment = {}
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 0
    assert "\nhas-canary=true\n" in capsys.readouterr().out


def test_options_that_the_event_says(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.commit("", BASE, "base")
    monkeypatch.chdir(lab.folder)
    assert run(matrix, ["plan", "--event", "event.json", "--base-ref", "main"], prog="matrix") == 2
    assert run(matrix, ["plan", "--event", "no.json", "--permission", "write"], prog="matrix") == 1


# -- plan.json and its readers ----------------------------------------------------------------------------------------


@pytest.fixture
def written(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Path:
    base, head = changed(lab)
    assert lab.plan(request_for(head, base, FAST), monkeypatch) == 0
    return lab.folder / "plan.json"


def commands(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = run(matrix, words, prog="matrix")
    out, err = capsys.readouterr()
    return status, out, err


def test_shard_and_job(
    written: Path, lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capsys.readouterr()
    digest, head = lab.outputs()["plan-digest"], lab.repository.git("rev-parse", "HEAD").strip()
    where = ("--plan", str(written), "--plan-digest", digest)
    monkeypatch.setenv("GITHUB_OUTPUT", str(lab.folder / "shard-output"))
    status, out, _ = commands("shard", *where, "--number", "1", capsys=capsys)
    assert (status, out[:14]) == (0, "has-jobs=true\n")
    assert (lab.folder / "shard-output").read_text(encoding="utf-8") == out
    name = json.loads(out.splitlines()[1].removeprefix("jobs="))[0]["id"]
    status, out, _ = commands("job", *where, "--id", name, "--checkout", head, capsys=capsys)
    assert (status, out.split()[0], out.split()[2]) == (0, "runner=cluster:mi355x-a", "minutes=1110")
    assert commands("job", *where, "--id", "alpha", capsys=capsys)[0] == 1
    assert commands("shard", *where, "--number", "2", capsys=capsys)[0] == 1
    status, _, err = commands("job", *where, "--id", name, "--checkout", "f" * 40, capsys=capsys)
    assert (status, "plan-approval" in err) == (1, True)
    status, _, err = commands("shard", *where[:3], "0" * 64, "--number", "1", capsys=capsys)
    assert (status, "plan-digest" in err) == (1, True)


def test_limits_of_a_plan(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    status, out, err = commands("limits", str(written), capsys=capsys)
    assert (status, err) == (0, "")
    assert "jobs of one matrix" in out
    status, out, _ = commands("limits", str(written), "--format", "json", capsys=capsys)
    found = {one["name"]: one["value"] for one in json.loads(out)["limits"]}
    assert (found["jobs of one matrix"], found["shards of a run"]) == (3, 1)
    assert all(one["fits"] for one in json.loads(out)["limits"])


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda record: record.update(version=2), "plan-version"),
        (lambda record: record.pop("points"), "plan-points"),
        (lambda record: record["points"].append(record["points"][0]), "plan-points"),
        (lambda record: record["points"][0].pop("runner"), "plan-points"),
        (lambda record: record.update(canary="other"), "plan-canary"),
        (lambda record: record.update(shards=[9]), "plan-shard"),
        (lambda record: record.update(minutes={"a": "long"}), "plan-form"),
        (lambda record: record.update(mode="fast"), "plan-form"),
        (lambda record: record.update(canary=["a"]), "plan-form"),
        (lambda record: record["points"][0].update(duration="1h"), "plan-points"),
    ],
)
def test_plans_that_are_not_whole(written: Path, change: Any, rule: str) -> None:
    record = json.loads(written.read_text(encoding="utf-8"))
    change(record)
    written.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(RefusedError, match=rule):
        read_plan(str(written))
    written.write_text(json.dumps(record)[:-9], encoding="utf-8")
    with pytest.raises(RefusedError, match="plan-json"):
        read_plan(str(written))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)


@given(key=st.sampled_from(["version", "points", "canary", "minutes", "mode", "shards", "decision"]), value=JSON)
def test_any_value_anywhere_is_read_or_refused(key: str, value: Any) -> None:
    record = {"version": 1, "points": [{"id": "a", "runner": "r", "digest": "d"}], key: value}
    try:
        written = written_of(record)
    except RefusedError:
        return
    assert list(measures(written, outputs_of_written(written)))


# -- the canary -------------------------------------------------------------------------------------------------------


def canary(plan: Plan) -> str:
    found = canary_of(plan.points)
    return "" if found is None else found.id


def test_the_canary(tmp_path: Path) -> None:
    space = workspace(tmp_path, single("alpha", "[16, 8, 64]") + single("beta", "[8]"))
    plan, findings = planned(space, of("alpha"), of("beta"))
    assert not findings
    assert canary(plan) == "alpha--8k1k--tp8--c8"
    plan, _ = planned(space, of("alpha"), of("beta"), evals_only=True)
    assert plan.points
    assert canary(plan) == ""


def test_selection_runs_what_a_label_would(tmp_path: Path, root: Path) -> None:
    space = workspace(tmp_path, single("alpha") + single("beta"))
    registry = load_labels(str(root / LABELS))
    for options in (Options(), Options(trim=True), Options(all_evals=True), Options(evals_only=True)):
        mode = registry.mode(registry.primaries[FULL])
        mode = mode._replace(trim=options.trim, all_evals=options.all_evals, evals_only=options.evals_only)
        labelled, _ = planned(space, of("alpha"), of("beta"), **options._asdict())
        by_hand, findings = plan_selection(
            space, Request(filters=Request().filters._replace(config_keys=("alpha", "beta"))), mode
        )
        assert not findings
        assert {point.id for point in by_hand.points} == {point.id for point in labelled.points}
