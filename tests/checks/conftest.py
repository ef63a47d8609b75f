from pathlib import Path

import pytest

from tests.checks.support import Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Repository:
    monkeypatch.chdir(tmp_path)
    return Repository(tmp_path, capsys)
