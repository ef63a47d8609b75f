"""`matrix check` as a terminal and as a program see it."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from matrix.checks.registry import check_configs
from matrix.cli.main import matrix, run
from matrix.config.source import load
from matrix.recipes.golden import CurveBook
from matrix.workspace import open_workspace
from tests.checks.breaks import MASTER, MU, NU, XI
from tests.checks.support import FILES, GOLDEN, Repository

if TYPE_CHECKING:
    from pathlib import Path

ATOM = "mu-fp4-mi355x-atom-disagg-agentic"
POINT = f"{ATOM}--agentic--1p-tp8-1d-tp8--c16--override_tp8_c16"
OTHER = f"{ATOM}--agentic--1p-tp8dpa-1d-tp8dpa--c256--override_dpa8_c256"
NO_RECIPES = (*FILES[:4], *GOLDEN)
WAIVER = "\n            check-waivers: [{rule: NAME, reason: the queue is measured}]"


def wrong_everywhere(repository: Repository) -> None:
    """An image that two points share, a CONC of the first, a limit of the third config."""
    repository.edit(MASTER, 2, "20260922", "20260923")
    repository.edit(MU, 43, "16", "32")
    repository.edit(XI, 15, "8", "1")


# -- forms -----------------------------------------------------------------------------------------------------------


def test_people_get_lines_on_stderr_and_nothing_on_stdout(repository: Repository) -> None:
    wrong_everywhere(repository)
    answer = repository.run()
    assert (answer.status, answer.out) == (1, "")
    first, second, third, last = answer.err.splitlines()
    assert first == (
        "master.yaml:2:10: recipe-image: the row's image is lab/atom:nightly_20260923, and the recipe's model.container"
        f" is lab/atom:nightly_20260922. 2 points, the first is {POINT}. (recipes/mu.yaml:4:45: model.container)"
        " fix: write one image in both"
    )
    assert second == (
        "master.yaml:16:24: recipe-concurrency: the row says concurrency 16, and the recipe says 32."
        f" Point {POINT}. (recipes/mu.yaml:43:27: benchmark.env.CONC) fix: make the two agree"
    )
    assert third == (
        "master.yaml:71:24: recipe-admission: the row says concurrency 4, and the recipe admits 2 workers x 1 = 2 (role"
        " agg). Point xi-fp16-mi300x-vllm-agg--128-32--2w-tp2--c4. (recipes/xi.yaml:15:7: max-num-seqs) fix: raise"
        " max-num-seqs to 2 or more"
    )
    assert last == "5 points, 3 configs, 3 recipes: 3 errors"


def test_programs_get_one_versioned_document(repository: Repository) -> None:
    wrong_everywhere(repository)
    answer = repository.check()
    assert {key: answer.data[key] for key in ("version", "refused", "points", "configs", "recipes", "waived")} == {
        "version": 1,
        "refused": True,
        "points": 5,
        "configs": 3,
        "recipes": 3,
        "waived": [],
    }
    image = answer.only("recipe-image")
    assert image["points"] == [POINT, OTHER]
    assert image["related"] == [{"file": MU, "line": 4, "column": 45, "note": "model.container"}]
    assert answer.err == "5 points, 3 configs, 3 recipes: 3 errors\n"


def test_annotations_go_to_stdout(repository: Repository) -> None:
    repository.edit(MU, 5, "08:00:00", "02:00:00")
    repository.edit(XI, 15, "8", "1")
    answer = repository.run("--format", "github")
    first, second = answer.out.splitlines()
    assert first.startswith(
        "::error file=master.yaml,line=71,col=24,title=recipe-admission::the row says concurrency 4,"
    )
    assert first.endswith("%0Arecipes/xi.yaml:15:7: max-num-seqs%0Afix: raise max-num-seqs to 2 or more")
    assert second.startswith("::warning file=recipes/mu.yaml,line=5,col=23,title=recipe-time-limit::")
    assert answer.status == 1


def test_markdown_is_a_table_below_its_summary(repository: Repository) -> None:
    assert repository.run("--format", "markdown").out == "5 points, 3 configs, 3 recipes: no finding\n"
    repository.edit(MASTER, 74, '"]', '", A|B]')
    lines = repository.run("--format", "markdown").out.splitlines()
    assert lines[:4] == [
        "5 points, 3 configs, 3 recipes: 1 error",
        "",
        "| | rule | where | what | fix |",
        "|---|---|---|---|---|",
    ]
    assert lines[4].startswith(r"| error | row-setting | master.yaml:74:46 | the setting 'A\|B' is not NAME=value.")
    assert len(lines) == 5


def test_what_cannot_be_read_is_a_finding_too(repository: Repository) -> None:
    repository.edit(MASTER, 8, "true", "maybe")
    answer = repository.check()
    assert answer.status == 1
    assert [(finding["file"], finding["line"]) for finding in answer.findings] == [(MASTER, 8)]
    text = repository.run()
    assert (text.status, text.out) == (1, "")
    assert text.err.startswith("master.yaml:8:14: ")


# -- which rules -----------------------------------------------------------------------------------------------------


def test_warnings_fail_when_it_is_strict(repository: Repository) -> None:
    repository.edit(MU, 5, "08:00:00", "02:00:00")
    assert repository.run().status == 0
    assert repository.check("--strict").data["refused"] is True
    assert repository.run("--strict").status == 1


@pytest.mark.parametrize(
    ("args", "rules"),
    [
        (("--select", "recipe-image"), {"recipe-image"}),
        (("--select", "recipe-image,recipe-admission"), {"recipe-image", "recipe-admission"}),
        (("--select", "recipe-image", "--select", "recipe-concurrency"), {"recipe-image", "recipe-concurrency"}),
        (("--select", "recipe-*", "--ignore", "recipe-a*"), {"recipe-image", "recipe-concurrency"}),
        (("--ignore", "recipe-image"), {"recipe-concurrency", "recipe-admission"}),
        (("--select", "served-name"), set()),
    ],
)
def test_rules_are_chosen_by_name_and_glob(repository: Repository, args: tuple[str, ...], rules: set[str]) -> None:
    wrong_everywhere(repository)
    answer = repository.check(*args)
    assert answer.rules == rules
    assert answer.status == (1 if rules else 0)


@pytest.mark.parametrize("option", ["--select", "--ignore", "--explain"])
def test_an_unknown_rule_is_a_wrong_command_line(repository: Repository, option: str) -> None:
    answer = repository.run(option, "recipe-imag")
    assert (answer.status, answer.out) == (2, "")
    assert "there is no rule recipe-imag; did you mean recipe-image" in answer.err


def test_a_rule_explains_itself(repository: Repository) -> None:
    answer = repository.run("--explain", "recipe-budget", files=())
    assert answer.status == 0
    assert answer.out.startswith("recipe-budget (error)\n\nWhat the tiers of a worker take of its node fits")
    assert "#2816" in answer.out


# -- which points ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "points", "rules"),
    [
        ((ATOM,), 2, {"recipe-image", "recipe-concurrency"}),
        (("xi-*",), 1, {"recipe-admission"}),
        ((POINT,), 1, {"recipe-image", "recipe-concurrency"}),
        ((OTHER,), 1, {"recipe-image"}),
        ((f"{OTHER}--eval",), 1, {"recipe-image"}),
        ((f"{OTHER}--eval-swebench",), 1, {"recipe-image"}),
        ((f"{OTHER}--on-mi355x-lab_01",), 1, {"recipe-image"}),
        ((f"{ATOM}--*--c256--*",), 1, {"recipe-image"}),
        ((OTHER, "xi-fp16-mi300x-vllm-agg"), 2, {"recipe-image", "recipe-admission"}),
    ],
)
def test_points_are_named_by_key_and_id(
    repository: Repository, names: tuple[str, ...], points: int, rules: set[str]
) -> None:
    wrong_everywhere(repository)
    answer = repository.check(*names)
    assert (answer.data["points"], answer.rules) == (points, rules)


@pytest.mark.parametrize(
    ("name", "rule", "fix"),
    [
        ("mu-fp4-mi355x-atom-disagg", "config-key-unknown", f"did you mean {ATOM}"),
        (POINT.replace("c16", "c17"), "point-unknown", f"did you mean {POINT}"),
        ("zz-*", "config-key-unknown", "known: "),
        ("zz--agentic--1p-tp8--c1", "point-unknown", "known: "),
    ],
)
def test_an_unknown_name_is_refused(repository: Repository, name: str, rule: str, fix: str) -> None:
    answer = repository.check(name, ATOM)
    assert (answer.status, answer.rules) == (1, {rule})
    assert answer.only(rule)["fix"].startswith(fix)


def test_unused_recipes_are_told_when_everything_is_looked_at(repository: Repository) -> None:
    repository.write("recipes/old.yaml", "a: [")
    assert repository.check().only("recipe-unreferenced")["file"] == "recipes/old.yaml"
    assert repository.check(ATOM).findings == []


def test_other_masters_may_leave_recipes_unused(repository: Repository) -> None:
    """The repository's own masters name all its recipes; one that is put in their place need not."""
    (repository.folder / "configs").mkdir()
    for name, home in (("runners.yaml", "configs/runners.yaml"), ("recipes", "configs/recipes")):
        (repository.folder / name).rename(repository.folder / home)
    (repository.folder / "golden").rename(repository.folder / "configs/golden")
    (repository.folder / "configs/recipes/old.yaml").write_text("schema: 2\n", encoding="utf-8")
    assert repository.check(files=("--config", "master.yaml")).findings == []
    (repository.folder / "master.yaml").rename(repository.folder / "configs/lab-master.yaml")
    assert repository.check(files=()).rules == {"recipe-unreferenced"}


