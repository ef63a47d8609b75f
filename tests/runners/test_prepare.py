"""Preparation, with a stand-in for srt-slurm: what is made, what is shared, and what is refused before a job exists."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from matrix.errors import RefusedError
from matrix.workspace import open_workspace
from runners import srtctl
from runners.cli.main import main
from runners.prepare import Prepared, Wishes, drift, host_faults, prepare
from runners.profile import Profile, find_profile
from runners.resolved import resolve
from runners.target import Target, read_plan, read_row, target_of
from runners.workspace import JobFolder, add_tools
from tests.runners.standin import SUBMODULE, World, world

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> World:
    return world(tmp_path, {"one": {"conc": 1}, "two": {"conc": 2}})


def target(made: World, name: str = "one", conc: int = 1) -> Target:
    return target_of(made.id(name, conc), open_workspace(str(made.checkout)))


def profile(made: World) -> Profile:
    return find_profile("local", "", made.env)


def prepared(made: World, name: str = "one", conc: int = 1, wishes: Wishes | None = None) -> Prepared:
    return prepare(target(made, name, conc), profile(made), made.checkout, made.env, wishes or Wishes())


def rules(act: Callable[[], object]) -> list[str]:
    with pytest.raises(RefusedError) as refused:
        act()
    return [finding.rule for finding in refused.value.findings]


def test_a_job_folder_holds_all_that_a_job_needs(made: World) -> None:
    done = prepared(made)
    recipe = yaml.safe_load(done.folder.recipe.read_text())
    assert recipe["sbatch_directives"] == {"comment": done.tag, "no-requeue": "", "open-mode": "append"}
    assert recipe["srun_options"]["container-workdir"] == "/infmax-workspace"
    assert recipe["container_mounts"] == {str(done.folder.scratch): "/infmax-workspace/LOGS"}
    assert "schema" not in recipe
    cluster = yaml.safe_load(done.folder.cluster_file.read_text())
    assert cluster["srtctl_root"] == str(done.folder.clone)
    said = subprocess.run([*done.srtctl, "apply", "--help"], capture_output=True, text=True, check=True)
    assert "--json" in said.stdout
    receipt = done.receipt.as_json()
    assert receipt["point"]["digest"] == done.target.row["digest"]
    assert receipt["inputs"]["recipe-sha256"] == done.resolved.sha256


def test_the_stand_in_for_uv_runs_what_the_batch_script_asks_for(made: World) -> None:
    clone = prepared(made).folder.clone
    uv = str(clone / "bin" / "uv")
    code = "import sys, srtctl; print(srtctl.__file__)"
    for words in (["--python", "3.12", "--no-dev", "--no-sync"], ["--no-project", "--python", "3.12"]):
        done = subprocess.run([uv, "run", *words, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.startswith(str(clone / "src"))
    assert subprocess.run([uv, "sync", "--python", "3.12", "--no-dev"], check=False).returncode == 0
    assert subprocess.run([uv, "pip", "install", "x"], check=False, capture_output=True).returncode == 2


def test_the_clone_is_the_patched_tree_and_the_submodule_is_untouched(made: World) -> None:
    upstream = made.checkout / SUBMODULE
    before = sorted(path for path in upstream.rglob("*") if path.is_file())
    done = prepared(made)
    assert sorted(path for path in upstream.rglob("*") if path.is_file()) == before
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=done.folder.clone, capture_output=True, text=True, check=True
    )
    assert head.stdout.strip() == done.receipt.software["base"] == done.receipt.software["pin"]


def test_launches_beside_each_other_share_what_is_equal_and_meet_nowhere(made: World) -> None:
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: prepared(made), range(6)))
    assert len({each.tag for each in done}) == 6
    assert len({each.folder.root for each in done}) == 6
    assert len({each.resolved.content_sha256 for each in done}) == 1
    assert len({each.resolved.sha256 for each in done}) == 6
    cache = made.folder / "local" / "cache"
    assert len(list((cache / "python").glob("*/packages.json"))) == 1
    assert len(list((cache / "trees").glob("*.json"))) == 1
    assert len(list((cache / "proofs").iterdir())) == 1, "one content is proven once"
    prepared(made, "two", 2)
    assert len(list((cache / "proofs").iterdir())) == 2


def test_a_cache_that_was_damaged_is_made_again(made: World) -> None:
    prepared(made)
    (tree,) = (path for path in (made.folder / "local" / "cache" / "trees").iterdir() if path.is_dir())
    shutil.rmtree(tree / ".git" / "objects")
    (tree / "src" / "srtctl" / "__init__.py").write_text("damage")
    assert (prepared(made).folder.clone / "src" / "srtctl" / "__init__.py").read_text() == ""


def test_nothing_of_the_launcher_s_environment_reaches_a_job_but_what_is_named(made: World) -> None:
    made.env.update({"GITHUB_TOKEN": "secret", "SBATCH_REQUEUE": "1", "PYTHONPATH": "/x", "RUNNER_NAME": "r0"})
    environ = prepared(made).environ
    assert environ.keys().isdisjoint({"GITHUB_TOKEN", "SBATCH_REQUEUE", "PYTHONPATH"})
    assert environ["RUNNER_NAME"] == "r0"
    assert environ["CONC_LIST"] == "1"
    assert environ["MODEL_PREFIX"] == "tiny"
    assert environ["EVAL_ONLY"] == "false"
    assert environ["INFMAX_WORKSPACE"] == str(made.folder / "local" / "workspace")


def test_a_key_that_the_pin_does_not_know_is_refused_and_nothing_is_left(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pin itself would drop the whole file with a warning."""
    original = Profile.file
    monkeypatch.setattr(Profile, "file", lambda self, **more: {**original(self, **more), "preflight": False})
    with pytest.raises(RefusedError, match="unknown fields") as refused:
        prepared(made)
    assert refused.value.findings[0].rule == "launch-cluster-file"
    assert list((made.folder / "local" / "jobs").iterdir()) == []


