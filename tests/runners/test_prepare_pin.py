"""Preparation on the real pin with its patches: the very srtctl that would submit takes what we write.

Needs the submodule, and once the packages that srtctl needs; REQUIRE_PIN=1 turns both skips into failures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from matrix.errors import RefusedError
from matrix.points.pipeline import expand
from matrix.points.request import Request
from matrix.workspace import open_workspace
from runners.job import JobId
from runners.pin import read_pin
from runners.prepare import Prepared, Wishes, prepare
from runners.profile import Profile, find_profile, known_profiles
from runners.srtctl import features
from runners.submission import read_submission
from runners.target import target_of
from tests.runners.test_profile import SET
from tests.srt_slurm import missing

if TYPE_CHECKING:
    from matrix.workspace import Workspace

pytestmark = pytest.mark.pin

SEED = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark"
AGG = "qwen3-0.6b-fp16-mi300x-vllm-srt-agg"


@pytest.fixture(scope="module")
def space(root: Path) -> Workspace:
    try:
        pin = read_pin(root)
    except RefusedError:
        missing("the pin of srt-slurm is known to a git checkout only")
    if pin.head is None:
        missing(f"srt-slurm is not checked out: git submodule update --init {pin.path}")
    return open_workspace(str(root))


def placed(name: str, cache: Path, folder: Path) -> Profile:
    """A profile that ships, with its folders moved to this host."""
    profile = find_profile(name, "", SET)
    return replace(profile, jobs=folder / "jobs", outputs=folder / "outputs", cache=cache, python=Path(sys.executable))


def made(name: str, space: Workspace, root: Path, profile: Profile, **wishes: bool) -> Prepared:
    try:
        return prepare(target_of(name, space), profile, root, dict(os.environ), Wishes(off_cluster=True, **wishes))
    except RefusedError as refused:
        if refused.findings[0].rule == "launch-packages":
            missing(f"the packages of srt-slurm cannot be installed: {refused}")
        raise


def ids(space: Workspace, key: str) -> list[str]:
    expansion = expand(space.configs, space.facts, space.policy, Request())
    return [point.id for point in expansion.points if point.id.startswith(f"{key}--")]


def test_the_seed_s_points_are_taken_whole(space: Workspace, root: Path, launch_cache: Path, tmp_path: Path) -> None:
    names = ids(space, SEED)
    assert len(names) == 5
    for name in names:
        done = made(name, space, root, placed("mi355x-amds", launch_cache, tmp_path), rdma=name.endswith("lmcache"))
        recipe = yaml.safe_load(done.folder.recipe.read_text())
        roles = recipe["backend"]["atom_config"]
        assert {role["spec-decode-acceptance-length"] for role in roles.values()} == {3.01}
        assert done.receipt.point["golden"] == "3.01"
        assert done.receipt.software["patches"].keys() == {
            "433-atom-atomesh.patch", "504-post-eval-srun-options.patch", "507-extra-kv-connectors.patch"
        }  # fmt: skip
        mounts = yaml.safe_load(done.folder.cluster_file.read_text())["default_mounts"]
        assert ("/etc/libibverbs.d" in mounts) is name.endswith("lmcache")


def test_an_accuracy_run_of_the_seed_forces_nothing(
    space: Workspace, root: Path, launch_cache: Path, tmp_path: Path
) -> None:
    name = next(name for name in ids(space, SEED) if "--c16--" in name)
    done = made(f"{name}--eval", space, root, placed("mi355x-amds", launch_cache, tmp_path))
    assert "acceptance" not in done.folder.recipe.read_text()
    assert done.environ["EVAL_ONLY"] == "true"
    assert done.environ["EVAL_CONC"] == "16"


@pytest.mark.parametrize("cluster", known_profiles())
def test_every_profile_becomes_a_cluster_file_that_is_kept_whole(
    cluster: str, space: Workspace, root: Path, launch_cache: Path, tmp_path: Path
) -> None:
    done = made(ids(space, AGG)[0], space, root, placed(cluster, launch_cache, tmp_path), rdma=True)
    assert "--json" in features(
        subprocess.run([*done.srtctl, "apply", "--help"], capture_output=True, text=True, check=True).stdout
    )


def test_a_key_of_a_later_pin_is_refused_by_the_pin_s_own_class(
    space: Workspace, root: Path, launch_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Profile.file
    monkeypatch.setattr(Profile, "file", lambda self, **more: {**original(self, **more), "default_host_setup": {}})
    with pytest.raises(RefusedError, match="default_host_setup") as refused:
        made(ids(space, AGG)[0], space, root, placed("mi300x-amds", launch_cache, tmp_path))
    assert refused.value.findings[0].rule == "launch-cluster-file"


def test_what_srtctl_says_of_a_submission_is_what_we_read(
    space: Workspace, root: Path, launch_cache: Path, tmp_path: Path
) -> None:
    """The real `apply --json`, with its own stand-in for sbatch."""
    done = made(ids(space, AGG)[0], space, root, placed("mi300x-amds", launch_cache, tmp_path))
    environ = {**done.environ, "SRTSLURM_CONFIG": str(done.folder.cluster_file)}
    said = subprocess.run(
        [*done.srtctl, "apply", "-f", str(done.folder.recipe), "--json", "--yes"],
        env={**environ, "PATH": str(stub_sbatch(tmp_path, "4711"))},
        cwd=done.folder.clone, capture_output=True, text=True, check=False,
    )  # fmt: skip
    submission = read_submission(said.returncode, said.stdout, said.stderr)
    assert submission.job == JobId(4711)
    assert submission.output == tmp_path / "outputs" / "4711"
    script = (submission.output / "sbatch_script.sh").read_text()
    for line in (
        f"--comment={done.tag}", "--no-requeue", "--open-mode=append", "--partition=compute", "--account=someone",
        "--cpus-per-task=32", "--exclude=chi-mi300x-049,chi-mi300x-121",
    ):  # fmt: skip
        assert f"#SBATCH {line}\n" in script
    assert f'SRTCTL_SOURCE="{done.folder.clone}"' in script
    assert json.loads((submission.output / "4711.json").read_text())["job_id"] == "4711"
    failed = subprocess.run(
        [*done.srtctl, "apply", "-f", str(done.folder.recipe), "--json", "--yes"],
        env={**environ, "PATH": str(stub_sbatch(tmp_path, ""))},
        cwd=done.folder.clone, capture_output=True, text=True, check=False,
    )  # fmt: skip
    with pytest.raises(Exception, match="sbatch failed in srtctl"):
        read_submission(failed.returncode, failed.stdout, failed.stderr)


def stub_sbatch(folder: Path, job: str) -> Path:
    """A folder with nothing but an sbatch that gives this id, or refuses."""
    place = folder / f"bin{job}"
    place.mkdir()
    text = f"echo Submitted batch job {job}" if job else "echo 'sbatch: error: Invalid account' >&2; exit 1"
    (place / "sbatch").write_text(f"#!/bin/sh\n{text}\n")
    (place / "sbatch").chmod(0o755)
    for name in ("sh", "touch"):
        (place / name).symlink_to(f"/bin/{name}")
    return place
