"""Labels, runners and hardware facts, from either shape of the file."""

from __future__ import annotations

from typing import Final

import pytest

from matrix.config.fleet import Fleet, Hardware, fleet_of
from tests.config.support import document

LABELS: Final = """
labels:
  h200: [a_0, b_0, a_1]
  cluster:h200-a: [a_0, a_1]
  cluster:h200-b: [b_0]
  cluster:x-a: [x_0]
  cluster:x-b: [x_1]
"""
CLUSTERS: Final = """
clusters:
  h200-a: {gpus-per-node: 8, available-cpu-dram-mib: 1_471_356}
  h200-b: {gpus-per-node: 8}
  x-a: {gpus-per-node: 4}
  x-b: {gpus-per-node: 8}
"""
HARDWARE: Final = """
hardware:
  cluster:h200-a: {gpus-per-node: 8, available-cpu-dram-mib: 1_471_356}
  cluster:h200-b: {gpus-per-node: 8}
  cluster:x-a: {gpus-per-node: 4}
  cluster:x-b: {gpus-per-node: 8}
"""


@pytest.fixture(params=[CLUSTERS, HARDWARE], ids=["clusters", "hardware"])
def fleet(request: pytest.FixtureRequest) -> Fleet:
    return fleet_of(document(LABELS + request.param))


def test_runners_keep_their_order(fleet: Fleet) -> None:
    assert fleet.nodes("h200") == ("a_0", "b_0", "a_1")
    assert fleet.nodes("nothing") == ()


def test_facts_of_a_cluster(fleet: Fleet) -> None:
    assert fleet.hardware["cluster:h200-a"] == Hardware(8, 1_471_356)
    assert fleet.hardware["cluster:h200-b"] == Hardware(8, None)


FACTS: Final = {
    "cluster:h200-a": (8,),
    "cluster:x-a": (4,),
    "h200": (8,),
    "h200-multinode": (8,),
    "cluster:h200-new": (8,),
    "x": (4, 8),
    "a_0": (),
    "zz": (),
}


@pytest.mark.parametrize("label", FACTS)
def test_gpus_of_a_label_are_its_record_s_or_its_family_s(fleet: Fleet, label: str) -> None:
    assert fleet.gpus_per_node(label) == FACTS[label]


def test_only_clusters_claim_to_be_complete() -> None:
    assert fleet_of(document(LABELS + CLUSTERS)).complete
    assert not fleet_of(document(LABELS + HARDWARE)).complete
    assert fleet_of(document("labels: {x: [a]}\n")).hardware == {}


def test_a_record_without_a_fact() -> None:
    fleet = fleet_of(document("labels: {}\nhardware: {cluster:x-a: {available-cpu-dram-mib: 1}}\n"))
    assert fleet.hardware["cluster:x-a"] == Hardware(None, 1)
    assert fleet.gpus_per_node("cluster:x-a") == ()