def test_a_recipe_that_srtctl_refuses_is_refused(made: World, monkeypatch: pytest.MonkeyPatch) -> None:

    def without_resources(*args: Any, **more: Any) -> Any:
        found = resolve(*args, **more)
        document = {key: value for key, value in found.document.items() if key != "resources"}
        return replace(found, text=yaml.safe_dump(document, sort_keys=False))

    monkeypatch.setattr("runners.prepare.resolve", without_resources)
    with pytest.raises(RefusedError, match="resources: missing"):
        prepared(made)
    assert list((made.folder / "local" / "jobs").iterdir()) == []


def test_all_that_is_wrong_is_told_at_once(made: World) -> None:
    shutil.rmtree(made.folder / "local" / "workspace")
    shutil.rmtree(made.folder / "local" / "models")
    shutil.rmtree(made.checkout / SUBMODULE)
    (made.checkout / SUBMODULE).mkdir()
    found = rules(lambda: prepared(made))
    assert sorted(found) == ["host-model", "host-workspace", "pin-missing"]
    assert not (made.folder / "local" / "jobs").exists()


def test_a_host_that_is_not_the_cluster_s_is_told_what_it_lacks_and_goes_on(made: World) -> None:
    shutil.rmtree(made.folder / "local" / "workspace")
    done = prepared(made, wishes=Wishes(off_cluster=True))
    assert [str(warning).split(": ")[1:3] for warning in done.warnings] == [["warning", "host-workspace"]]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_outputs_folder_that_cannot_be_written_is_refused(made: World, tmp_path: Path) -> None:
    folder = tmp_path / "readonly"
    folder.mkdir(mode=0o500)
    wrong = replace(profile(made), outputs=folder / "outputs")
    assert rules(lambda: prepare(target(made), wrong, made.checkout, made.env, Wishes())) == ["host-outputs"]


