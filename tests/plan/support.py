"""Small search spaces, in folders and in scratch repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.changelog.rules import check
from matrix.plan.claims import Options
from matrix.plan.plan import plan_change
from matrix.workspace import open_workspace
from tests.changelog.support import BASE, HISTORY, PR, Repository, entry, log

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.findings import Finding
    from matrix.plan.plan import Plan
    from matrix.workspace import Workspace

RUNNERS: Final = """\
labels:
  h100: [h100-a_00]
  cluster:mi355x-a: [mi355x-a_00, mi355x-a_01]
hardware:
  cluster:mi355x-a: {available-cpu-dram-mib: 3_000_000, gpus-per-node: 8}
"""
OLD: Final = ("omega", "sigma")
"""The configs that the history of the test log names."""


def single(key: str, fixed: str = "[4, 16, 64]", agentic: str = "", image: str = "i:1") -> str:
    """A single-node config; each argument is a conc-list, empty for no such scenario."""
    text = (
        f"{key}:\n  image: {image}\n  model: org/{key}\n  model-prefix: {key}\n  precision: fp8\n  framework: sglang\n"
    )
    text += "  runner: cluster:mi355x-a\n  multinode: false\n  scenarios:\n"
    if fixed:
        text += "    fixed-seq-len:\n      - isl: 8192\n        osl: 1024\n        search-space:\n"
        text += f"          - {{tp: 8, conc-list: {fixed}}}\n"
    if agentic:
        text += "    agentic-coding:\n      - search-space:\n"
        text += f"          - {{tp: 8, kv-offloading: none, conc-list: {agentic}}}\n"
    return text


def multi(key: str, *entries: tuple[int, str, str], recipe: str = "") -> str:
    """A disaggregated config; an entry is prefill ep, conc-list and the selector of its recipe."""
    text = f"{key}:\n  image: i:1\n  model: org/{key}\n  model-prefix: {key}\n  precision: fp8\n"
    text += "  framework: sglang-disagg\n"
    text += "  runner: cluster:mi355x-a\n  multinode: true\n  disagg: true\n  kv-p2p-transfer: mori\n  scenarios:\n"
    text += "    fixed-seq-len:\n      - isl: 8192\n        osl: 1024\n        search-space:\n"
    for ep, concs, selector in entries:
        settings = f', additional-settings: ["CONFIG_FILE=recipes/{recipe}:{selector}"]' if recipe else ""
        text += f"          - conc-list: {concs}\n"
        text += f"            prefill: {{num-worker: 1, tp: 8, ep: {ep}, dp-attn: false{settings}}}\n"
        text += "            decode: {num-worker: 1, tp: 8, ep: 1, dp-attn: false}\n"
    return text


RECIPE: Final = """\
schema: 2
base:
  name: r
  engine: sglang
  model: {path: m, container: "i:1", precision: fp8}
  resources: {gpu_type: mi355x}
  roles:
    prefill: {workers: 1, nodes: 1, gpus: 8, args: {tensor-parallel-size: 8, disaggregation-transfer-backend: mori}}
    decode: {workers: 1, nodes: 1, gpus: 8, args: {tensor-parallel-size: 8, disaggregation-transfer-backend: mori}}
override_a: {benchmark: {env: {STEP: "4"}}}
override_b: {benchmark: {env: {STEP: "8"}}, roles: {prefill: {args: {expert-parallel-size: 8}}}}
"""


def files(masters: str, recipe: str = RECIPE, **more: str) -> dict[str, str]:
    """The files of a search space, by path."""
    return {
        "configs/amd-master.yaml": masters + "".join(single(key) for key in OLD),
        "configs/runners.yaml": RUNNERS,
        "configs/recipes/r.yaml": recipe,
        **more,
    }


def workspace(folder: Path, masters: str, **more: str) -> Workspace:
    """A search space in a folder."""
    for name, text in files(masters, **more).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return open_workspace(str(folder))


def commit(scratch: Repository, masters: str, changes: bytes = BASE, **more: str) -> str:
    """A search space and a log, committed."""
    for name, text in files(masters, **more).items():
        scratch.write(text.encode(), name)
    return scratch.commit(changes)


def added(*entries: str) -> bytes:
    """The log with some entries more."""
    return log(*HISTORY, *entries)


def planned(
    head: Workspace, *entries: str, base: Workspace | None = None, **options: Any
) -> tuple[Plan, tuple[Finding, ...]]:
    """The plan of a change that adds these entries; the base differs in nothing when none is given."""
    findings, verdict = check(BASE, added(*entries), PR)
    assert not findings
    return plan_change(verdict, head, base or head, Options(**options))


def ids(plan: Plan) -> list[str]:
    """The points, shortened: the key's first letter is told by the test."""
    return [point.id.replace("--8k1k--tp8--", " ").replace("--agentic--tp8--", " agentic ") for point in plan.points]


def extra(**fields: Any) -> str:
    """Fields of an entry as text."""
    return "".join(f"  {name.replace('_', '-')}: {value}\n" for name, value in fields.items())


def of(key: str, **fields: Any) -> str:
    """An entry for a key, with some fields more."""
    return entry(key, extra=extra(**fields))
