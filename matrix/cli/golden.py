"""``matrix golden``: the committed acceptance lengths, looked up, tried out and checked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from matrix.cli.command import option
from matrix.cli.options import file_options, workspace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matrix.config.settings import Settings
    from matrix.findings import Finding
    from matrix.recipes.golden import CurveBook
    from matrix.recipes.recipe import Recipe

__all__ = ["golden"]

T = TypeVar("T")

_FOLDER = option("--golden", "folder", type=click.Path(), help="The folder of golden curves.")
_FORMAT = option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="How.")
_THINKING = option(
    "--thinking",
    type=click.Choice(["thinking_on", "thinking_off"]),
    default="thinking_on",
    help="How the model is asked.",
)
_PREFIX = option("--model-prefix", required=True, help="The model-prefix of the config.")


@click.group(short_help="Acceptance lengths of speculative decoding.")
def golden() -> None:
    """Acceptance lengths of speculative decoding: one committed value per model, thinking mode and draft length."""


@golden.command("list", short_help="Name the curves.")
@_FOLDER
@_FORMAT
def list_curves(*, folder: str | None, style: str) -> None:
    """Name the curves and the runs they are for."""
    from matrix.report.golden import curve_record, curves_table

    curves = _refusing(lambda: _book(folder).curves)
    _emit(style, lambda: curves_table(curves), lambda: [curve_record(curve) for curve in curves])
    _tell([fault for curve in curves for fault in curve.faults])


@golden.command(short_help="Show the values of one curve.")
@click.argument("curve")
@_FOLDER
@_FORMAT
def show(*, curve: str, folder: str | None, style: str) -> None:
    """Show the values of one curve, named as its file without the ending."""
    from matrix.report.golden import curve_record, curve_text

    curves = {one.name: one for one in _refusing(lambda: _book(folder).curves)}
    found = curves.get(curve.removesuffix(".yaml"))
    if found is None:
        from matrix.errors import UsageError
        from matrix.findings import did_you_mean

        msg = f"there is no curve {curve}; {did_you_mean(curve, curves)}"
        raise UsageError(msg)
    _tell(found.faults)
    _emit(style, lambda: curve_text(found), lambda: curve_record(found))


@golden.command(short_help="Look one value up.")
@_PREFIX
@option("--method", required=True, help="The draft method, as the engine is told it.")
@option("--tokens", type=click.IntRange(min=1), required=True, help="Draft tokens of a step.")
@option("--draft-model", help="The draft model, where curves differ in it.")
@option("--draft-sampling", help="greedy or probabilistic, where curves differ in it.")
@_THINKING
@_FOLDER
@_FORMAT
def lookup(*, folder: str | None, style: str, **request: Any) -> None:
    """Print the golden length of a draft. Nothing is interpolated and nothing has a default."""
    from matrix.recipes.golden import LookUp
    from matrix.report.golden import length_record

    found = _refusing(lambda: _book(folder).look_up(LookUp(**request)))
    _emit(style, lambda: found.text, lambda: length_record(found))


@golden.command(short_help="Show what a recipe would be given.")
@click.argument("recipe")
@_PREFIX
@option("--framework", help="The framework of the config. [default: the recipe's engine]")
@option("--spec-decoding", default="mtp", help="What the row says. [default: mtp]")
@option("--fixed", is_flag=True, help="As in a fixed-length run, not an agentic one.")
@option("--eval", "eval_only", is_flag=True, help="As in an accuracy run.")
@_THINKING
@option("--recipes", type=click.Path(), multiple=True, help="A recipe root. Repeatable.")
@_FOLDER
@_FORMAT
def inject(
    *, recipe: str, recipes: tuple[str, ...], folder: str | None, style: str, fixed: bool, **request: Any
) -> None:
    """Show what RECIPE (path:variant) would be given at launch, and what would be taken out of it."""
    from matrix.recipes import acceptance
    from matrix.report.golden import record_text

    resolved = _resolved(recipe, recipes)
    request["framework"] = request["framework"] or _refusing(lambda: acceptance.framework_of(resolved))
    wanted = acceptance.AcceptanceRequest(agentic=not fixed, **request)
    _, record = _refusing(lambda: acceptance.inject(resolved, wanted, _book(folder)))
    _emit(style, lambda: record_text(record), record.as_json)


@golden.command(short_help="Check the curves, and every entry against its curve.")
@file_options
@option("--strict", is_flag=True, help="Warnings fail too.")
def check(
    *, masters: tuple[str, ...], runners: str | None, recipes: tuple[str, ...], golden: str | None, strict: bool
) -> int:
    """Check the curves, and that every agentic speculative entry has exactly one golden length and no other.

    Exit 0 when nothing is wrong; warnings are told.
    """
    from matrix.checks.golden import check_golden
    from matrix.errors import RefusedError
    from matrix.findings import errors_of

    workspace = workspace_of(masters, runners, recipes, golden)
    book = _opened(workspace.settings)
    found = list(check_golden(workspace.configs, workspace.facts, book))
    if errors_of(found) or (strict and found):
        raise RefusedError(found)
    _tell(found)
    said = _counted(len(found), "warning") if found else "nothing wrong"
    curves, configs = _counted(len(book.curves), "curve"), _counted(len(workspace.configs), "config")
    click.echo(f"golden: {curves} and {configs} checked, {said}")
    return 0


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _book(folder: str | None) -> CurveBook:
    """The curves that the option names, or those of the repository around the working directory."""
    from matrix.config.settings import find_settings

    return _opened(find_settings(".").override(golden=folder))


def _opened(settings: Settings) -> CurveBook:
    from matrix.recipes.golden import CurveBook

    if settings.golden is None:
        from matrix.errors import RefusedError
        from matrix.findings import Finding

        message = "no folder of golden curves is named, and there is no configs/golden from here upwards."
        fix = "name it with --golden DIR, or in [tool.matrix] of pyproject.toml"
        raise RefusedError([Finding(rule="settings-missing", message=message, fix=fix)])
    return CurveBook(settings.golden)


def _resolved(reference: str, roots: tuple[str, ...]) -> Recipe:
    """A recipe named as in a master, or as the file it is."""
    from pathlib import Path

    from matrix.config.settings import find_settings
    from matrix.errors import RefusedError
    from matrix.recipes.recipe import RecipeBook, RecipeError

    path, colon, selector = reference.rpartition(":")
    if not colon:
        path, selector = reference, ""
    file = Path(path)
    if file.is_file():
        roots, reference = (str(file.parent),), f"{file.name}{colon}{selector}"
    try:
        return RecipeBook(roots or find_settings(".").recipes).resolve(reference)
    except RecipeError as error:
        raise RefusedError([error.finding]) from None


def _refusing(action: Callable[[], T]) -> T:
    from matrix.errors import RefusedError
    from matrix.recipes.golden import GoldenError

    try:
        return action()
    except GoldenError as error:
        raise RefusedError(error.findings) from None


def _emit(style: str, text: Callable[[], str], record: Callable[[], Any]) -> None:
    if style == "json":
        from json import dumps

        click.echo(dumps(record()))
    else:
        click.echo(text())


def _tell(findings: Sequence[Finding]) -> None:
    from matrix.findings import in_order
    from matrix.report.findings import print_findings

    print_findings(in_order(findings), sys.stderr)
