"""A row put together from shared parts is what json.dumps makes of it, and its digest covers its payload."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.points.evals import EvalMode
from matrix.points.pipeline import expand
from matrix.points.request import Request
from matrix.workspace import open_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.workspace import Workspace

RUNNERS: Final = """\
labels: {mi355x: [n0, n1], "cluster:mi355x-a": [n0, n1]}
hardware: {"cluster:mi355x-a": {gpus-per-node: 8, available-cpu-dram-mib: 3095781}}
"""
HEAD: Final = """\
{key}:
  image: "img:1\\"q"
  model: org/M-é
  model-prefix: {prefix}
  precision: fp8
  framework: vllm
  runner: cluster:mi355x-a
  multinode: {multinode}
"""
ROLES: Final = "{num-worker: 2, tp: 8, ep: 8, dp-attn: true, attn-dp-size: 4, additional-settings: [A=1, 'B=x y']}"
CONFIGS: Final = (
    HEAD.format(key="single", prefix="m", multinode="false")
    + """\
  router: {name: r, version: "1.10"}
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      require-power: true
      search-space:
      - {tp: 8, conc-list: [4, 16, 64], srt-recipe: a/b.yaml}
      - {tp: 8, pp: 2, dcp-size: 4, pcp-size: 2, ep: 8, dp-attn: true, attn-dp-size: 8, conc-start: 4, conc-end: 32}
    - {isl: 100, osl: 7, search-space: [{tp: 4, spec-decoding: mtp, conc-list: [1]}]}
    agentic-coding:
    - dram-utilization: 0.35
      search-space:
      - {tp: 4, kv-offloading: none, conc-list: [1, 8]}
      - {tp: 8, kv-offloading: dram, kv-offload-backend: {name: b, version: "2"}, conc-list: [2]}
"""
    + HEAD.format(key="multi", prefix="kimik3", multinode="true")
    + f"""\
  disagg: true
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - {{prefill: {ROLES}, decode: {{num-worker: 1, tp: 4, ep: 1, dp-attn: false}}, conc-list: [8, 32, 64],
         kv-p2p-transfer: nixl, router: {{name: r, version: "1"}}}}
    agentic-coding:
    - dram-utilization: 0.5
      search-space:
      - {{prefill: {ROLES}, decode: {ROLES}, conc-list: [4, 16], kv-p2p-transfer: "a\\tb",
         kv-offloading: dram, kv-offload-backend: {{name: lmcache}}}}
"""
    + HEAD.format(key="agg", prefix="m", multinode="true")
    + f"""\
  scenarios:
    fixed-seq-len:
    - {{isl: 1024, osl: 1024, search-space: [{{worker: {ROLES}, num-nodes: 4, conc-list: [1, 2]}}]}}
    agentic-coding:
    - {{search-space: [{{worker: {{tp: 8, ep: 1, dp-attn: false}}, num-nodes: 1, conc-list: [64]}}]}}
"""
)
MODES: Final = [
    Request(evals=evals, evals_only=only, trim=trim, node_filter=nodes)
    for (evals, only), trim, nodes in product(
        [(EvalMode.NONE, False), (EvalMode.MARK, False), (EvalMode.MARK, True), (EvalMode.ALL, True)],
        [False, True],
        [None, "n"],
    )
]


def canonical(value: Any) -> bytes:
    """Canonical JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def hold(workspace: Workspace, request: Request) -> int:
    """Check every point of a request; how many there were."""
    count = 0
    for point in expand(workspace.configs, workspace.facts, workspace.policy, request).points:
        row = point.row()
        assert point.row_json() == json.dumps(row)
        assert row["id"] == point.id
        assert row["name"] == point.name
        payload = point.digest_payload()
        payload["row"] = sha256(canonical(payload["row"])).hexdigest()
        assert row["digest"] == point.digest == sha256(canonical(payload)).hexdigest()
        count += 1
    return count


@pytest.mark.parametrize("request_", MODES, ids=str)
def test_every_kind_of_row(tmp_path: Path, request_: Request) -> None:
    (tmp_path / "m.yaml").write_text(CONFIGS, encoding="utf-8")
    (tmp_path / "r.yaml").write_text(RUNNERS, encoding="utf-8")
    workspace = open_workspace(str(tmp_path), masters=[str(tmp_path / "m.yaml")], runners=str(tmp_path / "r.yaml"))
    assert hold(workspace, request_) >= 4


def test_the_shipped_rows(root: Path) -> None:
    assert hold(open_workspace(str(root)), Request()) == 160


def test_the_rows_of_real_masters(shared: Path) -> None:
    folder = shared / "data" / "masters"
    masters = [str(folder / name) for name in ("amd-master.yaml", "nvidia-master.yaml")]
    assert hold(open_workspace(str(folder), masters=masters, runners=str(folder / "runners.yaml")), Request()) > 1800
