"""The patches on the real pin: verdicts, their own tests, and what the patched driver would start.

Needs the submodule, and once the packages that srtctl needs; REQUIRE_PIN=1 turns both skips into failures.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from matrix.errors import RefusedError
from matrix.recipes.commands import Commands, Process, commands_of
from matrix.recipes.dialect import to_schema_1
from matrix.recipes.recipe import Recipe, RecipeBook
from runners.patches import Verdict, judge, patched_checkout
from runners.pin import Pin, read_pin, require
from runners.series import load_series
from tests.srt_slurm import interpreter, missing

pytestmark = [pytest.mark.pin, pytest.mark.slow]

HARNESS: Final = Path(__file__).with_name("srt_harness.py")
SEED: Final = "recipes/dsv4/atom/mi355x-fp4/agentx/disagg-lmcache-dspark.yaml"
VARIANTS: Final = (
    "override_tp8_c1",
    "override_tp8_c16",
    "override_dpa8_c64",
    "override_dpa8_c128",
    "override_dpa8_c256_lmcache",
)

# Its packages come first; ours, behind them, add pytest.
PYTEST: Final = "import sys; sys.path.append(sys.argv.pop(1)); import pytest; sys.exit(pytest.main(sys.argv[1:]))"

# Shapes that the seed does not have. {models} is a folder of models.
SHARED_NODE: Final = """
schema: 2
name: shared
engine: {type: atom, mooncake_protocol: tcp}
model: {path: "hf:org/model", container: rocm/atom:x, precision: fp8}
resources: {gpu_type: mi355x, gpus_per_node: 8}
roles:
  prefill: {nodes: 1, workers: 2, gpus: 4, env: {N: "{node}"}, args: {kv_cache_dtype: fp8, words: [a, 1], off: false}}
  decode: {nodes: 1, workers: 4, gpus: 2, args: {level: 3}}
environment: {ALL: "1"}
frontend:
  {type: atomesh, enable_multiple_frontends: false, env: {RUST_LOG: info}, args: {log_level: info, dp-aware: false}}
benchmark: {type: custom, command: "true"}
"""
AGGREGATED: Final = """
schema: 2
name: aggregated
engine: atom
model: {path: Model-1, stage_dir: /raid/models, container: rocm/atom:x, precision: fp8}
resources: {gpu_type: mi355x, gpus_per_node: 8}
roles:
  agg:
    nodes: 2
    workers: 4
    gpus: 4
    args: {extra_kv_connectors: [{kv_connector: lmcache_offload, "lmcache.local_disk": null}]}
frontend: {type: atomesh, args: {policy: cache_aware}}
benchmark: {type: custom, command: "true"}
"""


@pytest.fixture(scope="session")
def pin(root: Path) -> Pin:
    """The pin, which the submodule has to be at."""
    try:
        pin = read_pin(root)
    except RefusedError:
        missing("the pin of srt-slurm is known to a git checkout only")
    if pin.head is None:
        missing(f"srt-slurm is not checked out: git submodule update --init {pin.path}")
    require(pin)
    return pin


@pytest.fixture(scope="session")
def tree(root: Path, pin: Pin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A patched clone."""
    target = tmp_path_factory.mktemp("srt-slurm") / "tree"
    patched_checkout(load_series(root / "runners/srt-slurm/patches"), pin.folder, pin.commit, target)
    return target


@pytest.fixture(scope="session")
def python(tree: Path, launch_cache: Path) -> Path:
    """An interpreter with what the tree needs."""
    return interpreter(tree, launch_cache)


class Driver:
    """Runs programs of the patched tree on resolved recipes, in a folder of its own."""

    def __init__(self, python: Path, tree: Path, place: Path) -> None:
        self.python = python
        self.tree = tree
        self.place = place
        models = {name: str(place / "models" / name) for name in ("DeepSeek-V4-Pro-0813", "Model-1")}
        for folder in models.values():
            Path(folder).mkdir(parents=True)
        cluster = {
            "cluster": "test",
            "network_interface": "eno0",
            "visible_devices_env": "ROCR_VISIBLE_DEVICES",
            "use_segment_sbatch_directive": False,
            "model_paths": models,
        }
        (place / "srtslurm.yaml").write_text(yaml.safe_dump(cluster))

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.place),
            "COLUMNS": "400",
            "INFMAX_WORKSPACE": "/somewhere",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(self.tree / "src"),
            "SRTSLURM_CONFIG": str(self.place / "srtslurm.yaml"),
        }
        return subprocess.run(
            [self.python, *arguments], cwd=self.place, env=environment, capture_output=True, text=True, check=False
        )

    def recipe(self, recipe: Recipe) -> Path:
        document, findings = to_schema_1(recipe)
        assert findings == ()
        file = self.place / "recipe.yaml"
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        return file

    def started(self, recipe: Recipe, nodes: int) -> dict[str, Any]:
        done = self.run(HARNESS, self.recipe(recipe), str(nodes))
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told


