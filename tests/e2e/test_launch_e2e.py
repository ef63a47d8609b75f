"""Seed points from plan to verified receipt with the real patched srt-slurm: job script, driver, steps, health gate.

On virtual nodes with real addresses, through a real Slurm. Stood in for are the container plugin, ATOM's server,
the AToMesh binary and the benchmark client. docs/running.md lists what that leaves out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import yaml

from matrix.errors import RefusedError
from runners.pin import SUBMODULE, read_pin
from tests.srt_slurm import interpreter

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [pytest.mark.pin, pytest.mark.slurm, pytest.mark.slow]

HERE = Path(__file__).parent
SEED = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark--agentic"
C16 = f"{SEED}--1p-tp8-1d-tp8--c16--override_tp8_c16"
C256 = f"{SEED}--1p-tp8dpa-1d-tp8dpa--c256--override_dpa8_c256_lmcache"
AGG = "tiny-fp16-atom-agg--128-32--2w-tp4--c4--override_c4"
EMPTY = "tiny-fp16-atom-agg--128-32--2w-tp4--c5--override_c5_nothing"
POINTS = (C16, C256, AGG, EMPTY)
IMAGE = "rocm/atom-dev:nightly_202609221542"
ISOLATED = ("unshare", "-n", "-m", "-u", "-p", "-f", "--kill-child", "--mount-proc")
INSTALL = (
    "apt-get install --no-install-recommends slurmctld slurmd slurm-client munge libslurm-dev gcc libc6-dev iproute2"
)

MASTER = """
tiny-fp16-atom-agg:
  image: rocm/atom-dev:nightly_202609221542
  model: org/tiny
  model-prefix: tiny
  precision: fp16
  framework: atom
  runner: cluster:mi355x-amds
  multinode: true
  disagg: false
  router: {name: atomesh, version: "1"}
  scenarios:
    fixed-seq-len:
      - isl: 128
        osl: 32
        search-space:
          - conc-list: [4]
            num-nodes: 1
            worker: {num-worker: 2, tp: 4, ep: 1, dp-attn: false, additional-settings: [
              "CONFIG_FILE=recipes/tiny.yaml:override_c4"]}
          - conc-list: [5]
            num-nodes: 1
            worker: {num-worker: 2, tp: 4, ep: 1, dp-attn: false, additional-settings: [
              "CONFIG_FILE=recipes/tiny.yaml:override_c5_nothing"]}
"""
RECIPE = """
base:
  schema: 2
  name: tiny-agg
  model: {path: tiny, container: "rocm/atom-dev:nightly_202609221542", precision: fp16}
  slurm: {time_limit: "01:00:00"}
  resources: {gpu_type: mi355x, gpus_per_node: 8}
  engine: {type: atom}
  roles:
    agg: {nodes: 1, workers: 2, gpus: 4, args: {served-model-name: org/tiny, kv_cache_dtype: fp8}}
  frontend: {type: atomesh, enable_multiple_frontends: false}
  health_check: {max_attempts: 60, interval_seconds: 1}
  benchmark:
    type: custom
    command: python3 /infmax-workspace/client.py /logs/fixed-seq/results_concurrency_${CONC}.json
    env: {MODEL: org/tiny, ISL: "128", OSL: "32"}
override_c4: {benchmark: {env: {CONC: "4"}}}
override_c5_nothing:
  benchmark:
    command: python3 /infmax-workspace/client.py /elsewhere/results_concurrency_${CONC}.json
    env: {CONC: "5"}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """What became of all launches."""

    report: Mapping[str, Any]
    results: Path
    local: Path

    def receipt(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.results / name / "receipt.json").read_text())
        return found

    def logs(self, name: str) -> Path:
        return Path(self.receipt(name)["job"]["output"]) / "logs"

    def argv(self, name: str, worker: str) -> list[str]:
        """What a process was started with."""
        (log,) = self.logs(name).glob(f"*_{worker}.out")
        line = next(line for line in log.read_text().splitlines() if line.startswith("argv "))
        argv: list[str] = json.JSONDecoder().raw_decode(line.removeprefix("argv "))[0]
        return argv


def missing(reason: str, *switches: str) -> NoReturn:
    if any(os.environ.get(switch) == "1" for switch in switches):
        pytest.fail(reason)
    pytest.skip(reason)