def test_a_python_without_packages_says_how_to_get_them(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\ncase "$*" in *version_info*) echo 3.11.1;; *) echo no venv >&2; exit 1;; esac\n')
    fake.chmod(0o755)
    with pytest.raises(RefusedError, match="no venv"):
        srtctl.install(["x"], fake, tmp_path / "cache", {"PATH": "/nowhere"})
    assert not [path for path in (tmp_path / "cache" / "python").iterdir() if path.suffix != ".lock"]


def test_an_accuracy_run_has_no_fake_dispatch(made: World) -> None:
    path = made.checkout / "configs" / "recipes" / "t.yaml"
    text = path.read_text().replace(
        '"tensor-parallel-size": 8', '"ep_dispatch-algorithm": "fake", "tensor-parallel-size": 8'
    )
    path.write_text(text)
    point = target(made).point
    throughput = resolve(point, tag="t")
    accuracy = resolve(point._replace(eval_only=True), tag="t")
    assert "ep_dispatch-algorithm" in throughput.text
    assert "ep_dispatch-algorithm" not in accuracy.text
    assert "tensor-parallel-size" in accuracy.text


ROWS: dict[str, tuple[str, str]] = {
    "not JSON": ("{", "launch-input"),
    "no row": ("3", "launch-input"),
    "two rows": ('[{"id": "a"}, {"id": "b"}]', "launch-input"),
    "no id": ('{"digest": "x"}', "launch-input"),
}


@pytest.mark.parametrize(("text", "rule"), ROWS.values(), ids=ROWS)
def test_a_file_that_is_no_row_is_refused(tmp_path: Path, text: str, rule: str) -> None:
    (tmp_path / "row.json").write_text(text)
    assert rules(lambda: read_row(tmp_path / "row.json")) == [rule]


ROW = '{"id": "a", "runner": "r", "digest": "d"}'
PLANS: dict[str, tuple[str, str]] = {
    "not JSON": ("", "plan-json"),
    "too deep": ("[" * 200_000, "plan-json"),
    "a row": (ROW, "plan-version"),
    "rows": (f"[{ROW}]", "plan-version"),
    "a later version": (f'{{"version": 2, "points": [{ROW}]}}', "its version is 2"),
    "a version that is none": (f'{{"version": true, "points": [{ROW}]}}', "its version is True"),
    "a point without an id": ('{"version": 1, "points": [{}]}', "plan-points"),
    "a point without a digest": ('{"version": 1, "points": [{"id": "a", "runner": "r"}]}', "plan-points"),
    "an id twice": (f'{{"version": 1, "points": [{ROW}, {ROW}]}}', "two of its points have one id: a"),
    "a number as an id": ('{"version": 1, "points": [{"id": 1, "runner": "r", "digest": "d"}]}', "plan-points"),
}


@pytest.mark.parametrize(("text", "words"), PLANS.values(), ids=PLANS)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(RefusedError, match=words) as refused:
        read_plan(tmp_path / "plan.json")
    (finding,) = refused.value.findings
    assert str(finding).startswith(f"{tmp_path / 'plan.json'}: plan-")
    assert finding.fix


def test_what_a_plan_names_and_this_checkout_has_not_is_told_at_the_plan(made: World) -> None:
    space = open_workspace(str(made.checkout))
    row = {"id": made.id("gone"), "digest": "d"}
    with pytest.raises(RefusedError, match=r"^plan\.json: point-unknown: .* did you mean"):
        target_of(made.id("gone"), space, row, source="plan.json")
    drifted = target_of(made.id("one"), space, {"id": made.id("one"), "digest": "0"}, source="plan.json")
    assert str(drift(drifted)).startswith("plan.json: launch-drift: ")


def test_a_row_without_a_digest_proves_nothing(made: World) -> None:
    space = open_workspace(str(made.checkout))
    assert rules(lambda: target_of(made.id("one"), space, {"id": made.id("one")})) == ["launch-row"]
    drifted = target_of(made.id("one"), space, {"id": made.id("one"), "digest": "0"})
    assert drifted.drifted
    assert rules(lambda: prepare(drifted, profile(made), made.checkout, made.env, Wishes())) == ["launch-drift"]


