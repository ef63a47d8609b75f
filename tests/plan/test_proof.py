"""Both revisions of the configs, from git, from the working tree and from files; and the commands over them."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest

from matrix.cli.changelog import check
from matrix.cli.main import run
from matrix.cli.plan import plan
from tests.changelog.support import BASE, HISTORY, Repository, entry, log
from tests.plan.support import RECIPE, RUNNERS, added, commit, files, multi, of, single

if TYPE_CHECKING:
    from pathlib import Path

A = single("a", "[4, 16]")
WIDER = single("a", "[4, 16, 32]")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """On ``main`` a search space and its log; ``feature`` begins there."""
    scratch = Repository(tmp_path / "scratch")
    commit(scratch, A)
    scratch.git("switch", "--quiet", "--create", "feature")
    monkeypatch.chdir(scratch.folder)
    return scratch


class Result:
    def __init__(self, capfd: pytest.CaptureFixture[str], status: int) -> None:
        self.status = status
        self.out, self.err = capfd.readouterr()


@pytest.fixture
def validate(capfd: pytest.CaptureFixture[str]) -> type:
    class Validate(Result):
        def __init__(self, *args: str) -> None:
            super().__init__(capfd, run(check, args, prog="validate_perf_changelog"))

    return Validate


@pytest.fixture
def planning(capfd: pytest.CaptureFixture[str]) -> type:
    class Planning(Result):
        def __init__(self, *args: str) -> None:
            super().__init__(capfd, run(plan, args, prog="matrix plan"))

    return Planning


def test_a_right_change(repository: Repository, validate: type) -> None:
    commit(repository, WIDER, added(of("a")))
    result = validate()
    assert (result.status, result.err) == (0, "")
    assert result.out == "perf-changelog.yaml against main:perf-changelog.yaml: 1 entry added, 4 jobs, 4 nodes.\n"


def test_the_working_tree_is_not_read(repository: Repository, validate: type, planning: type) -> None:
    commit(repository, WIDER, added(of("a")))
    repository.write(b"scribble", "configs/amd-master.yaml")
    repository.write(b"scribble", "configs/runners.yaml")
    repository.write(b"scribble", "perf-changelog.yaml")
    assert validate().status == 0
    assert planning().status == 0
    assert validate("--worktree").status == 1
    assert repository.git("status", "--porcelain").count("\n") == 3


def test_what_lies_in_the_working_tree(repository: Repository, validate: type) -> None:
    for name, text in files(WIDER).items():
        repository.write(text.encode(), name)
    result = validate("--worktree")
    assert result.status == 1
    assert result.err.startswith("configs/amd-master.yaml:1:1: changelog-uncovered: a changed (1 point added")
    repository.write(added(of("a")))
    assert validate("--worktree").status == 0


def test_every_fault_of_log_and_configs_in_one_report(repository: Repository, validate: type) -> None:
    broken = entry("aa").rsplit("\n", 1)[0]
    commit(repository, WIDER, BASE + log(broken))
    result = validate("--pr", "77")
    assert result.status == 1
    assert result.out == ""
    rules = [line.split(": ")[1] for line in result.err.splitlines()]
    assert rules == ["changelog-uncovered", "changelog-separator", "changelog-field", "changelog-key"]


def test_paths_are_those_of_the_repository(repository: Repository, validate: type) -> None:
    commit(repository, WIDER.replace("cluster:mi355x-a", "nowhere"), added(of("a")))
    result = validate()
    assert result.err.startswith("configs/amd-master.yaml:7:11: runner-unknown: ")
    assert "matrix-" not in result.err


def test_configs_that_the_head_breaks(repository: Repository, validate: type, planning: type) -> None:
    commit(repository, WIDER.replace("tp: 8", "tp: eight"), added(of("a")))
    for result in (validate(), planning()):
        assert result.status == 1
        assert result.err.startswith("configs/amd-master.yaml:14:18: ")


def test_configs_that_the_base_broke(repository: Repository, validate: type) -> None:
    repository.git("switch", "--quiet", "main")
    commit(repository, A.replace("tp: 8", "tp: eight"))
    repository.git("switch", "--quiet", "--create", "mending")
    commit(repository, A, added(of("a")))
    result = validate()
    assert result.status == 0
    assert "base-configs" in result.err
    assert "main:configs/amd-master.yaml:14:18" in result.err


def test_a_repository_that_had_no_configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validate: type) -> None:
    scratch = Repository(tmp_path / "young")
    scratch.commit(BASE)
    scratch.git("switch", "--quiet", "--create", "feature")
    monkeypatch.chdir(scratch.folder)
    commit(scratch, A, added(of("a")))
    assert "omega changed (it is new, with 3 points)" in validate().err
    commit(scratch, A, added(of("a\n    - omega\n    - sigma")))
    assert validate().status == 0


def test_a_repository_without_configs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validate: type, planning: type
) -> None:
    scratch = Repository(tmp_path / "none")
    scratch.commit(BASE)
    scratch.git("switch", "--quiet", "--create", "feature")
    monkeypatch.chdir(scratch.folder)
    scratch.commit(added(of("a")))
    result = validate()
    assert result.status == 0
    assert "config keys were not checked" in result.out
    assert planning().status == 2


@pytest.mark.usefixtures("repository")
def test_nothing_changed(validate: type, planning: type) -> None:
    result = validate()
    assert (result.status, result.err) == (0, "")
    assert "no config changed without an entry. Nothing to check." in result.out
    nothing = planning("--format", "json")
    assert nothing.status == 3
    assert "nothing to run: no entry was added" in nothing.err
    assert json.loads(nothing.out)["reason"] == "no entry was added"
    assert planning("--allow-empty").status == 0


def test_a_corrected_link(repository: Repository, validate: type, planning: type) -> None:
    repository.commit(BASE.replace(b"pull/12", b"pull/14"))
    assert "1 link corrected, nothing to run" in validate().out
    assert planning().status == 3


def test_a_bare_repository(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planning: type
) -> None:
    commit(repository, WIDER, added(of("a")))
    repository.git("clone", "--quiet", "--bare", str(repository.folder), str(tmp_path / "bare.git"))
    monkeypatch.chdir(tmp_path / "bare.git")
    result = planning("--base-ref", "main", "--head-ref", "feature", "--format", "json")
    assert result.status == 0
    assert json.loads(result.out)["cost"]["jobs"] == 4


def test_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validate: type, planning: type) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {"old.yaml": BASE, "new.yaml": added(of("b")), "a.yaml": A.encode(), "r.yaml": RUNNERS.encode()}
    texts["b.yaml"] = (A + single("b")).encode()
    for name, data in texts.items():
        (tmp_path / name).write_bytes(data)
    pair = ("--base-file", "old.yaml", "--head-file", "new.yaml")
    assert "config keys were not checked" in validate(*pair).out
    result = validate(*pair, "--config", "a.yaml", "--runners", "r.yaml")
    assert result.status == 1
    assert "changelog-key: entry 4 names the config key b" in result.err
    both = (*pair, "--config", "b.yaml", "--base-config", "a.yaml", "--runners", "r.yaml")
    assert validate(*both).status == 0
    assert json.loads(planning(*both, "--format", "json").out)["base"] is None


def test_settings_of_the_revision(repository: Repository, validate: type) -> None:
    """``[tool.matrix]`` of the commit decides, not the working tree's."""
    repository.git("mv", "configs", "space")
    table = '[tool.matrix]\nmasters = ["space/amd-master.yaml"]\nrunners = "space/runners.yaml"\n'
    table += 'recipes = ["space/recipes"]\n'
    repository.write(table.encode(), "pyproject.toml")
    repository.commit()
    assert "Nothing to check" in validate().out
    wider = WIDER + single("omega") + single("sigma")
    repository.write(wider.encode(), "space/amd-master.yaml")
    repository.commit()
    assert "space/amd-master.yaml:1:1: changelog-uncovered: a changed" in validate().err


