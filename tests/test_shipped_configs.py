"""The configuration that ships: what it expands to, and that master, recipes and runners agree."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.config.accept import configs_of
from matrix.config.fleet import Fleet, fleet_of
from matrix.config.model import Config
from matrix.config.source import load, plain
from matrix.points.expand import Facts, Selection, survey
from matrix.points.point import Point
from matrix.recipes.recipe import RecipeBook, parse_reference, variants
from matrix.recipes.roles import RecipeView, view_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED: Final = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark"

POINTS: Final = {
    SEED: 5,
    "dsv4-fp4-mi355x-atom-disagg": 11,
    "qwen3-0.6b-fp16-mi355x-atom-infera-srt-agg": 2,
    "qwen3-0.6b-fp16-mi355x-atom-infera-srt-disagg": 2,
    "qwen3-0.6b-fp16-mi300x-atom-infera-srt-agg": 2,
    "qwen3-0.6b-fp16-mi300x-atom-infera-srt-disagg": 2,
    "dsv4-fp4-mi355x-sglang-disagg-agentic-hicache-mtp": 8,
    "dsv4-fp4-mi355x-sglang-disagg": 10,
    "dsv4-fp4-mi355x-sglang-disagg-mtp": 10,
    "dsr1-fp8-mi355x-sglang-disagg": 16,
    "dsr1-fp8-mi355x-sglang-disagg-mtp": 17,
    "dsr1-fp4-mi355x-sglang-disagg": 21,
    "dsr1-fp4-mi355x-sglang-disagg-mtp": 19,
    "dsr1-fp4-mi355x-sglang-disagg-8k1k-mtp": 18,
    "qwen3.5-fp8-mi355x-sglang-disagg": 1,
    "qwen3.5-fp8-mi355x-sglang-srt-disagg": 1,
    "qwen3.5-fp4-mi355x-sglang-disagg": 7,
    "qwen3-0.6b-fp16-mi355x-sglang-srt-agg": 2,
    "qwen3-0.6b-fp16-mi355x-sglang-srt-disagg": 2,
    "qwen3-0.6b-fp16-mi300x-vllm-srt-agg": 2,
    "qwen3-0.6b-fp16-mi300x-vllm-srt-disagg": 2,
}

FRONTENDS: Final = {"atomesh": "atomesh", "sglang-router": "sglang", "vllm-router": "vllm-router", None: "vllm"}
"""The frontend of a recipe, by the router that the row names; without a router a vLLM worker answers itself."""

ACCEPTANCE: Final = re.compile(r"acceptance-(length|rate)|simulate_acc|force_num_accepted|synthetic", re.IGNORECASE)


@pytest.fixture(scope="module")
def configs(root: Path) -> tuple[Config, ...]:
    return configs_of(load(root / "configs/amd-master.yaml"))


@pytest.fixture(scope="module")
def fleet(root: Path) -> Fleet:
    return fleet_of(load(root / "configs/runners.yaml"))


@pytest.fixture(scope="module")
def book(root: Path) -> RecipeBook:
    return RecipeBook([root / "configs/recipes"])


@pytest.fixture(scope="module")
def points(configs: tuple[Config, ...], fleet: Fleet, book: RecipeBook) -> tuple[Point, ...]:
    found = survey(configs, Facts(fleet=fleet, recipes=book))
    assert not found.findings, "\n".join(map(str, found.findings))
    return tuple(Selection(found.groups))


def test_the_space_holds_these_configs_and_points(points: tuple[Point, ...]) -> None:
    assert dict(Counter(point.deployment.config.key for point in points)) == POINTS
    assert (len(POINTS), len(points)) == (21, 160)


def test_the_seed_config_gives_its_five_rows(points: tuple[Point, ...]) -> None:
    file = "recipes/dsv4/atom/mi355x-fp4/agentx/disagg-lmcache-dspark.yaml"
    rows = [point.row() for point in points if point.deployment.config.key == SEED]
    wanted = [
        (1, "dsv4_p1x8_d1x8_conc1", "none", 0, "override_tp8_c1", False),
        (16, "dsv4_p1x8_d1x8_conc16", "none", 0, "override_tp8_c16", False),
        (64, "dsv4_p1x8dpa_d1x8dpa_conc64", "none", 0, "override_dpa8_c64", True),
        (128, "dsv4_p1x8dpa_d1x8dpa_conc128", "none", 0, "override_dpa8_c128", True),
        (256, "dsv4_p1x8dpa_d1x8dpa_conc256_kvdram-lmcache", "dram", 1499, "override_dpa8_c256_lmcache", True),
    ]
    for row, (conc, name, offload, budget, variant, dpa) in zip(rows, wanted, strict=True):
        assert (row["conc"], row["exp-name"], row["kv-offloading"]) == ([conc], name, offload)
        assert (row["total-cpu-dram-gb"], row["recipe"], row["node-count"]) == (budget, f"{file}:{variant}", 2)
        role = {"num-worker": 1, "tp": 8, "ep": 1, "dp-attn": dpa}
        assert row["prefill"].items() >= role.items()
        assert row["decode"].items() >= role.items()
        common = {
            "image": "rocm/atom-dev:nightly_202609221542",
            "model": "deepseek-ai/DeepSeek-V4-Pro-0813",
            "framework": "atom-disagg",
            "runner": "cluster:mi355x-amds",
            "spec-decoding": "draft_model",
            "duration": 3600,
            "kv-p2p-transfer": "mooncake",
            "router": {"name": "atomesh", "version": "087b82d9c1f630e79149ba37e6213257ec9a76f8"},
        }
        assert row.items() >= common.items()
    assert [row.get("kv-offload-backend") for row in rows] == [None, None, None, None, {"name": "lmcache"}]


def test_points_are_told_apart(points: tuple[Point, ...]) -> None:
    assert len({point.id for point in points}) == len(points)
    assert len({point.digest for point in points}) == len(points)


def test_every_variant_has_one_point_and_every_file_one_config(points: tuple[Point, ...], book: RecipeBook) -> None:
    named = Counter(_reference(point) for point in points)
    assert [reference for reference, count in named.items() if count > 1] == []
    existing = {f"{name}:{variant}" for _, name in book.files() for variant in variants(book.document(name).root)}
    assert existing == set(named)
    owners: dict[str, set[str]] = {}
    for point in points:
        owners.setdefault(_reference(point).rpartition(":")[0], set()).add(point.deployment.config.key)
    assert {file: keys for file, keys in owners.items() if len(keys) > 1} == {}


def test_recipe_files_stand_where_their_content_says(points: tuple[Point, ...]) -> None:
    for point in points:
        config, view = point.deployment.config, _view(point)
        workload = point.id.split("--")[1].replace("agentic", "agentx")
        hardware = f"{view.resources['gpu_type']}-{config.precision}"
        folder = f"{config.model_prefix}/{view.engine['type']}/{hardware}/{workload}/"
        assert _reference(point).startswith(folder)


def test_recipes_do_what_their_rows_say(points: tuple[Point, ...], fleet: Fleet) -> None:
    faults = [
        f"{point.id}: {what} is {said} in the row and {done} in the recipe"
        for point in points
        for what, said, done in _pairs(point, fleet)
        if said != done
    ]
    assert faults == []


def test_environments_are_text(points: tuple[Point, ...]) -> None:
    for point in points:
        for role in _view(point).roles.values():
            assert all(type(value) is str for value in role.env.values()), f"{point.id}: {role.name}"


def test_admission_and_graphs_fit_the_concurrency(points: tuple[Point, ...]) -> None:
    for point in points:
        for name, role in _view(point).roles.items():
            admitted: int = role.args["max-running-requests" if role.engine == "sglang" else "max-num-seqs"]
            assert admitted * role.workers >= point.concs[0], f"{point.id}: {name} admits {admitted} x {role.workers}"
            sizes = role.args.get("cuda-graph-bs", role.args.get("cudagraph-capture-sizes"))
            if sizes is None:
                continue
            sizes = plain(sizes) if role.engine == "sglang" else json.loads(sizes)  # ATOM takes one word
            per_rank = admitted // (role.gpus if role.args.get("enable-dp-attention") else 1)
            assert sizes == sorted(set(sizes)), point.id
            assert sizes[-1] >= per_rank, f"{point.id}: {name} captures to {sizes[-1]} and admits {per_rank} a rank"


def test_speculation_is_the_rows_alike_in_both_roles_and_not_faked(points: tuple[Point, ...]) -> None:
    for point in points:
        view, spec = _view(point), point.deployment.entry.spec_decoding
        drafts = {
            role.args.get("num-speculative-tokens", role.args.get("speculative-num-steps"))
            for role in view.roles.values()
        }
        assert len(drafts) == 1, f"{point.id}: {drafts}"
        assert (drafts == {None}) is (spec == "none"), f"{point.id}: {spec}, {drafts}"
        assert ACCEPTANCE.search(view.recipe.canonical()) is None, point.id


def test_the_client_runs_once_with_what_the_row_says(points: tuple[Point, ...]) -> None:
    for point in points:
        view, scenario = _view(point), point.deployment.scenario
        env, command = view.benchmark["env"], view.benchmark["command"]
        assert env["CONC"] == str(point.concs[0]), point.id
        assert env["MODEL"] == point.deployment.config.model, point.id
        assert all(type(value) is str for value in env.values()), point.id
        assert re.search(r"\b(for|while|until)\b", command) is None, point.id
        if point.deployment.agentic:
            assert command == "bash /infmax-workspace/benchmarks/srt_agentic.sh", point.id
        else:
            assert (env["ISL"], env["OSL"]) == (str(scenario.isl), str(scenario.osl)), point.id
            assert command.count("benchmark_serving.py") == 1, point.id
            assert '--result-dir /logs/fixed-seq --result-filename "results_concurrency_${CONC}.json"' in command


def test_a_job_may_run_longer_than_it_needs(points: tuple[Point, ...]) -> None:
    for point in points:
        data = _view(point).recipe.data
        hours, minutes, seconds = map(int, data["slurm"]["time_limit"].split(":"))
        limit = hours * 3600 + minutes * 60 + seconds
        loading = data["health_check"]["max_attempts"] * data["health_check"]["interval_seconds"]
        assert limit > loading + (point.seconds or 0), point.id


def test_the_offload_tier_of_a_row_is_in_its_recipe(points: tuple[Point, ...]) -> None:
    for point in points:
        args = next(iter(_view(point).roles.values())).args
        tier = "extra-kv-connectors" in args or args.get("enable-hierarchical-cache") is True
        assert tier is (point.deployment.entry.offload.mode == "dram"), point.id
        for connector in args.get("extra-kv-connectors", ()):
            ranks = point.deployment.entry.topology.prefill.gpus  # type: ignore[union-attr]
            assert ranks * connector["lmcache.max_local_cpu_size"] <= point.deployment.budget_gb


def test_the_published_configs_are_all_here(configs: tuple[Config, ...], shared: Path) -> None:
    published = load(shared / "data/masters/amd-srt-entries.yaml").root
    assert {config.key for config in configs} == {*published, SEED}
    for config in configs:
        if config.key != SEED:
            theirs = published[config.key]
            assert (config.model, config.runner, config.disagg) == (theirs["model"], theirs["runner"], theirs["disagg"])


def test_concurrencies_are_those_of_the_published_loops(points: tuple[Point, ...], shared: Path) -> None:
    published = load(shared / "data/masters/amd-srt-entries.yaml").root
    recipes = shared / "data/amd-recipes"
    for key, config in published.items():
        wanted: Counter[tuple[int, int]] = Counter()
        for entry in _entries(config):
            wanted.update((entry["prefill"]["num-worker"], conc) for conc in _loop(entry, recipes))
        ours = Counter(
            (point.row()["prefill"]["num-worker"], point.concs[0])
            for point in points
            if point.deployment.config.key == key
        )
        assert ours == wanted, key


def _reference(point: Point) -> str:
    reference = parse_reference(point.deployment.reference or "")
    return f"{reference.path}:{reference.selector}"


def _view(point: Point) -> RecipeView:
    recipe = point.deployment.recipe
    assert recipe is not None, f"{point.id} has no recipe"
    return view_of(recipe)


def _pairs(point: Point, fleet: Fleet) -> Iterator[tuple[str, object, object]]:
    """What row and recipe both say: (what, in the row, in the recipe)."""
    row, view, config = point.row(), _view(point), point.deployment.config
    identity = view.recipe.data.get("identity", {})
    yield "image", config.image, view.model["container"]
    yield "declared image", config.image, identity.get("container", {}).get("image", config.image)
    yield "precision", config.precision, view.model["precision"]
    yield "model", config.model.rpartition("/")[2], view.model["path"].rpartition("/")[2].removeprefix("hf:")
    yield "GPUs a node", fleet.gpus_per_node(config.runner), (view.gpus_per_node,)
    yield "GPU", config.runner.removeprefix("cluster:").partition("-")[0], view.resources["gpu_type"]
    yield "engine", config.framework.removesuffix("-disagg"), view.engine["type"]
    yield "router", FRONTENDS[row.get("router", {}).get("name")], view.frontend["type"]
    yield "routers", False, view.frontend["enable_multiple_frontends"]
    for name, role in view.roles.items():
        worker = row["prefill" if name == "agg" else name]
        args, attention = role.args, worker["dp-attn"]
        served = args.get("served-model-name", view.model["path"].removeprefix("hf:"))
        yield f"{name} workers", worker["num-worker"], role.workers
        yield f"{name} tp", worker["tp"], role.gpus
        yield f"{name} ep", worker["ep"], args.get("ep-size", 1)
        yield f"{name} dp-attn", attention, args.get("enable-dp-attention", False)
        yield f"{name} dp-aware", attention, view.frontend.get("args", {}).get("dp-aware", False)
        yield f"{name} serves", config.model, served
        transfer = args.get("disaggregation-transfer-backend", view.engine.get("connector"))
        yield f"{name} transfer", row.get("kv-p2p-transfer"), transfer
        if role.engine == "sglang":
            yield f"{name} tp-size", worker["tp"], args["tp-size"]
            yield f"{name} dp-size", worker["tp"] if attention else 1, args.get("dp-size", 1)


def _entries(config: Any) -> Iterator[Any]:
    for blocks in config["scenarios"].values():
        for block in blocks:
            yield from block["search-space"]


def _loop(entry: Any, recipes: Path) -> list[int]:
    """The concurrencies that a published recipe really runs: its list, its loop, or the entry where it has neither."""
    setting = next(text for text in entry["prefill"]["additional-settings"] if text.startswith("CONFIG_FILE="))
    path, _, selector = setting.removeprefix("CONFIG_FILE=recipes/").partition(":")
    root = load(recipes / path).root
    recipe = root[selector] if selector else root
    text = recipe["benchmark"].get("env", {}).get("CONCURRENCY_LIST")
    if text is None:
        found = re.search(r"concurrency(?: in |=)([\d ]+)", recipe["benchmark"]["command"])
        text = found[1] if found else " ".join(map(str, entry["conc-list"]))
    return [int(part) for part in text.split()]
