"""The edits of a master config that bring in more than an entry: a scenario that a config lacks, or a whole config.

Both are made like the nearest thing that is there, with what the id says in its place. What an id does not say, as the
image of a config, stays as it is there, and the note names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.answers.anchors import noted
from matrix.answers.edit import Action, Edit
from matrix.answers.reshape import entry_like, flow
from matrix.config.model import ScenarioKind, SingleNode
from matrix.config.passage import opening, passage_at
from matrix.points.parts import lengths_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.config.source import Document, Map, Seq
    from matrix.points.parts import Parts
    from matrix.points.point import Deployment

__all__ = ["add_config", "add_scenario"]

_AGENTIC: Final = ScenarioKind.AGENTIC
_OFFLOADING: Final = ("kv-offloading", "kv-offload-backend")
_LEVELS: Final = {"block": 3, "kind": 4, "config": 6}
"""How deep a new thing is written in block style: down to the fields of an entry, whose values stay in one line."""


def add_scenario(nearest: Deployment, parts: Parts) -> Edit | None:
    """What gives a config the scenario of an id; ``nearest`` is one of its deployments, in another scenario.

    None where the id tells too little, or where the config cannot have such a scenario.
    """
    block = _block_like(nearest, parts)
    if block is None:
        return None
    document = nearest.config.document
    scenarios: Map = nearest.config.node["scenarios"]
    kind = _kind(parts).value
    if kind in scenarios:
        return _one_more(document, scenarios[kind], block)
    return _member(document, scenarios, kind, [block], _LEVELS["kind"])


def add_config(nearest: Deployment, parts: Parts) -> Edit | None:
    """A config with the key of an id, in the file of the nearest one and like it, with the one entry of the id."""
    block = _block_like(nearest, parts)
    if block is None:
        return None
    config = nearest.config
    node = {key: value for key, value in config.node.items() if key != "scenarios"}
    node["scenarios"] = {_kind(parts).value: [block]}
    edit = _member(config.document, config.document.root, parts.key, node, _LEVELS["config"])
    return edit._replace(note=f"image, model, runner and the rest are those of {config.key}")


def _kind(parts: Parts) -> ScenarioKind:
    return _AGENTIC if parts.scenario == "agentic" else ScenarioKind.FIXED


def _block_like(nearest: Deployment, parts: Parts) -> dict[str, Any] | None:
    """A scenario block with the entry of an id alone."""
    kind, old = _kind(parts), nearest.scenario
    lengths = lengths_of(parts.scenario)
    entry = entry_like(nearest, parts)
    if entry is None or (lengths is None and kind is not _AGENTIC):
        return None
    if lengths is not None:
        # Only agentic runs offload; an id that says so beside lengths is none that can be.
        if not parts.variant and entry.get("kv-offloading", "none") != "none":
            return None
        entry = {key: value for key, value in entry.items() if key not in _OFFLOADING}
        return {"isl": lengths[0], "osl": lengths[1], "search-space": [entry]}
    if not nearest.config.runner.startswith("cluster:"):
        return None
    if isinstance(nearest.entry.topology, SingleNode):
        entry.setdefault("kv-offloading", "none")
    block = {"search-space": [entry]}
    share = old.node.get("dram-utilization")
    return block if share is None else {"dram-utilization": share, **block}


# -- where it goes -----------------------------------------------------------------------------------------------------


def _one_more(document: Document, holder: Seq, value: Any) -> Edit:
    """A list with one more member."""
    last = passage_at(document, holder.marks[-1])
    if opening(last.whole, holder.mark) == "[":
        return noted(document, Edit(Action.WRITE, last.end_span, "", f", {flow(value)}"))
    dash = " " * last.before.rfind("-")
    text = "".join(f"{dash}{line}\n" for line in _lines([value], _LEVELS["block"] + 1))
    return noted(document, Edit(Action.ADD, last.span._replace(line=last.last_line, column=1), "", text))


def _member(document: Document, holder: Map, key: str, value: Any, levels: int) -> Edit:
    """A mapping with one more member."""
    place = list(holder.marks.values())[-1]
    last = passage_at(document, place[1])
    if opening(last.whole, holder.mark) == "{":
        return noted(document, Edit(Action.WRITE, last.end_span, "", f", {flow(key)}: {flow(value)}"))
    indent = " " * place[0].column
    text = "".join(f"{indent}{line}\n" for line in _lines({key: value}, levels + 1))
    return noted(document, Edit(Action.ADD, last.span._replace(line=last.last_line, column=1), "", text))


def _lines(value: Any, levels: int) -> Iterator[str]:
    """A mapping or a list as lines of YAML, in block style as many levels deep."""
    listed = isinstance(value, list)
    for name, member in enumerate(value) if listed else value.items():
        head = "- " if listed else f"{flow(name)}:"
        if levels <= 1 or not isinstance(member, dict | list) or not member:
            yield f"{head}{flow(member)}" if listed else f"{head} {flow(member)}"
            continue
        inner = list(_lines(member, levels - 1))
        if listed:
            yield f"{head}{inner[0]}"
            inner = inner[1:]
        else:
            yield head
        yield from (f"  {line}" for line in inner)