def need(root: Path) -> None:
    """Everything that this machine must have."""
    try:
        pin = read_pin(root)
    except RefusedError:
        missing("the pin of srt-slurm is known to a git checkout only", "REQUIRE_PIN")
    if pin.head is None:
        missing(f"srt-slurm is not checked out: git submodule update --init {pin.path}", "REQUIRE_PIN")
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    programs = ("slurmctld", "slurmd", "munged", "sbatch", "gcc", "ip", "unshare")
    lacking = [name for name in programs if shutil.which(name, path=path) is None]
    if not Path("/usr/include/slurm/spank.h").is_file():
        lacking.append("slurm/spank.h")
    if lacking:
        missing(f"not installed: {', '.join(lacking)}: {INSTALL}", "REQUIRE_SLURM")
    probe = subprocess.run([*ISOLATED, "true"], capture_output=True, text=True, check=False)
    if os.geteuid() or probe.returncode:
        missing(f"namespaces need root here: {probe.stderr.strip()}")


def checkout(root: Path, folder: Path) -> Path:
    """The search space of this repository and two aggregated points, with the pin and the patches."""
    target = folder / "checkout"
    shutil.copytree(root / "configs", target / "configs")
    (target / "configs" / "e2e-master.yaml").write_text(MASTER)
    (target / "configs" / "recipes" / "tiny.yaml").write_text(RECIPE)
    shutil.copytree(root / "runners" / "srt-slurm" / "patches", target / "runners" / "srt-slurm" / "patches")
    pin = read_pin(root)
    git(folder, "init", "--quiet", str(target))
    git(folder, "clone", "--quiet", "--shared", "--no-checkout", str(pin.folder), str(target / SUBMODULE))
    git(target / SUBMODULE, "checkout", "--quiet", "--detach", pin.commit)
    git(target, "update-index", "--add", "--cacheinfo", f"160000,{pin.commit},{SUBMODULE}")
    git(target, "commit", "--quiet", "-m", "pin")
    return target


def git(cwd: Path, *words: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=cwd, check=True, capture_output=True)


def furnish(local: Path, cache: Path) -> None:
    """The cluster's own: model, image, workspace with the client.

    The image's Python has no packages: every worker lists them at its start, which on a busy host takes longer than all
    the rest.
    """
    (local / "models" / "tiny").mkdir(parents=True)
    (local / "cache").symlink_to(cache)
    image = local / "image"
    server = image / "opt" / "standin" / "atom" / "entrypoints"
    binaries = image / "usr" / "local" / "bin"
    for folder in (server, binaries, local / "images", local / "workspace" / "benchmarks"):
        folder.mkdir(parents=True)
    (server / "__init__.py").touch()
    (server.parent / "__init__.py").touch()
    shutil.copy(HERE / "image" / "openai_server.py", server)
    shutil.copy(HERE / "image" / "atomesh.py", image / "opt" / "standin" / "router.py")
    shutil.copy(HERE / "image" / "client.py", local / "workspace" / "client.py")
    for name, line in {
        "python3": 'PYTHONPATH=/opt/standin exec /usr/bin/python3 -S "$@"',
        "pip": "exit 1",
        "atomesh": 'exec /usr/bin/python3 /opt/standin/router.py "$@"',
    }.items():
        (binaries / name).write_text(f"#!/bin/sh\n{line}\n")
        (binaries / name).chmod(0o755)
    (local / "images" / f"{IMAGE.translate(str.maketrans('/:', '__'))}.sqsh").write_text(f"{image}\n")
    (local / "workspace" / "benchmarks" / "srt_agentic.sh").write_text(
        "set -euo pipefail\nexec python3 /infmax-workspace/client.py agentic\n"
    )
    git(local, "init", "--quiet", str(local / "workspace"))
    git(local / "workspace", "add", "--all")
    git(local / "workspace", "commit", "--quiet", "-m", "client")


@pytest.fixture(scope="module")
def lab(root: Path, tmp_path_factory: pytest.TempPathFactory, launch_cache: Path) -> Lab:
    need(root)
    folder = tmp_path_factory.mktemp("e2e")
    local, results = folder / "local", folder / "results"
    furnish(local, launch_cache)
    made = checkout(root, folder)
    plugin = folder / "container.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", plugin, HERE / "container.c"], check=True, timeout=60
    )
    env = {
        "LOCAL_ROOT": str(local), "LOCAL_PARTITION": "main", "LOCAL_PYTHON": sys.executable,
        "PYTHONPATH": str(root), "RUNNER_NAME": "local_0",
    }  # fmt: skip
    rows = subprocess.run(
        [sys.executable, "-m", "matrix", "expand", "--format", "json", "--no-evals"],
        cwd=made, env={**os.environ, **env}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"version": 1, "points": json.loads(rows.stdout)}))

    def argv(name: str) -> list[str]:
        named = ["--plan", str(plan), "--id", name, "--cluster", "local", "--repository", str(made)]
        return [sys.executable, "-m", "runners", "launch", *named, "--results", str(results)]

    # Inside there is no network, so that whatever would download fails.
    interpreter(made / SUBMODULE, launch_cache)
    launches = [{"name": name, "argv": argv(name), "env": env, "cwd": str(made)} for name in POINTS]
    spec = {
        "folder": str(folder / "lab"),
        "plugin": str(plugin),
        "launches": launches,
    }
    (folder / "spec.json").write_text(json.dumps(spec))
    subprocess.run([*ISOLATED, sys.executable, HERE / "lab.py", folder / "spec.json"], check=True, timeout=240)
    report = json.loads((folder / "lab" / "report.json").read_text())
    assert "error" not in report, report["error"]
    return Lab(report=report, results=results, local=local)


