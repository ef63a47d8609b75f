"""A recipe with something else in the place of any one value ends in findings, never in a traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matrix.config.source import loads, plain
from matrix.recipes.commands import CommandsError, commands_of
from matrix.recipes.dialect import to_schema_1
from matrix.recipes.recipe import Recipe, Reference
from matrix.report.commands import render_text

if TYPE_CHECKING:
    from pathlib import Path

JUNK: Final[list[Any]] = [None, True, -1, 0, 1000, 0.5, "", "text", "{", [], [1], [{}], {}, {"a": 1}, {"node": "x"}]


def paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value."""
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(found for key, value in members for found in paths(value, (*path, key)))]


def put(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with one value replaced."""
    if not path:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[path[0]] = put(node[path[0]], path[1:], value)
    return copy


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_one_junk_value(data: st.DataObject, shipped: list[Recipe], tmp_path: Path) -> None:
    by_file = {recipe.reference.path: recipe for recipe in shipped}
    recipe = data.draw(st.sampled_from(sorted(by_file.values(), key=lambda recipe: recipe.reference.path)))
    whole = plain(recipe.data)
    path = data.draw(st.sampled_from([path for path in paths(whole) if path]))
    text = json.dumps(put(whole, path, data.draw(st.sampled_from(JUNK))))
    document = loads(text.encode(), "r.yaml")
    broken = Recipe(Reference("r", "r", None), document.root, document, tmp_path / "r.yaml")
    translated, findings = to_schema_1(broken)
    assert isinstance(translated, dict)
    assert all(finding.message and finding.fix for finding in findings)
    try:
        told = commands_of(broken)
    except CommandsError as error:
        assert error.findings  # noqa: PT017 - either outcome is right
    else:
        assert render_text(told)
