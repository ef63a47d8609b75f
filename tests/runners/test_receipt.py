"""Receipts: whole or not there, and read back as they were written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from matrix.errors import RefusedError
from runners.receipt import NAME, Receipt, Step, read_receipt
from runners.workspace import write_atomic

if TYPE_CHECKING:
    from pathlib import Path


def receipt(**changes: Any) -> Receipt:
    return Receipt(**{"step": Step.PREPARED, "point": {"id": "x", "digest": "d"}, **changes})


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    written = receipt(step=Step.ENDED, outcome={"success": True}, results=[{"file": "a"}], job={"id": "7"})
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
