"""Cluster profiles: those that ship, and every way in which one can be wrong."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from matrix.errors import RefusedError, UsageError
from matrix.points.pipeline import expand
from matrix.points.request import Request
from matrix.workspace import open_workspace
from runners.profile import FOLDER, find_profile, known_profiles, load_profile, squash_name

if TYPE_CHECKING:
    from pathlib import Path

SET = {
    "USER": "someone",
    "HOME": "/home/someone",
    "INFMAX_WORKSPACE": "/checkout",
    "SHARED_ROOT": "/shared-root",
    "LOCAL_ROOT": "/local",
    "LOCAL_PARTITION": "main",
    "LOCAL_PYTHON": "/usr/bin/python3",
}
GOOD: dict[str, Any] = {
    "cluster": "x",
    "labels": ["cluster:x"],
    "partition": "main",
    "account": "a",
    "time-limit": "01:00:00",
    "gpus-per-node": 8,
    "visible-devices": "ROCR_VISIBLE_DEVICES",
    "outputs": "/o",
    "jobs": "/j",
    "workspace": "/w",
    "python": "/usr/bin/python3",
}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "x.yaml"
    content = {**GOOD, **{key.replace("_", "-"): value for key, value in changes.items()}}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}, indent=1))
    return path


def faults(path: Path, environ: dict[str, str] | None = None) -> list[tuple[str, str]]:
    with pytest.raises(RefusedError) as refused:
        load_profile(path, SET if environ is None else environ)
    return [(finding.rule, finding.message) for finding in refused.value.findings]


@pytest.mark.parametrize("name", known_profiles())
def test_what_ships_is_valid_and_named_after_its_cluster(name: str) -> None:
    profile = load_profile(FOLDER / f"{name}.yaml", SET)
    assert profile.cluster == name
    assert all("$" not in str(value) for value in profile.file(root=FOLDER).values())


def test_every_runner_of_the_fleet_belongs_to_one_profile(root: Path) -> None:
    labels = yaml.safe_load((root / "configs" / "runners.yaml").read_text())["labels"]
    profiles = [load_profile(FOLDER / f"{name}.yaml", SET) for name in known_profiles()]
    for label, names in labels.items():
        for runner in (label, *names):
            serving = [profile.cluster for profile in profiles if profile.serves(runner)]
            assert len(serving) == 1, runner
        assert all(find_profile(None, name, SET).serves(label) for name in names)


def test_every_model_of_the_search_space_has_a_place_on_its_cluster(root: Path) -> None:
    space = open_workspace(str(root))
    seen = set()
    for point in expand(space.configs, space.facts, space.policy, Request()).points:
        recipe = point.deployment.recipe
        assert recipe is not None, point.id
        model = str(recipe.data["model"]["path"])
        profile = find_profile(None, point.deployment.runner, SET)
        assert model.startswith("hf:") or model in profile.models, point.id
        seen.add(model)
    assert {"DeepSeek-V4-Pro-0813", "DeepSeek-R1-0528-MXFP4-v2"} <= seen


def test_containers_of_both_clusters_see_one_hub_cache_and_those_of_mi355x_the_client_s() -> None:
    wanted = {"mi355x-amds": {"/hf_hub_cache/hub", "/aiperf_mmap_cache"}, "mi300x-amds": {"/hf_hub_cache/hub"}}
    for name, inside in wanted.items():
        mounts = load_profile(FOLDER / f"{name}.yaml", SET).mounts
        assert inside <= set(mounts.values())


def test_an_image_becomes_its_squash_file_where_there_is_one(tmp_path: Path) -> None:
    image = "registry/a/b:c@sha256:d#e"
    assert squash_name(image) == "registry_a_b_c_sha256_d_e.sqsh"
    profile = load_profile(written(tmp_path, images=str(tmp_path)), SET)
    assert profile.container(image) == image
    assert profile.file(root=tmp_path, images=(image,))["containers"] == {}
    (tmp_path / squash_name(image)).touch()
    assert profile.container(image) == str(tmp_path / squash_name(image))
    assert profile.file(root=tmp_path, images=(image,))["containers"] == {image: str(tmp_path / squash_name(image))}


def test_rdma_mounts_are_off_unless_asked_for(tmp_path: Path) -> None:
    profile = load_profile(written(tmp_path, mounts={"/a": "/b"}, rdma_mounts={"/lib/x": "/lib/x"}), SET)
    assert profile.file(root=tmp_path)["default_mounts"] == {"/a": "/b"}
    assert profile.file(root=tmp_path, rdma=True)["default_mounts"] == {"/a": "/b", "/lib/x": "/lib/x"}


def test_every_missing_variable_is_named_once_and_before_anything_else_happens() -> None:
    found = faults(FOLDER / "mi300x-amds.yaml", {})
    assert [message.split()[2] for _, message in found] == ["USER", "SHARED_ROOT", "INFMAX_WORKSPACE"]
    assert {rule for rule, _ in found} == {"profile-variable"}


def test_a_value_named_on_the_command_line_needs_no_variable() -> None:
    rest = {key: value for key, value in SET.items() if key != "INFMAX_WORKSPACE"}
    profile = find_profile("mi355x-amds", "", rest, instead={"workspace": "/elsewhere"})
    assert str(profile.workspace) == "/elsewhere"
    assert "INFMAX_WORKSPACE" not in dict(profile.variables)


def test_the_cache_is_the_user_s_where_the_profile_names_none(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert str(load_profile(path, SET).cache) == "/home/someone/.cache/matrix-runner"
    assert str(load_profile(path, {**SET, "XDG_CACHE_HOME": "/c"}).cache) == "/c/matrix-runner"


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown key": ({"partitions": "x"}, "profile-key", "no partitions"),
    "a key of a later pin": ({"default_host_setup": {}}, "profile-pin", "drop the whole cluster file"),
    "missing key": ({"partition": None}, "profile-missing", "lacks partition"),
    "a number as text": ({"gpus_per_node": "8"}, "profile-value", "gpus-per-node"),
    "a boolean as number": ({"gpus_per_node": True}, "profile-value", "gpus-per-node"),
    "no GPUs": ({"gpus_per_node": 0}, "profile-value", "gpus-per-node"),
    "time in minutes": ({"time_limit": "60"}, "profile-value", "time-limit"),
    "a relative path": ({"outputs": "out"}, "profile-value", "outputs"),
    "a relative mount": ({"mounts": {"/a": "b"}}, "profile-value", "mounts"),
    "an option as variable": ({"visible_devices": "A B"}, "profile-value", "visible-devices"),
    "a lone dollar": ({"account": "a$b"}, "profile-variable", "begins no variable"),
    "a relative variable": ({"outputs": "${HERE}/o"}, "profile-path", "no absolute path"),
    "a list for a text": ({"partition": ["a", "b"]}, "profile-value", "has to be text"),
    "a text for a list": ({"labels": "x"}, "profile-value", "has to be a list"),
    "too many GPUs": ({"gpus_per_node": 65}, "profile-value", "the maximum is 64"),
    "a space in a path": ({"jobs": "/a b/jobs"}, "profile-value", "lists of mounts there: ' '"),
    "a comma in a path": ({"workspace": "/a,/b"}, "profile-value", "lists of mounts there: ','"),
    "a colon in a model": ({"models": {"m": "/a:/etc"}}, "profile-value", "lists of mounts there: ':'"),
    "a pattern of Slurm": ({"outputs": "/a/%j"}, "profile-value", "lists of mounts there: '%'"),
    "a directive of one's own": ({"partition": "${LINES}"}, "profile-value", "the batch script would say"),
    "a comment in an account": ({"account": "a#b"}, "profile-value", "the batch script would say"),
    "lines in a path": ({"outputs": "/${LINES}"}, "profile-value", "Slurm splits"),
}


@pytest.mark.parametrize(("changes", "rule", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_profile_is_refused_at_its_line(tmp_path: Path, changes: dict[str, Any], rule: str, words: str) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(RefusedError) as refused:
        load_profile(path, {**SET, "HERE": "below", "LINES": "main\n#SBATCH --wrap=x"})
    (finding,) = refused.value.findings
    assert finding.rule == rule
    assert words in finding.message
    assert finding.span is not None
    assert finding.span.line > 0 or rule == "profile-missing"
    assert finding.fix


def test_a_file_that_is_no_profile_is_not_quoted_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("- a\n" * 5000)
    ((rule, message),) = faults(path)
    assert rule == "profile-value"
    assert message.endswith("…, and it has to be a mapping.")
    assert len(message) < 150


def test_a_mount_may_have_a_flag(tmp_path: Path) -> None:
    assert load_profile(written(tmp_path, mounts={"/a": "/b:ro"}), SET).mounts == {"/a": "/b:ro"}


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, gpus_per_node="8", partitions="x", account="${NOT_SET}")
    assert len(faults(path)) == 3


def test_an_unknown_cluster_is_a_wrong_command_line_and_a_path_is_a_profile(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean mi300x-amds"):
        find_profile("mi300x-amd", "", SET)
    with pytest.raises(UsageError, match="no cluster profile serves"):
        find_profile(None, "h200", SET)
    assert find_profile(str(written(tmp_path)), "", SET).cluster == "x"
    assert fnmatchcase("mi355x-amds_03", "mi355x-amds_*")
