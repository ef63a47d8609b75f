"""GitHub's evaluator with our workflows in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.workflows.evaluator import Evaluator, bundle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def github(root: Path) -> Iterator[Evaluator]:
    """The evaluator, with every workflow of this repository parsed."""
    with Evaluator(bundle(root / ".pytest_cache" / "workflows")) as evaluator:
        for path in sorted((root / ".github/workflows").glob("*.yml")):
            assert evaluator.parse(path.stem, path.read_text(encoding="utf-8"))["errors"] == []
        yield evaluator
