"""The runners file: which labels exist, which nodes carry them, and what hardware stands behind a label.

Both shapes are read: ``hardware:`` keyed by the ``cluster:`` label, and ``clusters:`` keyed by the cluster's id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.config.model import Unacceptable
from matrix.config.source import Map, Seq
from matrix.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matrix.config.source import Document

__all__ = ["CLUSTER_PREFIX", "Fleet", "Hardware", "fleet_of"]

CLUSTER_PREFIX: Final = "cluster:"


class Hardware(Record):
    """Facts of one cluster. ``cpu_dram_mib``: MiB that a job may use on a node, None where nobody measured it."""

    gpus_per_node: int | None
    cpu_dram_mib: int | None


class Fleet(Record):
    """Labels with their nodes in inventory order, and hardware by ``cluster:`` label.

    ``complete``: the file has a record for every cluster label (the ``clusters:`` shape), so that a fact it lacks is a
    fault; the ``hardware:`` shape holds what somebody needed.
    """

    labels: Mapping[str, tuple[str, ...]]
    hardware: Mapping[str, Hardware]
    complete: bool
    document: Document

    def nodes(self, label: str) -> tuple[str, ...]:
        """The nodes of a label; none for an unknown one."""
        return self.labels.get(label, ())

    def gpus_per_node(self, label: str) -> tuple[int, ...]:
        """What is known of a label's GPUs per node: one value, none, or several that disagree.

        An exact cluster record decides; otherwise all clusters of the label's GPU family are asked.
        """
        exact = self.hardware.get(label)
        if exact is not None and exact.gpus_per_node is not None:
            return (exact.gpus_per_node,)
        family = self.family(label)
        found = {
            hardware.gpus_per_node
            for name, hardware in self.hardware.items()
            if hardware.gpus_per_node is not None and self.family(name) == family
        }
        return tuple(sorted(found))

    @staticmethod
    def family(label: str) -> str:
        """The GPU family: the text before the first ``-``.

        >>> Fleet.family("cluster:mi355x-amds")
        'mi355x'
        """
        return label.removeprefix(CLUSTER_PREFIX).split("-", 1)[0]


def fleet_of(document: Document) -> Fleet:
    """The fleet of one runners document.

    Raises:
        Unacceptable: the document is not a runners file; ask `matrix.config.schema.explain` why.
    """
    root = document.root
    if (
        type(root) is not Map
        or not root.keys() <= {"labels", "hardware", "clusters"}
        or type(root.get("labels")) is not Map
    ):
        raise Unacceptable
    labels = {name: _nodes(nodes) for name, nodes in root["labels"].items()}
    if "clusters" in root:
        if "hardware" in root:
            raise Unacceptable
        clusters = _records(root["clusters"])
        hardware = {f"{CLUSTER_PREFIX}{name}": _hardware(record, _CLUSTER_KEYS) for name, record in clusters.items()}
        _cross_check(labels, hardware)
    else:
        hardware = {name: _hardware(record, _FACTS) for name, record in _records(root.get("hardware", _EMPTY)).items()}
    return Fleet(labels, hardware, "clusters" in root, document)


_FACTS: Final = frozenset(("gpus-per-node", "available-cpu-dram-mib"))
_CLUSTER_KEYS: Final = _FACTS | {"arch", "env", "models", "volumes", "scheduler", "slurm"}
_EMPTY: Final = Map()


def _nodes(nodes: Any) -> tuple[str, ...]:
    if type(nodes) is not Seq or not nodes or any(type(node) is not str or not node for node in nodes):
        raise Unacceptable
    return tuple(nodes)


def _records(value: Any) -> Map:
    if type(value) is not Map:
        raise Unacceptable
    return value


def _hardware(record: Any, keys: frozenset[str]) -> Hardware:
    if type(record) is not Map or not record.keys() <= keys or None in record.values():
        raise Unacceptable
    gpus, dram = record.get("gpus-per-node"), record.get("available-cpu-dram-mib")
    for fact in (gpus, dram):
        if fact is not None and (type(fact) is not int or fact <= 0):
            raise Unacceptable
    if keys is _CLUSTER_KEYS and (
        gpus is None
        or record.get("arch", "x86_64") not in ("x86_64", "aarch64")
        or record.get("scheduler", "slurm") != "slurm"
        or any(type(record.get(name, _EMPTY)) is not Map for name in ("env", "models", "volumes", "slurm"))
        or any(type(value) is str and "," in value for value in record.get("env", _EMPTY).values())
    ):
        raise Unacceptable
    return Hardware(gpus, dram)


def _cross_check(labels: dict[str, tuple[str, ...]], hardware: dict[str, Hardware]) -> None:
    """Every cluster label has a record and the reverse; every node is in exactly one cluster."""
    clusters = {name: nodes for name, nodes in labels.items() if name.startswith(CLUSTER_PREFIX)}
    if clusters.keys() != hardware.keys():
        raise Unacceptable
    homes: dict[str, int] = {}
    for nodes in clusters.values():
        for node in dict.fromkeys(nodes):
            homes[node] = homes.get(node, 0) + 1
    if any(homes.get(node) != 1 for nodes in labels.values() for node in nodes):
        raise Unacceptable
