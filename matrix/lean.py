"""`sha256` and JSON's quoted text, without the modules that they are usually taken from.

Every command needs the two, and none of what `hashlib` and `json` bring along: OpenSSL (4 MiB of memory) and a decoder.
So they come from where those modules have them, as the standard library's own ``random`` does it. A Python that was
built without these parts has them the usual way.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["quoted", "sha256"]

if TYPE_CHECKING:
    from hashlib import sha256
    from json.encoder import encode_basestring_ascii as quoted
else:
    try:
        from _json import encode_basestring_ascii as quoted
    except ImportError:
        from json.encoder import encode_basestring_ascii as quoted

    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:
        from hashlib import sha256
