"""Real changes of InferenceX: our buckets are its newest planner's, but for the accuracy runs that it lets collide."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.changelog.context import Context, Stage
from matrix.changelog.rules import check
from matrix.findings import errors_of
from matrix.plan.claims import Options
from matrix.plan.document import buckets
from matrix.plan.plan import plan_change
from matrix.workspace import open_workspace

if TYPE_CHECKING:
    from pathlib import Path

OURS: Final = frozenset({"id", "name", "config-key", "recipe", "digest"})
MODES: Final = {
    "default": Options(),
    "trim": Options(trim=True),
    "all-evals": Options(all_evals=True),
    "evals-only": Options(evals_only=True),
}
MORE_EVALS: Final = frozenset({"5b9af262", "6816ed05", "de871da9", "49ac5c0a", "1845f605"})
"""Changes with agentic accuracy runs that the peer drops: it keeps one per collision key (here ids are unique), and one
per deployment (here every topology has its own). All that it runs is run here too."""

CHECKED: Final = frozenset({
    "golden-folder", "recipe-concurrency", "recipe-dp-attention", "recipe-expert-parallel", "recipe-offload",
    "recipe-speculation", "recipe-topology", "recipe-transfer", "served-name",
})  # fmt: skip
"""What the checks refuse in some of these configs. The peer has no such checks, and none of it moves a point."""


@pytest.fixture(scope="module")
def corpus(shared: Path) -> Path:
    return shared / "parity" / "changelog"


@pytest.fixture(scope="module")
def recipes(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("recipes")
    with tarfile.open(shared / "parity" / "newest" / "inputs" / "recipes.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return str(folder / "benchmarks" / "multi_node" / "srt-slurm-recipes")


def content(corpus: Path, kind: str, name: str) -> bytes:
    return gzip.decompress((corpus / kind / f"{name}.gz").read_bytes())


def test_buckets(corpus: Path, recipes: str, tmp_path: Path) -> None:
    listed = json.loads((corpus / "index.newest.json").read_text(encoding="utf-8"))
    changes = [change for change in listed if "migrated_configs" in change]
    assert len(changes) == 9
    compared = Counter[str]()
    for change in changes:
        place = tmp_path / change["commit"]
        place.mkdir()
        for name, digest in change["migrated_configs"].items():
            (place / f"{name}.yaml").write_bytes(content(corpus, "bytes", f"{digest}.yaml"))
        masters = [str(place / f"{name}.yaml") for name in ("amd-master", "nvidia-master")]
        space = open_workspace(str(place), masters=masters, runners=str(place / "runners.yaml"), recipes=[recipes])
        base, head = (content(corpus, "bytes", f"{change[side]}.yaml") for side in ("base", "head"))
        _, verdict = check(base, head, Context(stage=Stage.MERGE))
        for mode, options in MODES.items():
            plan, findings = plan_change(verdict, space, None, options)
            assert {finding.rule for finding in errors_of(findings)} <= CHECKED
            theirs = json.loads(content(corpus, "outputs", f"{change['processor'][mode]['output']}.json"))
            compare(theirs, buckets(plan), more=change["commit"][:8] in MORE_EVALS)
            compared[mode] += 1
    assert set(compared.values()) == {9}


def compare(theirs: dict[str, Any], ours: dict[str, Any], *, more: bool) -> None:
    assert ours["changelog_metadata"]["entries"] == theirs["changelog_metadata"]["entries"]
    assert ours.keys() == theirs.keys()
    for bucket in ("single_node", "multi_node"):
        assert ours[bucket].keys() == theirs[bucket].keys()
        for workload, rows in theirs[bucket].items():
            assert list(map(canonical, ours[bucket][workload])) == list(map(canonical, rows))
    for bucket in ("evals", "agentic_evals", "multinode_evals", "multinode_agentic_evals"):
        mine, rows = (Counter(map(canonical, side[bucket])) for side in (ours, theirs))
        assert not rows - mine
        assert more or mine == rows


def canonical(row: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in row.items() if key not in OURS}, sort_keys=True)
