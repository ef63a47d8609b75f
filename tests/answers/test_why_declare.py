"""A scenario or a config that is missing is written as `why-not` says, and then the id is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.answers.edits import edit_of, edited
from tests.cli.support import HEAD, RUNNERS, cli, repository

CLUSTERS: Final = RUNNERS.replace("clusters:", "  cluster:mi355x-b: [mi355x-b_00]\nclusters:").replace(
    "  mi355x-a: {", "  mi355x-b: {gpus-per-node: 8, available-cpu-dram-mib: 1471356}\n  mi355x-a: {"
)
BLOCK: Final = """\
alpha:
  image: i:1
  model: org/M
  model-prefix: m
  precision: fp8
  framework: sglang
  scenarios:
    fixed-seq-len:
      - isl: 8192
        osl: 1024
        search-space:
          - tp: 8
            conc-list: [4, 16]
          - { tp: 4, spec-decoding: mtp, conc-list: [2] }
        # what is measured most
  # by whom
  runner: cluster:mi355x-b
  multinode: false

# the other one
beta:
  image: "i:2"
  model: org/N
  model-prefix: n
  precision: fp4
  framework: vllm-disagg
  runner: cluster:mi355x-a
  router: { name: vllm-router, version: "0.1" }
  multinode: true
  disagg: true
  kv-p2p-transfer: mori
  scenarios:
    agentic-coding:
    - dram-utilization: 0.80
      search-space:
      - conc-list: [8]
        kv-offloading: dram
        kv-offload-backend: { name: lmcache }
        prefill: { num-worker: 1, tp: 8, ep: 1, dp-attn: false }
        decode: { num-worker: 1, tp: 8, ep: 8, dp-attn: false }
"""
FLOW: Final = f"""\
alpha: {{{HEAD}, runner: "cluster:mi355x-b", multinode: false, scenarios: {{
  fixed-seq-len: [{{isl: 8192, osl: 1024, search-space: [{{tp: 8, conc-list: [4]}}]}}]}}}}
"""
INLINE: Final = f"{{{FLOW.strip()}}}\n"
LOCAL: Final = BLOCK.replace("cluster:mi355x-b", "mi355x")

DECLARED: Final = {
    "lengths, below those in a block": (BLOCK, "alpha--1k1k--tp8--c4", "scenario"),
    "lengths, like the entry that is nearest": (BLOCK, "alpha--2048-128--tp4-mtp--c8", "scenario"),
    "an agentic run beside fixed lengths": (BLOCK, "alpha--agentic--tp8--c32", "scenario"),
    "lengths beside an agentic run, on several nodes": (BLOCK, "beta--8k1k--1p-tp8-1d-tp8ep8--c8-16", "scenario"),
    "several concurrencies of one job": (BLOCK, "beta--1k1k--2p-tp8ep8-1d-tp8dpa--c1-2-4", "scenario"),
    "lengths in a flow list": (FLOW, "alpha--1k1k--tp8--c4", "scenario"),
    "an agentic run in a flow mapping": (FLOW, "alpha--agentic--tp8--c1", "scenario"),
    "a config like the nearest": (BLOCK, "alpha-next--8k1k--tp8--c4", "config-key"),
    "a config in a scenario that the nearest lacks": (BLOCK, "alpha-next--agentic--tp8ep8--c4", "config-key"),
    "a config on several nodes": (BLOCK, "beta-2--agentic--1p-tp8-1d-tp8ep4-kvdram-lmcache--c4", "config-key"),
    "a config in a flow mapping": (INLINE, "alpha2--8k1k--tp8--c4", "config-key"),
    "a config below one in flow": (FLOW, "alpha2--1k1k--tp8--c4", "config-key"),
    "a config whose key reads as a number": (FLOW, "123--1k1k--tp8--c4", "config-key"),
}


@pytest.mark.parametrize("case", DECLARED)
def test_what_is_missing_is_declared_as_told(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    master, name, rule = DECLARED[case]
    monkeypatch.chdir(repository(tmp_path / "r", master, CLUSTERS))
    before = set(cli("expand", "--no-evals", "--format", "ids").out.split())
    record = json.loads(cli("why-not", name, "--format", "json").out)
    (cause,) = record["causes"]
    (edit,) = cause["edits"]
    assert (record["answer"], cause["rule"]) == ("undeclared", rule)
    file = Path(edit["place"]["file"])
    file.write_text(edited(file.read_text(encoding="utf-8"), edit_of(edit)), encoding="utf-8")
    listed = cli("expand", "--no-evals", "--format", "ids")
    assert listed.status == 0, (listed.err, file.read_text(encoding="utf-8"))
    assert set(listed.out.split()) == {*before, name}


UNTOLD: Final = {
    "agentic runs take a cluster": (LOCAL, "alpha--agentic--tp8--c4"),
    "no id spells these lengths so": (BLOCK, "alpha--1024-1024--tp8--c4"),
    "no length is zero": (BLOCK, "alpha--0-128--tp8--c4"),
    "fixed lengths offload nothing": (BLOCK, "alpha--1k1k--tp8-kvdram-lmcache--c4"),
    "a job on one node has no roles": (BLOCK, "alpha--1k1k--1p-tp8-1d-tp8--c4"),
    "offloading takes a share of the memory": (BLOCK, "alpha--agentic--tp8-kvdram-lmcache--c4"),
    "no entry names a recipe that could have a variant": (BLOCK, "alpha--1k1k--tp8--c4--override_x"),
    "a key that a config cannot have": (BLOCK, "alphä--8k1k--tp8--c4"),
    "a scenario that there is none of": (BLOCK, "alpha--chat--tp8--c4"),
    "no concurrency is zero": (BLOCK, "alpha--8k1k--tp8--c0"),
    "no concurrency is so large": (BLOCK, "alpha--8k1k--tp8--c99999999999"),
    "no concurrency of a set is zero": (BLOCK, "beta--8k1k--1p-tp8-1d-tp8ep8--c0-16"),
    "no worker has zero GPUs": (BLOCK, "alpha--8k1k--tp0--c4"),
    "no worker has so many GPUs": (BLOCK, "alpha--1k1k--tp99999999999--c4"),
    "there is a prefill worker": (BLOCK, "beta--8k1k--0p-tp8-1d-tp8--c4"),
    "a topology that there is none of": (BLOCK, "alpha--1k1k--dp8--c4"),
}


@pytest.mark.parametrize("case", UNTOLD)
def test_no_edit_is_told_where_the_id_says_too_little(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, name = UNTOLD[case]
    monkeypatch.chdir(repository(tmp_path / "r", master, CLUSTERS))
    outcome = cli("why-not", name, "--format", "json")
    record = json.loads(outcome.out)
    assert (outcome.status, record["answer"], record["causes"][0]["edits"]) == (1, "undeclared", [])
    assert record["nearest"]


def test_a_new_config_says_what_the_id_did_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", BLOCK, CLUSTERS))
    out = cli("why-not", "alpha-next--8k1k--tp8--c4").out
    assert "image, model, runner and the rest are those of alpha" in " ".join(out.split())
    assert "\nalpha-next:\n  image: " in out


def test_a_topology_of_another_kind_differs_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", BLOCK, CLUSTERS))
    out = " ".join(cli("why-not", "beta--agentic--tp8--c8").out.split())
    near = "beta--agentic--1p-tp8-1d-tp8ep8-kvdram-lmcache--c8"
    assert f"nearest {near} topology 1p-tp8-1d-tp8ep8-kvdram-lmcache, not tp8" in out
    assert "none" not in out
