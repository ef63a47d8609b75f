"""Ids and names: unique, readable, inert in shells and file names, accepted everywhere."""

from __future__ import annotations

import re

import pytest

from tests.points.support import WORKER, config, dram, expanded, ids, listed, recipe, roles, rows, sized, tails

ALPHABET = re.compile(r"[A-Za-z0-9._-]+")

RECIPE = """\
base: {name: b, schema: 2, roles: {prefill: {nodes: 1}, decode: {nodes: 1}}}
override_x: {name: x}
zip_override_z: {name: [one, two]}
"""


@pytest.mark.parametrize(
    ("entry", "tail"),
    [
        ("tp: 8, conc-list: [4]", "tp8--c4"),
        ("tp: 4, ep: 4, conc-list: [4]", "tp4ep4--c4"),
        ("tp: 4, ep: 1, pp: 1, dcp-size: 1, pcp-size: 1, dp-attn: false, conc-list: [4]", "tp4--c4"),
        ("tp: 8, dp-attn: true, conc-list: [4]", "tp8dpa--c4"),
        ("tp: 8, dp-attn: true, attn-dp-size: 4, conc-list: [4]", "tp8dpaadp4--c4"),
        ("tp: 8, attn-dp-size: 1, conc-list: [4]", "tp8--c4"),
        ("tp: 8, pp: 2, conc-list: [4]", "tp8pp2--c4"),
        ("tp: 8, dcp-size: 4, conc-list: [4]", "tp8dcp4--c4"),
        ("tp: 8, pcp-size: 2, conc-list: [4]", "tp8pcp2--c4"),
        (
            "pcp-size: 2, dcp-size: 4, pp: 3, attn-dp-size: 2, dp-attn: true, ep: 8, tp: 8, conc-list: [4]",
            "tp8ep8dpapp3dcp4pcp2adp2--c4",
        ),
        ("tp: 8, spec-decoding: mtp, conc-list: [4]", "tp8-mtp--c4"),
        ("tp: 8, spec-decoding: draft_model, conc-list: [4]", "tp8-draft--c4"),
        ("tp: 8, spec-decoding: mtp, srt-recipe: a.yaml, conc-list: [4]", "tp8-mtp--c4"),
        ("tp: 8, spec-decoding: mtp, srt-recipe: 'a.yaml:override_x', conc-list: [4]", "tp8--c4--override_x"),
    ],
)
def test_single_node_topology(entry: str, tail: str) -> None:
    assert tails(config(fixed=[entry]), recipes={"a.yaml": RECIPE}) == [tail]


@pytest.mark.parametrize(
    ("entry", "tail"),
    [
        (f"worker: {WORKER}, num-nodes: 1, conc-list: [4]", "1w-tp8--c4"),
        (f"worker: {sized('ep: 8, dp-attn: true', 3)}, num-nodes: 3, conc-list: [4, 8]", "3w-tp8ep8dpa--c4-8"),
        (f"{roles(counts=(2, 0))}, conc-list: [4]", "2w-tp8--c4"),
        (f"worker: {WORKER}, num-nodes: 1, spec-decoding: mtp, conc-list: [4]", "1w-tp8-mtp--c4"),
    ],
)
def test_aggregated_topology(entry: str, tail: str) -> None:
    assert tails(config(fixed=[entry], multinode=True)) == [tail]


@pytest.mark.parametrize(
    ("entry", "tail"),
    [
        (f"{roles()}, conc-list: [4]", "1p-tp8-1d-tp8--c4"),
        (
            f"{roles('tp: 4, ep: 4', 'dp-attn: true, pp: 2', counts=(2, 3))}, conc-list: [16, 4, 8]",
            "2p-tp4ep4-3d-tp8dpapp2--c16-4-8",
        ),
        (f"{roles()}, spec-decoding: mtp, conc-list: [4]", "1p-tp8-1d-tp8-mtp--c4"),
        (f"{roles(recipe('a.yaml'))}, conc-list: [4]", "1p-tp8-1d-tp8--c4"),
        (
            f"{roles('', recipe('a.yaml:override_x'))}, spec-decoding: mtp, conc-list: [4]",
            "1p-tp8-1d-tp8--c4--override_x",
        ),
        (f"{roles(recipe('a.yaml:zip_override_z[1]'))}, conc-list: [4]", "1p-tp8-1d-tp8--c4--zip_override_z.1"),
        (f"{roles(recipe('a.yaml:base'))}, conc-list: [4]", "1p-tp8-1d-tp8--c4--base"),
    ],
)
def test_disaggregated_topology(entry: str, tail: str) -> None:
    assert tails(config(fixed=[entry], disagg=True), recipes={"a.yaml": RECIPE}) == [tail]


