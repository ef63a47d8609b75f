"""What an entry may be: a table, and that the typed reader and the JSON Schema agree."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from matrix.changelog.entries import ScenarioType, read
from matrix.changelog.text import Text
from matrix.config.model import ScenarioKind
from tests.changelog.support import BASE, LINK, entry, log

SCHEMA: dict[str, Any] = json.loads((files("matrix") / "schemas" / "changelog.json").read_text(encoding="utf-8"))
SCHEMA_OF_ENTRIES = Draft202012Validator(SCHEMA)


def messages(data: bytes) -> list[str]:
    return [finding.message for finding in read(Text("log", data)).findings]


def test_every_field_has_its_value_and_place() -> None:
    fields = (
        "  all-evals: true\n  eval-min-prefill-ep: 8\n  scenario-type:\n    - agentic-coding\n  evals-only: false\n"
        "  no-evals: false\n  append-only: false\n"
    )
    data = BASE + b"\n" + log(entry("a", "Wörter.", extra=fields))
    read_log = read(Text("log", data), since=len(BASE))
    (found,) = read_log.entries
    assert (found.number, found.line) == (4, 19)
    assert data[found.start : found.end] == data[len(BASE) + 1 : -1]
    assert found.config_keys == ("a",)
    assert found.description == ("Wörter.",)
    assert found.pr_link == f"{LINK}77"
    assert (found.all_evals, found.evals_only, found.no_evals, found.append_only) == (True, False, False, False)
    assert found.eval_min_prefill_ep == 8
    assert found.scenario_types == (ScenarioType.AGENTIC_CODING,)
    assert str(read_log.span(found, "pr-link")) == "log:30:12"
    assert str(read_log.span(found, "config-keys")) == "log:20:5"


def test_the_scenario_types_are_those_of_a_config() -> None:
    assert [kind.value for kind in ScenarioType] == [kind.value for kind in ScenarioKind]


def test_scenario_types_keep_the_order_in_which_they_are_claimed() -> None:
    extra = "  scenario-type: [agentic-coding, fixed-seq-len]\n"
    (found,) = read(Text("log", log(entry("a", extra=extra)))).entries
    assert found.scenario_types == tuple(ScenarioType)


WRONG = {
    "config-keys: []": "config-keys is an empty list, not a list of strings",
    "config-keys: a": "config-keys is a string, not a list of strings",
    "config-keys: [a, 1]": "config-keys holds 1, not a list of strings",
    "config-keys: [a, null]": "config-keys holds empty, not a list of strings",
    "description: text": "description is a string, not a list of strings",
    "description:": "description is empty, not a list of strings",
    "pr-link: 12": "pr-link is 12, not a link",
    "pr-link: {a: b}": "pr-link is a mapping, not a link",
    "evals-only: 'true'": "evals-only is a string, not true or false",
    "all-evals: 1": "all-evals is 1, not true or false",
    "no-evals:": "no-evals is empty, not true or false",
    "append-only: []": "append-only is an empty list, not true or false",
    "eval-min-prefill-ep: 0": "eval-min-prefill-ep is 0, not an integer from 1",
    "eval-min-prefill-ep: true": "eval-min-prefill-ep is true, not an integer from 1",
    "eval-min-prefill-ep: 8.0": "eval-min-prefill-ep is 8.0, not an integer from 1",
    "scenario-type: []": "scenario-type is an empty list, not a list of scenario types",
    "scenario-type: agentic-coding": "scenario-type is a string, not a list of scenario types",
    "scenario-type: [agentic]": "scenario-type holds agentic, not a list of scenario types",
    "evals-onyl: true": "evals-onyl is unknown",
}


@pytest.mark.parametrize(("line", "message"), WRONG.items(), ids=WRONG)
def test_a_wrong_field_is_named_with_what_stands_there(line: str, message: str) -> None:
    fields = {"config-keys": "config-keys: [a]", "description": "description: [b]", "pr-link": "pr-link: XXX"}
    fields[line.partition(":")[0]] = line
    data = ("- " + "\n  ".join(fields.values()) + "\n").encode()
    assert messages(data) == [f"entry 1: {message}."]
    (finding,) = read(Text("log", data)).findings
    assert finding.span is not None
    assert data.split(b"\n")[finding.span.line - 1].endswith(line.encode())
    assert finding.fix


def test_a_misspelt_field_brings_the_near_one() -> None:
    (finding,) = read(Text("log", log(entry("a", extra="  evals-onyl: true\n")))).findings
    assert finding.fix == "did you mean evals-only?"


def test_the_rest_of_a_wrong_entry_is_still_read() -> None:
    (found,) = read(Text("log", log(entry("a", extra="  evals-only: 1\n  no-evals: true\n")))).entries
    assert found.config_keys == ("a",)
    assert found.no_evals
    assert not found.evals_only


VALUES = st.sampled_from([True, False, None, 0, 1, 8, "a", [], ["a"], ["agentic-coding"], [1], {}, {"a": 1}])
FIELDS = st.dictionaries(st.sampled_from([*SCHEMA["$defs"]["entry"]["properties"], "other"]), VALUES, max_size=9)
RIGHT = st.fixed_dictionaries(
    {"config-keys": st.just(["a"]), "description": st.just(["b"]), "pr-link": st.just("XXX")},
    optional=dict.fromkeys(("evals-only", "all-evals", "no-evals", "append-only"), st.booleans())
    | {
        "eval-min-prefill-ep": st.integers(0, 9),
        "scenario-type": st.lists(st.sampled_from(["fixed-seq-len", "agentic-coding", "agentic"]), max_size=3),
    },
)


@given(st.lists(st.one_of(FIELDS, RIGHT), min_size=1, max_size=3))
def test_the_schema_and_the_reader_agree(entries: list[dict[str, Any]]) -> None:
    blocks = []
    for fields in entries:
        ordered = {"config-keys": fields.get("config-keys"), **fields}
        blocks.append("- " + "\n  ".join(f"{key}: {json.dumps(value)}" for key, value in ordered.items()))
    entries = [{"config-keys": fields.get("config-keys"), **fields} for fields in entries]
    refused = bool(messages(("\n\n".join(blocks) + "\n").encode()))
    assert refused != SCHEMA_OF_ENTRIES.is_valid(entries)


SPELLINGS = st.sampled_from(
    [
        entry("a-b"),
        entry("a-b", extra="  scenario-type:\n    - agentic-coding\n") + "  ",
        entry("a-b", "Wörter 添加."),
        entry("a-b", link="https://x:"),
        entry("a-b", link="https://x #y"),
        entry("4e5"),
        entry("&x a-b"),
        entry("*x"),
        entry("a-b", extra="  no-evals: true\n"),
        entry("a-b", extra="  why: true\n"),
        entry("a-b", 'a" # "b'),
        entry("a-b", "a\n- config-keys:\n    - c-d"),
        entry("a-b") + "\n  # note",
        entry("a-b") + "\n  pr-link: XXX",
        entry("a-b") + "\n...",
        entry("a-b").replace('"Why."', "'Why."),
        entry("a-b").replace('    - "Why."', "    - |\n      Why.\n    - b"),
        "# a comment",
        "---",
    ]
)


@given(st.lists(SPELLINGS, max_size=6), st.lists(SPELLINGS, min_size=1, max_size=3), st.sampled_from(["\n\n", "\n"]))
def test_history_that_is_passed_over_changes_nothing(old: list[str], new: list[str], gap: str) -> None:
    """Of an appended log the plain entries of history are not parsed; every verdict stays."""
    history = (gap.join(old) + "\n").encode() if old else b""
    data = history + (gap.join(new) + "\n").encode()
    text, whole = Text("log", data), read(Text("log", data))
    appended = [one for one in whole.entries if one.start >= len(history)]
    found = read(text, since=len(history))
    assert list(found.entries) == appended
    assert found.findings == whole.findings
    for one, other in zip(found.entries, appended, strict=True):
        assert found.span(one, "pr-link") == whole.span(other, "pr-link")


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
