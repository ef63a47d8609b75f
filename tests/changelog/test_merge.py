"""Two branches that append: by the pure function, and by real merges and rebases in scratch repositories."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.changelog.context import Context
from matrix.changelog.merge import Side, merge
from matrix.changelog.rules import Change, check
from tests.changelog.support import BASE, HISTORY, NEW, Repository, entry, log

if TYPE_CHECKING:
    from pathlib import Path

OURS, THEIRS = entry("ours", link=21), entry("theirs", link=22)
FIRST, SECOND, THIRD = HISTORY

MERGED = {
    "one each": (BASE, log(*HISTORY, OURS), log(*HISTORY, THEIRS), log(*HISTORY, OURS, THEIRS)),
    "two each": (BASE, log(*HISTORY, OURS, OURS), log(*HISTORY, THEIRS, NEW), log(*HISTORY, OURS, OURS, THEIRS, NEW)),
    "base with an empty line": (
        BASE + b"\n", BASE + b"\n" + log(OURS), BASE + b"\n" + log(THEIRS), BASE + b"\n" + log(OURS, THEIRS),
    ),
    "base with blanks": (
        BASE + b" \n", BASE + b" \n\n" + log(OURS), BASE + b" \n\n" + log(THEIRS), BASE + b" \n\n" + log(OURS, THEIRS),
    ),
    "blanks at the end": (
        BASE, log(*HISTORY, OURS) + b"  \n", log(*HISTORY, THEIRS) + b" \n",
        log(*HISTORY, OURS) + b"  \n\n" + log(THEIRS) + b" \n",
    ),
    "no file before": (b"", log(OURS), log(THEIRS), log(OURS, THEIRS)),
    "the same entry": (BASE, log(*HISTORY, NEW), log(*HISTORY, NEW), log(*HISTORY, NEW)),
    "the same entry, its link filled in": (
        BASE, log(*HISTORY, entry("a", link=5), OURS), log(*HISTORY, entry("a", link="XXX"), THEIRS),
        log(*HISTORY, entry("a", link=5), OURS, THEIRS),
    ),
    "the same words of two pull requests": (
        BASE, log(*HISTORY, entry("a", link=5)), log(*HISTORY, entry("a", link=6)),
        log(*HISTORY, entry("a", link=5), entry("a", link=6)),
    ),
    "one side alone": (BASE, BASE, log(*HISTORY, THEIRS), log(*HISTORY, THEIRS)),
}  # fmt: skip


@pytest.mark.parametrize(("ancestor", "ours", "theirs", "wanted"), MERGED.values(), ids=MERGED)
def test_both_appended(ancestor: bytes, ours: bytes, theirs: bytes, wanted: bytes) -> None:
    assert merge(ancestor, ours, theirs, Side.OURS) == wanted
    assert merge(ancestor, theirs, ours, Side.THEIRS) == wanted


NOT_MERGED = {
    "an old entry changed": BASE.replace(b"Second", b"2nd") + b"\n" + log(OURS),
    "a link corrected": BASE.replace(b"pull/12", b"pull/14"),
    "inserted": log(FIRST, OURS, SECOND, THIRD),
    "no separator": BASE + log(OURS),
    "no newline": log(*HISTORY, OURS)[:-1],
    "CRLF": BASE + b"\r\n" + log(OURS).replace(b"\n", b"\r\n"),
    "not UTF-8": BASE + b"\n" + log(OURS).replace(b"Why", b"\xff"),
    "text after the entries": BASE + b"# note\n",
    "emptied": b"",
}


@pytest.mark.parametrize("changed", NOT_MERGED.values(), ids=NOT_MERGED)
def test_anything_else_is_left_to_git(changed: bytes) -> None:
    other = log(*HISTORY, THEIRS)
    for first in Side:
        assert merge(BASE, changed, other, first) is None
        assert merge(BASE, other, changed, first) is None


ENTRIES = st.lists(
    st.builds(entry, st.sampled_from("abc"), st.sampled_from(["x", "y"]), st.integers(20, 23)), max_size=4
)


@given(ENTRIES, ENTRIES, ENTRIES)
def test_the_first_side_is_a_prefix_and_the_result_a_right_change(
    history: list[str], ours: list[str], theirs: list[str]
) -> None:
    ancestor, head, other = (
        log(*entries) if entries else b"" for entries in (history, history + ours, history + theirs)
    )
    merged = merge(ancestor, head, other, Side.OURS)
    assert merged is not None
    assert merged.startswith(head)
    for base in (ancestor, head):
        findings, verdict = check(base, merged, Context())
        assert not findings
        assert len(verdict.additions) == merged.count(b"- config-keys:") - base.count(b"- config-keys:")
        assert verdict.change is (Change.NONE if merged == base else Change.ADDITIONS)


# -- git ---------------------------------------------------------------------------------------------------------------


def matrix(repository: Repository, *words: str, status: int | None = 0) -> str:
    return repository.run(sys.executable, "-m", "matrix", *words, status=status)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """``main`` and ``feature`` both append one entry to the log; the driver is installed."""
    scratch = Repository(tmp_path / "a scratch 'repository'")
    scratch.commit(BASE)
    matrix(scratch, "changelog", "install-merge-driver")
    scratch.commit(message="attributes")
    scratch.git("switch", "--quiet", "--create", "feature")
    scratch.commit(log(*HISTORY, OURS))
    scratch.git("switch", "--quiet", "main")
    scratch.commit(log(*HISTORY, THEIRS))
    return scratch


def current(repository: Repository) -> bytes:
    return (repository.folder / "perf-changelog.yaml").read_bytes()


MAIN_FIRST = log(*HISTORY, THEIRS, OURS)


def test_merging_main_into_a_branch(repository: Repository) -> None:
    repository.git("switch", "--quiet", "feature")
    repository.git("merge", "--quiet", "main")
    assert current(repository) == MAIN_FIRST
    assert "1 entry added" in matrix(repository, "changelog", "check", "--bytes-only", "--pr", "21")


def test_merging_a_branch_into_main(repository: Repository) -> None:
    repository.git("merge", "--quiet", "feature")
    assert current(repository) == MAIN_FIRST
    assert "1 entry added" in matrix(
        repository, "changelog", "check", "--bytes-only", "--base-ref", "HEAD~1", "--merge"
    )


def test_rebasing_a_branch(repository: Repository) -> None:
    repository.git("switch", "--quiet", "feature")
    repository.git("rebase", "--quiet", "main")
    assert current(repository) == MAIN_FIRST
    assert "1 entry added" in matrix(repository, "changelog", "check", "--bytes-only", "--pr", "21")


def test_rebasing_a_branch_of_two_commits(repository: Repository) -> None:
    repository.git("switch", "--quiet", "feature")
    repository.commit(log(*HISTORY, OURS, NEW))
    repository.git("rebase", "--quiet", "main")
    assert current(repository) == log(*HISTORY, THEIRS, OURS, NEW)
    assert "2 entries added" in matrix(repository, "changelog", "check", "--bytes-only")


def test_merging_main_again_and_again(repository: Repository) -> None:
    repository.git("switch", "--quiet", "feature")
    repository.git("merge", "--quiet", "main")
    repository.git("switch", "--quiet", "main")
    later = entry("later", link=23)
    repository.commit(log(*HISTORY, THEIRS, later))
    repository.git("switch", "--quiet", "feature")
    repository.git("merge", "--quiet", "main")
    assert current(repository) == log(*HISTORY, THEIRS, later, OURS)


def test_a_squashed_branch_comes_back_once(repository: Repository) -> None:
    repository.commit(MAIN_FIRST, message="squash of feature")
    repository.git("switch", "--quiet", "feature")
    repository.git("merge", "--quiet", "main")
    assert current(repository) == MAIN_FIRST


def test_a_stale_main_beside_its_remote(repository: Repository, tmp_path: Path) -> None:
    """The branch is merged with ``origin/main``, which the local ``main`` is behind."""
    clone = Repository(tmp_path / "clone")
    clone.git("remote", "add", "origin", str(repository.folder))
    clone.git("fetch", "--quiet", "origin")
    clone.git("switch", "--quiet", "--create", "main", "origin/main~1")
    clone.git("switch", "--quiet", "--create", "feature", "origin/feature")
    matrix(clone, "changelog", "install-merge-driver")
    clone.git("merge", "--quiet", "origin/main")
    assert current(clone) == MAIN_FIRST


def test_anything_but_an_append_is_a_usual_conflict(repository: Repository) -> None:
    repository.git("switch", "--quiet", "feature")
    repository.commit(log(FIRST, SECOND, entry("sigma", "Third, reworded.", 13), OURS))
    repository.git("merge", "main", status=1)
    text = current(repository)
    assert text.count(b"<<<<<<< ours") == text.count(b">>>>>>> theirs") == 1
    assert b"theirs\n  description" in text
    assert "changelog-conflict-marker" in matrix(
        repository, "changelog", "check", "--bytes-only", "--worktree", status=1
    )


def test_edits_apart_from_each_other_merge_as_lines_do(repository: Repository) -> None:
    repository.git("switch", "--quiet", "feature")
    repository.commit(log(entry("omega", "First.", 14), SECOND, THIRD))
    repository.git("merge", "--quiet", "main")
    assert current(repository) == log(entry("omega", "First.", 14), SECOND, THIRD, THEIRS)


def test_without_the_program_git_merges_as_it_always_did(repository: Repository) -> None:
    """Both sides are in the file with markers, not ours alone."""
    driver = repository.git("config", "merge.perf-changelog.driver").replace(sys.executable, "/nowhere/python")
    repository.git("config", "merge.perf-changelog.driver", driver.strip())
    repository.git("merge", "feature", status=1)
    text = current(repository)
    assert text.count(b"<<<<<<<") == 1
    assert b"- ours" in text
    assert b"- theirs" in text


def test_fix_resolves_what_a_clone_without_the_driver_left(repository: Repository) -> None:
    repository.git("config", "--remove-section", "merge.perf-changelog")
    repository.git("switch", "--quiet", "feature")
    repository.git("merge", "main", status=1)
    matrix(repository, "changelog", "fix", "--pr", "21")
    assert current(repository) == MAIN_FIRST
    repository.git("commit", "--quiet", "--all", "--no-edit")
    assert "1 entry added" in matrix(repository, "changelog", "check", "--bytes-only", "--pr", "21", "--merge")


def test_three_files_outside_any_repository(tmp_path: Path) -> None:
    scratch = Repository(tmp_path / "r")
    for name, data in (("o", BASE), ("a", log(*HISTORY, OURS)), ("b", log(*HISTORY, THEIRS))):
        (tmp_path / name).write_bytes(data)
    scratch.folder = tmp_path
    matrix(scratch, "changelog", "merge-driver", "o", "a", "b")
    assert (tmp_path / "a").read_bytes() == log(*HISTORY, OURS, THEIRS)
    (tmp_path / "b").write_bytes(log(entry("omega", "Other.", 11), SECOND, THIRD, THEIRS))
    matrix(scratch, "changelog", "merge-driver", "o", "a", "b", status=1)
    assert b"<<<<<<< ours" in (tmp_path / "a").read_bytes()


def test_installing_twice_writes_the_attribute_once(repository: Repository) -> None:
    before = (repository.folder / ".gitattributes").read_bytes()
    assert "already" in matrix(repository, "changelog", "install-merge-driver")
    assert (
        (repository.folder / ".gitattributes").read_bytes() == before == b"perf-changelog.yaml merge=perf-changelog\n"
    )


def test_installing_keeps_what_git_attributes_holds(tmp_path: Path) -> None:
    scratch = Repository(tmp_path / "other")
    scratch.write(b"* text=auto", ".gitattributes")
    matrix(scratch, "changelog", "install-merge-driver", "--file", "log/perf.yaml")
    assert (scratch.folder / ".gitattributes").read_bytes() == b"* text=auto\nlog/perf.yaml merge=perf-changelog\n"


def test_installing_outside_a_repository_is_refused(tmp_path: Path) -> None:
    scratch = Repository(tmp_path / "r")
    scratch.folder = tmp_path
    assert "git-failed" in matrix(scratch, "changelog", "install-merge-driver", status=1)
