"""Which points have new results, told from real receipts, and what nobody runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest

from matrix.answers.coverage import Status, by_pool, coverage_of, unused_of
from matrix.answers.results import read_results
from matrix.answers.side import open_side
from matrix.errors import RefusedError
from matrix.report.coverage import coverage_markdown, coverage_record, coverage_table
from runners.receipt import Step
from tests.answers.receipts import FIGURES, launched
from tests.cli.support import cli
from tests.plan.support import files, multi, single

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matrix.answers.coverage import Covered
    from matrix.answers.side import Side
    from matrix.points.point import Point

NOW: Final = datetime(2026, 12, 1, 12, tzinfo=UTC)
DAY: Final = timedelta(days=1)
MASTER: Final = single("a", "[4, 16, 64]") + multi("m", (1, "[8, 32]", "override_a"), recipe="r.yaml")


@pytest.fixture
def side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Side]:
    folder = tmp_path / "repository"
    for name, text in files(MASTER).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    with open_side(None) as opened:
        yield opened


def point(side: Side, end: str) -> Point:
    [found] = [one for name, one in side.points.items() if name == f"a--8k1k--{end}"]
    return found


def covered(side: Side, folder: Path, end: str, days: float = 30) -> Covered:
    results, findings = read_results([folder])
    assert not findings
    [found] = [one for one in coverage_of(side, results, NOW, days).points if one.id == f"a--8k1k--{end}"]
    return found


@pytest.mark.parametrize(
    ("age", "days", "status"),
    [
        (29 * DAY, 30, Status.CURRENT),
        (30 * DAY - timedelta(seconds=1), 30, Status.CURRENT),
        (30 * DAY, 30, Status.STALE),
        (2 * DAY, 1.5, Status.STALE),
        (-DAY, 30, Status.CURRENT),  # a cluster whose clock is ahead
    ],
)
def test_a_result_is_new_for_so_many_days(
    side: Side, tmp_path: Path, age: timedelta, days: float, status: Status
) -> None:
    launched(tmp_path / "results", point(side, "tp8--c16"), NOW - age)
    found = covered(side, tmp_path / "results", "tp8--c16", days)
    assert (found.status, found.age) == (status, age)
    assert covered(side, tmp_path / "results", "tp8--c4").status is Status.NEVER


def test_a_receipt_says_everything_that_is_asked_of_it(side: Side, tmp_path: Path) -> None:
    place = launched(tmp_path, point(side, "tp8--c16"), NOW)
    [result], _ = read_results([tmp_path])
    row = point(side, "tp8--c16").row()
    assert (result.id, result.digest, result.path) == (row["id"], row["digest"], str(place / "receipt.json"))
    assert (result.success, result.open, result.ended, result.verdict) == (True, False, NOW, "passed")
    assert (result.job, result.nodes, result.seconds, result.row) == ("4711", "node[1-2]", 3600.5, row)
    assert result.figures == FIGURES


def test_a_job_that_changed_since_is_superseded_and_one_that_was_renamed_is_not(side: Side, tmp_path: Path) -> None:
    launched(tmp_path, point(side, "tp8--c16"), NOW, digest="0" * 64)
    assert covered(side, tmp_path, "tp8--c16").status is Status.SUPERSEDED
    renamed = launched(tmp_path, point(side, "tp8--c4"), NOW, id="a--8k1k--old-name--c4")
    found = covered(side, tmp_path, "tp8--c4")
    assert (found.status, found.result and found.result.path) == (Status.CURRENT, str(renamed / "receipt.json"))


def test_the_best_that_holds_decides(side: Side, tmp_path: Path) -> None:
    name = point(side, "tp8--c16")
    launched(tmp_path, name, NOW - DAY, success=False)
    assert covered(side, tmp_path, "tp8--c16").status is Status.FAILED
    launched(tmp_path / "other", name, None, step=Step.SUBMITTED)
    assert covered(side, tmp_path, "tp8--c16").status is Status.RUNNING
    launched(tmp_path / "changed", name, NOW, digest="0" * 64)
    assert covered(side, tmp_path, "tp8--c16").status is Status.SUPERSEDED
    launched(tmp_path / ".earlier" / "1", name, NOW - 40 * DAY)
    assert covered(side, tmp_path, "tp8--c16").status is Status.STALE
    launched(tmp_path / "again", name, NOW - 3 * DAY)
    found = covered(side, tmp_path, "tp8--c16")
    assert (found.status, found.age) == (Status.CURRENT, 3 * DAY)
    assert found.last is not None
    assert found.last.digest == "0" * 64, "the last launch is the newest, whatever it ran"


def test_a_passed_job_without_verified_results_is_no_result(side: Side, tmp_path: Path) -> None:
    place = launched(tmp_path, point(side, "tp8--c16"), NOW)
    receipt = json.loads((place / "receipt.json").read_text())
    receipt["outcome"] |= {"verdict": "passed", "success": False, "results-verified": False}
    (place / "receipt.json").write_text(json.dumps(receipt))
    assert covered(side, tmp_path, "tp8--c16").status is Status.FAILED


def test_a_summary_without_its_receipt_has_no_age(side: Side, tmp_path: Path) -> None:
    place = launched(tmp_path, point(side, "tp8--c16"), NOW)
    (place / "receipt.json").unlink()
    found = covered(side, tmp_path, "tp8--c16")
    assert (found.status, found.age) == (Status.STALE, None)
    assert found.result is not None
    assert found.result.figures == FIGURES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is not JSON"),
        ("[]", "it is no mapping"),
        ('{"version": 2}', "no receipt of version 1"),
        ('{"version": 1, "step": "ended"}', "does not say its point's id"),
        ('{"version": 1, "step": "ended", "point": []}', "its point is no mapping"),
        ('{"version": 1, "step": "ended", "point": {"id": "x", "digest": "d"}}', "says None for the time"),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_a_file_that_says_nothing_is_a_warning_at_its_place(side: Side, tmp_path: Path, text: str, said: str) -> None:
    launched(tmp_path / "good", point(side, "tp8--c16"), NOW)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "receipt.json").write_text(text)
    results, [finding] = read_results([tmp_path])
    assert [one.success for one in results] == [True]
    assert str(finding).startswith(f"{tmp_path}/bad/receipt.json: warning: result-unreadable: ")
    assert said in finding.message


def test_missing_folders_are_refused_together(tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as refused:
        read_results([tmp_path / "one", tmp_path, tmp_path / "two"])
    assert [finding.rule for finding in refused.value.findings] == ["results-missing"] * 2


def test_pools_add_up(side: Side, tmp_path: Path) -> None:
    launched(tmp_path, point(side, "tp8--c16"), NOW - 2 * DAY)
    launched(tmp_path, point(side, "tp8--c64"), NOW - 60 * DAY)
    launched(tmp_path, point(side, "tp8--c4"), NOW, digest="0" * 64)
    results, _ = read_results([tmp_path])
    found = coverage_of(side, results, NOW)
    pools = {pool.config: pool for pool in by_pool(found)}
    mine = pools["a"]
    assert sum(len(pool.points) for pool in pools.values()) == len(list(side.ids)) == len(found.points)
    counts = [mine.count(status) for status in (Status.CURRENT, Status.STALE, Status.SUPERSEDED)]
    assert (counts, mine.newest, mine.runner) == ([1, 1, 1], 2 * DAY, "cluster:mi355x-a")
    assert pools["m"].newest is None


def test_what_nobody_runs(side: Side, tmp_path: Path) -> None:
    launched(tmp_path, point(side, "tp8--c16"), NOW, id="gone", digest="1" * 64)
    results, _ = read_results([tmp_path])
    assert [result.id for result in coverage_of(side, results, NOW).strangers] == ["gone"]
    unused = unused_of(side)
    assert (unused.recipes, unused.alike) == ((), ())
    assert [finding.message for finding in unused.variants] == ["no entry names override_b."]


def test_dead_recipes_duplicates_and_equal_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = multi("m", (1, "[8]", "override_a"), (1, "[8]", "override_a"), (1, "[8]", "override_c"), recipe="r.yaml")
    tree = files(single("a", "[4, 4]") + twice)
    tree["configs/recipes/r.yaml"] += 'override_c: {name: r_a, benchmark: {env: {STEP: "4"}}}\n'
    tree["configs/recipes/dead.yaml"] = tree["configs/recipes/r.yaml"]
    for name, text in tree.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with open_side(None) as side:
        unused = unused_of(side)
        found = coverage_of(side, (), NOW)
    assert [str(finding.span) for finding in unused.recipes] == ["configs/recipes/dead.yaml"]
    assert [finding.message for finding in unused.variants] == ["no entry names override_b."]
    assert len(unused.repeated) == 2
    throughput = [names for names in unused.alike if not names[0].endswith("--eval")]
    assert [[name.rpartition("--")[2] for name in names] for names in throughput] == [["override_a", "override_c"]]
    text = "\n".join(coverage_table(found, unused, 200))
    for title in ("recipes that no entry names (1)", "variants that no entry names (1)", "declared twice (2)"):
        assert title in text
    assert unused_of(side, complete=False).recipes == ()


@pytest.mark.parametrize("width", [64, 80, 120, 200])
def test_the_table_fits(side: Side, tmp_path: Path, width: int) -> None:
    launched(tmp_path, point(side, "tp8--c16"), NOW - 2 * DAY)
    results, _ = read_results([tmp_path])
    lines = list(coverage_table(coverage_of(side, results, NOW), unused_of(side), width))
    assert max(map(len, lines)) <= width
    heads = ["config", "a", "m"] if width > 64 else ["a", "cluster:mi355x-a:", "m"]
    assert [line.split()[0] for line in lines[:3]] == heads
    assert "1 current" in "\n".join(lines)


def test_the_record_has_everything(side: Side, tmp_path: Path) -> None:
    launched(tmp_path, point(side, "tp8--c16"), NOW - 2 * DAY)
    results, _ = read_results([tmp_path])
    found = coverage_of(side, results, NOW)
    record = coverage_record(found, unused_of(side))
    assert [one["id"] for one in record["points"]] == list(side.ids)
    assert record["totals"]["current"] == 1
    assert sum(record["totals"].values()) == len(record["points"])
    [mine] = [one for one in record["points"] if one["status"] == "current"]
    assert (mine["age-days"], mine["result"]["job"]) == (2.0, "4711")
    assert [one["message"] for one in record["unused"]["variants"]] == ["no entry names override_b."]


def test_markdown_takes_no_markup(side: Side, tmp_path: Path) -> None:
    launched(tmp_path, point(side, "tp8--c16"), NOW, id="<img>|`x`", digest="1" * 64)
    results, _ = read_results([tmp_path])
    text = "\n".join(coverage_markdown(coverage_of(side, results, NOW), unused_of(side)))
    assert "<img>" not in text
    assert r"\<img\>" in text


def test_the_command(side: Side, tmp_path: Path) -> None:
    launched(tmp_path / "results", point(side, "tp8--c16"), datetime.now(UTC) - 2 * DAY)
    told = cli("coverage")
    assert (told.status, "warning: results-missing: " in told.err) == (0, True)
    assert "never run" in told.out
    told = cli("coverage", "--results", str(tmp_path / "results"), "--days", "1", "--format", "json")
    assert (told.status, told.err, json.loads(told.out)["totals"]["stale"]) == (0, "", 1)
    told = cli("coverage", "--results", str(tmp_path / "results"), "--format", "markdown")
    assert "1 current" in told.out.splitlines()[0]
    told = cli("coverage", "--results", "nowhere")
    assert (told.status, told.out) == (1, "")
    assert told.err.startswith("nowhere: results-missing: ")
    assert cli("coverage", "--days", "0").status == 2
