"""Our reading of recipes against srtctl at its pin: resolution, translation, and every process that it would start.

The pin runs in an interpreter of its own, because its dependencies are none of ours. Twice: as it is, and with our
patches, which teach it ATOM.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from matrix.config.source import plain
from matrix.findings import errors_of
from matrix.recipes.commands import Commands, Process, commands_of
from matrix.recipes.dialect import to_schema_1
from matrix.recipes.pinned import BENCHMARKS, ENGINES, FIELDS, FRONTENDS, VLLM_CONNECTORS
from matrix.recipes.recipe import RecipeBook, variants
from matrix.recipes.roles import view_of
from tests.srt_slurm import interpreter, missing

if TYPE_CHECKING:
    from matrix.recipes.recipe import Recipe

pytestmark = [pytest.mark.pin, pytest.mark.slow]

DRIVER: Final = Path(__file__).with_name("srtctl_driver.py")
SHAPES: Final = Path(__file__).with_name("shapes.yaml")
PATCHED_ENGINES: Final = frozenset({"atom"})
FLAG_LINE: Final = re.compile(r"^\s*ERROR\b")
"""What srtctl prints in red. The batch script in its output has the word as well, behind a frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The pinned source, an interpreter for it, and a folder to run it in."""

    source: Path
    python: Path
    folder: Path

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SRTSLURM"))}
        environment |= {
            "COLUMNS": "200",
            "INFMAX_WORKSPACE": "/srv/client",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(self.source / "src"),
        }
        done = subprocess.run(
            [self.python, DRIVER],
            input=json.dumps(request),
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


@pytest.fixture(scope="module")
def upstream(root: Path) -> Path:
    folder = root / "runners" / "srt-slurm" / "upstream"
    if not (folder / "pyproject.toml").is_file():
        missing("runners/srt-slurm/upstream is empty: git submodule update --init")
    return folder


@pytest.fixture(scope="module")
def python(upstream: Path, launch_cache: Path) -> Path:
    return interpreter(upstream, launch_cache)


@pytest.fixture(scope="module")
def pristine(upstream: Path, python: Path, tmp_path_factory: pytest.TempPathFactory) -> Pinned:
    return Pinned(source=upstream, python=python, folder=tmp_path_factory.mktemp("pristine"))


@pytest.fixture(scope="module")
def patched(root: Path, upstream: Path, python: Path, tmp_path_factory: pytest.TempPathFactory) -> Pinned:
    folder = tmp_path_factory.mktemp("patched")
    source = folder / "source"
    shutil.copytree(upstream, source, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    patches = sorted((root / "runners" / "srt-slurm" / "patches").glob("*.patch"))
    assert patches
    for patch in patches:
        command = ["git", "apply", "--unidiff-zero", str(patch)]
        subprocess.run(command, cwd=source, env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder)}, check=True)
    return Pinned(source=source, python=python, folder=folder)


def written(recipes: list[Recipe], folder: Path) -> dict[str, list[Any]]:
    """Each recipe in schema 1 as a file, with the nodes of its job; a model's folder is there where srtctl looks."""
    found = {}
    for number, recipe in enumerate(recipes):
        document, _ = to_schema_1(recipe)
        file = folder / f"{number}.yaml"
        file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        if not document["model"]["path"].startswith(("hf:", "/")):
            (folder / document["model"]["path"]).mkdir(exist_ok=True)
        found[recipe.reference.text] = [str(file), len(commands_of(recipe).nodes)]
    return found


def engine(recipe: Recipe) -> str:
    return str(view_of(recipe).engine["type"])


@pytest.fixture(scope="module")
def shapes() -> list[Recipe]:
    """What the shipped recipes do not have."""
    book = RecipeBook([SHAPES.parent])
    return [book.resolve(f"{SHAPES.name}:{selector}") for selector in variants(book.document(SHAPES.name).root)]


