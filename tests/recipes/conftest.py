"""Recipes to test with: those that ship, and small ones that a test writes down."""

from __future__ import annotations

import contextlib
from textwrap import dedent
from typing import TYPE_CHECKING, Protocol

import pytest

from matrix.recipes.recipe import RecipeBook, variants

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.recipes.recipe import Recipe


class Make(Protocol):
    """Writes a recipe file below a root of its own and resolves it."""

    def __call__(self, text: str, selector: str | None = None) -> Recipe: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    with contextlib.suppress(ValueError):  # another folder has the same option
        parser.addoption(
            "--update-golden", action="store_true", help="write the golden files anew instead of comparing"
        )


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def write(text: str, selector: str | None = None) -> Recipe:
        folder = tmp_path / "recipes"
        folder.mkdir(exist_ok=True)
        (folder / "r.yaml").write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return RecipeBook([folder]).resolve("r.yaml" if selector is None else f"r.yaml:{selector}")

    return write


@pytest.fixture(scope="session")
def book(root: Path) -> RecipeBook:
    """The recipes that ship."""
    return RecipeBook([root / "configs" / "recipes"])


@pytest.fixture(scope="session")
def shipped(book: RecipeBook) -> list[Recipe]:
    """Every variant that ships, resolved."""
    found = []
    for _, name in book.files():
        selectors = variants(book.document(name).root)
        found += [book.resolve(f"{name}:{selector}") for selector in selectors] if selectors else [book.resolve(name)]
    assert len(found) > 100, "the search space has more variants than that"
    return found
