"""What no schema can say of a runners file: how labels, clusters and runners belong together.

Schema and rules together refuse exactly what the constructors of `matrix.config.fleet` refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.config.fleet import CLUSTER_PREFIX
from matrix.config.place import joined
from matrix.config.source import Map, Seq
from matrix.findings import Related

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.config.place import Place
    from matrix.findings import Finding

__all__ = ["runners_faults"]


def runners_faults(root: Place) -> Iterator[Finding]:
    """Faults of a runners file."""
    node = root.value
    if not isinstance(node, Map) or "clusters" not in node:
        return
    if "hardware" in node:
        message = "stands beside clusters. Both say the same of the same clusters."
        fix = "keep clusters, remove hardware"
        yield root.at("hardware").fault("hardware-and-clusters", message, fix, title=True)
    if isinstance(node["clusters"], Map):
        clusters = root.at("clusters")
        for key in clusters.value:
            yield from _environment(clusters.at(key))
        if isinstance(node.get("labels"), Map):
            labels = root.at("labels")
            orphans = _clusters_without_label(clusters, labels)
            yield from _labels_without_cluster(clusters, labels, orphans)
            yield from _homeless(labels, tell_lost=not orphans)
            for name in orphans:
                message = f"has no label {CLUSTER_PREFIX}{name}. No config could name the cluster."
                fix = f"add {CLUSTER_PREFIX}{name} with its runners under labels"
                yield clusters.at(name).fault("cluster-label-missing", message, fix, title=True)


def _environment(cluster: Place) -> Iterator[Finding]:
    if isinstance(cluster.value, Map) and isinstance(cluster.value.get("env"), Map):
        env = cluster.at("env")
        for name, value in env.value.items():
            if isinstance(value, str) and "," in value:
                message = f"is {env.at(name).written}. Slurm ends a variable at a comma."
                yield env.at(name).fault("env-comma", message, "write it without a comma")


def _clusters_without_label(clusters: Place, labels: Place) -> list[str]:
    return [name for name in clusters.value if f"{CLUSTER_PREFIX}{name}" not in labels.value]


def _labels_without_cluster(clusters: Place, labels: Place, orphans: list[str]) -> Iterator[Finding]:
    """Cluster labels without a record. One that a misspelling keeps from its record is taken off the ``orphans``."""
    from difflib import get_close_matches

    for label in labels.value:
        name = label.removeprefix(CLUSTER_PREFIX)
        if name == label or name in clusters.value:
            continue
        fix = f"add {name} under clusters"
        related: tuple[Related, ...] = ()
        for near in get_close_matches(name, orphans, n=1, cutoff=0.8):
            orphans.remove(near)
            fix = f"did you mean {CLUSTER_PREFIX}{near}?"
            related = (Related(clusters.at(near).title_span, "a record without a label"),)
        message = "has no record under clusters. Node counts and memory budgets rest on it."
        yield labels.at(label).fault("cluster-record-missing", message, fix, title=True, related=related)


def _homeless(labels: Place, *, tell_lost: bool) -> Iterator[Finding]:
    """Runners in two clusters, and those in none unless their cluster's label is what is missing."""
    homes: dict[str, list[Place]] = {}
    for label in labels.value:
        if label.startswith(CLUSTER_PREFIX):
            for name, place in _members(labels.at(label)).items():
                homes.setdefault(name, []).append(place)
    for name, places in homes.items():
        if len(places) > 1:
            message = f"({name}) is in a second cluster. A runner stands on the hardware of one."
            related = (Related(places[0].span, "the first"),)
            yield places[1].fault("runner-in-two-clusters", message, "remove it from one of them", related=related)
    told: set[str] = set()
    for label in labels.value if tell_lost else ():
        members = _members(labels.at(label))
        lost = [name for name in members if name not in homes and name not in told]
        if lost:
            told.update(lost)
            message = f"holds {joined(lost)}, in no {CLUSTER_PREFIX} label. Nothing is known of the hardware."
            fix = f"add {'them' if lost[1:] else 'it'} to the label of the cluster"
            yield labels.at(label).fault("runner-without-cluster", message, fix, span=members[lost[0]].span)


def _members(label: Place) -> dict[str, Place]:
    """The runners of a label, each with its first place."""
    places: dict[str, Place] = {}
    for index, name in enumerate(label.value if isinstance(label.value, Seq) else ()):
        if isinstance(name, str) and name and name not in places:
            places[name] = label.at(index)
    return places
