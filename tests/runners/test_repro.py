"""`repro`: commands that can be given as they are, and what is another one today."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

from click.testing import CliRunner

from matrix.workspace import open_workspace
from runners.cli.main import main
from runners.prepare import Wishes, prepare
from runners.profile import find_profile
from runners.receipt import Receipt, Step
from runners.repro import commands
from runners.target import target_of
from tests.runners.standin import world

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_commands_of_repro_are_words_of_a_shell(tmp_path: Path) -> None:
    value = f"/a b/$(touch {tmp_path / 'obeyed'})'\"; exit 3"
    inputs = {"workspace-commit": "c", "repository-commit": "d", "variables": {"LOCAL_ROOT": value}}
    receipt = Receipt(step=Step.ENDED, point={}, inputs=inputs, job={"workspace": value})
    lines = commands("an-id", "local", receipt)
    (export,) = [line for line in lines if line.startswith("export ")]
    script = f'{export}; printf %s "$LOCAL_ROOT"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == value
    assert shlex.split(lines[2]) == ["git", "-C", value, "checkout", "c"]
    assert not (tmp_path / "obeyed").exists()
    assert len(commands("an-id", "local", Receipt(step=Step.ENDED, point={}, inputs={"variables": [1]}))) == 2


def test_repro_names_the_commands_and_what_has_changed_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world(tmp_path, {"one": {"conc": 1}, "two": {"conc": 2}})
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    target = target_of(made.id("one"), open_workspace(str(made.checkout)))
    done = prepare(target, find_profile("local", "", made.env), made.checkout, made.env, Wishes())
    done.receipt.write(made.results / done.id)
    common = ["--repository", str(made.checkout), "--results", str(made.results)]
    same = CliRunner().invoke(main, ["repro", done.id, *common])
    assert same.exit_code == 0, same.output
    assert f"python -m runners launch {done.id} --cluster local" in same.stdout
    assert "nothing has changed since" in same.stderr
    recipe = made.checkout / "configs" / "recipes" / "t.yaml"
    recipe.write_text(recipe.read_text().replace("completed", "finished"))
    other = CliRunner().invoke(main, ["repro", str(made.results / done.id / "receipt.json"), *common])
    changed = [line.strip().split(":")[0] for line in other.stderr.splitlines()[1:]]
    assert changed == ["digest", "recipe"]
    alone = CliRunner().invoke(main, ["repro", made.id("two", 2), "--cluster", "local", *common])
    assert "has not been launched from here" in alone.stderr
    assert CliRunner().invoke(main, ["repro", "no/such/receipt.json", *common]).exit_code == 1
