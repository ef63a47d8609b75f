"""Recipes and curves written inside a test."""

from collections.abc import Callable
from pathlib import Path

import pytest

from matrix.recipes.golden import CurveBook
from matrix.recipes.recipe import Recipe, RecipeBook

RecipeMaker = Callable[[str], Recipe]
BookMaker = Callable[..., CurveBook]


@pytest.fixture
def recipe_of(tmp_path: Path) -> RecipeMaker:
    """A resolved recipe from YAML text."""

    def make(text: str) -> Recipe:
        folder = tmp_path / "recipes"
        folder.mkdir(exist_ok=True)
        (folder / "r.yaml").write_text(text, encoding="utf-8")
        return RecipeBook([folder]).resolve("r.yaml")

    return make


@pytest.fixture
def book_of(tmp_path: Path) -> BookMaker:
    """A folder of curves from name=text pairs; ``__`` in a name is a dash."""

    def make(**files: str) -> CurveBook:
        folder = tmp_path / "golden"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / f"{name.replace('__', '-')}.yaml").write_text(text, encoding="utf-8")
        return CurveBook(folder)

    return make


@pytest.fixture(scope="session")
def shipped(root: Path) -> CurveBook:
    """The curves of this repository."""
    return CurveBook(root / "configs" / "golden")
