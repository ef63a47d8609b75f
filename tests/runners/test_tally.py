"""`collect --plan`: every point of a plan, and which of them have no result that counts."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from runners.cli.main import main
from runners.collect import Row
from runners.outcomes import SUMMARY, markdown, table
from runners.receipt import Receipt, Step
from tests.runners.test_collect import put
from tests.runners.test_display import obeyed

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


def plan_of(folder: Path, *names: str, digest: str = "d") -> Path:
    rows = [{"id": name, "runner": "r", "digest": digest} for name in names]
    path = folder / "plan.json"
    path.write_text(json.dumps({"version": 1, "points": rows}), encoding="utf-8")
    return path


def collect(results: Path, plan: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["collect", str(results), "--plan", str(plan), *more])


@pytest.fixture
def results(tmp_path: Path) -> Path:
    results = tmp_path / "results"
    put(results, "a", [{"conc": 4, "successful": 40, "total": 40}])
    put(results, "b", [], results=[], outcome={"success": False, "verdict": "failed", "why": "job 7 FAILED 3:0"})
    return results


def test_what_has_left_no_receipt_is_named_in_each_form(results: Path, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "c", "a", "d", "b")
    done = collect(results, plan)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert [line.split()[:3] for line in lines[2:]] == [
        ["c", "missing"], ["a", "success", "now"], ["d", "missing"], ["b", "failed", "now"],
    ]  # fmt: skip
    assert "collect-missing: 2 of 4 points count as missing, it has left no receipt: c, d. fix: " in done.stderr
    found = json.loads(collect(results, plan, "--format", "json").stdout)
    assert [(one["id"], one["end"], one["success"]) for one in found] == [
        ("c", "missing", False), ("a", "success", True), ("d", "missing", False), ("b", "failed", False),
    ]  # fmt: skip
    shown = collect(results, plan, "--format", "markdown").stdout
    assert shown.startswith("1 of 4 points succeeded, 2 are missing.\n")
    assert "- `c`: it has left no receipt\n" in shown
    assert "- `b`: job 7 FAILED 3:0\n" in shown


def test_a_plan_that_is_whole_is_status_0(results: Path, tmp_path: Path) -> None:
    done = collect(results, plan_of(tmp_path, "a", "b"))
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_result_of_another_digest_does_not_count(results: Path, tmp_path: Path) -> None:
    done = collect(results, plan_of(tmp_path, "a", digest="e"))
    assert done.exit_code == 1
    assert "is of another job: its digest is d, not e: a." in done.stderr
    assert "success" not in done.stdout


def test_a_kept_file_that_is_another_one_is_a_fault(results: Path, tmp_path: Path) -> None:
    (results / "a" / "result_conc1.json").write_text("{ }")
    done = collect(results, plan_of(tmp_path, "a"))
    assert done.exit_code == 1
    assert "collect-changed" in done.stderr


def test_a_receipt_in_the_folder_of_another_point_is_nobody_s(results: Path, tmp_path: Path) -> None:
    (results / "a").rename(results / "c")
    done = collect(results, plan_of(tmp_path, "a", "c"))
    assert done.exit_code == 1
    assert f"{results}/c/receipt.json: collect-place: this receipt is of a" in done.stderr
    assert "1 of 2 points counts as missing, it has left no receipt: a." in done.stderr
    assert "1 of 2 points counts as missing, the receipt in its folder does not count: c." in done.stderr


def test_a_receipt_that_cannot_be_read_is_told_and_its_point_is_missing(results: Path, tmp_path: Path) -> None:
    (results / "a" / "receipt.json").write_text("{")
    done = collect(results, plan_of(tmp_path, "a", "b"))
    assert done.exit_code == 1
    assert "receipt-read" in done.stderr
    assert (
        "collect-missing: 1 of 2 points counts as missing, the receipt in its folder does not count: a." in done.stderr
    )


def test_a_job_that_is_under_way_is_no_missing_one(results: Path, tmp_path: Path) -> None:
    put(results, "c", [], step=Step.SUBMITTED, outcome={}, results=[])
    done = collect(results, plan_of(tmp_path, "c"))
    assert done.exit_code == 0
    assert "submitted" in done.stdout


def test_nothing_left_at_all(tmp_path: Path) -> None:
    done = collect(tmp_path / "results", plan_of(tmp_path, "a", "b"))
    assert done.exit_code == 1
    assert done.stdout.count("missing") == 2


def test_many_that_are_missing_have_one_message(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(5000)]
    done = collect(tmp_path / "results", plan_of(tmp_path, *names), "--format", "json")
    assert [one["id"] for one in json.loads(done.stdout)] == names
    [line] = done.stderr.splitlines()
    assert "5,000 of 5,000 points count as missing" in line
    assert "p19 and 4,980 more." in line


def test_a_page_never_grows_beyond_what_github_keeps(tmp_path: Path) -> None:
    names = [f"{'p' * 150}{number}" for number in range(9000)]
    shown = collect(tmp_path / "results", plan_of(tmp_path, *names), "--format", "markdown").stdout
    assert SUMMARY * 0.99 < len(shown.encode()) <= SUMMARY
    assert "- and 8,900 more, which the table names\n" in shown
    listed = sum(line.startswith("| pp") for line in shown.splitlines())
    assert shown.endswith(f"… {9000 - listed:,} more lines: see the JSON.\n")


def test_what_a_job_says_of_itself_is_no_markup() -> None:
    why = "<img src=x> @org/team [a](b)\n## `x` | y"
    shown = markdown([Row("a", "d", why)])
    assert "- `a`: \\<img src=x\\> \\@org/team \\[a\\](b) \\#\\# \\`x\\` \\| y\n" in shown


EVIL = "x|y <b>@org</b>\n| [a](b) \x1b[2J`z`"


@pytest.mark.parametrize("place", ["id", "verdict", "job", "task", "figure"])
def test_no_cell_is_markup_or_an_order_to_a_terminal(place: str) -> None:
    """Receipts and results are what jobs and other runs wrote."""
    outcome = {"success": False, "verdict": EVIL if place == "verdict" else "failed"}
    job = {"id": EVIL if place == "job" else "7"}
    receipt = Receipt(step=Step.ENDED, point={"id": "a", "digest": "d"}, job=job, outcome=outcome)
    figures: dict[str, Any] = {"eval": {EVIL if place == "task" else "gsm8k": {"exact_match": 0.5}}}
    if place == "figure":
        figures["conc"] = EVIL
    row = Row(EVIL if place == "id" else "a", "d", "", receipt, (figures,))
    shown = markdown([row])
    assert len(re.findall(r"^\|", shown, re.MULTILINE)) == 3
    lines = [line for line in shown.splitlines() if "org" in line]
    assert lines
    for line in lines:
        assert r"x\|y \<b\>\@org\</b\> \| \[a\](b) \`z\`" in line
    for text in (shown, table([row])):
        assert "\x1b" not in text
    assert len(table([row]).splitlines()) == 3


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_no_name_of_a_task_commands_github(tmp_path: Path, form: str) -> None:
    put(tmp_path, "a", [{"eval": {"##[add-path]/tmp": {"exact_match": 0.5}}}])
    words = ["collect", str(tmp_path), "--format", form]
    assert "##[" in CliRunner().invoke(main, ["collect", str(tmp_path)]).stdout
    done = CliRunner().invoke(main, words, env={"GITHUB_ACTIONS": "true"})
    assert done.exit_code == 0
    assert "add-path" in done.stdout
    assert obeyed(done.stdout) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a--c1--b_c.d", "a--c1--b_c.d"), ("_a_", r"\_a\_"), ("a__b__", r"a\_\_b\_\_"), ("-", "-"), ("a b", "a b")],
)
def test_a_name_is_written_as_it_is(text: str, shown: str) -> None:
    page = markdown([Row(text, "d", "gone")])
    assert f"| {shown} " in page


def test_no_point_is_status_3(tmp_path: Path) -> None:
    done = collect(tmp_path, plan_of(tmp_path))
    assert done.exit_code == 3
    assert "the plan has no point" in done.stderr


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{", "plan-json"), ("[]", "plan-version"), ('{"version": 2}', "plan-version"),
        ('{"version": 1, "points": [1]}', "plan-points"), ('{"version": 1, "points": [], "reuse": 1}', "plan-form"),
    ],
)  # fmt: skip
def test_what_is_no_plan_is_refused(results: Path, tmp_path: Path, text: str, rule: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    done = collect(results, path)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"{path}: {rule}: " in done.stderr


def test_another_plan_than_the_one_of_the_run_is_refused(results: Path, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "a")
    digest = sha256(plan.read_bytes()).hexdigest()
    assert collect(results, plan, "--plan-digest", digest).exit_code == 0
    done = collect(results, plan, "--plan-digest", "0" * 64)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "plan-digest" in done.stderr
    alone = CliRunner().invoke(main, ["collect", str(results), "--plan-digest", digest])
    assert alone.exit_code == 2


def test_a_record_that_cannot_be_written_is_refused(results: Path, tmp_path: Path) -> None:
    done = collect(results, plan_of(tmp_path, "a"), "--json", str(tmp_path / "away" / "all.json"))
    assert done.exit_code == 1
    assert "collect-write" in done.stderr
