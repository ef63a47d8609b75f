"""The environment that a job sees: named variables of the host, and what the benchmark client is told of its point.

The names are InferenceX's, whose client the recipes call. Nothing else of the launcher's environment reaches a job, so
that a setting of one host does not change what is measured, and no secret of a workflow goes along.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["base_environment", "point_environment", "steering_settings"]

_USUAL: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SLURM_CONF",
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
)  # fmt: skip
"""What programs need to run at all, and to find the site's Slurm."""

_WORKER: Final = {
    "HARDWARE": "hardware",
    "NUM_WORKERS": "num-worker",
    "TP": "tp",
    "PP_SIZE": "pp",
    "DCP_SIZE": "dcp-size",
    "PCP_SIZE": "pcp-size",
    "EP": "ep",
    "DP_ATTN": "dp-attn",
}


def base_environment(environ: Mapping[str, str], passed: Iterable[str] = ()) -> dict[str, str]:
    """The usual variables and those that a profile passes on, as far as they are set.

    >>> base_environment({"PATH": "/bin", "GITHUB_TOKEN": "x", "HF_TOKEN": "y"}, ["HF_TOKEN"])
    {'PATH': '/bin', 'HF_TOKEN': 'y'}
    """
    return {name: environ[name] for name in (*_USUAL, *passed) if name in environ}


def steering_settings(row: Mapping[str, Any]) -> list[str]:
    """The additional-settings that sbatch would take for options of its own: they win over what a batch script says."""
    roles = [row.get(role) or {} for role in ("prefill", "decode")]
    names = {text.partition("=")[0] for worker in roles for text in worker.get("additional-settings", ())}
    return sorted(name for name in names if name.startswith("SBATCH_"))


def point_environment(row: Mapping[str, Any], result_filename: str, runner_name: str) -> dict[str, str]:
    """What the client is told of a point, from its row.

    Args:
        row: The point's row.
        result_filename: Begins the name of every result file; unique, because jobs share the client's folder.
        runner_name: Who launches.
    """
    agentic = "isl" not in row
    concs = row["conc"] if isinstance(row["conc"], list) else [row["conc"]]
    eval_only = bool(row.get("eval-only"))
    found: dict[str, Any] = {
        "EXP_NAME": row["exp-name"],
        "RECIPE_FINGERPRINT": row.get("recipe-fingerprint"),
        "IMAGE": row["image"],
        "MODEL": row["model"],
        "MODEL_PREFIX": row["model-prefix"],
        "FRAMEWORK": row["framework"],
        "PRECISION": row["precision"],
        "THINKING_MODE": "thinking_on",
        "RUNNER_NAME": runner_name,
        "RUNNER_TYPE": row["runner"],
        "RESULT_FILENAME": result_filename,
        "ISL": row.get("isl"),
        "OSL": row.get("osl"),
        "MAX_MODEL_LEN": 0 if agentic else row.get("max-model-len"),
        "CONC_LIST": " ".join(map(str, concs)),
        "CONC": max(concs),
        "DURATION": row.get("duration"),
        "SCENARIO_TYPE": row.get("scenario-type", "fixed-seq-len"),
        "SCENARIO_SUBDIR": "agentic" if agentic else "fixed_seq_len",
        "IS_AGENTIC": agentic,
        "RANDOM_RANGE_RATIO": "0.8",
        "DISAGG": bool(row.get("disagg")),
        "IS_MULTINODE": "prefill" in row,
        "SPEC_DECODING": row.get("spec-decoding", "none"),
        "KV_OFFLOADING": row.get("kv-offloading", "none"),
        "KV_OFFLOAD_BACKEND": (row.get("kv-offload-backend") or {}).get("name"),
        "KV_OFFLOAD_BACKEND_METADATA": row.get("kv-offload-backend"),
        "ROUTER_METADATA": row.get("router"),
        "KV_P2P_TRANSFER": row.get("kv-p2p-transfer"),
        "TOTAL_CPU_DRAM_GB": row.get("total-cpu-dram-gb"),
        "RUN_EVAL": bool(row.get("run-eval")) or eval_only,
        "EVAL_ONLY": eval_only,
        "EVAL_FRAMEWORK": row.get("eval-framework"),
        "EVAL_SUITE": row.get("eval-suite"),
        "EVAL_CONC": row.get("eval-conc"),
        "REQUIRE_POWER": bool(row.get("require-power")),
        "PORT": 8888,
        "INFMAX_CONTAINER_WORKSPACE": "/infmax-workspace",
        "KEEP_LOGS": 0,
        # The workspace is shared by jobs and not theirs to fill with compiled files.
        "PYTHONDONTWRITEBYTECODE": 1,
        "PYTHONPYCACHEPREFIX": "/tmp/pycache",  # noqa: S108 - a path inside of the container
    }
    for role in ("prefill", "decode"):
        worker = row.get(role) or {}
        found |= {f"{role.upper()}_{name}": worker.get(field) for name, field in _WORKER.items()}
        for text in worker.get("additional-settings", ()):
            name, _, value = text.partition("=")
            found[name] = value
    return {name: _text(value) for name, value in found.items() if value not in (None, "")}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict | list) else str(value)
