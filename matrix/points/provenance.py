"""Where each field of a row came from: the line that says it, or what it was computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from matrix.config.model import Aggregated, ScenarioKind, SingleNode
from matrix.findings import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from matrix.config.fleet import Fleet
    from matrix.config.source import Document, Map, Seq
    from matrix.points.point import Point
    from matrix.points.row import Frame

__all__ = ["Provenance", "Source", "concurrency_source", "sources"]


class Source(NamedTuple):
    """``spans``: the lines that say a value, the decisive one first; ``note``: how they make it, if not plainly."""

    spans: tuple[Span, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        places = ", ".join(map(str, self.spans))
        return f"{places} ({self.note})" if places and self.note else places or self.note


_DEFAULT = Source((), "default")
_CONFIG_FIELDS = ("image", "model", "model-prefix", "precision", "framework", "runner")
_NOTES = {
    "max-model-len": "isl + osl + 256",
    "duration": "an agentic run takes an hour",
    "exp-name": "model-prefix, topology, conc and offloading",
    **dict.fromkeys(
        ("run-eval", "eval-framework", "eval-suite", "eval-conc", "eval-all-concs", "eval-only"), "the eval policy"
    ),
    "id": "config key, scenario, topology, conc, variant",
    "name": "for people",
    "recipe-fingerprint": "sha256 of the row without conc and exp-name",
    "digest": "sha256 of the row, the resolved recipe, its golden value, patches and pin",
}
_SIZES = ("tp", "pp", "dcp-size", "pcp-size", "attn-dp-size", "ep", "dp-attn")


def sources(point: Point, fleet: Fleet) -> dict[str, Source]:
    """For every field of the point's row, where it came from; a nested one as ``prefill.tp``."""
    return Provenance(fleet).sources(point, point.row())


class Provenance:
    """The sources of many points: what the points of one scenario have in common is looked up once."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._shared: dict[Frame, dict[str, Source]] = {}

    def sources(self, point: Point, row: Mapping[str, Any]) -> dict[str, Source]:
        """For every field of a point's row, where it came from; a nested one as ``prefill.tp``."""
        found = self.of_frame(point.deployment.frame) | self.of_entry(point)
        named: dict[str, Source] = {}
        for name, value in row.items():
            if isinstance(value, dict):
                named |= {f"{name}.{member}": found[f"{name}.{member}"] for member in value}
            else:
                named[name] = found[name]
        return named

    def of_entry(self, point: Point) -> dict[str, Source]:
        """What its entry, its recipe and the hardware say of a point, also of fields that its row does not have."""
        deployment, fleet = point.deployment, self.fleet
        config, entry = deployment.config, deployment.entry
        document = config.document
        found = _topology(point)
        found |= _lines(document, entry.node, ("spec-decoding", "srt-recipe", "kv-offloading"))
        found["conc"] = concurrency_source(point)
        said = entry.node if "kv-p2p-transfer" in entry.node else config.node
        found |= _lines(document, said, ("kv-p2p-transfer",))
        for name, holder in (("router", config.node), ("kv-offload-backend", entry.node)):
            node: Map | None = entry.node.get(name) or holder.get(name)
            if node is not None:
                found |= _lines(document, node, node, f"{name}.")
        found["total-cpu-dram-gb"] = _budget(point, fleet)
        found["node-count"] = _nodes(point, fleet)
        found["recipe"] = _recipe(point)
        return found

    def of_frame(self, frame: Frame) -> dict[str, Source]:
        """What the config, its scenario and the formulas say of every point of theirs."""
        known = self._shared.get(frame)
        if known is not None:
            return known
        config, scenario, document = frame.config, frame.scenario, frame.config.document
        found = _lines(document, config.node, (*_CONFIG_FIELDS, "disagg"))
        if frame.on_node:
            label = found["runner"].spans
            found["runner"] = Source((*fleet_span(self.fleet, config.runner), *label), "a node of the label")
        found |= _lines(document, scenario.node, ("isl", "osl", "require-power"))
        found["scenario-type"] = Source((document.span(scenario.node.mark),))
        found["config-key"] = Source((document.span(config.mark),))
        found |= {name: Source((), note) for name, note in _NOTES.items()}
        self._shared[frame] = found
        return found


