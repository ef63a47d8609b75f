"""One page that holds everything: style, script and data are in it, and its policy lets no request leave it.

Nothing of the data is ever markup. It stands in the page as JSON whose ``<``, ``>`` and ``&`` are escaped, and the
script puts it into the document as text alone.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from json import dumps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TEMPLATES", "page_html"]

TEMPLATES: Final = Path(__file__).resolve().parents[1] / "templates" / "report"
_SCRIPTS: Final = ("data.js", "charts.js", "matrix.js", "point.js", "page.js")
"""In the order in which they need each other."""

_UNSAFE: Final = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})
_MARK: Final = re.compile(r"@(POLICY|TITLE|STYLE|DATA|SCRIPT)@")


def page_html(record: Mapping[str, Any], title: str) -> str:
    """The page for a record."""
    style = _read("page.css")
    script = "(() => {\n'use strict';\n" + "\n".join(_read(name) for name in _SCRIPTS) + "})();\n"
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    parts = {
        "POLICY": escape(policy),
        "TITLE": escape(title),
        "STYLE": style,
        "DATA": _json(record),
        "SCRIPT": script,
    }
    # In one pass: what is put in may hold a mark, too.
    return _MARK.sub(lambda mark: parts[mark[1]], _read("page.html"))


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _json(record: Mapping[str, Any]) -> str:
    try:
        text = dumps(record, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a client that divided by zero
        text = dumps(_finite(record), separators=(",", ":"), allow_nan=False)
    return text.translate(_UNSAFE)


def _finite(value: Any) -> Any:
    """The value with text for the numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