def test_a_recipe_is_looked_at_by_itself(repository: Repository) -> None:
    repository.edit(MU, 26, "false", "true")
    repository.edit(MU, 70, '"1"', '"0"')
    whole = repository.check(MU, files=())
    assert whole.rules == {"router-single-frontend", "router-sticky-session"}
    assert "points" not in whole.only("router-single-frontend")
    one = repository.check(f"{MU}:override_tp8_c16", files=())
    assert (one.rules, one.err) == ({"router-single-frontend"}, "1 recipe: 1 error\n")
    below_root = repository.check("recipes/nu.yaml:zip_override_dep8[0]", XI, files=("--recipes", "recipes"))
    assert (below_root.findings, below_root.err) == ([], "2 recipes: no finding\n")
    both = repository.check(XI, POINT)
    assert both.rules == {"router-single-frontend"}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("recipes/none.yaml", "recipe-missing"),
        (f"{MU}:override_tp8_c17", "recipe-selector"),
        (f"{MU}:override_*", "recipe-selector"),
        (f"{XI}:override_x", "recipe-selector"),
    ],
)
def test_a_recipe_that_is_none_is_refused(repository: Repository, name: str, rule: str) -> None:
    answer = repository.check(name, files=("--recipes", "recipes"))
    assert (answer.status, answer.rules) == (1, {rule})


