"""What a deployment occupies: host memory for KV offloading, nodes and GPUs.

Source of the rules: InferenceX's generator contract (DRAM budget and node count).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.config.model import Aggregated, SingleNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from matrix.config.fleet import Fleet
    from matrix.config.model import Config, Disaggregated, Entry, Scenario, Topology
    from matrix.findings import Finding, Span

    _PerNode = Callable[[str], tuple[int, ...]]

__all__ = ["MAX_NODE_DRAM_MIB", "BudgetError", "dram_budget_gb", "gpus_used", "topology_nodes"]

MAX_NODE_DRAM_MIB: Final = 2_861_022
"""3 TB: what one node gives at most, however much it has."""

_NODES: Final = ("PREFILL_NODES=", "DECODE_NODES=")
_BYTES_PER_MIB: Final = 1024 * 1024
_BYTES_PER_GB: Final = 1_000_000_000


class BudgetError(Exception):
    """A number cannot be computed: ``finding`` says which fact is missing or what does not fit."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def dram_budget_gb(config: Config, scenario: Scenario, entry: Entry, fleet: Fleet) -> int:
    """Gigabytes of host memory for KV blocks, truncated once at the end; 0 unless the entry offloads to DRAM.

    ``min(node MiB, cap) * 2^20 * utilization * GPUs used / GPUs per node / 10^9`` in exact decimal arithmetic, where a
    disaggregated deployment counts its prefill worker alone.

    Raises:
        BudgetError: the runner's hardware record lacks a fact, or the worker does not tile its nodes.
    """
    if entry.offload.mode != "dram" or scenario.dram_utilization is None:
        return 0
    hardware = fleet.hardware.get(config.runner)
    gpus_per_node = hardware.gpus_per_node if hardware else None
    mib = hardware.cpu_dram_mib if hardware else None
    if hardware is None or gpus_per_node is None or mib is None:
        lacks = "available-cpu-dram-mib" if gpus_per_node is not None else "gpus-per-node"
        what = f"has no {lacks}" if hardware else "has no hardware record"
        message = (
            f"the runner {config.runner} {what} in {fleet.document.name}, and kv-offloading: dram is budgeted by it."
        )
        near = f"; {_near(config.runner, fleet.hardware)}" if hardware is None else ""
        raise _refusal(
            rule="hardware-missing",
            message=message,
            fix=f"add {lacks} to its record{near}",
            span=_place_of(config, entry),
        )
    used = _gpus_on_node(entry, gpus_per_node, config)
    numerator, denominator = _ratio(scenario.dram_utilization)
    bytes_used = min(mib, MAX_NODE_DRAM_MIB) * _BYTES_PER_MIB * numerator * used
    return bytes_used // (denominator * gpus_per_node * _BYTES_PER_GB)


def _ratio(text: str) -> tuple[int, int]:
    """A decimal text as a whole fraction: ``0.35`` is 35 / 100, whatever a float makes of it."""
    if "e" in text or "E" in text:
        from fractions import Fraction

        return Fraction(text).as_integer_ratio()
    whole, _, decimals = text.replace("_", "").partition(".")
    return int(f"{whole}{decimals}"), 10 ** len(decimals)


def _gpus_on_node(entry: Entry, per_node: int, config: Config) -> int:
    """GPUs of one node that the budgeted worker uses."""
    topology = entry.topology
    alone = isinstance(topology, SingleNode)
    worker = topology.workers[0]
    if worker.gpus <= per_node:
        if alone or per_node % worker.gpus == 0:
            return worker.gpus
    elif not alone and worker.gpus % per_node == 0:
        return per_node
    role = "the engine" if alone else "a worker" if isinstance(topology, Aggregated) else "a prefill worker"
    takes = f"{role} takes tp {worker.tp} x pp {worker.pp} x pcp-size {worker.pcp} = {worker.gpus} GPUs"
    if worker.gpus <= per_node:
        message = f"{takes}, which does not divide the {per_node} GPUs of a node of {config.runner} evenly."
        fix = f"choose a size that divides {per_node}"
    elif alone:
        message = f"{takes}, and a node of {config.runner} has {per_node}."
        fix = f"lower tp, pp or pcp-size to fit {per_node} GPUs, or make the config multinode"
    else:
        message = f"{takes}: it spans nodes of {config.runner} but does not fill them ({per_node} each)."
        fix = f"choose a multiple of {per_node}"
    raise _refusal(rule="topology-fit", message=message, fix=fix, span=_place_of(config, entry))


