"""What a sweep does not run again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from matrix.workspace import open_workspace
from runners.receipt import NAME, Receipt, Step
from runners.sweep import already_done
from runners.target import target_of
from tests.runners.standin import world

if TYPE_CHECKING:
    from pathlib import Path

    from runners.target import Target


@pytest.fixture
def target(tmp_path: Path) -> Target:
    made = world(tmp_path, {"one": {}})
    return target_of(made.id("one"), open_workspace(str(made.checkout)))


def put(place: Path, target: Target, **changes: Any) -> Path:
    folder = place / str(target.row["id"])
    content: dict[str, Any] = {
        "step": Step.ENDED,
        "point": {"id": target.row["id"], "digest": target.row["digest"]},
        "outcome": {"success": True},
        "results": [{"file": "result_conc1.json", "bytes": 2, "sha256": "0"}],
    }
    Receipt(**{**content, **changes}).write(folder)
    (folder / "result_conc1.json").write_text("{}")
    return folder


def test_a_success_of_the_same_digest_with_its_files_is_done(tmp_path: Path, target: Target) -> None:
    assert not already_done(tmp_path, target)
    put(tmp_path, target)
    assert already_done(tmp_path, target)


@pytest.mark.parametrize(
    "changes",
    [
        {"step": Step.SUBMITTED},
        {"outcome": {"success": "yes"}},
        {"outcome": {}},
        {"point": {"id": "x", "digest": "other"}},
        {"results": [{"file": "result_conc1.json", "sha256": "0"}]},
        {"results": [{"file": "result_conc2.json", "bytes": 2, "sha256": "0"}]},
    ],
)
def test_anything_else_is_run(tmp_path: Path, target: Target, changes: dict[str, Any]) -> None:
    put(tmp_path, target, **changes)
    assert not already_done(tmp_path, target)


def test_a_result_that_was_removed_or_cut_is_measured_again(tmp_path: Path, target: Target) -> None:
    file = put(tmp_path, target) / "result_conc1.json"
    file.write_text("{")
    assert not already_done(tmp_path, target)
    file.unlink()
    assert not already_done(tmp_path, target)


@pytest.mark.parametrize("text", ["", "[", "{}", json.dumps({"version": 99})])
def test_half_a_receipt_is_no_success(tmp_path: Path, target: Target, text: str) -> None:
    (put(tmp_path, target) / NAME).write_text(text)
    assert not already_done(tmp_path, target)
