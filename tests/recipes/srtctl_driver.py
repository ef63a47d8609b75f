"""What srtctl itself says, for a test to hold our own code against: run by an interpreter that has its dependencies.

Reads one JSON document from standard input and writes one to standard output:

    bundles  {id: [file, selector or null]}  ->  resolved  {id: [document, ...]}   by `srtctl resolve-override`
    recipes  {id: [file, nodes]}             ->  dry_run   {id: [status, output]}  by `srtctl dry-run`
                                             ->  told      {id: processes}         by its launch stages, short of srun
    tables   true                            ->  tables    what its loaders accept

All of it in one process, because each start of srtctl costs a second.
"""

import contextlib
import io
import json
import sys
import threading
import warnings
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def command(*words: str) -> tuple[int, str]:
    """Status and output of one srtctl command."""
    submit = import_module("srtctl.cli.submit")
    out = io.StringIO()
    status: Any = 0
    sys.argv = ["srtctl", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            submit.main()
        except SystemExit as end:
            status = end.code
    return status if isinstance(status, int) else 0 if status is None else 1, out.getvalue()


def resolved(file: str, selector: str | None) -> list[Any]:
    """The documents that `srtctl resolve-override` prints.

    It keeps the anchors of the file and so repeats them, which ruamel.yaml forgives with a warning and PyYAML does not.
    """
    yaml = import_module("ruamel.yaml").YAML(typ="safe")
    status, text = command("resolve-override", "-f", file if selector is None else f"{file}:{selector}", "--stdout")
    if status:
        raise RuntimeError(text)
    documents: list[Any] = []
    lines: list[str] = []
    for line in [*text.splitlines(keepends=True), "# ---"]:
        if line.startswith("# ---"):
            documents += [yaml.load("".join(lines))] if lines and "".join(lines).strip() else []
            lines = []
        else:
            lines.append(line)
    return documents


def told(file: str, nodes: int) -> dict[str, Any]:
    """Every process that srtctl would start for a plain recipe, by the name of its log without its end."""
    config = import_module("srtctl.core.config").load_config(file)
    names = [f"node-{number}" for number in range(nodes)]
    started: dict[str, Any] = {}

    def start(command: list[str], **options: Any) -> Any:
        log = Path(options["output"]).name.removesuffix(".out")
        started[log] = {
            "argv": [str(word) for word in command],
            "env": {
                key: value
                for key, value in (options.get("env_to_set") or {}).items()
                if key not in (options.get("env_to_unset") or ())
            },
            "container": str(options["container_image"]),
            "node": options["nodelist"],
            "srun": options.get("srun_options") or {},
        }
        return SimpleNamespace(poll=lambda: 0, returncode=0)

    replace("start_srun_process", start)
    replace("get_hostname_ip", lambda node, *_, **__: f"ip-{node}")
    replace("get_slurm_nodelist", lambda: names)
    replace("wait_for_health", lambda *_, **__: True)
    runtime = import_module("srtctl.core.runtime").RuntimeContext.from_config(config, "1", Path.cwd() / "outputs")
    mixins = import_module("srtctl.cli.mixins")

    class Stage(mixins.WorkerStageMixin, mixins.FrontendStageMixin, mixins.BenchmarkStageMixin):  # type: ignore[misc,name-defined]
        backend_processes = property(lambda self: self.processes)

    stage: Any = Stage()
    stage.config, stage.runtime = config, runtime
    resources = config.resources
    endpoints = config.backend.allocate_endpoints(
        resources.num_prefill,
        resources.num_decode,
        resources.num_agg,
        resources.gpus_per_prefill,
        resources.gpus_per_decode,
        resources.gpus_per_agg,
        resources.gpus_per_node,
        runtime.nodes.worker,
        spread_workers=resources.spread_workers,
    )
    stage.processes = config.backend.endpoints_to_processes(endpoints, frontend_type=config.frontend.type)
    stage.start_all_workers()
    stage.start_frontend(registry=None)
    runner = import_module("srtctl.benchmarks").get_runner(config.benchmark.type)
    stage._run_benchmark_script(runner, Path("benchmark.out"), threading.Event())
    mounts = {str(source): str(target) for source, target in runtime.container_mounts.items()}
    return {"processes": started, "mounts": mounts, "log_dir": str(runtime.log_dir), "served": config.served_model_name}


def replace(name: str, value: Any) -> None:
    """Put a function of ours in the place of srtctl's, wherever a module of it has imported that by name."""
    modules = ["core.slurm", "core.runtime", "core.health", "cli.mixins.worker_stage", "cli.mixins.frontend_stage"]
    modules += ["cli.mixins.benchmark_stage", "frontends.dynamo", "frontends.sglang", "frontends.atomesh"]
    for module in modules:
        with contextlib.suppress(ModuleNotFoundError):
            loaded = import_module(f"srtctl.{module}")
            if hasattr(loaded, name):
                setattr(loaded, name, value)


def fields(schema: Any) -> list[str]:
    """The names that a loader accepts."""
    return sorted(field.data_key or name for name, field in schema.fields.items())


def tables() -> dict[str, Any]:
    """The fields of every section, the engines, frontends and benchmarks."""
    schema = import_module("srtctl.core.schema")
    backends = import_module("srtctl.backends")
    by_engine = {
        getattr(backends, name).type: fields(getattr(backends, name).Schema())
        for name in dir(backends)
        if name.endswith("Protocol") and isinstance(getattr(getattr(backends, name), "type", None), str)
    }
    classes = {
        "": "SrtConfig", "model": "ModelConfig", "identity": "IdentityConfig",
        "identity.model": "IdentityModelConfig", "identity.container": "IdentityContainerConfig",
        "resources": "ResourceConfig", "slurm": "SlurmConfig", "frontend": "FrontendConfig",
        "benchmark": "BenchmarkConfig", "dynamo": "DynamoConfig", "profiling": "ProfilingConfig",
        "profiling.prefill": "ProfilingPhaseConfig", "profiling.decode": "ProfilingPhaseConfig",
        "profiling.aggregated": "ProfilingPhaseConfig", "output": "OutputConfig", "health_check": "HealthCheckConfig",
        "infra": "InfraConfig", "observability": "ObservabilityConfig", "observability.tachometer": "TachometerConfig",
        "observability.tachometer.dcgm_exporter": "TelemetryExporterConfig",
        "observability.tachometer.node_exporter": "TelemetryExporterConfig", "telemetry": "TelemetryConfig",
        "telemetry.dcgm_exporter": "TelemetryExporterConfig", "reporting": "ReportingConfig",
    }  # fmt: skip
    frontends = import_module("typing").get_args(import_module("srtctl.frontends.base").FrontendType)
    return {
        "fields": {path: fields(getattr(schema, name).Schema()) for path, name in classes.items()},
        "engines": by_engine,
        "frontends": sorted(frontends),
        "benchmarks": sorted(import_module("srtctl.benchmarks").list_benchmarks()),
        "connectors": sorted(import_module("srtctl.backends.vllm")._CONNECTOR_MAP),
    }


def each(jobs: dict[str, Any], action: Any) -> dict[str, Any]:
    """The action on every job; what one raises is its answer."""
    done: dict[str, Any] = {}
    for name, arguments in jobs.items():
        try:
            done[name] = action(*arguments)
        except Exception as error:  # noqa: BLE001 - the test shows it
            done[name] = {"error": f"{type(error).__name__}: {error}"}
    return done


def main(streams: Iterable[str]) -> dict[str, Any]:
    request = json.loads("".join(streams))
    warnings.simplefilter("ignore")
    yaml: Any = import_module("yaml")
    yaml.SafeLoader = getattr(
        yaml, "CSafeLoader", yaml.SafeLoader
    )  # what safe_load uses; the same, in a third of the time
    # Where a value stood and the comments around it are copied with each value, and that is half of the time.
    comments: Any = import_module("ruamel.yaml.comments")
    for kind in (comments.Comment, comments.LineCol):
        kind.__deepcopy__ = lambda self, _memo: self
    with contextlib.redirect_stdout(sys.stderr):
        answer = {
            "resolved": each(request.get("bundles", {}), resolved),
            "dry_run": each({name: ["dry-run", "-f", file] for name, (file, _) in request["recipes"].items()}, command),
        }
        # Last, because it cuts srun off for good.
        answer["told"] = each(request["recipes"], told)
        if request.get("tables"):
            answer["tables"] = tables()
    return answer


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.stdin)))
