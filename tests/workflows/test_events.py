"""Every event of the table, evaluated from the workflow files by GitHub's own evaluator: group, conditions, guards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.config.source import load
from matrix.plan.decision import Action, concurrency_group, decide
from matrix.plan.event import event_of
from matrix.plan.labels import Refused, Registry, load_labels
from tests.plan.events import FAST, FORK, REPOSITORY, TABLE, Answers, Row, labeled, pull
from tests.workflows.evaluator import EvaluationError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.workflows.evaluator import Evaluator

RUN: Final = 4242


@pytest.fixture(scope="module")
def registry(root: Path) -> Registry:
    return load_labels(str(root / "configs/labels.yaml"))


@pytest.fixture(scope="module")
def types(root: Path) -> list[str]:
    """The actions of pull requests that start the workflow."""
    found: list[str] = load(root / ".github/workflows/run-sweep.yml").root["on"]["pull_request"]["types"]
    return found


def contexts(payload: dict[str, Any], name: str, **needs: Any) -> dict[str, Any]:
    github = {"event_name": name, "event": payload, "repository": REPOSITORY, "run_id": RUN, "sha": "c" * 40}
    inputs = payload.get("inputs", {})
    return {"github": github, "inputs": inputs, "needs": needs, "vars": {}}


def lying_plan(**outputs: str) -> dict[str, Any]:
    """A plan that says run, as a fork could make its own say."""
    said = {"decision": "run", "has-jobs": "true", "has-canary": "true", "has-shards": "true", "has-evals": "true"}
    shards = {"canary": '{"id":"a","runner":"r"}', "shards": '[{"number":1,"count":1}]', "fail-fast": "true"}
    return {"result": "success", "outputs": {**said, **shards, "plan-digest": "d", **outputs}}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_decision_reason_and_group(row: Row, github: Evaluator, registry: Registry, types: list[str]) -> None:
    event = event_of(row.payload, row.event_name)
    decision = decide(event, registry, Answers(row.permission, row.subject))
    assert decision.action == row.action
    assert row.reason in decision.reason
    given = contexts(row.payload, row.event_name)
    concurrency = github.value("run-sweep", None, "concurrency", given)
    assert concurrency == {"group": concurrency_group(event, registry, str(RUN)), "cancel-in-progress": True}
    assert concurrency["group"] == ("run-sweep-pr-77" if row.ends else f"run-sweep-run-{RUN}")
    if row.ends:
        assert event.action in types
    planned = github.value("run-sweep", "plan", "if", given)
    starts = event.action in types if row.event_name == "pull_request" else row.event_name == "workflow_dispatch"
    if decision.action is not Action.SKIP:
        assert planned is starts is True
    elif planned is not True:
        # Only what has nothing to say does not get a machine: a label that is not, and is not like, one of ours.
        assert event.label is not None
        assert not isinstance(registry.find(event.label), Refused) or event.action == "unlabeled"
        assert "did you mean" not in decision.reason


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_our_machines_are_for_our_own_commits(row: Row, github: Evaluator) -> None:
    """Even with a plan that says run, made by the change itself."""
    event = event_of(row.payload, row.event_name)
    foreign = row.event_name == "pull_request" and event.fork
    given = contexts(row.payload, row.event_name, plan=lying_plan(), canary={"result": "success"})
    given["needs"]["points"] = {"result": "success", "outputs": {"has-jobs": "true"}}
    given["inputs"] = {"runner": "mi355x", "id": "a"}
    for workflow, job in (("run-sweep", "canary"), ("run-sweep", "sweep"), ("sweep-shard", "benchmark")):
        assert github.value(workflow, job, "if", given) is not foreign, job
    assert github.value("benchmark", "benchmark", "if", given) is not foreign


def test_a_fork_with_a_runner_label_of_its_own(github: Evaluator) -> None:
    plan = lying_plan(canary='{"id":"x","runner":"self-hosted"}')
    for payload in (labeled(FAST, head=FORK), labeled(FAST, head=None), pull("synchronize", FAST, head="org/bench-x")):
        given = contexts(payload, "pull_request", plan=plan, canary={"result": "skipped"})
        assert github.value("run-sweep", "canary", "if", given) is False
        assert github.value("run-sweep", "sweep", "if", given) is False


# -- upstream results -------------------------------------------------------------------------------------------------

S, F, C, K = "success", "failure", "cancelled", "skipped"
NO: Final = {"has-canary": "false", "canary": "{}"}
# plan's outputs, plan, canary, the run as a whole -> does the sweep run?
SWEEPS: Final[tuple[tuple[dict[str, str], str, str, str, bool], ...]] = (
    ({}, S, S, S, True),
    ({}, S, F, F, False),
    ({}, S, C, S, False),
    ({}, S, K, S, False),  # a canary that was to run and did not
    (NO, S, K, S, True),
    (NO, S, K, C, False),
    ({}, S, S, C, False),
    ({**NO, "has-shards": "false"}, S, K, S, False),
    ({"has-shards": "false"}, S, S, S, False),
    ({**NO, "decision": "skip", "has-shards": "false"}, S, K, S, False),
    ({**NO, "decision": "skip"}, S, K, S, False),
    ({**NO, "decision": "cancel"}, S, K, S, False),
    ({**NO, "decision": "refuse"}, F, K, F, False),
    (NO, F, K, F, False),
    ({"decision": "", "has-shards": "", "has-canary": ""}, F, K, F, False),
    ({"decision": "", "has-shards": "", "has-canary": ""}, K, K, S, False),
)


@pytest.mark.parametrize(("outputs", "plan", "canary", "status", "runs"), SWEEPS)
def test_when_the_sweep_runs(
    outputs: dict[str, str], plan: str, canary: str, status: str, runs: bool, github: Evaluator
) -> None:
    needs = {"plan": {**lying_plan(**outputs), "result": plan}, "canary": {"result": canary, "outputs": {}}}
    given = contexts(labeled(FAST), "pull_request", **needs)
    assert github.value("run-sweep", "sweep", "if", given, status) is runs


@pytest.mark.parametrize(
    ("outputs", "status", "runs"),
    [
        ({}, S, True),
        (NO, S, False),
        ({"decision": "skip"}, S, False),
        ({"decision": "refuse"}, F, False),
        ({}, F, False),
        ({}, C, False),
    ],
)
def test_when_the_canary_runs(outputs: dict[str, str], status: str, runs: bool, github: Evaluator) -> None:
    given = contexts(labeled(FAST), "pull_request", plan=lying_plan(**outputs))
    assert github.value("run-sweep", "canary", "if", given, status) is runs


COMMENTS: Final[tuple[tuple[dict[str, Any], str, str, bool], ...]] = (
    (labeled(FAST), "run", S, True),
    (labeled(FAST, "sweep-enabled"), "refuse", F, True),
    (labeled("agentx-fast", FAST), "refuse", F, True),
    (labeled(FAST), "skip", S, True),  # nothing to run, or the skip word
    (pull("closed", FAST), "cancel", S, True),
    (pull("synchronize", FAST), "skip", S, True),  # set the label again
    (pull("synchronize", "bug"), "skip", S, False),
    (pull("synchronize"), "skip", S, False),
    (labeled("sweeps-enabled", FAST), "skip", S, False),  # must not write over what runs
    (labeled("bug", FAST), "skip", S, False),
    (pull("reopened", FAST), "skip", S, False),
    (labeled(FAST), "", F, False),
    (labeled(FAST), "run", C, False),
    (labeled(FAST, head=FORK), "run", S, False),
    (labeled(FAST, head=None), "skip", S, False),
)


@pytest.mark.parametrize(("payload", "decision", "status", "tells"), COMMENTS)
def test_when_the_pull_request_is_told(
    payload: dict[str, Any], decision: str, status: str, tells: bool, github: Evaluator
) -> None:
    given = contexts(payload, "pull_request", plan=lying_plan(decision=decision))
    assert github.value("run-sweep", "comment", "if", given, status) is tells


# has-jobs, has-evals, has-reuse, canary, sweep, the run -> do results, do evals get collected?
COLLECTS: Final = (
    ("true", "true", "false", S, S, S, True, True),
    ("true", "false", "false", S, S, S, True, False),
    ("true", "true", "false", S, F, F, True, True),
    ("true", "true", "false", F, K, F, True, False),
    ("true", "true", "false", S, K, S, True, False),
    ("true", "true", "false", K, S, S, True, True),
    ("true", "true", "true", K, S, S, True, True),
    ("true", "true", "false", K, K, S, False, False),
    ("true", "true", "true", K, K, S, False, False),
    ("true", "true", "true", C, K, C, False, False),
    ("true", "true", "false", S, C, C, False, False),
    ("false", "false", "true", K, K, S, True, False),
    ("false", "false", "true", K, K, C, False, False),
    ("false", "false", "false", K, K, S, False, False),
    ("", "", "", K, K, F, False, False),
)


@pytest.mark.parametrize(("outputs", "ends", "results", "accuracy"), [(r[:3], r[3:6], *r[6:]) for r in COLLECTS])
def test_when_there_is_something_to_collect(
    outputs: tuple[str, ...], ends: tuple[str, ...], results: bool, accuracy: bool, github: Evaluator
) -> None:
    plan = lying_plan(**dict(zip(("has-jobs", "has-evals", "has-reuse"), outputs, strict=True)))
    canary, sweep, status = ends
    needs = {"plan": plan, "canary": {"result": canary}, "sweep": {"result": sweep}}
    given = contexts(labeled(FAST), "pull_request", **needs)
    assert github.value("run-sweep", "collect", "if", given, status) is results
    assert github.value("run-sweep", "collect-evals", "if", given, status) is accuracy


@pytest.mark.parametrize(
    ("result", "has_jobs", "status", "runs"),
    [(S, "true", S, True), (S, "false", S, False), (S, "", S, False), (F, "true", F, False), (S, "true", C, False)],
)
def test_when_a_shard_runs(result: str, has_jobs: str, status: str, runs: bool, github: Evaluator) -> None:
    points = {"result": result, "outputs": {"has-jobs": has_jobs, "jobs": "[]"}}
    given = contexts(labeled(FAST), "pull_request", points=points)
    assert github.value("sweep-shard", "benchmark", "if", given, status) is runs


def test_a_skipped_canary_does_not_skip_the_shards(github: Evaluator) -> None:
    """success() asks all ancestors, and a skipped one is no success."""
    given = contexts(labeled(FAST), "pull_request")
    assert github.value("sweep-shard", "points", "if", given, "skipped") is True


@pytest.mark.parametrize(("word", "value"), [("true", True), ("false", False), ("", False)])
def test_fail_fast(word: str, value: bool, github: Evaluator) -> None:
    given = contexts(labeled(FAST), "pull_request", plan=lying_plan(**{"fail-fast": word}))
    given["matrix"] = {"number": 1}
    assert github.value("run-sweep", "sweep", "strategy", given)["fail-fast"] is value
    assert github.value("run-sweep", "sweep", "input-values", given)["fail-fast"] is value
    inner = contexts(labeled(FAST), "pull_request", points={"outputs": {"jobs": '[{"id":"a","runner":"r"}]'}})
    inner["inputs"] = {"fail-fast": value}
    assert github.value("sweep-shard", "benchmark", "strategy", inner)["fail-fast"] is value


@pytest.mark.parametrize("workflow", ["pull-request", "ci"])
def test_checks_of_one_pull_request_replace_each_other(workflow: str, github: Evaluator) -> None:
    one = github.value(workflow, None, "concurrency", contexts(labeled(FAST), "pull_request"))
    other = github.value(workflow, None, "concurrency", contexts(pull("synchronize"), "pull_request"))
    assert one == other == {"group": f"{workflow}-77", "cancel-in-progress": True}
    push = github.value(workflow, None, "concurrency", contexts({"ref": "refs/heads/main"}, "push"))
    assert push["group"] == f"{workflow}-{'c' * 40}"


# -- the test's own tools ---------------------------------------------------------------------------------------------


def test_the_evaluator_sees_what_is_wrong(github: Evaluator) -> None:
    broken = "on: push\njobs:\n  a:\n    runs-on: x\n    steps: [{run: x}]\n    if: github.event_name = 'push'\n"
    assert github.parse("broken", broken)["errors"]
    matrix = "on: push\njobs:\n  a:\n    runs-on: x\n    if: matrix.x == 1\n    steps: [{run: x}]\n"
    assert github.parse("too-early", matrix)["errors"]
    given = contexts(labeled(FAST), "pull_request", plan=lying_plan(shards=""))
    with pytest.raises(EvaluationError):
        github.value("run-sweep", "sweep", "strategy", given)
