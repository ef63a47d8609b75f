"""Which files a command reads: those it is given, those of [tool.matrix], those of the usual places upwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matrix.config.settings import Settings, find_settings
from tests.cli.support import MASTER, ROOT, RUNNERS, cli, repository

if TYPE_CHECKING:
    from pathlib import Path

EVERY_KEY = """\
[project]
name = "other"

[tool.matrix]
masters = ["bench/b.yaml", "bench/a.yaml"]
runners = "bench/r.yaml"
recipes = ["bench/recipes", "more"]
golden = "bench/golden"
evals = "bench/e.yaml"
changelog = "bench/log.yaml"
labels = "bench/l.yaml"
workflows = "bench/w"
repository = "our-org/our-repo"
budget-gpu-hours = 1.5
"""


def test_every_key_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(EVERY_KEY, encoding="utf-8")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    root = f"{below}/../.."
    assert find_settings(str(below)) == Settings(
        root=root,
        masters=(f"{root}/bench/b.yaml", f"{root}/bench/a.yaml"),
        runners=f"{root}/bench/r.yaml",
        recipes=(f"{root}/bench/recipes", f"{root}/more"),
        golden=f"{root}/bench/golden",
        evals=f"{root}/bench/e.yaml",
        changelog=f"{root}/bench/log.yaml",
        labels=f"{root}/bench/l.yaml",
        workflows=f"{root}/bench/w",
        repository="our-org/our-repo",
        budget_gpu_hours=1.5,
    )


def test_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path / "repo")
    for folder in ("configs/recipes", "configs/golden", "benchmarks/multi_node/srt-slurm-recipes", ".github/workflows"):
        (tmp_path / "repo" / folder).mkdir(parents=True)
    for file in ("configs/nvidia-master.yaml", "configs/evals.yaml", "configs/labels.yaml", "perf-changelog.yaml"):
        (tmp_path / "repo" / file).touch()
    monkeypatch.chdir(tmp_path / "repo")
    assert find_settings(".") == Settings(
        root=".",
        masters=("configs/amd-master.yaml", "configs/nvidia-master.yaml"),
        runners="configs/runners.yaml",
        recipes=("configs/recipes", "benchmarks/multi_node/srt-slurm-recipes"),
        golden="configs/golden",
        evals="configs/evals.yaml",
        changelog="perf-changelog.yaml",
        labels="configs/labels.yaml",
        workflows=".github/workflows",
    )
    monkeypatch.chdir(tmp_path / "repo" / "configs" / "recipes")
    assert find_settings(".").masters == ("../../configs/amd-master.yaml", "../../configs/nvidia-master.yaml")


def test_what_the_table_does_not_say_stands_in_its_usual_place(tmp_path: Path) -> None:
    repository(tmp_path / "repo")
    (tmp_path / "repo" / "pyproject.toml").write_text('[tool.matrix]\nrepository = "o/r"\n', encoding="utf-8")
    settings = find_settings(str(tmp_path / "repo"))
    assert settings.masters == (f"{tmp_path}/repo/configs/amd-master.yaml",)
    assert (settings.repository, settings.golden) == ("o/r", None)


def test_a_pyproject_without_the_table_is_passed_by(tmp_path: Path) -> None:
    repository(tmp_path / "repo")
    below = tmp_path / "repo" / "tools"
    below.mkdir()
    for text in ("[project]\nname = 'x'\n", "# see [tool.matrix]\n", "[tool.matrixes]\na = 1\n"):
        (below / "pyproject.toml").write_text(text, encoding="utf-8")
        assert find_settings(str(below)).root == f"{below}/.."


def test_the_nearest_repository_counts(tmp_path: Path) -> None:
    repository(tmp_path / "outer")
    repository(tmp_path / "outer" / "inner")
    (tmp_path / "outer" / "inner" / "deep").mkdir()
    assert find_settings(str(tmp_path / "outer" / "inner" / "deep")).root == f"{tmp_path}/outer/inner/deep/.."


def test_a_command_runs_from_anywhere_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = repository(tmp_path / "repo") / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert cli("expand", "--format", "ids").out == "alpha--8k1k--tp8--c4\nalpha--8k1k--tp8--c16\n"


def test_a_command_runs_in_somebody_else_s_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "m.yaml").write_text(MASTER, encoding="utf-8")
    (tmp_path / "bench" / "r.yaml").write_text(RUNNERS, encoding="utf-8")
    evals = (ROOT / "configs" / "evals.yaml").read_text(encoding="utf-8").replace("concurrency: 16", "concurrency: 17")
    (tmp_path / "bench" / "e.yaml").write_text(evals, encoding="utf-8")
    table = '[tool.matrix]\nmasters = ["bench/m.yaml"]\nrunners = "bench/r.yaml"\nevals = "bench/e.yaml"\n'
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "bench")
    rows = cli("expand", "--format", "json").rows
    assert [(row["id"], row["run-eval"]) for row in rows] == [
        ("alpha--8k1k--tp8--c4", False),
        ("alpha--8k1k--tp8--c16", False),
    ]
    broken = table.replace("m.yaml", "none.yaml")
    (tmp_path / "pyproject.toml").write_text(broken, encoding="utf-8")
    outcome = cli("expand")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("../bench/none.yaml: file-missing: this master config does not exist. fix: ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.matrix]\nmastrs = ['a']", "2:1: settings-key: [tool.matrix] has no key mastrs. fix: did you mean"),
        ("[tool.matrix]\nmasters-x = 1\nmasters = 'a'", "3:1: settings-value: [tool.matrix] masters is 'a', and it"),
        ("[tool.matrix]\nmasters = []", "2:1: settings-value: [tool.matrix] masters is [], and it takes a list"),
        ("[tool.matrix]\n\nrunners = ['a']", "3:1: settings-value: [tool.matrix] runners is ['a'], and it takes a"),
        ("[tool.matrix]\nbudget-gpu-hours = 0", "2:1: settings-value: [tool.matrix] budget-gpu-hours is 0, and"),
        ("[tool.matrix]\nbudget-gpu-hours = true", "2:1: settings-value: [tool.matrix] budget-gpu-hours is True"),
        ("[tool.matrix.masters]\na = 1", "1:1: settings-value: [tool.matrix] masters is {'a': 1}, and"),
        ("x = 1\n[[tool.matrix]]", "2:1: settings-value: [tool.matrix] is a list of tables"),
        ("[tool.matrix]\nmasters = [", "2:1: settings-toml: this is not valid TOML: invalid value."),
        ("[tool.matrix]\nmasters = ['a']\nmasters = ['a']", "3:16: settings-toml: this is not valid TOML: "),
    ],
)
def test_a_table_that_is_refused(text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path / "repo")
    (tmp_path / "repo" / "pyproject.toml").write_text(f"{text}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "repo")
    outcome = cli("expand")
    assert (outcome.status, outcome.out) == (1, "")
    assert f"pyproject.toml:{told}" in outcome.err


def test_all_faults_of_a_table_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.matrix]\nmastrs = 1\nrunners = 2\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert [line.split(" ")[1] for line in cli("expand").err.splitlines()] == ["settings-key:", "settings-value:"]


def test_nothing_is_named_and_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = cli("expand")
    assert (outcome.status, outcome.out) == (1, "")
    master, runners = outcome.err.splitlines()
    assert "no master config is named, and there is no configs/*-master.yaml in this folder or above it" in master
    assert "name it with --runners FILE, or in [tool.matrix]" in runners


def test_a_repository_without_masters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository(tmp_path / "repo") / "configs" / "amd-master.yaml").unlink()
    monkeypatch.chdir(tmp_path / "repo")
    (line,) = cli("expand").err.splitlines()
    assert "there is no configs/*-master.yaml in this folder." in line
