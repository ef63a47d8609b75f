"""Laws of any search space: filters shrink, ids are unique, order and ids are stable, entries stand for themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.points.support import FLEET, errors, expanded

if TYPE_CHECKING:
    from matrix.points.point import Point

ROOT = Path(__file__).parents[2]
LAW = settings(max_examples=25)
"""An example is a whole search space, so a few of them see a lot."""

CONCS = st.lists(st.integers(1, 200), min_size=1, max_size=5)
MODES: Final[tuple[list[str], ...]] = (
    [],
    ["--no-evals"],
    ["--evals-only"],
    ["--all-evals"],
    ["--trim-conc"],
    ["--smoke"],
)


@st.composite
def ladders(draw: st.DrawFn) -> dict[str, Any]:
    """The concurrencies of an entry, in either form."""
    if draw(st.booleans()):
        return {"conc-list": draw(CONCS)}
    start = draw(st.integers(1, 64))
    return {"conc-start": start, "conc-end": draw(st.integers(start, 300))}


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, Any]:
    """A worker that a node of eight GPUs can hold."""
    worker: dict[str, Any] = {"tp": draw(st.sampled_from([1, 2, 4, 8])), "ep": draw(st.sampled_from([1, 1, 8]))}
    worker["dp-attn"] = draw(st.booleans())
    if draw(st.booleans()):
        worker["pp"] = draw(st.sampled_from([1, 2]))
    return worker


@st.composite
def entries(draw: st.DrawFn, *, agentic: bool, multinode: bool, disagg: bool) -> dict[str, Any]:
    """A search-space entry of a kind."""
    entry: dict[str, Any] = {"spec-decoding": draw(st.sampled_from(["none", "mtp", "draft_model"]))}
    if disagg:
        entry["prefill"] = draw(sizes()) | {"num-worker": draw(st.integers(0, 3))}
        entry["decode"] = draw(sizes()) | {"num-worker": draw(st.integers(0, 3))}
    elif multinode:
        entry["worker"] = draw(sizes()) | {"num-worker": draw(st.integers(1, 3))}
        entry["num-nodes"] = draw(st.integers(1, 3))
    else:
        entry |= draw(sizes())
    if agentic:
        entry["kv-offloading"] = "none"
    return entry | draw(ladders())


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """A master config that is accepted."""
    multinode, disagg = draw(st.sampled_from([(False, False), (True, False), (True, True)]))
    kind = {"multinode": multinode, "disagg": disagg}
    found: dict[str, Any] = {
        "image": "i:1",
        "model": "org/M",
        "model-prefix": draw(st.sampled_from(["m", "kimik3"])),
        "precision": draw(st.sampled_from(["fp4", "fp8"])),
        "framework": draw(st.sampled_from(["sglang", "vllm"])),
        "runner": "cluster:mi355x-a",
        **kind,
    }
    if disagg:
        found["kv-p2p-transfer"] = "nixl"
    fixed: list[dict[str, Any]] = [
        {"isl": isl, "osl": 1024, "search-space": draw(st.lists(entries(agentic=False, **kind), max_size=3))}
        for isl in draw(st.lists(st.sampled_from([1024, 8192]), unique=True, max_size=2))
    ]
    agentic: list[dict[str, Any]] = [
        {"search-space": draw(st.lists(entries(agentic=True, **kind), min_size=1, max_size=3))}
    ]
    scenarios = {"fixed-seq-len": fixed} if fixed else {}
    if not fixed or draw(st.booleans()):
        scenarios["agentic-coding"] = agentic
    return found | {"scenarios": scenarios}


SPACES = st.dictionaries(st.sampled_from(["a", "b.c", "d_e-f"]), configs(), min_size=1, max_size=3)
FILTERS = st.one_of(
    st.integers(1, 64).map(lambda bound: ["--min-conc", str(bound)]),
    st.integers(1, 64).map(lambda bound: ["--max-conc", str(bound)]),
    st.integers(1, 8).map(lambda bound: ["--max-tp", str(bound)]),
    st.integers(1, 8).map(lambda bound: ["--max-ep", str(bound)]),
    st.lists(st.integers(1, 64), min_size=1, max_size=3).map(lambda concs: ["--conc", ",".join(map(str, concs))]),
    st.sampled_from(
        [
            ["--config-keys", "?*"],
            ["--seq-lens", "8k1k"],
            ["--scenario-type", "agentic-coding"],
            ["--single-node"],
            ["--multi-node"],
            ["--precision", "fp4"],
            ["--framework", "sglang"],
            ["--model-prefix", "kimik3"],
            ["--runner-type", "cluster:mi355x-a"],
        ]
    ),
)


def points(space: Any, *flags: str) -> list[Point]:
    """The points of a space; one whose entries contradict each other says nothing about the laws."""
    expansion = expanded(json.dumps(space), flags=flags)
    if errors(expansion):
        assume(False)
    return list(expansion.points)


def jobs(found: list[Point]) -> set[tuple[Any, ...]]:
    """Each concurrency of each deployment, whatever allocation it shares."""
    return {
        (point.deployment.config.key, point.deployment.scenario.isl, point.deployment.topology, point.deployment.tail,
         point.deployment.entry.spec_decoding, conc)
        for point in found for conc in point.concs
    }  # fmt: skip


@LAW
@given(space=SPACES, chosen=st.lists(FILTERS, min_size=1, max_size=3))
def test_filters_only_shrink(space: Any, chosen: list[list[str]]) -> None:
    flags = [word for filter_ in chosen for word in filter_]
    low, high = (
        [int(flags[at + 1]) for at, flag in enumerate(flags) if flag == name] for name in ("--min-conc", "--max-conc")
    )
    assume(not (low and high and low[-1] > high[-1]))
    whole, kept = points(space, "--no-evals"), points(space, "--no-evals", *flags)
    assert jobs(kept) <= jobs(whole)
    rest = iter(whole)
    assert all(any(jobs([point]) <= jobs([other]) for other in rest) for point in kept), "not in the order of the whole"


@LAW
@given(space=SPACES, mode=st.sampled_from(MODES))
def test_ids_are_unique_and_inert(space: Any, mode: list[str]) -> None:
    names = [point.id for point in points(space, *mode)]
    assert len(names) == len(set(names))
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") for name in names)


@LAW
@given(space=SPACES, mode=st.sampled_from(MODES), seed=st.randoms(use_true_random=False))
def test_key_order_of_mappings_means_nothing(space: Any, mode: list[str], seed: Any) -> None:
    def shuffled(value: Any, depth: int = 0) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            if depth:  # the order of the configs is the order of the output
                seed.shuffle(keys)
            return {key: shuffled(value[key], depth + 1) for key in keys}
        return [shuffled(member, depth + 1) for member in value] if isinstance(value, list) else value

    assert summary(points(space, *mode)) == summary(points(shuffled(space), *mode))


def summary(found: list[Point]) -> list[tuple[str, str, bool | None]]:
    return [(point.id, point.digest, point.run_eval) for point in found]


@LAW
@given(space=SPACES, seed=st.randoms(use_true_random=False))
def test_order_of_entries_is_order_of_output_and_nothing_else(space: Any, seed: Any) -> None:
    """Without evals: which of two equal points carries the mark is a matter of order."""
    turned = json.loads(json.dumps(space))
    for config in turned.values():
        for blocks in config["scenarios"].values():
            for block in blocks:
                seed.shuffle(block["search-space"])
    ours, theirs = points(space, "--no-evals"), points(turned, "--no-evals")
    assert sorted(summary(ours)) == sorted(summary(theirs))


@LAW
@given(space=SPACES)
def test_configs_stand_for_themselves(space: Any) -> None:
    """Nothing of a point but its marks depends on the other configs."""
    whole = summary(points(space, "--no-evals"))
    parts = [summary(points({key: config}, "--no-evals")) for key, config in space.items()]
    assert whole == [each for part in parts for each in part]


@LAW
@given(space=SPACES, mode=st.sampled_from(MODES))
def test_what_is_shown_can_be_asked_for(space: Any, mode: list[str]) -> None:
    found = points(space, *mode)
    assume(found)
    wanted = found[len(found) // 2]
    assert summary(points(space, *mode, "--ids", wanted.id)) == summary([wanted])


@LAW
@given(space=SPACES)
def test_modes_leave_the_throughput_points_alone(space: Any) -> None:
    bare = [(point.id, point.digest) for point in points(space, "--no-evals")]
    marked = [(point.id, point.digest) for point in points(space) if not point.eval_only]
    assert bare == marked
    assert all(point.eval_only and point.run_eval for point in points(space, "--evals-only"))
    assert jobs(points(space, "--trim-conc", "--no-evals")) <= jobs(points(space, "--no-evals"))


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(space=SPACES)
def test_order_and_ids_are_those_of_any_process_and_hash_seed(space: Any, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(json.dumps(space), encoding="utf-8")
    (tmp_path / "runners.yaml").write_text(FLEET, encoding="utf-8")
    here = points(space)
    for seed in ("0", "4242"):
        command = [sys.executable, "-m", "matrix", "expand", "--config", "m.yaml", "--runners", "runners.yaml"]
        result = subprocess.run(
            [*command, "--format", "jsonl", "--allow-empty"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert [json.loads(line) for line in result.stdout.splitlines()] == [point.row() for point in here]


def test_the_shipped_space_is_the_same_under_any_hash_seed() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-m", "matrix", "expand", "--format", "json"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "random")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_the_laws_see_something(mode: list[str]) -> None:
    """A space with every kind, so that no law above holds for want of points."""
    worker = {"tp": 8, "ep": 1, "dp-attn": False}
    base = {"image": "i:1", "model": "org/M", "model-prefix": "m", "precision": "fp8", "framework": "sglang"}
    space = {
        "a": base | {"runner": "cluster:mi355x-a", "multinode": False, "scenarios": {
            "fixed-seq-len": [{"isl": 8192, "osl": 1024, "search-space": [{"tp": 8, "conc-start": 1, "conc-end": 64}]}],
            "agentic-coding": [{"search-space": [{"tp": 8, "kv-offloading": "none", "conc-list": [1, 2]}]}]}},
        "b": base | {"runner": "cluster:mi355x-a", "multinode": True, "scenarios": {
            "agentic-coding": [{"search-space": [{"worker": worker, "num-nodes": 1, "conc-list": [16, 2]}]}]}},
    }  # fmt: skip
    assert points(space, *mode)