def test_a_setting_that_steers_sbatch_is_refused(made: World) -> None:
    path = made.checkout / "configs" / "test-master.yaml"
    setting = '"CONFIG_FILE=recipes/t.yaml:override_one"'
    text = path.read_text().replace(setting, f'{setting}, "SLURM_PARTITION=main", "SBATCH_QOS=urgent"')
    assert "SBATCH_QOS" in text
    path.write_text(text)
    with pytest.raises(RefusedError, match="launch-setting: additional-settings sets SBATCH_QOS, ") as refused:
        prepared(made)
    (finding,) = refused.value.findings
    assert finding.fix


def test_a_point_without_a_recipe_is_no_job(made: World) -> None:
    (made.checkout / "configs" / "recipes" / "t.yaml").unlink()
    assert "recipe-missing" in rules(lambda: target(made))


def test_a_dry_run_shows_the_launch_and_leaves_nothing(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/nowhere")
    words = ["launch", made.id("one"), "--cluster", "local", "--repository", str(made.checkout), "--dry-run"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "nothing was submitted" in done.stdout
    assert target(made).row["digest"] in done.stdout
    assert made.jobs() == []
    assert CliRunner().invoke(main, [*words, "--plan", "x"]).exit_code == 2
    assert CliRunner().invoke(main, ["launch"]).exit_code == 2
    assert CliRunner().invoke(main, ["launch", made.id("one"), "--off-cluster"]).exit_code == 2


def test_doctor_names_what_is_missing_with_its_fix(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RUNNER_NAME", raising=False)
    shutil.rmtree(made.folder / "local" / "workspace")
    empty = made.folder / "bin"
    empty.mkdir()
    (empty / "git").symlink_to(shutil.which("git") or "git")
    monkeypatch.setenv("PATH", str(empty))
    words = ["doctor", "--repository", str(made.checkout), "--format", "json"]
    done = CliRunner().invoke(main, [*words, "--cluster", "local"])
    assert done.exit_code == 1, done.output
    checks = {check["what"]: check for check in json.loads(done.stdout)}
    bad = {what for what, check in checks.items() if check["good"] is False}
    assert bad == {"slurm", "workspace"}
    assert all(checks[what]["fix"] for what in bad)
    assert checks["submodule"]["good"] is True
    assert checks["python"]["good"] is True
    monkeypatch.delenv("LOCAL_ROOT")
    done = CliRunner().invoke(main, [*words, "--cluster", "local"])
    assert "LOCAL_ROOT is not set" in done.stdout
    done = CliRunner().invoke(main, words[:-2])
    assert "no cluster is named" in done.stdout


def test_a_job_folder_is_removed_whole(tmp_path: Path) -> None:
    folder = JobFolder(root=tmp_path / "job")
    folder.scratch.mkdir(parents=True)
    folder.remove()
    assert not folder.root.exists()


@pytest.mark.parametrize(("frontend", "wanted"), [("sglang", 2), ("dynamo", 2), ("vllm", 0), ("atomesh", 0)])
def test_a_frontend_that_needs_a_program_is_refused_without_it(made: World, frontend: str, wanted: int) -> None:
    document = {"frontend": {"type": frontend}, "model": {"path": "tiny"}}
    row = target(made).row
    without = profile(made)
    found = [fault for fault in host_faults(without, document, row) if fault.rule == "host-tool"]
    assert len(found) == wanted
    program = made.folder / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    having = replace(without, tools={"nats-server": program, "etcd": program})
    assert list(host_faults(having, document, row)) == []


def test_a_tool_that_is_not_there_is_replaced_by_one_that_says_so(tmp_path: Path) -> None:
    there = tmp_path / "etcd"
    there.touch()
    add_tools(tmp_path / "clone", {"etcd": there, "nats-server": tmp_path / "nowhere"})
    assert (tmp_path / "clone" / "configs" / "etcd").resolve() == there
    done = subprocess.run([tmp_path / "clone" / "configs" / "nats-server"], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "nats-server is not installed on this cluster" in done.stderr
