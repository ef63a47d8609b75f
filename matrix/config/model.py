"""The master config as typed values: `Config` > `Scenario` > `Entry` > topology.

`matrix.config.accept` makes them. Every type keeps the mapping it came from (``node``), which knows the line and column
of each of its values.

Every command makes these classes and thousands of their objects, so none is a dataclass, which takes 0.7 ms to make, or
a named tuple, which takes 0.1 ms: they are plain classes with slots, never changed once made.

Rules and field names: InferenceX's generator contract (master config fields, worker blocks, search-space entries).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.config.source import Document, Map, Mark

__all__ = [
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
    "Sizes",
    "Topology",
    "Unacceptable",
    "Worker",
    "is_config_key",
    "progression",
]

MAX_CONCURRENCY: Final = 1_000_000
"""Clients at once; larger numbers are typing errors."""

MAX_TOKENS: Final = 100_000_000
"""Tokens of one input or output; a million-token context is real, a hundred times that is a typing error."""


class Unacceptable(Exception):  # noqa: N818 - a verdict between two modules, never seen by a user
    """The document is not a master config; ask `matrix.config.schema.explain` why."""


class ScenarioKind(StrEnum):
    """The two kinds of workload, by their key under ``scenarios``."""

    FIXED = "fixed-seq-len"
    AGENTIC = "agentic-coding"


Sizes = tuple[int, int, bool, int, int, int, int | None]
"""tp, ep, dp_attn, pp, dcp, pcp and attn_dp of a worker."""


class Worker:
    """Replicas of one engine: so many, each on tp x pp x pcp GPUs.

    ``gpus``: of one replica. ``sizes``: tp, ep, dp_attn, pp, dcp, pcp and attn_dp, which is what makes a replica.
    ``has_settings``: they are written, be it as an empty list.
    """

    __slots__ = ("gpus", "hardware", "has_settings", "node", "replicas", "settings", "sizes")

    def __init__(
        self, replicas: int, sizes: Sizes, gpus: int, hardware: str | None, settings: tuple[str, ...] | None, node: Map
    ) -> None:
        self.replicas: Final = replicas
        self.sizes: Final = sizes
        self.gpus: Final = gpus
        self.hardware: Final = hardware
        self.has_settings: Final = settings is not None
        self.settings: Final = settings or ()
        self.node: Final = node

    @property
    def tp(self) -> int:
        """GPUs that share a layer."""
        return self.sizes[0]

    @property
    def ep(self) -> int:
        """GPUs that share the experts."""
        return self.sizes[1]

    @property
    def dp_attn(self) -> bool:
        """Whether attention is data parallel."""
        return self.sizes[2]

    @property
    def pp(self) -> int:
        """Pipeline stages."""
        return self.sizes[3]

    @property
    def dcp(self) -> int:
        """Decode context parallel size."""
        return self.sizes[4]

    @property
    def pcp(self) -> int:
        """Prefill context parallel size."""
        return self.sizes[5]

    @property
    def attn_dp(self) -> int | None:
        """Data parallel size of the attention, where it is stated."""
        return self.sizes[6]


class SingleNode:
    """One engine on one node. ``workers``: what every topology has, its workers in the order of a row."""

    __slots__ = ("worker", "workers")
    __match_args__ = ("worker",)

    def __init__(self, worker: Worker) -> None:
        self.worker: Final = worker
        self.workers: Final = (worker,)


class Aggregated:
    """Replicas that prefill and decode, on ``num_nodes`` nodes.

    ``decode`` is the row's second worker, with 0 replicas. Written as ``worker`` + ``num-nodes``, or in the older shape
    as ``prefill`` and ``decode`` with ``decode.num-worker: 0``; then ``num_nodes`` is None.
    """

    __slots__ = ("decode", "num_nodes", "worker", "workers")
    __match_args__ = ("worker", "decode", "num_nodes")

    def __init__(self, worker: Worker, decode: Worker, num_nodes: int | None) -> None:
        self.worker: Final = worker
        self.decode: Final = decode
        self.num_nodes: Final = num_nodes
        self.workers: Final = (worker, decode)


class Disaggregated:
    """Prefill and decode on replicas of their own."""

    __slots__ = ("decode", "prefill", "workers")
    __match_args__ = ("prefill", "decode")

    def __init__(self, prefill: Worker, decode: Worker) -> None:
        self.prefill: Final = prefill
        self.decode: Final = decode
        self.workers: Final = (prefill, decode)


Topology = SingleNode | Aggregated | Disaggregated


class Offload:
    """Where KV blocks go that no GPU keeps: ``mode`` is ``none`` or ``dram``; ``backend`` names who moves them."""

    __slots__ = ("backend", "mode")

    def __init__(self, mode: str, backend: Map | None) -> None:
        self.mode: Final = mode
        self.backend: Final = backend


class Entry:
    """One search-space entry: a topology and the concurrencies to run it at."""

    __slots__ = (
        "bounds", "concurrencies", "kv_p2p_transfer", "node", "offload", "router", "spec_decoding", "srt_recipe",
        "topology",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913, PLR0917 - a record
        self,
        topology: Topology,
        concurrencies: tuple[int, ...],
        bounds: tuple[int, int] | None,
        spec_decoding: str,
        offload: Offload,
        router: Map | None,
        kv_p2p_transfer: str | None,
        srt_recipe: str | None,
        node: Map,
    ) -> None:
        self.topology: Final = topology
        self.concurrencies: Final = concurrencies
        self.bounds: Final = bounds
        self.spec_decoding: Final = spec_decoding
        self.offload: Final = offload
        self.router: Final = router
        self.kv_p2p_transfer: Final = kv_p2p_transfer
        self.srt_recipe: Final = srt_recipe
        self.node: Final = node

    def ladder(self, step: int) -> Sequence[int]:
        """The concurrencies in order; a range is climbed by factors of ``step`` and closed by its end."""
        return self.concurrencies if self.bounds is None else progression(*self.bounds, step)


class Scenario:
    """A block of search-space entries under one workload. ``isl`` and ``osl`` are tokens, 0 for agentic."""

    __slots__ = ("dram_utilization", "entries", "isl", "kind", "node", "osl", "require_power")

    def __init__(
        self,
        kind: ScenarioKind,
        isl: int,
        osl: int,
        require_power: bool,
        dram_utilization: str | None,
        entries: tuple[Entry, ...],
        node: Map,
    ) -> None:
        self.kind: Final = kind
        self.isl: Final = isl
        self.osl: Final = osl
        self.require_power: Final = require_power
        self.dram_utilization: Final = dram_utilization
        self.entries: Final = entries
        self.node: Final = node


class Config:
    """One master config: what is served, on which runner, and the space to search. ``scenarios``: fixed ones first."""

    __slots__ = (
        "disagg", "document", "framework", "image", "key", "kv_p2p_transfer", "model", "model_prefix",
        "multinode", "node", "precision", "router", "runner", "scenarios",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913, PLR0917 - a record
        self,
        key: str,
        image: str,
        model: str,
        model_prefix: str,
        precision: str,
        framework: str,
        runner: str,
        multinode: bool,
        disagg: bool,
        router: Map | None,
        kv_p2p_transfer: str | None,
        scenarios: tuple[Scenario, ...],
        node: Map,
        document: Document,
    ) -> None:
        self.key: Final = key
        self.image: Final = image
        self.model: Final = model
        self.model_prefix: Final = model_prefix
        self.precision: Final = precision
        self.framework: Final = framework
        self.runner: Final = runner
        self.multinode: Final = multinode
        self.disagg: Final = disagg
        self.router: Final = router
        self.kv_p2p_transfer: Final = kv_p2p_transfer
        self.scenarios: Final = scenarios
        self.node: Final = node
        self.document: Final = document

    @property
    def mark(self) -> Mark:
        """Where its key stands."""
        mark: Mark = self.document.root.marks[self.key][0]
        return mark


def is_config_key(text: str) -> bool:
    """Whether a text can be a config key: inert in shells, file names and workflow expressions.

    ``--`` separates the parts of a point id, so a key has none.

    >>> is_config_key("dsv4-fp4_v1.5"), is_config_key("a--b"), is_config_key("a b")
    (True, False, False)
    """
    bare = text.replace("-", "").replace(".", "").replace("_", "")
    return bare.isascii() and bare.isalnum() and "--" not in text


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
