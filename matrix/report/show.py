"""One point whole: its row with the place of every value, and its recipe."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matrix.points.point import Point
    from matrix.points.provenance import Source

__all__ = ["commands_text", "flat_row", "point_record", "point_text", "recipe_yaml", "row_text"]

_SHORT: Final = 40
"""Longer values have their origin on a line of its own."""


def point_text(point: Point, origins: Mapping[str, Source], width: int) -> Iterator[str]:
    """The row as lines ``field  value  # where it came from``, then the resolved recipe."""
    yield from row_text(point.row(), origins, width)
    recipe = point.deployment.eval_recipe if point.eval_only else point.deployment.recipe
    if recipe is not None:
        yield ""
        yield f"resolved recipe  # {recipe.home()}"
        yield ""
        yield from (f"    {line}" for line in recipe_yaml(recipe.data).splitlines())


def row_text(row: Mapping[str, Any], origins: Mapping[str, Source], width: int) -> Iterator[str]:
    """A row as lines ``field  value  # where it came from``."""
    values = {name: value if isinstance(value, str) else dumps(value) for name, value in flat_row(row)}
    names = max(map(len, values))
    sizes = [(len(text), names + 6 + len(str(origins[name]))) for name, text in values.items() if len(text) <= _SHORT]
    column = _column(sizes, width)
    for name, text in values.items():
        origin = str(origins[name])
        line = f"{name:{names}}  {text:{column}}" if origin else f"{name:{names}}  {text}"
        if not origin or (len(text) <= column and len(line) + 4 + len(origin) <= width):
            yield f"{line}  # {origin}" if origin else line
        else:
            yield line.rstrip()
            yield f"{'':{names}}  # {origin}"


def _column(sizes: Sequence[tuple[int, int]], width: int) -> int:
    """How wide values are set for as many of them as can be to have their origin beside them.

    ``sizes``: of each value its own, and all that stands beside it in its line.
    """
    return max(
        sorted({size for size, _ in sizes}, reverse=True),
        key=lambda column: sum(size <= column and column + beside <= width for size, beside in sizes),
    )


def flat_row(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The row's fields, those of a nested mapping as ``prefill.tp``."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{member}", inner) for member, inner in value.items())
        else:
            yield name, value


def recipe_yaml(data: Any) -> str:
    """A resolved recipe as YAML, in the order that srtctl keeps: base first, then what the variant adds.

    Text that another reader could take for a number or a boolean is quoted, so that our own loader reads it back.
    """
    import yaml

    from matrix.config.scalars import meaning

    class Dumper(yaml.SafeDumper):
        """Quotes what readers disagree about."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        unclear = not isinstance(meaning(value), str)
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="'" if unclear else None)

    Dumper.add_representer(str, text)
    dumped: str = yaml.dump(plain(data), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return dumped


def commands_text(point: Point) -> str:
    """What the cluster is told to run the point.

    Raises:
        RefusedError: the point's recipe was not found, or its commands cannot be rendered.
    """
    from matrix.errors import RefusedError
    from matrix.findings import Finding
    from matrix.recipes.commands import CommandsError, commands_of
    from matrix.report.commands import render_text

    deployment = point.deployment
    recipe = deployment.eval_recipe if point.eval_only else deployment.recipe
    if recipe is None:
        named = f"its recipe {deployment.reference} was not found" if deployment.reference else "it names no recipe"
        message = f"{point.id} has no commands to show: {named}."
        fix = "name a recipe root with --recipes DIR" if deployment.reference else "name one with CONFIG_FILE=…"
        raise RefusedError([Finding(rule="recipe-missing", message=message, fix=fix)])
    try:
        return render_text(commands_of(recipe))
    except CommandsError as error:
        raise RefusedError(error.findings) from None


def point_record(point: Point, origins: Mapping[str, Source]) -> dict[str, Any]:
    """The same for programs."""
    recipe = point.deployment.eval_recipe if point.eval_only else point.deployment.recipe
    return {
        "version": 1,
        "row": point.row(),
        "sources": {
            name: {"places": [str(span) for span in origin.spans], "note": origin.note}
            for name, origin in origins.items()
        },
        "recipe": plain(recipe.data) if recipe is not None else None,
    }
