"""The row of a deployment in InferenceX's own field names, as JSON text with its points' own values left out.

A row is needed in two spellings: as ``json.dumps`` writes it, in InferenceX's order, and in canonical JSON (sorted
keys, no blanks), which digests and fingerprints are made of. Rows are most of what ``expand`` does, and encoding each
of them twice took a third of its time. So each spelling is one template for all kinds of row. What goes into it is text
that brings its own comma, empty where a row has no such field, and written once for all rows that have it alike: the
fields of a config on a runner, the sizes of a worker, an offloading mode.

In this module ``x`` is how a field is shown, ``x_c`` how it stands in canonical JSON.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from matrix.config.model import ScenarioKind, SingleNode
from matrix.lean import quoted

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matrix.config.model import Config, Entry, Scenario, Sizes, Worker
    from matrix.config.source import Map
    from matrix.points.point import Deployment

__all__ = [
    "AGENTIC_SECONDS", "CONFIG_FILE", "SEQUENCES", "Frame", "exp_name", "family_key", "row_text", "scenario_name",
]  # fmt: skip

CONFIG_FILE: Final = "CONFIG_FILE="
"""The setting of a role that names its recipe."""

AGENTIC_SECONDS: Final = 3600
"""How long an agentic throughput run takes, once the server is up."""

_CUT: Final = "\0"
"""Stands where settings go. JSON text has no such character of its own."""

SEQUENCES: Final = {(8192, 1024): "8k1k", (1024, 1024): "1k1k"}
"""The lengths that have a name of their own in ids."""
_BOOL: Final = {False: "false", True: "true"}
_SCENARIO_TYPE: Final = f'"scenario-type": "{ScenarioKind.AGENTIC}"'
_SCENARIO_TYPE_C: Final = f'"scenario-type":"{ScenarioKind.AGENTIC}",'
_RUN_EVAL_C: Final = '"run-eval":false,'
_SPEC_DECODING: Final = {
    name: (f'"spec-decoding": "{name}", ', f'"spec-decoding":"{name}",') for name in ("none", "mtp", "draft_model")
}


def scenario_name(scenario: Scenario) -> str:
    """``8k1k``, ``1k1k``, ``<isl>-<osl>`` or ``agentic``."""
    if scenario.kind is ScenarioKind.AGENTIC:
        return "agentic"
    return SEQUENCES.get((scenario.isl, scenario.osl)) or f"{scenario.isl}-{scenario.osl}"


class Frame:
    """What the deployments of one scenario on one runner have in common. Never changed once made.

    ``runner``: the config's label, or a node of it when ``on_node``. ``agentic``: the workload is, instead of fixed
    lengths. ``title``: what people call its jobs, up to the topology; ``named``: the same as JSON begins it.
    ``fixed_name``: the exp-name of a fixed-length row, up to the sizes. ``shown``, ``canonical`` and ``power``: its
    fields of a row, cut where others go in between.
    """

    __slots__ = (
        "agentic", "canonical", "config", "fixed_name", "named", "on_node", "power", "router", "runner", "scenario",
        "scenario_name", "shown", "title", "transfer",
    )  # fmt: skip

    def __init__(self, config: Config, scenario: Scenario, runner: str, *, on_node: bool = False) -> None:
        isl, osl = scenario.isl, scenario.osl
        self.config = config
        self.scenario = scenario
        self.runner = runner
        self.on_node = on_node
        self.agentic = agentic = scenario.kind is ScenarioKind.AGENTIC
        self.scenario_name = scenario_name(scenario)
        what = f"{config.model_prefix} {config.precision} {runner} {config.framework}"
        self.title = f"{what} {self.scenario_name}"
        self.named = quoted(self.title)[:-1]
        self.fixed_name = f"{config.model_prefix}_{SEQUENCES.get((isl, osl)) or f'{isl}_{osl}'}"
        self.power = ('"require-power": true, ', '"require-power":true,') if scenario.require_power else ("", "")
        self.router = _component("router", config.router)
        self.transfer = _transfer(config.kv_p2p_transfer)
        image, model, prefix = quoted(config.image), quoted(config.model), quoted(config.model_prefix)
        precision, framework, where = quoted(config.precision), quoted(config.framework), quoted(runner)
        disagg = _BOOL[config.disagg]
        head = (
            f'{{"image": {image}, "model": {model}, "model-prefix": {prefix}, "precision": {precision},'
            f' "framework": {framework}, "runner": {where}, '
        )
        software_c = f'"framework":{framework},"image":{image},'
        model_c = f'"model":{model},"model-prefix":{prefix},'
        precision_c, runner_c = f'"precision":{precision},', f'"runner":{where},'
        if agentic:
            kind = _SCENARIO_TYPE
            runner_c += _SCENARIO_TYPE_C
            disagg_c = f'"disagg":{disagg},' if config.multinode else ""
            self.shown = head, "", f'"disagg": {disagg}, {kind}' if config.multinode else kind
            self.canonical = disagg_c, software_c, model_c, "", precision_c, runner_c
        else:
            context = isl + osl + 256
            self.shown = (
                f'{head}"isl": {isl}, "osl": {osl}, ',
                f'"max-model-len": {context}, ',
                f'"disagg": {disagg}, "run-eval": ',
            )
            self.canonical = (
                f'"disagg":{disagg},', f'{software_c}"isl":{isl},', f'"max-model-len":{context},{model_c}',
                f'"osl":{osl},', precision_c, runner_c,
            )  # fmt: skip


def row_text(d: Deployment, *, power: bool = True, named: bool = True) -> tuple[str, str, str, str]:
    """The row as InferenceX's generator makes it without evals, cut where a point's own values go.

    First as it is shown, without the closing brace: up to the concurrency, up to a second value (the concurrency in an
    agentic exp-name, else run-eval), and the rest. Then as canonical JSON, without conc and exp-name.

    ``power`` false leaves out that the run wants its power measured, ``named`` false leaves out what names the recipe.
    """
    frame, entry = d.frame, d.entry
    head, context, closing = frame.shown
    disagg_c, software_c, model_c, osl_c, precision_c, runner_c = frame.canonical
    wanted, wanted_c = frame.power if power else ("", "")
    sizes, engine, adp_c, dcp_c, dp_attn_c, ep_c, ranks_c, prefill_c, tp_c = _workers(entry, named=named)
    spec_c = _SPEC_DECODING[entry.spec_decoding][1]
    recipe, recipe_c = _srt_recipe(entry.srt_recipe) if named and entry.srt_recipe is not None else ("", "")
    name, name_end = exp_name(d)
    if frame.agentic:
        memory, duration_c, memory_c, budget_c = _offloading(entry.offload.mode, d.budget_gb)
        head = f'{head}{sizes}{engine}"conc": '
        middle = f', {recipe}{memory}"exp-name": {quoted(name)[:-1]}'
        end = f"{quoted(name_end)[1:]}, {closing}"
        run_c = ""
    else:
        duration_c = memory_c = budget_c = end = ""
        head = f'{head}{wanted}{sizes}"conc": '
        middle = f', {context}{engine}{recipe}"exp-name": {quoted(name)}, {closing}'
        run_c = _RUN_EVAL_C
    backend, backend_c = _component("kv-offload-backend", entry.offload.backend)
    router, router_c = frame.router if entry.router is None else _component("router", entry.router)
    transfer, transfer_c = frame.transfer if entry.kv_p2p_transfer is None else _transfer(entry.kv_p2p_transfer)
    nodes, nodes_c = (f', "node-count": {d.nodes}', f'"node-count":{d.nodes},') if d.nodes is not None else ("", "")
    last_c = f"{spec_c}{recipe_c}{budget_c}{tp_c}"[:-1]
    canonical = (
        f"{{{adp_c}{dcp_c}{disagg_c}{dp_attn_c}{duration_c}{ep_c}{software_c}{backend_c}{memory_c}{transfer_c}{model_c}"
        f"{nodes_c}{osl_c}{ranks_c}{precision_c}{prefill_c}{wanted_c}{router_c}{run_c}{runner_c}{last_c}}}"
    )
    return head, middle, f"{end}{backend}{router}{transfer}{nodes}", canonical


def family_key(d: Deployment) -> Hashable:
    """Equal for deployments whose canonical rows are equal but for the selector of the recipe that they name.

    The values that such a row is made of: no text has to be made to compare two deployments.
    """
    entry, config, backend = d.entry, d.config, d.entry.offload.backend
    router = entry.router or config.router
    reference, selector = d.reference, d.selector
    bare = reference if reference is None or selector is None else reference[: -len(selector) - 1]
    topology = entry.topology
    workers: tuple[Hashable, ...]
    if isinstance(topology, SingleNode):
        workers = topology.worker.sizes, bare
    else:
        named, family = f"{CONFIG_FILE}{reference}", f"{CONFIG_FILE}{bare}"
        workers = tuple([
            (w.replicas, w.sizes, w.hardware, w.has_settings,
             *[family if text == named else text for text in w.settings])
            for w in topology.workers
        ])  # fmt: skip
    return (
        d.frame.canonical,
        d.scenario.require_power,
        workers,
        entry.spec_decoding,
        d.budget_gb,
        None if backend is None else (backend["name"], backend.get("version")),
        None if router is None else (router["name"], router["version"]),
        entry.kv_p2p_transfer or config.kv_p2p_transfer,
        d.nodes,
    )


def exp_name(d: Deployment) -> tuple[str, str]:
    """InferenceX's experiment name, cut where an agentic one has the concurrency; a fixed-length one has none."""
    frame, entry, topology = d.frame, d.entry, d.entry.topology
    if not frame.agentic:
        if isinstance(topology, SingleNode):
            return frame.fixed_name + _adp("_adp", topology.worker), ""
        prefill, decode = topology.workers
        return f"{frame.fixed_name}{_adp('_prefilladp', prefill)}{_adp('_decodeadp', decode)}", ""
    prefix, offload = frame.config.model_prefix, entry.offload
    kv = ""
    if offload.mode != "none":
        kv = f"kv{offload.mode}-{offload.backend['name'] if offload.backend is not None else 'none'}"
    if isinstance(topology, SingleNode):
        w = topology.worker
        spec = f"_spec-{entry.spec_decoding}" if entry.spec_decoding != "none" else ""
        return f"{prefix}_tp{w.tp}_conc", f"_{kv or 'kvnone'}{spec}{_adp('_adp', w)}"
    roles = f"{_role_name('p', topology.workers[0])}_{_role_name('d', topology.workers[1])}"
    return f"{prefix}_{roles}_conc", f"_{kv}" if kv else ""


