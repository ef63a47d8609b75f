"""The group of all commands, and the one place where an error becomes text and an exit status."""

from __future__ import annotations

import sys
from typing import Any

import click

from matrix import __version__
from matrix.errors import MatrixError
from runners.cli.collect import collect
from runners.cli.inspect import cancel, doctor, repro
from runners.cli.launch import launch
from runners.cli.patches import patches
from runners.cli.sweep import sweep
from runners.harmless import for_log, printable

__all__ = ["main"]


class _Main(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MatrixError as error:
            said = str(error)
            if sys.stderr.isatty():
                said = "\n".join(map(printable, said.splitlines()))
            click.echo(for_log(said), err=True)
            ctx.exit(error.exit_status)


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="runners")
@click.option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")
def main(*, debug: bool) -> None:
    """Run points of a plan on a Slurm cluster.

    Exit status: 0 fine; 1 refused or failed; 2 wrong command line; 3 nothing selected; 128+n ended by signal n.
    """


for command in (cancel, collect, doctor, launch, patches, repro, sweep):
    main.add_command(command)