# -- what the files lack ---------------------------------------------------------------------------------------------


def test_no_recipe_root_is_an_error(repository: Repository) -> None:
    answer = repository.check(files=NO_RECIPES)
    assert answer.rules == {"recipe-root"}
    assert answer.only("recipe-root")["severity"] == "error"


def test_no_curves_is_an_error_where_a_length_is_given(repository: Repository) -> None:
    answer = repository.check(files=FILES)
    assert answer.only("golden-folder")["message"].endswith("2 agentic points draft.")
    assert repository.check("nu-*", files=FILES).findings == []


def test_scripts_of_the_command_are_in_the_workspace(repository: Repository) -> None:
    (repository.folder / "workspace/benchmarks").mkdir(parents=True)
    repository.write("workspace/bench.py", "")
    answer = repository.check("--workspace", "workspace")
    found = answer.only("recipe-client")
    assert (
        "the command runs /infmax-workspace/benchmarks/agentic.sh, and workspace has no such file." in found["message"]
    )
    assert (found["file"], found["line"], len(found["points"])) == (MU, 31, 2)
    repository.write("workspace/benchmarks/agentic.sh", "")
    assert repository.check("--workspace", "workspace").findings == []


# -- waivers ---------------------------------------------------------------------------------------------------------


def test_a_waiver_silences_one_rule_for_one_entry(repository: Repository) -> None:
    repository.edit(MU, 43, "16", "32")
    repository.edit(MASTER, 2, "20260922", "20260923")
    repository.edit(MASTER, 16, "[16]", f"[16]{WAIVER.replace('NAME', 'recipe-concurrency')}")
    answer = repository.check()
    assert answer.rules == {"recipe-image"}
    assert answer.data["waived"] == [
        {"rule": "recipe-concurrency", "reason": "the queue is measured", "file": MASTER, "line": 17}
    ]
    assert answer.err.endswith("1 error, 1 waived\n")


