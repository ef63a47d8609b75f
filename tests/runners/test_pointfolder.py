"""The folder of a point: one launch at a time, and nothing of an earlier one lost or mixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matrix.errors import RefusedError
from runners.pointfolder import own_folder, put_aside
from runners.workspace import beside

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_killed_launch_was_writing_is_removed_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    names = {"receipt.json", ".hidden", ".server-logs.tar.gz", ".x.1234567", ".x.1234567g"}
    for name in names:
        (folder / name).touch()
    beside(folder / "server-logs.tar.gz").touch()
    beside(folder / "receipt.json").touch()
    with own_folder(tmp_path, "a") as mine:
        assert {path.name for path in mine.iterdir()} == names | {".lock"}


def test_one_launch_at_a_time(tmp_path: Path) -> None:
    with own_folder(tmp_path, "a"):
        with (
            pytest.raises(RefusedError, match="another launch of this point"),
            own_folder(tmp_path, "a"),
        ):
            pass
        with own_folder(tmp_path, "b"):
            pass
    with own_folder(tmp_path, "a"):
        pass


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_folder_that_is_none_is_refused(tmp_path: Path, kind: str) -> None:
    if kind == "file":
        (tmp_path / "a").touch()
    else:
        (tmp_path / "a").symlink_to(tmp_path / "nowhere" / "at-all")
    with pytest.raises(RefusedError, match="cannot be made") as refused, own_folder(tmp_path, "a"):
        pass
    assert refused.value.findings[0].fix


def test_earlier_launches_are_numbered_whatever_else_lies_there(tmp_path: Path) -> None:
    folder, earlier = tmp_path / "a", tmp_path / ".earlier" / "a"
    for name in ("1", "7", "2-of-mine", "notes"):
        (earlier / name).mkdir(parents=True)
    with own_folder(tmp_path, "a"):
        put_aside(folder)
        assert not (earlier / "8").exists(), "there was nothing"
        (folder / "receipt.json").write_text("{}")
        (folder / "sub").mkdir()
        put_aside(folder)
        assert sorted(path.name for path in (earlier / "8").iterdir()) == ["receipt.json", "sub"]
        assert [path.name for path in folder.iterdir()] == [".lock"]
