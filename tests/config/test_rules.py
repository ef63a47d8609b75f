"""The rules of a master config that no schema can say, by example, and what stands close to them and is right."""

from __future__ import annotations

from typing import Final

import pytest
from jsonschema import Draft202012Validator

from matrix.config.accept import configs_of
from matrix.config.model import Unacceptable
from matrix.config.schema import Kind, explain, load_schema
from tests.config.support import (
    AGGREGATED,
    CONC,
    DISAGG,
    EMPTY,
    HEAD,
    MULTI,
    ROLES,
    SINGLE,
    WORKER,
    agentic,
    config,
    document,
    fixed,
    keyed,
    told,
    wanted,
)
from tests.config.test_schema import REFUSED as SCHEMA_REFUSED

REFUSED: Final = {
    "star in a key": ("config-key", keyed("a*")),
    "two dashes in a key": ("config-key", keyed("a--b")),
    "blank in a key": ("config-key", keyed("a b/c")),
    "empty key": ("config-key", keyed("''")),
    "line break in a key": ("config-key", keyed('"a\\n"')),
    "no scenario": ("scenarios-empty", config("").replace("scenarios", "§scenarios")),
    "empty scenario": ("scenarios-empty", config("fixed-seq-len: []").replace("scenarios", "§scenarios")),
    "power at 1k1k": (
        "require-power-sequence",
        fixed(f"tp: 8, {CONC}", block="isl: 1024, osl: 1024, require-power: §true"),
    ),
    "dram without share": (
        "dram-utilization-missing",
        agentic(f"tp: 8, kv-offloading: dram, kv-offload-backend: {{name: b}}, {CONC}").replace(
            "[{search", "[§{search"
        ),
    ),
    "agents on a label": (
        "agentic-runner",
        agentic(f"tp: 8, kv-offloading: none, {CONC}", flags="runner: §mi355x, multinode: false"),
    ),
    "router twice": (
        "router-declared-twice",
        fixed(
            f"tp: 8, {CONC}",
            f"tp: 4, §router: {{name: a, version: '1'}}, {CONC}",
            f"tp: 2, router: {{name: a, version: '1'}}, {CONC}",
            flags="runner: x, multinode: false, router: {name: a, version: '1'}",
        ),
    ),
    "transfer twice": (
        "kv-p2p-transfer-declared-twice",
        fixed(f"{ROLES}, §kv-p2p-transfer: nixl, {CONC}", flags=DISAGG),
    ),
    "image as version": ("component-version", fixed(f"tp: 8, router: {{name: a, version: §'image:b'}}, {CONC}")),
    "image as version of a backend": (
        "component-version",
        agentic(
            f"tp: 8, kv-offloading: dram, kv-offload-backend: {{name: a, version: §image:b}}, {CONC}",
            block="dram-utilization: 0.5, ",
        ),
    ),
    "disagg on one node": (
        "disagg-single-node",
        fixed(f"tp: 8, {CONC}", flags="runner: x, multinode: false, disagg: §true"),
    ),
    "one node under multinode": ("multinode-topology", fixed(f"§{{tp: 8, {CONC}}}", flags=MULTI)),
    "worker on one node": ("multinode-topology", fixed(f"tp: 8, {CONC}", f"§{{{WORKER}, {CONC}}}")),
    "every entry the other kind": (
        "multinode-topology",
        fixed(f"tp: 8, {CONC}", f"tp: 4, {CONC}", flags="runner: x, multinode: §true"),
    ),
    "every entry the other kind, with transfer": (
        "multinode-topology",
        fixed(
            f"{ROLES}, {CONC}", f"{ROLES}, conc-list: [2]", flags="runner: x, multinode: §false, kv-p2p-transfer: nixl"
        ),
    ),
    "worker under disagg": ("disagg-topology", fixed(f"{ROLES}, {CONC}", f"§{{{WORKER}, {CONC}}}", flags=DISAGG)),
    "every entry worker under disagg": (
        "disagg-topology",
        fixed(f"{WORKER}, {CONC}", f"{WORKER}, conc-list: [2]", flags="runner: x, multinode: true, disagg: §true"),
    ),
    "forgotten disagg": (
        "aggregated-roles",
        fixed(f"{ROLES}, {CONC}", f"{ROLES}, conc-list: [2]", flags="runner: x, multinode: §true"),
    ),
    "one with decode": ("aggregated-roles", fixed(f"{WORKER}, {CONC}", f"§{{{ROLES}, {CONC}}}", flags=MULTI)),
    "transfer on one node": (
        "kv-p2p-transfer-single-node",
        fixed(f"tp: 8, {CONC}", flags="runner: x, multinode: false, §kv-p2p-transfer: nixl"),
    ),
    "no transfer": (
        "kv-p2p-transfer-missing",
        fixed(f"{ROLES}, {CONC}", flags="runner: x, multinode: true, disagg: true").replace("k:", "§k:", 1),
    ),
    "no transfer in one entry": (
        "kv-p2p-transfer-missing",
        fixed(
            f"{ROLES}, kv-p2p-transfer: nixl, {CONC}",
            f"§{{{ROLES}, {CONC}}}",
            flags="runner: x, multinode: true, disagg: true",
        ),
    ),
    "no topology": ("topology-missing", fixed(f"§{{ep: 1, {CONC}}}")),
    "no topology on several nodes": ("topology-missing", agentic(f"§{{{CONC}}}", flags=DISAGG)),
    "no concurrency": ("conc-missing", fixed("§{tp: 8}")),
    "range of one": ("conc-half-range", fixed("tp: 8, §conc-start: 4")),
    "range without a start": ("conc-half-range", fixed("tp: 8, §conc-end: 64")),
    "list and range": ("conc-both-forms", fixed("tp: 8, §conc-list: [4], conc-start: 1, conc-end: 2")),
    "list and half a range": ("conc-both-forms", fixed("tp: 8, conc-start: 1, §conc-list: [4]")),
    "range backwards": ("conc-range-order", fixed("tp: 8, conc-start: §8, conc-end: 4")),
    "dcp does not divide": ("dcp-size-divides", fixed(f"tp: 6, dcp-size: §4, {CONC}")),
    "attn-dp does not divide": ("attn-dp-size-divides", fixed(f"tp: 8, dp-attn: true, attn-dp-size: §3, {CONC}")),
    "attn-dp without dp-attn": ("attn-dp-size-dp-attn", fixed(f"tp: 8, attn-dp-size: §4, {CONC}")),
    "attn-dp of one": ("attn-dp-size-dp-attn", fixed(f"tp: 8, dp-attn: true, attn-dp-size: §1, {CONC}")),
    "dcp does not divide in a role": (
        "dcp-size-divides",
        fixed(
            f"{ROLES}, {CONC}".replace("dp-attn: false}, decode", "dp-attn: false, dcp-size: §3}, decode"), flags=DISAGG
        ),
    ),
    "hardware on one role": (
        "hardware-one-role",
        fixed(f"{ROLES}, {CONC}".replace("false}, decode", "false, hardware: x-b}, §decode"), flags=DISAGG),
    ),
    "no offloading said": ("kv-offloading-missing", agentic(f"§{{tp: 8, {CONC}}}")),
    "dram without backend": (
        "kv-offload-backend-missing",
        agentic(f"tp: 8, kv-offloading: §dram, {CONC}", block="dram-utilization: 0.5, "),
    ),
    "backend for none": (
        "kv-offload-backend-unused",
        agentic(f"tp: 8, kv-offloading: none, §kv-offload-backend: {{name: b}}, {CONC}"),
    ),
    "backend for nothing": (
        "kv-offload-backend-unused",
        agentic(f"{WORKER}, §kv-offload-backend: {{name: b}}, {CONC}", flags="runner: cluster:x-a, multinode: true"),
    ),
    "several at once": (
        "wrong-type wrong-type unknown-key out-of-range",
        fixed("tp: §'8', §conc_list: [1]", "tp: 8, conc-list: [§0]", flags="runner: §7, multinode: false"),
    ),
    "shared by alias": (
        "out-of-range",
        config(EMPTY).replace("{\n", "&s {\n").replace("isl: 1", "isl: §0")
        + f"l: {{{HEAD}, {SINGLE}, scenarios: *s}}\n",
    ),
    "shared by merge": (
        "wrong-type",
        "k: &k {" + config(EMPTY, "runner: §7, multinode: false")[4:] + "l: {<<: *k, model: n}\n",
    ),
}

