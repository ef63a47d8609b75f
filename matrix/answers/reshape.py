"""The edits of a master config that bring a point into the search space, or take one out of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from matrix.answers.anchors import noted
from matrix.answers.edit import Action, Edit
from matrix.config.model import MAX_CONCURRENCY, Aggregated, SingleNode
from matrix.config.passage import Passage, opening, passage_at
from matrix.config.source import WrittenFloat, plain
from matrix.points.parts import topology_fields
from matrix.points.row import CONFIG_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.config.source import Document, Map, Mark, Seq
    from matrix.findings import Span
    from matrix.points.parts import Parts
    from matrix.points.point import Deployment, Point

__all__ = ["add_concurrency", "add_entry", "entry_like", "flow", "place_of", "remove_point"]

_SIZES: Final = ("tp", "ep", "dp-attn", "pp", "dcp-size", "pcp-size", "attn-dp-size")
_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*\Z")
_INDEX: Final = re.compile(r"\.([0-9]+)\Z")


def place_of(deployment: Deployment) -> Span:
    """Where the entry begins."""
    return deployment.config.document.span(deployment.entry.node.mark)


# -- more --------------------------------------------------------------------------------------------------------------


def add_concurrency(deployment: Deployment, concs: Sequence[int], step: int) -> Edit | None:
    """What makes an entry run at further concurrencies; None where its range cannot be rewritten in one go.

    Several nodes with fixed lengths run the whole list in one job, so there the list becomes the asked one.
    """
    ladder = list(deployment.entry.ladder(step))
    whole = deployment.multinode and not deployment.agentic
    wanted = list(concs) if whole else _merged(ladder, concs)
    note = f"the job of {' '.join(map(str, ladder))} is then another one" if whole else ""
    edit = _rewritten(deployment, wanted, note)
    return edit and noted(deployment.config.document, edit)


def _merged(ladder: Sequence[int], concs: Sequence[int]) -> list[int]:
    merged = [*ladder, *(conc for conc in concs if conc not in ladder)]
    return sorted(merged) if sorted(ladder) == list(ladder) else merged


def _rewritten(deployment: Deployment, wanted: list[int], note: str) -> Edit | None:
    """The entry at other concurrencies."""
    entry, document = deployment.entry, deployment.config.document
    node, listed = entry.node, f"[{', '.join(map(str, wanted))}]"
    if entry.bounds is not None:
        both = _range(document, node)
        return both and Edit(Action.WRITE, both.span, both.text, f"conc-list: {listed}", note)
    passage = passage_at(document, node.marks["conc-list"][1]).bare
    if not passage.text.startswith("-"):
        return Edit(Action.WRITE, passage.span, passage.text, listed, note)
    members: Seq = node["conc-list"]
    gone = [index for index, conc in enumerate(members) if conc not in wanted]
    come = [conc for conc in wanted if conc not in members]
    if gone:
        line = passage_at(document, members.marks[gone[0]])
        return Edit(Action.REMOVE, line.span._replace(column=1), line.lines, "", note) if len(gone) == 1 else None
    before = max(0, *(index for index, conc in enumerate(members) if conc < min(come)), 0)
    line = passage_at(document, members.marks[before])
    return Edit(Action.ADD, line.span, "", "".join(f"{line.before}{conc}\n" for conc in come), note)


def _range(document: Document, node: Map) -> Passage | None:
    """``conc-start`` and ``conc-end`` with their values, where one follows the other."""
    first, second = sorted((node.marks["conc-start"], node.marks["conc-end"]), key=lambda marks: marks[0].index)
    start, end = passage_at(document, first[1]), passage_at(document, second[1])
    between = start.whole[start.end : second[0].index]
    return Passage(document.name, start.whole, first[0].index, end.end) if not between.strip(", \n") else None


def add_entry(nearest: Deployment, parts: Parts) -> Edit | None:
    """An entry like the nearest one, with what an id says in its place; None where the id tells too little for that."""
    node = entry_like(nearest, parts)
    if node is None:
        return None
    document, (holder, index) = nearest.config.document, _home(nearest)
    passage = passage_at(document, holder.marks[index])
    if opening(passage.whole, holder.mark) == "[":
        return noted(document, Edit(Action.WRITE, passage.end_span, "", f", {flow(node)}"))
    dash = passage.before.rfind("-")
    lines = [flow(node)] if passage.bare.text.startswith("{") else [f"{key}: {flow(node[key])}" for key in node]
    text = "".join(f"{' ' * dash}{'- ' if number == 0 else '  '}{line}\n" for number, line in enumerate(lines))
    return noted(document, Edit(Action.ADD, passage.span._replace(line=passage.last_line, column=1), "", text))


def entry_like(nearest: Deployment, parts: Parts) -> dict[str, Any] | None:
    """The fields of an entry like the nearest one, with what an id says in their place; see `add_entry`."""
    sizes = topology_fields(parts.topology)
    if not all(_is_size(name, text) for name, text in sizes.items()):
        return None
    topology = nearest.entry.topology
    old = {key: value for key, value in _copied(nearest.entry.node).items() if not key.startswith("conc-")}
    node: dict[str, Any] = {"conc-list": list(parts.concs), **old}
    if isinstance(topology, SingleNode):
        homes = {"": node}
    elif isinstance(topology, Aggregated):
        homes = {"worker.": node["worker"] if "worker" in node else node["prefill"]}
    else:
        homes = {"prefill.": node["prefill"], "decode.": node["decode"]}
    if {f"{role}tp" for role in homes} != {name for name in sizes if name.rpartition(".")[2] == "tp"}:
        return None
    for role, home in homes.items():
        for name in _SIZES if role == "" else ("num-worker", *_SIZES):
            _set(home, name, sizes[f"{role}{name}"])
    if not parts.variant:
        spec, offload = sizes["spec-decoding"], sizes["kv-offload"]
        if spec != "none" or "spec-decoding" in node:
            node["spec-decoding"] = spec
        if offload != "none":
            mode, _, backend = offload.partition(" ")
            node |= {"kv-offloading": mode, "kv-offload-backend": {"name": backend}}
        elif node.pop("kv-offload-backend", None) is not None:
            node["kv-offloading"] = "none"
    # Without a share of the node's memory an entry that fills it is refused.
    homeless = node.get("kv-offloading") == "dram" and nearest.scenario.dram_utilization is None
    return node if not homeless and _renamed(node, nearest, parts.variant) else None


def _is_size(name: str, text: str) -> bool:
    """Whether a master could say it; an aggregated job has no decode worker."""
    least = 0 if name == "decode.num-worker" else 1
    return not text.isdigit() or least <= int(text) <= MAX_CONCURRENCY


def _copied(node: Any) -> Any:
    """As `plain`, but floats keep their digits."""
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_copied(value) for value in node]
    return node


def _set(home: dict[str, Any], name: str, value: str) -> None:
    default = "false" if name == "dp-attn" else "1"
    if name not in home and value == default and name != "num-worker":
        return
    if name == "attn-dp-size" and value == default and home.get(name) != 1:
        home.pop(name, None)
        return
    home[name] = value == "true" if name == "dp-attn" else int(value)


def _renamed(node: dict[str, Any], nearest: Deployment, variant: str) -> bool:
    """Put the variant into whatever names the recipe; False where no recipe is named to have one."""
    if nearest.reference is None:
        return not variant
    file = nearest.reference.removesuffix(f":{nearest.selector}") if nearest.selector else nearest.reference
    selector = nearest.selector if variant == nearest.tail.removeprefix("--") else _INDEX.sub(r"[\1]", variant)
    reference = f"{file}:{selector}" if selector else file
    if node.get("srt-recipe") == nearest.reference:
        node["srt-recipe"] = reference
    for role in ("worker", "prefill", "decode"):
        settings = node.get(role, {}).get("additional-settings")
        if settings:
            named = f"{CONFIG_FILE}{nearest.reference}"
            node[role]["additional-settings"] = [
                f"{CONFIG_FILE}{reference}" if text == named else text for text in settings
            ]
    return True


def flow(value: Any) -> str:
    """A value as YAML in one line."""
    from json import dumps

    from matrix.config.scalars import meaning

    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {flow(member)}' for key, member in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, WrittenFloat):
        return value.text
    if isinstance(value, str) and _BARE.match(value) and isinstance(meaning(value), str):
        return value
    return dumps(plain(value), ensure_ascii=False)


# -- less --------------------------------------------------------------------------------------------------------------


def remove_point(point: Point, step: int) -> Edit:
    """What takes a point out of the search space: its concurrency, or the entry that would be empty without it."""
    deployment = point.deployment
    ladder = list(deployment.entry.ladder(step))
    rest = [conc for conc in ladder if conc not in point.concs]
    edit = _rewritten(deployment, rest, "") if rest else None
    if edit is None:
        note = f"takes concurrency {' '.join(map(str, rest))} with it" if rest else ""
        edit = _removed(deployment)._replace(note=note)
    return noted(deployment.config.document, edit)


def _removed(deployment: Deployment) -> Edit:
    """Without the entry, or without the smallest part around it that has something else beside it."""
    config, scenario = deployment.config, deployment.scenario
    document = config.document
    space, index = _home(deployment)
    if len(space) > 1:
        return _without(document, space, index)
    scenarios: Map = config.node["scenarios"]
    kind: str = scenario.kind.value
    blocks: Seq = scenarios[kind]
    if len(blocks) > 1:
        return _without(document, blocks, next(i for i, block in enumerate(blocks) if block is scenario.node))
    return _without(document, scenarios, kind) if len(scenarios) > 1 else _without(document, document.root, config.key)


def _home(deployment: Deployment) -> tuple[Seq, int]:
    """The list that holds the entry, and where in it."""
    space: Seq = deployment.scenario.node["search-space"]
    return space, next(index for index, node in enumerate(space) if node is deployment.entry.node)


def _without(document: Document, holder: Seq | Map, key: Any) -> Edit:
    starts: list[Mark] = [pair[0] for pair in holder.marks.values()] if isinstance(holder, dict) else holder.marks
    number = list(holder).index(key) if isinstance(holder, dict) else key
    value = passage_at(document, holder.marks[key][1] if isinstance(holder, dict) else holder.marks[key])
    whole = Passage(document.name, value.whole, starts[number].index, value.end)
    if opening(value.whole, holder.mark) not in "[{":
        return Edit(Action.REMOVE, whole.span._replace(column=1), whole.lines)
    if number + 1 < len(starts):
        whole = whole._replace(end=starts[number + 1].index)
    elif number:
        before = passage_at(document, starts[number - 1] if not isinstance(holder, dict) else starts[number])
        whole = whole._replace(start=before.end if not isinstance(holder, dict) else whole.start)
    return Edit(Action.WRITE, whole.span, whole.text)