def _place_of(config: Config, entry: Entry) -> Span:
    return config.document.span(entry.node.mark)


def topology_nodes(
    topology: Aggregated | Disaggregated,
    config: Config,
    entry: Entry,
    runner: str,
    fleet: Fleet,
    gpus_per_node: _PerNode,
) -> int:
    """Nodes by the topology alone: per role a ``PREFILL_NODES``/``DECODE_NODES`` setting, or its replicas' GPUs.

    ``gpus_per_node`` is `Fleet.gpus_per_node`, or a cache of it.

    Raises:
        BudgetError: contradicting settings, or nothing tells how many GPUs a node of the runner has.
    """
    if isinstance(topology, Aggregated) and topology.num_nodes is not None:
        return topology.num_nodes
    nodes = 0
    for name, worker in zip(_NODES, topology.workers, strict=True):
        if worker.settings and (stated := [setting for setting in worker.settings if setting.startswith(name)]):
            nodes += _stated(name, stated, config, entry)
            continue
        label = worker.hardware or runner
        known = gpus_per_node(label)
        if len(known) != 1:
            raise _open_count(label, known, fleet, config, entry)
        nodes += -(-worker.replicas * worker.gpus // known[0])
    return nodes


def _stated(name: str, stated: list[str], config: Config, entry: Entry) -> int:
    """The count that the settings of a role name."""
    counts = sorted({setting[len(name) :] for setting in stated})
    if len(counts) == 1 and counts[0].isdecimal() and int(counts[0]) > 0:
        return int(counts[0])
    message = f"the settings {' and '.join(f'{name}{count}' for count in counts)} do not name one count of nodes."
    fix = f"keep one {name}N with N >= 1"
    raise _refusal(rule="node-count", message=message, fix=fix, span=_place_of(config, entry))


def _open_count(label: str, known: tuple[int, ...], fleet: Fleet, config: Config, entry: Entry) -> BudgetError:
    """Nothing, or several things, say how many GPUs a node has."""
    if known:
        sizes = " or ".join(map(str, known))
        message = f"clusters of the family of {label} have {sizes} GPUs a node, so its node count is open."
        fix = "name one cluster: label as the runner (or as the role's hardware)"
    else:
        message = (
            f"nothing in {fleet.document.name} says how many GPUs a node of {label} has, so its node count is open."
        )
        fix = "add its hardware record there, or mend the label"
    return _refusal(rule="hardware-missing", message=message, fix=fix, span=_place_of(config, entry))


def _refusal(*, rule: str, message: str, fix: str, span: Span) -> BudgetError:
    from matrix.findings import Finding

    return BudgetError(Finding(rule=rule, message=message, fix=fix, span=span))


def _near(label: str, known: Iterable[str]) -> str:
    from matrix.findings import did_you_mean

    return did_you_mean(label, known)


def gpus_used(topology: Topology, nodes: int | None, per_node: int | None) -> int:
    """GPUs that a job holds while it runs: whole nodes where they are known, else the GPUs of its replicas."""
    if isinstance(topology, SingleNode):
        return topology.worker.gpus
    if nodes is not None and per_node is not None:
        return nodes * per_node
    workers = (topology.worker,) if isinstance(topology, Aggregated) else (topology.prefill, topology.decode)
    return sum(worker.replicas * worker.gpus for worker in workers)
