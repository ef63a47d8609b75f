"""``matrix show``: one point whole."""

from __future__ import annotations

import click

from matrix.cli.command import option
from matrix.cli.complete import offer
from matrix.cli.options import file_options, terminal_width, workspace_of

__all__ = ["show"]


@click.command(short_help="Show one point whole.")
@click.argument("name", metavar="ID", shell_complete=offer("id"))
@file_options
@option("--eval", "as_eval", is_flag=True, help="As an accuracy run.")
@option("--commands", "as_commands", is_flag=True, help="What the cluster is told: argv and environment.")
@option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="text for people or json.")
def show(
    *,
    name: str,
    masters: tuple[str, ...],
    runners: str | None,
    recipes: tuple[str, ...],
    golden: str | None,
    as_eval: bool,
    as_commands: bool,
    style: str,
) -> int:
    """Show the point with this ID: its row, the file and line of every value, and its resolved recipe.

    With --commands: every process that the cluster would start for it, rendered without a cluster.
    """
    from matrix.cli.report import tell
    from matrix.points.lookup import accuracy_run, find_point
    from matrix.points.provenance import sources
    from matrix.report.show import commands_text, point_record, point_text

    workspace = workspace_of(masters, runners, recipes, golden)
    point, findings = find_point(name, workspace.configs, workspace.facts, workspace.policy)
    tell(findings)
    point = accuracy_run(point, workspace.policy) if as_eval else point
    if as_commands:
        click.echo(commands_text(point))
        return 0
    origins = sources(point, workspace.facts.fleet)
    if style == "json":
        from json import dumps

        click.echo(dumps(point_record(point, origins), indent=2))
    else:
        click.echo("\n".join(point_text(point, origins, terminal_width())))
    return 0
