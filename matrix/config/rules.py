"""What no schema can say of a master config: rules that join two values.

Each rule is a generator of findings over the raw mappings. It looks at what is there and of the right type, so that it
is quiet where a schema error already tells the cause. Schema and rules together refuse exactly what the constructors of
`matrix.config.model` refuse.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from matrix.config.model import MAX_CONCURRENCY, MAX_TOKENS, is_config_key
from matrix.config.place import joined
from matrix.config.source import Map, Seq
from matrix.findings import Related

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matrix.config.place import Place
    from matrix.findings import Finding

    Lacks = Callable[[Map, str], bool]
    """Whether a mapping has neither a key nor a misspelling of it."""

__all__ = ["master_faults"]

_ROLES: Final = ("prefill", "decode")
_SHAPES: Final = {"worker": "worker", "prefill": "roles", "decode": "roles", "tp": "single"}
_SHAPE_KEYS: Final = {"worker": "worker", "roles": "prefill and decode", "single": "tp"}


def master_faults(root: Place, is_meant: Callable[[Map, str], bool]) -> Iterator[Finding]:
    """Faults of a master config. ``is_meant``: whether an unknown key of a mapping is a misspelling of a known one."""

    def lacks(node: Map, key: str) -> bool:
        return key not in node and not is_meant(node, key)

    for key in root.value if isinstance(root.value, Map) else ():
        config = root.at(key)
        yield from _config_key(config, key)
        if isinstance(config.value, Map):
            yield from _config(config, lacks)


def _config_key(config: Place, key: str) -> Iterator[Finding]:
    if is_config_key(key):
        return
    if "*" in key:
        message = "is no config key: where configs are selected, * makes a pattern."
        fix = "write one config a key, by its full name"
    elif "--" in key:
        message = "is no config key: -- separates the parts of a point id."
        fix = f"write {re.sub('--+', '-', key)}"
    else:
        message = (
            "is no config key. Names of jobs and files are made of it, so it holds letters, digits, '.', '_' and '-'."
        )
        fix = f"write {re.sub('[^A-Za-z0-9._-]+', '-', key).strip('-') or 'a name'}"
    yield config.fault("config-key", message, fix, title=True)


class _Entry(NamedTuple):
    place: Place
    node: Map
    shape: str  # of _SHAPES, or nothing where the entry has no topology
    agentic: bool

    def is_mixed(self) -> bool:
        """Whether the entry has keys of two topologies; the schema then tells which of them are too many."""
        return len({shape for key, shape in _SHAPES.items() if key in self.node}) > 1


def _entries(block: Place, *, agentic: bool) -> Iterator[_Entry]:
    for place in block.maps("search-space"):
        keys = place.value.keys()
        shape = next((shape for key, shape in _SHAPES.items() if key in keys), "")
        yield _Entry(place, place.value, shape, agentic)


def _config(config: Place, lacks: Lacks) -> Iterator[Finding]:
    node = config.value
    entries: list[_Entry] = []
    if isinstance(node.get("scenarios"), Map):
        scenarios = config.at("scenarios")
        yield from _no_scenario(scenarios, lacks)
        for block in scenarios.maps("fixed-seq-len"):
            yield from _require_power(block)
            entries += _entries(block, agentic=False)
        for block in scenarios.maps("agentic-coding"):
            members = list(_entries(block, agentic=True))
            yield from _dram_utilization(block, members, lacks)
            entries += members
        yield from _agentic_runner(config)
    yield from _serving_mode(config, entries, lacks)
    for key in ("router", "kv-p2p-transfer"):
        yield from _declared_twice(config, key, entries)
    yield from _component_version(config, "router")
    for entry in entries:
        yield from _entry(entry, lacks)


# -- config and block --------------------------------------------------------------------------------------------------


def _no_scenario(scenarios: Place, lacks: Lacks) -> Iterator[Finding]:
    node = scenarios.value
    kinds = ("fixed-seq-len", "agentic-coding")
    if all(lacks(node, kind) or node.get(kind, ()) == [] for kind in kinds):
        message = "holds no workload. A config stands for at least one."
        fix = "add a block under fixed-seq-len or agentic-coding"
        yield scenarios.fault("scenarios-empty", message, fix, title=True)


def _require_power(block: Place) -> Iterator[Finding]:
    node = block.value
    isl, osl = node.get("isl"), node.get("osl")
    known = _is_count(isl, MAX_TOKENS) and _is_count(osl, MAX_TOKENS)
    if node.get("require-power") is True and known and (isl, osl) != (8192, 1024):
        message = f"is true for {isl}/{osl}. Power is measured at 8192/1024 alone."
        yield block.at("require-power").fault("require-power-sequence", message, "remove it here")


def _dram_utilization(block: Place, entries: list[_Entry], lacks: Lacks) -> Iterator[Finding]:
    users = [entry for entry in entries if entry.node.get("kv-offloading") == "dram"]
    if users and lacks(block.value, "dram-utilization"):
        message = "lacks dram-utilization, the share of host memory that entries with kv-offloading: dram may fill."
        related = (Related(users[0].place.at("kv-offloading").span, "such an entry"),)
        fix = "add it, such as dram-utilization: 0.80"
        yield block.fault("dram-utilization-missing", message, fix, related=related)


def _agentic_runner(config: Place) -> Iterator[Finding]:
    runner, blocks = config.value.get("runner"), config.value["scenarios"].get("agentic-coding")
    agentic = isinstance(blocks, Seq) and blocks
    if agentic and isinstance(runner, str) and runner and not runner.startswith("cluster:"):
        message = f"is {runner}, and the config has agentic-coding. Its points all run on the hardware of one cluster."
        yield config.at("runner").fault("agentic-runner", message, "name a whole cluster, as cluster:<id>")


def _declared_twice(config: Place, key: str, entries: list[_Entry]) -> Iterator[Finding]:
    if config.value.get(key) is None or (key == "kv-p2p-transfer" and config.value.get("multinode") is False):
        return
    able = [entry for entry in entries if key == "router" or entry.shape != "single"]
    users = [entry.place for entry in able if entry.node.get(key) is not None]
    if users:
        more = f", and in {len(users) - 1} more entries" if users[1:] else ""
        message = f"is declared here{more}, and for the whole config as well. Only one can be meant."
        related = (Related(config.at(key).title_span, "for the whole config"),)
        fix = "remove one of them"
        yield users[0].at(key).fault(f"{key}-declared-twice", message, fix, title=True, related=related)


def _component_version(holder: Place, key: str) -> Iterator[Finding]:
    component = holder.value.get(key)
    version = component.get("version") if isinstance(component, Map) else None
    if isinstance(version, str) and version.startswith("image:"):
        message = f"is {version}, an image. The config names the image; this says which release or commit is in it."
        yield holder.at(key).at("version").fault("component-version", message, "write the version")


# -- which topology belongs under which serving mode -------------------------------------------------------------------


def _serving_mode(config: Place, entries: list[_Entry], lacks: Lacks) -> Iterator[Finding]:
    node = config.value
    multinode, disagg = node.get("multinode"), node.get("disagg", False)
    if not isinstance(multinode, bool) or not isinstance(disagg, bool):
        return
    if disagg and not multinode:
        message = "is true, and multinode is false. Prefill and decode workers of their own make a multi-node job."
        yield config.at("disagg").fault("disagg-single-node", message, "write multinode: true, or remove disagg")
        return
    shaped = [entry for entry in entries if entry.shape and not entry.is_mixed()]
    faults = [_mismatch(entry, multinode=multinode, disagg=disagg) for entry in shaped]
    if len(faults) > 1 and faults[0] is not None and len({fault and fault[0] for fault in faults}) == 1:
        # All of them alike: then the flag is what is wrong, and whatever else rests on it is no fault of its own.
        rule, message, fix = faults[0]
        flag = config.at("disagg" if multinode and "disagg" in node else "multinode")
        related = (Related(shaped[0].place.span, "the first of them"),)
        yield flag.fault(rule, f"does not fit the {len(faults)} entries of the config. {message}", fix, related=related)
        return
    for entry, fault in zip(shaped, faults, strict=True):
        if fault is not None:
            rule, message, fix = fault
            yield entry.place.fault(rule, f"does not fit the config. {message}", fix)
    yield from _transfer(config, entries, lacks, multinode=multinode, disagg=disagg)


def _mismatch(entry: _Entry, *, multinode: bool, disagg: bool) -> tuple[str, str, str] | None:
    """Rule, message and fix where the topology of an entry is not one of the config's serving mode."""
    has = _SHAPE_KEYS[entry.shape]
    if (entry.shape == "single") == multinode:
        flag = "true" if multinode else "false"
        wants = ("prefill and decode" if disagg else "worker and num-nodes") if multinode else "tp"
        message = f"multinode: {flag} goes with {wants}, an entry with {has} does not."
        fix = f"write multinode: {'false' if multinode else 'true'}, or give the entry {wants}"
        return "multinode-topology", message, fix
    if disagg and entry.shape == "worker":
        message = "disagg: true means prefill and decode on workers of their own, and worker does both."
        return "disagg-topology", message, "write prefill and decode, or remove disagg"
    if multinode and not disagg and entry.shape == "roles":
        prefill, decode = (_replicas(entry.node.get(role)) for role in _ROLES)
        if prefill is not None and decode is not None and (decode or not prefill):
            message = f"Without disagg all workers stand under prefill; here {prefill} prefill and {decode} decode."
            fix = "write disagg: true, or worker and num-nodes instead of prefill and decode"
            return "aggregated-roles", message, fix
    return None


