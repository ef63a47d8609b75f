"""Verdicts on real repositories, and application: everything, or a tree as it was."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from matrix.errors import MatrixError, RefusedError
from runners import git
from runners.patches import Applied, Verdict, apply, checkout, judge, patched_checkout
from runners.series import load_series
from tests.runners.repos import Repo, make_folder, make_recorded, make_repo

LONG = "".join(f"line {number}\n" for number in range(1, 31))
FILES: dict[str, str | None] = {
    "f.txt": LONG,
    "g.txt": "x\ny\n",
    "deep/er/h.txt": "h\n",
    "a b.txt": "one\n",
    ":a.txt": "star\n",
}
FIRST = LONG.replace("line 7\n", "line seven\n")
SECOND = FIRST.replace("line 20\n", "line twenty\n")
EDITS: dict[str, Mapping[str, str | None]] = {
    "99-first.patch": {"f.txt": FIRST, "new/er/n.txt": "new\n", "a b.txt": "two\n"},
    "504-second.patch": {"f.txt": SECOND, "deep/er/h.txt": None, ":a.txt": "stars\n"},
    "1000-third.patch": {"new/er/n.txt": "newer\n", "empty": ""},
}
DONE = {
    "f.txt": SECOND,
    "g.txt": "x\ny\n",
    "a b.txt": "two\n",
    ":a.txt": "stars\n",
    "new/er/n.txt": "newer\n",
    "empty": "",
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository and its patches, to be copied."""
    place = tmp_path_factory.mktemp("original")
    make_recorded(place / "patches", make_repo(place / "repo", FILES), EDITS)
    return place


@pytest.fixture
def repo(tmp_path: Path, original: Path) -> Repo:
    return Repo(Path(shutil.copytree(original / "repo", tmp_path / "a: repo")))  # a name that lists would cut


@pytest.fixture
def folder(tmp_path: Path, original: Path) -> Path:
    return Path(shutil.copytree(original / "patches", tmp_path / "patches"))


def verdicts(folder: Path, repo: Repo) -> list[Verdict]:
    return [judgement.verdict for judgement in judge(load_series(folder), repo.path, "HEAD")]


def refusal(folder: Path, target: Path) -> list[str]:
    with pytest.raises(RefusedError) as caught:
        apply(load_series(folder), target)
    return [finding.rule for finding in caught.value.findings]


# --- verdicts ------------------------------------------------------------------------------------

A, P, C = Verdict.APPLIES, Verdict.ALREADY, Verdict.CONFLICTS

# What the pin holds -> what becomes of the three patches.
PINS: dict[str, tuple[Mapping[str, str | None], list[Verdict]]] = {
    "as recorded": ({}, [A, A, A]),
    "something else moved on": ({"g.txt": "z\n"}, [A, A, A]),
    "the first is in": (EDITS["99-first.patch"], [P, A, A]),
    "the first two are in": ({**EDITS["99-first.patch"], **EDITS["504-second.patch"]}, [C, P, A]),
    "part of the first is in": ({"a b.txt": "two\n"}, [C, C, C]),
    "one line above moved": ({"f.txt": "line 0\n" + LONG}, [C, C, C]),
    "a new file is there": ({"new/er/n.txt": "other\n"}, [C, C, C]),
    "a file to patch is gone": ({"a b.txt": None}, [C, C, C]),
    "only the third conflicts": ({"empty": "full\n"}, [A, A, C]),
}


@pytest.mark.parametrize("name", PINS)
def test_recorded_verdicts(repo: Repo, folder: Path, name: str) -> None:
    files, expected = PINS[name]
    repo.commit(files)
    before = repo.state()
    assert verdicts(folder, repo) == expected
    assert repo.state() == before, "judging changes nothing"


def test_a_conflict_names_file_and_both_ids(repo: Repo, folder: Path) -> None:
    repo.commit({"a b.txt": "other\n"})
    expected, found = (repo.git("rev-parse", f"{commit}:a b.txt").strip() for commit in ("HEAD~1", "HEAD"))
    message = str(judge(load_series(folder), repo.path, "HEAD")[0].findings[0])
    assert f"99-first.patch was made for another a b.txt: expected blob {expected}, found {found}." in message
    assert "patches refresh DIR --patch 99-first.patch" in message


def test_a_half_applied_patch_is_told(repo: Repo, folder: Path) -> None:
    repo.commit({"a b.txt": "two\n", "f.txt": "else\n"})
    findings = judge(load_series(folder), repo.path, "HEAD")[0].findings
    assert "1 of 3 files are as after the patch: part of it is there." in findings[0].message


