"""The three things that have points, looked at in one way."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from matrix.answers.side import WORKING_TREE, open_side, open_sides
from matrix.config.reader import read
from matrix.errors import RefusedError
from matrix.plan.decision import Action, Decision
from matrix.plan.labels import Mode
from matrix.plan.selection import plan_selection
from matrix.plan.snapshot import Named
from matrix.plan.sweep import sweep_of
from matrix.points.evals import EvalMode
from matrix.points.pipeline import expand
from matrix.points.request import Filters, Request
from matrix.workspace import open_workspace
from tests.changelog.support import BASE, Repository
from tests.plan.support import commit, files, multi, single

if TYPE_CHECKING:
    from pathlib import Path

A = single("a", "[4, 16, 64]") + multi("m", (1, "[8, 32]", "override_a"), recipe="r.yaml")
WIDER = A.replace("[4, 16, 64]", "[4, 16, 64, 128]")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """``main`` is committed; the working tree has one concurrency more."""
    scratch = Repository(tmp_path / "scratch")
    commit(scratch, A)
    for name, text in files(WIDER).items():
        scratch.write(text.encode(), name)
    monkeypatch.chdir(scratch.folder)
    return scratch


@pytest.mark.usefixtures("repository")
def test_the_working_tree_as_expand_shows_it_and_the_accuracy_runs_it_marks() -> None:
    workspace = open_workspace()
    shown = list(expand(workspace.configs, workspace.facts, workspace.policy, Request()).points)
    accuracy = list(expand(workspace.configs, workspace.facts, workspace.policy, Request(evals_only=True)).points)
    with open_side(None) as side:
        assert side.name == WORKING_TREE
        assert list(side.ids) == [point.id for point in (*shown, *accuracy)]
        assert side.rows() == {point.id: point.row() for point in (*shown, *accuracy)}
        assert {name: side.digest(name) for name in side.ids} == {
            point.id: point.digest for point in side.points.values()
        }
        assert side.workspace is not None
    assert any(name.endswith("--eval") for name in side.ids)


def test_a_commit_is_read_from_git_alone(repository: Repository) -> None:
    repository.write(b"scribble", "configs/runners.yaml")
    with open_side("main") as side:
        ids = list(side.ids)
        rows = side.rows()
    commit_id = repository.git("rev-parse", "main").strip()
    assert side.name == f"main ({commit_id[:12]})"
    repository.git("checkout", "--quiet", "--", ".")
    with open_side(None) as side:
        assert (list(side.ids), side.rows()) == (ids, rows)
    assert not any("c128" in name for name in ids)


def test_a_commit_asked_for_from_a_folder_below(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_side("main") as side:
        ids = list(side.ids)
    monkeypatch.chdir(repository.folder / "configs")
    with open_side("main", Named(runners="runners.yaml")) as side:
        assert list(side.ids) == ids
    with open_side(repository.git("rev-parse", "main").strip()) as side:
        assert side.name == repository.git("rev-parse", "main").strip()[:12]


@pytest.mark.usefixtures("repository")
def test_a_plan_file_has_rows_alone(tmp_path: Path) -> None:
    mode = Mode("full-sweep", canary=True, fail_fast=False, trim=False)
    plan, _ = plan_selection(open_workspace(), Request(), mode)
    path = tmp_path / "plan.json"
    path.write_text(sweep_of(Decision(Action.RUN, "because", mode), plan).text(), encoding="utf-8")
    with open_side(str(path)) as written, open_side(None) as side:
        assert written.name == str(path)
        assert (written.points, written.workspace) == ({}, None)
        assert list(written.ids) == list(side.ids)
        assert [written.digest(name) for name in written.ids] == [side.digest(name) for name in side.ids]
        name = next(iter(written.ids))
        assert written.row(name) == json.loads(path.read_text())["points"][0]


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (Request(filters=Filters(config_keys=("a",)), evals=EvalMode.NONE), ["4", "16", "64", "128"]),
        (Request(filters=Filters(config_keys=("a",)), evals_only=True), ["64--eval", "128--eval"]),
        (Request(filters=Filters(config_keys=("a",)), trim=True), ["4", "4--eval"]),
        (Request(filters=Filters(config_keys=("a",)), smoke=True), ["4", "64--eval"]),
        (Request(ids=("a--8k1k--tp8--c16", "a--*--eval")), ["16", "64--eval", "128--eval"]),
    ],
)
def test_a_selection(request_: Request, expected: list[str]) -> None:
    with open_side(None, request=request_) as side:
        assert [name.removeprefix("a--8k1k--tp8--c") for name in side.ids] == expected


def test_a_commit_without_configs_has_no_points_and_says_so(repository: Repository) -> None:
    repository.git("rm", "--quiet", "-r", "-f", "configs")
    first = repository.commit(BASE)
    with open_side(first) as side:
        assert (list(side.ids), side.workspace) == ([], None)
    assert [finding.rule for finding in side.findings] == ["side-empty"]


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (("tp: 8, conc", "tp: eight, conc"), "main:configs/amd-master.yaml:14:18: "),
        (("r.yaml:override_a", "missing.yaml:override_a"), "main:configs/amd-master.yaml:"),
    ],
)
def test_what_is_wrong_with_a_commit_names_ref_file_and_line(
    repository: Repository, edit: tuple[str, str], place: str
) -> None:
    commit(repository, A.replace(*edit))
    try:
        with open_side("main") as side:
            told = list(side.findings)
    except RefusedError as error:
        told = list(error.findings)
    assert str(told[0]).startswith(place)
    assert "matrix-" not in str(told)


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("word", ["nowhere", "missing.json", "configs"])
def test_a_word_that_names_nothing(word: str) -> None:
    with pytest.raises(RefusedError), open_side(word):
        pass


def test_outside_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError) as refused, open_side("main"):
        pass
    assert refused.value.findings[0].rule == "git-repository"
    assert subprocess.run(["git", "rev-parse"], cwd=tmp_path, capture_output=True, check=False).returncode


def test_what_is_equal_on_both_sides_is_parsed_once(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def count(data: bytes, name: str, **options: bool) -> Any:
        parsed.append(name.rpartition("/")[2])
        return read(data, name, **options)

    monkeypatch.setattr("matrix.config.source.read", count)
    commit(repository, WIDER)
    with open_sides("main~1", "main") as (before, after, unchanged):
        assert len(after.ids) > len(before.ids)
        assert unchanged == {"m", "omega", "sigma"}
    assert sorted(parsed) == ["amd-master.yaml", "amd-master.yaml", "r.yaml", "runners.yaml"]