def test_a_waiver_takes_its_point_out_of_a_shared_cause(repository: Repository) -> None:
    repository.edit(MASTER, 2, "20260922", "20260923")
    repository.edit(MASTER, 16, "[16]", f"[16]{WAIVER.replace('NAME', 'recipe-image')}")
    assert repository.check().only("recipe-image")["points"] == [OTHER]


def test_a_waiver_is_judged_by_rules_that_ran_on_the_whole_entry(repository: Repository) -> None:
    repository.edit(MASTER, 16, "[16]", f"[16, 8]{WAIVER.replace('NAME', 'recipe-image')}")
    everything = {"recipe-concurrency", "waiver-unused"}
    assert repository.check().rules == everything
    assert repository.check(POINT).rules == {"recipe-concurrency"}
    assert repository.check("--select", "waiver-*").findings == []
    assert repository.check("--ignore", "waiver-unused").rules == {"recipe-concurrency"}
    repository.edit(MASTER, 21, "c16", "c61")
    assert "waiver-unused" not in repository.check().rules


# -- the shipped configuration ---------------------------------------------------------------------------------------


def test_the_shipped_configuration_is_clean(
    root: Path, monkeypatch: pytest.MonkeyPatch, repository: Repository
) -> None:
    monkeypatch.chdir(root)
    answer = repository.run("--strict", files=())
    assert (answer.status, answer.out) == (0, "")
    assert re.fullmatch(r"\d+ points, \d+ configs, \d+ recipes: no finding\n", answer.err)


def test_findings_come_in_one_order(repository: Repository) -> None:
    wrong_everywhere(repository)
    repository.edit(NU, 12, "8", "4")
    spots = [(f["file"], f["line"], f["column"]) for f in repository.check().findings]
    assert spots == sorted(spots)
    assert json.dumps(spots) == json.dumps([(f["file"], f["line"], f["column"]) for f in repository.check().findings])


def test_the_hook_runs_it_on_yaml(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = {hook["id"]: hook for hook in load(root / ".pre-commit-hooks.yaml").root}
    hook = hooks["matrix-check"]
    assert (hook["types"], hook["pass_filenames"]) == (["yaml"], False)
    program, command = hook["entry"].split()
    assert program in tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    monkeypatch.chdir(root)
    assert run(matrix, [command], prog="matrix") == 0


def test_what_a_plan_asks_for_is_what_the_command_says(repository: Repository) -> None:
    wrong_everywhere(repository)
    opened = open_workspace(masters=["master.yaml"], runners="runners.yaml", recipes=["recipes"])
    curves = CurveBook("golden")
    report = check_configs(opened.configs, opened.facts, curves=curves)
    assert [finding.message for finding in report.findings] == [f["message"] for f in repository.check().findings]
    assert report.refuses()
    one = check_configs(opened.configs, opened.facts, curves=curves, names=[OTHER, "nope"])
    assert [finding.rule for finding in one.findings] == ["config-key-unknown", "recipe-image"]
