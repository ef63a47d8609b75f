"""What a plain scalar means, where readers agree, and what is wrong with it where they do not.

Imported when the first scalar comes up that is neither a word, a constant nor a plain decimal number.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from matrix.config.nodes import WrittenFloat

__all__ = ["AMBIGUOUS_BOOL", "Unclear", "meaning"]

_MAX_DIGITS: Final = 18

AMBIGUOUS_BOOL: Final = frozenset(
    word for base in ("yes", "no", "on", "off") for word in (base, base.capitalize(), base.upper())
)
"""Booleans to YAML 1.1, words to YAML 1.2."""

_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9](?:_?[0-9])*)\Z")
_HEX: Final = re.compile(r"[-+]?0x[0-9a-fA-F]+\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?\Z")
_UNCLEAR_NUMBER: Final = re.compile(
    r"[-+]?(?:0[0-9_]+|0[ob][0-7_]+|[1-9][0-9_]*_|[0-9][0-9_]*__[0-9_]*|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)\Z"
)
_NOT_FINITE: Final = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")


class Unclear(NamedTuple):
    """Why a scalar is refused."""

    rule: str
    message: str
    fix: str


def meaning(text: str) -> Any:
    """The value of a plain scalar, or `Unclear`.

    >>> meaning("1_024"), meaning("0x10"), meaning("-1.50"), meaning("nope")
    (1024, 16, -1.5, 'nope')
    >>> meaning("off").rule
    'yaml-word'
    """
    if _INTEGER.match(text) or _HEX.match(text):
        if len(text) <= _MAX_DIGITS:
            return int(text, 16) if "x" in text else int(text)
        fix = "quote it if it is a name; otherwise write the number you meant"
        return Unclear("yaml-number", f"{text[:24]}… has {len(text)} digits. No count here does.", fix)
    if _FLOAT.match(text):
        return WrittenFloat(text)
    if text in AMBIGUOUS_BOOL:
        message = f"{text} is a boolean to YAML 1.1 and a word to YAML 1.2."
        fix = f"write true or false, quote it ('{text}'), or use none where nothing is meant"
        return Unclear("yaml-word", message, fix)
    if _UNCLEAR_NUMBER.match(text):
        message = f"{text} is read as different numbers by different YAML readers (octal, base 60, or text)."
        return Unclear("yaml-number", message, f"write a plain decimal number, or quote it: '{text}'")
    if _NOT_FINITE.match(text):
        fix = "write a finite number, or quote it if it is a name"
        return Unclear("yaml-number", f"{text} is not a finite number.", fix)
    return text
