"""`matrix init`: an empty repository that works in one go, and files that are there and stay as they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from matrix.cli.init import init
from matrix.cli.main import run
from matrix.errors import RefusedError
from matrix.skeleton import TEMPLATES, Fate, pieces, remote_repository, write
from tests.changelog.support import Repository
from tests.cli.support import Outcome, cli

if TYPE_CHECKING:
    from collections.abc import Callable

FILES: Final = {
    ".github/workflows/benchmark.yml",
    ".github/workflows/pull-request.yml",
    ".github/workflows/reuse.yml",
    ".github/workflows/run-sweep.yml",
    ".github/workflows/sweep-shard.yml",
    ".pre-commit-config.yaml",
    "configs/clusters/mi300x-example.yaml",
    "configs/example-master.yaml",
    "configs/golden/example.yaml",
    "configs/labels.yaml",
    "configs/recipes/qwen3-0.6b/sglang/mi300x-fp16/agentic.yaml",
    "configs/recipes/qwen3-0.6b/sglang/mi300x-fp16/agg.yaml",
    "configs/runners.yaml",
    "perf-changelog.yaml",
    "pyproject.toml",
}
EXAMPLE: Final = {name for name in FILES if name.startswith("configs/")} - {"configs/labels.yaml"}


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """An empty git repository, which is the working directory."""
    found = Repository(tmp_path / "empty")
    monkeypatch.chdir(found.folder)
    return found


def started(*words: str) -> Outcome:
    return cli("init", *words)


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and ".git" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def test_an_empty_repository_works_in_one_go(empty: Repository) -> None:
    assert started().status == 0
    assert contents(empty.folder).keys() == FILES
    checked = cli("check", "--strict")
    assert (checked.status, checked.err) == (0, "3 points, 1 config, 2 recipes: no finding\n")
    expanded = cli("expand", "--format", "ids")
    assert expanded.status == 0
    assert len(expanded.out.split()) == 3
    assert cli("workflows", "check").status == 0
    assert cli("golden", "check").status == 0
    assert cli("changelog", "check", "--worktree").status == 0
    empty.commit(message="begin")
    assert cli("changelog", "check").status == 0


def test_the_example_uses_each_of_its_files(empty: Repository) -> None:
    started()
    shown = cli("show", "qwen3-0.6b-fp16-mi300x-sglang--agentic--1w-tp1--c8--override_tp1_c8").out
    assert "SGLANG_SIMULATE_ACC_LEN: '2.8'" in shown
    (empty.folder / "configs/golden/example.yaml").unlink()
    assert cli("check").status == 1


def test_dry_run_writes_nothing(empty: Repository) -> None:
    outcome = started("--dry-run")
    assert outcome.status == 0
    assert {line.removeprefix("would write ") for line in outcome.out.splitlines()} == FILES
    assert contents(empty.folder) == {}


def test_a_second_time_nothing_changes(empty: Repository) -> None:
    started()
    before = contents(empty.folder)
    outcome = started("--repository", "other/name")
    assert outcome.status == 0
    assert set(outcome.out.splitlines()) == {f"kept {name}: it is there" for name in FILES}
    assert contents(empty.folder) == before


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_file_is_overwritten(name: str, empty: Repository) -> None:
    mine = "" if name.endswith((".toml", "labels.yaml", "runners.yaml")) else "# mine\n"
    if name == "configs/labels.yaml":
        mine = (TEMPLATES / name).read_text(encoding="utf-8") + "# mine\n"
    empty.write(mine.encode(), name)
    outcome = started()
    assert outcome.status == 0
    found = contents(empty.folder)
    assert found[name] == mine
    assert f"kept {name}: it is there" in outcome.out
    if name in EXAMPLE:
        assert found.keys() == FILES - EXAMPLE - {"perf-changelog.yaml"} | {name}
    else:
        assert found.keys() == FILES


def test_a_repository_with_a_search_space_gets_the_rest(empty: Repository) -> None:
    empty.write(b"alpha: {}\n", "configs/amd-master.yaml")
    outcome = started()
    wanted = FILES - EXAMPLE - {"perf-changelog.yaml"} | {"configs/amd-master.yaml"}
    assert contents(empty.folder).keys() == wanted
    assert "left out perf-changelog.yaml: it goes with an example, and configs/amd-master.yaml is there" in outcome.out


def test_settings_say_where_things_are(empty: Repository) -> None:
    text = '[tool.matrix]\nmasters = ["space/all.yaml"]\nworkflows = "ci"\n'
    empty.write(text.encode(), "pyproject.toml")
    empty.write(b"alpha: {}\n", "space/all.yaml")
    outcome = started()
    assert outcome.err == ""
    assert "configs/example-master.yaml" not in contents(empty.folder)
    assert "ci/run-sweep.yml" in contents(empty.folder)


def test_a_pyproject_without_our_table_is_not_touched(empty: Repository) -> None:
    empty.git("remote", "add", "origin", "https://github.com/org/bench")
    empty.write(b'[project]\nname = "x"\n', "pyproject.toml")
    outcome = started()
    assert contents(empty.folder)["pyproject.toml"] == '[project]\nname = "x"\n'
    assert '[tool.matrix]\nrepository = "org/bench"\n' in outcome.err
    assert cli("check").status == 0


@pytest.mark.parametrize(
    ("remote", "repository"),
    [
        ("https://github.com/org/bench.git", "org/bench"),
        ("https://github.com/org/bench", "org/bench"),
        ("git@github.com:org/my.bench.git", "org/my.bench"),
        ("ssh://git@github.com/org/bench/", "org/bench"),
        ("https://example.com/org/bench", None),
        ("https://notgithub.com/org/bench", None),
        ("/srv/git/bench", None),
        ("", None),
    ],
)
def test_the_repository_is_that_of_the_remote(remote: str, repository: str | None, empty: Repository) -> None:
    if remote:
        empty.git("remote", "add", "origin", remote)
    assert remote_repository(empty.folder) == repository
    started()
    line = contents(empty.folder)["pyproject.toml"].splitlines()[-1]
    assert line == (f'repository = "{repository}"' if repository else '# repository = "owner/name"')
    assert cli("expand").status == 0


def test_the_repository_is_named(empty: Repository) -> None:
    empty.git("remote", "add", "origin", "https://github.com/org/bench")
    started("--repository", "other/place")
    assert 'repository = "other/place"' in contents(empty.folder)["pyproject.toml"]
    refused = started("--repository", 'a/b"\nx')
    assert refused.status == 2


def test_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "target"
    target.mkdir()
    assert run(init, ["target"], prog="matrix") == 0
    assert contents(target).keys() == FILES
    assert run(init, ["missing"], prog="matrix") == 2


def test_the_hooks_let_the_first_commit_pass(empty: Repository) -> None:
    assert started().status == 0
    outcome = cli("changelog", "check", "--worktree")
    assert outcome.status == 0, outcome.err
    assert "perf-changelog.yaml against a repository without a commit: 1 entry added." in outcome.out
    empty.write(b"- config-keys: []\n")
    refused = cli("changelog", "check", "--worktree")
    assert refused.status == 1
    assert "perf-changelog.yaml:1:" in refused.err
    empty.git("checkout", "--quiet", "--orphan", "other")
    empty.commit(b"- config-keys: []\n")
    # Commits without a default branch are another matter.
    assert "git-default-branch" in cli("changelog", "check", "--worktree").err


def test_inside_of_another_repository(empty: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    started()
    inner = empty.folder / "inner"
    inner.mkdir()
    assert "not the top" not in started().err
    monkeypatch.chdir(inner)
    outcome = started()
    assert outcome.status == 0
    assert "inner is not the top of its repository, and only there GitHub looks for workflows" in outcome.err
    assert contents(inner).keys() == FILES


def folder_in_the_way(folder: Path) -> None:
    (folder / "perf-changelog.yaml").mkdir()


def file_in_the_way(folder: Path) -> None:
    (folder / ".github").write_text("", encoding="utf-8")


def link_in_the_way(folder: Path) -> None:
    (folder / "configs").symlink_to("nowhere")


@pytest.mark.parametrize("obstacle", [folder_in_the_way, file_in_the_way, link_in_the_way])
def test_obstacles_are_told_before_anything_is_written(obstacle: Callable[[Path], None], empty: Repository) -> None:
    obstacle(empty.folder)
    before = sorted(empty.folder.rglob("*"))
    outcome = started()
    assert outcome.status == 1
    assert "init-folder" in outcome.err
    assert sorted(empty.folder.rglob("*")) == before


def test_a_broken_link_is_kept(empty: Repository) -> None:
    (empty.folder / "perf-changelog.yaml").symlink_to("nowhere")
    assert started().status == 0
    assert (empty.folder / "perf-changelog.yaml").is_symlink()
    assert not (empty.folder / "nowhere").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(empty: Repository) -> None:
    empty.folder.chmod(0o555)
    outcome = started()
    empty.folder.chmod(0o755)
    assert outcome.status == 1
    assert "init-unwritable" in outcome.err


def test_a_file_that_comes_into_being_meanwhile(empty: Repository) -> None:
    skeleton = pieces(empty.folder, None)
    empty.write(b"mine\n")
    with pytest.raises(RefusedError, match="init-exists"):
        write(empty.folder, skeleton)
    assert (empty.folder / "perf-changelog.yaml").read_text(encoding="utf-8") == "mine\n"
    assert not list(empty.folder.rglob(".*.*yaml.*"))


def test_every_template_has_a_fate(empty: Repository) -> None:
    assert {piece.fate for piece in pieces(empty.folder, "org/bench")} == {Fate.WRITE}
    assert not any("@REPOSITORY@" in piece.text for piece in pieces(empty.folder, "org/bench"))
    assert not any("@REPOSITORY@" in piece.text for piece in pieces(empty.folder, None))


def test_the_labels_are_those_of_the_shipped_registry(root: Path) -> None:
    def data(path: Path) -> object:
        return yaml.safe_load(path.read_text(encoding="utf-8"))

    assert data(TEMPLATES / "configs" / "labels.yaml") == data(root / "configs" / "labels.yaml")


def test_the_workflows_are_ours_but_for_what_they_install(empty: Repository, root: Path) -> None:
    """So what GitHub's evaluator and the linters say of ours holds for these too."""
    started()
    for name in sorted(name for name in FILES if name.startswith(".github/")):
        ours = (root / name).read_text(encoding="utf-8").splitlines()
        theirs = contents(empty.folder)[name].splitlines()
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert mine == other or ("pip install" in mine and "pip install" in other and "matrix-runner==" in other)


def test_the_hooks_name_commands_that_are_there(empty: Repository) -> None:
    started()
    hooks = yaml.safe_load(contents(empty.folder)[".pre-commit-config.yaml"])["repos"][0]["hooks"]
    entries = [hook["entry"] for hook in hooks]
    assert entries == ["matrix check", "validate_perf_changelog --worktree"]
    empty.commit(message="begin")
    assert cli("check").status == 0
    assert cli("changelog", "check", "--worktree").status == 0
