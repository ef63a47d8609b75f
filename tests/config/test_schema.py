"""What the schemas refuse, by example: the rule and the place of each finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from jsonschema import Draft202012Validator

from matrix.config.schema import Kind, load_schema
from tests.config.support import (
    CONC,
    DISAGG,
    EMPTY,
    MULTI,
    ROLES,
    WORKER,
    agentic,
    config,
    fixed,
    told,
    wanted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULE_FILES: Final = ("rules.py", "fleet_rules.py")


def walk(part: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema in a schema, with the way to it."""
    if isinstance(part, dict):
        if not path.endswith(("/properties", "/$defs", "/examples")):
            yield path, part
        for key, value in part.items():
            if key not in ("examples", "default", "enum", "const"):
                yield from walk(value, f"{path}/{key}")
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from walk(value, f"{path}/{index}")


REFUSED: Final = {
    "quoted digits": ("wrong-type", fixed(f"tp: §'8', {CONC}")),
    "float for an integer": ("wrong-type", fixed(f"tp: §8.0, {CONC}")),
    "fraction for an integer": ("wrong-type", fixed(f"tp: §8.5, {CONC}")),
    "boolean for an integer": ("wrong-type", fixed(f"tp: §true, {CONC}")),
    "word for an integer": ("wrong-type", fixed(f"tp: §eight, {CONC}")),
    "list for an integer": ("wrong-type", fixed(f"tp: §[8], {CONC}")),
    "mapping for an integer": ("wrong-type", fixed(f"tp: §{{a: 8}}, {CONC}")),
    "no value": ("no-value", fixed(f"tp: §~, {CONC}")),
    "no value in a list": ("no-value", fixed("tp: 8, conc-list: [1, §null]")),
    "number for a list": ("wrong-type", fixed("tp: 8, conc-list: §8")),
    "quoted digits in a list": ("wrong-type", fixed("tp: 8, conc-list: [1, §'4']")),
    "quoted boolean": ("wrong-type", fixed(f"tp: 8, dp-attn: §'yes', {CONC}")),
    "number for a boolean": ("wrong-type", fixed(f"tp: 8, dp-attn: §1, {CONC}")),
    "unquoted version": ("wrong-type", fixed(f"tp: 8, router: {{name: mesh, version: §1.10}}, {CONC}")),
    "unquoted integer version": ("wrong-type", fixed(f"tp: 8, router: {{name: mesh, version: §2}}, {CONC}")),
    "unquoted date-like float": ("wrong-type", fixed(f"tp: 8, router: {{name: mesh, version: §1.5}}, {CONC}")),
    "text for a router": ("wrong-type", fixed(f"tp: 8, router: §mesh, {CONC}")),
    "boolean for text": ("wrong-type", config(EMPTY, "runner: §true, multinode: false")),
    "text for a number": (
        "wrong-type",
        agentic(f"tp: 8, kv-offloading: none, {CONC}", block="dram-utilization: §'0.8', "),
    ),
    "text for a block list": ("wrong-type", config("fixed-seq-len: §8k1k")),
    "list for a config": ("wrong-type", "k: §[]\n"),
    "nothing for a config": ("no-value", "k:§\n"),
    "list for a file": ("wrong-type", "§- k\n"),
    "word for a file": ("wrong-type", "§k\n"),
    "long text": ("wrong-type", fixed("tp: §" + "x" * 70 + f", {CONC}")),
    "alias for an integer": ("wrong-type", fixed("tp: 8, conc-list: [§*r]", flags="runner: &r x, multinode: false")),
    "snake case": ("unknown-key", fixed("tp: 8, §conc_list: [1]")),
    "misspelled": ("unknown-key", fixed("tp: 8, §conc-lst: [1]")),
    "camel case": ("unknown-key", fixed(f"tp: 8, §dpAttn: true, {CONC}")),
    "misspelled topology": (
        "unknown-key",
        fixed(f"§workers: {{tp: 8, ep: 1, dp-attn: false}}, num-nodes: 1, {CONC}", flags=MULTI),
    ),
    "misspelled role": ("unknown-key", fixed(ROLES.replace("prefill", "§prefil") + f", {CONC}", flags=DISAGG)),
    "misspelled config key": ("unknown-key", config(EMPTY, "§runer: x, multinode: false")),
    "misspelled scenario": ("unknown-key", config("§fixed_seq_len: [{isl: 1, osl: 1, search-space: []}]")),
    "far from any": ("unknown-key", fixed(f"tp: 8, §zz: 1, {CONC}")),
    "many unknown": (
        "unknown-key",
        config(EMPTY).replace("}}\n", "}, " + ", ".join(f"{'§' * (n < 21)}z{n}: 1" for n in range(30)) + "}\n"),
    ),
    "missing keys": (
        "missing-key",
        """
§k: {image: i, model: m, precision: p, framework: f, multinode: false, scenarios: {
  fixed-seq-len: [§{isl: 1, search-space: []}]}}
""",
    ),
    "missing num-nodes": ("missing-key", fixed(f"§{{worker: {{tp: 8, ep: 1, dp-attn: false}}, {CONC}}}", flags=MULTI)),
    "missing in a worker": ("missing-key", fixed(f"§worker: {{tp: 8}}, num-nodes: 1, {CONC}", flags=MULTI)),
    "missing role": (
        "missing-key",
        fixed(f"§{{prefill: {{num-worker: 1, tp: 8, ep: 1, dp-attn: false}}, {CONC}}}", flags=DISAGG),
    ),
    "offloading without agents": ("misplaced-key", fixed(f"tp: 8, §kv-offloading: none, {CONC}")),
    "length of agents": ("misplaced-key", agentic(f"tp: 8, kv-offloading: none, {CONC}", block="§isl: 1, osl: 1, ")),
    "sizes beside worker": ("misplaced-key", fixed(f"§tp: 8, ep: 1, {WORKER}, {CONC}", flags=MULTI)),
    "two topologies": ("misplaced-key", fixed(f"{WORKER}, §{ROLES}, {CONC}", flags=MULTI)),
    "transfer in one node": ("misplaced-key", fixed(f"tp: 8, §kv-p2p-transfer: nixl, {CONC}")),
    "unknown drafting": ("unknown-value", fixed(f"tp: 8, spec-decoding: §eagle, {CONC}")),
    "near drafting": ("unknown-value", fixed(f"tp: 8, spec-decoding: §draft-model, {CONC}")),
    "drafting in a list": ("wrong-type", fixed(f"tp: 8, spec-decoding: §[mtp], {CONC}")),
    "other tier": ("unknown-value", agentic(f"tp: 8, kv-offloading: §nvme, {CONC}")),
    "concurrency 0": ("out-of-range", fixed("tp: 8, conc-list: [§0, 4]")),
    "negative concurrency": ("out-of-range", fixed("tp: 8, conc-list: [§-4]")),
    "huge concurrency": ("out-of-range", fixed("tp: 8, conc-list: [4, §1000001]")),
    "range from 0": ("out-of-range", fixed("tp: 8, conc-start: §0, conc-end: 4")),
    "huge range": ("out-of-range", fixed("tp: 8, conc-start: 1, conc-end: §99_999_999")),
    "tokens beyond reason": ("out-of-range", fixed(f"tp: 8, {CONC}", block="isl: §100_000_001, osl: 1")),
    "no tokens": ("out-of-range", fixed(f"tp: 8, {CONC}", block="isl: 8, osl: §0")),
    "utilization 0": ("out-of-range", agentic(f"tp: 8, kv-offloading: none, {CONC}", block="dram-utilization: §0, ")),
    "utilization over 1": (
        "out-of-range",
        agentic(f"tp: 8, kv-offloading: none, {CONC}", block="dram-utilization: §1.5, "),
    ),
    "negative workers": (
        "out-of-range",
        fixed(f"{ROLES}, {CONC}".replace("num-worker: 1", "num-worker: §-1", 1), flags=DISAGG),
    ),
    "no replica": (
        "out-of-range",
        fixed(f"worker: {{num-worker: §0, tp: 8, ep: 1, dp-attn: false}}, num-nodes: 1, {CONC}", flags=MULTI),
    ),
    "empty list": ("empty-value", fixed("tp: 8, conc-list: §[]")),
    "empty text": ("empty-value", config(EMPTY, "runner: §'', multinode: false")),
    "setting that is no text": (
        "wrong-type",
        fixed(
            f"{ROLES}, {CONC}".replace("dp-attn: false", "dp-attn: false, additional-settings: [A=1, §2]", 1),
            flags=DISAGG,
        ),
    ),
    "waiver without reason": ("missing-key", fixed(f"tp: 8, check-waivers: [§{{rule: x}}], {CONC}")),
}

