"""Eval selection, trim and smoke over plain rows, written from the description of InferenceX's generator alone.

It knows nothing of our code. With no switch on it makes InferenceX's rows, which the recorded runs prove; each switch
is one deliberate difference, and with all of them on it has to make ours. So whatever else differs shows.
"""

from __future__ import annotations

import re
from json import JSONEncoder
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["OURS", "THEIRS", "Row", "Switches", "bare", "fields", "marked", "only", "smoke", "trimmed"]

Row = dict[str, Any]

EVAL_FIELDS: Final = frozenset(("run-eval", "eval-only", "eval-conc", "eval-all-concs", "eval-framework", "eval-suite"))
NOT_OF_FAMILY: Final = EVAL_FIELDS | {"conc", "exp-name"}
VENDORS: Final = {
    "kimik3": ("kimi-vendor", "kimi_tool_call_schema_full"),
    "minimaxm3": ("minimax-vendor", "minimax_m3_full"),
}
GSM8K: Final = ("lm-eval", "")
LEAST: Final = 16


class Switches(NamedTuple):
    """The differences, by their number in docs/differences.md."""

    by_topology: bool = False  # 6
    by_recipe: bool = False  # 7
    no_collisions: bool = False  # 13
    own_survivors: bool = False  # 17


THEIRS: Final = Switches()
OURS: Final = Switches(*[True] * 4)


encode: Final = JSONEncoder(sort_keys=True, check_circular=False).encode


def fields(row: Row, without: Iterable[str] = ()) -> str:
    """A row as text, for comparison."""
    return encode({key: value for key, value in row.items() if key not in without} if without else row)


def bare(rows: Iterable[Row]) -> list[Row]:
    """The rows as they were before evals were marked."""
    found = []
    for row in rows:
        if not row.get("eval-only"):
            clean = {key: value for key, value in row.items() if key not in EVAL_FIELDS}
            found.append(clean if agentic(row) else clean | {"run-eval": False})
    return found


def agentic(row: Row) -> bool:
    return "isl" not in row


def multinode(row: Row) -> bool:
    return "prefill" in row


def concs(row: Row) -> list[int]:
    return list(row["conc"]) if multinode(row) else [row["conc"]]


def eligible(row: Row) -> bool:
    return agentic(row) or (row["isl"], row["osl"]) == (8192, 1024)


def family(row: Row, switches: Switches) -> str:
    text = fields(row, NOT_OF_FAMILY)
    return re.sub(r"(CONFIG_FILE=[^\":]+):[^\"]+", r"\1", text) if switches.by_recipe else text


def sizes(row: Row, names: tuple[str, ...]) -> Any:
    workers = (row["prefill"], row["decode"]) if multinode(row) else (row,)
    return tuple(tuple(worker.get(name) for name in names) for worker in workers)


SHAPE: Final = ("num-worker", "tp", "ep", "dp-attn", "pp", "dcp-size", "pcp-size", "attn-dp-size")


def evaluated(row: Row, suite: tuple[str, str], conc: int | None) -> Row:
    marks = {"run-eval": True, "eval-framework": suite[0], "eval-suite": suite[1]}
    return row | marks | ({} if conc is None else {"eval-conc": conc})


def marked(rows: list[Row], switches: Switches) -> list[Row]:
    """Each row with its mark, then the accuracy-only copies of rows that run a suite of their vendor."""
    picks = picked(rows, switches)
    found, copies = [], []
    for index, row in enumerate(rows):
        conc = picks.get(index) if multinode(row) else None
        vendor = VENDORS.get(row["model-prefix"]) if agentic(row) else None
        if vendor is not None:
            found.append(evaluated(row, vendor, max(concs(row)) if multinode(row) else None))
            if index in picks:
                copy = evaluated(row, GSM8K, conc) | {"eval-only": True}
                copy.pop("require-power", None)
                copies.append(copy)
        else:
            found.append(evaluated(row, GSM8K, conc) if index in picks else row | {"run-eval": False})
    return collided(found + copies, switches)


