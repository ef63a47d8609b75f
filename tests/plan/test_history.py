"""Files at commits: every kind of repository, and every refusal with the command that helps, which is then run."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from matrix.errors import RefusedError
from matrix.plan.history import History
from matrix.plan.revisions import of_commits, of_files, of_worktree
from tests.changelog.support import BASE, HISTORY, NEW, Repository, log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matrix.findings import Finding

LOG = "perf-changelog.yaml"
HEAD = log(*HISTORY, NEW)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A base on ``main``, and a branch that appended one entry."""
    scratch = Repository(tmp_path / "origin")
    scratch.commit(BASE)
    scratch.git("switch", "--quiet", "--create", "feature")
    scratch.commit(HEAD)
    return scratch


def refused(call: Callable[[], object]) -> Finding:
    with pytest.raises(RefusedError) as caught:
        call()
    (finding,) = caught.value.findings
    assert finding.fix
    return finding


def clone(repository: Repository, folder: Path, *options: str) -> Repository:
    repository.git("clone", "--quiet", *options, f"file://{repository.folder}", str(folder))
    made = Repository.__new__(Repository)
    made.folder = folder
    return made


def test_the_bare_call_compares_with_where_the_branch_began(repository: Repository) -> None:
    repository.git("switch", "--quiet", "main")
    repository.commit(log(*HISTORY, "- config-keys: [later]"))
    repository.git("switch", "--quiet", "feature")
    found = of_commits(str(repository.folder), None, None, None)
    assert (found.base, found.head) == (BASE, HEAD)
    assert found.head_name == LOG
    assert found.base_name == f"{repository.git('rev-parse', 'main~1').strip()[:12]}:{LOG}"


def test_the_working_tree_is_not_read(repository: Repository) -> None:
    repository.write(b"scribble")
    assert of_commits(str(repository.folder), None, None, None).head == HEAD


