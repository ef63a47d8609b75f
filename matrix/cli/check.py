"""``matrix check``: hold every row to the recipe that would run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from matrix.cli.command import option
from matrix.cli.complete import offer
from matrix.cli.options import file_options, listed, workspace_of
from matrix.report.check import FORMATS

if TYPE_CHECKING:
    from matrix.checks.case import Space
    from matrix.checks.rule import Rule
    from matrix.checks.run import Report

__all__ = ["check"]


@click.command(short_help="Hold every row to its recipe.")
@click.argument("names", metavar="[ID|KEY|RECIPE]...", nargs=-1, shell_complete=offer("config-key", "id"))
@file_options
@listed("--select", metavar="RULE", help="These rules alone, exact or as a glob.")
@listed("--ignore", metavar="RULE", help="Without these rules.")
@option("--strict", is_flag=True, help="Warnings fail too.")
@option("--workspace", type=click.Path(exists=True, file_okay=False), help="What jobs see as /infmax-workspace.")
@option("--explain", metavar="RULE", help="Say what a rule is for, and stop.")
@option("--format", "style", type=click.Choice(FORMATS), default="text", help="How.")
def check(
    *,
    names: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,
    explain: str | None,
    style: str,
    **files: Any,
) -> int:
    """Hold every row of the masters to the recipe variant that would run, without a cluster.

    Points are named by ID, whole configs by KEY, both as globs too; a RECIPE (FILE.yaml or FILE.yaml:variant) is looked
    at by itself. Exit 1 when there is an error, with --strict when there is anything.
    """
    from matrix.report.check import report_lines, summary
    from matrix.report.findings import print_findings

    if explain is not None:
        click.echo(_text(explain))
        return 0
    report = _report(names, _rules(select, ignore), files, raising=style == "text")
    if style == "text":
        print_findings(report.findings, sys.stderr)
    for line in report_lines(report, style, strict=strict):
        click.echo(line)
    click.echo(summary(report), err=True)
    return 1 if report.refuses(strict=strict) else 0


def _rules(select: tuple[str, ...], ignore: tuple[str, ...]) -> tuple[Rule[Any], ...]:
    from matrix.checks.registry import UnknownRuleError, chosen

    try:
        return chosen(select, ignore)
    except UnknownRuleError as error:
        raise click.UsageError(str(error)) from None


def _text(name: str) -> str:
    rules = _rules((name,), ())
    return "\n\n".join(dict.fromkeys(f"{rule.name} ({rule.severity})\n\n{rule.text}" for rule in rules))


def _report(names: tuple[str, ...], rules: tuple[Rule[Any], ...], files: dict[str, Any], *, raising: bool) -> Report:
    """What the checks say; what cannot be read is a finding, where a program reads the answer."""
    from matrix.checks.run import Outcome, Report
    from matrix.errors import RefusedError

    try:
        return _checked(names, rules, files)
    except RefusedError as error:
        if raising:
            raise
        return Report(outcomes=tuple(map(Outcome, error.findings)), points=0, configs=0, recipes=0)


def _checked(names: tuple[str, ...], rules: tuple[Rule[Any], ...], files: dict[str, Any]) -> Report:
    from matrix.checks.alone import is_recipe, recipe_views
    from matrix.checks.registry import WAIVABLE
    from matrix.checks.run import check_recipes, check_space, joined

    workspace = files.pop("workspace")
    recipes = [name for name in names if is_recipe(name)]
    reports = []
    if recipes:
        from matrix.config.settings import find_settings

        roots = files["recipes"] or find_settings(".").recipes
        reports.append(check_recipes([view for name in recipes for view in recipe_views(name, roots)], rules))
    if len(recipes) < len(names) or not names:
        rest = [name for name in names if not is_recipe(name)]
        reports.append(check_space(_space(rest, workspace, files), rules, WAIVABLE))
    return joined(reports)


def _space(names: list[str], workspace: str | None, files: dict[str, Any]) -> Space:
    from pathlib import Path

    from matrix.checks.case import space_of
    from matrix.errors import RefusedError
    from matrix.recipes.golden import CurveBook

    opened = workspace_of(**files)
    folder = opened.settings.golden
    space, unknown = space_of(
        opened.configs,
        opened.facts,
        names=names,
        curves=CurveBook(folder) if folder is not None else None,
        workspace=Path(workspace) if workspace is not None else None,
        # Of other masters than the repository's own, its recipes may be without an entry.
        complete=not files["masters"] or bool(files["recipes"]),
    )
    if unknown:
        raise RefusedError(unknown)
    return space
