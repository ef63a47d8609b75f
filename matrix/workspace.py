"""``load``: the files of a repository, read and validated. The one place where expansion meets the disk."""

# ruff: noqa: PTH113, PTH118 - paths are strings here, see settings

from __future__ import annotations

from os.path import isfile, join
from typing import TYPE_CHECKING, Final

from matrix.config.settings import Settings, find_settings
from matrix.points.evals import EvalPolicy, policy_of
from matrix.points.expand import Facts
from matrix.points.point import Stack
from matrix.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.config.model import Config
    from matrix.points.expand import Inject

__all__ = ["Workspace", "open_workspace"]

_SERIES: Final = "runners/srt-slurm/patches/series.yaml"


class Workspace(Record):
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
    from matrix.config.loading import load_inputs

    settings = find_settings(start).override(masters=masters, runners=runners, recipes=recipes, golden=golden)
    configs, fleet, evals = load_inputs(settings.masters, _require(settings), settings.evals)
    book = None
    if settings.recipes:
        from matrix.recipes.recipe import RecipeBook

        book = RecipeBook(settings.recipes)
    facts = Facts(fleet, book, _stack(settings), _inject(settings) if book else None)
    return Workspace(settings, configs, facts, policy_of(evals) if evals is not None else EvalPolicy())


def _require(settings: Settings) -> str:
    """The runners file; refuses when it or the masters are nowhere named."""
    if settings.masters and settings.runners is not None:
        return settings.runners
    from matrix.errors import RefusedError
    from matrix.findings import Finding

    places = {None: "in this folder or above it", ".": "in this folder"}
    where = places.get(settings.root, f"in {settings.root}")
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


def _inject(settings: Settings) -> Inject | None:
    """What gives a recipe its golden acceptance length; nothing where there are no curves."""
    if settings.golden is None:
        return None
    from matrix.recipes.acceptance import injector
    from matrix.recipes.golden import CurveBook

    return injector(CurveBook(settings.golden))


def _stack(settings: Settings) -> Stack:
    """Pin and patches of the vendored srt-slurm; nothing where the repository has none."""
    name = join(settings.root or "", _SERIES)
    if settings.root is None or not isfile(name):
        return Stack()
    from matrix.config.source import load

    series = load(name, what="patch series").root
    patches = sorted((patch["file"], patch["sha256"]) for patch in series.get("patches", ()))
    return Stack(series.get("pin", ""), tuple(patches))