def _adp(tag: str, worker: Worker) -> str:
    return f"{tag}{worker.attn_dp}" if worker.attn_dp is not None else ""


def _role_name(letter: str, worker: Worker) -> str:
    ep = f"ep{worker.ep}" if worker.ep != 1 else ""
    return f"{letter}{worker.replicas}x{worker.tp}{ep}{'dpa' if worker.dp_attn else ''}{_adp('adp', worker)}"


def _workers(entry: Entry, *, named: bool) -> tuple[str, ...]:
    """What the topology says: before the concurrency of a row, behind it, and the canonical fields in their order.

    An agentic row has both before the concurrency.
    """
    topology, spec = entry.topology, _SPEC_DECODING[entry.spec_decoding][0]
    if isinstance(topology, SingleNode):
        sizes, engine, *canonical = _single_worker(*topology.worker.sizes)
        return sizes, engine + spec, *canonical
    prefill, prefill_c = _role("prefill", topology.workers[0], entry.node, named=named)
    decode, decode_c = _role("decode", topology.workers[1], entry.node, named=named)
    return f"{spec}{prefill}{decode}", "", "", decode_c, "", "", "", prefill_c, ""


def _role(role: str, worker: Worker, entry: Map, *, named: bool) -> tuple[str, str]:
    """A worker as it is written, with its sizes made explicit; an idle copy has no settings."""
    shown, end, shown_c, end_c = _worker(
        role, tuple(worker.node), worker.replicas, worker.sizes, worker.hardware, "worker" in entry, worker.has_settings
    )
    if not worker.has_settings:
        return shown, shown_c
    settings = [quoted(text) for text in worker.settings if named or not text.startswith(CONFIG_FILE)]
    return f"{shown}{', '.join(settings)}{end}", f"{shown_c}{','.join(settings)}{end_c}"


