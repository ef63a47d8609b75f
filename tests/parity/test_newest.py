"""The real search space of August 2026 in the newest schema, with its recipes: InferenceX's runs, and ours of the same.

The files are not quite as strict as ours have to be (difference 3), so they are mended first. Then a row differs only
where the switches of `tests.parity.model` say so: without them the model gives InferenceX's rows, with them ours.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections import Counter
from gzip import decompress
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.parity.model import MODES, OURS, THEIRS, bare, concs, fields, multinode
from tests.parity.replay import Session, expand_cli, our_flags, recorded

if TYPE_CHECKING:
    from pathlib import Path

    from tests.parity.model import Row

MASTERS: Final = ("amd-master.yaml", "nvidia-master.yaml")
RECIPES: Final = "benchmarks/multi_node/srt-slurm-recipes"
BROKEN: Final = {
    "trtllm/qwen3.5/gb300-fp4/disagg/agentx": ("yaml-number", 6),
    "vllm/kimi-k3/agentic": ("yaml-duplicate-key", 2),
}
"""Recipes that a plain reader takes: a time that some readers take for a number, a key that is set twice."""

NUMBERS: Final = {"by_topology": 6, "by_recipe": 7, "no_collisions": 13, "own_survivors": 17}
SWEEPS: Final[dict[str, set[int]]] = {
    "full": {6, 7, 13},
    "no-evals": set(),
    "evals-only": {6, 7, 13},
    "all-evals": {13},
    "trim": {6, 7, 13, 17},
    "trim-evals-only": {6, 7, 13, 17},
    "trim-all-evals": {7, 13, 17},
    "smoke": {6, 7, 13, 17},
}
KEYS: Final[dict[str, dict[str, set[int]]]] = {
    "dsr1-fp8-b200-sglang": {"trim": {17}},
    "dsr1-fp8-b200-trt-mtp": {"trim": {17}},
    "dsr1-fp8-h200-dynamo-sglang": {},
    "dsv4-fp4-mi355x-atom-agentic-mtp": {"trim": {17}},
    "dsv4-fp4-mi355x-sglang-disagg-agentic-hicache-mtp": {"trim": {17}},
    "glm5.2-fp4-gb200-dynamo-sglang-agentic-mtp-agg": {},
    "minimaxm3-fp4-b200-vllm-agentic-mtp": {
        "default": {6, 13}, "evals-only": {6, 13}, "all-evals": {13}, "trim": {6, 13, 17}, "smoke": {6, 13, 17},
    },
    "minimaxm3-fp4-gb200-dynamo-vllm-agentic-agg-mtp": {
        "default": {13}, "evals-only": {13}, "all-evals": {13}, "trim": {13, 17}, "smoke": {13, 17},
    },
    "minimaxm3-fp4-gb300-dynamo-vllm-agentic-mtp-disagg": {
        "default": {6}, "evals-only": {6}, "trim": {6}, "smoke": {6, 17},
    },
    "qwen3.5-fp4-gb300-dynamo-trt-mtp": {},
}  # fmt: skip
"""Config keys and modes with the numbers of docs/differences.md that change their rows."""

FILTERS: Final = (
    "single-node", "multi-node", "min-conc-16", "max-tp-4", "step-4", "fixed", "agentic", "node-filter",
)  # fmt: skip


class Corpus:
    """The recorded runs, and a session over the mended files."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self.folder = folder
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        self.runs: dict[str, Any] = {run["name"]: run for run in index}
        self.session = Session([tree / name for name in MASTERS], tree / "runners.yaml", [tree / RECIPES])
        self.unmarked = self.theirs("no-evals")

    def theirs(self, name: str) -> list[Row]:
        rows: list[Row] = recorded(self.folder / "outputs" / f"{self.runs[name]['output']}.json.gz")
        return rows

    def ours(self, name: str) -> list[Row]:
        return self.session.rows(our_flags(self.runs[name]["argv"][1:]))


