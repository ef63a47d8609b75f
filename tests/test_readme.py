"""What README and its pages show is what the commands print: each console block is run and compared."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.changelog.support import Repository

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "why.md")
NOT_RUN = ("git clone", "make ")
EDIT = "sed -i "
GAP = "…"


def examples() -> list[tuple[tuple[str, ...], str, list[str]]]:
    """Each command with the edits above it in its block, and the lines shown below it."""
    found: list[tuple[tuple[str, ...], str, list[str]]] = []
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        edits: list[str] = []
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            if command.startswith(EDIT):
                assert not shown, "an edit prints nothing"
                edits.append(command)
            elif not command.startswith(NOT_RUN):
                found.append((tuple(edits), command, shown.rstrip("\n").split("\n")))
    return found


def edited(folder: Path, edits: tuple[str, ...]) -> Path:
    """A repository with the shipped configuration committed, and edited since."""
    scratch = Repository(folder)
    for name in ("pyproject.toml", "configs", "runners/srt-slurm/patches/series.yaml"):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    scratch.commit()
    for edit in edits:
        scratch.run(*shlex.split(edit))
    assert scratch.git("status", "--porcelain").count("\n") >= len(edits), "an edit that edits nothing"
    return folder


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the printed lines are the shown ones, where a line of ``…`` stands for any number of lines."""
    pattern = "\n".join(".*" if line == GAP else re.escape(line) for line in shown)
    return re.fullmatch(pattern, "\n".join(printed), flags=re.DOTALL) is not None


@pytest.mark.parametrize(
    ("edits", "command", "shown"), examples(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_example_prints_what_the_page_shows(
    tmp_path: Path, edits: tuple[str, ...], command: str, shown: list[str]
) -> None:
    words = shlex.split(command)
    assert words[:2] == ["python", "-m"], "README runs our modules"
    result = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=edited(tmp_path / "repository", edits) if edits else ROOT,
        env={**os.environ, "COLUMNS": "120", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert matches(shown, result.stdout.rstrip("\n").split("\n")), result.stdout


def test_there_are_examples_and_a_wrong_line_is_seen() -> None:
    assert len(examples()) >= 5
    assert matches(["a", GAP, "c"], ["a", "b", "b", "c"])
    assert not matches(["a", GAP, "d"], ["a", "b", "c"])


def test_every_page_that_readme_links_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert not missing
