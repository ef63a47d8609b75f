"""Every answer about a search space is acted on: the named edit is done, and the same question is asked again.

The points are all shipped ones, and a sample of two real masters. Each is taken out as `why` says and brought back as
`why-not` says; points that an option left out are brought back by the option that `why-not` names.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from matrix.answers.absence import absence_of
from matrix.answers.edit import Action
from matrix.answers.presence import presence_of
from matrix.answers.space import Space
from matrix.points.request import Request
from matrix.workspace import open_workspace
from tests.answers.edits import edit_of, edited, rewritten
from tests.cli.support import HEAD, RUNNERS, cli, repository

if TYPE_CHECKING:
    from matrix.points.point import Point

ROOT: Final = Path(__file__).parents[2]
SHIPPED: Final = [config.key for config in open_workspace(str(ROOT)).configs]
SAMPLE: Final = 20
"""Of 1,820 points; each costs two readings of its master."""


def space_of(key: str) -> Space:
    """The points of one config of the working directory."""
    workspace = open_workspace()
    return Space(workspace._replace(configs=tuple(one for one in workspace.configs if one.key == key)), Request())


def round_trip(point: Point, space: Space) -> str:
    """Take a point out, bring it back; the cause that was told in between."""
    name, key = point.id, point.deployment.config.key
    master = Path(point.deployment.config.document.name)
    whole = master.read_text(encoding="utf-8")
    try:
        without = presence_of(point, space).without
        assert without is not None
        gone = edited(whole, without)
        master.write_text(gone, encoding="utf-8")
        after = space_of(key)
        assert name not in after.selected
        answer = absence_of(name, after)
        assert not answer.declared
        cause = answer.causes[0]
        if cause.rule == "config-key":
            # The config went with its last point, and those of other keys are what it can be made like.
            answer = absence_of(name, Space(open_workspace(), Request()))
            cause = answer.causes[0]
        else:
            assert answer.near[0].id.partition("--")[0] == key
        (edit,) = cause.edits
        master.write_text(edited(gone, edit), encoding="utf-8")
        back = space_of(key)
        assert name in back.selected
        assert back.selected[name].deployment.topology == point.deployment.topology
        return cause.rule
    finally:
        master.write_text(whole, encoding="utf-8")


@pytest.mark.parametrize("key", SHIPPED)
def test_every_shipped_point_goes_and_comes_as_told(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    space = space_of(key)
    points = [point for point in space.whole.values() if not point.eval_only]
    told = [round_trip(point, space) for point in points]
    alone = {"config-key"} if len(points) == 1 else {"entry", "concurrency"}
    assert points
    assert set(told) <= alone


def test_points_of_real_masters_go_and_come_as_told(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "configs").mkdir()
    for name in ("amd-master.yaml", "nvidia-master.yaml", "runners.yaml"):
        (tmp_path / "configs" / name).write_bytes((shared / "data" / "masters" / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    space = Space(open_workspace(), Request())
    points = [point for point in space.whole.values() if not point.eval_only]
    told = [round_trip(point, space) for point in points[:: len(points) // SAMPLE]]
    assert {"concurrency", "entry"} <= set(told)


# -- the spellings of a list of concurrencies --------------------------------------------------------------------------

SPELLINGS: Final = {
    "flow": ("{tp: 8, conc-list: [4, 16]}", "write"),
    "a block": ("\n          tp: 8\n          conc-list:\n            - 4\n            - 16\n", "add"),
    "a range": ("{tp: 8, conc-start: 4, conc-end: 16}", "write"),
    "a range, the end first": ("{conc-end: 16, conc-start: 4, tp: 8}", "write"),
    "a range in a block": ("\n          conc-start: 4\n          conc-end: 16\n          tp: 8\n", "write"),
    "a range with a field between": ("{conc-start: 4, tp: 8, conc-end: 16}", "add"),
    "an alias": ("{tp: 8, conc-list: *ladder}", "write"),
}


def master(entry: str) -> str:
    dash = f"- {entry}" if entry.startswith("{") else f"-{entry}"
    return f"""\
beta:
  {{{HEAD}, runner: mi355x, multinode: false, scenarios: {{fixed-seq-len: [
    {{isl: 1024, osl: 1024, search-space: [{{tp: 8, conc-list: &ladder [4, 16]}}]}}]}}}}
alpha:
  image: i:1
  model: org/M
  model-prefix: m
  precision: fp8
  framework: sglang
  runner: mi355x
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
        {dash}
        - {{tp: 4, conc-list: [2]}}