@pytest.fixture
def driver(python: Path, tree: Path, tmp_path: Path) -> Driver:
    return Driver(python, tree, tmp_path)


@pytest.fixture
def recipes(root: Path, tmp_path: Path) -> Mapping[str, Recipe]:
    """The five variants of the seed, and the shapes that it does not have."""
    own = tmp_path / "recipes"
    own.mkdir()
    (own / "shared.yaml").write_text(SHARED_NODE)
    (own / "aggregated.yaml").write_text(AGGREGATED)
    seed, inline = RecipeBook([root / "configs" / "recipes"]), RecipeBook([own])
    found = {variant: seed.resolve(f"{SEED}:{variant}") for variant in VARIANTS}
    return found | {name: inline.resolve(f"recipes/{name}.yaml") for name in ("shared", "aggregated")}


def test_every_patch_applies(root: Path, pin: Pin) -> None:
    judgements = judge(load_series(root / "runners/srt-slurm/patches"), pin.folder, pin.commit)
    assert [(judgement.entry.number, judgement.verdict) for judgement in judgements] == [
        (433, Verdict.APPLIES),
        (504, Verdict.APPLIES),
        (507, Verdict.APPLIES),
    ]


def test_the_patches_own_tests(python: Path, tree: Path, root: Path) -> None:
    """Those that they bring; the whole suite's counts are in the README of the patches."""
    series = load_series(root / "runners/srt-slurm/patches")
    tests = sorted({path for entry in series.entries for path in entry.patch.paths if path.startswith("tests/")})
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(
        [python, "-c", PYTEST, Path(pytest.__file__).parents[1], "--quiet", "-p", "no:cacheprovider", *tests],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize("name", [*VARIANTS, "shared", "aggregated"])
def test_the_driver_starts_what_we_show(driver: Driver, recipes: Mapping[str, Recipe], name: str) -> None:
    shown = commands_of(recipes[name])
    told = driver.started(recipes[name], len(shown.nodes))
    assert told["nodes"] == len(shown.nodes)
    assert told["served_model_name"] == shown.served
    steps = [*told["workers"], *told["balancers"], *told["routers"]]
    assert [as_started(shown, process) for process in (*shown.workers, *shown.routers)] == [
        {key: step[key] for key in ("node", "argv", "env", "container", "srun")} for step in steps
    ]
    benchmark = as_started(shown, shown.benchmark)
    assert (benchmark["argv"], benchmark["env"]) == (told["benchmark"]["argv"], told["benchmark"]["env"])


def as_started(shown: Commands, process: Process) -> dict[str, Any]:
    """A process of ours with the addresses that the harness gives to nodes."""
    addresses = {f"<{worker.name}>": f"10.0.0.{worker.node}" for worker in shown.workers}
    addresses["<head>"] = "10.0.0.0"
    names = {f"<node-{number}>": f"node{number}" for number in range(len(shown.nodes))}

    def filled(text: str) -> str:
        for placeholder, value in (addresses | names).items():
            text = text.replace(placeholder, value)
        return text

    return {
        "node": f"node{process.node}",
        "argv": [filled(part) for part in process.argv],
        "env": {variable.name: filled(variable.value) for variable in process.env},
        "container": process.container,
        "srun": list(process.srun),
    }


@pytest.mark.parametrize("name", [*VARIANTS, "shared", "aggregated"])
def test_dry_run(driver: Driver, recipes: Mapping[str, Recipe], name: str) -> None:
    done = driver.run("-m", "srtctl.cli.submit", "dry-run", "-f", driver.recipe(recipes[name]))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    # The script that it prints holds the word as well, behind a line number.
    assert [line for line in lines if line.lstrip("│ ").startswith(("ERROR", "Traceback"))] == []
    assert "atom" in done.stdout
