"""One browser for all pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.report.browser import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, started once."""
    with chromium() as started:
        yield started