def test_already_says_what_to_delete(repo: Repo, folder: Path) -> None:
    repo.commit(EDITS["99-first.patch"])
    finding = judge(load_series(folder), repo.path, "HEAD")[0].findings[0]
    assert finding.rule == "patch-already"
    assert finding.fix == "delete 99-first.patch, its row in the README and its entry in series.yaml"


CONTEXT = LONG.replace("line 7\n", "line seven\n")
UNRECORDED: dict[str, tuple[Mapping[str, str | None], Verdict]] = {
    "as it was": ({}, A),
    "moved by a line": ({"f.txt": "line 0\n" + LONG}, A),
    "in": ({"f.txt": CONTEXT}, P),
    "context changed": ({"f.txt": LONG.replace("line 6\n", "line six\n")}, C),
    "gone": ({"f.txt": None}, C),
}


@pytest.mark.parametrize("name", UNRECORDED)
def test_verdicts_without_a_record_go_by_context(tmp_path: Path, repo: Repo, name: str) -> None:
    files, expected = UNRECORDED[name]
    folder = make_folder(tmp_path / "bare", {"1-x.patch": repo.diff({"f.txt": CONTEXT})})
    repo.commit(files)
    assert verdicts(folder, repo) == [expected]


def test_no_context_and_no_record_is_refused(tmp_path: Path, repo: Repo) -> None:
    """Git would take the line number for it, wherever the file has moved to."""
    folder = make_folder(tmp_path / "bare", {"1-x.patch": repo.diff({"f.txt": CONTEXT}, "--unified=0")})
    judgement = judge(load_series(folder), repo.path, "HEAD")[0]
    assert judgement.verdict is Verdict.CONFLICTS
    assert [finding.rule for finding in judgement.findings] == ["patch-context"]
    assert refusal(folder, repo.path) == ["patch-context"]


def test_a_new_file_needs_no_context(tmp_path: Path, repo: Repo) -> None:
    folder = make_folder(tmp_path / "bare", {"1-x.patch": repo.diff({"new": "new\n"}, "--unified=0")})
    assert verdicts(folder, repo) == [Verdict.APPLIES]


def test_a_record_that_the_patch_does_not_fulfil(tmp_path: Path, repo: Repo) -> None:
    """The hash is right and the ids are there, but the patch leads elsewhere."""
    folder = make_recorded(tmp_path / "patches", repo, {"1-x.patch": {"g.txt": "x\nY\n"}})
    patch = folder / "1-x.patch"
    good = load_series(folder).entries[0].patch.sha256
    data = b"\n".join(line for line in patch.read_bytes().split(b"\n") if not line.startswith(b"index "))
    patch.write_bytes(data.replace(b"+Y", b"+Z"))
    bad = git_sha256(patch)
    record = folder / "series.yaml"
    record.write_text(record.read_text().replace(good, bad))
    judgement = judge(load_series(folder), repo.path, "HEAD")[0]
    assert judgement.verdict is Verdict.CONFLICTS
    assert "does not make what is recorded of it: g.txt" in judgement.findings[0].message


def git_sha256(file: Path) -> str:
    return subprocess.run(["sha256sum", file], capture_output=True, check=True, text=True).stdout.split()[0]


# --- application ---------------------------------------------------------------------------------


def test_applied(repo: Repo, folder: Path) -> None:
    head = repo.head()
    applied = apply(load_series(folder), repo.path)
    assert {name: data.decode() for name, data in repo.state()[2].items()} == DONE
    assert repo.head() == head
    assert applied.base == head
    assert applied.patches == load_series(folder).record
    repo.git("add", "--all")
    assert applied.tree == repo.git("write-tree").strip()


def test_plain_and_mail_alike(tmp_path: Path, repo: Repo) -> None:
    plain = repo.diff({"f.txt": CONTEXT, "new": "new\n"})
    source = make_repo(tmp_path / "author", FILES)
    source.commit({"f.txt": CONTEXT, "new": "new\n"}, "A subject: with words\n\nAnd a body.")
    mail = source.git("format-patch", "--stdout", "-1").encode()
    trees = []
    for name, data in (("plain", plain), ("mail", mail)):
        target = Repo(tmp_path / f"target-{name}")
        checkout(repo.path, repo.head(), target.path)
        trees.append(apply(load_series(make_folder(tmp_path / name, {"1-x.patch": data})), target.path).tree)
    assert trees[0] == trees[1]


def test_full_and_shallow_clones_alike(tmp_path: Path, repo: Repo, folder: Path) -> None:
    repo.commit({"g.txt": "moved on\n"})
    results: list[Applied] = []
    for depth in ([], ["--depth", "1"]):
        target = tmp_path / f"clone{len(depth)}"
        repo.git("clone", "--quiet", *depth, repo.path.as_uri(), str(target))
        results.append(apply(load_series(folder), target))
    assert results[0] == results[1]


