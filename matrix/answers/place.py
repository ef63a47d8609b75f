"""`Place`: what an id says of a point, beside its config."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Place", "is_accuracy", "place_of"]


class Place(NamedTuple):
    """Where a point stands in its config. ``accuracy``: ``eval``, ``eval-FRAMEWORK``, or nothing for throughput."""

    scenario: str
    topology: str
    concs: tuple[int, ...] = ()
    variant: str = ""
    accuracy: str = ""
    node: str = ""


def is_accuracy(name: str) -> bool:
    """Whether the point with an id is an accuracy run. No config key, and no selector of a recipe, has ``--``."""
    return any(part == "eval" or part.startswith("eval-") for part in name.split("--")[1:])


def place_of(name: str, config: str) -> Place:
    """The parts of an id; the whole of it as scenario where it is none of ours.

    >>> place_of("a--8k1k--1p-tp8-1d-tp8--c4-8--override_x--eval", "a")
    Place(scenario='8k1k', topology='1p-tp8-1d-tp8', concs=(4, 8), variant='override_x', accuracy='eval', node='')
    """
    parts = name.removeprefix(f"{config}--").split("--")
    numbers = parts[2].removeprefix("c").split("-") if len(parts) > 2 else []
    if not numbers or not all(number.isdecimal() for number in numbers):
        return Place(name, "")
    rest = parts[3:]
    node = rest.pop().removeprefix("on-") if rest and rest[-1].startswith("on-") else ""
    accuracy = rest.pop() if rest and (rest[-1] == "eval" or rest[-1].startswith("eval-")) else ""
    return Place(parts[0], parts[1], tuple(map(int, numbers)), "--".join(rest), accuracy, node)
