"""`matrix diff` of what repositories come to as well: lost recipes, shallow clones, foreign plans, untracked files."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.answers.test_diff import A, M, Said, diff, lay, repository
from tests.plan.support import RECIPE, commit, single

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.changelog.support import Repository

__all__ = ["diff", "repository"]

FILE: Final = "configs/recipes/r.yaml"


def test_a_recipe_that_is_lost_is_one_line(repository: Repository, diff: Callable[..., Said]) -> None:
    (repository.folder / FILE).unlink()
    told = diff("HEAD")
    assert "recipe-missing" in told.err
    assert [line for line in told.lines if line.startswith("m: ")] == [
        "m: 2 changed; recipe: found -> not found (all 2 points)"
    ]
    assert len(told.lines) == 5
    repository.git("commit", "-aqm", "gone")
    assert "m: 2 changed; recipe: not found -> found (all 2 points)" in diff("HEAD..HEAD~1").lines


def test_a_recipe_that_is_named_no_more(repository: Repository, diff: Callable[..., Said]) -> None:
    both = single("s") + single("t").replace("{tp: 8,", "{tp: 8, srt-recipe: 'recipes/r.yaml:override_a',")
    lay(repository, both)
    repository.git("commit", "-aqm", "named")
    lay(repository, both.replace(" srt-recipe: 'recipes/r.yaml:override_a',", ""))
    told = diff("HEAD", "--format", "json").record()
    assert told["points"]["removed"] == told["points"]["added"] == 4
    lay(repository, both.replace("r.yaml:", "gone.yaml:"))
    (config,) = diff("HEAD", "--format", "json").record()["configs"]
    assert [(one["what"], one["old"], one["new"]) for one in config["differences"]] == [
        ("recipe", "found", "not found")
    ]


@pytest.mark.parametrize("ref", ["HEAD~1..HEAD", "HEAD^..", "main~1"])
def test_a_shallow_clone_is_told_to_fetch_the_rest(
    ref: str, repository: Repository, diff: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, A.replace("i:1", "i:2"))
    shallow = tmp_path / "shallow"
    source = f"file://{repository.folder}"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", source, str(shallow)], check=True)
    monkeypatch.chdir(shallow)
    told = diff(ref)
    assert (told.status, told.out) == (1, "")
    assert "This clone is shallow. fix: git fetch --unshallow" in told.err
    subprocess.run(["git", "fetch", "--quiet", "--unshallow", "origin"], cwd=shallow, check=True)
    assert diff(ref).status == 0


@pytest.mark.parametrize(
    "ref", ["HEAD~1..", "HEAD~1..HEAD", "HEAD~1...HEAD", "@~1..@", "main~1..main", "v1..", "HEAD~1"]
)
def test_every_spelling_of_a_range_is_the_same(ref: str, repository: Repository, diff: Callable[..., Said]) -> None:
    repository.git("tag", "v1")
    before = repository.git("rev-parse", "HEAD").strip()
    commit(repository, A.replace("[4, 16, 64]", "[4, 16]"))
    told, plain = (diff(one, "--format", "json").record() for one in (ref, f"{before}..HEAD"))
    assert told["points"]["removed"] > 0
    names = ("before", "after")
    assert {key: told[key] for key in told if key not in names} == {
        key: plain[key] for key in plain if key not in names
    }


def test_a_range_the_other_way_round_adds_what_it_removed(repository: Repository, diff: Callable[..., Said]) -> None:
    commit(repository, A.replace("[4, 16, 64]", "[4, 16]"))
    there, back = (diff(ref, "--format", "json").record() for ref in ("HEAD~1..", "..HEAD~1"))
    assert there["points"]["removed"] == back["points"]["added"] > 0
    assert there["jobs"] == back["jobs"][::-1]


def test_untracked_files_that_no_setting_names_change_nothing(
    repository: Repository, diff: Callable[..., Said]
) -> None:
    (repository.folder / "configs" / "nvidia-master.bak").write_text("junk: [", encoding="utf-8")
    (repository.folder / "configs" / "recipes" / "junk.yaml").write_text("junk: [", encoding="utf-8")
    assert diff("HEAD").lines == ["no change of any job"]


def test_an_untracked_master_of_the_usual_name_is_one_more(repository: Repository, diff: Callable[..., Said]) -> None:
    lay(repository, A + M.replace("m:", "n:", 1))
    told = diff("HEAD")
    assert told.status == 0
    assert any(line.startswith("n: new config") for line in told.lines), told.lines


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"version": 2, "points": []}', "plan-version"),
        ('{"version": 1}', "plan"),
        ("[]", "plan-version"),
        ("", "plan-json"),
        ('{"version": 1, "points": [', "plan-json"),
        ('{"version": 1, "points": [{"id": "x"}]}', "plan"),
        ('{"version": 1, "points": [1]}', "plan"),
        ("\x00", "plan-json"),
    ],
)
def test_a_file_that_is_no_plan_of_this_version_is_refused(
    text: str, rule: str, repository: Repository, diff: Callable[..., Said]
) -> None:
    assert repository.folder.is_dir()
    Path("p.json").write_text(text, encoding="utf-8")
    told = diff("p.json..HEAD")
    assert (told.status, told.out) == (1, "")
    assert told.err.startswith("p.json: ")
    assert rule in told.err
    assert "fix:" in told.err


def test_a_folder_below_the_root_asks_the_same(
    repository: Repository, diff: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(repository, recipe=RECIPE.replace('"4"', '"5"'))
    whole = diff("HEAD", "--format", "json").record()
    monkeypatch.chdir(repository.folder / "configs")
    assert diff("HEAD", "--format", "json").record() == whole


def test_a_repository_without_a_commit(
    tmp_path: Path, diff: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(tmp_path / "new")], check=True)
    monkeypatch.chdir(tmp_path / "new")
    told = diff()
    assert (told.status, told.out) == (1, "")
    assert "Traceback" not in told.err
    assert "fix:" in told.err


def test_a_side_without_a_master_has_no_points(repository: Repository, diff: Callable[..., Said]) -> None:
    shutil.rmtree(repository.folder / "configs")
    repository.git("commit", "-aqm", "gone")
    told = diff("HEAD~1..HEAD", "--format", "json")
    assert told.status == 0
    assert json.loads(told.out)["points"]["removed"] > 0


OTHERS: Final = ("HEAD:configs/amd-master.yaml", "HEAD^{tree}", "tagged", "configs/amd-master.yaml", "configs")
NOTHING: Final = ("--output=x", "-x", "a b", "HEAD\nx", "tagge")


@pytest.mark.parametrize("ref", [*OTHERS, *NOTHING])
def test_what_names_no_commit_is_refused_and_told_what_does(
    ref: str, repository: Repository, diff: Callable[..., Said]
) -> None:
    repository.git("tag", "tagged", "HEAD^{tree}")
    for asked in (ref, f"{ref}..HEAD"):
        told = diff("--", asked)
        assert (told.status, told.out) == (1, "")
        assert told.err.startswith("git-ref: ")
        assert ("fix: name a commit, as HEAD~1, or a branch" in told.err) == (ref in OTHERS)
    assert not (repository.folder / "x").exists()
