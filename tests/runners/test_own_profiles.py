"""A repository's own cluster profiles: found without being named, before those of the package."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from click.testing import CliRunner

from matrix.config.settings import find_settings
from matrix.errors import RefusedError
from matrix.skeleton import TEMPLATES
from runners.cli.main import main
from runners.profile import FOLDER, find_profile, known_profiles, load_profile, profile_folders
from tests.changelog.support import Repository
from tests.cli.support import cli
from tests.runners.standin import SUBMODULE, world
from tests.runners.test_profile import SET

if TYPE_CHECKING:
    from click.testing import Result

EXAMPLE: Final = TEMPLATES / "configs" / "clusters" / "mi300x-example.yaml"
POINT: Final = "qwen3-0.6b-fp16-mi300x-sglang--1k1k--1w-tp1--c1--override_tp1_c1"
ENVIRONMENT: Final = {**SET, "BENCHMARK_WORKSPACE": "/workspace"}


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository as `matrix init` makes it, with a stand-in for srt-slurm where the submodule goes."""
    made = world(tmp_path / "made", {"one": {}})
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    found = Repository(tmp_path / "foreign")
    monkeypatch.chdir(found.folder)
    assert cli("init", "--repository", "org/bench").status == 0
    shutil.copytree(made.checkout / "runners", found.folder / "runners")
    pin = subprocess.run(
        ["git", "-C", str(made.checkout), "rev-parse", f":{SUBMODULE}"], capture_output=True, text=True, check=True
    )
    found.git("update-index", "--add", "--cacheinfo", f"160000,{pin.stdout.strip()},{SUBMODULE}")
    found.git("add", "configs", "pyproject.toml", ".github")
    found.git("commit", "--quiet", "--message", "begin")
    return found


def rehearsed(*words: str) -> Result:
    return CliRunner().invoke(main, ["launch", POINT, "--dry-run", "--off-cluster", *words])


def test_the_command_of_the_rendered_workflow_finds_it(foreign: Repository, tmp_path: Path) -> None:
    workflow = (foreign.folder / ".github/workflows/benchmark.yml").read_text(encoding="utf-8")
    [command] = re.findall(r"run: exec (.* -m runners launch .*)", workflow)
    assert "--cluster" not in command
    python = tmp_path / "matrix" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    rows = json.loads(cli("expand", "--format", "json").out)
    (foreign.folder / "plan").mkdir()
    (foreign.folder / "plan" / "plan.json").write_text(json.dumps({"version": 1, "points": rows}), encoding="utf-8")
    given = f"export ID={POINT} RUNNER_TEMP={shlex.quote(str(tmp_path))}"
    done = subprocess.run(
        ["bash", "-c", f"{given}; {command} --dry-run --off-cluster"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "cluster:       mi300x-example, partition compute, account " in done.stdout


def test_the_repository_s_own_goes_before_the_package_s(foreign: Repository) -> None:
    own = foreign.folder / "configs" / "clusters"
    text = (own / "mi300x-example.yaml").read_text(encoding="utf-8")
    (own / "mi300x-example.yaml").unlink()
    missing = rehearsed()
    assert missing.exit_code == 2
    assert "no cluster profile serves the runner cluster:mi300x-example" in missing.stderr
    mine = text.replace("cluster: mi300x-example", "cluster: local").replace("partition: compute", "partition: mine")
    (own / "local.yaml").write_text(mine, encoding="utf-8")
    assert "cluster:       local, partition mine" in rehearsed().stdout
    assert "cluster:       local, partition mine" in rehearsed("--cluster", "local").stdout
    # The others of the package are still there.
    named = rehearsed("--cluster", "mi300x-amds")
    assert "cluster:       mi300x-amds" in named.stdout, named.stderr


def test_a_folder_elsewhere_is_named_in_the_settings(foreign: Repository) -> None:
    (foreign.folder / "configs" / "clusters").rename(foreign.folder / "sites")
    settings = foreign.folder / "pyproject.toml"
    gone = rehearsed()
    assert gone.exit_code == 1
    assert "configs/clusters: profile-folder: " in gone.stderr
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace('"configs/clusters"', '"sites"'), encoding="utf-8")
    assert "cluster:       mi300x-example" in rehearsed().stdout


def test_what_is_wrong_with_it_is_told_at_its_line(foreign: Repository) -> None:
    path = foreign.folder / "configs" / "clusters" / "mi300x-example.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("partition: compute", "partitions: compute"), encoding="utf-8")
    done = rehearsed()
    assert done.exit_code == 1
    assert "configs/clusters/mi300x-example.yaml:9:1: profile-key: a profile has no partitions." in done.stderr
    # A repair that is one of the runner's own variables: it is told before anything is done.
    path.write_text(text, encoding="utf-8")
    live = CliRunner().invoke(main, ["launch", POINT], env={"SHARED_ROOT": None, "BENCHMARK_WORKSPACE": None})
    assert live.exit_code == 1
    assert "the variable SHARED_ROOT is not set" in live.stderr


def test_the_example_is_a_profile() -> None:
    profile = load_profile(EXAMPLE, ENVIRONMENT)
    assert profile.serves("cluster:mi300x-example")
    assert profile.serves("mi300x-example_01")
    assert "mi300x-example" not in known_profiles()
    assert find_profile(None, "mi300x-example_00", ENVIRONMENT, folders=(EXAMPLE.parent, FOLDER)).source == EXAMPLE


def test_where_profiles_are_looked_for(tmp_path: Path) -> None:
    assert profile_folders(None) == (FOLDER,)
    assert profile_folders(str(tmp_path)) == (tmp_path, FOLDER)
    with pytest.raises(RefusedError, match="profile-folder"):
        profile_folders(str(tmp_path / "gone"))
    (tmp_path / "configs" / "clusters").mkdir(parents=True)
    (tmp_path / "configs" / "runners.yaml").touch()
    assert find_settings(str(tmp_path)).clusters == str(Path(tmp_path, "configs", "clusters"))