ACCEPTED: Final = {
    "one node": fixed(f"tp: 8, {CONC}"),
    "every size": fixed(f"tp: 8, ep: 8, dp-attn: true, pp: 2, dcp-size: 4, pcp-size: 2, attn-dp-size: 8, {CONC}"),
    "one group without dp-attn": fixed(f"tp: 8, attn-dp-size: 1, {CONC}"),
    "range of equal ends": fixed("tp: 8, conc-start: 7, conc-end: 7"),
    "the largest concurrency": fixed("tp: 8, conc-list: [1_000_000]"),
    "concurrencies out of order and twice": fixed("tp: 8, conc-list: [64, 4, 4]"),
    "no entry yet": config(EMPTY),
    "one kind empty": config(
        "fixed-seq-len: [], agentic-coding: [{search-space: []}]", "runner: cluster:x-a, multinode: false"
    ),
    "agents to come": config("fixed-seq-len: [{isl: 1, osl: 1, search-space: []}], agentic-coding: []"),
    "a million tokens": fixed(f"tp: 8, {CONC}", block="isl: 1_048_576, osl: 1024"),
    "power at 8k1k": fixed(f"tp: 8, {CONC}", block="isl: 8192, osl: 1024, require-power: true"),
    "no power at 1k1k": fixed(f"tp: 8, {CONC}", block="isl: 1024, osl: 1024, require-power: false"),
    "router of an entry": fixed(f"tp: 8, router: {{name: a, version: '1.10'}}, {CONC}", f"tp: 4, {CONC}"),
    "router of the config": fixed(
        f"tp: 8, {CONC}", flags="runner: x, multinode: false, router: {name: a, version: v1}"
    ),
    "recipe": fixed(f"tp: 8, srt-recipe: 'recipes/a.yaml:override_b', {CONC}"),
    "draft model": fixed(f"tp: 8, spec-decoding: draft_model, {CONC}"),
    "waived check": fixed(f"tp: 8, check-waivers: [{{rule: x, reason: y}}], {CONC}"),
    "agents": agentic(f"tp: 8, kv-offloading: none, {CONC}"),
    "agents with host memory": agentic(
        f"tp: 8, kv-offloading: dram, kv-offload-backend: {{name: b, version: v1}}, {CONC}",
        block="dram-utilization: 0.80, ",
    ),
    "all of host memory": agentic(
        f"tp: 8, kv-offloading: dram, kv-offload-backend: {{name: b}}, {CONC}", block="dram-utilization: 1, "
    ),
    "worker": fixed(f"{WORKER}, {CONC}", flags=MULTI),
    "worker by number": fixed(f"{WORKER.replace('tp: 8', 'num-worker: 2, tp: 8')}, {CONC}", flags=MULTI),
    "agents on a worker": agentic(f"{WORKER}, {CONC}", flags="runner: cluster:x-a, multinode: true"),
    "worker in the older shape": fixed(f"{AGGREGATED}, {CONC}", flags=MULTI),
    "disagg": fixed(f"{ROLES}, {CONC}", flags=DISAGG),
    "agents under disagg": agentic(f"{ROLES}, {CONC}", flags=DISAGG),
    "disagg without decoders": fixed(f"{AGGREGATED}, {CONC}", flags=DISAGG),
    "transfer of every entry": fixed(
        f"{ROLES}, kv-p2p-transfer: a, {CONC}", f"{ROLES}, kv-p2p-transfer: b, {CONC}", flags=f"{MULTI}, disagg: true"
    ),
    "transfer of a worker": fixed(f"{WORKER}, kv-p2p-transfer: a, {CONC}", flags=MULTI),
    "hardware on both roles": fixed(
        f"{ROLES}, {CONC}".replace("dp-attn: false", "dp-attn: false, hardware: x-b"), flags=DISAGG
    ),
    "settings left open": fixed(
        f"{ROLES}, {CONC}".replace("dp-attn: false", "dp-attn: false, additional-settings: ~"), flags=DISAGG
    ),
    "settings": fixed(
        f"{ROLES}, {CONC}".replace("dp-attn: false", "dp-attn: false, additional-settings: [A=1, '']"), flags=DISAGG
    ),
    "merged": "k: &k {" + fixed(f"tp: 8, {CONC}")[4:] + "l: {<<: *k, model: n}\n",
    "dots and underscores in a key": keyed("qwen3.5_a-B").replace("§", ""),
    "no config": "{}\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_each_fault_is_told_once_at_its_place(name: str) -> None:
    faults, text = REFUSED[name]
    assert told(text, Kind.MASTER) == wanted(faults, text)


@pytest.mark.parametrize("name", ACCEPTED)
def test_close_to_it_is_right(name: str) -> None:
    file = document(ACCEPTED[name])
    assert explain(file, Kind.MASTER) == []
    assert configs_of(file) or name == "no config"


@pytest.mark.parametrize("name", [*REFUSED, *SCHEMA_REFUSED])
def test_the_fast_way_refuses_the_same(name: str) -> None:
    _, text = (REFUSED | SCHEMA_REFUSED)[name]
    with pytest.raises(Unacceptable):
        configs_of(document(text))


# An editor knows the schema alone. These need two values compared, or YAML's own view of a number.
BEYOND_A_SCHEMA: Final = frozenset(
    (
        "aggregated-roles",
        "attn-dp-size-divides",
        "attn-dp-size-dp-attn",
        "conc-range-order",
        "dcp-size-divides",
        "kv-p2p-transfer-declared-twice",
        "kv-p2p-transfer-missing",
        "router-declared-twice",
    )
)


@pytest.mark.parametrize("name", [*REFUSED, *SCHEMA_REFUSED])
def test_an_editor_sees_it_as_well(name: str) -> None:
    faults, text = (REFUSED | SCHEMA_REFUSED)[name]
    seen = not Draft202012Validator(load_schema(Kind.MASTER)).is_valid(document(text).root)
    assert seen is (faults not in BEYOND_A_SCHEMA and name not in ("float for an integer", "line break in a key"))


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_editor_has_nothing_against_what_is_right(name: str) -> None:
    assert list(Draft202012Validator(load_schema(Kind.MASTER)).iter_errors(document(ACCEPTED[name]).root)) == []
