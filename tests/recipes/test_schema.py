"""The JSON Schema of recipes: takes what ships, whole and by variant, and refuses what a recipe cannot hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from jsonschema import Draft202012Validator

from matrix.config.source import loads
from matrix.recipes.pinned import BENCHMARKS, FIELDS, STRING_MAPS

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.recipes.recipe import Recipe, RecipeBook


@pytest.fixture(scope="module")
def schema(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((root / "matrix" / "schemas" / "recipe.json").read_text(encoding="utf-8"))
    return loaded


def faults(schema: dict[str, Any], value: Any) -> list[str]:
    return sorted(f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(value))


def test_it_is_a_schema(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)


def test_every_shipped_file_and_variant_is_accepted(
    schema: dict[str, Any], book: RecipeBook, shipped: list[Recipe]
) -> None:
    for _, name in book.files():
        assert faults(schema, book.document(name).root) == [], name
    whole = {"$defs": schema["$defs"], "$ref": "#/$defs/recipe"}
    for recipe in shipped:
        assert faults(whole, recipe.data) == [], recipe.reference.text


PLAIN: Final = """\
schema: 2
name: n
model: {path: p, container: c}
engine: sglang
roles: {agg: {nodes: 1}}
"""
ACCEPTED: Final = {
    "plain": PLAIN,
    "engine by role": PLAIN.replace("engine: sglang\n", "").replace("nodes: 1", "nodes: 1, engine: {type: vllm, x: 1}"),
    "colocated": PLAIN.replace(
        "{agg: {nodes: 1}}", "{prefill: {nodes: 1, gpus: 4}, decode: {nodes: colocate, gpus: 4}}"
    ),
    "bundle": "base: {schema: 2}\noverride_a-b.c: {model: null, roles: {decode: {args: null, env: {A: null}}}}\n",
    "schema beside base": "schema: 2\nbase: {name: n}\n",
    "zip": "base: {}\nzip_override_x: {benchmark: {env: {CONC: ['1', '2']}}, name: [a, b]}\n",
    "services": PLAIN + "services: [{type: nats, placement: {node: dedicated}, options: {max_payload_mb: 24}}]\n",
    "days": PLAIN + "slurm: {time_limit: '1-00:00:00'}\n",
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_a_recipe_can_hold(schema: dict[str, Any], name: str) -> None:
    assert faults(schema, loads(ACCEPTED[name].encode(), "x").root) == []


REFUSED: Final = [
    # file, path of the fault, words
    (PLAIN.replace("schema: 2", "schema: 1"), "$.schema", "2 was expected"),
    (PLAIN.replace("schema: 2\n", ""), "$", "'schema' is a required property"),
    (PLAIN.replace("name: n\n", ""), "$", "'name' is a required property"),
    (PLAIN.replace(", container: c", ""), "$.model", "'container' is a required property"),
    (PLAIN + "sweep: {}\n", "$", "'sweep' was unexpected"),
    (PLAIN + "backend: {type: sglang}\n", "$", "'backend' was unexpected"),
    (PLAIN.replace("agg:", "prefil:"), "$.roles", "'prefil' was unexpected"),
    (PLAIN.replace("{agg: {nodes: 1}}", "{prefill: {nodes: 1}}"), "$.roles", "'decode' is a required property"),
    (PLAIN.replace("{agg:", "{prefill: {nodes: 1}, agg:"), "$.roles", "has too many properties"),
    (PLAIN.replace("nodes: 1", "nodes: 0"), "$.roles.agg.nodes", "less than the minimum of 1"),
    (PLAIN.replace("nodes: 1", "nodes: colocate"), "$.roles.agg.nodes", "'colocate' is not of type"),
    (PLAIN.replace("nodes: 1", "nodes: 1, gpus: '8'"), "$.roles.agg.gpus", "'8' is not of type"),
    (PLAIN.replace("nodes: 1", "nodes: 1, arg: {}"), "$.roles.agg", "'arg' was unexpected"),
    (PLAIN.replace("nodes: 1", "nodes: 1, env: {A: 1}"), "$.roles.agg.env.A", "1 is not of type"),
    (PLAIN + "benchmark: {env: {CONC: 4}}\n", "$.benchmark.env.CONC", "4 is not of type"),
    (PLAIN + "benchmark: {type: sa_bench}\n", "$.benchmark.type", "'sa_bench' is not one of"),
    (PLAIN + "srun_options: {mem: 0}\n", "$.srun_options.mem", "0 is not of type"),
    (PLAIN + "environment: {A: true}\n", "$.environment.A", "True is not of type"),
    (PLAIN + "frontend: {enable_multiple_frontends: 'no'}\n", "$.frontend.enable_multiple_frontends", "'no' is not of"),
    (PLAIN + "frontend: {placement: {node: tail}}\n", "$.frontend.placement.node", "'tail' is not one of"),
    (PLAIN + "slurm: {time_limit: 8h}\n", "$.slurm.time_limit", "does not match"),
    (PLAIN + "services: [{command: x}]\n", "$.services[0]", "is not valid under any of the given schemas"),
    (PLAIN + "extra_mount: [a]\n", "$.extra_mount[0]", "does not match"),
    ("base: {schema: 2}\noverride: {}\n", "$", "'override' does not match any of the regexes"),
    ("base: {schema: 2}\noverride_a: {role: {}}\n", "$.override_a", "'role' was unexpected"),
    ("base: {}\nzip_override_a: {role: {}}\n", "$.zip_override_a", "'role' is not one of"),
    ("base: {}\nname: x\n", "$", "'name' does not match any of the regexes"),
]


@pytest.mark.parametrize(("text", "path", "words"), REFUSED)
def test_what_a_recipe_cannot_hold(schema: dict[str, Any], text: str, path: str, words: str) -> None:
    found = faults(schema, loads(text.encode(), "x").root)
    assert any(fault.startswith(f"{path}: ") and words in fault for fault in found), found


def test_it_knows_all_that_the_pin_reads(schema: dict[str, Any]) -> None:
    """Schema 2 calls some things by another name; everything else of schema 1 is in it."""
    settings = schema["$defs"]["settings"]["properties"]
    renamed = {
        "backend", "infra", "frontend.orchestrator_placement", "frontend.dedicated_node",
        "benchmark.client_placement", "benchmark.client_dedicated_node",
    }  # fmt: skip
    renamed |= {
        f"resources.{key}" for key in FIELDS["resources"] if key.startswith(("prefill", "decode", "agg", "gpus_per_"))
    }
    renamed.discard("resources.gpus_per_node")
    for path, fields in FIELDS.items():
        if path in ("infra", "reporting"):
            continue
        section = settings
        for name in filter(None, path.split(".")):
            section = section[name]["properties"]
        missing = {field for field in fields if field not in section and f"{path}.{field}".lstrip(".") not in renamed}
        assert missing == set(), path


def test_strings_are_strings_where_the_pin_wants_them(schema: dict[str, Any]) -> None:
    for path in STRING_MAPS:
        section = schema["$defs"]["settings"]["properties"]
        *parents, last = path.split(".")
        for name in parents:
            section = section[name]["properties"]
        assert section[last]["$ref"] == "#/$defs/strings", path


def test_its_benchmarks_are_the_pin_s_and_the_two_that_came_later(schema: dict[str, Any]) -> None:
    known = {*schema["$defs"]["settings"]["properties"]["benchmark"]["properties"]["type"]["enum"], None}
    assert known == {*BENCHMARKS, "profiling", "agentperf", None}


def test_every_field_says_what_it_is(schema: dict[str, Any]) -> None:
    silent = []

    def walk(node: Any, path: str) -> None:
        for name, field in node.get("properties", {}).items():
            if field and "description" not in field and "$ref" not in field:
                silent.append(f"{path}.{name}")
            walk(field, f"{path}.{name}")

    for name, definition in schema["$defs"].items():
        if name != "recipe":  # it only narrows
            walk(definition, name)
    assert silent == []