def picked(rows: list[Row], switches: Switches) -> dict[int, int]:
    """The rows of the GSM8K picks by index, each with the concurrency."""
    groups: dict[Any, list[int]] = {}
    for index, row in enumerate(rows):
        if eligible(row):
            groups.setdefault(group(row, switches), []).append(index)
    picks: dict[int, int] = {}
    for members in groups.values():
        row = rows[members[0]]
        least = 0 if agentic(row) and not multinode(row) else LEAST
        ladder = sorted({conc for index in members for conc in concs(rows[index]) if conc >= least})
        if not ladder:
            continue
        if multinode(row) or agentic(row):
            first = next(index for index in members if ladder[-1] in concs(rows[index]))
            picks[first] = ladder[-1]
        else:
            wanted = {ladder[-1], ladder[len(ladder) // 2]}
            picks |= {index: rows[index]["conc"] for index in members if rows[index]["conc"] in wanted}
    return picks | fallbacks(rows, picks, switches)


def group(row: Row, switches: Switches) -> Any:
    if multinode(row):
        return family(row, switches)
    names = ["model", "runner", "framework", "precision", "spec-decoding", "dp-attn", "attn-dp-size"]
    names += ["image", *(SHAPE if switches.by_topology else ())] if agentic(row) else ["isl", "osl"]
    return (agentic(row), *(row.get(name) for name in names))


def fallbacks(rows: list[Row], picks: dict[int, int], switches: Switches) -> dict[int, int]:
    """Agentic multi-node deployments without a pick: one at the highest concurrency they have."""
    homes: dict[Any, list[int]] = {}
    for index, row in enumerate(rows):
        if agentic(row) and multinode(row):
            where = tuple(row[name] for name in ("model", "runner", "framework", "precision"))
            homes.setdefault((where, sizes(row, SHAPE) if switches.by_topology else ()), []).append(index)
    found = {}
    for members in homes.values():
        if not picks.keys() & set(members):
            top = max(max(concs(rows[index])) for index in members)
            found[next(index for index in members if top in concs(rows[index]))] = top
    return found


def collided(rows: list[Row], switches: Switches) -> list[Row]:
    """Of two evals that look the same to the application only one is left, without offloading if possible."""
    if switches.no_collisions:
        return rows
    names = ("model", "model-prefix", "runner", "framework", "precision", "spec-decoding", "disagg", "isl", "osl")
    taken: set[Any] = set()
    left: dict[int, list[int]] = {}
    for index in sorted(range(len(rows)), key=lambda at: rows[at].get("kv-offloading", "none") != "none"):
        row = rows[index]
        if not row.get("run-eval"):
            continue
        shape = sizes(row, ("num-worker", "tp", "ep", "dp-attn"))
        seen = (*(row.get(name) for name in names), shape, row["eval-framework"], row["eval-suite"])
        own = [row["eval-conc"]] if "eval-conc" in row else concs(row)
        left[index] = [conc for conc in own if (seen, conc) not in taken]
        taken |= {(seen, conc) for conc in left[index]}
    found = []
    for index, row in enumerate(rows):
        if index in left and not left[index]:
            if not row.get("eval-only"):
                clean = {key: value for key, value in row.items() if key not in EVAL_FIELDS}
                found.append(clean | {"run-eval": False})
        else:
            found.append(row | {"conc": left[index]} if row.get("eval-all-concs") else row)
    return found


def only(rows: list[Row]) -> list[Row]:
    """The marked rows as accuracy runs."""
    keep = [row | {"eval-only": True} for row in rows if row.get("run-eval")]
    return [{key: value for key, value in row.items() if key != "require-power"} for row in keep]


def everything(rows: list[Row], switches: Switches) -> list[Row]:
    """An accuracy run of every eligible row."""
    found = []
    merged: dict[str, Row] = {}
    for row in filter(eligible, rows):
        vendor = VENDORS.get(row["model-prefix"]) if agentic(row) else None
        if vendor is not None:
            found.append(evaluated(row, vendor, max(concs(row)) if multinode(row) else None))
        if not multinode(row):
            found.append(evaluated(row, GSM8K, None))
            continue
        exact = family(row, switches._replace(by_recipe=False))
        home = merged.get(exact)
        if home is None:
            home = merged[exact] = evaluated(row, GSM8K, None)
            found.append(home)
        home["conc"] = sorted({*home["conc"], *row["conc"]})
        home |= {"eval-conc": home["conc"][-1]} if agentic(row) else {"eval-all-concs": True}
    if switches.own_survivors:
        found = only(found)
    return collided(found, switches)


def trimmed(rows: list[Row], switches: Switches) -> list[Row]:
    """Of each family the row with the lowest concurrency, evaluated if any member was."""
    families: dict[Any, list[int]] = {}
    for index, row in enumerate(rows):
        suite = (row["eval-framework"], row["eval-suite"]) if row.get("eval-only") else None
        families.setdefault((family(row, switches), suite), []).append(index)
    found = {}
    for members in families.values():
        lowest = min(members, key=lambda index: (min(concs(rows[index])), index))
        row, conc = dict(rows[lowest]), min(concs(rows[lowest]))
        if multinode(row):
            row["conc"] = [conc]
            row |= {"eval-conc": conc} if "eval-conc" in row else {}
        hits = [rows[index] for index in members if rows[index].get("run-eval")]
        if hits:
            row["run-eval"] = True
            row |= {"eval-conc": conc} if multinode(row) else {}
            row |= {"eval-all-concs": True} if any(hit.get("eval-all-concs") for hit in hits) else {}
            if switches.own_survivors:
                top = max(hits, key=lambda hit: hit.get("eval-conc", max(concs(hit))))
                row |= {name: top[name] for name in ("eval-framework", "eval-suite")}
        found[lowest] = row
    return [found[index] for index in sorted(found)]


def smoke(rows: list[Row], switches: Switches) -> list[Row]:
    """The lowest throughput row of each family, then the lowest accuracy run of each that has one."""
    runs = [row | {"run-eval": False} for row in rows if not (switches.own_survivors and row.get("eval-only"))]
    copies = only(rows)
    for row in copies:
        if multinode(row):
            row |= {"conc": [row["eval-conc"]], "eval-all-concs": False}
    return trimmed(runs, switches) + trimmed(copies, switches)


MODES: Final[dict[str, Callable[[list[Row], Switches], list[Row]]]] = {
    "no-evals": lambda rows, _: rows,
    "default": marked,
    "evals-only": lambda rows, switches: only(marked(rows, switches)),
    "all-evals": lambda rows, switches: only(everything(rows, switches)),
    "trim": lambda rows, switches: trimmed(marked(rows, switches), switches),
    "trim-evals-only": lambda rows, switches: only(trimmed(marked(rows, switches), switches)),
    "trim-all-evals": lambda rows, switches: only(trimmed(everything(rows, switches), switches)),
    "smoke": lambda rows, switches: smoke(marked(rows, switches), switches),
}
"""What the command line asks of the rows."""