"""


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_concurrency_is_added_however_the_list_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, action = SPELLINGS[name]
    monkeypatch.chdir(repository(tmp_path / "r", master(entry)))
    file = Path("configs/amd-master.yaml")
    for conc in (1, 5, 64):
        wanted = f"alpha--8k1k--tp8--c{conc}"
        answer = absence_of(wanted, space_of("alpha"))
        (edit,) = answer.causes[0].edits
        assert (answer.causes[0].rule, answer.declared) == ("concurrency", False)
        file.write_text(edited(file.read_text(encoding="utf-8"), edit), encoding="utf-8")
        assert {wanted, "alpha--8k1k--tp8--c4", "alpha--8k1k--tp8--c16"} <= set(space_of("alpha").selected)
        assert conc != 1 or edit.action == action
    assert len([one for one in space_of("beta").selected if "eval" not in one]) == 2


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_concurrency_is_removed_however_the_list_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", master(SPELLINGS[name][0])))
    file, space = Path("configs/amd-master.yaml"), space_of("alpha")
    answer = presence_of(space.whole["alpha--8k1k--tp8--c16"], space)
    assert answer.without is not None
    file.write_text(edited(file.read_text(encoding="utf-8"), answer.without), encoding="utf-8")
    left = set(space_of("alpha").selected)
    assert "alpha--8k1k--tp8--c16" not in left
    # Two lines that do not follow each other are not rewritten: the entry goes, and the answer says what goes with it.
    assert ("alpha--8k1k--tp8--c4" in left) == (answer.without.note == "")
    assert (name == "a range with a field between") == (answer.without.note == "takes concurrency 4 8 with it")


# -- options -----------------------------------------------------------------------------------------------------------

CLUSTERS: Final = RUNNERS.replace("clusters:", "  cluster:mi355x-b: [mi355x-b_00]\nclusters:").replace(
    "  mi355x-a: {", "  mi355x-b: {gpus-per-node: 8, available-cpu-dram-mib: 1471356}\n  mi355x-a: {"
)
SMALL: Final = f"""\
alpha:
  {{{HEAD}, runner: "cluster:mi355x-b", multinode: false, scenarios: {{
    fixed-seq-len: [{{isl: 8192, osl: 1024, search-space: [{{tp: 8, ep: 8, conc-list: [4, 16, 64]}}]}},
      {{isl: 1024, osl: 1024, search-space: [{{tp: 4, conc-list: [4, 16]}}]}}],
    agentic-coding: [{{search-space: [{{tp: 8, kv-offloading: none, conc-list: [4, 32]}}]}}]}}}}
beta:
  {{image: i:2, model: org/N, model-prefix: n, precision: fp4, framework: vllm-disagg, runner: "cluster:mi355x-a",
    multinode: true, disagg: true, kv-p2p-transfer: mori, scenarios: {{fixed-seq-len: [{{isl: 8192, osl: 1024,
    search-space: [{{conc-list: [8, 32, 128], prefill: {{num-worker: 1, tp: 8, ep: 1, dp-attn: false}},
      decode: {{num-worker: 1, tp: 8, ep: 1, dp-attn: false}}}}]}}]}}}}