def test_a_configuration_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validate: type) -> None:
    scratch = Repository(tmp_path / "mono")
    for name, text in files(A).items():
        scratch.write(text.encode(), f"bench/{name}")
    scratch.commit(BASE, "bench/perf-changelog.yaml")
    scratch.git("switch", "--quiet", "--create", "feature")
    for name, text in files(WIDER).items():
        scratch.write(text.encode(), f"bench/{name}")
    scratch.commit()
    monkeypatch.chdir(scratch.folder / "bench")
    assert "bench/configs/amd-master.yaml:1:1: changelog-uncovered" in validate().err
    scratch.commit(added(of("a")), "bench/perf-changelog.yaml")
    assert validate().status == 0


def test_recipes_of_both_revisions(repository: Repository, validate: type, planning: type) -> None:
    space = A + multi("m", (1, "[4]", "override_a"), recipe="r.yaml")
    repository.git("switch", "--quiet", "main")
    commit(repository, space)
    repository.git("switch", "--quiet", "--create", "recipe")
    other = {"configs/recipes/r.yaml": RECIPE.replace('"4"', '"5"')}
    commit(repository, space, BASE, **other)
    assert "m changed (1 point changed" in validate().err
    commit(repository, space, added(of("m")), **other)
    assert validate().status == 0
    rows = json.loads(planning("--format", "json").out)["points"]
    assert [row["recipe"] for row in rows] == ["recipes/r.yaml:override_a"]


def test_a_deliberate_exception_is_printed(repository: Repository, validate: type, planning: type) -> None:
    commit(repository, WIDER)
    waiver = ("--allow-uncovered", "a*", "the same bytes, rebuilt")
    result = validate(*waiver)
    assert result.status == 0
    assert "a* may change without an entry: the same bytes, rebuilt" in result.err
    assert planning(*waiver, "--allow-empty").status == 0