@pytest.fixture(scope="module")
def sayable(shipped: list[Recipe], shapes: list[Recipe]) -> list[Recipe]:
    """The variants that the dialect can say in full."""
    assert not [finding for recipe in shapes for finding in errors_of(to_schema_1(recipe)[1])]
    return [recipe for recipe in [*shipped, *shapes] if not errors_of(to_schema_1(recipe)[1])]


@pytest.fixture(scope="module")
def answer(
    pristine: Pinned, shipped: list[Recipe], shapes: list[Recipe], sayable: list[Recipe], book: RecipeBook
) -> dict[str, Any]:
    """What the pin as it is says of every bundle, and of every variant whose engine it knows."""
    bundles = {recipe.reference.path: [str(recipe.path), None] for recipe in [*shipped, *shapes]}
    name, path = next((name, path) for path, name in book.files())
    [first, *_] = variants(book.document(name).root)
    bundles[f"{name}:{first}"] = [str(path), first]
    known = [recipe for recipe in sayable if engine(recipe) not in PATCHED_ENGINES]
    assert known
    return pristine.ask({"bundles": bundles, "recipes": written(known, pristine.folder), "tables": True})


@pytest.fixture(scope="module")
def patched_answer(patched: Pinned, sayable: list[Recipe]) -> dict[str, Any]:
    """What the patched pin says of every ATOM variant."""
    ours = [recipe for recipe in sayable if engine(recipe) in PATCHED_ENGINES]
    assert ours
    return patched.ask({"recipes": written(ours, patched.folder), "tables": True})


def test_every_variant_resolves_to_what_srtctl_resolves_it_to(
    answer: dict[str, Any], shipped: list[Recipe], shapes: list[Recipe]
) -> None:
    by_bundle: dict[str, list[Recipe]] = {}
    for recipe in [*shipped, *shapes]:
        by_bundle.setdefault(recipe.reference.path, []).append(recipe)
    for name, recipes in by_bundle.items():
        # srtctl sorts by the name of the override.
        ours = [plain(recipe.data) for recipe in sorted(recipes, key=lambda recipe: str(recipe.reference.selector))]
        assert answer["resolved"][name] == ours, name


def test_one_selector_names_what_srtctl_says_it_names(answer: dict[str, Any], shipped: list[Recipe]) -> None:
    recipes = {f"{recipe.reference.path}:{recipe.reference.selector}": recipe for recipe in shipped}
    [single] = [name for name in answer["resolved"] if ":" in name]
    assert answer["resolved"][single] == [plain(recipes[single].data)]


def test_the_pin_takes_what_we_translate(
    answer: dict[str, Any], patched_answer: dict[str, Any], sayable: list[Recipe]
) -> None:
    runs = answer["dry_run"] | patched_answer["dry_run"]
    assert runs.keys() == {recipe.reference.text for recipe in sayable}
    for name, (status, output) in runs.items():
        errors = [line for line in output.splitlines() if FLAG_LINE.match(line)]
        assert (status, errors) == (0, []), f"{name}\n{output[-2000:]}"


def test_what_the_dialect_cannot_say_is_named(shipped: list[Recipe], sayable: list[Recipe]) -> None:
    said = {recipe.reference.text for recipe in sayable}
    left = {
        recipe.reference.text: " ".join(map(str, errors_of(to_schema_1(recipe)[1])))
        for recipe in shipped
        if recipe.reference.text not in said
    }
    assert {name.partition(":")[0] for name in left} == {"qwen3-0.6b/vllm/mi300x-fp16/128-32/disagg.yaml"}
    assert all(
        word in text for text in left.values() for word in ("frontend.type", "frontend.container_image", "moriio")
    )


def test_the_job_has_as_many_nodes_as_we_say(answer: dict[str, Any], sayable: list[Recipe]) -> None:
    for recipe in sayable:
        if recipe.reference.text in answer["dry_run"]:
            [nodes] = re.findall(r"#SBATCH --nodes=(\d+)", answer["dry_run"][recipe.reference.text][1])
            assert int(nodes) == len(commands_of(recipe).nodes), recipe.reference.text


