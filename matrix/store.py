"""Files that GitHub keeps on another host: read piece by piece, whole or not at all, and without credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.refusal import cause
from matrix.retry import Answer

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["fetch"]

_PIECE: Final = 1 << 20


def fetch(url: str, timeout: float, into: BinaryIO, most: int) -> Answer:
    """Read a file from its first byte on, in place of what an earlier attempt left; at most one byte over ``most``.

    A connection that ends before the last byte is no answer, so that it is tried again.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import urlopen

    into.seek(0)
    into.truncate()
    try:
        with urlopen(url, timeout=timeout) as response:  # noqa: S310 - the caller looked at the scheme
            wanted = response.length
            count = 0
            while count <= most and (piece := response.read(min(_PIECE, most + 1 - count))):
                into.write(piece)
                count += len(piece)
    except HTTPError as error:
        with error:
            return Answer(error.code, {}, error.reason)
    except (OSError, HTTPException, ValueError) as error:
        # ValueError: the address has letters that no address has.
        return Answer(0, {}, cause(error))
    if wanted is not None and count < min(wanted, most + 1):
        return Answer(0, {}, f"the connection ended after {count:,} of {wanted:,} bytes")
    return Answer(200, {}, "")
