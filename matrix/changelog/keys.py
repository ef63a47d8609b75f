"""Which config keys an entry means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.changelog.entries import Entry

__all__ = ["named_by", "pattern_matches"]


def pattern_matches(pattern: str, key: str) -> bool:
    """Whether a key of an entry means a config key: ``*`` stands for any text, nothing else is special.

    >>> pattern_matches("dsv4-*-atom", "dsv4-fp4-atom"), pattern_matches("dsv?-atom", "dsv4-atom")
    (True, False)
    """
    if "*" not in pattern:
        return pattern == key
    import re

    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), key, re.DOTALL) is not None


def named_by(entry: Entry, keys: Iterable[str]) -> Sequence[str]:
    """The keys that an entry names, in the order of its patterns, each once."""
    known = tuple(keys)
    return list(dict.fromkeys(key for pattern in entry.config_keys for key in known if pattern_matches(pattern, key)))
