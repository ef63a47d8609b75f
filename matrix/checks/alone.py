"""Recipes without a row: the variants of a file that nobody has put into a master yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matrix.errors import RefusedError
from matrix.recipes.recipe import RecipeBook, RecipeError, parse_reference, variants
from matrix.recipes.roles import ViewError, node_count, view_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.findings import Finding
    from matrix.recipes.roles import RecipeView

__all__ = ["is_recipe", "recipe_views"]


def is_recipe(name: str) -> bool:
    """Whether a name is a recipe's: a YAML file, perhaps with a selector.

    >>> is_recipe("recipes/a.yaml:override_x"), is_recipe("dsv4-fp4--agentic--1p-tp8-1d-tp8--c1")
    (True, False)
    """
    path, _, selector = name.rpartition(":")
    return (path or selector).endswith((".yaml", ".yml"))


def recipe_views(name: str, roots: Sequence[str]) -> list[RecipeView]:
    """The variant that a name selects, every variant of a file without a selector.

    ``name`` is written as in a master, or it is the path of a file.

    Raises:
        RefusedError: there is no such recipe, or one of its variants cannot be read.
    """
    path, colon, selector = name.rpartition(":")
    if not colon:
        path, selector = name, ""
    file = Path(path)
    if file.is_file():
        roots, name = (str(file.parent),), f"{file.name}{colon}{selector}"
    book = RecipeBook(roots)
    views: list[RecipeView] = []
    faults: list[Finding] = []
    try:
        names = [name] if selector else _variants(name, book)
    except RecipeError as error:
        raise RefusedError([error.finding]) from None
    for one in names:
        try:
            view = view_of(book.resolve(one))
            node_count(view)
            views.append(view)
        except (RecipeError, ViewError) as error:
            faults.append(error.finding)
    if faults:
        raise RefusedError(faults)
    return views


def _variants(name: str, book: RecipeBook) -> list[str]:
    root = book.document(parse_reference(name).path).root
    return [f"{name}:{variant}" for variant in variants(root)] or [f"{name}:base" if "base" in root else name]
