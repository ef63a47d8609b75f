"""A recipe that pins an acceptance length of its own is refused before the merge, not only by `matrix check`."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from matrix.cli import main
from matrix.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

SEED = "dsv4/atom/mi355x-fp4/agentx/disagg-lmcache-dspark.yaml"
KEY = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark"
ENTRY = f"""
- config-keys:
    - {KEY}
  description:
    - "Run the five points again."
  pr-link: https://github.com/SemiAnalysisAI/InferenceX/pull/4000
"""


@pytest.mark.parametrize("pinned", [False, True])
def test_the_validator_refuses_a_pinned_length(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, pinned: bool
) -> None:
    monkeypatch.chdir(root)
    recipes = tmp_path / "recipes"
    shutil.copytree(root / "configs" / "recipes", recipes)
    recipe = recipes / SEED
    text = recipe.read_text(encoding="utf-8")
    assert "num-speculative-tokens: 3\n" in text
    if pinned:
        line = next(line for line in text.splitlines() if "num-speculative-tokens: 3" in line)
        indent = line[: len(line) - len(line.lstrip())]
        text = text.replace(f"{line}\n", f"{line}\n{indent}spec-decode-acceptance-length: 3.77\n")
        recipe.write_text(text, encoding="utf-8")
    base, head = tmp_path / "base.yaml", tmp_path / "head.yaml"
    log = (root / "perf-changelog.yaml").read_text(encoding="utf-8")
    base.write_text(log, encoding="utf-8")
    head.write_text(log + ENTRY, encoding="utf-8")
    files = ["--base-file", str(base), "--head-file", str(head), "--pr", "4000"]
    named = ["--config", "configs/amd-master.yaml", "--runners", "configs/runners.yaml", "--golden", "configs/golden"]
    status = run(main.matrix, ["changelog", "check", *files, *named, "--recipes", str(recipes)], prog="matrix")
    captured = capsys.readouterr()
    assert status == (1 if pinned else 0), captured.err
    assert ("3.77" in captured.err) is pinned
