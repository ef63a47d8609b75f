"""Fixtures that any test may use."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.slurm.cluster import Cluster

# The programs that tests start keep their compiled modules, as they do for a user; thousands of starts depend on it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A busy machine makes a correct example slow; no test here is about time. The profile in force stays
# the parent, so that hypothesis keeps its fixed seed where it notices CI.
settings.register_profile("no-deadline", parent=settings.default, deadline=None)
settings.load_profile("no-deadline")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Side by side (`pytest -n auto`): two workers more than cores, because tests on Slurm wait most of their time."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side, files that wait for Slurm begin first, then other slow ones, so that none is left to the end."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    marks = {mark: {item.path for item in items if item.get_closest_marker(mark)} for mark in ("slurm", "slow")}
    items.sort(key=lambda item: (item.path not in marks["slurm"], item.path not in marks["slow"]))


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay for good; a garbage collector that passes them over saves a fifth."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def real_slurm() -> Callable[[], AbstractContextManager[Cluster]]:
    """Starts a cluster. Without Slurm the test is skipped; REQUIRE_SLURM=1 makes that a failure."""
    from tests.slurm.cluster import running, unavailable

    reason = unavailable()
    if reason and os.environ.get("REQUIRE_SLURM") == "1":
        pytest.fail(f"REQUIRE_SLURM=1, but {reason}")
    if reason:
        pytest.skip(reason)
    return running


@pytest.fixture(scope="session")
def launch_cache(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where launches keep trees, packages and proofs, from one run of the tests to the next."""
    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)
    return cache.mkdir("launch") if cache is not None else tmp_path_factory.mktemp("launch")


@pytest.fixture(scope="session")
def shared(root: Path) -> Path:
    """The folder of reference data that lies beside some checkouts; without it the test is skipped."""
    folder = root.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder 'shared' beside the checkout")
    return folder
