"""Fixtures that any test may use."""

from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine makes a correct example slow; no test here is about time. The profile in force stays
# the parent, so that hypothesis keeps its fixed seed where it notices CI.
settings.register_profile("no-deadline", parent=settings.default, deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared(root: Path) -> Path:
    """The folder of reference data that lies beside some checkouts; without it the test is skipped."""
    folder = root.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder 'shared' beside the checkout")
    return folder
