"""Changing a patch is: edit, refresh, commit. The bytes follow from the edit alone."""

import shutil
from pathlib import Path

import pytest

from matrix.errors import RefusedError, UsageError
from runners.patches import Verdict, apply
from runners.refresh import refresh
from runners.series import load_series, read_series
from tests.runners.repos import Repo, make_recorded, make_repo

LONG = "".join(f"line {number}\n" for number in range(1, 31))


def lines(**changed: str) -> str:
    text = LONG
    for name, new in changed.items():
        text = text.replace(f"line {name[1:]}\n", f"{new}\n")
    return text


FILES = {"f.txt": LONG, "g.txt": "x\ny\n"}
EDITS = {
    "1-one.patch": {"f.txt": lines(l7="seven"), "new.txt": "new\n"},
    "2-two.patch": {"f.txt": lines(l7="seven", l20="twenty")},
    "3-three.patch": {"g.txt": "x\nY\n"},
}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "repo", FILES)


@pytest.fixture
def folder(tmp_path: Path, repo: Repo) -> Path:
    return make_recorded(tmp_path / "patches", repo, EDITS)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def patched(folder: Path, repo: Repo) -> dict[str, str]:
    """The files that the series makes."""
    target = repo.path.parent / "patched"
    shutil.rmtree(target, ignore_errors=True)
    repo.git("clone", "--quiet", str(repo.path), str(target))
    apply(load_series(folder), target)
    return {name: data.decode() for name, data in Repo(target).state()[2].items()}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_without_an_edit_nothing_changes(folder: Path, repo: Repo, number: int) -> None:
    before = contents(folder)
    apply(load_series(folder).up_to(number), repo.path)
    done = refresh(folder, repo.path, str(number))
    assert done.written == ()
    assert contents(folder) == before


def test_an_edit_of_the_last_patch(folder: Path, repo: Repo) -> None:
    apply(load_series(folder), repo.path)
    repo.write({"g.txt": "x\nY!\n", "more.txt": "more\n"})
    done = refresh(folder, repo.path)
    assert done.written == ("3-three.patch", "series.yaml")
    assert [judgement.verdict for judgement in done.judgements] == [Verdict.APPLIES] * 3
    assert patched(folder, repo) == {
        "f.txt": lines(l7="seven", l20="twenty"),
        "g.txt": "x\nY!\n",
        "new.txt": "new\n",
        "more.txt": "more\n",
    }


def test_the_patches_behind_are_carried_along(folder: Path, repo: Repo) -> None:
    apply(load_series(folder).up_to(1), repo.path)
    repo.write({"f.txt": "line 0\n" + lines(l7="seven of one")})
    done = refresh(folder, repo.path, "1-one.patch")
    assert done.written == ("1-one.patch", "2-two.patch", "series.yaml"), "the third touches other files"
    assert patched(folder, repo)["f.txt"] == "line 0\n" + lines(l7="seven of one", l20="twenty")


def test_an_edit_that_meets_a_later_patch(folder: Path, repo: Repo) -> None:
    """The patch is written; the later one conflicts and says how to go on."""
    second = (folder / "2-two.patch").read_bytes()
    apply(load_series(folder).up_to(1), repo.path)
    repo.write({"f.txt": lines(l7="seven", l20="20 of one")})
    done = refresh(folder, repo.path, "1")
    assert [judgement.verdict for judgement in done.judgements] == [Verdict.APPLIES, Verdict.CONFLICTS, Verdict.APPLIES]
    assert (folder / "2-two.patch").read_bytes() == second

    repo.write({"f.txt": lines(l7="seven", l20="20 of two")})
    done = refresh(folder, repo.path, "2")
    assert [judgement.verdict for judgement in done.judgements] == [Verdict.APPLIES] * 3
    assert patched(folder, repo)["f.txt"] == lines(l7="seven", l20="20 of two")


def test_the_pin_moves(folder: Path, repo: Repo) -> None:
    """Each patch is made again on the new pin, in turn."""
    repo.commit({"f.txt": "line 0\n" + LONG})
    for number, files in (
        (1, {"f.txt": "line 0\n" + lines(l7="seven"), "new.txt": "new\n"}),
        (2, {"f.txt": "line 0\n" + lines(l7="seven", l20="twenty")}),
    ):
        repo.write(files)
        done = refresh(folder, repo.path, str(number))
    assert [judgement.verdict for judgement in done.judgements] == [Verdict.APPLIES] * 3
    repo.git("reset", "--quiet", "--hard")
    repo.git("clean", "--quiet", "-fd")
    assert patched(folder, repo)["f.txt"] == "line 0\n" + lines(l7="seven", l20="twenty")


