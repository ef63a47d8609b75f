"""A half-done merge in the log: the two whole files that the conflict markers stand for."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["sides"]

_MARKER: Final = re.compile(rb"(<{7,}|>{7,}|\|{7,}|={7,})(?= |\r?\Z)")


def sides(data: bytes) -> tuple[bytes, bytes] | None:
    r"""Ours and theirs, whole; None when the markers are not in order. What diff3 shows of the base is left out.

    >>> sides(b"a\n<<<<<<< x\nb\n=======\nc\n>>>>>>> y\nd\n")
    (b'a\nb\nd\n', b'a\nc\nd\n')
    >>> sides(b"a\n=======\n>>>>>>> y\n") is None
    True
    """
    ours: list[bytes] = []
    theirs: list[bytes] = []
    both: tuple[list[bytes], ...] = (ours, theirs)
    targets = both
    state = ""
    following = {"": "<", "<": "|=", "|": "=", "=": ">"}
    for line in data.split(b"\n"):
        kind = chr(match.group()[0]) if (match := _MARKER.match(line)) else ""
        if not kind or (kind == "=" and not state):
            for target in targets:
                target.append(line)
        elif kind not in following[state]:
            return None
        else:
            state = "" if kind == ">" else kind
            targets = {"<": (ours,), "|": (), "=": (theirs,), "": both}[state]
    return None if state else (b"\n".join(ours), b"\n".join(theirs))