def test_inside_another_repository(repo: Repo, folder: Path) -> None:
    """Git would exit 0 there and change nothing."""
    inside = repo.path / "deep"
    before = repo.state()
    assert refusal(folder, inside) == ["patch-target"]
    assert repo.state() == before
    (inside / ".git").mkdir()  # what a clone that failed may leave
    assert refusal(folder, inside) == ["patch-target"]


def test_outside_any_repository(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert refusal(folder, tmp_path / "plain") == ["patch-target"]
    assert refusal(folder, tmp_path / "nowhere") == ["patch-target"]


def test_without_a_commit(tmp_path: Path, folder: Path) -> None:
    target = tmp_path / "young"
    target.mkdir()
    Repo(target).git("init", "--quiet")
    assert refusal(folder, target) == ["patch-target"]


def test_a_hook_s_environment_leads_nowhere(
    tmp_path: Path, repo: Repo, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git hook exports the repository it runs for, and git prefers that to the folder it is started in."""
    other = make_repo(tmp_path / "other", {"f.txt": "other\n"})
    before = other.state()
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git" / "index"))
    apply(load_series(folder), repo.path)
    monkeypatch.undo()
    assert other.state() == before
    assert (repo.path / "f.txt").read_text() == SECOND


@pytest.mark.parametrize(
    "setting", [("core.autocrlf", "true"), ("apply.whitespace", "error"), ("diff.noprefix", "true")]
)
def test_settings_of_the_user_change_nothing(repo: Repo, folder: Path, setting: tuple[str, str]) -> None:
    repo.git("config", *setting)
    apply(load_series(folder), repo.path)
    assert (repo.path / "f.txt").read_bytes() == SECOND.encode()


def test_a_tree_with_part_of_a_patch(repo: Repo, folder: Path) -> None:
    repo.write({"a b.txt": "two\n"})
    before = repo.state()
    assert refusal(folder, repo.path) == ["patch-dirty"]
    assert repo.state() == before


def test_twice(repo: Repo, folder: Path) -> None:
    apply(load_series(folder), repo.path)
    assert refusal(folder, repo.path) == ["patch-dirty"]
    repo.commit({})
    judgements = judge(load_series(folder), repo.path, "HEAD")
    assert [judgement.verdict for judgement in judgements] == [C, P, P]
    assert "1 of 3 files are as after the patch" in judgements[0].findings[0].message


def test_a_good_patch_before_a_bad_one(repo: Repo, folder: Path) -> None:
    repo.commit({":a.txt": "moved\n"})
    before = repo.state()
    with pytest.raises(RefusedError) as caught:
        apply(load_series(folder), repo.path)
    assert "504-second.patch was made for another :a.txt" in str(caught.value)
    assert repo.state() == before
    assert not list(repo.path.rglob("*.rej"))


def test_a_patch_that_is_in_already_stops_the_rest(repo: Repo, folder: Path) -> None:
    repo.commit(EDITS["99-first.patch"])
    assert refusal(folder, repo.path) == ["patch-already"]


@pytest.mark.parametrize("fails_at", [1, 2, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, git.GitError(("apply",), 1, "boom")])
def test_a_failure_in_the_middle_leaves_the_tree_as_it_was(
    repo: Repo, folder: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int, error: BaseException | type[BaseException]
) -> None:
    """The dry run has passed, and then the disk is full, or somebody presses Ctrl-C."""
    repo.commit({".gitignore": "new/\n"}, "a file that a patch makes may be ignored")
    before, run, calls = repo.state(), git.run, []

    def failing(*arguments: str, **options: object) -> bytes:
        if arguments[0] == "apply":
            calls.append(arguments)
            if len(calls) == fails_at:
                raise error
        return run(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(git, "run", failing)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        apply(load_series(folder), repo.path)
    assert repo.state() == before
    assert not (repo.path / "new").exists()


def test_a_tree_that_is_not_as_judged_is_put_back(repo: Repo, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody writes into the tree while it is patched."""
    before, run = repo.state(), git.run

    def meddling(*arguments: str, **options: object) -> bytes:
        output = run(*arguments, **options)  # type: ignore[arg-type]
        if arguments[0] == "apply":
            (repo.path / "f.txt").write_text("meddled\n")
        return output

    only_first = load_series(folder).up_to(99)
    monkeypatch.setattr(git, "run", meddling)
    with pytest.raises(RefusedError, match=r"not as judged: f\.txt"):
        apply(only_first, repo.path)
    assert repo.state() == before


def test_a_stray_file_is_noticed(repo: Repo, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = git.run

    def meddling(*arguments: str, **options: object) -> bytes:
        output = run(*arguments, **options)  # type: ignore[arg-type]
        if arguments[0] == "apply":
            (repo.path / "f.txt.rej").write_text("stray\n")
        return output

    monkeypatch.setattr(git, "run", meddling)
    with pytest.raises(MatrixError, match=r"could not be put back: f\.txt\.rej"):
        apply(load_series(folder), repo.path)


def test_patches_that_undo_each_other(tmp_path: Path, repo: Repo) -> None:
    there = {"g.txt": "x\nY\n"}
    back = {"g.txt": FILES["g.txt"]}
    folder = make_folder(tmp_path / "bare", {"1-there.patch": repo.diff(there)})
    repo.commit(there)
    (folder / "2-back.patch").write_bytes(repo.diff(back))
    repo.git("reset", "--quiet", "--hard", "HEAD~1")
    before = repo.state()
    with pytest.raises(RefusedError, match=r"unchanged in the end: g\.txt"):
        apply(load_series(folder), repo.path)
    assert repo.state() == before


# --- a tree of one's own -------------------------------------------------------------------------


def test_patched_checkout(tmp_path: Path, repo: Repo, folder: Path) -> None:
    pin = repo.head()
    repo.commit({"f.txt": "the branch moved on\n"})
    before = repo.state()
    target = tmp_path / "jobs" / "1"
    applied = patched_checkout(load_series(folder), repo.path, pin, target)
    assert (applied.base, (target / "f.txt").read_text()) == (pin, SECOND)
    assert repo.state() == before
    assert not (target / ".git" / "objects" / "info" / "alternates").exists()
    shutil.rmtree(repo.path)
    assert Repo(target).git("fsck", "--connectivity-only", "--no-dangling") == ""


def test_patched_checkout_leaves_nothing_on_failure(tmp_path: Path, repo: Repo, folder: Path) -> None:
    repo.commit({"f.txt": "the branch moved on\n"})
    target = tmp_path / "jobs" / "1"
    with pytest.raises(RefusedError):
        patched_checkout(load_series(folder), repo.path, repo.head(), target)
    assert not target.exists()
    with pytest.raises(git.GitError):
        patched_checkout(load_series(folder), repo.path, "1" * 40, target)
    assert not target.exists()


def test_patched_checkout_takes_no_folder_of_somebody_else(tmp_path: Path, repo: Repo, folder: Path) -> None:
    target = tmp_path / "taken"
    target.mkdir()
    (target / "precious").write_text("x")
    with pytest.raises(RefusedError, match="there is something here already"):
        patched_checkout(load_series(folder), repo.path, repo.head(), target)
    assert (target / "precious").read_text() == "x"


# --- reference cases -----------------------------------------------------------------------------


def set_up(shared: Path, case: str, place: Path) -> Path:
    subprocess.run(["bash", str(shared / "cases" / case / "setup.sh"), str(place)], check=True, capture_output=True)
    return place


def test_case_c40(shared: Path, tmp_path: Path) -> None:
    place = set_up(shared, "C40", tmp_path / "c40")
    judgement = judge(load_series(place / "super" / "patches"), place / "super" / "sub", "HEAD")[0]
    assert judgement.verdict is Verdict.ALREADY
    assert "delete 504-fix.patch" in judgement.findings[0].fix


def test_case_c42(shared: Path, tmp_path: Path) -> None:
    place = set_up(shared, "C42", tmp_path / "c42")
    target = Repo(place / "dep")
    bad = make_folder(tmp_path / "bad", {"1-crlf.patch": (place / "crlf.patch").read_bytes()})
    good = make_folder(tmp_path / "good", {"1-lf.patch": (place / "lf.patch").read_bytes()})
    before = target.state()
    with pytest.raises(RefusedError, match=r"CR line ends in 1-crlf\.patch"):
        apply(load_series(bad), target.path)
    assert target.state() == before
    apply(load_series(good), target.path)
    assert (target.path / "a.txt").read_bytes() == b"one\nTWO\nthree\n"
    assert (target.path / "b.txt").read_bytes() == b"new\n"


def test_case_c44(shared: Path, tmp_path: Path) -> None:
    place = set_up(shared, "C44", tmp_path / "c44")
    target = Repo(place / "dep")
    before = target.state()
    with pytest.raises(RefusedError) as caught:
        apply(load_series(place / "patches"), target.path)
    assert "020-bad.patch" in str(caught.value)
    assert "f.txt" in str(caught.value)
    assert target.state() == before
