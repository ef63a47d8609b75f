"""The row of a deployment in InferenceX's own field names and order, as JSON text.

Rows are most of what ``expand`` does, and encoding each of them twice, for printing and for its digest, took a third of
its time. So a row is put together from parts, and a part is written once for all rows that have it: the fields of a
config on a runner, the sizes of a worker, an offloading mode.
"""

from __future__ import annotations

from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any, Final

from matrix.config.model import Aggregated, ScenarioKind, SingleNode

if TYPE_CHECKING:
    from matrix.config.model import Config, Entry, Scenario, Worker
    from matrix.config.source import Map
    from matrix.points.point import Deployment

    Part = tuple[str, tuple[str, ...]]

__all__ = [
    "AGENTIC_SECONDS", "CONC", "CONFIG_FILE", "CUT", "RUN_EVAL", "Frame", "exp_name", "row_parts", "scenario_name",
]  # fmt: skip

CONFIG_FILE: Final = "CONFIG_FILE="
"""The setting of a role that names its recipe."""

AGENTIC_SECONDS: Final = 3600
"""How long an agentic throughput run takes, once the server is up."""

CUT: Final = "\0"
"""Stands where a point's own value goes. JSON text has no such character of its own."""

CONC: Final = f'"conc":{CUT}'
"""The concurrency in canonical JSON."""

RUN_EVAL: Final = '"run-eval":false'
"""A fixed-length row without evals, in canonical JSON."""

_SEQUENCES: Final = {(8192, 1024): "8k1k", (1024, 1024): "1k1k"}


def _joined(fields: list[tuple[str, str]]) -> Part:
    """Neighbouring fields of a row: joined as ``json.dumps`` writes them, and one by one in canonical JSON."""
    return ", ".join([f'"{name}": {text}' for name, text in fields]), tuple(
        [f'"{name}":{text}' for name, text in fields]
    )


def _part(**fields: str | int | bool) -> Part:
    """The part with these fields; an underscore stands for the dash of InferenceX's names."""
    return _joined([(name.replace("_", "-"), _json(value)) for name, value in fields.items()])


def _json(value: str | int | bool) -> str:
    return quoted(value) if isinstance(value, str) else str(value).lower()


_CONC_PART: Final[Part] = (f'"conc": {CUT}', (CONC,))
_SPEC_DECODING: Final = {name: _part(spec_decoding=name) for name in ("none", "mtp", "draft_model")}


def scenario_name(scenario: Scenario) -> str:
    """``8k1k``, ``1k1k``, ``<isl>-<osl>`` or ``agentic``."""
    if scenario.kind is ScenarioKind.AGENTIC:
        return "agentic"
    return _SEQUENCES.get((scenario.isl, scenario.osl)) or f"{scenario.isl}-{scenario.osl}"


class Frame:
    """What the deployments of one scenario on one runner have in common. Never changed once made.

    ``runner``: the config's label, or a node of it when ``on_node``. ``agentic``: the workload is, instead of fixed
    lengths. ``scenario_name``: ``8k1k``, ``1k1k``, ``<isl>-<osl>`` or ``agentic``. ``title``: what people call its
    jobs, up to the topology. ``opening``, ``power``, ``context``, ``closing``: its parts of a row.
    """

    __slots__ = (
        "agentic", "closing", "config", "context", "on_node", "opening", "power", "runner", "scenario", "scenario_name",
        "title",
    )  # fmt: skip

    def __init__(self, config: Config, scenario: Scenario, runner: str, *, on_node: bool = False) -> None:
        isl, osl = scenario.isl, scenario.osl
        self.config = config
        self.scenario = scenario
        self.runner = runner
        self.on_node = on_node
        self.agentic = scenario.kind is ScenarioKind.AGENTIC
        self.scenario_name = scenario_name(scenario)
        what = f"{config.model_prefix} {config.precision} {runner} {config.framework}"
        self.title = f"{what} {self.scenario_name}"
        fields = [
            ("image", quoted(config.image)),
            ("model", quoted(config.model)),
            ("model-prefix", quoted(config.model_prefix)),
            ("precision", quoted(config.precision)),
            ("framework", quoted(config.framework)),
            ("runner", quoted(runner)),
        ]
        if not self.agentic:
            fields += (("isl", str(isl)), ("osl", str(osl)))
        self.opening = _joined(fields)
        self.power = _part(require_power=True) if scenario.require_power else None
        self.context = _part(max_model_len=isl + osl + 256)
        disagg = [("disagg", _json(config.disagg))]
        if not self.agentic:
            shown, compact = _joined(disagg)
            self.closing = f'{shown}, "run-eval": {CUT}', (*compact, RUN_EVAL)
        else:
            kind = ("scenario-type", quoted(ScenarioKind.AGENTIC.value))
            self.closing = _joined([*disagg, kind] if config.multinode else [kind])


