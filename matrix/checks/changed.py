"""Which configs run something else than before: other points, or the same points with another recipe.

Comments, key order, file names and the software below a recipe (pin and patches) are no change of a config.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from matrix.points.evals import EvalMode
from matrix.points.expand import Facts
from matrix.points.pipeline import expand
from matrix.points.point import Stack
from matrix.points.request import Request
from matrix.points.row import CONFIG_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from matrix.config.model import Config
    from matrix.points.point import Point
    from matrix.workspace import Workspace

__all__ = ["changed_configs", "points_of", "unchanged_configs"]


def changed_configs(
    head: Workspace, base: Workspace, same_recipe: Callable[[str], bool] | None = None
) -> dict[str, str]:
    """The changed configs of the head, each with what changed first. Removed configs are no change.

    ``same_recipe`` tells by its path whether a recipe file is the same in both; without it both are read.
    """
    before = {config.key: config for config in base.configs}
    alike = unchanged_configs(head, base, same_recipe)
    suspects = [config for config in head.configs if config.key not in alike]
    if not suspects:
        return {}
    old = _digests(base, [before[config.key] for config in suspects if config.key in before])
    new = _digests(head, suspects)
    changed = {}
    for config in suspects:
        was, now = old.get(config.key, {}), new.get(config.key, {})
        if reason := _difference(was, now):
            changed[config.key] = reason if config.key in before else f"it is new, with {_count(now)}"
    return changed


def unchanged_configs(
    head: Workspace, base: Workspace, same_recipe: Callable[[str], bool] | None = None
) -> frozenset[str]:
    """The configs that have all of their inputs from equal files; what lies below a recipe is not looked at.

    Their throughput points are the same. Which of them are evaluated may depend on other configs.
    """
    if not _same_facts(head, base):
        return frozenset()
    same = same_recipe or (lambda path: _file(head, path) == _file(base, path))
    before = {config.key: config for config in base.configs}
    return frozenset(config.key for config in head.configs if _same_inputs(config, before.get(config.key), same))


def points_of(workspace: Workspace, configs: Iterable[Config]) -> Iterator[Point]:
    """The throughput points of some configs, whatever lies below their recipes."""
    facts: Facts = workspace.facts._replace(stack=Stack())
    yield from expand(tuple(configs), facts, workspace.policy, Request(evals=EvalMode.NONE)).points


def _digests(workspace: Workspace, configs: Iterable[Config]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for point in points_of(workspace, configs):
        key = point.deployment.config.key
        for conc in point.concs:
            one = point._replace(concs=(conc,))
            found.setdefault(key, {})[one.id] = one.digest
    return found


def _difference(was: dict[str, str], now: dict[str, str]) -> str:
    gone = [name for name in was if name not in now]
    come = [name for name in now if name not in was]
    other = [name for name in now if name in was and was[name] != now[name]]
    if other:
        return f"{_count(other)} changed, the first {other[0]}"
    if come:
        return f"{_count(come)} added, the first {come[0]}"
    return f"{_count(gone)} removed, the first {gone[0]}" if gone else ""


def _count(points: Iterable[str]) -> str:
    count = len(tuple(points))
    return "1 point" if count == 1 else f"{count} points"


def _same_facts(head: Workspace, base: Workspace) -> bool:
    """Whether runners and golden curves, which points of any config rest on, are the same."""
    return head.facts.fleet.document.root == base.facts.fleet.document.root and _same_curves(head, base)


def _same_inputs(config: Config, other: Config | None, same_recipe: Callable[[str], bool]) -> bool:
    """Whether nothing that the config's points are made of differs; without expanding it."""
    return other is not None and config.node == other.node and all(map(same_recipe, _recipes(config)))


def _recipes(config: Config) -> Iterator[str]:
    from matrix.recipes.recipe import parse_reference

    waiting: list[Any] = [config.node]
    while waiting:
        node = waiting.pop()
        for value in node.values() if isinstance(node, dict) else node:
            if isinstance(value, (dict, list)):
                waiting.append(value)
            elif isinstance(value, str) and value.startswith(CONFIG_FILE):
                yield parse_reference(value.removeprefix(CONFIG_FILE)).path
    for scenario in config.scenarios:
        yield from (parse_reference(entry.srt_recipe).path for entry in scenario.entries if entry.srt_recipe)


def _file(workspace: Workspace, path: str) -> bytes | None:
    book = workspace.facts.recipes
    place = book.locate(path) if book else None
    return place.read_bytes() if place else None


def _same_curves(head: Workspace, base: Workspace) -> bool:
    one, other = head.settings.golden, base.settings.golden
    if one is None or other is None:
        return one is other
    return _folder(one) == _folder(other)


def _folder(path: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(Path(path).glob("*.yaml"))}
