"""Ids read back: every part says what the deployment says."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from matrix.points.evals import EvalMode
from matrix.points.parts import differences, parts_of, topology_fields
from matrix.points.pipeline import expand
from matrix.points.request import Request
from matrix.workspace import Workspace, open_workspace

ROOT: Final = Path(__file__).parents[2]
_SIZES: Final = ("tp", "ep", "dp-attn", "pp", "dcp-size", "pcp-size", "attn-dp-size")


def text(value: Any) -> str:
    return str(value).lower()


def agrees(workspace: Workspace, request: Request) -> int:
    """Hold each id of an expansion to the row it belongs to; their number."""
    count = 0
    for point in expand(workspace.configs, workspace.facts, workspace.policy, request).points:
        parts, row = parts_of(point.id), point.row()
        assert parts is not None
        deployment = point.deployment
        assert (parts.key, parts.scenario, parts.concs) == (
            deployment.config.key, deployment.frame.scenario_name, point.concs,
        )  # fmt: skip
        assert (parts.stem, parts.tail) == (deployment.stem, deployment.tail)
        assert bool(parts.run) == point.eval_only
        assert parts.throughput == point._replace(eval_only=False).id
        sizes = topology_fields(parts.topology)
        for role in ("prefill", "decode") if "prefill" in row else ("",):
            worker = row[role] if role else row
            name = f"{role}." if role else ""
            if role and f"{role}.tp" not in sizes:  # aggregated
                if role == "decode":
                    continue
                name = "worker."
            for field in _SIZES:
                default = False if field == "dp-attn" else 1
                assert sizes[f"{name}{field}"] == text(worker.get(field) or default), (point.id, field)
            if role:
                assert sizes[f"{name}num-worker"] == text(worker["num-worker"])
        if not parts.variant:
            assert sizes["spec-decoding"] == row["spec-decoding"]
        count += 1
    return count


@pytest.mark.parametrize("mode", EvalMode)
def test_every_shipped_id_reads_back(mode: EvalMode) -> None:
    request = Request(evals=mode, evals_only=mode in (EvalMode.ONLY, EvalMode.ALL))
    assert agrees(open_workspace(str(ROOT)), request) > 20


def test_every_id_of_real_masters_reads_back(shared: Path) -> None:
    folder = shared / "data" / "masters"
    masters = [str(folder / name) for name in ("amd-master.yaml", "nvidia-master.yaml")]
    workspace = open_workspace(str(folder), masters=masters, runners=str(folder / "runners.yaml"))
    assert agrees(workspace, Request()) > 1000


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("m--8k1k--tp8--c4", True),
        ("m--8k1k--tp8--c4--eval-kimi-vendor--on-n_0", True),
        ("m--8k1k--tp8--cx", False),
        ("m--8k1k--c4", False),
        ("m--8k1k--tp8--c4--", False),
        ("", False),
    ],
)
def test_what_has_the_shape_of_an_id(name: str, known: bool) -> None:
    assert (parts_of(name) is not None) == known


def test_the_kind_of_run_and_the_node_are_parts() -> None:
    parts = parts_of("m--8k1k--tp8--c4-8--override_a--b--eval-kimi-vendor--on-n_0")
    assert parts is not None
    assert (parts.concs, parts.variant, parts.run, parts.node) == (
        (4, 8),
        "override_a--b",
        "eval-kimi-vendor",
        "n_0",
    )
    assert parts.throughput == "m--8k1k--tp8--c4-8--override_a--b--on-n_0"


def test_two_ids_differ_in_named_fields() -> None:
    one, other = parts_of("m--8k1k--2p-tp8dpa-1d-tp4--c4"), parts_of("m--1k1k--2p-tp8-1d-tp4ep4-mtp--c8--eval")
    assert one is not None
    assert other is not None
    assert differences(one, other) == (
        ("scenario", "8k1k", "1k1k"),
        ("prefill.dp-attn", "true", "false"),
        ("decode.ep", "1", "4"),
        ("spec-decoding", "none", "mtp"),
        ("concurrency", "4", "8"),
        ("run", "throughput", "eval"),
    )
    assert differences(one, one) == ()
    strange = parts_of("m--8k1k--tp8dp9--c4")
    assert strange is not None
    assert ("topology", "tp8dp9", "none") in differences(strange, one)
