"""What is refused of a runners file, by example, and what stands close to it and is right."""

from __future__ import annotations

from typing import Final

import pytest

from matrix.config.fleet import fleet_of
from matrix.config.model import Unacceptable
from matrix.config.schema import Kind, explain
from tests.config.support import document, told, wanted

REFUSED: Final = {
    "no labels": ("missing-key", "§clusters: {}\n"),
    "labels in a list": ("wrong-type", "labels: §[a]\n"),
    "one runner": ("wrong-type", "labels: {x: §a}\n"),
    "no runner": ("empty-value", "labels: {x: §[]}\n"),
    "a number for a runner": ("wrong-type", "labels: {x: [a, §1]}\n"),
    "empty runner": ("empty-value", "labels: {x: [§'']}\n"),
    "unknown key": ("unknown-key", "labels: {x: [a]}\n§label: {}\n"),
    "text for a fact": ("wrong-type", "labels: {x: [a]}\nhardware: {cluster:x: {gpus-per-node: §'8'}}\n"),
    "no value for a fact": ("no-value", "labels: {x: [a]}\nhardware: {cluster:x: {gpus-per-node: §}}\n"),
    "no GPU": ("out-of-range", "labels: {x: [a]}\nhardware: {cluster:x: {gpus-per-node: §0}}\n"),
    "cluster facts in hardware": ("misplaced-key", "labels: {x: [a]}\nhardware: {cluster:x: {§arch: x86_64}}\n"),
    "cluster without GPUs": ("missing-key", "labels: {cluster:x: [a]}\nclusters: {§x: {}}\n"),
    "unknown arch": ("unknown-value", "labels: {cluster:x: [a]}\nclusters: {x: {gpus-per-node: 8, arch: §x86}}\n"),
    "unknown scheduler": (
        "unknown-value",
        "labels: {cluster:x: [a]}\nclusters: {x: {gpus-per-node: 8, scheduler: §pbs}}\n",
    ),
    "comma in env": (
        "env-comma",
        "labels: {cluster:x: [a]}\nclusters: {x: {gpus-per-node: 8, env: {A: '1', B: §'1,2'}}}\n",
    ),
    "both shapes": (
        "hardware-and-clusters",
        "labels: {cluster:x: [a]}\nclusters: {x: {gpus-per-node: 8}}\n§hardware: {}\n",
    ),
    "label without record": (
        "cluster-record-missing",
        "labels: {cluster:x: [a], §cluster:other: [b]}\nclusters: {x: {gpus-per-node: 8}}\n",
    ),
    "misspelled record": (
        "cluster-record-missing",
        "labels: {§cluster:mi355x-amd: [a]}\nclusters: {mi355x-amds: {gpus-per-node: 8}}\n",
    ),
    "record without label": (
        "cluster-label-missing",
        "labels: {cluster:x: [a], y: [b]}\nclusters: {x: {gpus-per-node: 8}, §y: {gpus-per-node: 8}}\n",
    ),
    "runner in two clusters": (
        "runner-in-two-clusters",
        "labels: {cluster:x: [a], cluster:y: [b, §a]}\nclusters: {x: {gpus-per-node: 8}, y: {gpus-per-node: 8}}\n",
    ),
    "runners in no cluster": (
        "runner-without-cluster runner-without-cluster",
        "labels: {cluster:x: [a], x: [a, §b, c, b], y: [c, §d]}\nclusters: {x: {gpus-per-node: 8}}\n",
    ),
    "a master config": ("wrong-file", "§k: {scenarios: {}}\n"),
    "labels at the top": ("wrong-file", "§mi355x: [a, b]\nmi300x: [c]\n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_each_fault_is_told_once_at_its_place(name: str) -> None:
    faults, text = REFUSED[name]
    assert told(text, Kind.RUNNERS) == wanted(faults, text)


ACCEPTED: Final = {
    "labels alone": "labels: {x: [a, b]}\n",
    "no label": "labels: {}\n",
    "a runner twice in a label": "labels: {x: [a, a]}\n",
    "hardware": "labels: {x: [a]}\nhardware: {cluster:x: {gpus-per-node: 8, available-cpu-dram-mib: 3_095_781}}\n",
    "hardware without facts": "labels: {x: [a]}\nhardware: {cluster:x: {}}\n",
    "clusters": """
labels: {x: [a], cluster:x: [a, b], cluster:y: [c]}
clusters: {x: {gpus-per-node: 8}, y: {gpus-per-node: 4, available-cpu-dram-mib: 1}}
""",
    "every fact": """
labels: {cluster:x: [a]}
clusters:
  x: {gpus-per-node: 8, arch: aarch64, scheduler: slurm, slurm: {partition: p}, env: {A: '1'}, models: {}, volumes: {}}
""",
    "a label called scenarios": "labels: {scenarios: [a]}\n",
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_close_to_it_is_right(name: str) -> None:
    file = document(ACCEPTED[name])
    assert explain(file, Kind.RUNNERS) == []
    assert fleet_of(file).labels == {label: tuple(nodes) for label, nodes in file.root["labels"].items()}


@pytest.mark.parametrize("name", REFUSED)
def test_the_fast_way_refuses_the_same(name: str) -> None:
    with pytest.raises(Unacceptable):
        fleet_of(document(REFUSED[name][1]))
