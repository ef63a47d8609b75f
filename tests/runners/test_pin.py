"""The pin is what the superproject records; every other state of the submodule is told with its remedy."""

import os
import subprocess
from pathlib import Path

import pytest

from matrix.errors import RefusedError
from matrix.findings import Severity
from runners.pin import Pin, read_pin, require
from tests.runners.repos import IDENTITY, Repo, make_repo

PATH = "vendor/tool"


@pytest.fixture
def upstream(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "upstream", {"f.txt": "one\n"})


@pytest.fixture
def project(tmp_path: Path, upstream: Repo) -> Repo:
    """A superproject whose pin is one commit behind the tip of its submodule's branch."""
    repo = make_repo(tmp_path / "project", {"README": "x\n"})
    repo.git("submodule", "--quiet", "add", upstream.path.as_uri(), PATH)
    repo.commit({}, "pin")
    upstream.commit({"f.txt": "two\n"})
    return repo


@pytest.fixture
def submodule(project: Repo) -> Repo:
    return Repo(project.path / PATH)


def refused(project: Repo) -> list[tuple[str, str, str]]:
    with pytest.raises(RefusedError) as caught:
        require(read_pin(project.path, PATH))
    return [(finding.rule, finding.message, finding.fix) for finding in caught.value.findings]


