"""What entries run: claims, accuracy runs and their modes, trim, refusals, cost."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from matrix.changelog.context import Context
from matrix.changelog.rules import check
from matrix.findings import errors_of
from matrix.plan.document import buckets, plan_record
from matrix.plan.history import Revision
from matrix.plan.plan import plan_change
from matrix.points.evals import EvalMode
from matrix.points.pipeline import expand
from matrix.points.request import Request
from tests.changelog.support import BASE, entry
from tests.plan.support import added, ids, multi, of, planned, single, workspace

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.workspace import Workspace

BOTH = single("a", agentic="[1, 8]")
SPACE = BOTH + single("b") + single("c", fixed="", agentic="[2]")
EVERY_A = ["a c4", "a c16", "a c64", "a agentic c1", "a agentic c8"]
EVALS_A = ["a c64--eval", "a agentic c8--eval"]
ALL_EVALS_A = ["a c4--eval", "a c16--eval", "a c64--eval", "a agentic c1--eval", "a agentic c8--eval"]

RUNS = {
    "everything of one config": ([of("a")], {}, [*EVERY_A, *EVALS_A]),
    "one scenario": ([of("a", scenario_type="[agentic-coding]")], {}, [*EVERY_A[3:], EVALS_A[1]]),
    "the second entry runs what the first left": (
        [of("a", scenario_type="[agentic-coding]"), of("a")], {}, [*EVERY_A[3:], *EVERY_A[:3], *EVALS_A[::-1]],
    ),
    "a wildcard, each config once": (
        [of("b"), of("?"), of("b*")][::2], {}, ["b c4", "b c16", "b c64", "b c64--eval"],
    ),
    "evals-only": ([of("a", evals_only="true")], {}, EVALS_A),
    "all-evals": ([of("a", all_evals="true")], {}, ALL_EVALS_A),
    "no-evals": ([of("a", no_evals="true")], {}, EVERY_A),
    "all-evals goes first and leaves the throughput": (
        [of("c"), of("a", all_evals="true"), of("a")], {},
        ["c agentic c2", *EVERY_A, *ALL_EVALS_A, "c agentic c2--eval"],
    ),
    "a plan of accuracy runs alone": ([of("a")], {"evals_only": True}, EVALS_A),
    "a plan with all accuracy runs keeps its throughput": (
        [of("b")], {"all_evals": True}, ["b c4", "b c16", "b c64", "b c4--eval", "b c16--eval", "b c64--eval"],
    ),
    "trimmed": ([of("a")], {"trim": True}, ["a c4", "a agentic c1", *EVALS_A]),
    "two configs of one entry": (
        [of("b\n    - a")], {}, ["b c4", "b c16", "b c64", *EVERY_A, "b c64--eval", *EVALS_A],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entries", "options", "wanted"), RUNS.values(), ids=RUNS)
def test_runs(tmp_path: Path, entries: list[str], options: dict[str, Any], wanted: list[str]) -> None:
    plan, findings = planned(workspace(tmp_path, SPACE), *entries, **options)
    assert not findings
    assert ids(plan) == wanted


def test_what_is_left_out_says_why(tmp_path: Path) -> None:
    entries = [of("a", no_evals="true", scenario_type="[fixed-seq-len]"), of("a"), of("b", evals_only="true")]
    plan, _ = planned(workspace(tmp_path, SPACE), *entries, trim=True)
    told = [f"{one.what}: {one.rule}: {one.reason}" for one in plan.left_out]
    assert told == [
        "a fixed-seq-len accuracy: claim: no-evals: no accuracy runs",
        "a fixed-seq-len throughput: claim: entry 4 runs it already",
        "b fixed-seq-len throughput: claim: evals-only: accuracy runs alone",
        "a--8k1k--tp8--c16: trim-conc: its family has a lower concurrency",
        "a--8k1k--tp8--c64: trim-conc: its family has a lower concurrency",
        "a--agentic--tp8--c8: trim-conc: its family has a lower concurrency",
    ]


def test_least_prefill_ep_of_accuracy_runs(tmp_path: Path) -> None:
    """Throughput and single-node accuracy runs do not ask for it."""
    space = workspace(tmp_path, multi("m", (1, "[64]", ""), (8, "[64]", "")) + single("a"))
    plan, findings = planned(space, of("m\n    - a", eval_min_prefill_ep="4"))
    assert not findings
    evals = [point.id for point in plan.points if point.eval_only]
    assert evals == ["m--8k1k--1p-tp8ep8-1d-tp8--c64--eval", "a--8k1k--tp8--c64--eval"]
    assert len(plan.points) == 2 + 3 + 2
    assert [(one.what, one.reason) for one in plan.left_out] == [
        ("m--8k1k--1p-tp8-1d-tp8--c64--eval", "prefill ep 1 is below 4")
    ]


REFUSED = {
    "an unknown key": ([of("aa")], {}, ["changelog-key"]),
    "an unknown pattern": ([of("z*")], {}, ["changelog-key"]),
    "a question mark is no pattern": ([of('"?"')], {}, ["changelog-key"]),
    "two unknown keys": ([of("x\n    - a\n    - y")], {}, ["changelog-key", "changelog-key"]),
    "no such scenario": ([of("b", scenario_type="[agentic-coding]")], {}, ["changelog-empty"]),
    "no-evals in a plan of accuracy runs": ([of("a", no_evals="true")], {"evals_only": True}, ["changelog-exclusive"]),
    "append-only beside others": ([of("a", append_only="true"), of("b")], {}, ["append-only-mixed"]),
}


@pytest.mark.parametrize(("entries", "options", "rules"), REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path: Path, entries: list[str], options: dict[str, Any], rules: list[str]) -> None:
    plan, findings = planned(workspace(tmp_path, SPACE), *entries, **options)
    assert [finding.rule for finding in findings] == rules
    assert not plan.points
    assert all(finding.span and finding.fix for finding in findings)


def test_an_unknown_key_brings_near_ones_and_its_line(tmp_path: Path) -> None:
    _, (finding,) = planned(workspace(tmp_path, single("dsv4-fp4-atom")), of("omega\n    - dsv4-fp4-atomm"))
    assert str(finding.span) == "perf-changelog.yaml:21:7"
    assert finding.fix == "did you mean dsv4-fp4-atom?"


def test_a_key_that_the_diff_removes(tmp_path: Path) -> None:
    base, head = workspace(tmp_path / "base", SPACE), workspace(tmp_path / "head", BOTH)
    _, (finding,) = planned(head, of("b"), base=base)
    assert "this diff removes it" in finding.message


def test_what_expand_warns_of_is_refused(tmp_path: Path) -> None:
    space = single("a").replace("cluster:mi355x-a", "nowhere") + multi("m", (1, "[4]", "override_z"), recipe="r.yaml")
    _, findings = planned(workspace(tmp_path, space), of("a\n    - m"))
    assert {finding.rule for finding in errors_of(findings)} == {"runner-unknown", "recipe-selector"}


def test_cost(tmp_path: Path) -> None:
    space = single("a", agentic="[1, 8]") + multi("m", (1, "[64]", ""))
    plan, _ = planned(workspace(tmp_path, space), of("a\n    - m"))
    cost = plan.cost
    assert (cost.jobs, cost.nodes) == (len(plan.points), len(plan.points) + 2)
    assert cost.gpu_hours == 16  # two agentic throughput runs of an hour on eight GPUs
    assert cost.untimed == len(plan.points) - 2


def test_nothing_to_run_has_a_reason(tmp_path: Path) -> None:
    space = workspace(tmp_path, SPACE)
    for head, reason in (
        (BASE, "no entry was added"),
        (BASE.replace(b"pull/12", b"pull/14"), "1 link corrected, nothing to run"),
    ):
        _, verdict = check(BASE, head, Context())
        plan, findings = plan_change(verdict, space, space)
        assert (plan.points, plan.reason, findings) == ((), reason, ())


def test_an_entry_that_leaves_nothing(tmp_path: Path) -> None:
    space = workspace(tmp_path, multi("m", (1, "[4]", "")))
    plan, (finding,) = planned(space, of("m", evals_only="true"))
    assert finding.rule == "changelog-empty"
    assert not plan.points
    high = workspace(tmp_path / "high", multi("m", (1, "[64]", "")))
    _, (finding,) = planned(high, of("m", evals_only="true", eval_min_prefill_ep="8"))
    assert "prefill ep 1 is below 8" in finding.message


def test_a_plan_that_leaves_nothing(tmp_path: Path) -> None:
    """What was asked of the whole plan is no fault of an entry: an empty plan with a reason."""
    plan, findings = planned(workspace(tmp_path, multi("m", (1, "[4]", ""))), of("m"), evals_only=True)
    assert not findings
    assert (plan.points, plan.reason) == ((), "no point is left: see what was left out and why")


def test_an_entry_whose_configs_run_already(tmp_path: Path) -> None:
    plan, findings = planned(workspace(tmp_path, SPACE), of("a"), of("a"))
    assert not findings
    assert ids(plan) == [*EVERY_A, *EVALS_A]


SCHEMA: dict[str, Any] = json.loads((files("matrix") / "schemas" / "plan.json").read_text(encoding="utf-8"))


def test_plan_json(tmp_path: Path) -> None:
    space = workspace(tmp_path, single("a", agentic="[1]") + multi("m", (1, "[16, 64]", "")))
    plan, _ = planned(space, of("a\n    - m"), trim=True)
    plan = plan._replace(base=Revision("main", "0" * 40), head=Revision("HEAD", "1" * 40))
    record = json.loads(json.dumps(plan_record(plan)))
    Draft202012Validator.check_schema(SCHEMA)
    assert not list(Draft202012Validator(SCHEMA).iter_errors(record))
    listed = []
    for bucket in record["buckets"].values():
        for names in bucket.values() if isinstance(bucket, dict) else [bucket]:
            listed += names
    assert sorted(listed) == sorted(row["id"] for row in record["points"])
    assert record["buckets"]["multi_node"] == {"8k1k": ["m--8k1k--1p-tp8-1d-tp8--c16"]}
    assert record["changelog"]["base_ref"] == "0" * 40
    assert [entry["config-keys"] for entry in record["changelog"]["entries"]] == [["a", "m"]]


def test_bucket_rows_have_the_defaults_of_the_peers_schema(tmp_path: Path) -> None:
    plan, _ = planned(workspace(tmp_path, multi("m", (1, "[16, 64]", ""))), of("m"))
    sorted_ = buckets(plan)
    (row,) = sorted_["multi_node"]["8k1k"]
    assert row["decode"]["additional-settings"] == []
    assert (row["eval-only"], row["eval-all-concs"], row["require-power"]) == (False, False, False)
    (evaluated,) = sorted_["multinode_evals"]
    assert (evaluated["eval-only"], evaluated["eval-conc"], evaluated["eval-all-concs"]) == (True, 64, False)
    assert "require-power" not in evaluated


def test_workloads_of_other_lengths_keep_the_underscore(tmp_path: Path) -> None:
    space = single("a").replace("isl: 8192", "isl: 128").replace("osl: 1024", "osl: 32")
    plan, _ = planned(workspace(tmp_path, space), of("a"))
    assert list(buckets(plan)["single_node"]) == ["128_32"]


def test_an_entry_without_its_link_is_still_planned(tmp_path: Path) -> None:
    """So that a wrong key and a missing link come in one report."""
    findings, verdict = check(BASE, added(entry("nope").rsplit("\n", 1)[0]), Context(number=77))
    space = workspace(tmp_path, SPACE)
    _, more = plan_change(verdict, space, space)
    assert [finding.rule for finding in (*findings, *more)] == ["changelog-field", "changelog-key"]


FLAGS = st.fixed_dictionaries(
    {},
    optional={
        "evals_only": st.just("true"),
        "no_evals": st.just("true"),
        "all_evals": st.just("true"),
        "scenario_type": st.sampled_from(["[fixed-seq-len]", "[agentic-coding]"]),
    },
).filter(lambda flags: "no_evals" not in flags or not flags.keys() & {"evals_only", "all_evals"})


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return workspace(tmp_path_factory.mktemp("space"), SPACE)


@given(data=st.data())
def test_no_point_runs_twice_and_none_is_invented(space: Workspace, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.sampled_from(["a", "b", "c", '"*"', "a\n    - c"]), min_size=1, max_size=4))
    entries = [of(key, **data.draw(FLAGS)) for key in keys]
    options: dict[str, Any] = data.draw(st.sampled_from([{}, {"trim": True}, {"all_evals": True}]))
    plan, _ = planned(space, *entries, **options)
    names = [point.id for point in plan.points]
    assert len(names) == len(set(names))
    everything = {
        point.id
        for request in (Request(evals=EvalMode.NONE), Request(evals=EvalMode.ALL, evals_only=True))
        for point in expand(space.configs, space.facts, space.policy, request).points
    }
    assert set(names) <= everything