@pytest.mark.parametrize("name", [C16, C256, AGG])
def test_a_point_goes_from_plan_to_verified_receipt(lab: Lab, name: str) -> None:
    end = lab.report[name]
    assert end["status"] == 0, end["stderr"]
    receipt = lab.receipt(name)
    assert receipt["outcome"]["success"] is True
    assert receipt["point"]["digest"] == receipt["point"]["planned-digest"]
    job = receipt["job"]
    assert (job["state"], job["exit"]) == ("COMPLETED", "0:0")
    # The driver has killed its servers. Were it 0:0, no exception would be needed for that.
    assert job["derived-exit"] in {"0:9", "137:0"}
    assert receipt["inputs"]["workspace-commit"]
    assert receipt["inputs"]["container"][IMAGE].endswith(".sqsh")
    summary = json.loads((lab.results / name / "summary.json").read_text())
    conc = int(name.split("--c")[1].partition("--")[0])
    assert [(each["conc"], each["successful"]) for each in summary["figures"]] == [(conc, conc)]
    assert not Path(receipt["job"]["folder"]).exists()


@pytest.mark.parametrize("name", [C16, C256])
def test_the_forced_length_is_realised_on_both_roles(lab: Lab, name: str) -> None:
    summary = json.loads((lab.results / name / "summary.json").read_text())
    assert [each["acceptance-lengths"] for each in summary["figures"]] == [[3.01]]


@pytest.mark.parametrize("name", [C16, C256, AGG])
def test_the_router_starts_after_every_worker_is_healthy(lab: Lab, name: str) -> None:
    """It refuses to start otherwise, and the driver says in which order things happened."""
    argv = lab.argv(name, "atomesh_0")
    workers = 1 if name != AGG else 0
    assert argv.count("--prefill") == argv.count("--decode") == workers
    (log,) = lab.logs(name).glob("sweep_*.log")
    text = log.read_text()
    assert text.index("Waiting for ATOM") < text.index("Router command")
    assert text.count("Waiting for ATOM") == 2
    assert not list(lab.logs(name).glob("*nats*"))


def test_workers_are_told_their_own_addresses_and_the_recipe_s_words(lab: Lab) -> None:
    seen = set()
    for role, worker in (("kv_producer", "prefill_w0"), ("kv_consumer", "decode_w0")):
        argv = lab.argv(C256, worker)
        transfer = json.loads(argv[argv.index("--kv-transfer-config") + 1])
        mooncake = transfer["connectors"][0] if worker == "prefill_w0" else transfer
        assert mooncake["kv_role"] == role
        (log,) = lab.logs(C256).glob(f"*_{worker}.out")
        (own,) = [line for line in log.read_text().splitlines() if line.startswith("ATOM_HOST_IP")]
        assert own == f"ATOM_HOST_IP {mooncake['proxy_ip']} cwd /infmax-workspace"
        seen.add(mooncake["proxy_ip"])
        assert argv[argv.index("--kv_cache_dtype") + 1] == "fp8"
        assert argv[argv.index("--spec-decode-acceptance-length") + 1] == "3.01"
    assert len(seen) == 2
    prefill = lab.argv(C256, "prefill_w0")
    config = json.loads(prefill[prefill.index("--kv-transfer-config") + 1])
    assert config["kv_connector"] == "multi"
    assert config["connectors"][1]["lmcache.local_disk"] is None


def test_what_the_client_wrote_is_kept_and_the_workspace_is_clean(lab: Lab) -> None:
    assert list((lab.local / "workspace").glob("*_conc*.json")) == []
    assert not Path("/written-outside-of-any-mount").exists()
    for name in (C16, C256, AGG):
        for entry in lab.receipt(name)["results"]:
            assert (lab.results / name / entry["file"]).stat().st_size == entry["bytes"]


def test_a_result_outside_of_the_mounts_is_no_result(lab: Lab) -> None:
    end = lab.report[EMPTY]
    assert end["status"] == 1
    assert "Slurm's word alone is no success" in end["stderr"]
    assert lab.receipt(EMPTY)["job"]["state"] == "COMPLETED"


def test_nothing_is_left_in_the_queue(lab: Lab) -> None:
    assert lab.report["queue"]["left"] == ""
    assert yaml.safe_load((lab.results / C16 / "srtslurm.yaml").read_text())["cluster"] == "local"
