"""What a point occupies: host memory for offloaded KV blocks, nodes, GPUs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.points.support import (
    FLEET,
    WORKER,
    config,
    dram,
    errors,
    expanded,
    listed,
    recipe,
    roles,
    rows,
    rules,
    sized,
    warnings,
)

if TYPE_CHECKING:
    from matrix.findings import Finding

CAP = 2_861_022
SETTINGS = "additional-settings: "
OLD_FLEET = """\
labels: {mi355x-disagg: [n_0], 'cluster:a-x': [n_0]}
hardware: {'cluster:a-x': {gpus-per-node: 8, available-cpu-dram-mib: 1471356}}
"""


def budget(
    entry: str, utilization: str, *, runner: str = "cluster:mi355x-a", disagg: bool = False, **flags: Any
) -> int:
    text = config(
        agentic=[f"{entry}, {dram('b')}, conc-list: [1]"],
        utilization=utilization,
        runner=runner,
        disagg=disagg,
        **flags,
    )
    (row,) = rows(text, flags=["--no-evals"])
    found: int = row["total-cpu-dram-gb"]
    return found


@pytest.mark.parametrize(
    ("entry", "utilization", "runner", "gigabytes"),
    [
        ("tp: 8", "0.8", "cluster:big", 2399),
        ("tp: 4", "0.8", "cluster:big", 1199),
        ("tp: 4, pp: 2", "0.8", "cluster:big", 2399),
        ("tp: 2, pcp-size: 2", "0.8", "cluster:big", 1199),
        ("tp: 3", "0.35", "cluster:mi355x-a", 202),
        ("tp: 8", "1", "cluster:mi355x-a", 1542),
        ("tp: 8", "1.0", "cluster:mi355x-a", 1542),
        ("tp: 8", "0.5", "cluster:mi355x-a", 771),
        ("tp: 8", "0.50", "cluster:mi355x-a", 771),
        ("tp: 4", "0.9", "cluster:gb-n", 811),
    ],
)
def test_single_node_budget(entry: str, utilization: str, runner: str, gigabytes: int) -> None:
    assert budget(entry, utilization, runner=runner) == gigabytes


@pytest.mark.parametrize(
    ("prefill", "decode", "gigabytes"),
    [("", "", 771), ("tp: 4", "", 385), ("", "tp: 2", 771), ("tp: 16", "", 771), ("tp: 1", "tp: 8", 96)],
)
def test_a_disaggregated_budget_is_that_of_one_prefill_replica(prefill: str, decode: str, gigabytes: int) -> None:
    assert budget(roles(prefill, decode, counts=(3, 1)), "0.5", disagg=True) == gigabytes


def test_an_aggregated_budget_is_that_of_one_replica() -> None:
    assert budget(f"worker: {sized('tp: 4', 2)}, num-nodes: 1", "0.5", multinode=True) == 385


def test_no_offload_no_budget() -> None:
    (row,) = rows(
        config(agentic=["tp: 8, kv-offloading: none, conc-list: [1]"], utilization="0.5"), flags=["--no-evals"]
    )
    assert row["total-cpu-dram-gb"] == 0


@given(
    mib=st.integers(1, 4_000_000),
    share=st.decimals(min_value="0.001", max_value=1, places=3),
    tp=st.sampled_from([1, 2, 3, 5, 7, 8]),
)
def test_a_budget_is_exact_and_truncated_once(mib: int, share: Any, tp: int) -> None:
    fleet = FLEET.replace("1471356", str(mib))
    text = config(agentic=[f"tp: {tp}, {dram('b')}, conc-list: [1]"], utilization=str(share))
    (row,) = rows(text, flags=["--no-evals"], fleet=fleet)
    exact = Fraction(min(mib, CAP)) * 2**20 * Fraction(str(share)) * tp / 8 / 10**9
    assert row["total-cpu-dram-gb"] == int(exact)


def refusal(text: str, *flags: str, fleet: str = FLEET) -> Finding:
    (finding,) = errors(expanded(text, flags=flags, fleet=fleet))
    assert finding.span is not None
    assert finding.span.line > 0
    assert finding.fix
    return finding


def offloading(entry: str, runner: str = "cluster:mi355x-a", **flags: Any) -> str:
    return config(agentic=[f"{entry}, {dram('b')}, conc-list: [1]"], utilization="0.5", runner=runner, **flags)


@pytest.mark.parametrize(
    ("text", "rule", "told"),
    [
        (offloading("tp: 8, pp: 2"), "topology-fit", "tp 8 x pp 2 x pcp-size 1 = 16 GPUs, and a node"),
        (offloading("tp: 16"), "topology-fit", "16 GPUs, and a node of cluster:mi355x-a has 8"),
        (offloading(roles("tp: 3"), disagg=True), "topology-fit", "does not divide the 8 GPUs"),
        (offloading(roles("tp: 12"), disagg=True), "topology-fit", "does not fill them (8 each)"),
        (
            offloading(f"worker: {sized('tp: 3')}, num-nodes: 1", multinode=True),
            "topology-fit",
            "a worker takes tp 3",
        ),
        (offloading("tp: 8", "cluster:bare"), "hardware-missing", "has no available-cpu-dram-mib in "),
        (offloading("tp: 8", "cluster:zz"), "hardware-missing", "has no hardware record in "),
    ],
)
def test_a_budget_that_cannot_be(text: str, rule: str, told: str) -> None:
    finding = refusal(text)
    assert (finding.rule, told in finding.message) == (rule, True), finding


def test_a_missing_fact_is_not_answered_with_the_name_that_is_there() -> None:
    assert "did you mean" not in refusal(offloading("tp: 8", "cluster:bare")).fix
    assert "did you mean cluster:mi355x-a" in refusal(offloading("tp: 8", "cluster:mi355x-aa")).fix


def test_a_budget_is_computed_before_a_filter_is_asked() -> None:
    assert refusal(offloading("tp: 16"), "--min-conc", "100").rule == "topology-fit"


# -- nodes -------------------------------------------------------------------------------------------------------------


def nodes(entry: str, *, recipes: dict[str, str] | None = None, **flags: Any) -> int:
    (row,) = rows(config(fixed=[f"{entry}, conc-list: [1]"], **({"disagg": True} | flags)), recipes=recipes)
    count: int = row["node-count"]
    return count


@pytest.mark.parametrize(
    ("entry", "runner", "count"),
    [
        (roles(), "cluster:mi355x-a", 2),
        (roles(), "cluster:gb-n", 4),
        (roles(), "mi355x", 2),
        (roles(), "gb-disagg", 4),
        (roles("tp: 4"), "cluster:mi355x-a", 2),
        (roles("tp: 4", "tp: 4", counts=(2, 1)), "cluster:mi355x-a", 2),
        (roles("tp: 4", "tp: 4", counts=(3, 0)), "cluster:mi355x-a", 2),
        (roles("pp: 2", "pcp-size: 3", counts=(1, 2)), "cluster:mi355x-a", 8),
        (roles("additional-settings: [PREFILL_NODES=5]"), "cluster:mi355x-a", 6),
        (roles("additional-settings: [PREFILL_NODES=5, PREFILL_NODES=5, X=1]"), "cluster:mi355x-a", 6),
        (roles("", "additional-settings: [DECODE_NODES=3, PREFILL_NODES=9]"), "cluster:mi355x-a", 4),
        (roles("hardware: mi355x-a", "hardware: gb-n"), "cluster:zz", 3),
        (roles("hardware: 'cluster:mixed-4'", "hardware: 'cluster:mixed-8'"), "mixed", 3),
    ],
)
def test_nodes_of_a_topology(entry: str, runner: str, count: int) -> None:
    assert nodes(entry, runner=runner) == count


@pytest.mark.parametrize(
    ("entry", "count"),
    [
        (f"worker: {WORKER}, num-nodes: 5", 5),
        (f"worker: {sized('additional-settings: [PREFILL_NODES=9]', 3)}, num-nodes: 1", 1),
        (roles(counts=(3, 0)), 3),
    ],
)
def test_nodes_of_an_aggregated_entry(entry: str, count: int) -> None:
    assert nodes(entry, disagg=False, multinode=True) == count


def test_num_nodes_decides_whatever_the_recipe_says() -> None:
    entry = f"worker: {sized(recipe('r.yaml'))}, num-nodes: 5"
    assert nodes(entry, disagg=False, multinode=True, recipes={"r.yaml": "schema: 2\nroles: {agg: {nodes: 2}}"}) == 5


@pytest.mark.parametrize(
    ("entry", "runner", "rule", "told"),
    [
        (roles(f"{SETTINGS}[PREFILL_NODES=3, PREFILL_NODES=4]"), "mi355x", "node-count", "PREFILL_NODES=4"),
        (roles(f"{SETTINGS}[PREFILL_NODES=0]"), "mi355x", "node-count", "PREFILL_NODES=0"),
        (roles(f"{SETTINGS}[PREFILL_NODES=two]"), "mi355x", "node-count", "PREFILL_NODES=two"),
        (roles(), "mixed", "hardware-missing", "have 4 or 8 GPUs a node"),
        (roles(), "zz", "hardware-missing", "how many GPUs a node of zz has"),
    ],
)
def test_nodes_that_nothing_tells(entry: str, runner: str, rule: str, told: str) -> None:
    finding = refusal(config(fixed=[f"{entry}, conc-list: [1]"], runner=runner, disagg=True))
    assert (finding.rule, told in finding.message) == (rule, True), finding


def test_a_runners_file_of_the_older_shape_leaves_the_count_open() -> None:
    """It holds the facts that somebody needed, so a missing one is no fault of it."""
    text = config(
        fixed=[f"{roles()}, conc-list: [1]", f"{roles('tp: 4')}, conc-list: [1]"], runner="mi355x-disagg", disagg=True
    )
    expansion = expanded(text, fleet=OLD_FLEET)
    assert ["node-count" in point.row() for point in listed(expansion)] == [False, False]
    (warning,) = warnings(expansion)
    assert (warning.rule, "a node of mi355x-disagg" in warning.message) == ("hardware-missing", True)
    known = config(fixed=[f"{roles()}, conc-list: [1]"], runner="cluster:a-x", disagg=True)
    assert [row["node-count"] for row in rows(known, fleet=OLD_FLEET)] == [2]


ROLES = "schema: 2\nroles: {prefill: {nodes: 3}, decode: {nodes: 4}}\n"
COLOCATED = "schema: 2\nroles: {prefill: {nodes: 2}, decode: {nodes: colocate}}\n"
TWO = "schema: 2\nroles: {prefill: {nodes: 1}, decode: {nodes: 1}}\n"
SERVICES = f"""{TWO}
services: [{{name: pool, nodes: 3}}, {{name: idle, nodes: 9, enabled: false}}]
infra: {{etcd_nats_dedicated_node: true}}
frontend: {{placement: {{node: dedicated}}}}
"""
DEDICATED = f"""{TWO}
infra: {{etcd_nats_dedicated_node: true}}
frontend: {{dedicated_node: true}}
benchmark: {{client_dedicated_node: true, colocate_with_frontend: false}}
"""
SCHEMA_1 = """\
backend: {type: sglang}
resources: {prefill_nodes: 2, prefill_workers: 2, decode_nodes: 1, decode_workers: 1, gpus_per_node: 8}
"""
BUNDLE = """\
schema: 2
base: {name: b, roles: {prefill: {nodes: 1}, decode: {nodes: 4}}}
override_wide: {roles: {prefill: {nodes: 4}}}
override_drop: {roles: {prefill: null}}
zip_override_z: {roles: {prefill: {nodes: [2, 6]}}}
"""


@pytest.mark.parametrize(
    ("text", "selector", "count"),
    [
        pytest.param(ROLES, "", 7, id="roles"),
        pytest.param(COLOCATED, "", 2, id="colocated"),
        pytest.param(BUNDLE, ":base", 5, id="base"),
        pytest.param(BUNDLE, ":override_wide", 8, id="override"),
        pytest.param(BUNDLE, ":override_drop", 4, id="dropped role"),
        pytest.param(BUNDLE, ":zip_override_z[0]", 6, id="first of a zip"),
        pytest.param(BUNDLE, ":zip_override_z[1]", 10, id="second of a zip"),
        pytest.param(SERVICES, "", 6, id="services"),
        pytest.param(DEDICATED, "", 5, id="dedicated"),
        pytest.param(SCHEMA_1, "", 3, id="schema 1"),
    ],
)
def test_nodes_of_a_recipe(text: str, selector: str, count: int) -> None:
    assert nodes(roles(recipe(f"r.yaml{selector}")), recipes={"r.yaml": text}) == count


@pytest.mark.parametrize(
    ("reference", "recipes", "told"),
    [
        ("none.yaml", {"r.yaml": ROLES}, "recipe-missing"),
        ("r.yaml", {"r.yaml": BUNDLE}, "recipe-selector"),
        ("r.yaml:override_none", {"r.yaml": BUNDLE}, "recipe-selector"),
        ("r.yaml:zip_override_z", {"r.yaml": BUNDLE}, "recipe-selector"),
        ("r.yaml:override_x", {"r.yaml": ROLES}, "recipe-selector"),
        ("r.yaml", None, "recipe-root"),
    ],
)
def test_without_its_recipe_the_topology_counts(reference: str, recipes: dict[str, str] | None, told: str) -> None:
    text = config(fixed=[f"{roles(recipe(reference))}, conc-list: [1]"], disagg=True)
    expansion = expanded(text, recipes=recipes)
    (point,) = listed(expansion)
    assert point.row()["node-count"] == 2
    (warning,) = warnings(expansion)
    assert warning.rule == told
    place = (warning.span.line, warning.span.column) if warning.span else None
    lines = text.splitlines()
    assert place is None if recipes is None else place == (4, lines[3].index("'CONFIG_FILE") + 1)


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        ("roles: {prefill: {nodes: 1}}", "recipe-schema", 1),
        ("schema: 2", "recipe-roles", 0),
        ("schema: 2\nroles: {prefill: {}}", "recipe-nodes", 2),
        ("schema: 2\nroles: {agg: {nodes: 1}}\nroles: {agg: {nodes: 1}}", "recipe-yaml", 3),
        ("- a", "recipe-yaml", 0),
        ("", "recipe-yaml", 1),
        (f"{TWO}services: [{{type: etcd, placement: {{node: dedicated}}}}, {{type: nats}}]", "recipe-placement", 3),
    ],
)
def test_a_broken_recipe_is_refused_in_its_own_file(text: str, rule: str, line: int) -> None:
    both = [
        f"{roles(recipe('r.yaml'))}, conc-list: [1]",
        f"{roles(recipe('r.yaml'))}, spec-decoding: mtp, conc-list: [1]",
    ]
    (finding,) = errors(expanded(config(fixed=both, disagg=True), recipes={"r.yaml": text}))
    assert finding.rule == rule
    assert finding.span is not None
    assert (finding.span.file.endswith("recipes/r.yaml"), finding.span.line) == (True, line)
    assert finding.related[0].note == "named by k"


def test_roles_name_one_recipe() -> None:
    text = config(fixed=[f"{roles(recipe('a.yaml'), recipe('b.yaml'))}, conc-list: [1]"], disagg=True)
    assert rules(expanded(text, recipes={})) == ["recipe-conflict"]
    same = config(fixed=[f"{roles(recipe('a.yaml'), recipe('a.yaml'))}, conc-list: [1]"], disagg=True)
    assert rules(expanded(same, recipes={"a.yaml": TWO})) == []


# -- GPUs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "flags", "gpus"),
    [
        ("tp: 4, pp: 2", {}, 8),
        ("tp: 2, pcp-size: 2", {}, 4),
        (roles("tp: 4", "tp: 4"), {"disagg": True}, 16),
        (f"worker: {sized('tp: 4', 2)}, num-nodes: 1", {"multinode": True}, 8),
    ],
)
def test_gpus_held(entry: str, flags: dict[str, Any], gpus: int) -> None:
    """Whole nodes where several are held: nobody else gets what is left of them."""
    (point,) = listed(expanded(config(fixed=[f"{entry}, conc-list: [1]"], **flags)))
    assert point.deployment.gpus == gpus