def fleet_span(fleet: Fleet, label: str) -> tuple[Span, ...]:
    """The line of a label's hardware record, or of the label itself."""
    root: Map = fleet.document.root
    clusters, hardware, labels = root.get("clusters", {}), root.get("hardware", {}), root["labels"]
    bare = label.removeprefix("cluster:")
    if label.startswith("cluster:") and bare in clusters:
        return (fleet.document.of_key(clusters, bare),)
    if label in hardware:
        return (fleet.document.of_key(hardware, label),)
    return (fleet.document.of_key(labels, label),) if label in labels else ()


def _lines(document: Document, node: Map, keys: Iterable[str], before: str = "") -> dict[str, Source]:
    """The places of the values of some keys of one mapping, by their names with something before them."""
    marks, own, file = node.marks, (node.mark, node.mark), document.name
    found = {}
    for key in keys:
        if key in node:
            mark = marks.get(key, own)[1]
            found[f"{before}{key}"] = Source((Span(file, mark.line + 1, mark.column + 1),))
        else:
            found[f"{before}{key}"] = _DEFAULT
    return found


def concurrency_source(point: Point) -> Source:
    """Where a point's concurrencies came from: of the points of one deployment all else is alike."""
    entry, document = point.deployment.entry, point.deployment.config.document
    node = entry.node
    if entry.bounds is not None:
        start, end = document.of_value(node, "conc-start"), document.of_value(node, "conc-end")
        return Source((start, end), "a step of this range")
    listed = node["conc-list"]
    return Source(tuple(document.of_value(listed, listed.index(conc)) for conc in point.concs if conc in listed))


def _topology(point: Point) -> dict[str, Source]:
    entry, document = point.deployment.entry, point.deployment.config.document
    topology, node = entry.topology, entry.node
    if isinstance(topology, SingleNode):
        return _lines(document, node, _SIZES)
    homes = ("worker", "worker") if "worker" in node else ("prefill", "decode")
    found: dict[str, Source] = {}
    for role, home in zip(("prefill", "decode"), homes, strict=True):
        members = dict.fromkeys((*node[home], "num-worker", "pp", "dcp-size", "pcp-size"))
        found |= _lines(document, node[home], members, f"{role}.")
    if "worker" in node:
        found["decode.num-worker"] = Source((document.of_key(node, "worker"),), "an aggregated job has none")
    return found


def _budget(point: Point, fleet: Fleet) -> Source:
    deployment = point.deployment
    entry, scenario, document = deployment.entry, deployment.scenario, deployment.config.document
    if scenario.kind is not ScenarioKind.AGENTIC:
        return Source()
    if entry.offload.mode != "dram":
        return Source((), "no offloading to DRAM")
    share = document.of_value(scenario.node, "dram-utilization")
    note = "node DRAM, at most 3 TB, x dram-utilization x GPUs used / GPUs per node"
    return Source((share, *fleet_span(fleet, deployment.config.runner)), note)


def _nodes(point: Point, fleet: Fleet) -> Source:
    deployment = point.deployment
    entry, document = deployment.entry, deployment.config.document
    if isinstance(entry.topology, Aggregated) and entry.topology.num_nodes is not None:
        return Source((document.of_value(entry.node, "num-nodes"),))
    if deployment.recipe is not None:
        return Source((deployment.recipe.home(),), "nodes of the resolved recipe")
    return Source(fleet_span(fleet, deployment.config.runner), "GPUs of the topology / GPUs per node")


def _recipe(point: Point) -> Source:
    return Source(tuple(_reference_spans(point)))


def _reference_spans(point: Point) -> Iterator[Span]:
    deployment = point.deployment
    document, node = deployment.config.document, deployment.entry.node
    wanted: Any = f"CONFIG_FILE={deployment.reference}"
    if "srt-recipe" in node:
        yield document.of_value(node, "srt-recipe")
    for role in ("worker", "prefill", "decode"):
        settings: Seq | None = node.get(role, {}).get("additional-settings")
        for index, setting in enumerate(settings or ()):
            if setting == wanted and settings is not None:
                yield document.of_value(settings, index)
    if deployment.recipe is not None:
        yield deployment.recipe.home()
