"""The two hashes of a row: InferenceX's fingerprint, and our digest, equal for what is the same job."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any

import pytest

from tests.points.support import config, expanded, listed, recipe, roles, rows

OURS = ["id", "name", "config-key", "recipe-fingerprint", "digest"]
AGENTIC = "tp: 8, kv-offloading: none, conc-list: [1]"


def test_fingerprint_is_inferencex_s_formula() -> None:
    """sha256 of the canonical row as the generator makes it, without conc, exp-name and the fingerprint itself."""
    texts = [
        config(fixed=["tp: 8, conc-list: [4]"]),
        config(fixed=[f"{roles('additional-settings: [A=1]')}, conc-list: [4]"], disagg=True),
        config(agentic=[AGENTIC]),
    ]
    for row in rows(*[text.replace("k:", f"k{number}:", 1) for number, text in enumerate(texts)], flags=["--no-evals"]):
        bare = {key: value for key, value in row.items() if key not in (*OURS, "conc", "exp-name")}
        text = json.dumps(bare, sort_keys=True, separators=(",", ":"))
        assert row["recipe-fingerprint"] == sha256(text.encode()).hexdigest()


def digests(text: str, *flags: str, recipes: dict[str, str] | None = None) -> list[str]:
    return [row["digest"] for row in rows(text, flags=flags, recipes=recipes)]


VARIANTS = """\
# one comment
base:
  name: b
  schema: 2
  roles: {prefill: {nodes: 1, args: {x: 1, y: 2}}, decode: {nodes: 1}}
override_a: {name: a}
"""
NAMED = config(fixed=[f"{roles(recipe('r.yaml:override_a'))}, conc-list: [4]"], disagg=True)


@pytest.mark.parametrize(
    "same",
    [
        lambda text: text.replace("k:", "other:", 1),
        lambda text: text.replace("tp: 8", "# a comment\n        tp: 8"),
        lambda text: text.replace("image: 'i:1', model: org/M", "model: org/M, image: i:1"),
    ],
    ids=["key", "comment", "order"],
)
def test_digest_does_not_change_with(same: Any) -> None:
    text = config(fixed=["tp: 8, conc-list: [16]"])
    assert same(text) != text
    assert digests(same(text)) == digests(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i:1", "i:2"),
        ("conc-list: [16]", "conc-list: [17]"),
        ("tp: 8", "tp: 8, pp: 2"),
        ("org/M", "org/N"),
        ("mi355x-a", "mi355x-b"),
    ],
)
def test_digest_changes_with(old: str, new: str) -> None:
    text = config(fixed=["tp: 8, conc-list: [16]"])
    assert text.replace(old, new) != text
    assert digests(text.replace(old, new)) != digests(text)


def test_digest_does_not_know_marks_but_knows_accuracy_runs() -> None:
    text = config(fixed=["tp: 8, conc-list: [16]"])
    (marked,), (unmarked,), (accuracy,) = digests(text), digests(text, "--no-evals"), digests(text, "--evals-only")
    assert marked == unmarked != accuracy
    assert re.fullmatch("[0-9a-f]{64}", accuracy)


def test_digest_covers_what_the_recipe_says_not_what_it_is_called() -> None:
    (one,) = digests(NAMED, recipes={"r.yaml": VARIANTS})
    renamed = NAMED.replace("r.yaml", "sub/other.yaml")
    reordered = VARIANTS.replace("# one comment\n", "").replace("x: 1, y: 2", "y: 2, x: 1")
    assert digests(renamed, recipes={"sub/other.yaml": reordered}) == [one]
    assert digests(NAMED, recipes={"r.yaml": VARIANTS.replace("x: 1", "x: 3")}) != [one]
    assert digests(NAMED, recipes={}) != [one]


def test_a_recipe_that_is_not_there_is_known_by_its_name() -> None:
    assert digests(NAMED) != digests(NAMED.replace("override_a", "override_b"))


def test_equal_rows_of_an_eval_and_its_throughput_point_differ_in_id_and_digest() -> None:
    text = config(agentic=[AGENTIC], prefix="minimaxm3")
    points = listed(expanded(text))
    assert [point.id for point in points] == ["k--agentic--tp8--c1", "k--agentic--tp8--c1--eval"]
    assert len({point.digest for point in points}) == 2
    assert "recipe-fingerprint" not in points[1].row()
