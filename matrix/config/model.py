"""The master config as typed values: `Config` > `Scenario` > `Entry` > topology.

The constructors accept a correct document in one pass and raise `Unacceptable` at the first value they cannot take. They
explain nothing: `matrix.config.schema.explain` then says everything that is wrong with the file. Every type keeps the
mapping it came from (``node``), which knows the line and column of each of its values.

They are named tuples rather than frozen dataclasses: making a class costs a twentieth, and every command makes them all.

Rules and field names: InferenceX's generator contract (master config fields, worker blocks, search-space entries).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.source import Map, Seq, WrittenFloat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.config.source import Document, Mark

__all__ = [
    "KEY_PATTERN",
    "MAX_CONCURRENCY",
    "MAX_TOKENS",
    "Aggregated",
    "Config",
    "Disaggregated",
    "Entry",
    "Offload",
    "Scenario",
    "ScenarioKind",
    "SingleNode",
    "Topology",
    "Unacceptable",
    "Worker",
    "configs_of",
    "progression",
]

MAX_CONCURRENCY: Final = 1_000_000
"""Clients at once; larger numbers are typing errors."""

MAX_TOKENS: Final = 100_000_000
"""Tokens of one input or output; a million-token context is real, a hundred times that is a typing error."""

KEY_PATTERN: Final = re.compile(r"(?!.*--)[A-Za-z0-9._-]+\Z")
"""A config key: inert in shells, file names and workflow expressions; ``--`` separates the parts of a point id."""


class Unacceptable(Exception):  # noqa: N818 - a verdict between two modules, never seen by a user
    """The document is not a master config; ask `matrix.config.schema.explain` why."""


class ScenarioKind(StrEnum):
    """The two kinds of workload, by their key under ``scenarios``."""

    FIXED = "fixed-seq-len"
    AGENTIC = "agentic-coding"


class Worker(NamedTuple):
    """Replicas of one engine: so many, each on tp x pp x pcp GPUs."""

    replicas: int
    tp: int
    ep: int
    dp_attn: bool
    pp: int
    dcp: int
    pcp: int
    attn_dp: int | None
    hardware: str | None
    settings: tuple[str, ...]
    node: Map

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tp * self.pp * self.pcp


class SingleNode(NamedTuple):
    """One engine on one node."""

    worker: Worker


class Aggregated(NamedTuple):
    """Replicas that prefill and decode, on ``num_nodes`` nodes.

    ``decode`` is the row's second worker, with 0 replicas. Written as ``worker`` + ``num-nodes``, or in the older shape
    as ``prefill`` and ``decode`` with ``decode.num-worker: 0``; then ``num_nodes`` is None.
    """

    worker: Worker
    decode: Worker
    num_nodes: int | None


class Disaggregated(NamedTuple):
    """Prefill and decode on replicas of their own."""

    prefill: Worker
    decode: Worker


Topology = SingleNode | Aggregated | Disaggregated


class Offload(NamedTuple):
    """Where KV blocks go that no GPU keeps: ``mode`` is ``none`` or ``dram``; ``backend`` names who moves them."""

    mode: str
    backend: Map | None


class Entry(NamedTuple):
    """One search-space entry: a topology and the concurrencies to run it at."""

    topology: Topology
    concurrencies: tuple[int, ...]
    bounds: tuple[int, int] | None
    spec_decoding: str
    offload: Offload
    router: Map | None
    kv_p2p_transfer: str | None
    srt_recipe: str | None
    node: Map

    def ladder(self, step: int) -> Sequence[int]:
        """The concurrencies in order; a range is climbed by factors of ``step`` and closed by its end."""
        return self.concurrencies if self.bounds is None else progression(*self.bounds, step)


class Scenario(NamedTuple):
    """A block of search-space entries under one workload. ``isl`` and ``osl`` are tokens, 0 for agentic."""

    kind: ScenarioKind
    isl: int
    osl: int
    require_power: bool
    dram_utilization: str | None
    entries: tuple[Entry, ...]
    node: Map


class Config(NamedTuple):
    """One master config: what is served, on which runner, and the space to search. ``scenarios``: fixed ones first."""

    key: str
    image: str
    model: str
    model_prefix: str
    precision: str
    framework: str
    runner: str
    multinode: bool
    disagg: bool
    router: Map | None
    kv_p2p_transfer: str | None
    scenarios: tuple[Scenario, ...]
    node: Map
    document: Document
    mark: Mark


def progression(start: int, end: int, step: int) -> list[int]:
    """The geometric ladder from start, always closed by end.

    >>> progression(4, 100, 2)
    [4, 8, 16, 32, 64, 100]
    >>> progression(7, 7, 2)
    [7]
    """
    ladder = []
    while start < end:
        ladder.append(start)
        start *= step
    ladder.append(end)
    return ladder


def configs_of(document: Document) -> tuple[Config, ...]:
    """The configs of one master document, in file order.

    Raises:
        Unacceptable: anything in the document is not as it must be.
    """
    root = document.root
    if type(root) is not Map:
        raise Unacceptable
    return tuple(_config(key, node, document, root.marks[key][0]) for key, node in root.items())


_CONFIG_KEYS: Final = frozenset(
    ("image", "model", "model-prefix", "precision", "framework", "runner", "multinode", "disagg", "router",
     "kv-p2p-transfer", "scenarios")
)  # fmt: skip
_PARALLEL_KEYS: Final = ("tp", "ep", "dp-attn", "pp", "dcp-size", "pcp-size", "attn-dp-size")
_WORKER_KEYS: Final = frozenset((*_PARALLEL_KEYS, "num-worker", "hardware", "additional-settings"))
_CONCURRENCY_KEYS: Final = ("conc-list", "conc-start", "conc-end")
_COMMON_KEYS: Final = (*_CONCURRENCY_KEYS, "spec-decoding", "router", "check-waivers")
_OFFLOAD_KEYS: Final = ("kv-offloading", "kv-offload-backend")
_MULTI_KEYS: Final = (*_COMMON_KEYS, "kv-p2p-transfer")
_ENTRY_KEYS: Final[dict[tuple[str, bool], frozenset[str]]] = {
    ("single", False): frozenset((*_COMMON_KEYS, *_PARALLEL_KEYS, "srt-recipe")),
    ("single", True): frozenset((*_COMMON_KEYS, *_PARALLEL_KEYS, "srt-recipe", *_OFFLOAD_KEYS)),
    ("worker", False): frozenset((*_MULTI_KEYS, "worker", "num-nodes")),
    ("worker", True): frozenset((*_MULTI_KEYS, "worker", "num-nodes", *_OFFLOAD_KEYS)),
    ("roles", False): frozenset((*_MULTI_KEYS, "prefill", "decode")),
    ("roles", True): frozenset((*_MULTI_KEYS, "prefill", "decode", *_OFFLOAD_KEYS)),
}
_SPEC_DECODING: Final = frozenset(("none", "mtp", "draft_model"))


def _config(key: str, node: Any, document: Document, mark: Mark) -> Config:
    if type(node) is not Map or not node.keys() <= _CONFIG_KEYS or not KEY_PATTERN.match(key) or None in node.values():
        raise Unacceptable
    get = node.get
    multinode, disagg, scenarios = get("multinode"), get("disagg", False), get("scenarios")
    texts: list[Any] = [get(name) for name in ("image", "model", "model-prefix", "precision", "framework", "runner")]
    for text in texts:
        if type(text) is not str or not text:
            raise Unacceptable
    image, model, model_prefix, precision, framework, runner = texts
    if (
        type(multinode) is not bool
        or type(disagg) is not bool
        or (disagg and not multinode)
        or type(scenarios) is not Map
    ):
        raise Unacceptable
    if not scenarios.keys() <= {"fixed-seq-len", "agentic-coding"}:
        raise Unacceptable
    blocks = [
        _scenario(block, kind, multinode, disagg)
        for kind in ScenarioKind
        for block in _list(scenarios.get(kind.value, _NO_BLOCKS))
    ]
    if not blocks:
        raise Unacceptable
    if blocks[-1].kind is ScenarioKind.AGENTIC and not runner.startswith("cluster:"):
        raise Unacceptable
    router = _component(get("router"))
    transfer = _optional_text(get("kv-p2p-transfer"))
    entries = [entry for block in blocks for entry in block.entries]
    if router is not None and any(entry.router is not None for entry in entries):
        raise Unacceptable
    if transfer is not None and (not multinode or any(entry.kv_p2p_transfer is not None for entry in entries)):
        raise Unacceptable
    if disagg and transfer is None and any(entry.kv_p2p_transfer is None for entry in entries):
        raise Unacceptable
    return Config(
        key,
        image,
        model,
        model_prefix,
        precision,
        framework,
        runner,
        multinode,
        disagg,
        router,
        transfer,
        tuple(blocks),
        node,
        document,
        mark,
    )


def _scenario(node: Any, kind: ScenarioKind, multinode: bool, disagg: bool) -> Scenario:
    if type(node) is not Map or None in node.values():
        raise Unacceptable
    get = node.get
    space = _list(get("search-space"))
    isl = osl = 0
    power = False
    utilization: str | None = None
    if kind is ScenarioKind.FIXED:
        if not node.keys() <= {"isl", "osl", "require-power", "search-space"}:
            raise Unacceptable
        isl, osl, power = _count(get("isl"), MAX_TOKENS), _count(get("osl"), MAX_TOKENS), get("require-power", False)
        if type(power) is not bool or (power and (isl, osl) != (8192, 1024)):
            raise Unacceptable
    else:
        if not node.keys() <= {"dram-utilization", "search-space"}:
            raise Unacceptable
        if "dram-utilization" in node:
            utilization = _fraction(node["dram-utilization"])
    agentic = kind is ScenarioKind.AGENTIC
    entries = tuple(_entry(entry, agentic, multinode, disagg) for entry in space)
    if utilization is None and any(entry.offload.mode == "dram" for entry in entries):
        raise Unacceptable
    return Scenario(kind, isl, osl, power, utilization, entries, node)


def _entry(node: Any, agentic: bool, multinode: bool, disagg: bool) -> Entry:
    if type(node) is not Map or None in node.values():
        raise Unacceptable
    get = node.get
    shape = "worker" if "worker" in node else "roles" if "prefill" in node or "decode" in node else "single"
    if not node.keys() <= _ENTRY_KEYS[shape, agentic] or (shape == "single") == multinode:
        raise Unacceptable
    topology: Topology
    if shape == "single":
        topology = SingleNode(_worker(node, 1))
    elif shape == "worker":
        worker = _worker(get("worker"), None)
        if disagg or not worker.replicas:
            raise Unacceptable
        topology = Aggregated(worker, _idle_copy(worker), _count(get("num-nodes")))
    else:
        prefill, decode = _worker(get("prefill"), -1), _worker(get("decode"), -1)
        if (prefill.hardware is None) != (decode.hardware is None):
            raise Unacceptable
        if disagg:
            topology = Disaggregated(prefill, decode)
        elif decode.replicas or not prefill.replicas:
            raise Unacceptable
        else:
            topology = Aggregated(prefill, decode, None)
    spec = get("spec-decoding", "none")
    if type(spec) is not str or spec not in _SPEC_DECODING:
        raise Unacceptable
    concurrencies, bounds = _concurrency(node)
    if "check-waivers" in node:
        _waivers(node["check-waivers"])
    return Entry(
        topology,
        concurrencies,
        bounds,
        spec,
        _offload(node, shape) if agentic else _NO_OFFLOAD,
        _component(get("router")),
        _optional_text(get("kv-p2p-transfer")),
        _optional_text(get("srt-recipe")),
        node,
    )


def _worker(node: Any, count: int | None) -> Worker:
    """A worker block. ``count``: 1 for an entry that is itself the worker, -1 where num-worker is required, else optional."""
    if type(node) is not Map:
        raise Unacceptable
    get = node.get
    ep, dp_attn, hardware, settings = get("ep", _ABSENT), get("dp-attn", _ABSENT), None, _NO_SETTINGS
    if count != 1:
        if not node.keys() <= _WORKER_KEYS or ep is _ABSENT or dp_attn is _ABSENT:
            raise Unacceptable
        count = get("num-worker", 1 if count is None else _ABSENT)
        if type(count) is not int or not 0 <= count <= MAX_CONCURRENCY:
            raise Unacceptable
        hardware = _optional_text(get("hardware"))
        if None in node.values() and any(value is None for key, value in node.items() if key != "additional-settings"):
            raise Unacceptable
        if get("additional-settings") is not None:
            settings = tuple(_list(node["additional-settings"]))
            for setting in settings:
                if type(setting) is not str:
                    raise Unacceptable
    tp = _count(get("tp"))
    ep = 1 if ep is _ABSENT else _count(ep)
    if dp_attn is _ABSENT:
        dp_attn = False
    if type(dp_attn) is not bool:
        raise Unacceptable
    pp, dcp, pcp = _count(get("pp", 1)), _count(get("dcp-size", 1)), _count(get("pcp-size", 1))
    attn_dp = None
    if "attn-dp-size" in node:
        attn_dp = _count(node["attn-dp-size"])
        if tp % attn_dp or (attn_dp > 1) is not dp_attn:
            raise Unacceptable
    if tp % dcp:
        raise Unacceptable
    return Worker(count, tp, ep, dp_attn, pp, dcp, pcp, attn_dp, hardware, settings, node)


def _idle_copy(worker: Worker) -> Worker:
    """The decode side of an aggregated row: the same worker, none of it, without settings."""
    w = worker
    return Worker(0, w.tp, w.ep, w.dp_attn, w.pp, w.dcp, w.pcp, w.attn_dp, w.hardware, (), w.node)


def _offload(node: Map, shape: str) -> Offload:
    mode, backend = node.get("kv-offloading", _ABSENT), _component(node.get("kv-offload-backend"), "any")
    if mode is _ABSENT:
        if shape == "single" or backend is not None:
            raise Unacceptable
        return _NO_OFFLOAD
    if mode not in ("none", "dram") or (backend is None) is (mode == "dram"):
        raise Unacceptable
    return Offload(mode, backend)


def _concurrency(node: Map) -> tuple[tuple[int, ...], tuple[int, int] | None]:
    get = node.get
    members, start, end = get("conc-list"), get("conc-start"), get("conc-end")
    if members is None:
        start, end = _count(start), _count(end)
        if start > end:
            raise Unacceptable
        return (), (start, end)
    if start is not None or end is not None or type(members) is not Seq or not members:
        raise Unacceptable
    for member in members:
        if type(member) is not int or not 0 < member <= MAX_CONCURRENCY:
            raise Unacceptable
    return tuple(members), None


def _component(node: Any, default_version: str | None = None) -> Map | None:
    """A router or backend: ``name``, and ``version``, which only a backend may leave out."""
    if node is None:
        return None
    if type(node) is not Map or not node.keys() <= {"name", "version"}:
        raise Unacceptable
    name, version = node.get("name"), node.get("version", default_version)
    if type(name) is not str or not name or type(version) is not str or not version or version.startswith("image:"):
        raise Unacceptable
    return node


def _waivers(node: Any) -> None:
    for waiver in _list(node):
        if type(waiver) is not Map or waiver.keys() != {"rule", "reason"}:
            raise Unacceptable
        if not all(type(text) is str and text for text in waiver.values()):
            raise Unacceptable


def _count(value: Any, most: int = MAX_CONCURRENCY) -> int:
    if type(value) is not int or not 0 < value <= most:
        raise Unacceptable
    return value


def _fraction(value: Any) -> str:
    """The decimal text of a number in (0, 1]."""
    if type(value) not in (int, WrittenFloat) or not 0 < value <= 1:
        raise Unacceptable
    return value.text if type(value) is WrittenFloat else str(value)


def _optional_text(value: Any) -> str | None:
    if value is not None and (type(value) is not str or not value):
        raise Unacceptable
    return value


def _list(value: Any) -> Seq:
    if type(value) is not Seq:
        raise Unacceptable
    return value


_ABSENT: Final[Any] = object()
_NO_BLOCKS: Final = Seq()
_NO_SETTINGS: Final[tuple[str, ...]] = ()
_NO_OFFLOAD: Final = Offload("none", None)
