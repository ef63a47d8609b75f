"""The fast accept: a correct master document becomes typed values in one pass.

The constructors raise `Unacceptable` at the first value they cannot take and explain nothing:
`matrix.config.schema.explain` then says everything that is wrong with the file. A property test holds the two to one
verdict.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from matrix.config.model import (
    MAX_CONCURRENCY,
    MAX_TOKENS,
    Aggregated,
    Config,
    Disaggregated,
    Entry,
    Offload,
    Scenario,
    ScenarioKind,
    SingleNode,
    Unacceptable,
    Worker,
    is_config_key,
)
from matrix.config.source import Map, Seq, WrittenFloat

if TYPE_CHECKING:
    from matrix.config.model import Sizes, Topology
    from matrix.config.source import Document

__all__ = ["configs_of"]


def configs_of(document: Document) -> tuple[Config, ...]:
    """The configs of one master document, in file order.

    Raises:
        Unacceptable: anything in the document is not as it must be.
    """
    root = document.root
    if type(root) is not Map:
        raise Unacceptable
    return tuple(_config(key, node, document) for key, node in root.items())


_CONFIG_KEYS: Final = frozenset(
    ("image", "model", "model-prefix", "precision", "framework", "runner", "multinode", "disagg", "router",
     "kv-p2p-transfer", "scenarios")
)  # fmt: skip
_FIXED_KEYS: Final = frozenset(("isl", "osl", "require-power", "search-space"))
_AGENTIC_KEYS: Final = frozenset(("dram-utilization", "search-space"))
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
_FIXED, _AGENTIC = ScenarioKind.FIXED, ScenarioKind.AGENTIC
_KINDS: Final = frozenset(("fixed-seq-len", "agentic-coding"))
_TEXT: Final = {str}
_SPEC_DECODING: Final = frozenset(("none", "mtp", "draft_model"))


def _config(key: str, node: Any, document: Document) -> Config:
    if type(node) is not Map or not _CONFIG_KEYS.issuperset(node) or not is_config_key(key) or None in node.values():
        raise Unacceptable
    get = node.get
    multinode, disagg, scenarios = get("multinode"), get("disagg", False), get("scenarios")
    texts: tuple[Any, ...] = (
        get("image"), get("model"), get("model-prefix"), get("precision"), get("framework"), get("runner")
    )  # fmt: skip
    if not all(texts) or {*map(type, texts)} != _TEXT:
        raise Unacceptable
    image, model, model_prefix, precision, framework, runner = texts
    if (
        type(multinode) is not bool
        or type(disagg) is not bool
        or (disagg and not multinode)
        or type(scenarios) is not Map
        or not _KINDS.issuperset(scenarios)
    ):
        raise Unacceptable
    blocks: list[Scenario] = []
    for kind in (_FIXED, _AGENTIC):
        for block in _list(scenarios.get(kind, _NO_BLOCKS)):
            blocks.append(_scenario(block, kind, multinode, disagg))  # noqa: PERF401 - a comprehension costs a call
    if not blocks:
        raise Unacceptable
    if blocks[-1].kind is _AGENTIC and not runner.startswith("cluster:"):
        raise Unacceptable
    router, transfer = get("router"), get("kv-p2p-transfer")
    if router is not None or transfer is not None or disagg:
        _shared_parts(router, transfer, multinode, disagg, blocks)
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
    )


def _shared_parts(router: Any, transfer: Any, multinode: bool, disagg: bool, blocks: list[Scenario]) -> None:
    """What a config says for its entries, they do not say themselves."""
    _component(router)
    _optional_text(transfer)
    entries = [entry for block in blocks for entry in block.entries]
    if router is not None and any(entry.router is not None for entry in entries):
        raise Unacceptable
    if transfer is not None and (not multinode or any(entry.kv_p2p_transfer is not None for entry in entries)):
        raise Unacceptable
    if disagg and transfer is None and any(entry.kv_p2p_transfer is None for entry in entries):
        raise Unacceptable


def _scenario(node: Any, kind: ScenarioKind, multinode: bool, disagg: bool) -> Scenario:
    if type(node) is not Map or None in node.values():
        raise Unacceptable
    get = node.get
    space = _list(get("search-space"))
    isl = osl = 0
    power = False
    utilization: str | None = None
    if kind is _FIXED:
        if not _FIXED_KEYS.issuperset(node):
            raise Unacceptable
        isl, osl, power = _count(get("isl"), MAX_TOKENS), _count(get("osl"), MAX_TOKENS), get("require-power", False)
        if type(power) is not bool or (power and (isl, osl) != (8192, 1024)):
            raise Unacceptable
    else:
        if not _AGENTIC_KEYS.issuperset(node):
            raise Unacceptable
        if "dram-utilization" in node:
            utilization = _fraction(node["dram-utilization"])
    agentic = kind is _AGENTIC
    entries = tuple(_entry(entry, agentic, multinode, disagg) for entry in space)
    if utilization is None and any(entry.offload.mode == "dram" for entry in entries):
        raise Unacceptable
    return Scenario(kind, isl, osl, power, utilization, entries, node)


def _entry(node: Any, agentic: bool, multinode: bool, disagg: bool) -> Entry:
    if type(node) is not Map or None in node.values():
        raise Unacceptable
    get = node.get
    shape = "worker" if "worker" in node else "roles" if "prefill" in node or "decode" in node else "single"
    if not _ENTRY_KEYS[shape, agentic].issuperset(node) or (shape == "single") == multinode:
        raise Unacceptable
    topology: Topology
    if shape == "single":
        topology = SingleNode(_engine(node))
    elif shape == "worker":
        worker = _worker(get("worker"), 1)
        if disagg or not worker.replicas:
            raise Unacceptable
        topology = Aggregated(worker, _idle_copy(worker), _count(get("num-nodes")))
    else:
        prefill, decode = _worker(get("prefill"), None), _worker(get("decode"), None)
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
    concurrencies, bounds = _concurrency(get("conc-list"), get("conc-start"), get("conc-end"))
    offload = _offload(node, shape) if agentic else _NO_OFFLOAD
    router, transfer, recipe, waivers = get("router"), get("kv-p2p-transfer"), get("srt-recipe"), get("check-waivers")
    if router is not None or transfer is not None or recipe is not None or waivers is not None:
        _component(router)
        _optional_text(transfer)
        _optional_text(recipe)
        _waivers(waivers)
    return Entry(topology, concurrencies, bounds, spec, offload, router, transfer, recipe, node)


def _engine(node: Map) -> Worker:
    """The worker that a single-node entry is itself."""
    get = node.get
    return _sized(node, 1, get("ep", 1), get("dp-attn", False), None, None)


def _worker(node: Any, replicas: int | None) -> Worker:
    """A worker block. ``replicas`` holds where num-worker is left out; None where it may not be."""
    if type(node) is not Map or not _WORKER_KEYS.issuperset(node):
        raise Unacceptable
    get = node.get
    count = get("num-worker", replicas)
    if type(count) is not int or not 0 <= count <= MAX_CONCURRENCY:
        raise Unacceptable
    hardware, settings = get("hardware", _ABSENT), get("additional-settings")
    if settings is not None:
        settings = tuple(_list(settings))
        for setting in settings:
            if type(setting) is not str:
                raise Unacceptable
    if hardware is _ABSENT:
        hardware = None
    elif type(hardware) is not str or not hardware:
        raise Unacceptable
    return _sized(node, count, get("ep"), get("dp-attn"), hardware, settings)


def _sized(
    node: Map, replicas: int, ep: Any, dp_attn: Any, hardware: str | None, settings: tuple[str, ...] | None
) -> Worker:
    get = node.get
    try:
        sizes, gpus = _sizes(
            get("tp"), ep, dp_attn, get("pp", 1), get("dcp-size", 1), get("pcp-size", 1), get("attn-dp-size", _ABSENT)
        )
    except TypeError:  # a list or mapping, which cannot be looked up
        raise Unacceptable from None
    return Worker(replicas, sizes, gpus, hardware, settings, node)


# A search space repeats few shapes many times. Typed: true is no 1 here.
@lru_cache(maxsize=4096, typed=True)
def _sizes(tp: Any, ep: Any, dp_attn: Any, pp: Any, dcp: Any, pcp: Any, attn_dp: Any) -> tuple[Sizes, int]:
    """The sizes of a worker, and the GPUs of one replica."""
    for size in (tp, ep, pp, dcp, pcp):
        if type(size) is not int or not 0 < size <= MAX_CONCURRENCY:
            raise Unacceptable
    if type(dp_attn) is not bool or tp % dcp:
        raise Unacceptable
    if attn_dp is _ABSENT:
        attn_dp = None
    elif tp % _count(attn_dp) or (attn_dp > 1) is not dp_attn:
        raise Unacceptable
    return (tp, ep, dp_attn, pp, dcp, pcp, attn_dp), tp * pp * pcp


def _idle_copy(worker: Worker) -> Worker:
    """The decode side of an aggregated row: the same worker, none of it, without settings."""
    return Worker(0, worker.sizes, worker.gpus, worker.hardware, None, worker.node)


def _offload(node: Map, shape: str) -> Offload:
    mode, backend = node.get("kv-offloading", _ABSENT), _component(node.get("kv-offload-backend"), "any")
    if mode is _ABSENT:
        if shape == "single" or backend is not None:
            raise Unacceptable
        return _NO_OFFLOAD
    if mode not in ("none", "dram") or (backend is None) is (mode == "dram"):
        raise Unacceptable
    return Offload(mode, backend)


def _concurrency(members: Any, start: Any, end: Any) -> tuple[tuple[int, ...], tuple[int, int] | None]:
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
    for waiver in _list(node) if node is not None else ():
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
_NO_OFFLOAD: Final = Offload("none", None)
