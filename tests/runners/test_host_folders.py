"""Folders of a host that take nothing, or fail on the way: told before there is a job, with their place."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from matrix.errors import RefusedError
from matrix.workspace import open_workspace
from runners.display import PlainDisplay
from runners.doctor import examine_profile
from runners.flight import Launch
from runners.launch import begin
from runners.prepare import Wishes, prepare
from runners.profile import Profile, find_profile
from runners.slurm import Slurm
from runners.target import Target, target_of
from runners.workspace import lacking
from tests.runners.scripted import FakeClock
from tests.runners.standin import World, world

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> World:
    return world(tmp_path, {"one": {}})


def target(made: World) -> Target:
    return target_of(made.id("one"), open_workspace(str(made.checkout)))


def profile(made: World) -> Profile:
    return find_profile("local", "", made.env)


@pytest.mark.parametrize("name", ["outputs", "jobs", "cache"])
def test_a_folder_that_takes_nothing_is_refused(made: World, name: str) -> None:
    """Slurm would fail the job without a word, or git speak of a template."""
    right, folder = profile(made), made.folder / "local" / name

    def refused(why: str) -> None:
        with pytest.raises(RefusedError) as error:
            prepare(target(made), right, made.checkout, made.env, Wishes())
        (finding,) = error.value.findings
        assert (finding.rule, bool(finding.fix)) == (f"host-{name}", True)
        assert why in finding.message
        (check,) = [check for check in examine_profile(right) if check.what == name]
        assert check.good is False
        assert why in check.said

    folder.unlink(missing_ok=True)
    folder.touch()
    refused("is no folder")
    folder.unlink()
    folder.symlink_to("/nowhere/at/all")
    refused("is a link to what is not there")
    folder.unlink()


def test_a_disk_that_is_nearly_full_takes_nothing(tmp_path: Path) -> None:
    """In a namespace of its own, so that what is mounted goes with the process."""
    alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    script = 'mount -t tmpfs -o size=64k none "$1" || exit 9; exec "$2" -c "$3" "$1/to/be/made"'
    code = "import sys, pathlib, runners.workspace as w; print(w.lacking(pathlib.Path(sys.argv[1]), 2**24))"
    words = [*alone, "sh", "-c", script, "sh", str(tmp_path), sys.executable, code]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 9 or "unshare" in done.stderr:
        pytest.skip(f"a disk cannot be mounted here: {done.stderr.strip()}")
    assert done.stdout == "has 0 MiB free\n"
    assert lacking(tmp_path / "to" / "be" / "made", 2**24) == ""


def test_a_file_system_that_fails_on_the_way_is_told_with_its_place(
    made: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a sweep it would have left the jobs of all other points behind."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(tmp_path / "cache"))

    monkeypatch.setattr("runners.prepare.patched_tree", fail)
    clock, display = FakeClock(), PlainDisplay(io.StringIO())
    run = Launch(
        repository=made.checkout, results=tmp_path, environ=made.env, slurm=Slurm(), clock=clock, display=display
    )
    with pytest.raises(RefusedError, match=r"cache: launch-prepare: .* Input/output error\. fix: "):
        begin(target(made), profile(made), tmp_path, run)