def test_a_branch_that_is_behind(repository: Repository, validate: type) -> None:
    repository.git("switch", "--quiet", "main")
    commit(repository, WIDER, added(of("a", no_evals="true")))
    repository.git("switch", "--quiet", "feature")
    repository.commit(log(*HISTORY, entry("a", link=78)))
    result = validate("--base-ref", "main")
    assert result.status == 1
    assert "git-behind: " in result.err
    assert "git rebase main" in result.err


def test_git_is_asked_in_one_process(repository: Repository, validate: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the merge base, which no object tells."""
    commit(repository, WIDER, added(of("a")))
    started = []
    popen = subprocess.Popen

    def spy(command: list[str], **more: Any) -> subprocess.Popen[bytes]:
        started.append(command[:3])
        return popen(command, **more)

    monkeypatch.setattr(subprocess, "Popen", spy)
    assert validate("--base-ref", "main").status == 0
    assert started == [["git", "cat-file", "--batch"], ["git", "merge-base", ANY]]


def test_formats(repository: Repository, validate: type, planning: type) -> None:
    commit(repository, WIDER, added(entry("aa", "100% of it.")))
    record = json.loads(validate("--format", "json").out)
    assert (record["version"], record["change"], record["jobs"]) == (1, "additions", 0)
    assert [finding["rule"] for finding in record["findings"]] == ["changelog-uncovered", "changelog-key"]
    lines = validate("--format", "github").out.splitlines()
    assert lines[1].startswith("::error file=perf-changelog.yaml,line=20,col=7,title=changelog-key::entry 4 names ")
    commit(repository, WIDER, added(of("a")))
    assert "a\n  org/a  fp8  sglang  cluster:mi355x-a  4 jobs, 4 nodes, 1 evaluated\n" in planning().out
    assert [len(rows) for rows in json.loads(planning("--format", "buckets").out)["single_node"].values()] == [3]
    record = json.loads(planning("--format", "json", "--trim-conc").out)
    assert [one["rule"] for one in record["left-out"]] == ["trim-conc", "trim-conc"]
    assert record["head"]["commit"] == repository.git("rev-parse", "HEAD").strip()


WRONG_WORDS = [
    ["--base-file", "x"],
    ["--base-file", "x", "--head-file", "y", "--base-ref", "main"],
    ["--worktree", "--head-ref", "HEAD"],
    ["--repository", "nobody"],
    ["--pr", "0"],
    ["--allow-uncovered", "a*"],
    ["--format", "yaml"],
]


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("words", WRONG_WORDS, ids=" ".join)
def test_a_wrong_command_line(validate: type, words: list[str]) -> None:
    result = validate(*words)
    assert (result.status, result.out) == (2, "")
    assert "Error: " in result.err


@pytest.mark.usefixtures("repository")
def test_a_missing_file(validate: type) -> None:
    result = validate("--base-file", "perf-changelog.yaml", "--head-file", "nope.yaml")
    assert result.status == 1
    assert result.err.startswith("nope.yaml: file-missing: ")


def test_a_missing_recipe_brings_the_near_names_of_the_commit(repository: Repository, validate: type) -> None:
    commit(repository, A + multi("m", (1, "[4]", "override_a"), recipe="deep/r.yaml"), added(of("m")))
    result = validate()
    assert result.status == 1
    assert "recipe-missing" in result.err
    assert "did you mean r.yaml?" in result.err


def test_recipes_behind_symbolic_links(repository: Repository, validate: type) -> None:
    space = A + multi("m", (1, "[4]", "override_a"), recipe="there/r.yaml")
    there = repository.folder / "configs" / "recipes" / "there"
    there.mkdir(parents=True)
    (there / "r.yaml").symlink_to("../r.yaml")
    commit(repository, space, added(of("m")))
    assert validate().status == 0


def test_links_that_leave_the_repository_are_not_followed(
    repository: Repository, validate: type, tmp_path: Path
) -> None:
    space = A + multi("m", (1, "[4]", "override_a"), (1, "[8]", "override_a"), recipe="away.yaml")
    (tmp_path / "secret.yaml").write_text("token: hush\n", encoding="utf-8")
    away = repository.folder / "configs" / "recipes" / "away.yaml"
    away.parent.mkdir(parents=True, exist_ok=True)
    for target in (str(tmp_path / "secret.yaml"), "../../../secret.yaml"):
        away.unlink(missing_ok=True)
        away.symlink_to(target)
        commit(repository, space, added(of("m")))
        result = validate()
        assert result.status == 1
        assert "recipe-missing" in result.err
        assert "hush" not in result.err


def test_the_repository_is_left_as_it_was(repository: Repository, planning: type, tmp_path: Path) -> None:
    commit(repository, WIDER, added(of("a")))
    before = sorted(path for path in tmp_path.rglob("*") if "/objects/" not in str(path))
    assert planning().status == 0
    assert sorted(path for path in tmp_path.rglob("*") if "/objects/" not in str(path)) == before
