"""What the built distributions carry, and that they work where nothing else is installed."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

import matrix

PACKAGES: Final = ("matrix", "runners")
UPSTREAM: Final = "runners/srt-slurm/upstream/"
# One of every kind of data file, so that the build is tested on kinds of which the tree has none yet.
PLANTED: Final = (
    "matrix/schemas/planted.json",
    "matrix/templates/planted/deeper/planted.yml",
    "matrix/templates/report/planted.css",
    "matrix/templates/report/planted.html",
    "matrix/templates/report/planted.js",
    "runners/clusters/planted.yaml",
    "runners/srt-slurm/README.md",
    "runners/srt-slurm/patches/999-planted.patch",
    "runners/srt-slurm/patches/series.yaml",
)
FOREIGN: Final = (f"{UPSTREAM}pyproject.toml", f"{UPSTREAM}src/srtctl/core.py", "matrix/__pycache__/planted.pyc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A source tree and the two distributions that were built from it."""

    tree: Path
    wheel: Path
    sdist: Path


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that has to succeed, with nothing of this checkout on its import path."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(tree: Path, target: str, folder: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", folder, cwd=tree)
    [built] = folder.iterdir()
    return built


def source_files(tree: Path) -> set[str]:
    """The files of our packages, as paths relative to the tree."""
    found = {file.relative_to(tree) for package in PACKAGES for file in (tree / package).rglob("*") if file.is_file()}
    return {file.as_posix() for file in found if "__pycache__" not in file.parts and not file.is_relative_to(UPSTREAM)}


def wheel_files(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(wheel: Path) -> Message:
    [text] = [content for name, content in wheel_files(wheel).items() if name.endswith(".dist-info/METADATA")]
    return BytesParser().parsebytes(text)


def of_packages(names: Iterable[str]) -> set[str]:
    return {name for name in names if name.startswith(tuple(f"{package}/" for package in PACKAGES))}


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Both distributions, built from a copy of the checkout with the planted files in it."""
    tree = tmp_path_factory.mktemp("tree")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    listed = [name.removeprefix("/") for name in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]]
    for name in [".gitignore", "LICENSE", "README.md", "pyproject.toml", *listed]:
        origin = root / name
        if origin.is_dir():
            shutil.copytree(origin, tree / name, ignore=shutil.ignore_patterns("upstream", "__pycache__", ".*_cache"))
        elif origin.exists():
            shutil.copy(origin, tree / name)
    for name in [*PLANTED, *FOREIGN]:
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(f"{name}\n", encoding="utf-8")
    folder = tmp_path_factory.mktemp("dist")
    return Built(tree=tree, wheel=build(tree, "wheel", folder / "wheel"), sdist=build(tree, "sdist", folder / "sdist"))


def test_wheel_carries_the_packages_whole_and_nothing_else(built: Built) -> None:
    names = set(wheel_files(built.wheel))
    expected = source_files(built.tree)
    assert expected.issuperset(PLANTED)
    assert of_packages(names) == expected
    assert {name.split("/")[0] for name in names} == {*PACKAGES, f"matrix_runner-{matrix.__version__}.dist-info"}


def test_sdist_carries_what_a_rebuild_needs_and_no_submodule(built: Built, tmp_path: Path) -> None:
    run("tar", "--extract", "--file", built.sdist, cwd=tmp_path)
    [unpacked] = tmp_path.iterdir()
    names = {file.relative_to(unpacked).as_posix() for file in unpacked.rglob("*") if file.is_file()}
    assert of_packages(names) == source_files(built.tree)
    assert names >= {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"}
    assert "tests/test_packaging.py" in names
    rebuilt = build(unpacked, "wheel", tmp_path / "rebuilt")
    assert wheel_files(rebuilt) == wheel_files(built.wheel)


def test_the_version_stands_in_one_place(root: Path, built: Built) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dynamic"] == ["version"]
    assert metadata(built.wheel)["Version"] == matrix.__version__
    told = run(sys.executable, "-m", "runners", "--version", cwd=root)
    assert told == f"runners, version {matrix.__version__}\n"


def test_metadata_names_licence_and_python(built: Built) -> None:
    told = metadata(built.wheel)
    assert told["Name"] == "matrix-runner"
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Requires-Python"] == ">=3.11"


@pytest.mark.slow
def test_wheel_works_in_an_empty_environment(root: Path, built: Built, tmp_path: Path) -> None:
    environment = tmp_path / "empty"
    python = environment / "bin" / "python"
    if find_spec("ensurepip") is None:  # a Python without pip, as uv finds on a bare Debian
        run("uv", "venv", "--python", sys.executable, environment, cwd=tmp_path)
        run("uv", "pip", "install", "--python", python, built.wheel, cwd=tmp_path)
    else:
        run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", built.wheel, cwd=tmp_path)
    assert matrix.__version__ in run(environment / "bin" / "matrix", "--version", cwd=tmp_path)
    assert matrix.__version__ in run(python, "-m", "runners", "--version", cwd=tmp_path)
    # The script, not python -m: that would put the checkout before the installed package.
    installed = run(environment / "bin" / "matrix", "expand", "--format", "json", cwd=root)
    assert installed == run(sys.executable, "-m", "matrix", "expand", "--format", "json", cwd=root)
    assert json.loads(installed)


@pytest.mark.parametrize("name", ["perf-changelog.yaml", "runners/srt-slurm/patches/433-x.patch"])
@pytest.mark.parametrize("content", [b"a\nb \n", b"a\r\nb\r\n"], ids=["lf", "crlf"])
def test_git_hands_out_the_bytes_it_was_given(root: Path, tmp_path: Path, name: str, content: bytes) -> None:
    there = tmp_path / "there"
    file = there / name
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    shutil.copy(root / ".gitattributes", there)
    windows = (
        "-c",
        "core.autocrlf=true",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.invalid",
        "-c",
        "commit.gpgSign=false",
    )
    run("git", "init", "--quiet", cwd=there)
    run("git", *windows, "add", ".", cwd=there)
    run("git", *windows, "commit", "--quiet", "--message", "one", cwd=there)
    run("git", *windows, "clone", "--quiet", there, "here", cwd=tmp_path)
    assert (tmp_path / "here" / name).read_bytes() == content