def row_parts(d: Deployment, *, power: bool = True, named: bool = True) -> list[Part]:
    """The row as InferenceX's generator makes it without evals, with cuts where a point has values of its own.

    ``power`` false leaves out that the run wants its power measured, ``named`` false leaves out what names the recipe.
    """
    frame, entry = d.frame, d.entry
    topology, offload = entry.topology, entry.offload
    parts = [frame.opening]
    if frame.power is not None and power:
        parts.append(frame.power)
    spec = _SPEC_DECODING[entry.spec_decoding]
    if isinstance(topology, SingleNode):
        sizes, engine = _single_worker(*topology.worker[1:8])
        parts += (
            (sizes, engine, spec, _CONC_PART) if frame.agentic else (sizes, _CONC_PART, frame.context, engine, spec)
        )
        if named and entry.srt_recipe is not None:
            parts.append(_part(srt_recipe=entry.srt_recipe))
    else:
        prefill = topology.worker if isinstance(topology, Aggregated) else topology.prefill
        parts += (
            spec,
            _role("prefill", prefill, entry.node, named=named),
            _role("decode", topology.decode, entry.node, named=named),
            _CONC_PART,
        )
        if not frame.agentic:
            parts.append(frame.context)
    if frame.agentic:
        parts.append(_offloading(offload.mode, d.budget_gb))
    name = CUT.join([quoted(text)[1:-1] for text in exp_name(d)])
    parts += ((f'"exp-name": "{name}"', ()), frame.closing)
    _add_components(parts, d)
    return parts


def _add_components(parts: list[Part], d: Deployment) -> None:
    """Backend, router and transfer, where an entry's own wins over the config's, and the nodes."""
    config, entry = d.frame.config, d.entry
    backend, router = entry.offload.backend, entry.router or config.router
    if backend is not None:
        parts.append(_component("kv-offload-backend", tuple(backend.items())))
    if router is not None:
        parts.append(_component("router", tuple(router.items())))
    transfer = entry.kv_p2p_transfer or config.kv_p2p_transfer
    if transfer is not None:
        parts.append(_transfer(transfer))
    if d.nodes is not None:
        parts.append((f'"node-count": {d.nodes}', (f'"node-count":{d.nodes}',)))


def exp_name(d: Deployment) -> tuple[str, ...]:
    """InferenceX's experiment name, cut where an agentic one has the concurrency; a fixed-length one is whole."""
    scenario, entry, topology, prefix = d.scenario, d.entry, d.entry.topology, d.config.model_prefix
    if not d.agentic:
        isl, osl = scenario.isl, scenario.osl
        name = f"{prefix}_{_SEQUENCES.get((isl, osl)) or f'{isl}_{osl}'}"
        if isinstance(topology, SingleNode):
            return (name + _adp("_adp", topology.worker),)
        return (name + _adp("_prefilladp", topology[0]) + _adp("_decodeadp", topology[1]),)
    offload = "" if entry.offload.mode == "none" else _offload_tag(entry)
    if isinstance(topology, SingleNode):
        w = topology.worker
        spec = f"_spec-{entry.spec_decoding}" if entry.spec_decoding != "none" else ""
        return f"{prefix}_tp{w.tp}_conc", f"_{offload or 'kvnone'}{spec}{_adp('_adp', w)}"
    roles = f"{_role_name('p', topology[0])}_{_role_name('d', topology[1])}"
    return f"{prefix}_{roles}_conc", f"_{offload}" if offload else ""


