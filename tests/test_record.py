"""A record is a frozen value: what it takes, what it refuses, and what it is equal to."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from matrix.record import Record


class Size(Record):
    """GPUs of so many nodes."""

    gpus: int
    nodes: int = 1


class Other(Record):
    """The same fields under another name."""

    gpus: int
    nodes: int = 1


def test_fields_by_place_by_name_and_by_default() -> None:
    size = Size(8)
    assert (size.gpus, size.nodes) == (8, 1)
    assert size == Size(gpus=8, nodes=1) == Size(8, 1)
    assert size._replace(nodes=2) == Size(8, 2)
    assert repr(size) == "Size(gpus=8, nodes=1)"
    assert {size: "a"}[Size(8)] == "a"
    assert size != Size(8, 2)
    assert size != Other(8)
    assert copy.deepcopy(size) == size


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((8, 1, 2), {}), ((8,), {"gpus": 8}), ((8,), {"speed": 1}), ((), {"nodes": 1}), ((), {"speed": 1})],
    ids=["nothing", "too many", "twice", "unknown", "missing", "one for another"],
)
def test_what_is_missing_unknown_or_given_twice(values: tuple[int, ...], named: dict[str, Any]) -> None:
    make: Any = Size
    with pytest.raises(TypeError, match="Size takes gpus, nodes, not"):
        make(*values, **named)
    with pytest.raises(TypeError, match="speed"):
        Size(8)._replace(speed=1)


def test_no_field_changes() -> None:
    size: Any = Size(8)
    with pytest.raises(AttributeError, match="Size is frozen: nodes stays as it is"):
        size.nodes = 2
    assert size == Size(8)
