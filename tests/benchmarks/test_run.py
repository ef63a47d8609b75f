"""The benchmark runs, on tiny inputs. What it measures is nobody's assertion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from benchmarks.inputs import masters, synthetic
from benchmarks.run import main
from matrix.config.loading import load_fleet, load_masters
from matrix.points.evals import EvalPolicy
from matrix.points.expand import Facts
from matrix.points.pipeline import expand
from matrix.points.request import Request

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.inputs import Masters


def count(found: Masters) -> int:
    configs, fleet = load_masters(found.configs), load_fleet(found.runners)
    return sum(1 for _ in expand(configs, Facts(fleet), EvalPolicy(), Request()).points)


def test_every_measure_prints_its_figure(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["--only", "expand", "--only", "stream", "--only", "diff"]
    wanted += ["--only", "help", "--only", "why", "--only", "tab"]
    assert main([*wanted, "--rounds", "1", "--points", "20", "40"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" / ")[0].split("  ")[0] for line in lines] == [
        "expand --format json",
        "expand --format jsonl",
        "expand --format ids",
        "time a point, large",
        "peak memory of 40 points",
        "diff A..B",
        "matrix --help",
        "why ID",
        "why-not ID --trim-conc",
        "why-not of no ID",
        "Tab at a command",
        "Tab at an option",
        "Tab at all ids",
        "Tab at all config keys",
    ]
    assert all(float(line[45:].split()[0]) > 0 for line in lines)


@pytest.mark.slurm
@pytest.mark.usefixtures("real_slurm")
def test_following_is_measured_on_a_real_job(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "follow", "--follow", "3"]) == 0
    line = capsys.readouterr().out
    assert line.startswith("CPU while following a job")
    assert float(line[45:].split()[0]) > 0
    calls = re.search(r"in (\d+) s, (\d+) calls of a real Slurm", line)
    assert calls is not None, line
    assert (int(calls[1]) >= 3, int(calls[2]) >= 3) == (True, True), line


def test_following_is_not_measured_without_slurm(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.slurm.cluster.missing", lambda: ["slurmctld"])
    assert main(["--only", "follow"]) == 0
    assert "not run: real Slurm is not installed (missing slurmctld): apt-get install" in capsys.readouterr().out


def test_the_inputs_hold_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert count(synthetic(tmp_path, 40)) == 40
    assert count(synthetic(tmp_path, 3000)) == 3000
    monkeypatch.setattr("benchmarks.inputs.REAL", tmp_path / "none")
    made_up = masters(tmp_path)
    assert made_up.about.startswith("made-up masters")
    assert 1500 < count(made_up) < 2500
