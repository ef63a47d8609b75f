"""The master config as typed values: `Config` > `Scenario` > `Entry` > topology.

`matrix.config.accept` makes them. Every type keeps the mapping it came from (``node``), which knows the line and column
of each of its values.

The types are named tuples rather than frozen dataclasses: making such a class costs a twentieth, and every command
makes them all.

Rules and field names: InferenceX's generator contract (master config fields, worker blocks, search-space entries).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

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
