"""What a change does to the bounds that its own sweep is held to, told to whoever reads the pull request.

A sweep goes by the files of the commit that it is for, so a pull request can raise its own budget, and can let people
with fewer rights set its labels. That may be what is wanted; it must not pass unseen.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, Final

from matrix.config.settings import LABELS
from matrix.config.source import loads
from matrix.errors import RefusedError
from matrix.findings import Finding, Severity, Span
from matrix.plan.labels import Effect, Registry, registry_of
from matrix.plan.snapshot import table_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.forge import Permission
    from matrix.plan.history import History, Revision

__all__ = ["loosened"]

_BUDGET: Final = "budget-gpu-hours"
_RULE: Final = "sweep-bounds"


def loosened(history: History, base: Revision, head: Revision, root: str = "") -> Iterator[Finding]:
    """A warning for each bound that the head has wider than the base; ``root`` is the folder of the configuration."""
    below = f"{root}/" if root else ""
    before, after = (_table(history, revision, below) for revision in (base, head))
    yield from _budget(before.get(_BUDGET), after.get(_BUDGET), f"{below}pyproject.toml")
    places = [posixpath.normpath(below + str(table.get("labels", LABELS))) for table in (before, after)]
    registries = [_registry(history, *one) for one in zip((base, head), places, strict=True)]
    if registries[0] is not None and registries[1] is not None:
        yield from _rights(registries[0], registries[1], places[1])


def _budget(before: Any, after: Any, path: str) -> Iterator[Finding]:
    if not isinstance(before, int | float) or before == after:
        return
    if after is None:
        what = f"takes away {_BUDGET}, which was {before:,}"
    elif isinstance(after, int | float) and after > before:
        what = f"raises {_BUDGET} from {before:,} to {after:,}"
    else:
        return
    yield _told(f"this change {what}, and its own sweep is held to that.", path)


def _rights(before: Registry, after: Registry, path: str) -> Iterator[Finding]:
    least = _least(after)
    for what, (name, permission) in _least(before).items():
        now = least.get(what)
        if now is not None and permission.covers(now[1]) and not now[1].covers(permission):
            message = (
                f"this change lets {now[1]} permission {what}, by {now[0]}; before it took {permission}, by {name}."
            )
            yield _told(message, path)


def _least(registry: Registry) -> dict[str, tuple[str, Permission]]:
    """For each thing that labels do, the label that the fewest rights can set."""
    found: dict[str, tuple[str, Permission]] = {}
    deeds = [("start a sweep", label.name, label.set_by) for label in registry.primaries.values()]
    deeds += [(_DEEDS[label.effect], label.name, label.set_by) for label in registry.modifiers.values()]
    for what, name, permission in deeds:
        if what not in found or found[what][1].covers(permission):
            found[what] = (name, permission)
    return found


_DEEDS: Final = {
    Effect.ALL_EVALS: "ask for every accuracy run",
    Effect.EVALS_ONLY: "ask for accuracy runs alone",
    Effect.OVER_BUDGET: "let a sweep take more than the budget",
}


def _table(history: History, revision: Revision, below: str) -> dict[str, Any]:
    """``[tool.matrix]`` at a revision; nothing where it cannot be read."""
    try:
        return table_at(history, revision, below)
    except RefusedError:
        return {}


def _registry(history: History, revision: Revision, path: str) -> Registry | None:
    """The labels at a revision; None where there are none that can be read."""
    try:
        data = history.read(revision, path).data
        return None if data is None else registry_of(loads(data, path))
    except RefusedError:
        return None


def _told(message: str, path: str) -> Finding:
    fix = "see that whoever reviews it wants that"
    return Finding(rule=_RULE, message=message, fix=fix, span=Span(path), severity=Severity.WARNING)
