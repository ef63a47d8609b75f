"""What a pull request touches, with a real API and a real repository: never "nothing" on doubt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from matrix.errors import RefusedError
from matrix.plan.touched import touched_paths, touched_paths_of_git
from tests.changelog.support import Repository
from tests.github.server import INTEGRATION, Reply, Site, error

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.github import GitHub

LOG: Final = "perf-changelog.yaml"


@pytest.fixture
def clone(tmp_path: Path, site: Site) -> Repository:
    """Base and head of the pull request: the log grew, one file was renamed, one has a name to stumble over."""
    clone = Repository(tmp_path / "clone")
    clone.write(b"x" * 50, "old name.yaml")
    start = clone.commit(b"one\n")
    site.base = clone.commit(b"on main", "main.txt")
    clone.git("switch", "--quiet", "--detach", start)
    clone.git("mv", "old name.yaml", "new\nname.yaml")
    site.head = clone.commit(b"one\ntwo\n")
    return clone


TOUCHED: Final = {LOG, "old name.yaml", "new\nname.yaml"}


def test_412_files_and_36_labels(shared: Path, site: Site, github: GitHub, tmp_path: Path) -> None:
    case = json.loads((shared / "cases" / "C65" / "pr.json").read_text(encoding="utf-8"))
    site.files, site.labels = case["files"], case["labels_on_pr"]
    found = touched_paths(github, 77, str(tmp_path))
    assert LOG in found
    assert len(found) == case["changed_files"] == 412
    assert github.labels(77) == tuple(case["labels_on_pr"])
    assert len(site.requests) == 1 + 5 + 1


def test_the_list_is_taken_where_it_is_whole(site: Site, github: GitHub, clone: Repository) -> None:
    site.files = ["a", ("b", "c")]
    assert touched_paths(github, 77, str(clone.folder)) == {"a", "b", "c"}


@pytest.mark.parametrize(("listed", "counted"), [(3000, 3000), (3000, 4500), (0, 3), (2, 3), (3, 2)])
def test_git_is_asked_where_the_list_is_not_whole(
    listed: int, counted: int, site: Site, github: GitHub, clone: Repository
) -> None:
    site.files, site.changed_files = [f"f{number}" for number in range(listed)], counted
    assert touched_paths(github, 77, str(clone.folder)) == TOUCHED


@pytest.mark.parametrize("reply", [Reply(503), error(403, INTEGRATION), Reply(200, {"message": "?"})])
def test_git_is_asked_where_the_list_is_not_given(reply: Reply, site: Site, github: GitHub, clone: Repository) -> None:
    site.plant("files", *[reply] * 9)
    assert touched_paths(github, 77, str(clone.folder)) == TOUCHED


def test_neither_knows(site: Site, github: GitHub, tmp_path: Path) -> None:
    site.files, site.changed_files = [], 5
    stranger = Repository(tmp_path / "other")
    stranger.commit(b"x")
    with pytest.raises(RefusedError) as caught:
        touched_paths(github, 77, str(stranger.folder))
    assert [finding.rule for finding in caught.value.findings] == ["touched-incomplete", "touched-git"]
    assert "touches 5 files, and GitHub lists 0" in str(caught.value)


def test_the_api_is_down(site: Site, github: GitHub, clone: Repository) -> None:
    site.plant("", *[Reply(503)] * 99)
    with pytest.raises(RefusedError) as caught:
        touched_paths(github, 77, str(clone.folder))
    assert [finding.rule for finding in caught.value.findings] == ["github-down", "touched-unknown"]


def test_a_shallow_clone(site: Site, clone: Repository, tmp_path: Path) -> None:
    clone.git("branch", "feature", site.head)
    clone.git("branch", "base", site.base)
    shallow = Repository(tmp_path / "shallow")
    shallow.git("fetch", "--quiet", "--depth=1", f"file://{clone.folder}", "feature", "base")
    with pytest.raises(RefusedError, match="fetch-depth: 0"):
        touched_paths_of_git(site.base, site.head, str(shallow.folder))


def test_a_change_that_touches_nothing(clone: Repository, site: Site) -> None:
    clone.git("commit", "--quiet", "--allow-empty", "--message", "empty")
    again = clone.git("rev-parse", "HEAD").strip()
    assert touched_paths_of_git(site.head, again, str(clone.folder)) == frozenset()


def test_no_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="git-missing"):
        touched_paths_of_git("a", "b", str(tmp_path))
