"""What broke the reading of a file: bytes that are no text, syntax that is no YAML, tabs. Imported to refuse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from matrix.findings import Finding, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matrix.config.nodes import Mark

__all__ = ["broken_bytes", "broken_syntax", "stray_tabs"]

_FORBIDDEN: Final = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_TAB_OR_COMMENT: Final = re.compile(r"\t|(?<!\S)#")


def broken_bytes(data: bytes, name: str) -> Finding:
    """The first byte that is not UTF-8, in a file that has one."""
    start = 0
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        start = error.start
    before = data[:start]
    line = before.count(b"\n") + 1
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
    byte = data[start]
    if b"\0" in data[:4096]:
        message, fix = "this is a binary file.", "name a YAML file"
    else:
        message, fix = f"the byte 0x{byte:02x} is not UTF-8.", "save the file as UTF-8"
    return Finding(rule="yaml-encoding", message=message, fix=fix, span=Span(name, line, column))


def broken_syntax(data: bytes, name: str, error: Exception) -> Finding:
    """What a parser says, in fewer words. Raises what is no parser's error again."""
    from yaml.error import MarkedYAMLError
    from yaml.reader import ReaderError

    if isinstance(error, MarkedYAMLError):
        mark: Any = error.problem_mark or error.context_mark
        problem = (error.problem or error.context or "broken syntax").strip()
        if "\\t" in problem or _at_tab(data, mark):
            message = "a tab stands where YAML wants spaces."
            return Finding(rule="yaml-tab", message=message, fix="replace the tab by spaces", span=_span(name, mark))
        context = f" {error.context.strip()}" if error.context and error.problem else ""
        where = f" begun at line {error.context_mark.line + 1}" if context and error.context_mark is not None else ""
        fix = "check the indentation, quotes and brackets of this line and the one above"
        return Finding(rule="yaml-syntax", message=f"{problem}{context}{where}.", fix=fix, span=_span(name, mark))
    if isinstance(error, ReaderError):
        text = data.decode("utf-8-sig")
        found = _FORBIDDEN.search(text)
        lines = _BREAK.split(text[: found.start()] if found else "")
        span = Span(name, len(lines), len(lines[-1]) + 1)
        message = f"the character U+{ord(found[0]) if found else 0:04X} cannot stand in YAML."
        return Finding(rule="yaml-encoding", message=message, fix="remove it; is this a text file?", span=span)
    raise error


def stray_tabs(data: bytes, name: str, scalars: Iterable[Any]) -> Iterator[Finding]:
    """Tabs are fine in quotes, text blocks and comments; elsewhere they look like an indentation they are not.

    ``scalars``: the file's scalar events.
    """
    text = data.decode("utf-8-sig")
    inside = bytearray(len(text) + 1)
    for scalar in scalars:
        if not scalar.style:
            continue
        start, end = scalar.start_mark.index, scalar.end_mark.index
        inside[start:end] = b"\1" * (end - start)
    offset = 0
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        for found in _TAB_OR_COMMENT.finditer(line):
            if inside[offset + found.start()]:
                continue
            if found[0] == "\t":
                span = Span(name, number, found.start() + 1)
                message, fix = "a tab stands between YAML tokens.", "replace the tab by spaces"
                yield Finding(rule="yaml-tab", message=message, fix=fix, span=span)
            break
        offset += len(line)


def _at_tab(data: bytes, mark: Mark) -> bool:
    lines = data.decode("utf-8-sig").splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    before, here = line[: mark.column], line[mark.column : mark.column + 1]
    return here == "\t" or (not before.strip() and "\t" in before)


def _span(name: str, mark: Mark) -> Span:
    return Span(name, mark.line + 1, mark.column + 1)
