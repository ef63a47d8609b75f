"""A checkout with a stand-in for srt-slurm as its submodule, which speaks the contract of the real srtctl.

Everything around it is real: the launch clones it, gives it a Python, has it load cluster file and recipe with its own
classes, and submits through it. It writes a batch script of the same shape, with uv and the sweep driver called in the
same way. Instead of servers it runs the benchmark command of the recipe, with the containers' paths put right.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

SUBMODULE = "runners/srt-slurm/upstream"

SCHEMA = """
KNOWN = {"cluster", "default_account", "default_partition", "default_time_limit", "gpus_per_node",
    "network_interface", "visible_devices_env", "use_gpus_per_node_directive", "use_segment_sbatch_directive",
    "use_exclusive_sbatch_directive", "default_sbatch_directives", "nginx_raise_ulimit", "srtctl_root", "output_dir",
    "model_paths", "containers", "default_mounts"}
class ClusterConfig:
    class Schema:
        def load(self, given):
            if unknown := sorted(given.keys() - KNOWN):
                raise ValueError(f"unknown fields: {unknown}")
            return given
        def dump(self, taken):
            return taken
"""
CONFIG = """
import os, yaml
def load_cluster_config():
    with open(os.environ["SRTSLURM_CONFIG"]) as stream:
        return yaml.safe_load(stream)
def load_config(path):
    with open(path) as stream:
        found = yaml.safe_load(stream)
    for section in ("name", "model", "resources", "backend", "benchmark"):
        if section not in found:
            raise ValueError(f"{section}: missing")
    return found
"""
SUBMIT = """
import argparse, json, os, pathlib, subprocess, sys, tempfile, time
from srtctl.core.config import load_cluster_config, load_config
parser = argparse.ArgumentParser(prog="srtctl")
commands = parser.add_subparsers(dest="command", required=True)
apply = commands.add_parser("apply")
apply.add_argument("-f", "--file", required=True)
apply.add_argument("--json", action="store_true")
apply.add_argument("-y", "--yes", action="store_true")
args = parser.parse_args()
recipe, cluster = load_config(args.file), load_cluster_config()
mode = recipe["benchmark"].get("env", {}).get("STANDIN", "")
root = pathlib.Path(cluster["srtctl_root"])
for needed in ("configs/nats-server", "configs/etcd", "bin/uv", "bin/tachometer-scraper"):
    if not (root / needed).exists():
        print("ERROR: Required binaries not found", file=sys.stderr)
        raise SystemExit(1)
if mode == "refused":
    print(json.dumps({"status": "error", "error": "Preflight failed for recipe.yaml"}))
    raise SystemExit(1)
resources = recipe["resources"]
nodes = sum(resources.get(f"{role}_nodes", 0) for role in ("prefill", "decode", "agg"))
outputs = cluster["output_dir"]
directives = {**cluster["default_sbatch_directives"], **recipe.get("sbatch_directives", {})}
slurm = recipe.get("slurm", {})
script = ["#!/bin/bash", f"#SBATCH --job-name={recipe['name']}",
    f"#SBATCH --output={outputs}/%j/logs/sweep_%j.log", f"#SBATCH --nodes={nodes}", f"#SBATCH --ntasks={nodes}",
    "#SBATCH --ntasks-per-node=1", f"#SBATCH --gpus-per-node={resources['gpus_per_node']}",
    f"#SBATCH --time={slurm.get('time_limit', cluster['default_time_limit'])}",
    f"#SBATCH --partition={slurm.get('partition', cluster['default_partition'])}"]
script += [f"#SBATCH --{key}={value}" if value else f"#SBATCH --{key}" for key, value in directives.items()]
script += ["set -e", "exec 2>&1", f'export SRTCTL_OUTPUT_DIR="{outputs}/$SLURM_JOB_ID"',
    'mkdir -p "$SRTCTL_OUTPUT_DIR/logs"', f'export PATH="{root}/bin:$PATH"', "uv --version", "set +e", f'cd "{root}"',
    f'flock -x "{root}/.venv-compute.lock" uv sync --python 3.12 --no-dev',
    'uv run --python 3.12 --no-dev --no-sync -m srtctl.cli.do_sweep "$SRTCTL_OUTPUT_DIR/config.yaml"', "exit $?"]
if mode == "slow":
    time.sleep(3)
