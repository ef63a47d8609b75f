"""Commands and options that leave out what click does for others at the start of every run.

Looking for a translation of its words, of which there is none here, takes 1.5 ms, and the module ``inspect``, which it
tidies the help of each option with, 4 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic from click 8.5 on

__all__ = ["Command", "FileName", "Option", "ParamType", "flag_that_ends", "option"]


class Option(click.Option):
    """An option whose help is taken as it is written: one paragraph without indentation."""

    def __init__(self, *args: Any, help: str | None = None, **settings: Any) -> None:  # noqa: A002 - click's name
        super().__init__(*args, **settings)
        self.help = help


def option(*names: str, **settings: Any) -> Callable[[Any], Any]:
    """``click.option`` with an `Option`."""
    return click.option(*names, cls=Option, **settings)


def flag_that_ends(*names: str, text: str, say: Any) -> Option:
    """A flag that prints what ``say`` makes of the context, and ends the command."""

    def end(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value and not ctx.resilient_parsing:
            click.echo(say(ctx), color=ctx.color)
            ctx.exit()

    return Option(names, is_flag=True, is_eager=True, expose_value=False, callback=end, help=text)


class Command(click.Command):
    """A command whose help option is made with the text at hand."""

    _help: Option | None = None

    def get_help_option(self, ctx: click.Context) -> Option | None:
        """The option, one and the same each time."""
        names = self.get_help_option_names(ctx)
        if self._help is None and names:
            self._help = flag_that_ends(*names, text="Show this message and exit.", say=click.Context.get_help)
        return self._help


class FileName(ParamType):
    """The name of a file or folder, whether or not it is there; a shell offers those that are."""

    name = "path"

    def shell_complete(self, _: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave it to the shell."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]
