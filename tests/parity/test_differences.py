"""One test for each number of docs/differences.md: the example of the page, exactly."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from matrix.errors import RefusedError
from tests.cli.support import cli
from tests.points.support import (
    FLEET,
    config,
    dram,
    errors,
    expanded,
    ids,
    recipe,
    roles,
    rows,
    rules,
    sized,
    tails,
    warnings,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
SEED = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark"


def evaluated(text: str, *flags: str) -> list[Any]:
    return [(row.get("tp"), row["conc"]) for row in rows(text, flags=flags) if row["run-eval"]]


def refused(text: str, rule: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        expanded(text)
    assert [finding.rule for finding in refusal.value.findings] == [rule]


def test_01_filters_only_remove_points() -> None:
    assert ids(config(fixed=["tp: 8, conc-list: [16, 64]"]), flags=["--max-conc", "5"]) == []
    ladder = config(fixed=["tp: 8, conc-start: 4, conc-end: 64"])
    bounds = ["--min-conc", "6", "--max-conc", "40"]
    assert [row["conc"] for row in rows(ladder, flags=bounds)] == [8, 16, 32]
    wide = config(fixed=["tp: 8, ep: 4, conc-list: [1]", "tp: 8, conc-list: [1]"])
    assert tails(wide, flags=["--max-ep", "2"]) == ["tp8--c1"]


def test_01_what_a_filter_does_not_look_at_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = config(fixed=["tp: 8, conc-list: [1]"], agentic=["tp: 8, kv-offloading: none, conc-list: [1]"])
    (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "r.yaml").write_text(FLEET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    outcome = cli("expand", "--config", "m.yaml", "--runners", "r.yaml", "--format", "ids", "--max-tp", "4")
    assert outcome.out == "k--agentic--tp8--c1\n"
    assert outcome.err == (
        "matrix: --max-tp looks at single-node fixed-length points only; 1 other point is listed unfiltered\n"
    )


def test_02_model_prefix_means_the_model_prefix() -> None:
    text = config(fixed=["tp: 8, conc-list: [1]"], prefix="dsr1")
    assert len(ids(text, flags=["--model-prefix", "dsr1"])) == 1
    assert ids(text, flags=["--model-prefix", "k"]) == []
    assert len(ids(text, flags=["--config-keys", "k*"])) == 1


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("tp: '8'", "wrong-type"),
        ("tp: 8.0", "wrong-type"),
        ("tp: 8, dp-attn: 'yes'", "wrong-type"),
        ("tp: 8, dp-attn: off", "yaml-word"),
        ("tp: 010", "yaml-number"),
        ("tp: 1:30", "yaml-number"),
        ("tp: 8, router: {name: r, version: 1.10}", "wrong-type"),
        ("tp: 8, tp: 8", "yaml-duplicate-key"),
    ],
)
def test_03_values_are_what_they_look_like(entry: str, rule: str) -> None:
    refused(config(fixed=[f"{entry}, conc-list: [1]"]), rule)


def test_03_in_recipes_too() -> None:
    text = config(fixed=[f"{roles(recipe('r.yaml'))}, conc-list: [1]"], disagg=True)
    good = "schema: 2\nslurm: {time_limit: '04:00:00'}\nroles: {prefill: {nodes: 1}, decode: {nodes: 1}}\n"
    assert rules(expanded(text, recipes={"r.yaml": good})) == []
    (finding,) = errors(expanded(text, recipes={"r.yaml": good.replace("'", "")}))
    assert (finding.rule, "yaml-number: 04:00:00" in finding.message) == ("recipe-yaml", True)


def test_04_an_unknown_label_is_a_warning() -> None:
    expansion = expanded(config(fixed=["tp: 8, conc-list: [1, 2]", "tp: 4, conc-list: [1]"], runner="mi399x"))
    assert [finding.rule for finding in warnings(expansion)] == ["runner-unknown"]
    assert (len(list(expansion.points)), errors(expansion)) == (3, [])
    needs = config(agentic=[f"tp: 8, {dram('b')}, conc-list: [1]"], utilization="0.5", runner="cluster:mi399x-a")
    assert [finding.rule for finding in errors(expanded(needs))] == ["hardware-missing"]
    counts = config(fixed=[f"{roles()}, conc-list: [1]"], disagg=True, runner="mi399x")
    assert [finding.rule for finding in errors(expanded(counts))] == ["hardware-missing"]


def test_05_an_id_is_one_job() -> None:
    assert rules(expanded(config(fixed=["tp: 8, conc-list: [4, 4]"]))) == ["point-duplicate"]
    assert ids(config(fixed=["tp: 8, conc-list: [4, 4]"])) == ["k--8k1k--tp8--c4"]
    twice = expanded(config(fixed=["tp: 8, conc-list: [4]", "tp: 8, conc-list: [4]"]))
    assert [point.id for point in twice.points] == ["k--8k1k--tp8--c4"]
    (finding,) = warnings(twice)
    assert finding.span is not None
    assert (finding.span.line, finding.related[0].span.line) == (5, 4)
    entries = [f"{roles(f'additional-settings: [A={name}]')}, conc-list: [4]" for name in "xy"]
    assert rules(expanded(config(fixed=entries, disagg=True))) == ["point-conflict"]


def test_06_no_topology_loses_its_accuracy_run() -> None:
    text = config(
        agentic=[f"{sizes}, kv-offloading: none" for sizes in ("tp: 8, conc-list: [1, 8]", "tp: 4, conc-list: [2, 8]")]
    )
    assert evaluated(text) == [(8, 8), (4, 8)]
    several = config(agentic=[f"{roles(size)}, conc-list: [1, 8]" for size in ("", "tp: 4")], disagg=True)
    assert evaluated(several) == [(None, [8]), (None, [8])]


def seed(monkeypatch: pytest.MonkeyPatch, *flags: str) -> Sequence[dict[str, Any]]:
    monkeypatch.chdir(ROOT)
    return cli("expand", "--config-keys", SEED, "--format", "json", *flags).rows


def test_07_variants_of_one_recipe_file_are_one_family(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row["conc"] for row in seed(monkeypatch, "--trim-conc")] == [[1], [64], [256]]
    assert [row["eval-conc"] for row in seed(monkeypatch) if row["run-eval"]] == [16, 128, 256]
    assert len(seed(monkeypatch)) == 5


def test_08_both_shapes_of_aggregated_serving() -> None:
    old = config(fixed=[f"{roles(counts=(2, 0))}, conc-list: [4]"], multinode=True)
    new = config(fixed=[f"worker: {sized('', 2)}, num-nodes: 2, conc-list: [4]"], multinode=True)
    assert rows(old) == rows(new)
    assert rows(old)[0]["node-count"] == 2


def test_13_evals_do_not_push_each_other_out() -> None:
    entries = ["tp: 8, kv-offloading: none, conc-list: [8]", f"tp: 8, {dram('b')}, conc-list: [8]"]
    text = config(agentic=entries, utilization="0.5", prefix="kimik3")
    own = [row["id"] for row in rows(text, flags=["--evals-only"]) if row["eval-framework"] == "kimi-vendor"]
    assert own == ["k--agentic--tp8--c8--eval-kimi-vendor", "k--agentic--tp8-kvdram-b--c8--eval-kimi-vendor"]


@pytest.mark.parametrize(
    ("concs", "rule"),
    [
        ("conc-list: [], conc-start: 1, conc-end: 4", "empty-value"),
        ("conc-list: [4], conc-start: 1", "conc-both-forms"),
    ],
)
def test_14_one_reading_of_concurrencies(concs: str, rule: str) -> None:
    refused(config(fixed=[f"tp: 8, {concs}"]), rule)


def test_14_one_expand_for_two_commands() -> None:
    text = config(fixed=["tp: 8, conc-list: [1, 2]"], runner="mi355x")
    nodes = rows(text, flags=["--runner-node-filter", "mi355x", "--conc", "1"])
    assert [row["runner"] for row in nodes] == ["mi355x-a_00", "mi355x-a_01", "mi355x-b_00"]
    assert [row["conc"] for row in rows(text, flags=["--exp-names", "m_8k1k"])] == [1, 2]
    two = (text.replace("k:", "a:", 1), text.replace("k:", "b:", 1))
    keys = [row["config-key"] for row in rows(*two, flags=["--config-keys", "b", "--config-keys", "a", "--conc", "1"])]
    assert keys == ["a", "b"]
    accuracy = config(fixed=[f"{roles()}, conc-list: [16]"], disagg=True)
    (row,) = rows(accuracy, flags=["--all-evals", "--trim-conc"])
    marks = ["eval-framework", "eval-suite", "eval-conc", "eval-all-concs", "eval-only"]
    assert [key for key in row if key in marks] == marks


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        ("--max-conc 0", 2),
        ("--min-conc 0", 2),
        ("--max-tp 0", 2),
        ("--min-conc 999999", 3),
        ("--min-conc 999999 --allow-empty", 0),
    ],
)
def test_15_exit_statuses_tell_apart_what_happened(flags: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    outcome = cli("expand", "--format", "ids", *flags.split())
    assert (outcome.status, outcome.out) == (status, "")


ZIP = """\
base: {schema: 2, roles: {prefill: {nodes: 1}, decode: {nodes: 1}}}
zip_override_p: {roles: {prefill: {nodes: [2, 6]}}}
"""
SCHEMA_1 = """\
backend: {type: sglang}
resources: {prefill_nodes: 5, decode_nodes: 2}
"""


@pytest.mark.parametrize(
    ("name", "text"), [("x.yaml:zip_override_p[1]", ZIP), ("x.yaml", SCHEMA_1)], ids=["zip", "schema 1"]
)
def test_16_every_selector_leads_to_its_recipe(name: str, text: str) -> None:
    space = config(fixed=[f"{roles(recipe(name))}, conc-list: [1]"], disagg=True)
    assert [row["node-count"] for row in rows(space, recipes={"x.yaml": text})] == [7]


def test_17_trim_and_smoke_leave_complete_rows() -> None:
    (row,) = rows(config(fixed=["tp: 8, conc-list: [4, 16, 64]"]), flags=["--trim-conc"])
    assert (row["conc"], row["run-eval"], row["eval-framework"], row["eval-suite"]) == (4, True, "lm-eval", "")
    vendor = config(agentic=["tp: 8, kv-offloading: none, conc-list: [1, 8]"], prefix="kimik3")
    assert tails(vendor, flags=["--all-evals", "--trim-conc"]) == ["tp8--c1--eval-kimi-vendor", "tp8--c1--eval"]
    assert tails(vendor, flags=["--smoke"]) == ["tp8--c1", "tp8--c1--eval-kimi-vendor", "tp8--c8--eval"]


def test_the_page_and_these_tests_have_the_same_numbers() -> None:
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    sections = [int(number) for number in re.findall(r"^## (\d+)\. ", page, flags=re.MULTILINE)]
    tests = {int(name.split("_")[1]) for name in globals() if re.match(r"test_\d\d_", name)}
    assert sections == sorted(tests)