def _transfer(
    config: Place, entries: list[_Entry], lacks: Lacks, *, multinode: bool, disagg: bool
) -> Iterator[Finding]:
    node = config.value
    if not multinode and node.get("kv-p2p-transfer") is not None:
        message = "moves KV blocks between workers, and multinode is false: there is one engine."
        fix = "remove it, or write multinode: true"
        yield config.at("kv-p2p-transfer").fault("kv-p2p-transfer-single-node", message, fix, title=True)
    if not disagg or not lacks(node, "kv-p2p-transfer"):
        return
    without = [entry.place for entry in entries if lacks(entry.node, "kv-p2p-transfer")]
    if not without:
        return
    message = "lacks kv-p2p-transfer, which names what moves KV blocks from prefill to decode workers."
    fix = "add it, such as kv-p2p-transfer: mooncake"
    if len(without) == len(entries):
        yield config.fault("kv-p2p-transfer-missing", message, fix, title=True)
        return
    for place in without:
        yield place.fault("kv-p2p-transfer-missing", message, f"{fix}; or declare it once for the whole config")


# -- one search-space entry --------------------------------------------------------------------------------------------


def _entry(entry: _Entry, lacks: Lacks) -> Iterator[Finding]:
    place, node = entry.place, entry.node
    if not entry.shape and all(lacks(node, key) for key in _SHAPES):
        message = "has no topology. It is tp for one node, worker and num-nodes, or prefill and decode."
        yield place.fault("topology-missing", message, "add tp, or worker and num-nodes, or prefill and decode")
    yield from _concurrency(place, lacks)
    if entry.shape == "single":
        yield from _sizes(place, alone=lacks(node, "dp-attn"))
    for key in ("worker", *_ROLES):
        if isinstance(node.get(key), Map):
            yield from _sizes(place.at(key), alone=False)
    if entry.shape == "roles":
        yield from _hardware(place, lacks)
    yield from _component_version(place, "router")
    if entry.agentic:
        yield from _offload(entry, lacks)
        yield from _component_version(place, "kv-offload-backend")