def _adp(tag: str, worker: Worker) -> str:
    return f"{tag}{worker.attn_dp}" if worker.attn_dp is not None else ""


def _offload_tag(entry: Entry) -> str:
    backend = entry.offload.backend
    return f"kv{entry.offload.mode}-{backend['name'] if backend is not None else 'none'}"


def _role_name(letter: str, worker: Worker) -> str:
    ep = f"ep{worker.ep}" if worker.ep != 1 else ""
    return f"{letter}{worker.replicas}x{worker.tp}{ep}{'dpa' if worker.dp_attn else ''}{_adp('adp', worker)}"


def _role(role: str, worker: Worker, entry: Map, *, named: bool) -> Part:
    """A worker as it is written, with its sizes made explicit; an idle copy has no settings."""
    node = worker.node
    aggregated = "worker" in entry
    has_settings = node.get("additional-settings") is not None and (worker.replicas > 0 or not aggregated)
    shown, compact = _worker(role, tuple(node), worker[:9], aggregated, has_settings)
    if not has_settings:
        return shown, (compact,)
    members = [quoted(text) for text in worker.settings if named or not text.startswith(CONFIG_FILE)]
    return shown.replace(CUT, ", ".join(members)), (compact.replace(CUT, ",".join(members)),)


# Parts that many rows have. The bound keeps the odd search space of a million different ones from filling the memory.


@lru_cache(maxsize=4096)
def _worker(
    role: str, written: tuple[str, ...], sizes: tuple[Any, ...], aggregated: bool, has_settings: bool
) -> tuple[str, str]:
    """A worker's mapping, cut where its settings go.

    ``written``: its keys in their order; only the count of an aggregated one, which may be absent, always comes first.
    """
    replicas, tp, ep, dp_attn, pp, dcp, pcp, attn_dp, hardware = sizes
    values = {
        "num-worker": replicas, "tp": tp, "ep": ep, "dp-attn": dp_attn, "pp": pp, "dcp-size": dcp, "pcp-size": pcp,
        "attn-dp-size": attn_dp, "hardware": hardware,
    }  # fmt: skip
    names = dict.fromkeys((*(("num-worker",) if aggregated else ()), *written, "pp", "dcp-size", "pcp-size"))
    if not has_settings:
        names.pop("additional-settings", None)
    texts = [(name, f"[{CUT}]" if name == "additional-settings" else _json(values[name])) for name in names]
    shown, compact = _joined(texts)
    return f'"{role}": {{{shown}}}', f'"{role}":{{{",".join(sorted(compact))}}}'


@lru_cache(maxsize=4096)
def _single_worker(
    tp: int, ep: int, dp_attn: bool, pp: int, dcp: int, pcp: int, attn_dp: int | None
) -> tuple[Part, Part]:
    """The sizes of a single-node engine, which stand apart in a row."""
    sizes = {"tp": tp, "pp": pp, "dcp_size": dcp, "pcp_size": pcp}
    if attn_dp is not None:
        sizes["attn_dp_size"] = attn_dp
    return _part(**sizes), _part(ep=ep, dp_attn=dp_attn)


@lru_cache(maxsize=4096)
def _offloading(mode: str, budget_gb: int) -> Part:
    return _part(kv_offloading=mode, total_cpu_dram_gb=budget_gb, duration=AGENTIC_SECONDS)


@lru_cache(maxsize=4096)
def _transfer(name: str) -> Part:
    return _part(kv_p2p_transfer=name)


@lru_cache(maxsize=4096)
def _component(role: str, fields: tuple[tuple[str, str], ...]) -> Part:
    shown, compact = _part(**dict(fields))
    return f'"{role}": {{{shown}}}', (f'"{role}":{{{",".join(sorted(compact))}}}',)
