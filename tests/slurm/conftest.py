"""One cluster for all tests of this folder, and a clean one for each."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm import cluster as real

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and "slurm_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slurm)


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[real.Cluster]:
    """The cluster, with the environment of this process set to it: the code under test starts the programs itself."""
    reason = unavailable()
    if reason and os.environ.get("REQUIRE_SLURM") == "1":
        pytest.fail(f"REQUIRE_SLURM=1, but {reason}")
    if reason:
        pytest.skip(reason)
    with real.running() as cluster, pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - cluster.env.keys():
            patch.delenv(name)
        for name, value in cluster.env.items():
            patch.setenv(name, value)
        yield cluster


def unavailable() -> str:
    """Why no cluster can be started here; empty when one can. One that does not start is always a failure."""
    if not sys.platform.startswith("linux"):
        return "real Slurm needs Linux"
    missing = real.missing()
    return f"real Slurm is not installed (missing {', '.join(missing)}): {real.INSTALL}" if missing else ""


@pytest.fixture
def cluster(slurm_cluster: real.Cluster) -> Iterator[real.Cluster]:
    """The cluster with all nodes idle; what the test leaves is cancelled."""
    yield slurm_cluster
    slurm_cluster.reset()
