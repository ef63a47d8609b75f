"""``load``: the files of a repository, read and validated. The one place where expansion meets the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from matrix.config.settings import Settings, find_settings
from matrix.points.evals import EvalPolicy
from matrix.points.expand import Facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.config.model import Config

__all__ = ["Workspace", "open_workspace"]


class Workspace(NamedTuple):
    """Everything that expansion needs of one repository."""

    settings: Settings
    configs: tuple[Config, ...]
    facts: Facts
    policy: EvalPolicy


def open_workspace(
    start: str = ".",
    *,
    masters: Sequence[str] = (),
    runners: str | None = None,
    recipes: Sequence[str] = (),
    golden: str | None = None,
) -> Workspace:
    """Read the files that the arguments name, and the others where the repository around ``start`` keeps them.

    Raises:
        RefusedError: a file is missing or broken, with every finding of all of them.
    """
    from matrix.config.loading import load_fleet, load_masters

    settings = find_settings(start).override(masters=masters, runners=runners, recipes=recipes, golden=golden)
    runners = _require(settings)
    configs = load_masters(settings.masters)
    book = None
    if settings.recipes:
        from matrix.recipes.recipe import RecipeBook

        book = RecipeBook(settings.recipes)
    return Workspace(settings, configs, Facts(load_fleet(runners), book), _policy(settings))


def _require(settings: Settings) -> str:
    """The runners file; refuses when it or the masters are nowhere named."""
    if settings.masters and settings.runners is not None:
        return settings.runners
    from matrix.errors import RefusedError
    from matrix.findings import Finding

    where = "in this folder or above it" if settings.root is None else f"in {settings.root}"
    wanted = []
    if not settings.masters:
        wanted.append(("master config", "configs/*-master.yaml", "--config FILE"))
    if settings.runners is None:
        wanted.append(("runners file", "configs/runners.yaml", "--runners FILE"))
    raise RefusedError(
        Finding(
            rule="settings-missing",
            message=f"no {what} is named, and there is no {usual} {where}.",
            fix=f"name it with {option}, or in [tool.matrix] of pyproject.toml",
        )
        for what, usual, option in wanted
    )


def _policy(settings: Settings) -> EvalPolicy:
    if settings.evals is None:
        return EvalPolicy()
    from matrix.config.loading import load_evals
    from matrix.points.evals import policy_of

    return policy_of(load_evals(settings.evals))