with tempfile.NamedTemporaryFile("w", suffix=".slurm") as stream:
    stream.write("\\n".join(script) + "\\n")
    stream.flush()
    try:
        done = subprocess.run(["sbatch", stream.name], capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError as error:
        print("sbatch failed:", error.stderr, file=sys.stderr)
        print(json.dumps({"status": "error", "error": str(error)}))
        raise SystemExit(1)
job = done.stdout.strip().split()[-1]
folder = pathlib.Path(outputs) / job
(folder / "logs").mkdir(parents=True, exist_ok=True)
(folder / "config.yaml").write_text(pathlib.Path(args.file).read_text())
if mode != "late":
    (folder / "logs" / f"sweep_{job}.log").touch()
print(f"Job {job} submitted!", file=sys.stderr)
if mode == "slow":
    time.sleep(3)
if mode != "mute":
    print(json.dumps({"status": "submitted", "slurm_job_id": job, "job_name": recipe["name"],
        "output_dir": str(folder), "metadata_path": str(folder / f"{job}.json"), "config_path": args.file,
        "tags": None}))
"""
SWEEP = """
import os, pathlib, subprocess, sys
from srtctl.core.config import load_config
recipe, folder = load_config(sys.argv[1]), pathlib.Path(os.environ["SRTCTL_OUTPUT_DIR"])
command = recipe["benchmark"]["command"]
for inside, outside in (("/infmax-workspace", os.environ["INFMAX_WORKSPACE"]), ("/logs", str(folder / "logs"))):
    command = command.replace(inside, outside)
print("Benchmark starts", flush=True)
env = {**os.environ, **{key: str(value) for key, value in recipe["benchmark"].get("env", {}).items()}}
with open(folder / "logs" / "benchmark.out", "w") as stream:
    status = 0 if os.environ["EVAL_ONLY"] == "true" else subprocess.run(
        ["bash", "-c", command], stdout=stream, stderr=stream, env=env).returncode
if os.environ["RUN_EVAL"] == "true" and "NO_EVAL" not in env:
    # As the pin does: the evaluation writes into the workspace, and whatever lies there is copied.
    workspace = pathlib.Path(os.environ["INFMAX_WORKSPACE"])
    (workspace / "results_1.json").write_text('{"results": {"gsm8k": {"exact_match": 0.9}}}')
    (folder / "logs" / "eval_results").mkdir()
    for path in workspace.glob("results*.json"):
        (folder / "logs" / "eval_results" / path.name).write_text(path.read_text())
print(f"Benchmark ended with {status}", flush=True)
sys.exit(status if status >= 0 else 128 - status)
"""

MASTER = """
standin-fixed:
  image: registry/engine:1
  model: org/tiny
  model-prefix: tiny
  precision: fp16
  framework: vllm
  runner: cluster:local
  multinode: true
  disagg: false
  router: {{name: vllm, version: "1"}}
  scenarios:
    fixed-seq-len:
      - isl: 128
        osl: 32
        search-space:
{entries}
"""
ENTRY = """
          - conc-list: [{conc}]
            num-nodes: 1
            worker: {{num-worker: 1, tp: 8, ep: 1, dp-attn: false, additional-settings: [
              "CONFIG_FILE=recipes/t.yaml:override_{name}"]}}
"""
RUNNERS = """
labels:
  cluster:local: [local_0]
clusters:
  local: {gpus-per-node: 8, available-cpu-dram-mib: 100000, arch: x86_64, scheduler: slurm, slurm: {partition: main}}
"""
EVALS = """
version: 1
minimum-concurrency: 16
sequence: {isl: 128, osl: 32}
default: {framework: lm-eval, suite: ""}
"""
RECIPE = """
base:
  schema: 2
  name: standin
  model: {path: tiny, container: "registry/engine:1", precision: fp16}
  slurm: {time_limit: "01:00:00"}
  resources: {gpu_type: local, gpus_per_node: 8}
  engine: {type: vllm, connector: null}
  roles: {agg: {nodes: 1, workers: 1, gpus: 8, args: {tensor-parallel-size: 8, served-model-name: org/tiny}}}
  frontend: {type: vllm, enable_multiple_frontends: false}
  benchmark:
    type: custom
    command: "true"
    env: {MODEL: org/tiny, ISL: "128", OSL: "32", CONC: "1"}
"""
CLIENT = """
echo "asking $MODEL at $CONC_LIST"
mkdir -p /logs/fixed-seq
result=/logs/fixed-seq/results_concurrency_$CONC.json
echo '{"completed": 4, "num_prompts": 4, "total_token_throughput": 12.5}' > $result
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A checkout with points that do what a test wants, and the environment to launch them in."""

    folder: Path
    env: dict[str, str]

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def id(self, name: str, conc: int = 1) -> str:
        """The id of the point that has this variant."""
        return f"standin-fixed--128-32--1w-tp8--c{conc}--override_{name}"

    def argv(self, *words: str) -> list[str]:
        """The command line of the runner; file options only where the command has them."""
        return [sys.executable, "-m", "runners", *words]

    def launch_argv(self, *words: str) -> list[str]:
        """The command line of a launch on the local cluster."""
        named = ["--cluster", "local", "--results", str(self.results), "--repository", str(self.checkout)]
        return self.argv("launch", *named, *words)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Launch and wait."""
        return subprocess.run(
            self.launch_argv(*words), env=self.env, capture_output=True, text=True, timeout=120, check=False
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Launch and go on."""
        return subprocess.Popen(
            self.launch_argv(*words), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def receipt(self, name: str, conc: int = 1) -> dict[str, Any]:
        """The receipt of a point."""
        found: dict[str, Any] = json.loads((self.results / self.id(name, conc) / "receipt.json").read_text())
        return found

    def jobs(self) -> list[Path]:
        """The folders of jobs that are still there."""
        folder = self.folder / "local" / "jobs"
        return sorted(folder.iterdir()) if folder.is_dir() else []


def world(
    folder: Path, variants: dict[str, dict[str, Any]], env: dict[str, str] | None = None, cache: Path | None = None
) -> World:
    """Build a checkout whose points are variants of one recipe.

    Args:
        folder: An empty folder.
        variants: Name of an override -> what it changes of ``benchmark``; ``conc`` is the concurrency.
        env: The environment to launch in; this process's own by default.
        cache: What launches share is kept here, for other checkouts too; a folder of its own by default.
    """
    upstream, checkout, local = folder / "upstream", folder / "checkout", folder / "local"
    _upstream(upstream)
    commit = _git(upstream, "rev-parse", "HEAD")
    configs = checkout / "configs"
    (configs / "recipes").mkdir(parents=True)
    entries, recipe = "", yaml.safe_load(RECIPE)
    for name, change in variants.items():
        benchmark = dict(change)
        conc = benchmark.pop("conc", 1)
        own = {"CONC": str(conc), **benchmark.pop("env", {})}
        top = benchmark.pop("top", {})
        recipe[f"override_{name}"] = {**top, "benchmark": {"command": CLIENT, **benchmark, "env": own}}
        entries += ENTRY.format(conc=conc, name=name).strip("\n") + "\n"
    (configs / "recipes" / "t.yaml").write_text(json.dumps(recipe, indent=1))
    (configs / "test-master.yaml").write_text(MASTER.format(entries=entries).lstrip())
    (configs / "runners.yaml").write_text(RUNNERS.lstrip())
    (configs / "evals.yaml").write_text(EVALS.lstrip())
    patches = checkout / "runners" / "srt-slurm" / "patches"
    patches.mkdir(parents=True)
    (patches / "series.yaml").write_text(f"pin: {commit}\npatches: []\n")
    (patches / "README.md").write_text("| Patch |\n|---|\n")
    _git(folder, "init", "--quiet", str(checkout))
    _git(folder, "clone", "--quiet", str(upstream), str(checkout / SUBMODULE))
    _git(checkout, "update-index", "--add", "--cacheinfo", f"160000,{commit},{SUBMODULE}")
    _git(checkout, "commit", "--quiet", "-m", "configs")
    for name in ("workspace/benchmarks", "models/tiny"):
        (local / name).mkdir(parents=True)
    (local / "workspace" / "benchmarks" / "benchmark_lib.sh").touch()
    if cache is not None:
        (local / "cache").symlink_to(cache)
    settings = {
        "LOCAL_ROOT": str(local),
        "LOCAL_PARTITION": "main",
        "LOCAL_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    return World(folder=folder, env={**(os.environ if env is None else env), **settings})


def _upstream(folder: Path) -> None:
    source = folder / "src" / "srtctl"
    files = {
        folder / "pyproject.toml": '[project]\nname = "srtctl"\nversion = "0"\ndependencies = []\n',
        folder / "configs" / "placeholder": "",
        source / "__init__.py": "",
        source / "core" / "__init__.py": "",
        source / "core" / "schema.py": SCHEMA,
        source / "core" / "config.py": CONFIG,
        source / "cli" / "__init__.py": "",
        source / "cli" / "submit.py": SUBMIT,
        source / "cli" / "do_sweep.py": SWEEP,
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"))
    # Its packages would have to come from an index; the one that it needs is here already.
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(Path(yaml.__file__).parent, folder / "src" / "yaml", ignore=ignored)
    _git(folder.parent, "init", "--quiet", str(folder))
    _git(folder, "add", "--all", "--force")
    _git(folder, "commit", "--quiet", "-m", "stand-in")


def _git(cwd: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    # One date, so that every stand-in is the same commit, and what launches share is made once.
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-08-21T00:00:00Z")
    env = {**os.environ, **dates, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = subprocess.run(["git", *who, *words], cwd=cwd, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()
