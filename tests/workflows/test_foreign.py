"""The workflows that `matrix init` writes: GitHub reads them, and they are ours but for what is installed.

So whatever is proven of our own holds for them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from matrix import __version__
from tests.changelog.support import Repository
from tests.cli.support import cli

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.workflows.evaluator import Evaluator

INSTALL = re.compile(r"(?m)pip install --quiet (\S+)$")


def test_they_are_ours(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, github: Evaluator) -> None:
    Repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cli("init").status == 0
    written = sorted((tmp_path / ".github/workflows").iterdir())
    own = {path.name for path in (root / ".github/workflows").iterdir()} - {"ci.yml"}
    assert {path.name for path in written} == own
    for path in written:
        text = path.read_text(encoding="utf-8")
        ours = (root / ".github/workflows" / path.name).read_text(encoding="utf-8")
        assert github.parse(f"foreign-{path.stem}", text)["errors"] == []
        installed = set(INSTALL.findall(text))
        assert installed == {f"matrix-runner=={__version__}"}
        assert set(INSTALL.findall(ours)) == {"."}
        assert INSTALL.sub("", text) == INSTALL.sub("", ours)
