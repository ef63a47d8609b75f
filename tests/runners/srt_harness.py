"""What the patched sweep driver would start for one resolved recipe, without Slurm. Prints JSON.

Run with the interpreter of the patched tree: it imports srtctl and nothing of this project. The driver itself loads
the recipe, allocates endpoints and ports, and builds every command; only its last step, starting an srun process, is
replaced by taking notes. Node k of the allocation is called ``nodek`` and has the address 10.0.0.k.

    python srt_harness.py RECIPE NODES
"""

import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any
from unittest.mock import patch


def address(node: str, interface: str | None = None) -> str:
    """The address of a node on the interface of the cluster file."""
    if interface is None:
        msg = f"the address of {node} is asked for without the cluster's network interface"
        raise RuntimeError(msg)
    return f"10.0.0.{node.removeprefix('node')}"


def noted(step: dict[str, Any]) -> dict[str, Any]:
    """One srun step; assignments in front of a command are part of its environment."""
    argv, environment = list(step["command"]), dict(step.get("env_to_set") or {})
    if argv[0] == "env":
        argv.pop(0)
        while "=" in argv[0]:
            name, _, value = argv.pop(0).partition("=")
            environment[name] = value
    return {
        "node": step["nodelist"][0],
        "log": Path(step["output"]).name,
        "argv": argv,
        "env": environment,
        "container": step["container_image"],
        "srun": [
            f"--{name}={value}" if value else f"--{name}" for name, value in (step.get("srun_options") or {}).items()
        ],
    }


def main(recipe: str, nodes: int) -> dict[str, Any]:
    """Everything that the driver starts before the benchmark, and what the benchmark is told."""
    from srtctl.benchmarks import get_runner  # type: ignore[import-not-found]
    from srtctl.cli.do_sweep import SweepOrchestrator  # type: ignore[import-not-found]
    from srtctl.core.config import load_config  # type: ignore[import-not-found]
    from srtctl.core.processes import ProcessRegistry  # type: ignore[import-not-found]
    from srtctl.core.runtime import RuntimeContext  # type: ignore[import-not-found]

    names = [f"node{number}" for number in range(nodes)]
    started: dict[str, list[dict[str, Any]]] = {"worker": [], "router": [], "balancer": []}

    def starter(kind: str) -> Any:
        def start(**step: Any) -> types.SimpleNamespace:
            started[kind].append(noted(step))
            return types.SimpleNamespace(poll=lambda: None)

        return start

    config = load_config(recipe)
    with (
        tempfile.TemporaryDirectory() as outputs,
        patch("srtctl.core.runtime.get_slurm_nodelist", return_value=names),
        patch("srtctl.core.runtime.get_hostname_ip", side_effect=lambda node: address(node, "any")),
        patch("srtctl.core.slurm.get_hostname_ip", side_effect=address),
        patch("srtctl.frontends.atomesh.get_hostname_ip", side_effect=address),
        patch("srtctl.cli.mixins.benchmark_stage.get_hostname_ip", side_effect=address),
        patch("srtctl.frontends.atomesh.wait_for_health", return_value=True),
        patch("srtctl.cli.mixins.worker_stage.start_srun_process", side_effect=starter("worker")),
        patch("srtctl.frontends.atomesh.start_srun_process", side_effect=starter("router")),
        patch("srtctl.cli.mixins.frontend_stage.start_srun_process", side_effect=starter("balancer")),
        patch("srtctl.cli.mixins.frontend_stage.get_hostname_ip", side_effect=lambda node: address(node, "any")),
    ):
        runtime = RuntimeContext.from_config(config, "1", log_dir_base=Path(outputs))
        orchestrator = SweepOrchestrator(config=config, runtime=runtime)
        orchestrator.start_all_workers()
        orchestrator.start_frontend(ProcessRegistry(job_id="1"))
        runner = get_runner(config.benchmark.type)
        benchmark = {
            "argv": runner.build_command(config, runtime),
            "env": orchestrator._get_benchmark_env(runner) | runner.get_environment(config, runtime),
        }
        mounts = {str(host): str(inside) for host, inside in runtime.container_mounts.items()}
    return {
        "name": config.name,
        "served_model_name": config.served_model_name,
        "nodes": config.total_nodes,
        "mounts": mounts,
        "workers": started["worker"],
        "routers": started["router"],
        "balancers": started["balancer"],
        "benchmark": benchmark,
    }


if __name__ == "__main__":
    for variable in [name for name in os.environ if name.startswith("SLURM_")]:
        del os.environ[variable]
    json.dump(main(sys.argv[1], int(sys.argv[2])), sys.stdout, indent=2)