def _concurrency(place: Place, lacks: Lacks) -> Iterator[Finding]:
    node = place.value
    ends = [key for key in ("conc-start", "conc-end") if not lacks(node, key)]
    if not lacks(node, "conc-list"):
        if ends and node.get("conc-list") not in (None, []) and any(node.get(end) is not None for end in ends):
            message = f"stands beside {joined(ends)}. Concurrencies are a list or a range, never both."
            yield place.at("conc-list").fault("conc-both-forms", message, "remove one of the two", title=True)
    elif not ends:
        fix = "add conc-list: [1, 16], or conc-start and conc-end"
        yield place.fault(
            "conc-missing", "has no concurrency. Each concurrency is one point, so there would be none.", fix
        )
    elif not ends[1:]:
        other = "conc-end" if ends == ["conc-start"] else "conc-start"
        if ends[0] in node:
            here = place.at(ends[0])
            message = f"stands without {other}. A range has two ends; a single concurrency is a list of one."
            yield here.fault(
                "conc-half-range", message, f"add {other}, or write conc-list: [{here.written}]", title=True
            )
    elif _is_count(start := node.get("conc-start")) and _is_count(end := node.get("conc-end")) and start > end:
        message = f"is {start}, above conc-end, which is {end}. A range climbs from start to end."
        fix = f"write conc-start: {end} and conc-end: {start}, if that is meant"
        yield place.at("conc-start").fault("conc-range-order", message, fix)


