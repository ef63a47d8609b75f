"""Where workers sit. What srtctl itself says of it: test_pin.py; here are the rules one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.config.source import loads
from matrix.recipes.layout import layout_of
from matrix.recipes.recipe import Recipe, Reference
from matrix.recipes.roles import ViewError, view_of

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.recipes.layout import Layout
    from tests.recipes.conftest import Make

HEAD: Final = "schema: 2\nengine: atom\nresources: {gpus_per_node: 8}\n"


def seats(layout: Layout) -> dict[str, tuple[int, tuple[int, ...]]]:
    return {seat.name: (seat.node, seat.gpus) for seat in layout.seats}


def gpus(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ("{agg: {nodes: 1, gpus: 8}}", {"agg-0": (0, gpus(0, 7))}),
        ("{agg: {nodes: 1, workers: 2, gpus: 3}}", {"agg-0": (0, gpus(0, 2)), "agg-1": (0, gpus(3, 5))}),
        ("{agg: {nodes: 2, workers: 2, gpus: 5}}", {"agg-0": (0, gpus(0, 4)), "agg-1": (1, gpus(0, 4))}),
        ("{agg: {nodes: 2, gpus: 16}}", {"agg-0": (0, gpus(0, 7)), "agg-0.1": (1, gpus(0, 7))}),
        (
            "{prefill: {nodes: 1, gpus: 4}, decode: {nodes: 1, gpus: 4}}",
            {"prefill-0": (0, gpus(0, 3)), "decode-0": (1, gpus(0, 3))},
        ),
        (
            "{prefill: {nodes: 1, gpus: 4}, decode: {nodes: colocate, workers: 2, gpus: 2}}",
            {"prefill-0": (0, gpus(0, 3)), "decode-0": (0, gpus(4, 5)), "decode-1": (0, gpus(6, 7))},
        ),
    ],
)
def test_workers_are_packed_from_the_first_node_on(
    make: Make, roles: str, expected: dict[str, tuple[int, tuple[int, ...]]]
) -> None:
    assert seats(layout_of(view_of(make(f"{HEAD}roles: {roles}")))) == expected


def ports(layout: Layout) -> dict[str, int]:
    return {seat.name: seat.handshake for seat in layout.seats}


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        # One worker a node: the hosts differ, and so the counter goes on by one, whatever the ranks.
        ("{prefill: {nodes: 1, gpus: 8}, decode: {nodes: 1, gpus: 8}}", {"prefill-0": 5400, "decode-0": 5401}),
        # ATOM listens on port + rank, so workers that share a host keep clear of each other's ranks.
        (
            "{prefill: {nodes: 1, workers: 2, gpus: 4}, decode: {nodes: 1, gpus: 8}}",
            {"prefill-0": 5400, "prefill-1": 5404, "decode-0": 5408},
        ),
    ],
)
def test_handshake_ports_of_atom_never_overlap_on_a_node(make: Make, roles: str, expected: dict[str, int]) -> None:
    assert ports(layout_of(view_of(make(f"{HEAD}roles: {roles}")), blocks=True)) == expected


def test_servers_on_one_node_have_ports_of_their_own(make: Make) -> None:
    layout = layout_of(view_of(make(HEAD + "roles: {prefill: {nodes: 1, workers: 2, gpus: 4}, decode: {nodes: 1}}")))
    assert [(seat.name, seat.http, seat.bootstrap, seat.system) for seat in layout.seats] == [
        ("prefill-0", 6100, 7200, 7500),
        ("prefill-1", 6132, 7201, 7501),
        ("decode-0", 6100, 0, 7502),
    ]


APART: Final = "placement: {node: dedicated}"


@pytest.mark.parametrize(
    ("more", "nodes", "workers", "head", "client", "infra"),
    [
        ("", 2, (0, 1), 0, 0, 0),
        (f"frontend: {{{APART}}}", 3, (1, 2), 0, 0, 0),
        (f"benchmark: {{{APART}}}", 3, (0, 1), 0, 2, 0),
        (f"frontend: {{{APART}}}\nbenchmark: {{{APART}}}", 3, (0, 1), 2, 2, 2),
        (f"frontend: {{{APART}}}\nbenchmark: {{{APART}, colocate_with_frontend: false}}", 4, (1, 2), 0, 3, 0),
        (f"services: [{{name: etcd, {APART}}}]", 3, (1, 2), 1, 1, 0),
    ],
)
def test_dedicated_nodes_hold_no_worker(
    make: Make, more: str, nodes: int, workers: tuple[int, ...], head: int, client: int, infra: int
) -> None:
    text = f"schema: 2\nengine: sglang\nroles: {{prefill: {{nodes: 1}}, decode: {{nodes: 1}}}}\n{more}"
    layout = layout_of(view_of(make(text)))
    assert (layout.nodes, layout.workers, layout.head) == (nodes, workers, head)
    if "frontend" not in more or "benchmark" not in more:
        assert layout.infra == infra
    assert layout.client == client


@pytest.mark.parametrize(
    ("roles", "per_node"),
    [
        ("{agg: {nodes: 1, gpus: 8}}", 8),
        ("{agg: {nodes: 2, gpus: 2}}", 4),
        ("{agg: {nodes: 2, workers: 3, gpus: 4}}", 8),
        ("{agg: {nodes: 4, workers: 2, gpus: 16}}", 8),
    ],
)
def test_a_node_has_what_the_roles_need_where_the_recipe_does_not_say(make: Make, roles: str, per_node: int) -> None:
    assert layout_of(view_of(make(f"schema: 2\nengine: atom\nroles: {roles}"))).gpus_per_node == per_node


def test_workers_that_do_not_fit_are_a_finding(make: Make) -> None:
    view = view_of(make(HEAD + "roles:\n  agg:\n    nodes: 1\n    workers: 3\n    gpus: 4"))
    with pytest.raises(ViewError, match=r"3 workers of 4 GPUs.*more than the 1 nodes") as refusal:
        layout_of(view)
    span = refusal.value.finding.span
    assert span is not None
    assert (refusal.value.finding.rule, span.line) == ("recipe-layout", 7)


@given(
    prefill=st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 16)),
    decode=st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 16)),
)
def test_no_gpu_and_no_port_is_given_twice(
    prefill: tuple[int, int, int], decode: tuple[int, int, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "r.yaml"
    said = [f"{{nodes: {nodes}, workers: {workers}, gpus: {gpus}}}" for nodes, workers, gpus in (prefill, decode)]
    text = f"{HEAD}roles: {{prefill: {said[0]}, decode: {said[1]}}}"
    document = loads(text.encode(), str(path))
    view = view_of(Recipe(Reference("r", "r", None), document.root, document, path))
    try:
        layout = layout_of(view, blocks=True)
    except ViewError:
        return
    used = [(seat.node, gpu) for seat in layout.seats for gpu in seat.gpus]
    assert len(used) == len(set(used))
    listening = [
        (seat.node, port)
        for seat in layout.seats
        for port in [*range(seat.handshake, seat.handshake + len(seat.gpus)), *filter(None, [seat.http, seat.system])]
    ]
    assert len(listening) == len(set(listening))
