"""Which points are evaluated for accuracy, what the modes leave, and the two ways to a smaller sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from matrix.config.source import load, loads
from matrix.errors import RefusedError
from matrix.points.evals import EvalPolicy, policy_of
from matrix.points.pipeline import expand
from tests.points.support import WORKER, config, dram, expanded, opened, recipe, request, roles, rows, rules, sized

if TYPE_CHECKING:
    from matrix.points.point import Point

ROOT = Path(__file__).parents[2]


def marks(*texts: str, flags: tuple[str, ...] = (), recipes: dict[str, str] | None = None) -> list[str]:
    """Topology and concurrency of each row; behind ``|`` what is evaluated, at which of its concurrencies."""
    return [shown(row) for row in rows(*texts, flags=flags, recipes=recipes)]


def shown(row: dict[str, Any]) -> str:
    text: str = row["id"].split("--", 2)[2].partition("--eval")[0]
    if not row.get("run-eval"):
        return text
    framework = "gsm8k" if (row["eval-framework"], row["eval-suite"]) == ("lm-eval", "") else row["eval-framework"]
    at = f" @{row['eval-conc']}" if "eval-conc" in row else ""
    flags = [f" {flag}" for flag, field in (("all", "eval-all-concs"), ("only", "eval-only")) if row.get(field)]
    return f"{text} | {framework}{at}{''.join(flags)}"


def fixed(*entries: str, **fields: Any) -> str:
    return config(fixed=entries, **fields)


def agentic(*entries: str, **fields: Any) -> str:
    alone = [entry.startswith("tp") and "kv-offloading" not in entry for entry in entries]
    told = [f"{entry}, kv-offloading: none" if needs else entry for entry, needs in zip(entries, alone, strict=True)]
    return config(agentic=told, **fields)


# -- marks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("concs", "evaluated"),
    [
        ([4, 8, 16, 32, 64], [32, 64]),
        ([16, 32, 64, 128, 256], [64, 256]),
        ([64, 16, 32, 4], [32, 64]),
        ([16, 32], [32]),
        ([17], [17]),
        ([16], [16]),
        ([15], []),
        ([1, 2, 15], []),
    ],
)
def test_single_node_fixed_length_is_evaluated_at_the_highest_and_the_upper_median(
    concs: list[int], evaluated: list[int]
) -> None:
    found = rows(fixed(f"tp: 8, conc-list: {concs}"))
    assert sorted(row["conc"] for row in found if row["run-eval"]) == evaluated
    assert all("eval-framework" in row for row in found if row["run-eval"])


def test_all_tensor_sizes_of_a_group_are_marked_at_the_picked_concurrencies() -> None:
    text = fixed("tp: 8, conc-list: [4, 16, 64]", "tp: 4, conc-list: [32, 64]", "tp: 2, conc-list: [1, 16]")
    assert marks(text) == [
        "tp8--c4", "tp8--c16", "tp8--c64 | gsm8k", "tp4--c32 | gsm8k", "tp4--c64 | gsm8k", "tp2--c1", "tp2--c16",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tp: 8", "tp: 8, dp-attn: true"),
        ("tp: 8", "tp: 8, spec-decoding: mtp"),
        ("tp: 8, dp-attn: true, attn-dp-size: 2", "tp: 8, dp-attn: true, attn-dp-size: 4"),
    ],
)
def test_what_parts_single_node_groups(one: str, other: str) -> None:
    found = rows(fixed(f"{one}, conc-list: [64]", f"{other}, conc-list: [16]"))
    assert [row["run-eval"] for row in found] == [True, True]


@pytest.mark.parametrize("other", ["tp: 4", "tp: 8, ep: 8", "tp: 8, pp: 2", "tp: 8, dcp-size: 2", "tp: 8, pcp-size: 2"])
def test_what_does_not_part_single_node_groups(other: str) -> None:
    found = rows(fixed("tp: 8, conc-list: [16, 64]", f"{other}, conc-list: [17]"))
    assert [(row["conc"], row["run-eval"]) for row in found] == [(16, False), (64, True), (17, True)]


@pytest.mark.parametrize("block", ["isl: 1024, osl: 1024", "isl: 8192, osl: 1025", "isl: 1024, osl: 8192"])
def test_other_lengths_are_never_evaluated(block: str) -> None:
    text = fixed("tp: 8, conc-list: [64]", block=block)
    assert marks(text) == ["tp8--c64"]
    assert marks(text, flags=("--all-evals", "--allow-empty")) == []


def test_multi_node_fixed_length_is_evaluated_at_the_highest_concurrency_of_each_topology() -> None:
    text = fixed(
        f"{roles()}, conc-list: [8, 256, 64]",
        f"{roles('tp: 4')}, conc-list: [4, 8]",
        f"{roles('tp: 2')}, conc-list: [16]",
        disagg=True,
    )
    assert marks(text) == [
        "1p-tp8-1d-tp8--c8-256-64 | gsm8k @256",
        "1p-tp4-1d-tp8--c4-8",
        "1p-tp2-1d-tp8--c16 | gsm8k @16",
    ]


def test_single_node_agentic_is_evaluated_at_the_highest_concurrency_of_each_topology_however_low() -> None:
    text = agentic("tp: 8, conc-list: [1, 4]", "tp: 4, conc-list: [2, 1]", "tp: 8, spec-decoding: mtp, conc-list: [1]",
                   f"tp: 4, {dram('b')}, conc-list: [2]", utilization="0.5")  # fmt: skip
    assert marks(text) == [
        "tp8--c1", "tp8--c4 | gsm8k", "tp4--c2 | gsm8k", "tp4--c1", "tp8-mtp--c1 | gsm8k", "tp4-kvdram-b--c2",
    ]  # fmt: skip


def test_multi_node_agentic_is_evaluated_from_the_minimum_on_and_falls_back_for_each_topology() -> None:
    text = agentic(
        f"{roles()}, conc-list: [4, 16, 64]",
        f"{roles('tp: 4')}, conc-list: [1, 8]",
        f"{roles('tp: 2')}, conc-list: [2]",
        disagg=True,
    )
    assert marks(text) == [
        "1p-tp8-1d-tp8--c4", "1p-tp8-1d-tp8--c16", "1p-tp8-1d-tp8--c64 | gsm8k @64", "1p-tp4-1d-tp8--c1",
        "1p-tp4-1d-tp8--c8 | gsm8k @8", "1p-tp2-1d-tp8--c2 | gsm8k @2",
    ]  # fmt: skip


def test_a_deployment_of_a_topology_that_has_an_eval_does_not_fall_back() -> None:
    """The fallback keeps a topology from losing its accuracy run, not each way to run it."""
    text = agentic(f"{roles()}, conc-list: [16]", f"{roles()}, spec-decoding: mtp, conc-list: [4]", disagg=True)
    assert marks(text) == ["1p-tp8-1d-tp8--c16 | gsm8k @16", "1p-tp8-1d-tp8-mtp--c4"]


@pytest.mark.parametrize("conc", [2, 32])
def test_a_fixed_length_point_of_the_same_shape_has_no_part_in_the_fallback(conc: int) -> None:
    worker = f"worker: {WORKER}, num-nodes: 1"
    text = config(fixed=[f"{worker}, conc-list: [{conc}]"], agentic=[f"{worker}, conc-list: [1, 2]"], multinode=True)
    own = ["1w-tp8--c2"] if conc == 2 else ["1w-tp8--c32 | gsm8k @32"]
    assert marks(text) == [*own, "1w-tp8--c1", "1w-tp8--c2 | gsm8k @2"]


BUNDLE = """\
schema: 2
base: {name: b, roles: {prefill: {nodes: 1}, decode: {nodes: 1}}}
override_a: {name: a}
override_b: {name: b}
override_c: {name: c}
"""


def variants(reference: str, **concs: int) -> list[str]:
    return [f"{roles(recipe(f'{reference}:override_{name}'))}, conc-list: [{conc}]" for name, conc in concs.items()]


def test_variants_of_one_recipe_file_are_one_family() -> None:
    """Difference 7."""
    text = agentic(*variants("r.yaml", a=1, b=16, c=64), *variants("s.yaml", a=2), disagg=True)
    files = {"r.yaml": BUNDLE, "s.yaml": BUNDLE}
    assert [mark.partition("--c")[2] for mark in marks(text, recipes=files)] == [
        "1--override_a", "16--override_b", "64--override_c | gsm8k @64", "2--override_a",
    ]  # fmt: skip
    trimmed = [mark.partition("--c")[2] for mark in marks(text, flags=("--trim-conc",), recipes=files)]
    assert trimmed == ["1--override_a | gsm8k @1", "2--override_a"]


# -- suites of models --------------------------------------------------------------------------------------------------


def test_a_vendor_suite_runs_on_every_agentic_point_beside_the_default_picks() -> None:
    text = agentic("tp: 8, conc-list: [1, 8]", "tp: 4, conc-list: [2]", prefix="kimik3")
    assert marks(text) == [
        "tp8--c1 | kimi-vendor", "tp8--c8 | kimi-vendor", "tp4--c2 | kimi-vendor",
        "tp8--c8 | gsm8k only", "tp4--c2 | gsm8k only",
    ]  # fmt: skip


def test_a_vendor_suite_says_its_concurrency_on_several_nodes() -> None:
    text = agentic(f"{roles()}, conc-list: [4, 16]", disagg=True, prefix="minimaxm3")
    assert marks(text) == [
        "1p-tp8-1d-tp8--c4 | minimax-vendor @4",
        "1p-tp8-1d-tp8--c16 | minimax-vendor @16",
        "1p-tp8-1d-tp8--c16 | gsm8k @16 only",
    ]


def test_a_vendor_suite_is_for_agentic_points() -> None:
    assert marks(fixed("tp: 8, conc-list: [16]", prefix="kimik3")) == ["tp8--c16 | gsm8k"]
    assert marks(agentic("tp: 8, conc-list: [16]", prefix="kimik2.5")) == ["tp8--c16 | gsm8k"]


def test_two_evals_of_the_same_name_to_an_application_both_stay() -> None:
    """Difference 13: ids are unique, so neither overwrites the other."""
    text = agentic("tp: 8, conc-list: [8]", f"tp: 8, {dram('b')}, conc-list: [8]", prefix="kimik3", utilization="0.5")
    assert marks(text) == ["tp8--c8 | kimi-vendor", "tp8-kvdram-b--c8 | kimi-vendor", "tp8--c8 | gsm8k only"]


# -- modes -------------------------------------------------------------------------------------------------------------

SWEEP = config(
    fixed=["tp: 8, conc-list: [4, 16, 64]"], agentic=["tp: 8, kv-offloading: none, conc-list: [1, 2]"], key="s"
)
NODES = config(
    fixed=[f"{roles()}, conc-list: [4, 32, 16]", f"{roles('tp: 4')}, conc-list: [2]"],
    agentic=[f"{roles()}, conc-list: [4, 16]"],
    disagg=True,
)


def test_no_evals() -> None:
    assert marks(SWEEP, flags=("--no-evals",)) == ["tp8--c4", "tp8--c16", "tp8--c64", "tp8--c1", "tp8--c2"]
    found = rows(SWEEP, flags=["--no-evals"])
    assert [row.get("run-eval") for row in found] == [False, False, False, None, None]


def test_evals_only() -> None:
    assert marks(SWEEP, flags=("--evals-only",)) == ["tp8--c64 | gsm8k only", "tp8--c2 | gsm8k only"]
    assert marks(NODES, flags=("--evals-only",)) == [
        "1p-tp8-1d-tp8--c4-32-16 | gsm8k @32 only",
        "1p-tp8-1d-tp8--c16 | gsm8k @16 only",
    ]


def test_all_evals() -> None:
    assert marks(SWEEP, flags=("--all-evals",)) == [
        "tp8--c4 | gsm8k only", "tp8--c16 | gsm8k only", "tp8--c64 | gsm8k only",
        "tp8--c1 | gsm8k only", "tp8--c2 | gsm8k only",
    ]  # fmt: skip
    assert marks(NODES, flags=("--all-evals",)) == [
        "1p-tp8-1d-tp8--c4-16-32 | gsm8k all only",
        "1p-tp4-1d-tp8--c2 | gsm8k all only",
        "1p-tp8-1d-tp8--c4-16 | gsm8k @16 only",
    ]
    assert marks(SWEEP, flags=("--all-evals", "--evals-only")) == marks(SWEEP, flags=("--all-evals",))


def test_all_evals_of_a_vendor_s_model_run_both_suites() -> None:
    text = agentic("tp: 8, conc-list: [1, 8]", prefix="kimik3")
    assert sorted(marks(text, flags=("--all-evals",))) == [
        "tp8--c1 | gsm8k only", "tp8--c1 | kimi-vendor only", "tp8--c8 | gsm8k only", "tp8--c8 | kimi-vendor only",
    ]  # fmt: skip
    assert sorted(marks(text, flags=("--all-evals", "--trim-conc"))) == [
        "tp8--c1 | gsm8k only", "tp8--c1 | kimi-vendor only",
    ]  # fmt: skip


def test_an_accuracy_run_measures_no_power() -> None:
    text = fixed("tp: 8, conc-list: [16]", block="isl: 8192, osl: 1024, require-power: true")
    assert [row.get("require-power") for row in rows(text)] == [True]
    for mode in ("--evals-only", "--all-evals"):
        assert [row.get("require-power") for row in rows(text, flags=[mode])] == [None]


# -- trim and smoke ----------------------------------------------------------------------------------------------------


def test_trim_leaves_the_lowest_of_each_family_in_its_place() -> None:
    text = fixed(
        "tp: 8, conc-list: [64, 4, 16]", "tp: 4, conc-list: [2]", "tp: 8, spec-decoding: mtp, conc-list: [8, 1]"
    )
    assert marks(text, flags=("--no-evals", "--trim-conc")) == ["tp8--c4", "tp4--c2", "tp8-mtp--c1"]
    assert marks(NODES, flags=("--no-evals", "--trim-conc")) == [
        "1p-tp8-1d-tp8--c4", "1p-tp4-1d-tp8--c2", "1p-tp8-1d-tp8--c4",
    ]  # fmt: skip


def test_trim_merges_entries_that_differ_in_concurrency_alone() -> None:
    text = agentic(
        f"{roles()}, conc-list: [64]", f"{roles()}, conc-list: [1]", f"{roles()}, conc-list: [16]", disagg=True
    )
    assert marks(text, flags=("--no-evals", "--trim-conc")) == ["1p-tp8-1d-tp8--c1"]


def test_trim_sees_through_nested_values() -> None:
    entry = "kv-offloading: dram, kv-offload-backend: {name: b, version: '1'}"
    text = agentic(f"tp: 8, {entry}, conc-list: [4]", f"tp: 8, {entry}, conc-list: [2]", utilization="0.5")
    assert marks(text, flags=("--no-evals", "--trim-conc")) == ["tp8-kvdram-b--c2"]


def test_a_survivor_is_evaluated_as_the_highest_marked_member_was() -> None:
    """Difference 17."""
    assert marks(SWEEP, flags=("--trim-conc",)) == ["tp8--c4 | gsm8k", "tp8--c1 | gsm8k"]
    assert marks(NODES, flags=("--trim-conc",)) == [
        "1p-tp8-1d-tp8--c4 | gsm8k @4", "1p-tp4-1d-tp8--c2", "1p-tp8-1d-tp8--c4 | gsm8k @4",
    ]  # fmt: skip
    assert marks(SWEEP, flags=("--trim-conc", "--evals-only")) == ["tp8--c4 | gsm8k only", "tp8--c1 | gsm8k only"]
    assert marks(NODES, flags=("--trim-conc", "--all-evals"))[0] == "1p-tp8-1d-tp8--c4 | gsm8k @4 all only"


def test_smoke_is_the_lowest_point_and_the_accuracy_run_of_each_family() -> None:
    assert marks(SWEEP, flags=("--smoke",)) == [
        "tp8--c4", "tp8--c1", "tp8--c64 | gsm8k only", "tp8--c2 | gsm8k only",
    ]  # fmt: skip
    assert marks(NODES, flags=("--smoke",)) == [
        "1p-tp8-1d-tp8--c4", "1p-tp4-1d-tp8--c2", "1p-tp8-1d-tp8--c4",
        "1p-tp8-1d-tp8--c32 | gsm8k @32 only", "1p-tp8-1d-tp8--c16 | gsm8k @16 only",
    ]  # fmt: skip


def test_smoke_has_no_accuracy_run_among_its_throughput_points() -> None:
    """Difference 17; the throughput point still says whose suite its model has."""
    found = rows(agentic("tp: 8, conc-list: [1, 8]", prefix="kimik3"), flags=["--smoke"])
    assert [(row["conc"], row["run-eval"], row.get("eval-only"), row.get("eval-framework")) for row in found] == [
        (1, False, None, "kimi-vendor"),
        (1, True, True, "kimi-vendor"),
        (8, True, True, "lm-eval"),
    ]


# -- policy ------------------------------------------------------------------------------------------------------------


def test_the_policy_file_of_this_repository_says_what_holds_without_one() -> None:
    policy = policy_of(load(ROOT / "configs" / "evals.yaml"))
    assert policy._replace(model_suites=dict(policy.model_suites)) == EvalPolicy(
        model_suites=dict(EvalPolicy().model_suites)
    )


def with_policy(text: str, policy: str, *flags: str) -> list[str]:
    """The marks under another policy."""
    workspace = opened(text)
    chosen = policy_of(loads(policy.encode(), "evals.yaml"))
    points: list[Point] = list(expand(workspace.configs, workspace.facts, chosen, request(flags)).points)
    return [shown(point.row()) for point in points]


def test_the_policy_is_data() -> None:
    text = config(fixed=["tp: 8, conc-list: [1, 2, 16]"], block="isl: 1024, osl: 1024")
    policy = (
        "{version: 1, minimum-concurrency: 2, sequence: {isl: 1024, osl: 1024}, default: {framework: own, suite: s}}"
    )
    assert with_policy(text, policy) == ["tp8--c1", "tp8--c2", "tp8--c16 | own"]
    suites = "{version: 1, model-suites: {m: {framework: mine, suite: x}}}"
    assert with_policy(agentic("tp: 8, conc-list: [2]"), suites) == ["tp8--c2 | mine", "tp8--c2 | gsm8k only"]


def test_a_suite_in_the_default_s_framework_would_share_its_ids() -> None:
    text = b"{version: 1, model-suites: {m: {framework: own, suite: x}, n: {framework: lm-eval, suite: x}}}"
    with pytest.raises(RefusedError) as refusal:
        policy_of(loads(text, "evals.yaml"))
    (finding,) = refusal.value.findings
    assert (str(finding.span), finding.rule) == ("evals.yaml:1:75", "evals-framework")


def test_a_repeated_concurrency_is_evaluated_once() -> None:
    expansion = expanded(agentic("tp: 8, conc-list: [4, 4]"), flags=["--evals-only"])
    assert [point.id for point in expansion.points] == ["k--agentic--tp8--c4--eval"]
    assert rules(expansion) == ["point-duplicate"]


def test_aggregated_topologies_fall_back_too() -> None:
    text = agentic(f"worker: {sized('', 2)}, num-nodes: 2, conc-list: [1, 2]", multinode=True)
    assert marks(text) == ["2w-tp8--c1", "2w-tp8--c2 | gsm8k @2"]