OTHER_FILES: Final = {
    "a runners file": ("wrong-file", "§labels: {a: [b]}\nclusters: {}\n"),
    "a list of labels": ("wrong-file", "§mi355x: [a, b]\nmi300x: [c]\n"),
    "a recipe": ("wrong-file", "§schema: 2\nroles: {prefill: {nodes: 1}}\n"),
    "a bundle": ("wrong-file", "§base: {roles: {prefill: {nodes: 1}}}\noverride_a: {}\n"),
    "a changelog": ("wrong-file", "§- config-keys: [a]\n  description: [b]\n"),
    "a workflow": ("wrong-file", "§on: push\njobs: {}\n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_each_fault_is_told_once_at_its_place(name: str) -> None:
    faults, text = REFUSED[name]
    assert told(text, Kind.MASTER) == wanted(faults, text)


@pytest.mark.parametrize("name", OTHER_FILES)
def test_a_file_of_another_kind_is_one_fault(name: str) -> None:
    faults, text = OTHER_FILES[name]
    assert told(text, Kind.MASTER) == wanted(faults, text)


# Conditions have properties, too. What makes a mapping is that it is closed.
OBJECTS: Final = {
    (kind, path): part
    for kind in Kind
    for path, part in walk(load_schema(kind))
    if "properties" in part and (part.get("type") == "object" or "additionalProperties" in part)
}


@pytest.mark.parametrize("kind", Kind)
def test_the_schemas_are_schemas(kind: Kind) -> None:
    Draft202012Validator.check_schema(load_schema(kind))


@pytest.mark.parametrize(("kind", "path"), OBJECTS)
def test_an_editor_can_complete_and_explain(kind: Kind, path: str) -> None:
    part = OBJECTS[kind, path]
    assert part["additionalProperties"] is False
    assert part["title"]
    for name, value in part["properties"].items():
        target = value if "$ref" not in value else load_schema(kind)["$defs"][value["$ref"].rpartition("/")[2]]
        assert target.get("description", "").endswith("."), name
        closed = {"enum", "properties", "pattern", "items", "if"} & target.keys() or target["type"] in (
            "boolean",
            "object",
        )
        assert target.get("examples") or closed or target["type"] == "string", name


@pytest.mark.parametrize("kind", Kind)
def test_examples_are_right(kind: Kind) -> None:
    schema = load_schema(kind)
    validator = Draft202012Validator(schema)
    for _path, part in walk(schema):
        for example in part.get("examples", ()):
            assert list(validator.evolve(schema={**part, "$defs": schema.get("$defs", {})}).iter_errors(example)) == []


def test_what_a_schema_leaves_to_the_rules_is_told_by_one(root: Path) -> None:
    source = "".join((root / "matrix/config" / name).read_text(encoding="utf-8") for name in RULE_FILES)
    named = {
        rule for kind in Kind for _, part in walk(load_schema(kind)) for rule in part.get("x-told-by", "").split(", ")
    }
    assert [rule for rule in sorted(named - {""}) if f'"{rule}"' not in source] == []
    assert len(named) > 10