# What many rows have alike. The bound keeps a search space of a million different ones from filling the memory.
_shared: Final = lru_cache(maxsize=4096)


@_shared
def _worker(
    role: str,
    written: tuple[str, ...],
    replicas: int,
    sizes: Sizes,
    hardware: str | None,
    aggregated: bool,
    has_settings: bool,
) -> tuple[str, str, str, str]:
    """A worker's mapping, cut where its settings go.

    ``written``: its keys in their order; only the count of an aggregated one, which may be absent, always comes first.
    """
    tp, ep, dp_attn, pp, dcp, pcp, attn_dp = sizes
    values = {
        "num-worker": replicas, "tp": tp, "ep": ep, "dp-attn": _BOOL[dp_attn], "pp": pp, "dcp-size": dcp,
        "pcp-size": pcp, "attn-dp-size": attn_dp, "hardware": quoted(hardware or ""),
        "additional-settings": f"[{_CUT}]",
    }  # fmt: skip
    names = dict.fromkeys((*(("num-worker",) if aggregated else ()), *written, "pp", "dcp-size", "pcp-size"))
    if not has_settings:
        names.pop("additional-settings", None)
    shown = ", ".join([f'"{name}": {values[name]}' for name in names])
    canonical = ",".join([f'"{name}":{values[name]}' for name in sorted(names)])
    shown, _, end = f'"{role}": {{{shown}}}, '.partition(_CUT)
    canonical, _, end_c = f'"{role}":{{{canonical}}},'.partition(_CUT)
    return shown, end, canonical, end_c