@pytest.fixture(scope="module")
def tree(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    inputs, folder = shared / "parity" / "newest" / "inputs", tmp_path_factory.mktemp("newest")
    with tarfile.open(inputs / "recipes.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    for name in (*MASTERS, "runners.yaml"):
        (folder / name).write_bytes(decompress((inputs / f"{name}.gz").read_bytes()))
    return folder


@pytest.fixture(scope="module")
def broken(tree: Path) -> str:
    """What the files as they are are told; then they are mended, as the findings say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        masters = [word for name in MASTERS for word in ("--config", name)]
        outcome = expand_cli(*masters, "--runners", "runners.yaml", "--recipes", RECIPES)
    assert (outcome.status, outcome.out) == (1, "")
    for path in (tree / RECIPES).rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        mended = re.sub(r"\b(time_limit: )(\d\d:\d\d:\d\d)$", r"\1'\2'", text, flags=re.MULTILINE)
        if f"{path.relative_to(tree)}:" in outcome.err and text.count(" compilation-config:") == 2:
            mended = mended.replace(" compilation-config:", " dropped-by-plain-readers:", 1)
        if mended != text:
            path.write_text(mended, encoding="utf-8")
    return outcome.err


@pytest.fixture(scope="module")
def corpus(shared: Path, tree: Path, broken: str) -> Corpus:
    assert broken
    return Corpus(shared / "parity" / "newest", tree)


def test_recipes_that_readers_take_differently_are_refused(broken: str) -> None:
    """Difference 3."""
    errors = [line for line in broken.splitlines() if "warning: " not in line]
    pattern = re.compile(rf"{RECIPES}/(.+)/[^/:]+\.yaml:\d+:\d+: recipe-yaml: (yaml-[a-z-]+): .*named by .* fix: ")
    found = Counter(match.groups() for match in map(pattern.match, errors) if match)
    assert len(errors) == found.total() == sum(count for _, count in BROKEN.values())
    assert found == {(folder, rule): count for folder, (rule, count) in BROKEN.items()}


@pytest.mark.parametrize(("mode", "numbers"), SWEEPS.items(), ids=SWEEPS)
def test_sweep(corpus: Corpus, mode: str, numbers: set[int]) -> None:
    check(corpus, mode, "default" if mode == "full" else mode, corpus.unmarked, numbers)


@pytest.mark.parametrize("mode", ["default", "evals-only", "all-evals", "trim", "smoke"])
@pytest.mark.parametrize("key", KEYS)
def test_config(corpus: Corpus, key: str, mode: str) -> None:
    check(corpus, f"test:{key}:{mode}", mode, bare(corpus.theirs(f"test:{key}:default")), KEYS[key].get(mode, set()))


@pytest.mark.parametrize("name", FILTERS)
def test_filter_that_only_removes(corpus: Corpus, name: str) -> None:
    theirs = corpus.theirs(name)
    assert same(corpus.ours(name), MODES["default"](bare(theirs), OURS))


def test_maximum_never_invents_a_point(corpus: Corpus) -> None:
    """Difference 1."""
    kept = [row | {"conc": left if multinode(row) else left[0]} for row in corpus.unmarked
            if (left := [conc for conc in concs(row) if conc <= 64])]  # fmt: skip
    assert same(corpus.ours("max-conc-64"), MODES["default"](kept, OURS))
    invented = beyond(bare(corpus.theirs("max-conc-64")), kept)
    assert {tuple(concs(row)) for row in invented} == {(64,)}
    assert len(invented) == 249


def test_maximum_never_changes_a_point(corpus: Corpus) -> None:
    """Difference 1."""
    kept = [row for row in corpus.unmarked if multinode(row) or "isl" not in row or row["ep"] <= 2]
    assert same(corpus.ours("max-ep-2"), MODES["default"](kept, OURS))
    changed = beyond(bare(corpus.theirs("max-ep-2")), kept)
    assert {row["ep"] for row in changed} == {2}
    assert len(changed) == 140


def test_order_is_that_of_the_files_however_keys_are_named(corpus: Corpus) -> None:
    """Difference 14: theirs is the order in which the patterns found them."""
    ours, theirs = corpus.ours("test:glob"), corpus.theirs("test:glob")
    assert same(ours, theirs)
    assert ours != theirs
    keys = [
        point.deployment.config.key
        for point in corpus.session.expand(our_flags(corpus.runs["test:glob"]["argv"][1:])).points
    ]
    files = [config.key for config in corpus.session.workspace.configs]
    assert list(dict.fromkeys(keys)) == [key for key in files if key in set(keys)]


def test_every_recorded_run_is_replayed(corpus: Corpus) -> None:
    named = {*SWEEPS, *FILTERS, "max-conc-64", "max-ep-2", "test:glob"}
    modes = ("default", "evals-only", "all-evals", "trim", "smoke")
    assert named | {f"test:{key}:{mode}" for key in KEYS for mode in modes} == corpus.runs.keys()
    assert all(run["ok"] for run in corpus.runs.values())


def check(corpus: Corpus, name: str, mode: str, unmarked: list[Row], numbers: set[int]) -> None:
    theirs, make = texts(corpus.theirs(name)), MODES[mode]
    assert texts(make(unmarked, THEIRS)) == theirs, "the model is not theirs"
    assert texts(corpus.ours(name)) == texts(make(unmarked, OURS))
    single = {number: THEIRS._replace(**{switch: True}) for switch, number in NUMBERS.items()}
    assert {number for number, switches in single.items() if texts(make(unmarked, switches)) != theirs} == numbers


def beyond(left: list[Row], right: list[Row]) -> list[Row]:
    """The rows of the left that the right has not."""
    found = Counter(map(fields, left)) - Counter(map(fields, right))
    return [json.loads(text) for text in found.elements()]


def same(left: list[Row], right: list[Row]) -> bool:
    return texts(left) == texts(right)


def texts(rows: list[Row]) -> Counter[str]:
    return Counter(map(fields, rows))
