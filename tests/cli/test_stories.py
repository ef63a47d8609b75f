"""Failure stories that people told in public, as far as `expand` answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.support import cli

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.support import Outcome


@pytest.fixture
def cases(shared: Path) -> Path:
    return shared / "cases"


def expand(folder: Path, name: str, *flags: str) -> Outcome:
    words = ("expand", "--format", "json", "--config", str(folder / name), "--runners", str(folder / "R.yaml"))
    return cli(*words, *flags)


def test_lists_and_ranges_expand_on_every_path(cases: Path) -> None:
    outcome = expand(cases / "C01", "X.yaml")
    assert [(row["tp"], row["conc"]) for row in outcome.rows] == [
        (8, 1), (8, 2), (8, 4), (8, 32), (4, 4), (4, 8), (4, 16), (4, 32), (4, 48),
    ]  # fmt: skip
    keys = ",".join(dict.fromkeys(row["config-key"] for row in outcome.rows))
    assert expand(cases / "C01", "X.yaml", "--config-keys", keys).out == outcome.out


def test_a_config_pasted_twice_loses_no_points(cases: Path) -> None:
    outcome = expand(cases / "C03", "X.yaml")
    assert (outcome.status, outcome.out) == (1, "")
    assert f"{cases}/C03/X.yaml:15:1: yaml-duplicate-key: the key beta-fp4-mi355x-sglang " in outcome.err
    assert "(lines 1 and 15)" in outcome.err


def test_a_field_pasted_twice_is_refused_and_a_merge_is_none(cases: Path) -> None:
    twice = expand(cases / "C04", "X_dup.yaml")
    assert (twice.status, twice.out) == (1, "")
    assert "the key tp is set twice" in twice.err
    merged = expand(cases / "C04", "X_merge.yaml")
    assert (merged.status, merged.err) == (0, "")
    assert [(row["model"], row["precision"], row["tp"], row["conc"], row["isl"]) for row in merged.rows] == [
        ("org/Beta", "fp4", 8, 1, 1024),
        ("org/Gamma", "fp8", 8, 1, 1024),
    ]


def test_evals_are_picked_exactly(cases: Path) -> None:
    rows = expand(cases / "C06", "X.yaml", "--evals-only").rows
    assert all((row["isl"], row["osl"], row["eval-only"]) == (8192, 1024, True) for row in rows)
    assert [(row["tp"], row["conc"]) for row in rows if "tp" in row] == [(8, 32), (8, 64), (4, 32)]
    assert [(row["prefill"]["tp"], row["eval-conc"]) for row in rows if "prefill" in row] == [(8, 256)]


def test_picks_do_not_depend_on_the_order_of_a_list(cases: Path, tmp_path: Path) -> None:
    text = (cases / "C06" / "X.yaml").read_text(encoding="utf-8")
    assert "[8, 256, 64]" in text

    def picks(concs: str) -> list[Any]:
        (tmp_path / "X.yaml").write_text(text.replace("[8, 256, 64]", concs), encoding="utf-8")
        (tmp_path / "R.yaml").write_bytes((cases / "C06" / "R.yaml").read_bytes())
        return [row.get("eval-conc") for row in expand(tmp_path, "X.yaml", "--evals-only").rows]

    assert picks("[8, 256, 64]") == picks("[256, 64, 8]") == picks("[8, 64, 256]")


@pytest.mark.parametrize(("name", "written"), [("X_off.yaml", "off"), ("X_version.yaml", "1.10")])
def test_a_word_that_yaml_takes_for_something_else_is_shown_as_written(cases: Path, name: str, written: str) -> None:
    outcome = expand(cases / "C11", name)
    assert (outcome.status, outcome.out) == (1, "")
    (line,) = outcome.err.splitlines()
    assert f" {written}" in line
    assert "quote it" in line


def test_an_unquoted_version_is_refused_also_where_nothing_is_lost(cases: Path, tmp_path: Path) -> None:
    text = (cases / "C11" / "X_version.yaml").read_text(encoding="utf-8")
    (tmp_path / "X.yaml").write_text(text.replace("1.10", "1.1"), encoding="utf-8")
    (tmp_path / "R.yaml").write_bytes((cases / "C11" / "R.yaml").read_bytes())
    assert expand(tmp_path, "X.yaml").status == 1


def test_a_trimmed_sweep_has_one_lowest_point_for_each_topology(cases: Path) -> None:
    rows = expand(cases / "C13", "X.yaml", "--trim-conc", "--no-evals").rows
    assert [(row.get("isl", "agentic"), row["conc"]) for row in rows] == [(8192, [4]), ("agentic", [1])]


def test_many_points_are_never_cut(cases: Path) -> None:
    assert len(expand(cases / "C57", "X.yaml").rows) == 257
    assert len(set(expand(cases / "C57", "X.yaml", "--format", "ids").out.splitlines())) == 257
