"""Documents to test with. In an input, ``§`` stands before each place that a finding has to name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.config.schema import Kind, explain
from matrix.config.source import Document, loads

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD: Final = "image: i:1, model: org/M, model-prefix: m, precision: fp8, framework: sglang"
SINGLE: Final = "runner: x, multinode: false"
MULTI: Final = "runner: x, multinode: true"
DISAGG: Final = "runner: cluster:x-a, multinode: true, disagg: true, kv-p2p-transfer: nixl"
CONC: Final = "conc-list: [1]"
WORKER: Final = "worker: {tp: 8, ep: 1, dp-attn: false}, num-nodes: 1"
ROLES: Final = (
    "prefill: {num-worker: 1, tp: 8, ep: 1, dp-attn: false}, decode: {num-worker: 1, tp: 8, ep: 1, dp-attn: false}"
)
AGGREGATED: Final = ROLES.replace("decode: {num-worker: 1", "decode: {num-worker: 0")
EMPTY: Final = "fixed-seq-len: [{isl: 1, osl: 1, search-space: []}]"


def config(scenarios: str, flags: str = SINGLE, key: str = "k") -> str:
    """A master file with one config."""
    return f"{key}: {{{HEAD}, {flags}, scenarios: {{\n  {scenarios}\n}}}}\n"


def fixed(*entries: str, flags: str = SINGLE, block: str = "isl: 8192, osl: 1024") -> str:
    """A config with one fixed-length block. An entry comes without its braces, unless its place is marked."""
    return config(f"fixed-seq-len: [{{{block}, search-space: [\n    {_lines(entries)}]}}]", flags)


def agentic(*entries: str, flags: str = "runner: cluster:x-a, multinode: false", block: str = "") -> str:
    """A config with one agentic block."""
    return config(f"agentic-coding: [{{{block}search-space: [\n    {_lines(entries)}]}}]", flags)


def keyed(key: str) -> str:
    """A config under another key, which is marked."""
    return fixed(f"tp: 8, {CONC}").replace("k:", f"§{key}:", 1)


def _lines(entries: tuple[str, ...]) -> str:
    return ",\n    ".join(entry if entry.startswith("§{") else f"{{{entry}}}" for entry in entries)


def document(text: str) -> Document:
    """An input, parsed without its marks."""
    return loads(text.replace("§", "").encode(), "m.yaml")


def wanted(rules: str, text: str) -> list[tuple[str, str]]:
    """Each marked place with its rule. ``rules`` are separated by blanks; the last one holds for all further marks."""
    names = rules.split()
    marks = places(text)
    assert len(names) <= len(marks), "more rules than marks"
    names += names[-1:] * (len(marks) - len(names))
    return list(zip(marks, names, strict=True))


def told(text: str, kind: Kind) -> list[tuple[str, str]]:
    """Place and rule of each finding."""
    found = []
    for finding in explain(document(text), kind):
        assert finding.span is not None
        found.append((f"{finding.span.line}:{finding.span.column}", finding.rule))
    return found


def places(text: str) -> list[str]:
    """``line:column`` of each mark."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        column = 1
        for piece in line.split("§")[:-1]:
            column += len(piece)
            found.append(f"{number}:{column}")
    return found


def wording(tables: Mapping[str, Mapping[str, tuple[str, str]]], kinds: Mapping[str, Kind]) -> str:
    """What is said of every input of some tables, as one text."""
    lines = []
    for title, table in tables.items():
        for name, (_, text) in table.items():
            lines += [f"## {title}: {name}", *map(str, explain(document(text), kinds[title])), ""]
    return "\n".join(lines)