"""
FIXED, TOP, AGENTIC = "alpha--8k1k--tp8ep8--c16", "alpha--8k1k--tp8ep8--c64", "alpha--agentic--tp8--c32"
SHORT, MANY = "alpha--1k1k--tp4--c16", "beta--8k1k--1p-tp8-1d-tp8--c8-32-128"
OPTIONS: Final = [
    (FIXED, "--config-keys beta"), (FIXED, "--config-keys b*,beta"), (FIXED, "--model-prefix n"),
    (FIXED, "--precision fp4"), (FIXED, "--framework vllm-disagg"), (FIXED, "--runner-type cluster:mi355x-a"),
    (FIXED, "--seq-lens 1k1k"), (SHORT, "--seq-lens 8k1k"), (FIXED, "--scenario-type agentic-coding"),
    (AGENTIC, "--scenario-type fixed-seq-len"), (FIXED, "--multi-node"), (MANY, "--single-node"),
    (FIXED, "--min-conc 32"), (FIXED, "--max-conc 8"), (FIXED, "--conc 4"), (FIXED, "--conc 4,64"),
    (AGENTIC, "--min-conc 64"), (AGENTIC, "--max-conc 16"), (AGENTIC, "--conc 4"), (MANY, "--min-conc 9"),
    (MANY, "--max-conc 32"), (MANY, "--conc 8,32"), (FIXED, "--max-tp 4"), (FIXED, "--max-ep 4"),
    (FIXED, "--exp-names m_1k1k"), (FIXED, "--trim-conc"), (AGENTIC, "--trim-conc"), (MANY, "--trim-conc"),
    (FIXED, "--smoke"), (FIXED, "--evals-only"), (MANY, "--evals-only"), (FIXED, "--all-evals"),
    (f"{TOP}--eval", "--no-evals"), (f"{MANY}--eval", "--no-evals"), (f"{FIXED}--eval", "--min-conc 32"),
    (f"{AGENTIC}--eval", "--framework vllm-disagg"), ("alpha--agentic--tp8--c4--eval", ""),
    ("alpha--8k1k--tp8ep8--c4--eval", ""), (FIXED, "--framework vllm-disagg --min-conc 32 --trim-conc"),
    (MANY, "--precision fp8 --single-node --max-conc 8"), (SHORT, "--evals-only --min-conc 64"),
    (f"{TOP}--eval", "--max-conc 16"), (MANY.replace("8-32-128", "8-32"), ""),
    (f"{TOP}--eval", "--trim-conc"), (FIXED, "--ids alpha--agentic*"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words"), OPTIONS)
def test_what_an_option_left_out_comes_back_as_told(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", SMALL, CLUSTERS))
    asked = words.split()
    record = json.loads(cli("why-not", name, *asked, "--format", "json").out)
    assert record["answer"] in ("absent", "undeclared")
    first, *_ = record["causes"]
    assert first["rule"].startswith("--") or first["rule"] in ("evals", "allocation")
    for _ in range(4):
        for cause in record["causes"]:
            edit = edit_of(cause["edits"][0])
            assert edit.action is Action.OPTION
            asked = rewritten(asked, edit)
        listed = cli("expand", *asked, "--format", "ids", "--allow-empty")
        outcome = cli("why-not", name, *asked, "--format", "json")
        record = json.loads(outcome.out)
        if record["answer"] == "present":
            break
    assert (record["answer"], outcome.status, listed.status) == ("present", 0, 0)
    marked = cli("expand", *asked, "--evals-only", "--format", "ids") if "--eval" in name else listed
    assert name in (listed.out + marked.out).split()


def test_the_first_verdict_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", SMALL, CLUSTERS))
    words = ("--framework", "vllm-disagg", "--min-conc", "32", "--evals-only", "--format", "json")
    causes = json.loads(cli("why-not", FIXED, *words).out)["causes"]
    assert [cause["rule"] for cause in causes] == ["--framework", "--min-conc", "--evals-only"]


def test_what_kept_a_point_is_told_of_each_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", SMALL, CLUSTERS))
    words = ("--framework", "sglang", "--seq-lens", "8k1k", "--min-conc", "4", "--trim-conc", "--format", "json")
    record = json.loads(cli("why", "alpha--agentic--tp8--c4", *words).out)
    assert {fact["rule"]: fact["text"] for fact in record["kept"]} == {
        "--framework": "keeps it",
        "--seq-lens": "does not look at points of its kind",
        "--min-conc": "keeps it",
        "evals": "picked: its accuracy is measured by …--eval",
        "--trim-conc": "it has the lowest concurrency of its family",
    }


def test_a_filter_that_moves_the_picks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", SMALL.replace("[4, 16, 64]", "[16, 32, 64, 128]"), CLUSTERS))
    words = ["--min-conc", "64"]
    record = json.loads(cli("why-not", f"{TOP}--eval", *words, "--format", "json").out)
    (cause,) = record["causes"]
    assert (cause["rule"], "of what these options leave" in cause["reason"]) == ("evals", True)
    words = rewritten(words, edit_of(cause["edits"][0]))
    assert json.loads(cli("why", f"{TOP}--eval", *words, "--format", "json").out)["answer"] == "present"


def test_a_second_declaration_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = SMALL.replace("{tp: 8, ep: 8, conc-list: [4, 16, 64]}", "{tp: 8, ep: 8, conc-list: [4, 16, 64]}, " * 2)
    monkeypatch.chdir(repository(tmp_path / "r", twice.replace("}, ]", "}]"), CLUSTERS))
    facts = json.loads(cli("why", FIXED, "--format", "json").out)["declared"]
    first, second = (next(fact["place"] for fact in facts if fact["rule"] == rule) for rule in ("entry", "duplicate"))
    assert first.split(":")[:2] == second.split(":")[:2]
    assert int(first.split(":")[2]) + len("{tp: 8, ep: 8, conc-list: [4, 16, 64]}, ") == int(second.split(":")[2])


def test_a_point_on_one_node_is_asked_about_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", SMALL, CLUSTERS))
    assert cli("why", f"{FIXED}--on-mi355x-b_00").status == 0
    assert cli("why", f"{FIXED}--on-mi355x-b_07").status == 1


@pytest.mark.parametrize("width", [80, 200])
def test_every_line_fits_unless_it_is_one_word_or_pasted(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", str(width))
    key = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark--agentic"
    there, nowhere = f"{key}--1p-tp8-1d-tp8--c16--override_tp8_c16", f"{key}--1p-tp4-1d-tp8--c16--override_tp8_c16"
    asked = [("why", there), ("why-not", nowhere), ("why-not", there, "--trim-conc", "--min-conc", "32")]
    for words in asked:
        pasted = False
        for line in cli(*words).out.partition("\nimage ")[0].splitlines():
            pasted = line.startswith(" " * 10 + "- ") or (pasted and line.startswith(" " * 12 + line.strip()))
            fits = len(line) <= width or len(line.split()) == 1 or (line.startswith("  ") and len(line.split()) == 2)
            assert fits or pasted, line


# -- ids that nobody declared ------------------------------------------------------------------------------------------

UNKNOWN: Final = {
    "alpha--8k1k--tp8ep8--c15": ("concurrency", {"concurrency": ("15", "16")}),
    "alpha--8k1k--tp8ep4--c16": ("entry", {"ep": ("4", "8")}),
    "alpha--8k1k--tp8ep8dpa--c16": ("entry", {"dp-attn": ("true", "false")}),
    "alpha--8k1k--tp8ep8-mtp--c16": ("entry", {"spec-decoding": ("mtp", "none")}),
    "alpha--agentic--tp8-kvdram-lmcache--c32": ("entry", {"kv-offload": ("dram lmcache", "none")}),
    "alpha--2048-128--tp8ep8--c16": ("scenario", {"scenario": ("2048-128", "8k1k")}),
    "alfa--8k1k--tp8ep8--c16": ("config-key", {"config-key": ("alfa", "alpha")}),
    "beta--8k1k--1p-tp8-2d-tp8--c8-32-128": ("entry", {"decode.num-worker": ("2", "1")}),
    "beta--8k1k--1p-tp8-1d-tp8--c8-32-128--override_x": ("entry", {"variant": ("override_x", "none")}),
    "beta--8k1k--1p-tp8-1d-tp8--c8-32-256": ("concurrency", {"concurrency": ("8 32 256", "8 32 128")}),
    "alpha--8k1k--tp8ep8--c16--on-elsewhere_00": ("config-key", {}),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_id_that_never_existed_names_the_nearest_and_what_differs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", SMALL, CLUSTERS))
    rule, differ = UNKNOWN[name]
    outcome = cli("why-not", name, "--format", "json")
    record = json.loads(outcome.out)
    assert (outcome.status, record["answer"], record["causes"][0]["rule"]) == (1, "undeclared", rule)
    if differ:
        nearest = record["nearest"][0]
        assert {one["field"]: (one["asked"], one["there"]) for one in nearest["differ"]} == differ
        assert nearest["id"] in cli("expand", "--format", "ids").out.split()
    for edit in record["causes"][0]["edits"]:
        file = Path(edit["place"]["file"])
        file.write_text(edited(file.read_text(encoding="utf-8"), edit_of(edit)), encoding="utf-8")
        assert name in cli("expand", "--format", "ids").out.split()


def test_text_that_is_no_id_is_told_what_one_looks_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", SMALL, CLUSTERS))
    outcome = cli("why-not", "alpha")
    assert outcome.status == 1
    assert "<config-key>--<scenario>--<topology>--c<concurrency>" in outcome.out
    assert cli("why-not", FIXED[:-1] + "x").status == 1


def test_the_file_of_the_eval_policy_is_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r", SMALL, CLUSTERS))
    shutil.copy(ROOT / "configs" / "evals.yaml", "configs")
    name = f"{SHORT}--eval"
    record = json.loads(cli("why-not", name, "--format", "json").out)
    (edit,) = record["causes"][0]["edits"]
    assert edit["place"] == {"file": "configs/evals.yaml", "line": 7, "column": 18}
    file = Path("configs/evals.yaml")
    file.write_text(edited(file.read_text(encoding="utf-8"), edit_of(edit)), encoding="utf-8")
    assert json.loads(cli("why", name, "--format", "json").out)["answer"] == "present"