@_shared
def _single_worker(
    tp: int, ep: int, dp_attn: bool, pp: int, dcp: int, pcp: int, attn_dp: int | None
) -> tuple[str, ...]:
    """The sizes of a single-node engine: the two groups that stand apart in a row, and the canonical fields."""
    adp, adp_c = ("", "") if attn_dp is None else (f'"attn-dp-size": {attn_dp}, ', f'"attn-dp-size":{attn_dp},')
    return (
        f'"tp": {tp}, "pp": {pp}, "dcp-size": {dcp}, "pcp-size": {pcp}, {adp}',
        f'"ep": {ep}, "dp-attn": {_BOOL[dp_attn]}, ',
        adp_c, f'"dcp-size":{dcp},', f'"dp-attn":{_BOOL[dp_attn]},', f'"ep":{ep},', f'"pcp-size":{pcp},"pp":{pp},', "",
        f'"tp":{tp},',
    )  # fmt: skip


@_shared
def _offloading(mode: str, budget_gb: int) -> tuple[str, str, str, str]:
    """The memory of an agentic row, and its canonical fields."""
    shown = f'"kv-offloading": "{mode}", "total-cpu-dram-gb": {budget_gb}, "duration": {AGENTIC_SECONDS}, '
    return (
        shown,
        f'"duration":{AGENTIC_SECONDS},',
        f'"kv-offloading":"{mode}",',
        f'"total-cpu-dram-gb":{budget_gb},',
    )


def _component(role: str, node: Map | None) -> tuple[str, str]:
    if node is None:
        return "", ""
    shown = ", ".join([f'"{name}": {quoted(text)}' for name, text in node.items()])
    canonical = ",".join([f'"{name}":{quoted(node[name])}' for name in sorted(node)])
    return f', "{role}": {{{shown}}}', f'"{role}":{{{canonical}}},'


def _transfer(name: str | None) -> tuple[str, str]:
    return ("", "") if name is None else (f', "kv-p2p-transfer": {quoted(name)}', f'"kv-p2p-transfer":{quoted(name)},')


def _srt_recipe(reference: str) -> tuple[str, str]:
    return f'"srt-recipe": {quoted(reference)}, ', f'"srt-recipe":{quoted(reference)},'
