"""``matrix show``: the row with its places, the recipe, and what the cluster is told."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import click
import pytest

from matrix.cli import main
from matrix.cli.main import run
from matrix.config.source import loads
from tests.cli.support import cli

ROOT = Path(__file__).parents[2]
KEY = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark"
VARIANTS = {
    "1p-tp8-1d-tp8--c1--override_tp8_c1": 1,
    "1p-tp8-1d-tp8--c16--override_tp8_c16": 16,
    "1p-tp8dpa-1d-tp8dpa--c64--override_dpa8_c64": 64,
    "1p-tp8dpa-1d-tp8dpa--c128--override_dpa8_c128": 128,
    "1p-tp8dpa-1d-tp8dpa--c256--override_dpa8_c256_lmcache": 256,
}
C16 = f"{KEY}--agentic--1p-tp8-1d-tp8--c16--override_tp8_c16"


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "120")


def matrix(*words: str) -> int:
    command: click.Command = main.matrix
    return run(command, words, prog="matrix")


@pytest.mark.parametrize(("tail", "conc"), VARIANTS.items())
def test_a_throughput_run_is_told_the_golden_length_on_both_roles(
    tail: str, conc: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert matrix("show", f"{KEY}--agentic--{tail}", "--commands") == 0
    printed = capsys.readouterr().out
    assert printed.count("--spec-decode-acceptance-length 3.01") == 2
    assert re.findall(r"^# (\w+)-0: ", printed, flags=re.MULTILINE) == ["prefill", "decode", "router"]
    assert f"CONC={conc} " in printed


@pytest.mark.parametrize("tail", VARIANTS)
def test_an_accuracy_run_is_told_none(tail: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert matrix("show", f"{KEY}--agentic--{tail}", "--commands", "--eval") == 0
    printed = capsys.readouterr().out
    assert "acceptance" not in printed
    assert printed.count("--num-speculative-tokens 3") == 2


def test_commands_are_the_recipe_s_own_plus_the_length(capsys: pytest.CaptureFixture[str]) -> None:
    matrix("show", C16, "--commands")
    told = capsys.readouterr().out
    matrix("show", C16, "--commands", "--eval")
    bare = capsys.readouterr().out
    added = [line for line in told.splitlines() if line not in bare.splitlines()]
    assert [line.strip(" \\") for line in added] == ["--spec-decode-acceptance-length 3.01"] * 2


def test_every_value_has_the_line_that_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert matrix("show", C16, "--format", "json") == 0
    record = json.loads(capsys.readouterr().out)
    row, sources = record["row"], record["sources"]
    for field in ("image", "model", "precision", "framework", "runner", "spec-decoding"):
        place, line, column = sources[field]["places"][0].rsplit(":", 2)
        text = (ROOT / place).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        assert text[int(column) - 1 :].startswith(row[field]), field
    place, line, _ = sources["prefill.tp"]["places"][0].rsplit(":", 2)
    assert "tp: 8" in (ROOT / place).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert record["recipe"]["benchmark"]["env"]["CONC"] == "16"


def test_a_computed_value_says_what_it_is_made_of(capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{KEY}--agentic--1p-tp8dpa-1d-tp8dpa--c256--override_dpa8_c256_lmcache"
    matrix("show", name, "--format", "json")
    sources = json.loads(capsys.readouterr().out)["sources"]
    budget = sources["total-cpu-dram-gb"]
    assert [place.split(":")[0] for place in budget["places"]] == ["configs/amd-master.yaml", "configs/runners.yaml"]
    assert "dram-utilization" in budget["note"]
    assert sources["prefill.pp"] == {"places": [], "note": "default"}
    assert sources["node-count"]["places"][0].startswith("configs/recipes/dsv4/atom/mi355x-fp4/agentx/")


def test_an_accuracy_run_is_found_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert matrix("show", f"{C16}--eval", "--format", "json") == 0
    row = json.loads(capsys.readouterr().out)["row"]
    assert row["id"] == f"{C16}--eval"
    assert row["eval-only"] is True
    assert row["eval-conc"] == 16


def test_a_point_on_one_node_is_found_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert matrix("show", f"{C16}--on-mi355x-amds_00", "--format", "json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["row"]["runner"] == "mi355x-amds_00"
    assert record["sources"]["runner"]["note"] == "a node of the label"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (C16.replace("c16--", "c17--"), f"did you mean {C16}"),
        (f"x{C16}", f"did you mean {KEY}"),
        ("nonsense", "no config key"),
    ],
)
def test_an_unknown_id_names_the_near_ones(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert matrix("show", name) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "point-unknown" in captured.err
    assert hint in captured.err


def test_commands_need_a_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "recipes").mkdir()
    assert matrix("show", C16, "--commands", "--recipes", str(tmp_path / "recipes")) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "recipe-missing" in captured.err
    assert "--recipes DIR" in captured.err


def test_the_recipe_shown_is_one_that_our_loader_reads(capsys: pytest.CaptureFixture[str]) -> None:
    matrix("show", C16)
    printed = capsys.readouterr().out
    shown = textwrap.dedent(printed.split("\n\n", 2)[2])
    matrix("show", C16, "--format", "json")
    assert loads(shown.encode(), "shown.yaml").root == json.loads(capsys.readouterr().out)["recipe"]
    assert "time_limit: '08:00:00'" in shown


def test_most_values_have_their_origin_beside_them_also_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: dict[int, list[str]] = {}
    for width in (80, 120, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        lines[width] = cli("show", C16).out.partition("\nresolved recipe")[0].splitlines()
    for width, shown in lines.items():
        alone = [line for line in shown if line.startswith(" ")]
        assert len(alone) < len(shown) / 3, width
        assert all(len(line) <= width for line in shown if "  # " in line and not line.startswith(" "))
