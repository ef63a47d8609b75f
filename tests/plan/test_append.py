"""Append-only changes: exactly the new points, or what moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plan.support import RECIPE, ids, multi, of, planned, single, workspace

if TYPE_CHECKING:
    from pathlib import Path

A = single("a", "[4, 16, 32]", "[1]")
M = multi("m", (1, "[4, 8]", "override_a"), recipe="r.yaml")
APPEND = of("a", append_only="true")
FIXED_ONLY = of("a", append_only="true", scenario_type="[fixed-seq-len]")
OF_M = of("m", append_only="true")
TOPOLOGY = "          - {tp: 8, conc-list: [4, 16, 32]}\n"

ADDED = {
    "one concurrency": (A, A.replace("32]", "32, 48]"), APPEND, ["a c48"]),
    "in both scenarios": (A, A.replace("32]", "32, 48]").replace("[1]", "[1, 2]"), APPEND, ["a c48", "a agentic c2"]),
    "a topology": (
        A, A.replace(TOPOLOGY, TOPOLOGY + TOPOLOGY.replace("tp: 8", "tp: 4").replace("32]", "64]")), APPEND,
        ["a--8k1k--tp4--c4", "a--8k1k--tp4--c16", "a--8k1k--tp4--c64"],
    ),
    "a list becomes a range that holds it": (
        A, A.replace("conc-list: [4, 16, 32]", "conc-start: 4, conc-end: 32"), APPEND, ["a c8"],
    ),
    "in one scenario": (A, A.replace("32]", "32, 48]"), FIXED_ONLY, ["a c48"]),
    "of a list that shares an allocation": (
        M, M.replace("[4, 8]", "[4, 8, 16, 32]"), OF_M, ["m--8k1k--1p-tp8-1d-tp8--c16-32--override_a"],
    ),
    "another config in the same change, named too": (
        A + M, A.replace("32]", "32, 48]") + M.replace("8]", "8, 16]"), of("a\n    - m", append_only="true"),
        ["a c48", "m--8k1k--1p-tp8-1d-tp8--c16--override_a"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "entry", "wanted"), ADDED.values(), ids=ADDED)
def test_only_what_is_new_runs(tmp_path: Path, before: str, after: str, entry: str, wanted: list[str]) -> None:
    base, head = workspace(tmp_path / "base", before), workspace(tmp_path / "head", after)
    plan, findings = planned(head, entry, base=base)
    assert not findings
    assert ids(plan) == wanted
    assert {one.reason for one in plan.left_out if one.rule == "append-only"} == {"the base has it"}


WIDER = A.replace("32]", "48, 32]")
TWO = A.replace(TOPOLOGY, TOPOLOGY + TOPOLOGY.replace("8", "4"))
REFUSED = {
    "a concurrency is gone": (A, A.replace("32]", "48]"), APPEND, "append-only-removed", "concurrency 32 is gone"),
    "the image changed": (A, A.replace("i:1", "i:2"), APPEND, "append-only-changed", "image changed from i:1 to i:2"),
    "a topology changed": (
        A, A.replace("tp: 8, conc", "tp: 4, conc"), APPEND, "append-only-changed", "tp changed from 8 to 4",
    ),
    "a config of two topologies changed": (
        TWO, TWO.replace("i:1", "i:2"), APPEND, "append-only-changed", "image changed",
    ),
    "another config changed": (
        A + single("b"), WIDER + single("b", image="i:2"), APPEND, "append-only-scope", "b changed",
    ),
    "another config is new": (A, WIDER + single("b"), APPEND, "append-only-scope", "it is new"),
    "nothing was added": (A, A + "# a comment\n", APPEND, "append-only-empty", "no point was added"),
    "the config is new": (single("b"), A + single("b"), APPEND, "append-only-base", "the base has no config a"),
    "a scenario came": (
        single("a", "[4]"), single("a", "[4]", "[1]"), APPEND, "append-only-scope", "the scenarios changed",
    ),
    "the other scenario changed": (
        A, WIDER.replace("[1]", "[1, 2]"), FIXED_ONLY, "append-only-scope", "its agentic-coding points changed",
    ),
    "what both scenarios have changed": (
        A, WIDER.replace("i:1", "i:2"), FIXED_ONLY, "append-only-scope", "image changed, which the scenario outside",
    ),
    "the curve is another one": (
        A, A.replace(TOPOLOGY, TOPOLOGY + TOPOLOGY.replace("tp: 8", "tp: 8, spec-decoding: mtp")), APPEND,
        "append-only-curve", "joins no curve",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "entry", "rule", "says"), REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path: Path, before: str, after: str, entry: str, rule: str, says: str) -> None:
    base, head = workspace(tmp_path / "base", before), workspace(tmp_path / "head", after)
    plan, findings = planned(head, entry, base=base)
    assert not plan.points
    assert {finding.rule for finding in findings} == {rule}
    assert says in findings[0].message
    assert findings[0].span is not None
    if rule == "append-only-changed" and "image" in says:
        # One edit is one finding a scenario, however many rows it changes.
        assert len(findings) <= 2


def test_a_recipe_that_changed_moves_old_points(tmp_path: Path) -> None:
    base = workspace(tmp_path / "base", M)
    other = RECIPE.replace('"4"', '"5"')
    head = workspace(tmp_path / "head", M.replace("8]", "8, 16]"), **{"configs/recipes/r.yaml": other})
    _, (finding,) = planned(head, OF_M, base=base)
    assert finding.rule == "append-only-changed"
    assert "the recipe of concurrency 4, 8 did" in finding.message


@pytest.mark.parametrize("option", ["all_evals", "evals_only"])
def test_a_plan_of_accuracy_runs_is_refused(tmp_path: Path, option: str) -> None:
    base, head = workspace(tmp_path / "base", A), workspace(tmp_path / "head", A.replace("32]", "32, 48]"))
    _, (finding,) = planned(head, APPEND, base=base, **{option: True})
    assert finding.rule == "append-only-evals"
