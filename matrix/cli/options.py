"""The options that commands share, and the repository that they name."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from matrix.cli.command import FileName, ParamType, option

if TYPE_CHECKING:
    from collections.abc import Callable

    from matrix.cli.complete import Offer
    from matrix.workspace import Workspace

__all__ = ["Listed", "Positive", "file_options", "kept", "terminal_width", "workspace_of"]


T = TypeVar("T")


class Positive(click.FloatRange):
    """A number above 0. ``nan`` and ``inf``, which Python reads as numbers too, are none to count with."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not a number to count with", param, ctx)
        return number


class Listed(ParamType):
    """Words separated by commas; the option may be repeated too."""

    name = "text"

    def __init__(self, member: ParamType = click.STRING) -> None:
        self.member = member

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """The words of one occurrence."""
        words = [word.strip() for word in str(value).split(",")]
        if not all(words):
            self.fail(f"{value!r} has an empty member", param, ctx)
        return tuple(self.member.convert(word, param, ctx) for word in words)


def flatten(_: click.Context, __: click.Parameter, value: Any) -> tuple[Any, ...]:
    """The words of all occurrences."""
    return tuple(word for words in value for word in words)


def _offer_many(words: str) -> Offer:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from matrix.cli.complete import offer_many

        return offer_many(words)(ctx, param, incomplete)

    return complete


def listed(
    *names: str, member: ParamType = click.STRING, words: str | None = None, **settings: Any
) -> Callable[[Any], Any]:
    """An option that takes several words. ``words``: the kind of them that a shell offers."""
    if words is not None:
        settings["shell_complete"] = _offer_many(words)
    return option(*names, type=Listed(member), multiple=True, callback=flatten, **settings)


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--config --runners --recipes --golden``."""
    path = FileName()
    options = [
        option("--config", "masters", type=path, multiple=True, help="A master config; repeat for several."),
        option("--runners", type=path, help="The runners file."),
        option("--recipes", type=path, multiple=True, help="A recipe root: recipes/x is DIR/x. Repeatable."),
        option("--golden", type=path, help="The folder of golden acceptance-length curves."),
    ]
    for add in reversed(options):
        command = add(command)
    return command


def workspace_of(
    masters: tuple[str, ...], runners: str | None, recipes: tuple[str, ...], golden: str | None
) -> Workspace:
    """What the file options name, over the repository that the working directory stands in."""
    from matrix.workspace import open_workspace

    return kept(open_workspace(masters=masters, runners=runners, recipes=recipes, golden=golden))


def kept(made: T) -> T:
    """Hold something until the process ends: taking it apart takes longer. The next of its kind replaces it."""
    _KEPT[type(made)] = made
    return made


_KEPT: Final[dict[type, object]] = {}


def terminal_width() -> int:
    """Columns of the terminal; 120 where there is none."""
    from shutil import get_terminal_size

    return get_terminal_size((120, 24)).columns
