"""A config that changed is named by a new entry; what is no change needs none."""

from __future__ import annotations

from shutil import copytree
from typing import TYPE_CHECKING

import pytest

from matrix.changelog.rules import check
from matrix.checks.changed import changed_configs
from matrix.plan.plan import plan_change
from matrix.workspace import open_workspace
from tests.changelog.support import BASE, PR
from tests.plan.support import RECIPE, RUNNERS, added, multi, of, planned, single, workspace

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.workspace import Workspace

A = single("a")
M = multi("m", (1, "[4]", "override_a"), (8, "[8]", "override_b"), recipe="r.yaml")
SPACE = A + M

CHANGES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "nothing": (SPACE, {}, {}),
    "a comment": ("# hello\n" + SPACE, {}, {}),
    "the order of keys": (SPACE.replace("  image: i:1\n  model: org/a\n", "  model: org/a\n  image: i:1\n"), {}, {}),
    "the order of configs": (M + A, {}, {}),
    "another spelling": (SPACE.replace("[4, 16, 64]", "[4, 0x10, 64]"), {}, {}),
    "a range for its list": (SPACE.replace("conc-list: [4, 16, 64]", "conc-list: [64, 16, 4]"), {}, {}),
    "a config went": (A, {}, {}),
    "a comment in a recipe": (SPACE, {"configs/recipes/r.yaml": RECIPE + "# hello\n"}, {}),
    "a variant that nobody names": (SPACE, {"configs/recipes/r.yaml": RECIPE + "override_c: {name: c}\n"}, {}),
    "a recipe that nobody names": (SPACE, {"configs/recipes/other.yaml": RECIPE}, {}),
    "more runners": (SPACE, {"configs/runners.yaml": RUNNERS.replace("mi355x-a_01", "mi355x-a_01, mi355x-a_02")}, {}),
    "another pin": (SPACE, {"runners/srt-slurm/patches/series.yaml": "pin: abc\npatches: []\n"}, {}),
    "the image": (SPACE.replace("i:1", "i:2", 1), {}, {"a": "3 points changed, the first a--8k1k--tp8--c4"}),
    "a concurrency": (
        SPACE.replace("64]", "64, 80]"), {}, {"a": "1 point added, the first a--8k1k--tp8--c80"},
    ),
    "a point went": (SPACE.replace(", 64]", "]"), {}, {"a": "1 point removed, the first a--8k1k--tp8--c64"}),
    "a new config": (SPACE + single("b"), {}, {"b": "it is new, with 3 points"}),
    "a recipe": (
        SPACE, {"configs/recipes/r.yaml": RECIPE.replace("name: r", "name: s")},
        {"m": "2 points changed, the first m--8k1k--1p-tp8-1d-tp8--c4--override_a"},
    ),
    "one variant of a recipe": (
        SPACE, {"configs/recipes/r.yaml": RECIPE.replace('"8"', '"9"')},
        {"m": "1 point changed, the first m--8k1k--1p-tp8ep8-1d-tp8--c8--override_b"},
    ),
}  # fmt: skip


def pair(folder: Path, after: str, files: dict[str, str]) -> tuple[Workspace, Workspace]:
    return workspace(folder / "head", after, **files), workspace(folder / "base", SPACE)


@pytest.mark.parametrize(("after", "files", "wanted"), CHANGES.values(), ids=CHANGES)
def test_what_counts_as_a_change(tmp_path: Path, after: str, files: dict[str, str], wanted: dict[str, str]) -> None:
    assert changed_configs(*pair(tmp_path, after, files)) == wanted


@pytest.mark.parametrize(("after", "files", "wanted"), CHANGES.values(), ids=CHANGES)
def test_a_change_wants_an_entry(tmp_path: Path, after: str, files: dict[str, str], wanted: dict[str, str]) -> None:
    head, base = pair(tmp_path, after, files)
    _, verdict = check(BASE, BASE, PR)
    _, findings = plan_change(verdict, head, base)
    assert [finding.rule for finding in findings] == ["changelog-uncovered"] * len(wanted)
    if wanted:
        (key,) = wanted
        assert findings[0].fix == f"add {key} to the config-keys of a new entry"
        _, findings = planned(head, of(key), base=base)
        assert not findings


def test_a_deliberate_exception(tmp_path: Path) -> None:
    head, base = pair(tmp_path, SPACE.replace("i:1", "i:2", 1), {})
    _, verdict = check(BASE, added(of("m")), PR)
    for waivers, rules in (
        ([], ["changelog-uncovered"]),
        ([("a*", "rebuilt, same bytes")], []),
        ([("b", "x")], ["changelog-uncovered"]),
    ):
        _, findings = plan_change(verdict, head, base, waivers=waivers)
        assert [finding.rule for finding in findings] == rules


def test_a_golden_length_is_part_of_what_runs(tmp_path: Path, root: Path) -> None:
    """The shipped curve of the shipped DSpark config."""
    key = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark"
    for side in ("base", "head"):
        copytree(root / "configs", tmp_path / side / "configs")
    curve = tmp_path / "head" / "configs" / "golden" / "dsv4-pro-0813-dspark.yaml"
    curve.write_text(curve.read_text(encoding="utf-8").replace("3.01", "3.02"), encoding="utf-8")
    head, base = (open_workspace(str(tmp_path / side)) for side in ("head", "base"))
    changed = changed_configs(head, base)
    assert list(changed) == [key]
    assert changed[key].startswith("5 points changed")
