"""One view of a recipe over both dialects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from matrix.config.source import plain
from matrix.recipes.roles import ViewError, node_count, view_of

if TYPE_CHECKING:
    from matrix.recipes.recipe import Recipe
    from tests.recipes.conftest import Make

SCHEMA_2: Final = """
    schema: 2
    name: n
    engine: {type: atom, connector: mooncake}
    resources: {gpus_per_node: 8}
    roles:
      prefill: {nodes: 2, workers: 4, env: {A: "1"}, args: {tp: 4}, container: img}
      decode: {nodes: 1, workers: 1, gpus: 8}
    frontend: {type: atomesh}
    environment: {B: "2"}
    benchmark: {type: custom}
"""
SCHEMA_1: Final = """
    name: n
    resources: {gpus_per_node: 8, prefill_nodes: 2, prefill_workers: 4,
      decode_nodes: 1, decode_workers: 1, gpus_per_decode: 8}
    backend:
      type: atom
      connector: mooncake
      prefill_environment: {A: "1"}
      atom_config: {prefill: {tp: 4}}
    frontend: {type: atomesh}
    environment: {B: "2"}
    benchmark: {type: custom}
"""


@pytest.mark.parametrize(("text", "schema"), [(SCHEMA_2, 2), (SCHEMA_1, 1)])
def test_both_dialects_give_one_view(make: Make, text: str, schema: int) -> None:
    view = view_of(make(text))
    prefill, decode = view.roles["prefill"], view.roles["decode"]
    assert view.schema == schema
    assert (prefill.nodes, prefill.workers, prefill.gpus, prefill.engine) == (2, 4, 4, "atom")
    assert (plain(prefill.args), plain(prefill.env)) == ({"tp": 4}, {"A": "1"})
    assert (decode.nodes, decode.workers, decode.gpus, plain(decode.args)) == (1, 1, 8, {})
    assert (view.engine["connector"], view.frontend["type"], plain(view.environment)) == (
        "mooncake",
        "atomesh",
        {"B": "2"},
    )
    assert view.generating is decode
    assert (view.gpus_per_node, node_count(view)) == (8, 3)


def test_a_number_is_shown_where_it_was_written(make: Make) -> None:
    one, two = make(SCHEMA_1), make(SCHEMA_2)
    node, key = view_of(one).roles["prefill"].places["nodes"]
    assert (key, one.document.of_key(node, key).line) == ("prefill_nodes", 2)
    two = make(SCHEMA_2)
    node, key = view_of(two).roles["decode"].places["gpus"]
    assert (key, two.document.of_key(node, key).line) == ("gpus", 7)


@pytest.mark.parametrize(
    ("role", "gpus"),
    [
        ("nodes: 1", 4),
        ("nodes: 2, workers: 1", 8),
        ("nodes: 2, workers: 3", 2),
        ("nodes: 1, gpus: 6", 6),
        ("nodes: 1, workers: 0", 4),
    ],
)
def test_the_gpus_of_a_worker_that_does_not_say_them(make: Make, role: str, gpus: int) -> None:
    view = view_of(make(f"schema: 2\nengine: sglang\nroles: {{agg: {{{role}}}}}"))
    assert view.roles["agg"].gpus == gpus
    assert view.generating is view.roles["agg"]


def test_decode_on_the_nodes_of_prefill(make: Make) -> None:
    head = "schema: 2\nengine: vllm\nresources: {gpus_per_node: 8}\n"
    two = make(head + "roles: {prefill: {nodes: 1, gpus: 4}, decode: {nodes: colocate, workers: 2, gpus: 2}}")
    one = make(
        "backend: {type: vllm}\nresources: {gpus_per_node: 8, prefill_nodes: 1, prefill_workers: 1, "
        "gpus_per_prefill: 4, decode_nodes: 0, decode_workers: 2, gpus_per_decode: 2}"
    )
    for recipe in (one, two):
        decode = view_of(recipe).roles["decode"]
        assert (decode.nodes, decode.workers, decode.gpus, node_count(view_of(recipe))) == (0, 2, 2, 1)


APART: Final = "{placement: {node: dedicated}}"


@pytest.mark.parametrize(
    ("more", "nodes"),
    [
        ("", 2),
        (f"services: [{{name: etcd, type: etcd, {APART[1:-1]}}}, {{type: nats, {APART[1:-1]}}}]", 3),
        ("services: [{name: etcd, placement: {node: head}}]", 2),
        ("services: [{name: x, type: generic, nodes: 2}]", 4),
        ("services: [{name: x, type: generic, nodes: 2, enabled: false}]", 2),
        ("infra: {etcd_nats_dedicated_node: true}", 3),
        ("frontend: {placement: {node: dedicated}}", 3),
        ("frontend: {dedicated_node: true}\nbenchmark: {client_dedicated_node: true}", 3),
        (f"frontend: {APART}\nbenchmark: {{{APART[1:-1]}, colocate_with_frontend: false}}", 4),
    ],
)
def test_every_node_that_a_job_takes(make: Make, more: str, nodes: int) -> None:
    text = "schema: 2\nengine: sglang\nroles: {prefill: {nodes: 1}, decode: {nodes: 1}}\n"
    assert node_count(view_of(make(text + more))) == nodes


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        ("roles: {agg: {nodes: 1}}", "recipe-schema", 1),
        ("schema: 3\nroles: {agg: {nodes: 1}}", "recipe-schema", 1),
        ("schema: 2\nroles:\n  prefil: {nodes: 1}", "recipe-roles", 3),
        ("schema: 2\nroles:\n  agg: 3", "recipe-roles", 3),
        ("schema: 2\nengine: vllm", "recipe-roles", 0),
        ("backend: {type: vllm}\nresources: {agg_nodes: 0}", "recipe-roles", 0),
        ("schema: 2\nroles:\n  agg: {workers: 1}", "recipe-nodes", 3),
        ("schema: 2\nroles:\n  agg: {nodes: 0}", "recipe-nodes", 3),
        ("schema: 2\nroles:\n  prefill: {nodes: colocate}", "recipe-nodes", 3),
        ("schema: 2\nroles:\n  agg: {nodes: true}", "recipe-nodes", 3),
    ],
)
def test_what_cannot_be_read_as_roles(make: Make, text: str, rule: str, line: int) -> None:
    with pytest.raises(ViewError) as refusal:
        view_of(make(text))
    span = refusal.value.finding.span
    assert span is not None
    assert (refusal.value.finding.rule, span.line) == (rule, line)


def test_etcd_and_nats_share_one_placement(make: Make) -> None:
    text = "schema: 2\nroles: {agg: {nodes: 1}}\nservices: [{type: etcd, placement: {node: dedicated}}, {type: nats}]"
    with pytest.raises(ViewError, match="recipe-placement"):
        node_count(view_of(make(text)))


def test_every_shipped_recipe_has_a_view(shipped: list[Recipe]) -> None:
    for recipe in shipped:
        view = view_of(recipe)
        assert view.generating is not None
        assert node_count(view) >= 1
