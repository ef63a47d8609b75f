"""What the constructors make of a right file: every value in its place, every default filled in."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.config.accept import configs_of
from matrix.config.model import (
    Aggregated,
    Config,
    Disaggregated,
    Entry,
    ScenarioKind,
    SingleNode,
    is_config_key,
    progression,
)
from tests.config.support import CONC, DISAGG, MULTI, ROLES, WORKER, agentic, config, document, fixed

BIG: Final = "tp: 8, ep: 4, dp-attn: true, pp: 2, dcp-size: 4, pcp-size: 3, attn-dp-size: 8"


def only_config(text: str) -> Config:
    (found,) = configs_of(document(text))
    return found


def only_entry(text: str) -> Entry:
    (scenario,) = only_config(text).scenarios
    (entry,) = scenario.entries
    return entry


def test_a_config() -> None:
    text = config(
        "agentic-coding: [{search-space: []}], fixed-seq-len: [{isl: 8192, osl: 1024, require-power: true,"
        " search-space: []}, {isl: 1, osl: 2, search-space: []}]",
        DISAGG + ", router: {name: r, version: '1.10'}",
        key="the-key",
    )
    found = only_config(text)
    assert (found.key, found.image, found.model, found.model_prefix) == ("the-key", "i:1", "org/M", "m")
    assert (found.precision, found.framework, found.runner) == ("fp8", "sglang", "cluster:x-a")
    assert (found.multinode, found.disagg) == (True, True)
    assert found.router == {"name": "r", "version": "1.10"}
    assert found.kv_p2p_transfer == "nixl"
    assert (found.mark.line, found.mark.column) == (0, 0)
    fixed_first = [(s.kind, s.isl, s.osl, s.require_power) for s in found.scenarios]
    assert fixed_first == [
        (ScenarioKind.FIXED, 8192, 1024, True),
        (ScenarioKind.FIXED, 1, 2, False),
        (ScenarioKind.AGENTIC, 0, 0, False),
    ]
    assert found.node is found.document.root["the-key"]


def test_a_single_node_entry() -> None:
    entry = only_entry(fixed(f"{BIG}, spec-decoding: mtp, srt-recipe: r.yaml, {CONC}"))
    assert isinstance(entry.topology, SingleNode)
    worker = entry.topology.worker
    assert worker.sizes == (8, 4, True, 2, 4, 3, 8)
    assert (worker.replicas, worker.hardware, worker.settings) == (1, None, ())
    assert worker.gpus == 8 * 2 * 3
    assert (entry.spec_decoding, entry.srt_recipe, entry.offload.mode) == ("mtp", "r.yaml", "none")


def test_defaults_of_a_single_node_entry() -> None:
    entry = only_entry(fixed(f"tp: 4, {CONC}"))
    assert isinstance(entry.topology, SingleNode)
    worker = entry.topology.worker
    assert worker.sizes == (4, 1, False, 1, 1, 1, None)
    assert (worker.replicas, worker.hardware, worker.settings) == (1, None, ())
    assert (entry.spec_decoding, entry.srt_recipe, entry.router, entry.kv_p2p_transfer) == ("none", None, None, None)


def test_a_worker_entry_has_an_idle_decode_side() -> None:
    text = WORKER.replace("tp: 8", "num-worker: 2, tp: 8, additional-settings: [A=1], hardware: h")
    entry = only_entry(fixed(f"{text}, {CONC}", flags=MULTI))
    assert isinstance(entry.topology, Aggregated)
    worker, decode = entry.topology.workers
    assert (worker.replicas, worker.settings, worker.hardware) == (2, ("A=1",), "h")
    assert (decode.replicas, decode.settings, decode.hardware, decode.tp) == (0, (), "h", 8)
    assert entry.topology.num_nodes == 1


def test_the_older_shape_of_a_worker_entry() -> None:
    text = ROLES.replace("decode: {num-worker: 1", "decode: {additional-settings: ~, num-worker: 0")
    entry = only_entry(fixed(f"{text}, {CONC}", flags=MULTI))
    assert isinstance(entry.topology, Aggregated)
    assert (entry.topology.worker.replicas, entry.topology.decode.replicas, entry.topology.num_nodes) == (1, 0, None)
    assert entry.topology.decode.settings == ()


def test_a_disaggregated_entry() -> None:
    entry = only_entry(fixed(f"{ROLES.replace('1, tp: 8', '3, tp: 4', 1)}, {CONC}", flags=DISAGG))
    assert isinstance(entry.topology, Disaggregated)
    assert [(w.replicas, w.tp) for w in entry.topology.workers] == [(3, 4), (1, 8)]


def test_host_memory_keeps_its_digits() -> None:
    text = agentic(
        f"tp: 8, kv-offloading: dram, kv-offload-backend: {{name: b}}, {CONC}", block="dram-utilization: 0.80, "
    )
    (scenario,) = only_config(text).scenarios
    assert scenario.dram_utilization == "0.80"
    offload = scenario.entries[0].offload
    assert (offload.mode, offload.backend) == ("dram", {"name": "b"})


LADDERS: Final = {
    "conc-list: [64, 4, 4]": (64, 4, 4),
    "conc-start: 4, conc-end: 64": [4, 8, 16, 32, 64],
    "conc-start: 4, conc-end: 100": [4, 8, 16, 32, 64, 100],
    "conc-start: 7, conc-end: 7": [7],
}


@pytest.mark.parametrize("text", LADDERS)
def test_concurrencies(text: str) -> None:
    assert only_entry(fixed(f"tp: 8, {text}")).ladder(2) == LADDERS[text]


def test_a_wider_step() -> None:
    assert only_entry(fixed("tp: 8, conc-start: 4, conc-end: 100")).ladder(4) == [4, 16, 64, 100]


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(2, 50))
def test_a_ladder_climbs_from_start_to_end(one: int, other: int, step: int) -> None:
    start, end = sorted((one, other))
    ladder = progression(start, end, step)
    assert ladder == sorted(set(ladder))
    assert (ladder[0], ladder[-1]) == (start, end)
    assert all(high == low * step for low, high in pairwise(ladder[:-1]))


@pytest.mark.parametrize("key", ["a", "qwen3.5-fp8", "A_b.c-1", "0", "a-b-c"])
def test_keys(key: str) -> None:
    assert is_config_key(key)


@pytest.mark.parametrize("key", ["", "-", "a--b", "--", "a b", "a/b", "a:b", "é", "a\n", "a*", "a$b"])
def test_no_keys(key: str) -> None:
    assert not is_config_key(key)
