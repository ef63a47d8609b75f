"""``matrix expand`` on the command line: formats, exit statuses, what goes to which stream."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from matrix.report.findings import MOST_PER_RULE
from tests.cli.support import HEAD, MASTER, ROOT, RUNNERS, cli, environment, process, repository

SPACE = f"""\
alpha-fp8-mi355x-sglang:
  {{{HEAD}, runner: mi355x, multinode: false, scenarios: {{
    fixed-seq-len: [{{isl: 8192, osl: 1024, search-space: [
      {{tp: 8, conc-start: 4, conc-end: 64}},
      {{tp: 4, ep: 4, dp-attn: true, spec-decoding: mtp, conc-list: [1]}}]}}]}}}}
delta-fp8-mi355x-atom-disagg:
  {{{HEAD.replace("sglang", "atom-disagg")}, runner: 'cluster:mi355x-a', multinode: true, disagg: true,
    kv-p2p-transfer: nixl, scenarios: {{
    fixed-seq-len: [{{isl: 1024, osl: 1024, search-space: [
      {{conc-list: [16, 32], prefill: &w {{num-worker: 1, tp: 8, ep: 1, dp-attn: false}}, decode: *w}}]}}],
    agentic-coding: [{{dram-utilization: 0.5, search-space: [
      {{conc-list: [16], spec-decoding: draft_model, prefill: *w, decode: *w,
        kv-offloading: dram, kv-offload-backend: {{name: lmcache}}}}]}}]}}}}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a small repository."""
    folder = repository(tmp_path / "repo")
    monkeypatch.chdir(folder)
    return folder


# -- formats -----------------------------------------------------------------------------------------------------------


def test_json_is_one_array_of_rows() -> None:
    outcome = cli("expand", "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    assert [(row["id"], row["conc"], row["run-eval"]) for row in outcome.rows] == [
        ("alpha--8k1k--tp8--c4", 4, False),
        ("alpha--8k1k--tp8--c16", 16, True),
    ]
    assert outcome.out.endswith("]\n")


def test_jsonl_is_a_row_a_line() -> None:
    outcome = cli("expand", "--format", "jsonl")
    lines = outcome.out.splitlines()
    assert [json.loads(line) for line in lines] == cli("expand", "--format", "json").rows
    assert outcome.out.endswith("}\n")


def test_ids_are_an_id_a_line() -> None:
    assert cli("expand", "--format", "ids").out == "alpha--8k1k--tp8--c4\nalpha--8k1k--tp8--c16\n"


@pytest.mark.parametrize("count", [1, 511, 512, 513, 1025])
@pytest.mark.parametrize("style", ["json", "jsonl", "ids"])
def test_pieces_of_output_join_to_the_whole(here: Path, count: int, style: str) -> None:
    master = MASTER.replace("[4, 16]", str(list(range(1, count + 1))))
    (here / "configs" / "amd-master.yaml").write_text(master, encoding="utf-8")
    outcome = cli("expand", "--format", style, "--no-evals")
    if style == "json":
        found = [row["conc"] for row in outcome.rows]
    elif style == "jsonl":
        found = [json.loads(line)["conc"] for line in outcome.out.splitlines()]
    else:
        found = [int(line.rpartition("--c")[2]) for line in outcome.out.splitlines()]
    assert found == list(range(1, count + 1))


@pytest.mark.parametrize("style", ["json", "jsonl", "ids"])
def test_a_format_for_programs_imports_no_more_than_it_needs(here: Path, style: str) -> None:
    """What only tables, refusals and near names take; and what is slow of the standard library, without recipes."""
    always = {"tabulate", "jsonschema", "difflib", "github", "matrix.cli.complete", "matrix.config.schema"}
    for folder, unwanted in (
        (ROOT, {"matrix.report.findings", "matrix.report.text"}),
        (here, {"ast", "dis", "json", "hashlib", "pathlib", "matrix.findings"}),
    ):
        words = [sys.executable, "-X", "importtime", "-m", "matrix", "expand", "--format", style]
        told = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, check=True).stderr
        imported = {line.rpartition("|")[2].strip() for line in told.splitlines() if line.startswith("import time:")}
        assert {"click", "yaml", "matrix.points.pipeline"} <= imported
        assert imported & (always | unwanted) == set()


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """A repository with every kind of line that a table has."""
    return repository(tmp_path / "space", SPACE)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_table_fits_and_is_that_of_its_file(space: Path, width: int) -> None:
    """After a change: write what the command prints to the file, and look at the difference."""
    outcome = process("expand", cwd=space, COLUMNS=str(width))
    assert (outcome.status, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= width
    assert "…" not in outcome.out
    assert outcome.out == Path(__file__).with_name(f"table-{width}.txt").read_text(encoding="utf-8")


def test_a_table_is_the_default_also_where_there_is_no_terminal(space: Path) -> None:
    piped = process("expand", cwd=space)
    assert piped.out == process("expand", "--format", "table", cwd=space, COLUMNS="120").out
    assert "\x1b" not in piped.out


def test_a_table_that_is_too_narrow_is_cut_not_broken(space: Path) -> None:
    lines = process("expand", cwd=space, COLUMNS="50").out.splitlines()
    assert max(map(len, lines)) == 50
    assert any(line.endswith("…") for line in lines)


@pytest.mark.parametrize("style", ["json", "jsonl", "ids", "table"])
def test_no_format_is_coloured(space: Path, style: str) -> None:
    outcome = process("expand", "--format", style, cwd=space, FORCE_COLOR="1", TERM="xterm-256color")
    assert outcome.status == 0
    assert "\x1b" not in outcome.out + outcome.err


# -- exit statuses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--min-conc 5 --max-conc 4", "--min-conc 5 is above --max-conc 4"),
        ("--min-conc 0", "0 is not in the range x>=1"),
        ("--max-conc -3", "-3 is not in the range x>=1"),
        ("--max-tp 0", "0 is not in the range x>=1"),
        ("--max-ep 0", "0 is not in the range x>=1"),
        ("--conc 4,0", "0 is not in the range x>=1"),
        ("--conc four", "'four' is not a valid integer"),
        ("--conc 4,,8", "'4,,8' has an empty member"),
        ("--framework ,", "',' has an empty member"),
        ("--step-size 1", "1 is not in the range x>=2"),
        ("--scenario-type fixed", "'fixed' is not one of 'fixed-seq-len', 'agentic-coding'"),
        ("--format yaml", "'yaml' is not one of 'table', 'json', 'jsonl', 'ids'"),
        ("--no-evals --evals-only", "--no-evals does not go with --evals-only"),
        ("--no-evals --all-evals", "--no-evals does not go with --all-evals"),
        ("--smoke --trim-conc", "--smoke trims and evaluates by itself; it does not go with --trim-conc"),
        ("--smoke --all-evals", "it does not go with --all-evals"),
        ("--smoke --no-evals", "it does not go with --no-evals"),
        ("--fromat json", "No such option"),
        ("extra", "Got unexpected extra argument (extra)"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_2(flags: str, told: str) -> None:
    outcome = cli("expand", *flags.split())
    assert (outcome.status, outcome.out) == (2, "")
    assert told in outcome.err
    assert outcome.err.startswith("Usage: matrix expand")


def test_a_wrong_command_names_the_near_one() -> None:
    outcome = cli("expad")
    assert (outcome.status, outcome.out) == (2, "")
    assert "No such command 'expad'; did you mean expand?" in outcome.err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--min-conc 17", "nothing passes --min-conc"),
        ("--framework sglang --min-conc 17", "nothing passes --framework, --min-conc"),
        ("--runner-node-filter zz", "nothing passes --runner-node-filter"),
        ("--conc 4 --evals-only", "nothing passes --conc, --evals-only"),
        ("--conc 4 --seq-lens 1k1k", "nothing passes --seq-lens, --conc"),
        ("--multi-node", "nothing passes --multi-node"),
        ("--ids *--c5", "nothing passes --ids"),
    ],
)
def test_nothing_selected_is_3_and_says_what_left_nothing(flags: str, told: str) -> None:
    outcome = cli("expand", "--format", "ids", *flags.split())
    assert (outcome.status, outcome.out) == (3, "")
    assert f"matrix: no point is selected; {told}\n" in outcome.err


@pytest.mark.parametrize(("style", "out"), [("json", "[]\n"), ("jsonl", ""), ("ids", ""), ("table", "")])
def test_nothing_selected_may_be_fine(style: str, out: str) -> None:
    outcome = cli("expand", "--format", style, "--min-conc", "17", "--allow-empty")
    assert (outcome.status, outcome.out) == (0, out)
    assert "no point is selected" in outcome.err
    assert json.loads(outcome.out or "[]") == []


def test_a_master_without_points(here: Path) -> None:
    empty = re.sub(r"search-space: \[.*\]\}\]", "search-space: []}]", MASTER)
    (here / "configs" / "amd-master.yaml").write_text(empty, encoding="utf-8")
    outcome = cli("expand")
    assert (outcome.status, outcome.out) == (3, "")
    assert "the master configs hold none" in outcome.err


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags", ["--conc 4,16", "--conc 4 --conc 16", "--conc=4 --conc 16,4", "--conc 16,4", "--framework sglang,sglang"]
)
def test_words_are_repeated_or_separated_by_commas(flags: str) -> None:
    assert cli("expand", "--format", "ids", *flags.split()).out.count("\n") == 2


def test_files_are_named_or_found(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(MASTER.replace("alpha", "beta"), encoding="utf-8")
    both = cli("expand", "--format", "ids", "--config", "configs/amd-master.yaml", "--config", str(other))
    assert [line.split("--")[0] for line in both.out.splitlines()] == ["alpha", "alpha", "beta", "beta"]
    only = cli("expand", "--format", "ids", "--config", str(other))
    assert [line.split("--")[0] for line in only.out.splitlines()] == ["beta", "beta"]
    turned = cli("expand", "--format", "ids", "--config", str(other), "--config", "configs/amd-master.yaml")
    assert [line.split("--")[0] for line in turned.out.splitlines()] == ["beta", "beta", "alpha", "alpha"]


def test_runners_are_named_or_found(tmp_path: Path) -> None:
    other = tmp_path / "r.yaml"
    other.write_text(RUNNERS.replace("mi355x-a_01", "extra_00"), encoding="utf-8")
    flags = ("expand", "--format", "ids", "--runner-node-filter", "extra", "--conc", "4")
    assert cli(*flags).status == 3
    assert cli(*flags, "--runners", str(other)).out == "alpha--8k1k--tp8--c4--on-extra_00\n"


def test_recipe_roots_are_named_or_found(here: Path, tmp_path: Path) -> None:
    entry = "srt-recipe: 'recipes/a.yaml', tp: 8"
    (here / "configs" / "amd-master.yaml").write_text(MASTER.replace("tp: 8", entry), encoding="utf-8")
    recipe = "schema: 2\nroles: {agg: {nodes: 1}}\n"
    no_root = cli("expand", "--format", "ids")
    assert "warning: recipe-root: no recipe root was found: 1 recipe" in no_root.err
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.yaml").write_text(recipe, encoding="utf-8")
    named = cli("expand", "--format", "json", "--recipes", str(here), "--recipes", str(tmp_path / "more"))
    assert (named.err, named.status) == ("", 0)
    (here / "configs" / "recipes").mkdir()
    found = cli("expand", "--format", "json")
    assert "configs/amd-master.yaml:3:56: warning: recipe-missing: the recipe a.yaml does not exist." in found.err
    (here / "configs" / "recipes" / "a.yaml").write_text(recipe, encoding="utf-8")
    assert cli("expand", "--format", "json").rows[0]["digest"] == named.rows[0]["digest"] != found.rows[0]["digest"]


def test_what_a_filter_did_not_look_at_is_counted(space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(space)
    outcome = cli("expand", "--format", "ids", "--max-tp", "4", "--seq-lens", "1k1k,8k1k")
    assert outcome.out.count("\n") == 3
    assert outcome.err.splitlines() == [
        "matrix: --seq-lens looks at fixed-length points only; 1 other point is listed unfiltered",
        "matrix: --max-tp looks at single-node fixed-length points only; 2 other points are listed unfiltered",
    ]


def test_warnings_are_told_and_stdout_is_the_result(here: Path) -> None:
    (here / "configs" / "amd-master.yaml").write_text(
        MASTER.replace("runner: mi355x", "runner: mi356x"), encoding="utf-8"
    )
    outcome = cli("expand", "--format", "ids")
    assert outcome.status == 0
    assert outcome.out.count("\n") == 2
    assert outcome.err.startswith(
        "configs/amd-master.yaml:2:90: warning: runner-unknown: alpha: configs/runners.yaml has no"
    )
    assert outcome.err.count("\n") == 1


def test_a_repeated_point_is_told_once(here: Path) -> None:
    (here / "configs" / "amd-master.yaml").write_text(MASTER.replace("[4, 16]", "[4, 16, 4, 4]"), encoding="utf-8")
    outcome = cli("expand", "--format", "ids", "--smoke")
    assert outcome.status == 0
    assert outcome.err.count("point-duplicate") == 1


def test_two_jobs_under_one_id_are_refused_with_both_lines(space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(space)
    worker = "{num-worker: 1, tp: 8, ep: 1, dp-attn: false, additional-settings: [A=%s]}"
    entries = ", ".join(f"\n{{conc-list: [4], prefill: {worker % name}, decode: {worker % name}}}" for name in "xy")
    block = f"{{isl: 1, osl: 1, search-space: [{entries}]}}"
    serving = "multinode: true, disagg: true, kv-p2p-transfer: nixl"
    text = f"k: {{{HEAD}, runner: 'cluster:mi355x-a', {serving}, scenarios: {{fixed-seq-len: [{block}]}}}}"
    (space / "c.yaml").write_text(text, encoding="utf-8")
    outcome = cli("expand", "--config", "c.yaml")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("c.yaml:3:1: point-conflict: k--1-1--1p-tp8-1d-tp8--c4 names two different jobs;")
    assert "(c.yaml:2:1: first here)" in outcome.err


def test_many_findings_of_one_rule_are_counted(here: Path) -> None:
    many = "".join(MASTER.replace("alpha", f"a{number}").replace("runner: mi355x", "runner: x") for number in range(70))
    (here / "configs" / "amd-master.yaml").write_text(many, encoding="utf-8")
    lines = cli("expand", "--format", "ids").err.splitlines()
    assert len(lines) == MOST_PER_RULE + 1
    assert lines[-1] == "warning: runner-unknown: 20 more like these"


# -- the shipped repository --------------------------------------------------------------------------------------------

SEED = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark"


def test_the_five_rows_of_the_first_atom_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    rows = cli("expand", "--config-keys", SEED, "--format", "json").rows
    assert [(row["conc"], row["total-cpu-dram-gb"], row["node-count"], row["run-eval"]) for row in rows] == [
        ([1], 0, 2, False),
        ([16], 0, 2, True),
        ([64], 0, 2, False),
        ([128], 0, 2, True),
        ([256], 1499, 2, True),
    ]
    assert [row["exp-name"] for row in rows][::4] == [
        "dsv4_p1x8_d1x8_conc1",
        "dsv4_p1x8dpa_d1x8dpa_conc256_kvdram-lmcache",
    ]


def test_variants_of_one_recipe_trim_as_one_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """Difference 7."""
    monkeypatch.chdir(ROOT)
    rows = cli("expand", "--config-keys", SEED, "--format", "json", "--trim-conc", "--no-evals").rows
    assert [row["conc"] for row in rows] == [[1], [64], [256]]


def test_help_names_every_option() -> None:
    outcome = cli("expand", "--help")
    assert (outcome.status, outcome.err) == (0, "")
    for option in ("--config-keys", "--ids", "--runner-node-filter", "--smoke", "--golden", "--allow-empty"):
        assert option in outcome.out
