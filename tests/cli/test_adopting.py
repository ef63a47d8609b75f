"""docs/adopting.md: its commands run from top to bottom, and print what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from matrix.forge import ForgeRule
from tests.changelog.support import ROOT, Repository, environment

if TYPE_CHECKING:
    from pathlib import Path

PAGE: Final = (ROOT / "docs" / "adopting.md").read_text(encoding="utf-8")
GAP: Final = "…"


class Step(NamedTuple):
    """Commands, and what the page shows of their output; None where it shows nothing."""

    command: str
    shown: str | None


def steps() -> list[Step]:
    found = []
    for kind, block in re.findall(r"^```(sh|console)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        if kind == "sh":
            found.append(Step(block, None))
            continue
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append(Step(command, shown))
    return found


def matches(shown: str, printed: str) -> bool:
    lines = [".*" if line == GAP else re.escape(line) for line in shown.rstrip("\n").split("\n")]
    return re.fullmatch("\n".join(lines), printed.rstrip("\n"), flags=re.DOTALL) is not None


class Stranger:
    """Somebody with a shell, an empty folder, and a repository on GitHub, which is a folder beside it."""

    def __init__(self, folder: Path) -> None:
        remote = Repository(folder / "remote", "--bare")
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.where = folder / "home"
        self.where.mkdir()
        self.state = folder / "cwd"
        settings = folder / "gitconfig"
        address = "https://github.com/org/bench.git"
        settings.write_text(f'[url "file://{remote.folder}"]\n\tinsteadOf = {address}\n', encoding="utf-8")
        self.environment = {**environment(), "GIT_CONFIG_GLOBAL": str(settings), "COLUMNS": "120"}
        self.environment["PATH"] = f"{self.programs}:{self.environment['PATH']}"
        install = "".join(
            f'printf \'#!/bin/sh\\nexec "{sys.executable}" -m matrix{words} "$@"\\n\' > {self.programs}/{name}\n'
            f"chmod +x {self.programs}/{name}\n"
            for name, words in {"matrix": "", "validate_perf_changelog": " changelog check"}.items()
        )
        pip = self.programs / "pip"
        pip.write_text(f'#!/bin/sh\n[ "$*" = "install matrix-runner" ] || exit 1\n{install}', encoding="utf-8")
        pip.chmod(0o755)

    def types(self, command: str) -> tuple[int, str]:
        """Status and output; a change of folder lasts."""
        script = f"trap 'pwd > {self.state}' EXIT\n{command}"
        result = subprocess.run(
            ["sh", "-eu", "-c", script],
            cwd=self.where,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.where = type(self.where)(self.state.read_text(encoding="utf-8").strip())
        return result.returncode, result.stdout


def test_a_stranger_gets_through(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path)
    for step in steps():
        status, printed = stranger.types(step.command)
        refused = step.shown is not None and step.shown.startswith("refuse:")
        assert status == int(refused), f"{step.command}\n{printed}"
        if step.shown is not None:
            assert matches(step.shown, printed), f"{step.command}\n{printed}"
    assert stranger.where.name == "bench"
    assert stranger.types("git status --porcelain")[1] == "?? event.json\n"
    assert stranger.types("git log --format=%s origin/more-users")[1].count("\n") == 3


def test_the_page_has_every_kind_of_step() -> None:
    commands = "\n".join(step.command for step in steps())
    wanted = ["pip install", "matrix init", "matrix check", "matrix expand", "matrix workflows check", "matrix plan"]
    wanted += ["validate_perf_changelog", "matrix simulate", "git push"]
    assert [name for name in wanted if name not in commands] == []


def test_a_wrong_line_would_be_seen() -> None:
    assert matches("a\n…\nc\n", "a\nb\nb\nc\n")
    assert not matches("a\n…\nd\n", "a\nb\nc\n")


def test_the_table_has_every_rule() -> None:
    assert set(re.findall(r"^\| `(github-[a-z]+)`", PAGE, re.MULTILINE)) == {rule.value for rule in ForgeRule}


def test_every_refusal_of_a_reuse_has_its_answer() -> None:
    text = (ROOT / "matrix" / "plan" / "reuse.py").read_text(encoding="utf-8")
    assert set(re.findall(r"\(`(reuse-[a-z-]+)`\)", PAGE)) == set(re.findall(r'"(reuse-[a-z-]+)"', text))


def test_the_table_of_files_names_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matrix.skeleton import pieces

    monkeypatch.chdir(tmp_path)
    named = re.findall(r"^\| `([^`]+)` \|", PAGE.partition("## Make it yours")[0], re.MULTILINE)
    paths = [piece.path for piece in pieces(tmp_path, None)] + [".github/workflows/run-sweep.yml"]
    assert [path for path in paths if not any(path == name or path.startswith(name) for name in named)] == []
    assert [name for name in named if not any(path.startswith(name) for path in paths)] == []
