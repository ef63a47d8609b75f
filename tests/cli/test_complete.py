"""Completion as a shell asks for it: a real bash with the documented line, and what is kept between two Tabs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from matrix.cli.main import matrix, run
from tests.cli.support import MASTER, ROOT, cli, environment, repository

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE: Final = ROOT / "docs" / "completion.md"
SHELLS: Final = dict(re.findall(r"^\| (bash|zsh|fish).*\| `(.*)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
ASK: Final = """\
{line}
COMP_WORDS=({words}); COMP_CWORD={at}
_matrix_completion matrix
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ID: Final = "alpha--8k1k--tp8--c"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the shipped labels, and a cache of its own."""
    folder = repository(tmp_path / "r")
    shutil.copy(ROOT / "configs" / "labels.yaml", folder / "configs")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """What is offered for the last word of a command line, in this process."""

    def ask(*words: str) -> list[str]:
        for name, value in {"COMP_WORDS": " ".join(("matrix", *words)), "COMP_CWORD": str(len(words))}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("_MATRIX_COMPLETE", "bash_complete")
        assert run(matrix, [], prog="matrix") == 0
        monkeypatch.delenv("_MATRIX_COMPLETE")
        told = capsys.readouterr()
        assert told.err == ""
        return [line.partition(",")[2] for line in told.out.splitlines() if line]

    return ask


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A ``PATH`` with a command ``matrix`` that is this checkout's."""
    command = tmp_path / "bin" / "matrix"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m matrix "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return f"{command.parent}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["wh"], ["why", "why-not"]),
        (["why", "alpha--8"], [f"{ID}4", f"{ID}16", f"{ID}16--eval"]),
        (["expand", "--config-keys", "al"], ["alpha"]),
        (["expand", "--min"], ["--min-conc"]),
        (["why", "x", "--label", "full-sweep-f"], ["full-sweep-fail-fast"]),
    ],
)
@pytest.mark.usefixtures("here")
def test_bash_completes_with_the_documented_line(words: list[str], offered: list[str], path: str) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    script = ASK.format(line=SHELLS["bash"], words=" ".join(("matrix", *words)), at=len(words))
    result = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment(PATH=path), capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split() == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_another_shell_reads_the_documented_line(shell: str, path: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    line = SHELLS[shell]
    script = f"autoload -Uz compinit; compinit -D; {line}" if shell == "zsh" else line
    result = subprocess.run(
        [shell, "-c", script], env=environment(PATH=path), capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_every_documented_line_gives_the_script_of_its_shell(path: str) -> None:
    assert set(SHELLS) == {"bash", "zsh", "fish"}
    for shell, line in SHELLS.items():
        instruction = f"{shell}_source"
        assert f"_MATRIX_COMPLETE={instruction} matrix" in line.replace("\\", "")
        result = subprocess.run(
            ["matrix"],
            env=environment(PATH=path, _MATRIX_COMPLETE=instruction),
            executable=str(Path(path.partition(os.pathsep)[0]) / "matrix"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0
        assert f"_MATRIX_COMPLETE={shell}_complete" in result.stdout


@pytest.mark.usefixtures("here")
def test_what_each_place_of_a_line_offers(asked: Callable[..., list[str]]) -> None:
    assert asked("show", f"{ID}4") == [f"{ID}4"]
    assert asked("why-not", "") == [f"{ID}4", f"{ID}16", f"{ID}16--eval"]
    assert asked("check", "al") == ["alpha", f"{ID}4", f"{ID}16", f"{ID}16--eval"]
    assert asked("expand", "--framework", "") == ["sglang"]
    assert asked("expand", "--precision", "fp") == ["fp8"]
    assert asked("expand", "--model-prefix", "") == ["m"]
    assert asked("expand", "--runner-type", "mi") == ["mi355x"]
    assert asked("expand", "--seq-lens", "") == ["8k1k"]
    assert asked("expand", "--exp-names", "m_") == ["m_8k1k"]
    assert asked("why", "x", "--label", "sweep") == ["sweep-enabled"]
    assert asked("show", "beta") == []


@pytest.mark.usefixtures("here")
def test_of_several_words_the_last_is_completed(asked: Callable[..., list[str]]) -> None:
    assert asked("expand", "--ids", f"{ID}4,{ID}1") == [f"{ID}4,{ID}16", f"{ID}4,{ID}16--eval"]
    assert asked("expand", "--ids", f"{ID}4,{ID}4") == []


def test_an_edit_is_seen_at_the_next_tab(here: Path, asked: Callable[..., list[str]]) -> None:
    master = here / "configs" / "amd-master.yaml"
    assert asked("show", "") == [f"{ID}4", f"{ID}16", f"{ID}16--eval"]
    before = master.stat()
    master.write_text(MASTER.replace("[4, 16]", "[4, 32]"), encoding="utf-8")
    os.utime(master, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert before.st_size == master.stat().st_size
    assert asked("show", "") == [f"{ID}4", f"{ID}32", f"{ID}32--eval"]


def test_what_is_kept_is_what_is_read(here: Path, tmp_path: Path, asked: Callable[..., list[str]]) -> None:
    first = asked("show", "")
    kept = sorted((tmp_path / "cache" / "matrix-runner" / "words").iterdir())
    assert {file.name.partition("-")[2] for file in kept} >= {"id", "config-key", "label"}
    (ids,) = (file for file in kept if file.name.endswith("-id"))
    text = ids.read_text(encoding="utf-8")
    ids.write_text(f"{text}\nmarker", encoding="utf-8")
    assert asked("show", "mark") == ["marker"]
    for broken in (b"", b"nonsense", b"\xff\xfe", text.encode()[:40]):
        ids.write_bytes(broken)
        assert asked("show", "") == first
    (here / "configs" / "runners.yaml").touch()
    ids.write_text(f"{text}\nmarker", encoding="utf-8")
    assert asked("show", "mark") == []


def test_a_folder_that_cannot_be_written_costs_no_answer(
    here: Path, tmp_path: Path, asked: Callable[..., list[str]]
) -> None:
    (tmp_path / "cache").write_text("a file, not a folder", encoding="utf-8")
    assert here.is_dir()
    assert asked("show", f"{ID}4") == [f"{ID}4"]


def test_what_cannot_be_read_offers_nothing_and_says_nothing(here: Path, asked: Callable[..., list[str]]) -> None:
    (here / "configs" / "amd-master.yaml").write_text("alpha: [", encoding="utf-8")
    assert asked("show", "") == []
    (here / "configs" / "amd-master.yaml").unlink()
    assert asked("show", "") == []
    (here / "pyproject.toml").write_text("[tool.matrix", encoding="utf-8")
    assert asked("show", "") == []


def test_files_of_the_command_line_count(here: Path, asked: Callable[..., list[str]]) -> None:
    (here / "other.yaml").write_text(MASTER.replace("alpha", "omega"), encoding="utf-8")
    assert asked("show", "--config", "other.yaml", "om")[0] == "omega--8k1k--tp8--c4"
    assert asked("show", "om") == []


def test_a_broken_recipe_hides_no_id(here: Path, asked: Callable[..., list[str]]) -> None:
    (here / "configs" / "recipes").mkdir()
    (here / "configs" / "recipes" / "r.yaml").write_text("base: [", encoding="utf-8")
    text = MASTER.replace("conc-list", "srt-recipe: 'recipes/r.yaml:x', conc-list")
    (here / "configs" / "amd-master.yaml").write_text(text, encoding="utf-8")
    assert cli("expand").status == 1
    assert asked("show", "")[:2] == [f"{ID}4--x", f"{ID}16--x"]


def test_a_plan_offers_its_own_ids(here: Path, asked: Callable[..., list[str]]) -> None:
    rows = '{"id": "p--8k1k--tp8--c4", "runner": "r", "digest": "d"}'
    (here / "plan.json").write_text(f'{{"version": 1, "points": [{rows}]}}', encoding="utf-8")
    assert asked("job", "--plan", "plan.json", "--id", "") == ["p--8k1k--tp8--c4"]
    assert asked("job", "--plan", "none.json", "--id", "") == []


@pytest.mark.usefixtures("here")
def test_no_command_is_imported_to_name_the_commands() -> None:
    code = (
        "import sys; from matrix.cli.main import matrix, run; run(matrix, [], prog='matrix'); "
        "print(sorted(name for name in sys.modules if name.startswith('matrix.cli.')), 'yaml' in sys.modules)"
    )
    asking = {"_MATRIX_COMPLETE": "bash_complete", "COMP_WORDS": "matrix ", "COMP_CWORD": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment(**asking), capture_output=True, text=True, check=True
    )
    *commands, modules = result.stdout.splitlines()
    assert "plain,expand" in commands
    assert modules == "['matrix.cli.command', 'matrix.cli.main', 'matrix.cli.shells'] False"


@pytest.mark.usefixtures("here")
def test_a_known_id_is_offered_without_reading_yaml(asked: Callable[..., list[str]]) -> None:
    asked("show", "")
    code = (
        "import sys; from matrix.cli.main import matrix, run; run(matrix, [], prog='matrix'); "
        "print([name for name in ('yaml', 'json', 'hashlib', 'pathlib', 'tempfile') if name in sys.modules])"
    )
    asking = {"_MATRIX_COMPLETE": "bash_complete", "COMP_WORDS": f"matrix show {ID}4", "COMP_CWORD": "2"}
    result = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=environment(PYTHONPATH=os.pathsep.join([str(ROOT), *filter(None, sys.path)]), **asking),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines() == [f"plain,{ID}4", "[]"]
