"""A Python with the packages of the pinned srt-slurm, for the tests that ask the real one.

It is made once, as a launch makes it, and kept in pytest's cache folder for all of them. REQUIRE_PIN=1 turns the skip
without it into a failure.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from matrix.errors import RefusedError
from runners.srtctl import install, packages

__all__ = ["interpreter", "missing"]


def missing(reason: str) -> NoReturn:
    """End a test that needs the submodule's content or its packages."""
    if os.environ.get("REQUIRE_PIN") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def interpreter(tree: Path, cache: Path) -> Path:
    """The Python, made when `cache` has none for what this tree needs; other workers wait meanwhile."""
    try:
        made = install(packages(tree), Path(sys.executable), cache, os.environ)
    except RefusedError as refused:
        missing(f"the packages of srt-slurm cannot be installed: {refused}")
    return made.folder / "bin" / "python"
