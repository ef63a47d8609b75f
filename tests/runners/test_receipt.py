"""Receipts: whole or not there, and read back as they were written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from matrix.errors import RefusedError
from runners.job import JobId
from runners.leftover import find_leftover
from runners.receipt import NAME, Receipt, Step, read_receipt
from runners.workspace import write_atomic


def receipt(**changes: Any) -> Receipt:
    return Receipt(**{"step": Step.PREPARED, "point": {"id": "x", "digest": "d"}, **changes})


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    written = receipt(
        step=Step.ENDED, outcome={"success": True}, results=[{"file": "a", "sha256": "0"}], job={"id": "7"}
    )
    written.write(tmp_path / "x")
    read = read_receipt(tmp_path / "x")
    assert read.as_json() == written.as_json()
    assert read.succeeded
    assert [path.name for path in (tmp_path / "x").iterdir()] == [NAME]


@pytest.mark.parametrize(("step", "is_open"), [(step, step in {Step.SUBMITTING, Step.SUBMITTED}) for step in Step])
def test_a_job_may_be_in_the_queue_from_the_submission_on(step: Step, is_open: bool) -> None:
    assert receipt(step=step).open is is_open
    assert not receipt(step=step, outcome={"success": step is not Step.ENDED}).succeeded


BROKEN: dict[str, str] = {
    "half written": '{"version": 1, "step": "sub',
    "empty": "",
    "a list": "[]",
    "another version": json.dumps({**receipt().as_json(), "version": 2}),
    "no version": "{}",
    "another step": json.dumps({**receipt().as_json(), "step": "gone"}),
    "a section is missing": json.dumps({key: value for key, value in receipt().as_json().items() if key != "job"}),
    "a section of another kind": json.dumps({**receipt().as_json(), "results": {}}),
    "a point without an id": json.dumps(receipt(point={"digest": "d"}).as_json()),
    "a digest that is no text": json.dumps(receipt(point={"id": "x", "digest": 7}).as_json()),
    "a result that is no mapping": json.dumps(receipt(results=["a"]).as_json()),
    "a result without its hash": json.dumps(receipt(results=[{"file": "a"}]).as_json()),
    "a result elsewhere": json.dumps(receipt(results=[{"file": "../a", "sha256": "0"}]).as_json()),
    "too deep": "[" * 200_000,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_receipt_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(RefusedError) as refused:
        read_receipt(tmp_path)
    assert refused.value.findings[0].fix


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedError, match="receipt cannot be written"):
        receipt().write(tmp_path / "file")


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomic(path, "before")
    with pytest.raises(UnicodeEncodeError):
        write_atomic(path, "after \udcff")
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


OPEN: dict[str, Any] = {"step": Step.SUBMITTED, "point": {"id": "x", "digest": "d", "row": {"conc": [4]}}}
JOB: dict[str, Any] = {
    "tag": "x.1", "folder": "/jobs/x.1", "workspace": "/w", "outputs": "/o", "id": "7", "output": "/o/7",
}  # fmt: skip


def test_what_a_launch_left_behind_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert find_leftover(tmp_path) is None
    receipt(**OPEN, job=JOB, times={"submitting": "2026-11-30T10:00:00+00:00"}).write(tmp_path)
    left = find_leftover(tmp_path)
    assert left is not None
    assert (left.tag, left.job, left.output, left.row) == ("x.1", JobId(7), Path("/o/7"), {"conc": [4]})
    assert left.since.tzinfo is None
    receipt(**{**OPEN, "step": Step.SUBMITTING}, job={**JOB, "id": None}).write(tmp_path)
    left = find_leftover(tmp_path)
    assert left is not None
    assert (left.job, left.output) == (None, None)
    receipt(**{**OPEN, "step": Step.ENDED}, job={}).write(tmp_path)
    assert find_leftover(tmp_path) is None


HALF: dict[str, dict[str, Any]] = {
    "no job": {"job": {}},
    "no tag": {"job": {**JOB, "tag": ""}},
    "an id that is none": {"job": {**JOB, "id": "--all"}},
    "an id that is a number": {"job": {**JOB, "id": 7}},
    "no output": {"job": {key: value for key, value in JOB.items() if key != "output"}},
    "a folder that is not its own": {"job": {**JOB, "folder": "/home/somebody"}},
    "a folder of wherever it is read": {"job": {**JOB, "folder": "x.1"}},
    "no row": {"point": {"id": "x", "digest": "d"}},
    "a row without concurrencies": {"point": {"id": "x", "digest": "d", "row": {}}},
    "a golden length that is none": {"point": {**OPEN["point"], "golden": "three"}},
    "a time that is none": {"job": JOB, "times": {"submitting": "yesterday"}},
    "a time of another kind": {"job": JOB, "times": {"submitting": 7}},
}


@pytest.mark.parametrize("changes", HALF.values(), ids=HALF)
def test_nothing_is_done_on_the_word_of_half_a_receipt(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Its folder would be removed, and its id cancelled."""
    receipt(**{**OPEN, "job": JOB, **changes}).write(tmp_path)
    with pytest.raises(RefusedError, match="does not say which job it had") as refused:
        find_leftover(tmp_path)
    assert str(tmp_path / NAME) in str(refused.value)
    assert refused.value.findings[0].fix
