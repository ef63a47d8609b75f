"""The entry point: commands are imported when they are asked for, and errors become exit statuses here alone."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from matrix import __version__
from matrix.cli.command import Command, flag_that_ends, option
from matrix.errors import MatrixError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

__all__ = ["finish", "main", "run"]

_COMMANDS: Final = {
    "init": ("matrix.cli.init:init", "Make a repository ready."),
    "expand": ("matrix.cli.expand:expand", "Show the jobs of the search space."),
    "show": ("matrix.cli.show:show", "Show one point whole."),
    "why": ("matrix.cli.why:why", "Say why a point is there."),
    "why-not": ("matrix.cli.why:why_not", "Say why a point is not there, and what would bring it back."),
    "diff": ("matrix.cli.diff:diff", "Show which jobs a change changes."),
    "cost": ("matrix.cli.cost:cost", "Say what jobs take."),
    "golden": ("matrix.cli.golden:golden", "Golden acceptance lengths: list, show, lookup, check."),
    "check": ("matrix.cli.check:check", "Hold every row to its recipe."),
    "report": ("matrix.cli.html:report", "Write the search space as one page."),
    "coverage": ("matrix.cli.coverage:coverage", "Show which points have new results."),
    "changelog": ("matrix.cli.changelog:changelog", "The performance changelog: check, fix, merge."),
    "plan": ("matrix.cli.plan:plan", "Show what a change runs."),
    "simulate": ("matrix.cli.simulate:simulate", "Say what an event would start, and why."),
    "limits": ("matrix.cli.limits:limits", "Hold a plan to the limits of GitHub Actions."),
    "shard": ("matrix.cli.shard:shard", "The jobs of one shard of a plan."),
    "job": ("matrix.cli.shard:job", "One job of a plan."),
    "workflows": ("matrix.cli.workflows:workflows", "Write the workflows of a repository, and check them."),
    "reuse": ("matrix.cli.reuse:reuse", "Say what an earlier sweep can stand in for."),
    "comment": ("matrix.cli.comment:comment", "Say on a pull request what its sweep does."),
}


class LazyGroup(Command, click.Group):
    """A group whose commands are imported by name; the help text of the list is kept here, so that help is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order people meet them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in _COMMANDS:
            return None
        from importlib import import_module

        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the near commands for an unknown one."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from matrix.findings import did_you_mean

            ctx.fail(f"No such command '{args[0]}'; {did_you_mean(args[0], _COMMANDS)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands and options that begin so, without importing any command."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=text) for name, (_, text) in _COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")
def matrix(*, debug: bool) -> None:
    """From a master config of inference benchmarks to the jobs of a sweep.

    Exit status: 0 fine; 1 refused; 2 wrong command line; 3 nothing selected; 128+n ended by signal n.
    """


matrix.params.insert(
    0, flag_that_ends("--version", text="Show the version and exit.", say=lambda _: f"matrix, version {__version__}")
)


def run(command: click.Command, args: Sequence[str] | None = None, *, prog: str) -> int:
    """Run a command; its errors go to stderr, its exit status is returned."""
    arguments = list(sys.argv[1:] if args is None else args)
    if f"_{prog.upper()}_COMPLETE" in os.environ:
        from matrix.cli.shells import register

        register()
    try:
        status = command.main(arguments, prog_name=prog, standalone_mode=False)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - each way to end has its status
        try:
            return _status_of(error, prog, debug="--debug" in arguments)
        except BrokenPipeError:  # nobody reads what is told, either
            return _closed_pipe()
    return status if isinstance(status, int) else 0


def _status_of(error: BaseException, prog: str, *, debug: bool) -> int:
    match error:
        case BrokenPipeError():
            return _closed_pipe()
        case SystemExit():  # what click makes of a closed pipe, and of a shell that asks for completions
            pipe = type(sys.stdout).__name__.endswith("PacifyFlushWrapper")  # asking click for it warns
            return _closed_pipe() if pipe else error.code if isinstance(error.code, int) else 1
        case RefusedError():
            return _refused(error)
        case MatrixError():
            click.echo(f"{prog}: {error}", err=True)
            return error.exit_status
        case click.ClickException() | click.exceptions.Exit():
            if isinstance(error, click.ClickException):
                error.show()
            return error.exit_code
        case KeyboardInterrupt() | click.Abort():
            return 130
        case _ if debug:
            raise error
        case OSError():
            return _failed_system(error, prog)
        case _:
            kind = type(error).__name__
            click.echo(
                f"{prog}: internal error: {kind}: {error}. This is a bug; {prog} --debug … shows where.", err=True
            )
            return 1


def _refused(error: RefusedError) -> int:
    from matrix.findings import in_order
    from matrix.report.findings import print_findings

    try:
        print_findings(in_order(error.findings), sys.stderr)
    except BrokenPipeError:
        raise
    except OSError:
        return 1
    return error.exit_status


def _failed_system(error: OSError, prog: str) -> int:
    """A full disk and its like: nothing of ours is wrong."""
    import contextlib

    with contextlib.suppress(OSError):
        click.echo(f"{prog}: {error.filename or 'the output'}: {error.strerror or error}", err=True)
    return 1


def _closed_pipe() -> int:
    """End as a program killed by SIGPIPE does; what is still buffered has no reader."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def main() -> NoReturn:
    """The command line of `matrix.cli.start`."""
    _buffer_output()
    command: Any = matrix
    finish(run(command, prog="matrix"))


def _buffer_output() -> None:
    """Write stdout through a buffer even under PYTHONUNBUFFERED.

    Without one Python drops what a pipe did not take when its reader left, and the loss looks like success.
    """
    if getattr(sys.stdout, "write_through", False):
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = open(sys.stdout.fileno(), "w", encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115


def finish(status: int) -> NoReturn:
    """End the process with a status, without taking every object apart first: that costs a tenth of a short command."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = _closed_pipe()
    except OSError:  # told when the command flushed
        status = status or 1
    if sys.gettrace() is not None or "coverage" in sys.modules:
        sys.exit(status)
    os._exit(status)