def test_a_tree_that_holds_later_patches(folder: Path, repo: Repo) -> None:
    before = contents(folder)
    apply(load_series(folder), repo.path)
    with pytest.raises(RefusedError, match=r"this tree holds 2-two\.patch as well. 1-one\.patch would swallow it"):
        refresh(folder, repo.path, "1")
    assert contents(folder) == before


def test_a_patch_before_it_does_not_apply(folder: Path, repo: Repo) -> None:
    repo.commit({"f.txt": LONG.replace("line 7\n", "")})
    repo.write({"g.txt": "z\n"})
    with pytest.raises(RefusedError, match=r"1-one\.patch comes before 3-three\.patch and does not apply"):
        refresh(folder, repo.path)


def test_nothing_left(folder: Path, repo: Repo) -> None:
    before = contents(folder)
    apply(load_series(folder).up_to(2), repo.path)
    with pytest.raises(RefusedError, match=r"nothing is left of 3-three\.patch"):
        refresh(folder, repo.path, "3")
    assert contents(folder) == before


@pytest.mark.parametrize("content", ["a\0b", "a\rb\n"])
def test_an_edit_that_cannot_be_carried(folder: Path, repo: Repo, content: str) -> None:
    before = contents(folder)
    apply(load_series(folder), repo.path)
    repo.write({"more.txt": content})
    with pytest.raises(RefusedError, match=r"patch-(binary|line-ends)"):
        refresh(folder, repo.path)
    assert contents(folder) == before


def test_the_text_before_the_diff_stays(folder: Path, repo: Repo) -> None:
    """Editing that text is an edit of the patch as well."""
    apply(load_series(folder), repo.path)
    patch = folder / "3-three.patch"
    patch.write_bytes(b"Why it is.\n\n" + patch.read_bytes())
    repo.write({"g.txt": "x\nY!\n"})
    refresh(folder, repo.path)
    assert patch.read_bytes().startswith(b"Why it is.\n\ndiff --git a/g.txt")
    assert read_series(folder)[1] == []


def test_the_comment_of_the_record_stays(folder: Path, repo: Repo) -> None:
    record = folder / "series.yaml"
    record.write_text("# Ours.\n" + record.read_text())
    apply(load_series(folder), repo.path)
    repo.write({"g.txt": "x\nY!\n"})
    refresh(folder, repo.path)
    assert record.read_text().startswith("# Ours.\n# The vendored patches")


def test_a_new_patch(folder: Path, repo: Repo) -> None:
    apply(load_series(folder), repo.path)
    repo.write({"more.txt": "more\n"})
    with pytest.raises(UsageError, match="--upstream and --why"):
        refresh(folder, repo.path, "9-more.patch")
    with pytest.raises(UsageError, match="number 3 is taken"):
        refresh(folder, repo.path, "3-more.patch", upstream="u", why="w")
    refresh(folder, repo.path, "9-more.patch", upstream="https://example.invalid/9", why='It is "needed": yes.')
    assert [finding.rule for finding in read_series(folder)[1]] == ["patch-table"], "its row is written by hand"
    series, _ = read_series(folder)
    assert series is not None
    assert (series.entries[-1].upstream, series.entries[-1].why) == (
        "https://example.invalid/9",
        'It is "needed": yes.',
    )


def test_a_folder_with_other_faults_is_left_alone(folder: Path, repo: Repo) -> None:
    (folder / "fix.patch").write_bytes((folder / "3-three.patch").read_bytes())
    before = contents(folder)
    repo.write({"g.txt": "x\nY!\n"})
    with pytest.raises(RefusedError, match="patch-name"):
        refresh(folder, repo.path)
    assert contents(folder) == before


def test_no_tree(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="patch-target"):
        refresh(folder, tmp_path / "nowhere")


@pytest.mark.parametrize("setting", [("diff.noprefix", "true"), ("diff.algorithm", "patience"), ("diff.context", "9")])
def test_settings_of_the_user_change_nothing(folder: Path, repo: Repo, setting: tuple[str, str]) -> None:
    before = contents(folder)
    repo.git("config", *setting)
    apply(load_series(folder), repo.path)
    assert refresh(folder, repo.path).written == ()
    assert contents(folder) == before
