"""Rows: InferenceX's fields in its order and with its defaults, and ours behind them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.points.support import WORKER, config, dram, roles, rows, sized

OURS = ["id", "name", "config-key", "recipe-fingerprint", "digest"]


def only(text: str) -> dict[str, Any]:
    (row,) = rows(text, flags=["--no-evals"])
    return row


def test_single_node_fixed_length() -> None:
    row = only(config(fixed=["tp: 8, conc-list: [4]"], runner="mi355x"))
    wanted = {
        "image": "i:1", "model": "org/M", "model-prefix": "m", "precision": "fp8", "framework": "sglang",
        "runner": "mi355x", "isl": 8192, "osl": 1024, "tp": 8, "pp": 1, "dcp-size": 1, "pcp-size": 1, "conc": 4,
        "max-model-len": 9472, "ep": 1, "dp-attn": False, "spec-decoding": "none", "exp-name": "m_8k1k",
        "disagg": False, "run-eval": False,
    }  # fmt: skip
    assert list(row) == [*wanted, *OURS]
    assert {key: row[key] for key in wanted} == wanted


def test_multi_node_fixed_length() -> None:
    row = only(config(fixed=[f"{roles('ep: 8', counts=(2, 1))}, conc-list: [4, 64]"], disagg=True))
    wanted = {
        "image": "i:1", "model": "org/M", "model-prefix": "m", "precision": "fp8", "framework": "sglang",
        "runner": "cluster:mi355x-a", "isl": 8192, "osl": 1024, "spec-decoding": "none",
        "prefill": {"num-worker": 2, "tp": 8, "ep": 8, "dp-attn": False, "pp": 1, "dcp-size": 1, "pcp-size": 1},
        "decode": {"num-worker": 1, "tp": 8, "ep": 1, "dp-attn": False, "pp": 1, "dcp-size": 1, "pcp-size": 1},
        "conc": [4, 64], "max-model-len": 9472, "exp-name": "m_8k1k", "disagg": True, "run-eval": False,
        "kv-p2p-transfer": "nixl", "node-count": 3,
    }  # fmt: skip
    assert list(row) == [*wanted, *OURS]
    assert {key: row[key] for key in wanted} == wanted
    assert list(row["prefill"]) == list(wanted["prefill"])  # type: ignore[call-overload]


def test_single_node_agentic() -> None:
    row = only(config(agentic=[f"tp: 4, ep: 2, {dram('lmcache')}, conc-list: [2]"], utilization="0.5"))
    wanted = {
        "image": "i:1", "model": "org/M", "model-prefix": "m", "precision": "fp8", "framework": "sglang",
        "runner": "cluster:mi355x-a", "tp": 4, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 2, "dp-attn": False,
        "spec-decoding": "none", "conc": 2, "kv-offloading": "dram", "total-cpu-dram-gb": 385, "duration": 3600,
        "exp-name": "m_tp4_conc2_kvdram-lmcache", "scenario-type": "agentic-coding",
        "kv-offload-backend": {"name": "lmcache"},
    }  # fmt: skip
    assert list(row) == [*wanted, *OURS]
    assert {key: row[key] for key in wanted} == wanted


def test_multi_node_agentic() -> None:
    row = only(config(agentic=[f"{roles()}, conc-list: [2]"], disagg=True))
    wanted = {
        "image": "i:1", "model": "org/M", "model-prefix": "m", "precision": "fp8", "framework": "sglang",
        "runner": "cluster:mi355x-a", "spec-decoding": "none",
        "prefill": {"num-worker": 1, "tp": 8, "ep": 1, "dp-attn": False, "pp": 1, "dcp-size": 1, "pcp-size": 1},
        "decode": {"num-worker": 1, "tp": 8, "ep": 1, "dp-attn": False, "pp": 1, "dcp-size": 1, "pcp-size": 1},
        "conc": [2], "kv-offloading": "none", "total-cpu-dram-gb": 0, "duration": 3600,
        "exp-name": "m_p1x8_d1x8_conc2", "disagg": True, "scenario-type": "agentic-coding",
        "kv-p2p-transfer": "nixl", "node-count": 2,
    }  # fmt: skip
    assert list(row) == [*wanted, *OURS]
    assert {key: row[key] for key in wanted} == wanted


def test_optional_fields_stand_where_inferencex_has_them() -> None:
    entry = "tp: 8, dp-attn: true, attn-dp-size: 4, srt-recipe: a.yaml, router: {name: r, version: '1'}, conc-list: [1]"
    row = only(config(fixed=[entry], block="isl: 8192, osl: 1024, require-power: true"))
    assert list(row)[8:] == [
        "require-power", "tp", "pp", "dcp-size", "pcp-size", "attn-dp-size", "conc", "max-model-len", "ep", "dp-attn",
        "spec-decoding", "srt-recipe", "exp-name", "disagg", "run-eval", "router", "id", "name", "config-key", "recipe",
        "recipe-fingerprint", "digest",
    ]  # fmt: skip
    assert (row["require-power"], row["attn-dp-size"], row["srt-recipe"], row["recipe"]) == (
        True,
        4,
        "a.yaml",
        "a.yaml",
    )
    assert row["router"] == {"name": "r", "version": "1"}


def test_router_and_transfer_come_from_the_entry_or_the_config() -> None:
    text = config(fixed=[f"{roles()}, conc-list: [1]"], disagg=True)
    whole = text.replace("kv-p2p-transfer: nixl", "kv-p2p-transfer: nixl, router: {name: r, version: '1'}")
    assert only(whole)["router"] == {"name": "r", "version": "1"}
    entry = text.replace(", kv-p2p-transfer: nixl", "").replace("conc-list", "kv-p2p-transfer: own, conc-list")
    assert only(entry)["kv-p2p-transfer"] == "own"


@pytest.mark.parametrize(
    ("entry", "prefill", "decode", "nodes"),
    [
        (f"worker: {WORKER}, num-nodes: 2", {"num-worker": 1}, {"num-worker": 0}, 2),
        (
            f"worker: {sized('ep: 8, dp-attn: true, additional-settings: [A=1]', 3)}, num-nodes: 3",
            {"num-worker": 3, "ep": 8, "dp-attn": True, "additional-settings": ["A=1"]},
            {"num-worker": 0, "ep": 8, "dp-attn": True},
            3,
        ),
        (f"{roles(counts=(2, 0))}", {"num-worker": 2}, {"num-worker": 0}, 2),
        (f"{roles('additional-settings: [PREFILL_NODES=5]', counts=(2, 0))}",
         {"num-worker": 2, "additional-settings": ["PREFILL_NODES=5"]}, {"num-worker": 0}, 5),
    ],
)  # fmt: skip
def test_aggregated_in_both_shapes(entry: str, prefill: Any, decode: Any, nodes: int) -> None:
    row = only(config(fixed=[f"{entry}, conc-list: [1]"], multinode=True))
    sizes = {"tp": 8, "ep": 1, "dp-attn": False, "pp": 1, "dcp-size": 1, "pcp-size": 1}
    assert (row["prefill"], row["decode"]) == (sizes | prefill, sizes | decode)
    assert (row["disagg"], row["node-count"]) == (False, nodes)
    assert next(iter(row["prefill"])) == "num-worker"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (config(fixed=["tp: 8, conc-list: [1]"]), "m_8k1k"),
        (config(fixed=["tp: 8, conc-list: [1]"], block="isl: 1024, osl: 1024"), "m_1k1k"),
        (config(fixed=["tp: 8, conc-list: [1]"], block="isl: 3000, osl: 500"), "m_3000_500"),
        (config(fixed=["tp: 8, dp-attn: true, attn-dp-size: 4, conc-list: [1]"]), "m_8k1k_adp4"),
        (config(fixed=["tp: 8, attn-dp-size: 1, conc-list: [1]"]), "m_8k1k_adp1"),
        (
            config(fixed=[f"{roles('dp-attn: true, attn-dp-size: 2')}, conc-list: [1]"], disagg=True),
            "m_8k1k_prefilladp2",
        ),
        (
            config(fixed=[f"{roles('', 'dp-attn: true, attn-dp-size: 8')}, conc-list: [1]"], disagg=True),
            "m_8k1k_decodeadp8",
        ),
        (
            config(agentic=["tp: 8, spec-decoding: mtp, kv-offloading: none, conc-list: [2]"]),
            "m_tp8_conc2_kvnone_spec-mtp",
        ),
        (config(agentic=[f"tp: 4, {dram('b')}, conc-list: [1]"], utilization="1"), "m_tp4_conc1_kvdram-b"),
        (
            config(agentic=["tp: 8, dp-attn: true, attn-dp-size: 8, pp: 2, kv-offloading: none, conc-list: [2]"]),
            "m_tp8_conc2_kvnone_adp8",
        ),
        (
            config(agentic=[f"{roles('ep: 8, dp-attn: true')}, spec-decoding: mtp, conc-list: [4]"], disagg=True),
            "m_p1x8ep8dpa_d1x8_conc4",
        ),
        (
            config(agentic=[f"{roles()}, {dram('mooncake')}, conc-list: [4]"], disagg=True, utilization="0.5"),
            "m_p1x8_d1x8_conc4_kvdram-mooncake",
        ),
        (
            config(
                agentic=[f"worker: {sized('dp-attn: true, attn-dp-size: 8', 2)}, num-nodes: 2, conc-list: [4]"],
                multinode=True,
            ),
            "m_p2x8dpaadp8_d0x8dpaadp8_conc4",
        ),
    ],
)  # fmt: skip
def test_exp_name(text: str, name: str) -> None:
    assert only(text)["exp-name"] == name


@pytest.mark.parametrize(("isl", "osl", "context"), [(8192, 1024, 9472), (1024, 1024, 2304), (1, 1, 258)])
def test_max_model_len(isl: int, osl: int, context: int) -> None:
    assert only(config(fixed=["tp: 8, conc-list: [1]"], block=f"isl: {isl}, osl: {osl}"))["max-model-len"] == context


def test_order_is_file_then_fixed_then_agentic_then_entry_then_concurrency() -> None:
    text = config(
        key="b",
        fixed=["tp: 8, conc-list: [4, 1]", "tp: 4, conc-start: 2, conc-end: 9"],
        agentic=["tp: 2, kv-offloading: none, conc-list: [3]"],
    )
    found = [
        (row["config-key"], row["tp"], row["conc"])
        for row in rows(text, config(fixed=["tp: 8, conc-list: [1]"], key="a"))
    ]
    assert found == [
        ("b", 8, 4), ("b", 8, 1), ("b", 4, 2), ("b", 4, 4), ("b", 4, 8), ("b", 4, 9), ("b", 2, 3), ("a", 8, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("bounds", "step", "ladder"),
    [
        ((4, 64), 2, [4, 8, 16, 32, 64]),
        ((4, 100), 2, [4, 8, 16, 32, 64, 100]),
        ((4, 100), 4, [4, 16, 64, 100]),
        ((7, 7), 2, [7]),
        ((1, 2), 100, [1, 2]),
    ],
)
def test_range(bounds: tuple[int, int], step: int, ladder: list[int]) -> None:
    single = config(fixed=[f"tp: 8, conc-start: {bounds[0]}, conc-end: {bounds[1]}"])
    flags = ["--step-size", str(step)]
    assert [row["conc"] for row in rows(single, flags=flags)] == ladder
    multi = config(fixed=[f"{roles()}, conc-start: {bounds[0]}, conc-end: {bounds[1]}"], disagg=True)
    assert [row["conc"] for row in rows(multi, flags=flags)] == [ladder]


def test_nodes_of_a_label_each_get_their_points() -> None:
    text = config(fixed=["tp: 8, conc-list: [1, 2]"], runner="mi355x")
    found = [(row["conc"], row["runner"]) for row in rows(text, flags=["--runner-node-filter", "_00"])]
    assert found == [(1, "mi355x-a_00"), (1, "mi355x-b_00"), (2, "mi355x-a_00"), (2, "mi355x-b_00")]
    multi = config(fixed=[f"{roles()}, conc-list: [1, 2]"], disagg=True, runner="mi355x")
    counted = [
        (row["conc"], row["runner"], row["node-count"]) for row in rows(multi, flags=["--runner-node-filter", "_00"])
    ]
    assert counted == [([1, 2], "mi355x-a_00", 2), ([1, 2], "mi355x-b_00", 2)]


def test_hardware_of_roles_counts_nodes_of_other_gpus() -> None:
    text = config(fixed=[f"{roles('hardware: gb-n', 'hardware: mi355x-a')}, conc-list: [1]"], disagg=True)
    row = only(text)
    assert (row["prefill"]["hardware"], row["node-count"]) == ("gb-n", 3)