def in_shell(command: str, folder: Path) -> None:
    """Run a remedy as a user would."""
    environment = os.environ | IDENTITY | {"GIT_CONFIG_COUNT": "1"}
    environment |= {"GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}
    subprocess.run(["bash", "-c", command], cwd=folder, env=environment, check=True, capture_output=True)


def test_as_pinned(project: Repo, submodule: Repo) -> None:
    pin = read_pin(project.path, PATH)
    assert pin == Pin(repository=project.path, path=PATH, commit=submodule.head(), head=submodule.head())
    assert require(pin) == []
    assert pin.base == submodule.head()


def test_the_pin_is_the_committed_one(project: Repo, submodule: Repo) -> None:
    """What the submodule has checked out, and even what is staged, is not the pin."""
    pinned = submodule.head()
    submodule.commit({"f.txt": "mine\n"})
    project.git("add", PATH)
    assert read_pin(project.path, PATH).commit == pinned
    project.git("commit", "--quiet", "--message", "move the pin")
    assert read_pin(project.path, PATH).commit == submodule.head()


def test_drift(project: Repo, submodule: Repo) -> None:
    pinned = submodule.head()
    moved = submodule.commit({"f.txt": "mine\n"})
    ((rule, message, fix),) = refused(project)
    assert rule == "pin-drift"
    assert pinned in message
    assert moved in message
    in_shell(fix.split(", or ")[0], project.path)
    assert require(read_pin(project.path, PATH)) == []
    assert submodule.head() == pinned


def test_dirt(project: Repo, submodule: Repo) -> None:
    submodule.write({"f.txt": "mine\n", "deep/new": "new\n"})
    ((rule, message, fix),) = refused(project)
    assert rule == "pin-dirty"
    assert "deep/new, f.txt" in message
    assert submodule.head() in message
    in_shell(fix.split("; ")[1].split(" takes")[0], project.path)
    assert require(read_pin(project.path, PATH)) == []


def test_drift_and_dirt_are_told_together(project: Repo, submodule: Repo) -> None:
    submodule.commit({"f.txt": "mine\n"})
    submodule.write({"f.txt": "mine too\n"})
    assert [rule for rule, _, _ in refused(project)] == ["pin-drift", "pin-dirty"]


def test_allowed_drift_is_recorded_as_it_is(project: Repo, submodule: Repo) -> None:
    pinned = submodule.head()
    moved = submodule.commit({"f.txt": "mine\n"})
    submodule.write({"f.txt": "mine too\n"})
    pin = read_pin(project.path, PATH)
    warnings = require(pin, allow_drift=True)
    assert [warning.rule for warning in warnings] == ["pin-drift", "pin-dirty"]
    assert {warning.severity for warning in warnings} == {Severity.WARNING}
    assert (pin.commit, pin.head, pin.base, pin.modified) == (pinned, moved, moved, ("f.txt",))


@pytest.mark.parametrize("state", ["cloned without it", "folder gone", "deinitialised"])
@pytest.mark.parametrize("allow_drift", [False, True])
def test_uninitialised(tmp_path: Path, project: Repo, submodule: Repo, state: str, allow_drift: bool) -> None:
    """An empty folder must not answer with the superproject's own HEAD."""
    pinned = submodule.head()
    if state == "cloned without it":
        project.git("clone", "--quiet", project.path.as_uri(), str(tmp_path / "clone"))
        project = Repo(tmp_path / "clone")
    else:
        project.git("submodule", "--quiet", "deinit", "--force", PATH)
        if state == "folder gone":
            (project.path / PATH).rmdir()
    with pytest.raises(RefusedError) as caught:
        require(read_pin(project.path, PATH), allow_drift=allow_drift)
    (finding,) = caught.value.findings
    assert finding.rule == "pin-missing"
    assert pinned in finding.message
    assert finding.fix == f"git submodule update --init {PATH}"
    in_shell(finding.fix, project.path)
    assert require(read_pin(project.path, PATH)) == []
    assert (project.path / PATH / "f.txt").read_text() == "one\n"


def test_shallow_without_the_pin(tmp_path: Path, project: Repo, upstream: Repo) -> None:
    """A depth-1 clone of the branch's tip no longer holds the pin."""
    upstream.git("config", "uploadpack.allowAnySHA1InWant", "true")
    project.git("clone", "--quiet", project.path.as_uri(), str(tmp_path / "clone"))
    clone = Repo(tmp_path / "clone")
    clone.git("submodule", "--quiet", "init")
    clone.git("clone", "--quiet", "--depth", "1", upstream.path.as_uri(), PATH)
    pinned = read_pin(project.path, PATH).commit
    ((rule, message, fix),) = refused(clone)
    assert rule == "pin-shallow"
    assert pinned in message
    assert upstream.head() in message
    in_shell(fix, clone.path)
    assert require(read_pin(clone.path, PATH)) == []


def test_shallow_with_the_pin_is_as_good(project: Repo, upstream: Repo, submodule: Repo) -> None:
    pinned = submodule.head()
    upstream.git("config", "uploadpack.allowAnySHA1InWant", "true")
    project.git("submodule", "--quiet", "deinit", "--force", PATH)
    (project.path / ".git" / "modules" / PATH).rename(project.path / "old-modules")
    project.git("submodule", "--quiet", "update", "--init", "--depth", "1", PATH)
    assert submodule.git("rev-parse", "--is-shallow-repository").strip() == "true"
    pin = read_pin(project.path, PATH)
    assert (pin.commit, require(pin)) == (pinned, [])


@pytest.mark.parametrize(
    ("place", "path", "rule"),
    [
        ("project", "vendor", "pin-unrecorded"),
        ("project", "README", "pin-unrecorded"),
        ("project", "nowhere", "pin-unrecorded"),
        ("project/vendor", "tool", "pin-repository"),
        ("nowhere", PATH, "pin-repository"),
    ],
)
def test_no_pin_is_recorded(tmp_path: Path, project: Repo, place: str, path: str, rule: str) -> None:
    assert project.path == tmp_path / "project"
    with pytest.raises(RefusedError) as caught:
        read_pin(tmp_path / place, path)
    assert [finding.rule for finding in caught.value.findings] == [rule]


def test_a_hook_s_environment_leads_nowhere(
    tmp_path: Path, project: Repo, submodule: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repo(tmp_path / "other", {"x": "x\n"})
    expected = submodule.head()
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    assert read_pin(project.path, PATH).commit == expected


def test_case_c46(shared: Path, tmp_path: Path) -> None:
    place = tmp_path / "c46"
    subprocess.run(["bash", str(shared / "cases" / "C46" / "setup.sh"), str(place)], check=True, capture_output=True)
    with pytest.raises(RefusedError) as caught:
        require(read_pin(place / "clone", "sub"))
    Repo(place / "sub").git("config", "uploadpack.allowAnySHA1InWant", "true")
    in_shell(caught.value.findings[0].fix, place / "clone")
    assert require(read_pin(place / "clone", "sub")) == []
    assert (place / "clone" / "sub" / "f").read_text() == "1\n"
