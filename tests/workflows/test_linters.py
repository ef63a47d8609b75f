"""Linters of others over our workflows: GitHub's schema, zizmor, actionlint. None of them asks the network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from matrix.plan.labels import load_labels
from matrix.plan.workflows import render

if TYPE_CHECKING:
    from collections.abc import Sequence

LINTERS: Final = {
    "check-jsonschema": ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
    "zizmor": ("zizmor", "--offline", "--no-progress", "--no-config", "--persona=regular"),
    "actionlint": ("actionlint", "-shellcheck=", "-pyflakes="),
}

PLANTED: Final = {
    "check-jsonschema": "on: push\njobs:\n  a:\n    runs-on: x\n    step: []\n",
    "zizmor": "on: pull_request_target\njobs:\n  a:\n    runs-on: x\n    steps: [{run: 'x ${{ github.head_ref }}'}]\n",
    "actionlint": "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    needs: b\n    steps:\n      - run: echo\n",
}  # fmt: skip


def linted(linter: str, files: Sequence[Path]) -> subprocess.CompletedProcess[str]:
    name, *options = LINTERS[linter]
    program = Path(sys.executable).with_name(name)
    assert program.exists(), f"{name} is missing: pip install -e '.[dev]'"
    command = [str(program), *options, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("linter", LINTERS)
def test_ours_are_clean(linter: str, root: Path) -> None:
    files = sorted((root / ".github/workflows").glob("*.yml"))
    assert len(files) >= 5
    result = linted(linter, files)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("linter", LINTERS)
def test_those_of_a_foreign_repository_are_clean(linter: str, root: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    for workflow in render(load_labels(str(root / "configs/labels.yaml")), tmp_path):
        (folder / workflow.name).write_text(workflow.text, encoding="utf-8")
    result = linted(linter, sorted(folder.iterdir()))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("linter", LINTERS)
def test_a_planted_fault_is_found(linter: str, tmp_path: Path) -> None:
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    (folder / "planted.yml").write_text(PLANTED[linter], encoding="utf-8")
    assert linted(linter, [folder / "planted.yml"]).returncode != 0
