"""The row of a deployment in InferenceX's own field names and order, with the concurrency left open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.config.model import Aggregated, ScenarioKind, SingleNode

if TYPE_CHECKING:
    from matrix.config.model import Config, Entry, Scenario, Worker
    from matrix.config.source import Map
    from matrix.points.point import Deployment

__all__ = ["AGENTIC_SECONDS", "CONFIG_FILE", "scenario_name", "template_of"]

CONFIG_FILE: Final = "CONFIG_FILE="
"""The setting of a role that names its recipe."""

AGENTIC_SECONDS: Final = 3600
"""How long an agentic throughput run takes, once the server is up."""

_SEQUENCES: Final = {(8192, 1024): "8k1k", (1024, 1024): "1k1k"}


def scenario_name(scenario: Scenario) -> str:
    """``8k1k``, ``1k1k``, ``<isl>-<osl>`` or ``agentic``."""
    if scenario.kind is ScenarioKind.AGENTIC:
        return "agentic"
    return _SEQUENCES.get((scenario.isl, scenario.osl)) or f"{scenario.isl}-{scenario.osl}"


def template_of(d: Deployment) -> dict[str, Any]:
    """The row as InferenceX's generator makes it without evals.

    ``conc`` is None, and an agentic ``exp-name`` has ``{}`` where the concurrency goes.
    """
    config, scenario = d.config, d.scenario
    row: dict[str, Any] = {
        "image": config.image,
        "model": config.model,
        "model-prefix": config.model_prefix,
        "precision": config.precision,
        "framework": config.framework,
        "runner": d.runner,
    }
    if not d.agentic:
        row["isl"] = scenario.isl
        row["osl"] = scenario.osl
        if scenario.require_power:
            row["require-power"] = True
    (_multi_node if d.multinode else _single_node)(row, d)
    return row


def _single_node(row: dict[str, Any], d: Deployment) -> None:
    config, entry, topology = d.config, d.entry, d.entry.topology
    assert isinstance(topology, SingleNode)  # noqa: S101 - not multinode
    w = topology.worker
    row["tp"], row["pp"], row["dcp-size"], row["pcp-size"] = w.tp, w.pp, w.dcp, w.pcp
    if w.attn_dp is not None:
        row["attn-dp-size"] = w.attn_dp
    if not d.agentic:
        row["conc"] = None
        row["max-model-len"] = _context(d.scenario)
    row["ep"], row["dp-attn"], row["spec-decoding"] = w.ep, w.dp_attn, entry.spec_decoding
    if d.agentic:
        row["conc"] = None
    if entry.srt_recipe is not None:
        row["srt-recipe"] = entry.srt_recipe
    if d.agentic:
        offload = "kvnone" if entry.offload.mode == "none" else _offload_tag(entry)
        spec = f"_spec-{entry.spec_decoding}" if entry.spec_decoding != "none" else ""
        _add_offload(row, d)
        row["exp-name"] = f"{config.model_prefix}_tp{w.tp}_conc{{}}_{offload}{spec}{_adp('_adp', w)}"
        row["scenario-type"] = ScenarioKind.AGENTIC.value
    else:
        row["exp-name"] = _fixed_name(config, d.scenario) + _adp("_adp", w)
        row["disagg"] = False
        row["run-eval"] = False
    _add_components(row, config, entry, transfers=False)


def _multi_node(row: dict[str, Any], d: Deployment) -> None:
    config, entry, topology = d.config, d.entry, d.entry.topology
    assert not isinstance(topology, SingleNode)  # noqa: S101 - multinode
    prefill = topology.worker if isinstance(topology, Aggregated) else topology.prefill
    decode = topology.decode
    row["spec-decoding"] = entry.spec_decoding
    row["prefill"] = _worker_row(prefill, entry.node)
    row["decode"] = _worker_row(decode, entry.node)
    row["conc"] = None
    if d.agentic:
        _add_offload(row, d)
        offload = "" if entry.offload.mode == "none" else f"_{_offload_tag(entry)}"
        roles = f"{_role_name('p', prefill)}_{_role_name('d', decode)}"
        row["exp-name"] = f"{config.model_prefix}_{roles}_conc{{}}{offload}"
        row["disagg"] = config.disagg
        row["scenario-type"] = ScenarioKind.AGENTIC.value
    else:
        row["max-model-len"] = _context(d.scenario)
        row["exp-name"] = _fixed_name(config, d.scenario) + _adp("_prefilladp", prefill) + _adp("_decodeadp", decode)
        row["disagg"] = config.disagg
        row["run-eval"] = False
    _add_components(row, config, entry, transfers=True)
    if d.nodes is not None:
        row["node-count"] = d.nodes


def _context(scenario: Scenario) -> int:
    return scenario.isl + scenario.osl + 256


def _add_offload(row: dict[str, Any], d: Deployment) -> None:
    row["kv-offloading"] = d.entry.offload.mode
    row["total-cpu-dram-gb"] = d.budget_gb
    row["duration"] = AGENTIC_SECONDS


def _add_components(row: dict[str, Any], config: Config, entry: Entry, *, transfers: bool) -> None:
    """Backend, router, transfer: an entry's own wins over the config's."""
    if entry.offload.backend is not None:
        row["kv-offload-backend"] = entry.offload.backend
    router = entry.router if entry.router is not None else config.router
    if router is not None:
        row["router"] = router
    if transfers:
        transfer = entry.kv_p2p_transfer or config.kv_p2p_transfer
        if transfer is not None:
            row["kv-p2p-transfer"] = transfer


def _worker_row(worker: Worker, entry: Map) -> dict[str, Any]:
    """The worker's mapping as written, with its sizes made explicit; an idle copy has no settings."""
    node = worker.node
    if "worker" in entry:
        row: dict[str, Any] = {"num-worker": worker.replicas, **node}
        row["num-worker"] = worker.replicas
        if not worker.replicas:
            row.pop("additional-settings", None)
    else:
        row = dict(node)
    if not worker.settings and row.get("additional-settings", row) is None:
        del row["additional-settings"]
    row.setdefault("pp", 1)
    row.setdefault("dcp-size", 1)
    row.setdefault("pcp-size", 1)
    return row


def _adp(tag: str, worker: Worker) -> str:
    return f"{tag}{worker.attn_dp}" if worker.attn_dp is not None else ""


def _fixed_name(config: Config, scenario: Scenario) -> str:
    sequence = _SEQUENCES.get((scenario.isl, scenario.osl)) or f"{scenario.isl}_{scenario.osl}"
    return f"{config.model_prefix}_{sequence}"


def _offload_tag(entry: Entry) -> str:
    backend = entry.offload.backend
    return f"kv{entry.offload.mode}-{backend['name'] if backend is not None else 'none'}"


def _role_name(letter: str, worker: Worker) -> str:
    ep = f"ep{worker.ep}" if worker.ep != 1 else ""
    return f"{letter}{worker.replicas}x{worker.tp}{ep}{'dpa' if worker.dp_attn else ''}{_adp('adp', worker)}"
