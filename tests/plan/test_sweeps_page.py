"""docs/sweeps.md: its commands run, and print what the page says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from matrix.cli.main import matrix, run
from matrix.plan.labels import load_labels

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs/sweeps.md").read_text(encoding="utf-8")


def consoles(page: str) -> list[tuple[str, str]]:
    """Each command with the output that the page shows."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for part in block.split("$ matrix ")[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def test_commands_print_what_the_page_says(
    page: str, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (event,) = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "event.json").write_text(event, encoding="utf-8")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/labels.yaml").write_bytes((root / "configs/labels.yaml").read_bytes())
    (tmp_path / "configs/runners.yaml").write_text("labels: {}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    commands = consoles(page)
    assert len(commands) >= 10
    for command, output in commands:
        words, _, comment = command.partition("  # ")
        assert run(matrix, words.split(), prog="matrix") == (1 if comment == "exits 1" else 0), command
        assert capsys.readouterr().out == output, command


def test_set_up_commands_run(
    page: str, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/labels.yaml").write_bytes((root / "configs/labels.yaml").read_bytes())
    (tmp_path / "configs/runners.yaml").write_text("labels: {}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        assert run(matrix, line.split()[1:], prog="matrix") == 0, capsys.readouterr().err


def test_every_label_is_shown(page: str, root: Path) -> None:
    told = " ".join(command for command, _ in consoles(page))
    for name in load_labels(str(root / "configs/labels.yaml")).ours:
        assert f"--label {name}" in told
