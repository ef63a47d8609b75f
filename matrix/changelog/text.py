"""The bytes of a changelog: what no YAML reader sees, and where each entry's lines begin and end.

The log is compared and appended byte by byte, so a carriage return, a tab or a missing last newline is a fault here
even where YAML reads over it. Blocks are cut by lines alone, which works for a file that is no YAML (yet).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.findings import Finding, Span

__all__ = ["FIRST_LINE", "LINK_LINE", "MAX_BYTES", "Block", "Text", "first_difference"]

MAX_BYTES: Final = 16 * 1024 * 1024
"""A larger log is refused unread: 770 entries, two years of daily sweeps, are 0.4 MB."""

FIRST_LINE: Final = b"- config-keys:"
"""How the first line of every entry begins; the count of such lines must be the count of entries."""

LINK_LINE: Final = b"  pr-link:"
"""How the line of a link begins: the one line of history that may change."""

_UNREADABLE: Final = frozenset({"changelog-nul", "changelog-encoding", "changelog-conflict-marker"})
_MARKERS: Final = (b"<" * 7, b">" * 7, b"|" * 7)
_FEW: Final = 16
_BOM: Final = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """The lines of one list item: ``data[start:end]``, without its last line end and the blank lines that follow."""

    start: int
    end: int
    line: int
    data: bytes

    @property
    def last_line(self) -> int:
        """The line, from 1, of its last byte."""
        return self.line + self.data.count(b"\n")


class Text:
    """One revision of the log: ``raw`` as stored, ``data`` the same with LF alone for line ends and no tab.

    Lines and columns are the same in both, so every rule but the byte rules works on ``data``, and one stray carriage
    return is told once instead of as a change of all history.
    """

    def __init__(self, name: str, raw: bytes) -> None:
        self.name = name
        self.raw = raw
        self.data = raw
        if b"\r" in raw:
            self.data = raw.replace(b"\r\n", b"\n").replace(b"\r", b" ")
        if b"\t" in raw:
            self.data = self.data.replace(b"\t", b" ")

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each top-level list item begins, in the order of the file."""
        return tuple(_item_starts(self.data))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Every top-level list item."""
        blocks = []
        line, counted = 1, 0
        for index, start in enumerate(self.starts):
            line += self.data.count(b"\n", counted, start)
            counted = start
            blocks.append(self._block(index, line))
        return tuple(blocks)

    def block(self, index: int) -> Block:
        """One top-level list item. Near the end of a long file, where changes are, cheaper than all `blocks`."""
        if "blocks" in self.__dict__ or len(self.starts) - index > _FEW:
            return self.blocks[index]
        return self._block(index, self.line_of(self.starts[index]))

    def _block(self, index: int, line: int) -> Block:
        data, start = self.data, self.starts[index]
        stop = self.starts[index + 1] if index + 1 < len(self.starts) else len(data)
        newline = data.find(b"\n", start + len(data[start:stop].rstrip()), stop)
        end = newline if newline >= 0 else stop
        return Block(start, end, line, data[start:end])

    @property
    def preamble(self) -> bytes:
        """What stands before the first entry."""
        return self.data[: self.starts[0]] if self.starts else self.data

    def line_of(self, offset: int) -> int:
        """The line, from 1, of a byte of ``data``."""
        return self.data.count(b"\n", 0, offset) + 1

    def span(self, offset: int) -> Span:
        """The place of a byte of ``data``; the column counts characters."""
        from matrix.findings import Span

        begin = self.data.rfind(b"\n", 0, offset) + 1
        column = len(self.data[begin:offset].decode("utf-8", "replace")) + 1
        return Span(self.name, self.line_of(offset), column)

    def raw_offset(self, offset: int) -> int:
        """The byte of the stored file that a byte of ``data`` stands for."""
        if len(self.raw) == len(self.data):
            return offset
        line = self.data.count(b"\n", 0, offset)
        begin = sum(len(text) + 1 for text in self.raw.split(b"\n")[:line])
        return begin + offset - (self.data.rfind(b"\n", 0, offset) + 1)

    def finding(self, offset: int, rule: str, message: str, fix: str, **more: Any) -> Finding:
        """A finding at a byte of ``data``; the message ends with the byte of the stored file."""
        from matrix.findings import Finding

        message = f"{message} First wrong byte: {self.raw_offset(offset)}."
        return Finding(rule=rule, message=message, fix=fix, span=self.span(offset), **more)

    def line_at(self, line: int) -> bytes:
        """The text of a line, from 1, without its line end."""
        lines = self.data.split(b"\n", line)
        return lines[line - 1] if line <= len(lines) else b""

    @cached_property
    def is_clean(self) -> bool:
        """Whether `faults` has nothing to tell; without finding out what."""
        raw = self.raw
        if raw != self.data or raw[-1:] not in (b"\n", b"") or raw.startswith(_BOM):
            return False
        if any(mark in raw for mark in (b"\0", *_MARKERS)):
            return False
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    @cached_property
    def readable(self) -> bool:
        """Whether rules about entries make sense: it is text, and no merge is half done in it."""
        return self.is_clean or not any(finding.rule in _UNREADABLE for finding in self.faults())

    def faults(self, since: int = 0) -> Iterator[Finding]:
        """What is wrong with the stored bytes from ``since`` on: one finding a kind, at its first place."""
        if self.is_clean:
            return
        yield from self._character_faults(since)
        yield from self._marker_faults(since)
        if self.raw and not self.raw.endswith(b"\n"):
            last = self.raw[-1]
            yield self._finding(
                len(self.raw) - 1,
                "changelog-newline",
                f"the file does not end with a newline: its last byte is 0x{last:02x}. "
                "The next entry would continue this line, and git would show the line as rewritten.",
                "add one line feed after the last line",
            )

    def _character_faults(self, since: int) -> Iterator[Finding]:
        raw = self.raw
        if since < len(_BOM) and raw.startswith(_BOM):
            message = "the file begins with a byte order mark, which hides the beginning of the first line."
            fix = "remove the first three bytes: save as UTF-8 without BOM"
            yield self._finding(0, "changelog-encoding", message, fix)
        if (at := raw.find(b"\0", since)) >= 0:
            message = "the file contains a NUL byte. It is not text."
            yield self._finding(at, "changelog-nul", message, "restore the file from git")
            return
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            if error.start >= since:
                message = f"the byte 0x{raw[error.start]:02x} is not UTF-8."
                yield self._finding(error.start, "changelog-encoding", message, "save the file as UTF-8")
        for byte, rule, name, fix in (
            (b"\r", "changelog-cr", "carriage return", "end every line with LF alone (git config core.autocrlf input)"),
            (b"\t", "changelog-tab", "tab", "replace each tab by spaces"),
        ):
            if (at := raw.find(byte, since)) < 0:
                continue
            lines = sum(byte in line for line in raw[since:].split(b"\n"))
            also = f" It stands in {lines} lines." if lines > 1 else ""
            message = f"the file contains a {name}. History is compared byte by byte, and editors show none.{also}"
            yield self._finding(at, rule, message, fix)

    def _marker_faults(self, since: int) -> Iterator[Finding]:
        if not any(mark in self.raw for mark in _MARKERS):
            return
        import re

        begun = False
        for match in re.finditer(rb"^(?:<{7,}|>{7,}|\|{7,}|={7,})(?=[ \r\n]|\Z)", self.raw, re.MULTILINE):
            kind = match.group()[:1]
            if kind == b"<":
                begun = True
            elif begun:
                begun = kind != b">"
                continue
            elif kind not in (b">", b"|"):
                continue
            if match.start() < since:
                continue
            text = self.raw[match.start() :].split(b"\n", 1)[0].decode("utf-8", "replace").strip()
            message = f"conflict marker '{text}'. A merge was committed half done, and the log is no YAML."
            fix = "keep the entries of both sides, base side first, and remove the marker lines"
            yield self._finding(match.start(), "changelog-conflict-marker", message, fix)

    def _finding(self, offset: int, rule: str, message: str, fix: str) -> Finding:
        from matrix.findings import Finding, Span

        begin = self.raw.rfind(b"\n", 0, offset) + 1
        column = len(self.raw[begin:offset].decode("utf-8", "replace")) + 1
        span = Span(self.name, self.raw.count(b"\n", 0, offset) + 1, column)
        return Finding(rule=rule, message=f"{message} First wrong byte: {offset}.", fix=fix, span=span)


def _item_starts(data: bytes) -> Iterator[int]:
    """Where the lines that begin a top-level list item begin; a search for two bytes, not line by line."""
    at = 0 if data.startswith(b"-") else data.find(b"\n-") + 1
    while at or data.startswith(b"-"):
        if data[at + 1 : at + 2] in (b" ", b"\n", b""):
            yield at
        if not (at := data.find(b"\n-", at) + 1):
            return


def first_difference(old: bytes, new: bytes) -> int:
    """The index of the first byte in which two texts differ; the length of the shorter when one continues the other.

    >>> first_difference(b"abc", b"abd"), first_difference(b"ab", b"abc"), first_difference(b"", b"")
    (2, 2, 0)
    """
    low, high = 0, min(len(old), len(new))
    if old[:high] == new[:high]:
        return high
    while low < high:
        middle = (low + high) // 2
        if old[low : middle + 1] == new[low : middle + 1]:
            low = middle + 1
        else:
            high = middle
    return low
