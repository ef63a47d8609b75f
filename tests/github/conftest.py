"""A site, its server, and a client whose clock does not wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matrix.github import GitHub
from tests.github.clock import FakeClock
from tests.github.server import REPOSITORY, Server, Site

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is reached directly, whatever the machine is set up for."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def server(site: Site) -> Iterator[Server]:
    with Server(site) as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def github(server: Server, clock: FakeClock) -> Iterator[GitHub]:
    with GitHub(REPOSITORY, "t0ken", api=server.url, clock=clock, timeout=5) as client:
        yield client
