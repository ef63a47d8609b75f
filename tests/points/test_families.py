"""A family is what canonical rows have in common, told without making a row."""

from __future__ import annotations

import json
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.points.row import CONFIG_FILE
from tests.points.support import config, dram, errors, expanded, recipe, roles, sized

if TYPE_CHECKING:
    from matrix.points.point import Deployment

X, Y = (recipe(f"a.yaml:override_{name}") for name in "xy")
MULTI: Final = {
    "plain": roles(),
    "again": roles(),
    "defaults": roles("pp: 1, dcp-size: 1, pcp-size: 1"),
    "x": roles(X),
    "x again": roles(X),
    "y": roles(Y),
    "base": roles(recipe("a.yaml")),
    "empty selector": roles(recipe("a.yaml:")),
    "other file": roles(recipe("b.yaml:override_x")),
    "on decode": roles(decode=X),
    "on both": roles(X, X),
    "named in a setting": roles(X.replace("]", ", 'N=recipes/a.yaml:override_x']")),
    "the other named": roles(Y.replace("]", ", 'N=recipes/a.yaml:override_x']")),
    "setting": roles("additional-settings: [A=1]"),
    "settings": roles("additional-settings: [A=1, B=2]"),
    "settings turned": roles("additional-settings: [B=2, A=1]"),
    "no settings": roles("additional-settings: []"),
    "replicas": roles(counts=(2, 1)),
    "replicas turned": roles(counts=(1, 2)),
    "tp": roles("tp: 4"),
    "ep": roles("ep: 8"),
    "dpa": roles("dp-attn: true"),
    "pp": roles("pp: 2"),
    "dcp": roles("dcp-size: 2"),
    "pcp": roles("pcp-size: 2"),
    "attention": roles("attn-dp-size: 1"),
    "attentions": roles("dp-attn: true, attn-dp-size: 8"),
    "decode attention": roles(decode="attn-dp-size: 1"),
    "hardware": roles("hardware: 'cluster:mi355x-a'", "hardware: 'cluster:mi355x-a'"),
    "other hardware": roles("hardware: 'cluster:mi355x-b'", "hardware: 'cluster:mi355x-a'"),
    "nodes": roles("additional-settings: [PREFILL_NODES=3]"),
    "mtp": f"{roles()}, spec-decoding: mtp",
    "router": f"{roles()}, router: {{name: r, version: '1'}}",
    "other router": f"{roles()}, router: {{name: s, version: '1'}}",
    "newer router": f"{roles()}, router: {{name: r, version: '2'}}",
}  # fmt: skip
OFFLOADING: Final = {
    "offload": f"{roles()}, {dram('lmcache')}",
    "other offload": f"{roles()}, {dram('hicache')}",
    "newer offload": f"{roles()}, kv-offloading: dram, kv-offload-backend: {{name: lmcache, version: '2'}}",
    "said not to": f"{roles()}, kv-offloading: none",
}
SINGLE: Final = {
    "plain": "tp: 8",
    "defaults": "tp: 8, ep: 1, dp-attn: false, pp: 1",
    "tp": "tp: 4",
    "ep": "tp: 8, ep: 8",
    "mtp": "tp: 8, spec-decoding: mtp",
    "x": "tp: 8, srt-recipe: 'recipes/a.yaml:override_x'",
    "y": "tp: 8, srt-recipe: 'recipes/a.yaml:override_y'",
    "b": "tp: 8, srt-recipe: 'recipes/b.yaml:override_x'",
    "base": "tp: 8, srt-recipe: recipes/a.yaml",
}
AGGREGATED: Final = {
    "worker": f"worker: {sized()}, num-nodes: 1",
    "counted": f"worker: {sized(count=1)}, num-nodes: 1",
    "two": f"worker: {sized(count=2)}, num-nodes: 1",
    "nodes": f"worker: {sized()}, num-nodes: 2",
    "x": f"worker: {sized(X)}, num-nodes: 1",
    "y": f"worker: {sized(Y)}, num-nodes: 1",
    "transfer": f"worker: {sized()}, num-nodes: 1, kv-p2p-transfer: nixl",
    "other transfer": f"worker: {sized()}, num-nodes: 1, kv-p2p-transfer: mooncake",
    "older": roles(counts=(1, 0)),
    "older x": roles(X, counts=(1, 0)),
    "older idle": roles(decode="additional-settings: [A=1]", counts=(1, 0)),
}
KINDS: Final[dict[str, dict[str, Any]]] = {
    "disagg": {"fixed": MULTI.values(), "agentic": [*MULTI.values(), *OFFLOADING.values()], "utilization": "0.5"},
    "less": {"agentic": OFFLOADING.values(), "utilization": "0.4"},
    "single": {"fixed": SINGLE.values(), "agentic": [f"{entry}, kv-offloading: none" for entry in SINGLE.values()]},
    "agg": {"fixed": AGGREGATED.values(), "agentic": AGGREGATED.values(), "multinode": True},
    "twin": {"fixed": ["tp: 8"]},
    "power": {"fixed": ["tp: 8"], "block": "isl: 8192, osl: 1024, require-power: true"},
    "length": {"fixed": ["tp: 8"], "block": "isl: 1024, osl: 1024"},
    "runner": {"fixed": ["tp: 8"], "runner": "mi355x"},
    "model": {"fixed": ["tp: 8"], "model": "org/N"},
    "prefix": {"fixed": ["tp: 8"], "prefix": "n"},
    "framework": {"fixed": ["tp: 8"], "framework": "vllm"},
}


@pytest.fixture(scope="module")
def made() -> list[tuple[str, Deployment]]:
    """A deployment of each kind, with the id of its one point."""
    texts = []
    for key, more in KINDS.items():
        entries: dict[str, Any] = {
            kind: [f"{entry}, conc-list: [{number}]" for number, entry in enumerate(more[kind], 1)]
            for kind in ("fixed", "agentic")
            if kind in more
        }
        texts.append(config(key=key, disagg=key in ("disagg", "less"), **(more | entries)))
    found = expanded("".join(texts), flags=["--no-evals"])
    assert not errors(found), errors(found)
    return [(point.id, point.deployment) for point in found.points]


def bare(row: Any) -> Any:
    """A row whose recipe is named without a selector."""
    if "srt-recipe" in row:
        row["srt-recipe"] = row["srt-recipe"].partition(":")[0]
    for role in ("prefill", "decode"):
        settings = row.get(role, {}).get("additional-settings", [])
        settings[:] = [text.partition(":")[0] if text.startswith(CONFIG_FILE) else text for text in settings]
    return row


def test_one_family_is_one_row_but_for_the_selector(made: list[tuple[str, Deployment]]) -> None:
    rows = {name: json.dumps(bare(json.loads(one.texts.canonical)), sort_keys=True) for name, one in made}
    same = 0
    for (name, one), (other, two) in combinations(made, 2):
        alike = rows[name] == rows[other]
        assert (one.family == two.family) is alike, (name, other)
        assert not alike or hash(one.family) == hash(two.family)
        same += alike
    assert len(made) > 120
    assert same > 40


def test_family_and_selector_are_one_row(made: list[tuple[str, Deployment]]) -> None:
    for (name, one), (other, two) in combinations(made, 2):
        alike = one.texts.canonical == two.texts.canonical
        assert ((one.family, one.selector) == (two.family, two.selector)) is alike, (name, other)
