"""The benchmark runs, on tiny inputs. What it measures is nobody's assertion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.inputs import masters, synthetic
from benchmarks.run import main
from matrix.config.loading import load_fleet, load_masters
from matrix.points.evals import EvalPolicy
from matrix.points.expand import Facts
from matrix.points.pipeline import expand
from matrix.points.request import Request

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from benchmarks.inputs import Masters


def count(found: Masters) -> int:
    configs, fleet = load_masters(found.configs), load_fleet(found.runners)
    return sum(1 for _ in expand(configs, Facts(fleet), EvalPolicy(), Request()).points)


def test_every_measure_prints_its_figure(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["--only", "expand", "--only", "stream", "--only", "help"]
    assert main([*wanted, "--rounds", "1", "--points", "20", "40"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" / ")[0].split("  ")[0] for line in lines] == [
        "expand --format json",
        "expand --format jsonl",
        "expand --format ids",
        "time a point, large",
        "peak memory of 40 points",
        "matrix --help",
    ]
    assert all(float(line[45:].split()[0]) > 0 for line in lines)


def test_the_inputs_hold_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert count(synthetic(tmp_path, 40)) == 40
    assert count(synthetic(tmp_path, 3000)) == 3000
    monkeypatch.setattr("benchmarks.inputs.REAL", tmp_path / "none")
    made_up = masters(tmp_path)
    assert made_up.about.startswith("made-up masters")
    assert 1500 < count(made_up) < 2500
