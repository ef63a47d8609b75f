"""Small search spaces, and what becomes of them: files are written, opened and expanded as a command does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from matrix.cli.expand import expand as command
from matrix.cli.expand import request_of
from matrix.findings import Severity
from matrix.points.pipeline import expand
from matrix.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matrix.findings import Finding
    from matrix.points.pipeline import Expansion
    from matrix.points.point import Point
    from matrix.points.request import Request
    from matrix.workspace import Workspace

__all__ = [
    "FLEET", "WORKER", "config", "dram", "errors", "expanded", "ids", "listed", "opened", "recipe", "request", "roles",
    "rows", "rules", "sized", "tails", "warnings",
]  # fmt: skip

FLEET: Final = """\
labels:
  mi355x: [mi355x-a_00, mi355x-a_01, mi355x-b_00]
  cluster:mi355x-a: [mi355x-a_00, mi355x-a_01]
  cluster:mi355x-b: [mi355x-b_00]
  cluster:gb-n: [gb-n_00]
  cluster:mixed-8: [mixed-8_00]
  cluster:mixed-4: [mixed-4_00]
  cluster:big: [big_00]
  cluster:bare: [bare_00]
clusters:
  mi355x-a: {gpus-per-node: 8, available-cpu-dram-mib: 1471356}
  mi355x-b: {gpus-per-node: 8, available-cpu-dram-mib: 1471356}
  gb-n: {gpus-per-node: 4, available-cpu-dram-mib: 860160}
  mixed-8: {gpus-per-node: 8}
  mixed-4: {gpus-per-node: 4}
  big: {gpus-per-node: 8, available-cpu-dram-mib: 3977095}
  bare: {gpus-per-node: 8}
"""
_SCRATCH: Final = TemporaryDirectory()  # one for all: removing a folder each time is most of what a test would take
WORKER: Final = "{tp: 8, ep: 1, dp-attn: false}"


def config(
    *,
    key: str = "k",
    fixed: Sequence[str] = (),
    agentic: Sequence[str] = (),
    block: str = "isl: 8192, osl: 1024",
    utilization: str = "",
    runner: str = "cluster:mi355x-a",
    multinode: bool = False,
    disagg: bool = False,
    prefix: str = "m",
    framework: str = "sglang",
    model: str = "org/M",
) -> str:
    """One master config; entries come as YAML without their braces."""
    kinds = []
    if fixed:
        kinds.append(f"fixed-seq-len: [{{{block}, search-space: [{_braced(fixed)}]}}]")
    if agentic:
        share = f"dram-utilization: {utilization}, " if utilization else ""
        kinds.append(f"agentic-coding: [{{{share}search-space: [{_braced(agentic)}]}}]")
    transfer = ", disagg: true, kv-p2p-transfer: nixl" if disagg else ""
    flags = f"multinode: {str(multinode or disagg).lower()}{transfer}"
    return (
        f"{key}:\n  {{image: 'i:1', model: {model}, model-prefix: {prefix}, precision: fp8, framework: {framework},"
        f" runner: '{runner}', {flags}, scenarios: {{\n    {', '.join(kinds)}}}}}\n"
    )


def _braced(entries: Sequence[str]) -> str:
    return "".join(f"\n      {{{entry}}}," for entry in entries)


def roles(prefill: str = "", decode: str = "", *, counts: tuple[int, int] = (1, 1)) -> str:
    """Prefill and decode workers of tp 8, with changes; a later key wins, as in `sized`."""
    return f"prefill: {sized(prefill, counts[0])}, decode: {sized(decode, counts[1])}"


def sized(changes: str = "", count: int | None = None) -> str:
    """A worker of tp 8 with changes, such as ``tp: 4, ep: 4``."""
    fields: dict[str, str] = {"tp": "8", "ep": "1", "dp-attn": "false"}
    if count is not None:
        fields = {"num-worker": str(count)} | fields
    depth, start = 0, 0
    for at, char in enumerate(f"{changes},"):
        depth += (char in "[{") - (char in "]}")
        if char == "," and not depth and changes[start:at].strip():
            name, _, value = changes[start:at].partition(":")
            fields[name.strip()] = value.strip()
            start = at + 1
    return "{" + ", ".join(f"{name}: {value}" for name, value in fields.items()) + "}"


def recipe(reference: str) -> str:
    """The setting of a role that names its recipe."""
    return f"additional-settings: ['CONFIG_FILE=recipes/{reference}']"


def dram(backend: str) -> str:
    """Offloading to host memory."""
    return f"kv-offloading: dram, kv-offload-backend: {{name: '{backend}'}}"


def request(flags: Iterable[str]) -> Request:
    """The request that a command line makes."""
    context = command.make_context("expand", list(flags))
    files = ("masters", "runners", "recipes", "golden", "style", "allow_empty")
    return request_of({name: value for name, value in context.params.items() if name not in files})


def opened(*texts: str, fleet: str = FLEET, recipes: Mapping[str, str] | None = None) -> Workspace:
    """A workspace of master files; ``recipes`` are texts by path, there until the next workspace is opened."""
    root = Path(_SCRATCH.name)
    shutil.rmtree(root / "recipes", ignore_errors=True)
    names = []
    for number, text in enumerate(texts):
        names.append(str(root / f"m{number}.yaml"))
        Path(names[-1]).write_text(text, encoding="utf-8")
    (root / "runners.yaml").write_text(fleet, encoding="utf-8")
    for name, text in (recipes or {}).items():
        file = root / "recipes" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    roots = [str(root / "recipes")] if recipes is not None else []
    return open_workspace(str(root), masters=names, runners=str(root / "runners.yaml"), recipes=roots)


def expanded(
    *texts: str, flags: Iterable[str] = (), fleet: str = FLEET, recipes: Mapping[str, str] | None = None
) -> Expansion:
    """What a command line selects from master files, all of it made."""
    workspace = opened(*texts, fleet=fleet, recipes=recipes)
    expansion = expand(workspace.configs, workspace.facts, workspace.policy, request(flags))
    return expansion._replace(points=list(expansion.points))


def listed(expansion: Expansion) -> list[Point]:
    """The points; nothing was refused."""
    assert not errors(expansion), errors(expansion)
    return list(expansion.points)


def ids(*texts: str, flags: Iterable[str] = (), recipes: Mapping[str, str] | None = None) -> list[str]:
    """The ids of what is selected."""
    return [point.id for point in listed(expanded(*texts, flags=flags, recipes=recipes))]


def tails(*texts: str, flags: Iterable[str] = (), recipes: Mapping[str, str] | None = None) -> list[str]:
    """The ids without config key and scenario."""
    return [name.split("--", 2)[2] for name in ids(*texts, flags=flags, recipes=recipes)]


def rows(
    *texts: str, flags: Iterable[str] = (), fleet: str = FLEET, recipes: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The rows of what is selected, as JSON has them."""
    points = listed(expanded(*texts, flags=flags, fleet=fleet, recipes=recipes))
    return [json.loads(point.row_json()) for point in points]


def errors(expansion: Expansion) -> list[Finding]:
    """What refuses the input."""
    return [finding for finding in expansion.findings if finding.severity is Severity.ERROR]


def warnings(expansion: Expansion) -> list[Finding]:
    """What is only told."""
    return [finding for finding in expansion.findings if finding.severity is Severity.WARNING]


def rules(expansion: Expansion) -> list[str]:
    """The rules of all findings."""
    return [finding.rule for finding in expansion.findings]
