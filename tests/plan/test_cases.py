"""The public failure stories that need configs (keys, append-only, several faults at once), as real changes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.changelog.support import Repository

if TYPE_CHECKING:
    from pathlib import Path

STORIES = {
    "C14/ok": (0, []),
    "C18/link_fix": (0, []),
    "C21/deleted_key": (1, ["delta-fp4-mi355x-vllm-agentic, and this diff removes it"]),
    "C21/unknown_and_no_link": (1, ["did you mean delta-fp4-mi355x-vllm-agentic", "has no pr-link"]),
    "C24/add_point": (0, []),
    "C24/removes_point": (1, ["concurrency 32 is gone"]),
    "C24/image_changed": (1, ["image changed from example/sglang:1 to example/sglang:2"]),
    "C24/other_config_touched": (1, ["delta-fp4-mi355x-vllm-agentic changed"]),
    "C24/nothing_added": (1, ["no point was added"]),
}


@pytest.fixture(params=STORIES)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def change(shared: Path, tmp_path: Path, name: str) -> Repository:
    """The story as a branch; what a story has no configs for gets those of another one."""
    stem = shared / "cases" / name
    scratch = Repository(tmp_path / "scratch")
    for side in ("base", "head"):
        masters = stem.with_name(f"{stem.name}.amd-{side}.yaml")
        if not masters.exists():
            masters = shared / "cases" / "C24" / "add_point.amd-base.yaml"
        scratch.write(masters.read_bytes(), "configs/amd-master.yaml")
        scratch.write((shared / "cases" / "C24" / "R.yaml").read_bytes(), "configs/runners.yaml")
        scratch.commit(stem.with_name(f"{stem.name}.{side}.yaml").read_bytes())
        if side == "base":
            scratch.git("switch", "--quiet", "--create", "feature")
    return scratch


@pytest.mark.parametrize("door", [(), ("--worktree",), ("--merge",)], ids=["pull request", "hook", "merge"])
def test_one_verdict_and_one_report(change: Repository, name: str, door: tuple[str, ...]) -> None:
    status, phrases = STORIES[name]
    command = (sys.executable, "-m", "matrix", "changelog", "check", "--pr", "77")
    output = change.run(*command, *door, status=status)
    assert len(output.splitlines()) == max(1, len(phrases))
    for phrase in phrases:
        assert phrase in output


def test_an_addition_runs_its_one_point_and_no_evals(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "C24"
    texts = [case / f"add_point.{side}.yaml" for side in ("base", "head", "amd-base", "amd-head")]
    files = dict(zip(("--base-file", "--head-file", "--base-config", "--config"), map(str, texts), strict=True))
    words = [word for pair in files.items() for word in pair]
    scratch = Repository(tmp_path / "empty")
    output = scratch.run(
        sys.executable, "-m", "matrix", "plan", *words, "--runners", str(case / "R.yaml"), "--format", "json"
    )
    (row,) = json.loads(output)["points"]
    assert (row["conc"], row["run-eval"], row["id"]) == (48, False, "alpha-fp8-mi355x-sglang--8k1k--tp8--c48")
