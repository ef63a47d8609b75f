"""Receipts that no clock or counter can have written, results that lie there twice, and numbers that are none."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.answers.side import open_side
from tests.answers.receipts import launched
from tests.cli.support import cli, repository

if TYPE_CHECKING:
    from matrix.points.point import Point

FIRST: Final = "alpha--8k1k--tp8--c4"


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    """The points of a small repository, in which we are."""
    monkeypatch.chdir(repository(tmp_path / "r"))
    with open_side(None) as side:
        return list(side.points.values())


def put(point: Point, ended: datetime | None = None, ran: str = "3600.5", folder: str = "results") -> Path:
    """A verified launch; ``ran`` is JSON text."""
    receipt = launched(Path(folder), point, ended or datetime.now(UTC)) / "receipt.json"
    text = receipt.read_text(encoding="utf-8")
    assert "3600.5" in text
    receipt.write_text(text.replace("3600.5", ran), encoding="utf-8")
    return receipt


def record(*words: str) -> dict[str, Any]:
    """A JSON answer; what JSON does not have is an error."""

    def refuse(word: str) -> float:
        raise AssertionError(word)

    found: dict[str, Any] = json.loads(cli(*words, "--format", "json").out, parse_constant=refuse)
    return found


@pytest.mark.parametrize(
    "ran", ["Infinity", "-Infinity", "NaN", "1e308", "1e400", "-5", "true", '"60"', "null", "1e10"]
)
def test_a_time_that_no_clock_told_is_no_time(ran: str, points: list[Point]) -> None:
    put(points[0], ran=ran)
    told = cli("cost", "--history", "results")
    assert (told.status, told.err) == (0, "")
    assert "0% measured" in told.out
    assert record("cost", "--history", "results")["gpu-hours"] == 0
    page = cli("report", "-o", "page.html")
    assert page.status == 0, page.err


def test_a_job_that_took_no_time_is_measured(points: list[Point]) -> None:
    put(points[0], ran="0")
    found = record("cost", "--history", "results")
    assert (found["lengths"]["job"], found["gpu-hours"]) == (1, 0)
    assert cli("cost", "--history", "results").status == 0


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "1e999", "0", "-1", "x", ""])
@pytest.mark.parametrize(
    "words", [("cost", "--assume"), ("coverage", "--days"), ("report", "-o", "p.html", "--assume"),
              ("report", "-o", "p.html", "--days")],
)  # fmt: skip
def test_what_is_no_number_to_count_with_is_a_wrong_command_line(
    words: tuple[str, ...], word: str, points: list[Point]
) -> None:
    assert points
    told = cli(*words, word)
    assert (told.status, told.out) == (2, "")
    assert "Invalid value" in told.err
    assert not Path("p.html").exists()


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "0", "true", '"9"'])
def test_a_budget_is_a_finite_number(value: str, points: list[Point]) -> None:
    assert points
    Path("pyproject.toml").write_text(f"[tool.matrix]\nbudget-gpu-hours = {value}\n", encoding="utf-8")
    told = cli("cost")
    assert (told.status, told.out) == (1, "")
    assert told.err.startswith("pyproject.toml:2:1: settings-value: ")
    assert "fix: write a finite number above 0" in told.err


def test_a_result_of_the_future_has_no_age(points: list[Point]) -> None:
    """Else a point whose clock was wrong once would be current for good."""
    put(points[0], datetime.now(UTC) + timedelta(days=400))
    told = cli("coverage")
    assert "result-time" in told.err
    assert "which is still to come" in told.err
    found = record("coverage")
    assert (found["totals"]["current"], found["totals"]["stale"]) == (0, 1)
    assert found["points"][0]["age-days"] is None
    put(points[0], datetime.now(UTC) - timedelta(days=1), folder="results/other")
    assert record("coverage")["totals"]["current"] == 1


def test_a_clock_that_is_a_little_ahead_makes_a_result_new(points: list[Point]) -> None:
    put(points[0], datetime.now(UTC) + timedelta(hours=3))
    assert cli("coverage").err == ""
    found = record("coverage")
    assert (found["totals"]["current"], round(found["points"][0]["age-days"], 2)) == (1, -0.12)
    assert " now" in cli("coverage").out


@pytest.mark.parametrize(
    "ended", ["9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00-23:59"]
)
def test_the_ends_of_the_calendar_are_times_too(ended: str, points: list[Point]) -> None:
    receipt = put(points[0])
    written = json.loads(receipt.read_text(encoding="utf-8"))
    written["times"]["ended"] = ended
    receipt.write_text(json.dumps(written), encoding="utf-8")
    for words in (("coverage",), ("coverage", "--format", "markdown"), ("report", "-o", "page.html")):
        told = cli(*words)
        assert told.status == 0, told.err
    assert record("coverage")["totals"]["stale"] == 1


@pytest.mark.parametrize("copies", [("results", "again"), ("results", "results"), ("results", "results/.")])
def test_results_that_lie_there_twice_count_as_one(copies: tuple[str, str], points: list[Point]) -> None:
    put(points[0])
    shutil.copytree("results", "again")
    words = [word for folder in copies for word in ("--results", folder)]
    assert {key: value for key, value in record("coverage", *words).items() if key in ("totals", "configs")} == {
        key: value for key, value in record("coverage").items() if key in ("totals", "configs")
    }
    history = [word for folder in copies for word in ("--history", folder)]
    assert record("cost", *history) == record("cost", "--history", "results")


def test_a_broken_receipt_beside_a_whole_one_costs_a_warning(points: list[Point]) -> None:
    put(points[0])
    put(points[1]).write_text('{"version": 1, "step": "ended", "poi', encoding="utf-8")
    told = cli("cost", "--history", "results")
    assert (told.status, "result-unreadable" in told.err) == (0, True)
    assert "measured" in told.out
    assert FIRST in cli("coverage", "--format", "json").out