def test_every_process_is_told_what_we_say(
    answer: dict[str, Any], patched_answer: dict[str, Any], sayable: list[Recipe]
) -> None:
    told = answer["told"] | patched_answer["told"]
    assert told.keys() == {recipe.reference.text for recipe in sayable}
    for recipe in sayable:
        theirs = told[recipe.reference.text]
        assert "error" not in theirs, f"{recipe.reference.text}: {theirs}"
        commands = commands_of(recipe, visible_devices="CUDA_VISIBLE_DEVICES")
        assert commands.served == theirs["served"]
        processes = theirs["processes"]
        ours = {log_of(process, commands): process for process in commands.processes}
        assert ours.keys() == processes.keys(), recipe.reference.text
        for log, process in ours.items():
            expected = as_srtctl(process, commands, theirs["log_dir"])
            assert expected == without_address(processes[log]), f"{recipe.reference.text} {log}"


def test_a_mount_of_ours_is_one_of_theirs(patched_answer: dict[str, Any], sayable: list[Recipe]) -> None:
    for recipe in sayable:
        if recipe.reference.text in patched_answer["told"]:
            theirs = set(patched_answer["told"][recipe.reference.text]["mounts"].values())
            assert {mount.target for mount in commands_of(recipe).mounts} <= theirs


def test_the_tables_of_the_pin_hold(answer: dict[str, Any], patched_answer: dict[str, Any]) -> None:
    tables, extended = answer["tables"], patched_answer["tables"]
    assert {path: sorted(names) for path, names in FIELDS.items()} == tables["fields"] == extended["fields"]
    known = {"type", "prefill_environment", "decode_environment", "aggregated_environment"}
    engines = {name: set(fields) - known - {f"{name}_config"} for name, fields in extended["engines"].items()}
    assert engines == {name: set(fields) for name, fields in ENGINES.items()}
    assert set(extended["engines"]) - set(tables["engines"]) == PATCHED_ENGINES
    assert sorted(FRONTENDS) == sorted(extended["frontends"])
    assert sorted(BENCHMARKS) == sorted({*tables["benchmarks"], "manual"})
    assert sorted(VLLM_CONNECTORS) == sorted({*tables["connectors"], "null", "none"})


def log_of(process: Process, commands: Commands) -> str:
    """The name under which srtctl starts a process."""
    if process.name in ("benchmark", "nginx"):
        return process.name if process.name == "benchmark" else f"node-{process.node}_nginx"
    kind, _, index = process.name.partition("-")
    if kind == "router":
        word = {"atomesh": "atomesh", "sglang": "router", "dynamo": "frontend"}[commands.frontend]
        return f"node-{process.node}_{word}_{index}"
    return f"node-{process.node}_{kind}_w{index.partition('.')[0]}"


def as_srtctl(process: Process, commands: Commands, log_dir: str) -> dict[str, Any]:
    """One of our processes with the addresses and names of the pretended cluster in the place of placeholders."""
    nodes = {worker.name: worker.node for worker in commands.workers}

    def fill(text: str) -> str:
        for name, node in nodes.items():
            text = text.replace(f"<{name}>", f"ip-node-{node}")
        text = re.sub(r"<node-(\d+)>", r"node-\1", text)
        return (
            text.replace("<head>", f"ip-node-{commands.head}")
            .replace("<infra>", "ip-node-0")
            .replace("<log-dir>", log_dir)
        )

    options = dict(option.removeprefix("--").partition("=")[::2] for option in process.srun)
    return {
        "argv": [fill(word) for word in process.argv],
        "env": {variable.name: fill(variable.value) for variable in process.env},
        "container": process.container,
        "node": [f"node-{process.node}"],
        "srun": options,
    }


def without_address(theirs: dict[str, Any]) -> dict[str, Any]:
    """ATOM's address travels in front of the command; to us it is a variable like the others."""
    argv, env = theirs["argv"], dict(theirs["env"])
    if argv[0] == "env":
        name, _, value = argv[1].partition("=")
        argv, env = argv[2:], {**env, name: value}
    return {**theirs, "argv": argv, "env": env}
