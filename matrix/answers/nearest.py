"""The points that come nearest to an id that no point has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.answers.verdicts import Near
from matrix.points.parts import differences, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.answers.space import Space
    from matrix.points.parts import Parts

__all__ = ["near_of", "nearest"]

_MOST: Final = 3


def near_of(name: str, parts: Parts | None, space: Space) -> tuple[Near, ...]:
    """The nearest points of a search space, the nearest first."""
    return nearest(name, parts, space.whole, [config.key for config in space.workspace.configs])


def nearest(name: str, parts: Parts | None, ids: Iterable[str], keys: Sequence[str]) -> tuple[Near, ...]:
    """The nearest ids: those of the same config, or of the configs with the nearest keys; fewest other fields first."""
    key = name.partition("--")[0]
    homes = {key} if key in keys else set(_close(key, keys))
    candidates = [one for one in ids if one.partition("--")[0] in homes]
    if parts is not None:
        kind = [one for one in candidates if bool((other := parts_of(one)) and other.run) == bool(parts.run)]
        candidates = kind or candidates
    if parts is None:
        return tuple(Near(one, ()) for one in _close(name, candidates))
    found = []
    for order, one in enumerate(candidates):
        other = parts_of(one)
        if other is not None:
            differ = differences(parts, other)
            apart = abs(parts.concs[0] - other.concs[0])
            found.append((len(differ), apart, order, Near(one, differ)))
    return tuple(near for *_, near in sorted(found, key=lambda one: one[:3])[:_MOST])


def _close(text: str, known: Iterable[str]) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(text, list(dict.fromkeys(known)), n=_MOST, cutoff=0.0)
