"""The page for users: its commands print what it shows, and it names every rule."""

import re
import shlex
from pathlib import Path

import pytest

from matrix.cli.golden import golden
from matrix.cli.main import run

PROMPT = "    $ python -m matrix golden "


def examples(text: str) -> list[tuple[str, str]]:
    """Each command of the page with the indented lines that follow it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.partition("## Add a curve")[0].splitlines():
        if line.startswith(PROMPT):
            found.append((line.removeprefix(PROMPT), []))
        elif found and line.startswith("    "):
            found[-1][1].append(line.removeprefix("    "))
    return [(command, "".join(f"{line}\n" for line in shown)) for command, shown in found]


def counted(text: str) -> str:
    """Without the numbers that grow with the search space."""
    return re.sub(r"\d+ (curves|configs)", r"N \1", text)


def test_the_commands_print_what_the_page_shows(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    shown = examples((root / "docs" / "golden.md").read_text(encoding="utf-8"))
    assert len(shown) == 5
    for command, output in shown:
        assert run(golden, shlex.split(command), prog="matrix golden") == 0
        out, err = capsys.readouterr()
        assert (counted(out), err) == (counted(output), "")


def test_the_page_names_every_rule(root: Path) -> None:
    page = (root / "docs" / "golden.md").read_text(encoding="utf-8")
    modules = [*(root / "matrix" / "recipes").glob("*.py"), root / "matrix" / "checks" / "golden.py"]
    rules = {rule for file in modules for rule in re.findall(r'"(golden-[a-z-]+)"', file.read_text(encoding="utf-8"))}
    assert rules == set(re.findall(r"`(golden-[a-z-]+)`", page))
