"""One cluster for all tests of this folder, and a clean one for each."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.runners.standin import World, world
from tests.slurm.cluster import Cluster

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and "slurm_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slurm)


@pytest.fixture(scope="session")
def slurm_cluster(real_slurm: Callable[[], AbstractContextManager[Cluster]]) -> Iterator[Cluster]:
    """The cluster."""
    with real_slurm() as cluster:
        yield cluster


@pytest.fixture
def cluster(slurm_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The cluster with all nodes idle; what the test leaves is cancelled.

    The environment of this process is set to it, because the code under test starts the programs of Slurm itself.
    """
    for name in os.environ.keys() - slurm_cluster.env.keys():
        monkeypatch.delenv(name)
    for name, value in slurm_cluster.env.items():
        monkeypatch.setenv(name, value)
    yield slurm_cluster
    slurm_cluster.reset()


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where launches keep what they share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def make(tmp_path: Path, cluster: Cluster, shared_cache: Path) -> Callable[..., World]:
    """A checkout whose points do what a test wants, to be launched on the cluster."""

    def build(**variants: dict[str, Any]) -> World:
        return world(tmp_path, variants, cluster.env, shared_cache)

    return build
