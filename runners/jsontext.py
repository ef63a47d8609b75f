"""JSON that others wrote: one way to read it, and one kind of error for all that can be wrong with it."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["parse"]


def parse(data: bytes | str) -> Any:
    """What a JSON text says. NaN and infinities are taken, as clients write them.

    >>> parse("[" * 100_000)
    Traceback (most recent call last):
    ...
    ValueError: its values lie too deep in each other

    Raises:
        ValueError: it is none, or nested more deeply than this can read.
    """
    try:
        return json.loads(data)
    except RecursionError:
        msg = "its values lie too deep in each other"
        raise ValueError(msg) from None
