"""``python -m runners patches`` as a user sees it: streams, exit statuses, and nothing half done."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from runners.cli.main import main
from tests.runners.repos import Repo, make_folder, make_recorded, make_repo

FILES = {"f.txt": "a\nb\nc\n", "g.txt": "x\ny\n"}
EDITS = {"9-first.patch": {"f.txt": "a\nB\nc\n"}, "10-second.patch": {"g.txt": "x\nY\n"}}


class Project:
    """A superproject with a submodule and patches for it."""

    def __init__(self, place: Path) -> None:
        self.upstream = make_repo(place / "upstream", FILES)
        self.repo = make_repo(place / "project", {"README": "x\n"})
        self.repo.git("submodule", "--quiet", "add", self.upstream.path.as_uri(), "tool")
        self.repo.commit({}, "pin")
        self.tool = Repo(self.repo.path / "tool")
        self.folder = make_recorded(place / "patches", self.upstream, EDITS)  # at the pin
        self.target = place / "job"

    def run(self, command: str, *arguments: str) -> Result:
        options = [f"--patches={self.folder}"]
        if command in {"check", "apply"}:
            options += [f"--repository={self.repo.path}", "--submodule=tool"]
        return CliRunner().invoke(main, ["patches", command, *options, *arguments], catch_exceptions=False)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_list(project: Project) -> None:
    done = project.run("list", "--format=json")
    assert done.exit_code == 0
    assert [(row["number"], row["file"], row["files"]) for row in json.loads(done.stdout)] == [
        (9, "9-first.patch", 1),
        (10, "10-second.patch", 1),
    ]
    assert "10-second.patch" in project.run("list").stdout


def test_check_says_applies(project: Project) -> None:
    done = project.run("check")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.count("applies") == 2


def test_check_of_a_pin_that_has_a_patch(project: Project) -> None:
    project.tool.commit(EDITS["9-first.patch"])
    project.repo.commit({}, "move the pin")
    done = project.run("check", "--format=json")
    assert done.exit_code == 1
    assert [row["verdict"] for row in json.loads(done.stdout)] == ["already in the pin", "applies"]
    assert "series-pin" in done.stderr
    assert "fix: delete 9-first.patch, its row in the README and its entry in series.yaml" in done.stderr
    assert "conflict" not in done.output


def test_apply_makes_a_tree(project: Project) -> None:
    before = project.tool.state()
    done = project.run("apply", str(project.target))
    assert done.exit_code == 0
    facts = json.loads(done.stdout)
    assert facts["base"] == facts["pin"] == project.tool.head()
    assert facts["modified-in-submodule"] == []
    assert list(facts["patches"]) == ["10-second.patch", "9-first.patch"]
    assert Repo(project.target).state()[2] == {"f.txt": b"a\nB\nc\n", "g.txt": b"x\nY\n"}
    assert project.tool.state() == before


def test_apply_up_to(project: Project) -> None:
    assert project.run("apply", str(project.target), "--up-to=9").exit_code == 0
    assert Repo(project.target).state()[2] == {"f.txt": b"a\nB\nc\n", "g.txt": b"x\ny\n"}


def test_apply_in_an_existing_clone(project: Project) -> None:
    project.upstream.git("clone", "--quiet", project.upstream.path.as_uri(), str(project.target))
    assert project.run("apply", str(project.target)).exit_code == 0
    assert (project.target / "g.txt").read_text() == "x\nY\n"


def test_edit_refresh_commit(project: Project) -> None:
    project.run("apply", str(project.target))
    Repo(project.target).write({"g.txt": "x\nY!\n"})
    done = project.run("refresh", str(project.target))
    assert done.exit_code == 0
    assert done.stderr == "written: 10-second.patch, series.yaml\n"
    assert done.stdout.count("applies") == 2
    assert project.run("check").exit_code == 0
    again = project.run("refresh", str(project.target))
    assert again.stderr == "written: nothing, the patch is as it was\n"


def inside(project: Project) -> list[str]:
    (project.repo.path / "sub").mkdir()
    return ["apply", str(project.repo.path / "sub")]


def drifted(project: Project) -> list[str]:
    project.tool.commit({"h.txt": "h\n"})
    return ["apply", str(project.target)]


def dirty(project: Project) -> list[str]:
    project.tool.write({"h.txt": "h\n"})
    return ["check"]


def uninitialised(project: Project) -> list[str]:
    project.repo.git("submodule", "--quiet", "deinit", "--force", "tool")
    return ["apply", str(project.target)]


def with_patch(name: str, change: Callable[[bytes], bytes], command: str = "apply") -> Callable[[Project], list[str]]:
    def spoil(project: Project) -> list[str]:
        data = (project.folder / "10-second.patch").read_bytes()
        make_folder(project.folder / "bare", {"9-first.patch": (project.folder / "9-first.patch").read_bytes()})
        context = project.upstream.diff({"f.txt": "a\nB\nc\n"})
        (project.folder / "bare" / "9-first.patch").write_bytes(context)
        (project.folder / "bare" / name).write_bytes(change(data))
        project.folder = project.folder / "bare"
        return [command, str(project.target)] if command == "apply" else [command]

    return spoil


# Every refusal: what was done, and what the message must hold.
REFUSALS: dict[str, tuple[Callable[[Project], list[str]], list[str]]] = {
    "inside another repository": (inside, ["patch-target", "not the root of a git work tree"]),
    "drift": (drifted, ["pin-drift", "git submodule update tool"]),
    "dirt": (dirty, ["pin-dirty", "h.txt"]),
    "uninitialised": (uninitialised, ["pin-missing", "git submodule update --init tool"]),
    "CRLF after a good patch": (
        with_patch("20-x.patch", lambda data: data.replace(b"\n", b"\r\n")),
        ["20-x.patch:1", "CR line ends in 20-x.patch"],
    ),
    "no context after a good patch": (with_patch("20-x.patch", lambda data: data), ["20-x.patch", "patch-context"]),
    "bad after good": (
        with_patch("20-x.patch", lambda data: data.replace(b"@@ -2 +2 @@ x\n-y", b"@@ -1,2 +1,2 @@\n x\n-z")),
        ["20-x.patch", "patch-conflict", "g.txt"],
    ),
    "binary": (
        with_patch("20-x.patch", lambda _: b"diff --git a/x b/x\nGIT binary patch\nliteral 0\n"),
        ["20-x.patch:2", "patch-binary"],
    ),
    "rename": (
        with_patch("20-x.patch", lambda _: b"diff --git a/f.txt b/h.txt\nrename from f.txt\nrename to h.txt\n"),
        ["20-x.patch:2", "patch-rename", "a rename of f.txt"],
    ),
    "name with a space": (with_patch("20 x.patch", lambda data: data), ["20 x.patch", "patch-name"]),
    "leaves the tree": (
        with_patch("20-x.patch", lambda data: data.replace(b"/g.txt", b"/../g.txt")),
        ["20-x.patch:1", "patch-path", "../g.txt, which is not in the tree"],
    ),
    "touches .git": (
        with_patch("20-x.patch", lambda data: data.replace(b"/g.txt", b"/.git/config")),
        ["20-x.patch:1", "patch-path", ".git/config"],
    ),
    "equal numbers": (with_patch("009-x.patch", lambda data: data, "list"), ["patch-number", "9-first.patch"]),
    "empty": (with_patch("20-x.patch", lambda _: b"", "list"), ["20-x.patch", "patch-empty"]),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(project: Project, name: str) -> None:
    spoil, parts = REFUSALS[name]
    command, *arguments = spoil(project)
    before = project.tool.state() if (project.tool.path / ".git").exists() else None
    done = project.run(command, *arguments)
    assert done.exit_code == 1
    assert done.stdout == ""
    for part in [*parts, "fix: "]:
        assert part in done.stderr
    assert "Traceback" not in done.output
    assert not project.target.exists()
    assert before is None or project.tool.state() == before
    assert not list(project.repo.path.rglob("*.rej"))


def test_allow_drift(project: Project) -> None:
    """What is recorded is what is there; changes that are not committed are named and left behind."""
    pinned = project.tool.head()
    project.tool.commit({"h.txt": "h\n"})
    project.tool.write({"i.txt": "i\n"})
    done = project.run("apply", str(project.target), "--allow-drift")
    assert done.exit_code == 0
    assert "warning: pin-drift" in done.stderr
    facts = json.loads(done.stdout)
    assert (facts["pin"], facts["base"]) == (pinned, project.tool.head())
    assert facts["modified-in-submodule"] == ["i.txt"]
    assert (project.target / "h.txt").exists()
    assert not (project.target / "i.txt").exists()


def test_a_record_made_for_another_pin(project: Project) -> None:
    """The patches would apply, but every digest of a point would name the wrong pin."""
    old = project.tool.head()
    new = project.tool.commit({"h.txt": "h\n"})
    project.repo.commit({}, "move the pin")
    done = project.run("check")
    assert done.exit_code == 1
    assert f"recorded for the pin {old}, and the pin is {new}" in done.stderr
    assert project.run("apply", str(project.target)).exit_code == 1
    assert not project.target.exists()

    project.tool.git("clone", "--quiet", str(project.tool.path), str(project.target))
    assert project.run("apply", str(project.target)).exit_code == 0
    assert project.run("refresh", str(project.target)).stderr == "written: series.yaml\n"
    assert project.run("check").exit_code == 0


def test_faults_of_pin_and_folder_together(project: Project) -> None:
    project.tool.write({"h.txt": "h\n"})
    (project.folder / "README.md").unlink()
    done = project.run("check")
    assert done.exit_code == 1
    assert "pin-dirty" in done.stderr
    assert "patch-table" in done.stderr


def test_no_such_patch_is_a_wrong_command_line(project: Project) -> None:
    project.run("apply", str(project.target))
    done = project.run("refresh", str(project.target), "--patch=9-frist.patch")
    assert done.exit_code == 2
    assert "did you mean 9-first.patch?" in done.stderr


def test_an_unknown_command(project: Project) -> None:
    assert CliRunner().invoke(main, ["patches", "aply"]).exit_code == 2
    assert project.run("check", "--nonsense").exit_code == 2