def test_the_working_tree_is_read_when_it_is_asked_for(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write(b"scribble")
    monkeypatch.chdir(repository.folder)
    found = of_worktree(str(repository.folder), None, None)
    assert (found.base, found.head) == (BASE, b"scribble")


def test_a_conflicted_file_is_compared_with_the_tip(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.git("switch", "--quiet", "main")
    tip = log(*HISTORY, "- config-keys: [later]")
    repository.commit(tip)
    repository.git("switch", "--quiet", "feature")
    repository.git("merge", "--quiet", "main", status=1)
    monkeypatch.chdir(repository.folder)
    assert of_worktree(str(repository.folder), None, None, tip_for_conflicts=True).base == tip
    assert of_worktree(str(repository.folder), None, None).base == BASE


@pytest.mark.parametrize("how", ["branch", "id", "short id", "tag", "annotated tag", "HEAD", "relative"])
def test_every_spelling_of_a_commit(repository: Repository, how: str) -> None:
    commit = repository.git("rev-parse", "feature").strip()
    repository.git("tag", "light", "feature")
    repository.git("tag", "--annotate", "--message", "x", "heavy", "feature")
    spelled = {
        "branch": "feature", "id": commit, "short id": commit[:8], "tag": "light", "annotated tag": "heavy",
        "HEAD": "HEAD", "relative": "feature~0",
    }  # fmt: skip
    found = of_commits(str(repository.folder), None, "main", spelled[how])
    assert found.head == HEAD
    assert found.head_revision is not None
    assert found.head_revision.commit == commit


def test_one_process_reads_refs_trees_and_files(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    popen = subprocess.Popen

    def spy(command: list[str], **more: Any) -> subprocess.Popen[bytes]:
        started.append(command)
        return popen(command, **more)

    monkeypatch.setattr(subprocess, "Popen", spy)
    with History(str(repository.folder)) as history:
        pair = history.pair(history.revision("main"), history.revision("feature"), LOG)
    assert [version.data for version in pair] == [BASE, HEAD]
    assert started == [["git", "cat-file", "--batch"]]


def test_a_folder_below_the_top(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    below = repository.folder / "deep" / "down"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert of_commits(str(below), None, None, None).head == HEAD
    assert of_worktree(str(below), None, None).head == HEAD


def test_a_log_in_a_folder(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit(HEAD, "logs/perf.yaml")
    folder = repository.folder / "logs"
    monkeypatch.chdir(folder)
    for path in ("perf.yaml", str(folder / "perf.yaml"), "../logs/perf.yaml"):
        assert of_commits(str(folder), path, "HEAD", None).head == HEAD
    told = refused(lambda: of_commits(str(folder), "../../perf.yaml", None, None))
    assert (told.rule, told.message) == (
        "git-outside",
        "this file is outside the git repository that the working directory is in.",
    )
    assert refused(lambda: of_commits(str(folder), "/etc/perf.yaml", None, None)).rule == "git-outside"


def test_a_detached_head(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--detach", "feature")
    assert of_commits(str(repository.folder), None, None, None).head == HEAD


def test_a_merge_commit_as_head(repository: Repository) -> None:
    repository.git("switch", "--quiet", "main")
    repository.commit(b"x", "other")
    repository.git("merge", "--quiet", "--no-ff", "--message", "merge", "feature")
    assert of_commits(str(repository.folder), None, "HEAD~1", "HEAD").head == HEAD
    found = of_commits(str(repository.folder), None, None, "HEAD")
    assert found.base == found.head == HEAD


def test_a_bare_repository(repository: Repository, tmp_path: Path) -> None:
    bare = clone(repository, tmp_path / "bare.git", "--bare")
    found = of_commits(str(bare.folder), None, "main", "feature")
    assert (found.base, found.head) == (BASE, HEAD)
    assert of_commits(str(bare.folder), None, None, "feature").base == BASE
    assert refused(lambda: of_worktree(str(bare.folder), None, "main")).rule == "git-bare"


def test_a_linked_work_tree(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    assert of_commits(str(tmp_path / "linked"), None, None, "feature").head == HEAD


def test_sha256_repositories(tmp_path: Path) -> None:
    scratch = Repository(tmp_path / "sha256", "--object-format=sha256")
    scratch.commit(BASE, "a/b/log.yaml")
    with History(str(scratch.folder)) as history:
        assert history.read(history.revision("HEAD"), "a/b/log.yaml").data == BASE
        assert history.read(history.revision("HEAD"), "a/log.yaml").data is None


def test_not_a_repository(tmp_path: Path) -> None:
    finding = refused(lambda: of_commits(str(tmp_path), None, None, None))
    assert finding.rule == "git-repository"
    assert "--base-file" in finding.fix


def test_no_git(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert refused(lambda: History(str(repository.folder))).rule == "git-missing"


@pytest.mark.parametrize("ref", ["featur", "HEAD:perf-changelog.yaml", "", "a\nb", "-x", "HEAD^7"])
def test_an_unknown_ref(repository: Repository, ref: str) -> None:
    finding = refused(lambda: of_commits(str(repository.folder), None, "main", ref or " "))
    assert finding.rule == "git-ref"
    assert repr(ref or " ") in finding.message
    if ref == "featur":
        assert finding.fix == "did you mean feature?"


def test_no_default_branch(tmp_path: Path) -> None:
    scratch = Repository(tmp_path / "r")
    scratch.commit(BASE)
    scratch.git("branch", "--move", "trunk")
    finding = refused(lambda: of_commits(str(scratch.folder), None, None, None))
    assert finding.rule == "git-default-branch"
    assert "--base-ref" in finding.fix
    assert of_commits(str(scratch.folder), None, "trunk", None).base == BASE


def test_no_commit_yet(tmp_path: Path) -> None:
    assert refused(lambda: of_commits(str(Repository(tmp_path / "r").folder), None, None, None)).rule == "git-ref"


def test_histories_without_a_common_commit(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--orphan", "other")
    repository.commit(HEAD)
    assert refused(lambda: of_commits(str(repository.folder), None, None, None)).rule == "git-merge-base"


def run_fix(scratch: Repository, fix: str) -> None:
    command = re.split(r",| \(", fix, maxsplit=1)[0].split()
    assert command[:2] == ["git", "fetch"]
    scratch.git(*command[1:])


def test_a_shallow_clone_says_what_to_fetch(repository: Repository, tmp_path: Path) -> None:
    repository.commit(HEAD, "more")
    repository.git("switch", "--quiet", "main")
    shallow = clone(repository, tmp_path / "shallow", "--depth=1", "--no-single-branch", "--branch=feature")
    finding = refused(lambda: of_commits(str(shallow.folder), None, None, None))
    assert finding.rule == "git-shallow"
    run_fix(shallow, finding.fix)
    assert of_commits(str(shallow.folder), None, None, None).base == BASE


def test_a_shallow_clone_of_one_branch_says_what_to_fetch(repository: Repository, tmp_path: Path) -> None:
    repository.commit(HEAD, "more")
    repository.git("switch", "--quiet", "main")
    shallow = clone(repository, tmp_path / "shallow", "--depth=1", "--branch=feature")
    shallow.git("branch", "--move", "feature", "work")
    finding = refused(lambda: of_commits(str(shallow.folder), None, None, None))
    assert finding.rule == "git-default-branch"
    run_fix(shallow, finding.fix)
    assert of_commits(str(shallow.folder), None, None, None).base == BASE


def test_a_base_that_a_shallow_clone_lacks(repository: Repository, tmp_path: Path) -> None:
    base = repository.git("rev-parse", "main").strip()
    shallow = clone(repository, tmp_path / "shallow", "--depth=1", "--branch=feature")
    finding = refused(lambda: of_commits(str(shallow.folder), None, base, None))
    assert (finding.rule, finding.fix) == ("git-ref", f"git fetch --depth=1 origin {base}")
    assert "shallow" in finding.message
    run_fix(shallow, finding.fix)
    assert of_commits(str(shallow.folder), None, base, None).base == BASE


def test_a_remote_branch_that_was_not_fetched(repository: Repository, tmp_path: Path) -> None:
    made = clone(repository, tmp_path / "clone", "--branch=feature")
    repository.git("branch", "release", "main")
    finding = refused(lambda: of_commits(str(made.folder), None, "origin/release", None))
    run_fix(made, finding.fix)
    assert of_commits(str(made.folder), None, "origin/release", None).base == BASE


def test_a_head_that_is_behind_its_base(repository: Repository) -> None:
    repository.git("switch", "--quiet", "main")
    repository.commit(log(*HISTORY, "- config-keys: [later]"))
    hint = of_commits(str(repository.folder), None, "main", "feature").hint()
    assert hint is not None
    assert hint.fix == "git rebase main, or git merge main"
    assert of_commits(str(repository.folder), None, "main~1", "feature").hint() is None


def test_a_renamed_log(repository: Repository) -> None:
    repository.git("mv", LOG, "changes.yaml")
    repository.commit()
    finding = refused(lambda: of_commits(str(repository.folder), None, None, None))
    assert (finding.rule, finding.fix) == ("changelog-renamed", f"git mv changes.yaml {LOG}")


def test_a_log_that_came_by_a_rename(tmp_path: Path) -> None:
    scratch = Repository(tmp_path / "r")
    scratch.commit(BASE, "changes.yaml")
    scratch.git("switch", "--quiet", "--create", "feature")
    scratch.git("mv", "changes.yaml", LOG)
    scratch.commit()
    assert refused(lambda: of_commits(str(scratch.folder), None, None, None)).rule == "changelog-renamed"


def test_a_new_log(tmp_path: Path) -> None:
    scratch = Repository(tmp_path / "r")
    scratch.commit(b"x", "other")
    scratch.git("switch", "--quiet", "--create", "feature")
    scratch.commit(log(NEW))
    found = of_commits(str(scratch.folder), None, None, None)
    assert (found.base, found.head) == (b"", log(NEW))


def test_a_deleted_log(repository: Repository) -> None:
    repository.git("rm", "--quiet", LOG)
    repository.commit()
    finding = refused(lambda: of_commits(str(repository.folder), None, None, None))
    assert finding.rule == "changelog-deleted"
    repository.run("sh", "-c", finding.fix)
    assert (repository.folder / LOG).read_bytes() == BASE


def test_a_log_that_is_nowhere(repository: Repository) -> None:
    finding = refused(lambda: of_commits(str(repository.folder), "perf-changelog.yml", None, None))
    assert (finding.rule, finding.fix) == ("changelog-missing", f"did you mean {LOG}?")


@pytest.mark.parametrize("kind", ["symbolic link", "submodule", "directory"])
def test_something_else_in_its_place(repository: Repository, tmp_path: Path, kind: str) -> None:
    repository.git("mv", LOG, "real.yaml")
    if kind == "symbolic link":
        (repository.folder / LOG).symlink_to("real.yaml")
        assert (
            refused(lambda: of_worktree(str(repository.folder), str(repository.folder / LOG), "main")).rule
            == "git-kind"
        )
    elif kind == "submodule":
        other = Repository(tmp_path / "other")
        other.commit(b"x", "x")
        repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.folder), LOG)
    else:
        repository.write(b"x", f"{LOG}/x")
    repository.commit()
    finding = refused(lambda: of_commits(str(repository.folder), None, None, None))
    assert finding.rule == "git-kind"
    assert kind in finding.message
    assert str(finding.span) == f"HEAD:{LOG}"


def test_a_log_of_200_mb_is_refused_unread(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    with (repository.folder / LOG).open("r+b") as stream:
        stream.truncate(200_000_000)
    repository.commit()
    finding = refused(lambda: of_commits(str(repository.folder), None, None, None))
    assert finding.rule == "file-too-large"
    assert "200 MB" in finding.message
    monkeypatch.chdir(repository.folder)
    assert refused(lambda: of_worktree(str(repository.folder), None, None)).rule == "file-too-large"
    path = str(repository.folder / LOG)
    assert refused(lambda: of_files(path, path)).rule == "file-too-large"