@pytest.mark.parametrize(
    ("entry", "tail"),
    [
        ("tp: 8, kv-offloading: none, conc-list: [1]", "tp8--c1"),
        (f"tp: 8, {dram('lmcache')}, conc-list: [1]", "tp8-kvdram-lmcache--c1"),
        (f"tp: 8, spec-decoding: mtp, {dram('a b/c')}, conc-list: [1]", "tp8-mtp-kvdram-a_b_c--c1"),
    ],
)
def test_offload_is_told_where_no_selector_is(entry: str, tail: str) -> None:
    assert tails(config(agentic=[entry], utilization="0.5")) == [tail]


@pytest.mark.parametrize(
    ("block", "scenario"),
    [("isl: 8192, osl: 1024", "8k1k"), ("isl: 1024, osl: 1024", "1k1k"), ("isl: 3000, osl: 500", "3000-500"),
     ("isl: 1024, osl: 8192", "1024-8192")],
)  # fmt: skip
def test_scenario(block: str, scenario: str) -> None:
    assert ids(config(fixed=["tp: 8, conc-list: [1]"], block=block)) == [f"k--{scenario}--tp8--c1"]
    assert ids(config(agentic=["tp: 8, kv-offloading: none, conc-list: [1]"])) == ["k--agentic--tp8--c1"]


def test_an_accuracy_run_says_so_and_by_what() -> None:
    vendor = config(agentic=["tp: 8, kv-offloading: none, conc-list: [8]"], prefix="kimik3")
    assert tails(vendor) == ["tp8--c8", "tp8--c8--eval"]
    assert tails(vendor, flags=["--evals-only"]) == ["tp8--c8--eval-kimi-vendor", "tp8--c8--eval"]
    plain = config(fixed=["tp: 8, conc-list: [16]"])
    assert tails(plain) == ["tp8--c16"]
    assert tails(plain, flags=["--evals-only"]) == ["tp8--c16--eval"]


def test_a_node_stands_last() -> None:
    text = config(fixed=["tp: 8, conc-list: [16]"])
    assert tails(text, flags=["--runner-node-filter", "_0", "--evals-only"]) == [
        "tp8--c16--eval--on-mi355x-a_00",
        "tp8--c16--eval--on-mi355x-a_01",
    ]


def test_a_selector_cannot_break_an_id() -> None:
    entry = "tp: 8, srt-recipe: 'a.yaml:override x;$(y)', conc-list: [4]"
    (name,) = ids(config(fixed=[entry]))
    assert name == "k--8k1k--tp8--c4--override_x_y_"
    assert ALPHABET.fullmatch(name)


def test_an_id_does_not_depend_on_other_points() -> None:
    one, other = ("tp: 8, conc-list: [4]", "tp: 4, conc-list: [4, 8]")
    alone = ids(config(fixed=[one]))
    assert alone[0] in ids(config(fixed=[other, one]), config(key="other", fixed=[one]))


def test_members_that_a_filter_removes_leave_the_id() -> None:
    text = config(fixed=[f"{roles()}, conc-list: [4, 8, 16, 32]"], disagg=True)
    assert tails(text, flags=["--min-conc", "8", "--max-conc", "16"]) == ["1p-tp8-1d-tp8--c8-16"]
    assert tails(text, flags=["--conc", "32"]) == ["1p-tp8-1d-tp8--c32"]
    assert tails(text, flags=["--trim-conc"]) == ["1p-tp8-1d-tp8--c4"]


def test_names_are_for_people() -> None:
    (point,) = listed(expanded(config(fixed=[f"{roles()}, conc-list: [16, 32]"], disagg=True)))
    assert point.name == "m fp8 cluster:mi355x-a sglang 8k1k 1p-tp8-1d-tp8 c16-32"
    (accuracy,) = listed(expanded(config(fixed=["tp: 8, conc-list: [16]"]), flags=["--evals-only"]))
    assert accuracy.name == "m fp8 cluster:mi355x-a sglang 8k1k tp8 c16 eval"


def test_a_row_carries_what_the_point_says() -> None:
    text = config(fixed=["tp: 8, conc-list: [16]"], agentic=["tp: 8, kv-offloading: none, conc-list: [2]"])
    points = listed(expanded(text))
    for point, row in zip(points, rows(text), strict=True):
        assert (row["id"], row["name"], row["digest"]) == (point.id, point.name, point.digest)
        assert row == point.row()
