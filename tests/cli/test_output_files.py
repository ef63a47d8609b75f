"""What a command writes into besides plain files: links, pipes and devices stay what they are."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from matrix.cli.files import replace
from tests.cli.support import cli, environment, repository

if TYPE_CHECKING:
    import pytest


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    target, link = tmp_path / "sub" / "page.html", tmp_path / "latest.html"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o640)
    link.symlink_to(Path("sub") / "page.html")
    replace(link, "new")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [link, tmp_path / "sub"]


def test_a_link_to_nothing_gets_its_target(tmp_path: Path) -> None:
    link = tmp_path / "latest.html"
    link.symlink_to("page.html")
    replace(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "new"


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    replace(pipe, "new")
    reader.join(10)
    assert read == ["new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_terminal_is_written_into() -> None:
    master, slave = os.openpty()
    name = os.ttyname(slave)
    replace(name, "new")
    assert os.read(master, 10) == b"new"
    assert stat.S_ISCHR(Path(name).stat().st_mode)
    os.close(master)
    os.close(slave)


def test_a_page_goes_to_stdout_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r"))
    result = subprocess.run(
        [sys.executable, "-m", "matrix", "report", "-o", "/dev/stdout"],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stdout[:15].lower()) == (0, "<!doctype html>")
    assert result.stderr.startswith("/dev/stdout: 3 points")


def test_a_folder_is_refused_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path / "r"))
    Path("page.html").mkdir()
    told = cli("report", "-o", "page.html")
    assert (told.status, told.out) in ((1, ""), (2, ""))
    assert "page.html" in told.err
    assert list(Path("page.html").iterdir()) == []
