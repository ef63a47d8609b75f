"""`collect`: receipts and summaries of many launches in one table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from matrix.errors import NothingSelectedError
from runners.cli.main import main
from runners.collect import collect
from runners.outcomes import markdown, records, table
from runners.receipt import Receipt, Step


def put(folder: Path, name: str, figures: list[dict[str, Any]], **changes: Any) -> Path:
    target = folder / name
    target.mkdir(parents=True)
    (target / "result_conc1.json").write_text("{}")
    kept = {"file": "result_conc1.json", "bytes": 2, "sha256": sha256(b"{}").hexdigest()}
    content: dict[str, Any] = {
        "step": Step.ENDED,
        "point": {"id": name, "digest": "d"},
        "job": {"id": "7", "nodes": "node1"},
        "outcome": {"success": True, "verdict": "passed", "why": "it succeeded"},
        "results": [kept],
    }
    Receipt(**{**content, **changes}).write(target)
    (target / "summary.json").write_text(json.dumps({"figures": figures}))
    return target


@pytest.fixture
def results(tmp_path: Path) -> Path:
    put(tmp_path, "a-fixed", [{"conc": 4, "successful": 40, "total": 40, "total-tokens-per-second": 12345.678}])
    put(tmp_path, "b-agentic", [{"conc": 16, "successful": 9, "total": 10, "total.tokens_per_second": 77}])
    put(tmp_path, "c-eval", [{"eval": {"gsm8k": {"exact_match": 0.93, "exact_match_stderr": 0.01}}}])
    put(
        tmp_path, "d-failed", [], results=[],
        outcome={"success": False, "verdict": "failed", "why": "job 7 FAILED 3:0"},
    )  # fmt: skip
    put(tmp_path, "e-empty", [], outcome={"success": False, "verdict": "passed", "why": "no result"})
    put(tmp_path, "f-open", [], step=Step.SUBMITTED, outcome={}, results=[])
    put(tmp_path / ".earlier", "a-fixed", [])
    return tmp_path


def test_every_launch_has_its_line_and_earlier_ones_have_none(results: Path) -> None:
    rows, findings = collect(results)
    assert findings == []
    assert [(row["id"], row["end"], row["success"]) for row in records(rows)] == [
        ("a-fixed", "success", True),
        ("b-agentic", "success", True),
        ("c-eval", "success", True),
        ("d-failed", "failed", False),
        ("e-empty", "no result", False),
        ("f-open", "submitted", False),
    ]
    shown = table(rows).splitlines()
    assert "40/40" in shown[2]
    assert "12345.68" in shown[2]
    assert "77.00" in shown[3]
    assert "gsm8k 0.9300" in shown[4]
    assert "0.0100" not in shown[4]
    text = markdown(rows)
    assert text.startswith("3 of 6 points succeeded.")
    assert "- `d-failed`: job 7 FAILED 3:0" in text
    assert "- `f-open`: submitted" in text


def test_a_kept_file_that_is_another_one_is_found(results: Path) -> None:
    (results / "a-fixed" / "result_conc1.json").write_text("{ }")
    (results / "b-agentic" / "result_conc1.json").unlink()
    _, findings = collect(results)
    assert [finding.rule for finding in findings] == ["collect-changed", "collect-changed"]
    done = CliRunner().invoke(main, ["collect", str(results), "--format", "json"])
    assert done.exit_code == 1
    assert len(json.loads(done.stdout)) == 6
    assert "collect-changed" in done.stderr


BROKEN = (
    "{", "[]", '{"figures": [1]}', "{}", '{"figures": {"conc": 1}}', '{"figures": [{"eval": [1]}]}',
    '{"figures": [{"eval": {"gsm8k": 0.9}}]}', "[" * 200_000, "\\xff",
)  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_summary_is_refused_and_the_others_are_shown(results: Path, text: str) -> None:
    (results / "a-fixed" / "summary.json").write_text(text)
    rows, findings = collect(results)
    assert len(rows) == 5
    assert [finding.rule for finding in findings] == ["collect-summary"]


def test_a_summary_of_whoever_wrote_it_is_shown_as_numbers_alone(results: Path) -> None:
    figures = [{"conc": "<b>", "successful": "many", "total": [1], "median-ttft-ms": None, "x": {"y": "z"}}]
    text = json.dumps({"figures": figures})[:-2] + ', {"conc": 4, "total-tokens-per-second": NaN}]}'
    (results / "a-fixed" / "summary.json").write_text(text)
    rows, findings = collect(results)
    assert findings == []
    assert rows[0].figures == ({"x": {}}, {"conc": 4})
    json.dumps(records(rows), allow_nan=False)


def test_a_receipt_of_whoever_wrote_it_is_shown_as_texts_alone(results: Path) -> None:
    path = results / "a-fixed" / "receipt.json"
    record = json.loads(path.read_text())
    record["job"] |= {"id": float("nan"), "nodes": ["node1"]}
    record["outcome"]["why"] = float("inf")
    path.write_text(json.dumps(record))
    rows, findings = collect(results)
    assert findings == []
    (first, *_) = json.loads(json.dumps(records(rows), allow_nan=False))
    assert (first["job"], first["nodes"], first["why"]) == (None, None, "inf")
    assert "nan" not in table(rows)


def test_a_kept_file_that_cannot_be_read_is_told(results: Path) -> None:
    (results / "a-fixed" / "result_conc1.json").unlink()
    (results / "a-fixed" / "result_conc1.json").mkdir()
    _, findings = collect(results)
    assert [finding.rule for finding in findings] == ["collect-changed"]
    assert "cannot be read: Is a directory" in findings[0].message


def test_nothing_is_status_3(tmp_path: Path) -> None:
    with pytest.raises(NothingSelectedError):
        collect(tmp_path)
    assert CliRunner().invoke(main, ["collect", str(tmp_path)]).exit_code == 3


@pytest.mark.parametrize("form", ["table", "json", "markdown"])
def test_a_reader_who_leaves_and_a_full_disk_are_no_traceback(results: Path, root: Path, form: str) -> None:
    argv = [sys.executable, "-m", "runners", "collect", str(results), "--format", form]
    env = {**os.environ, "PYTHONPATH": str(root)}
    with Path("/dev/full").open("wb") as disk:
        done = subprocess.run(argv, stdout=disk, stderr=subprocess.PIPE, text=True, env=env, check=False)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(argv, stdout=pipe, stderr=subprocess.PIPE, text=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (141, "")