def _sizes(worker: Place, *, alone: bool) -> Iterator[Finding]:
    """Rules of one worker's GPUs. ``alone``: dp-attn is not there, and may be left out."""
    node = worker.value
    tp = node.get("tp")
    for key in ("dcp-size", "attn-dp-size"):
        size = node.get(key)
        if _is_count(tp) and _is_count(size) and tp % size:
            message = f"is {size}, which does not divide tp ({tp}). The GPUs of a replica fall into equal groups."
            yield worker.at(key).fault(f"{key}-divides", message, f"write one of {joined(_divisors(tp), 'or')}")
    groups, dp_attn = node.get("attn-dp-size"), node.get("dp-attn", False if alone else None)
    if _is_count(groups) and isinstance(dp_attn, bool) and (groups > 1) is not dp_attn:
        state = "dp-attn is true" if dp_attn else "dp-attn is not true"
        message = f"is {groups}, and {state}. There is more than one group exactly when attention is data-parallel."
        fix = (
            "write dp-attn: false, or a larger attn-dp-size"
            if dp_attn
            else "write dp-attn: true, or remove attn-dp-size"
        )
        yield worker.at("attn-dp-size").fault("attn-dp-size-dp-attn", message, fix)


def _hardware(place: Place, lacks: Lacks) -> Iterator[Finding]:
    blocks = [place.at(role) for role in _ROLES if isinstance(place.value.get(role), Map)]
    without = [block for block in blocks if lacks(block.value, "hardware")]
    if len(blocks) == len(_ROLES) and len(without) == 1:
        other = next(block for block in blocks if block is not without[0])
        message = "lacks hardware, and the other role has it. Roles on different hardware both say which."
        related = (Related(other.at("hardware").title_span, "here it is"),) if "hardware" in other.value else ()
        fix = "add hardware here, or remove it there"
        yield without[0].fault("hardware-one-role", message, fix, title=True, related=related)


def _offload(entry: _Entry, lacks: Lacks) -> Iterator[Finding]:
    place, node = entry.place, entry.node
    mode, backend = node.get("kv-offloading"), node.get("kv-offload-backend")
    if lacks(node, "kv-offloading"):
        if entry.shape == "single":
            message = "lacks kv-offloading, which says where KV blocks of agentic sessions go that no GPU keeps."
            fix = "add kv-offloading: none, or kv-offloading: dram with a kv-offload-backend"
            yield place.fault("kv-offloading-missing", message, fix)
        elif backend is not None:
            message, fix = (
                "stands without kv-offloading. Nothing is offloaded.",
                "add kv-offloading: dram, or remove it",
            )
            yield place.at("kv-offload-backend").fault("kv-offload-backend-unused", message, fix, title=True)
    elif mode == "dram" and lacks(node, "kv-offload-backend"):
        message = "is dram, and kv-offload-backend is missing, which names what moves the blocks."
        fix = "add it, such as kv-offload-backend: {name: lmcache}"
        yield place.at("kv-offloading").fault("kv-offload-backend-missing", message, fix)
    elif mode == "none" and backend is not None:
        message = "stands beside kv-offloading: none. Nothing is offloaded."
        fix = "write kv-offloading: dram, or remove it"
        yield place.at("kv-offload-backend").fault("kv-offload-backend-unused", message, fix, title=True)


def _is_count(value: object, most: int = MAX_CONCURRENCY) -> TypeGuard[int]:
    return type(value) is int and 0 < value <= most


def _replicas(block: object) -> int | None:
    count = block.get("num-worker") if isinstance(block, Map) else None
    return count if type(count) is int and 0 <= count <= MAX_CONCURRENCY else None


def _divisors(number: int) -> list[str]:
    found = [str(size) for size in range(1, min(number, 1024) + 1) if number % size == 0]
    return found[:12]
