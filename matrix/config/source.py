"""YAML text -> plain values that know their line and column; strict where YAML readers disagree.

Built on the events of libyaml's parser (PyYAML's ``CParser``, or its pure parser where libyaml is missing), with a
constructor of our own: one loop, no recursion, one `Mark` reference per key and value. Mappings and lists are `Map` and
`Seq`, a ``dict`` and a ``list`` that remember where each member stands; scalars are plain ``str``, ``int``, ``bool``,
``None`` and `WrittenFloat`.

What YAML 1.1 and 1.2 read differently is refused rather than guessed: ``off``, ``010``, ``1:30``, ``0o17``.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Any, Final, Protocol

from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from matrix.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from matrix.findings import Finding, Span

    class Mark(Protocol):
        """A position, as the parser gives it: 0-based line and column, index in characters."""

        line: int
        column: int
        index: int


__all__ = [
    "MAX_BYTES",
    "Document",
    "Map",
    "Seq",
    "UnclearError",
    "WrittenFloat",
    "load",
    "loads",
    "plain",
    "read_bytes",
]

MAX_BYTES: Final = 32 * 1024 * 1024
"""A configuration larger than this is refused unread; the largest real one is a hundredth of it."""

_MAX_DEPTH: Final = 100
_MAX_ALIASED: Final = 200_000
_MAX_DIGITS: Final = 18

_AMBIGUOUS_BOOL: Final = frozenset(
    word for base in ("yes", "no", "on", "off") for word in (base, base.capitalize(), base.upper())
)
_CONSTANTS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9](?:_?[0-9])*)\Z")
_HEX: Final = re.compile(r"[-+]?0x[0-9a-fA-F]+\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?\Z")
_UNCLEAR_NUMBER: Final = re.compile(
    r"[-+]?(?:0[0-9_]+|0[ob][0-7_]+|[1-9][0-9_]*_|[0-9][0-9_]*__[0-9_]*|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)\Z"
)
_NOT_FINITE: Final = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
_FORBIDDEN: Final = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_TAB_OR_COMMENT: Final = re.compile(r"\t|(?<!\S)#")
_CORE_TAG: Final = "tag:yaml.org,2002:"


class Map(dict[Any, Any]):
    """A mapping; ``mark`` is where it begins, ``marks[key]`` the marks of a key and of its value."""

    __slots__ = ("mark", "marks")
    mark: Mark
    marks: dict[Any, tuple[Mark, Mark]]


class Seq(list[Any]):
    """A list; ``mark`` is where it begins, ``marks[i]`` where its member i does."""

    __slots__ = ("mark", "marks")
    mark: Mark
    marks: list[Mark]


class WrittenFloat(float):
    """A float that keeps the digits of the file: ``0.80`` is exactly 80/100 in a budget."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenFloat:  # noqa: D102 - the class says it
        self = super().__new__(cls, text.replace("_", ""))
        self.text = text
        return self

    def __reduce__(self) -> tuple[type[WrittenFloat], tuple[str]]:
        return (WrittenFloat, (self.text,))


class Document:
    """A parsed file: its ``root`` value, the path as people know it, and the way from a value to its place."""

    __slots__ = ("_texts", "data", "name", "root")

    def __init__(self, name: str, data: bytes, root: Any) -> None:
        self.name = name
        self.data = data
        self.root = root
        self._texts: dict[int, str] | None = None

    def span(self, mark: Mark | None = None) -> Span:
        """The place of a mark; of the whole file without one."""
        from matrix.findings import Span

        return Span(self.name, mark.line + 1, mark.column + 1) if mark is not None else Span(self.name)

    def of_key(self, node: Map, key: Any) -> Span:
        """The place of a key."""
        marks = node.marks.get(key)
        return self.span(marks[0] if marks else node.mark)

    def of_value(self, node: Map | Seq, key: Any) -> Span:
        """The place of a member's value: a mapping's by key, a list's by index."""
        if isinstance(node, Map):
            marks = node.marks.get(key)
            return self.span(marks[1] if marks else node.mark)
        return self.span(node.marks[key])

    def written(self, mark: Mark) -> str:
        """The scalar at a mark as the file spells it, quotes and all; the slow way, for refusals."""
        if self._texts is None:
            text = self.data.decode("utf-8-sig")
            events: Iterator[Any] = (event for event in _events(self.data) if event.__class__ is ScalarEvent)
            self._texts = {
                event.start_mark.index: text[event.start_mark.index : event.end_mark.index] for event in events
            }
        return self._texts.get(mark.index, "").strip()


class UnclearError(RefusedError):
    """A file whose values readers disagree about. ``document`` is None where its syntax is broken."""

    def __init__(self, findings: Iterable[Finding], document: Document | None) -> None:
        super().__init__(findings)
        self.document = document


def read_bytes(path: str | Path, *, limit: int = MAX_BYTES, what: str = "file") -> bytes:
    """The bytes of a regular file.

    Raises:
        RefusedError: missing, a directory, unreadable, or larger than ``limit`` bytes.
    """
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - pathlib costs 4 ms of every command
            data = stream.read(limit + 1)
    except FileNotFoundError:
        raise _refuse(path, "file-missing", f"this {what} does not exist.", _nearest_file(path)) from None
    except IsADirectoryError:
        raise _refuse(
            path, "file-directory", f"this is a directory where a {what} is wanted.", "name the file itself"
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _refuse(
            path, "file-unreadable", f"this {what} cannot be read: {reason}.", "check its type and permissions"
        ) from None
    if len(data) > limit:
        message = f"this {what} is larger than {limit // 1024 // 1024} MiB. Nothing people maintain by hand is."
        raise _refuse(path, "file-too-large", message, "check that this is the file you meant")
    return data


def load(path: str | Path, *, integer_keys: bool = False, what: str = "file") -> Document:
    """Read one YAML document from a file. See `loads`."""
    return loads(read_bytes(path, what=what), str(path), integer_keys=integer_keys)


def loads(data: bytes, name: str, *, integer_keys: bool = False) -> Document:
    r"""Parse the bytes of one YAML document; ``name`` is what refusals call the file.

    ``integer_keys`` lets integers be keys (golden curves); otherwise every key must be a string.

    >>> loads(b"tp: 8\nconc-list: [1, 1_024]\n", "x.yaml").root
    {'tp': 8, 'conc-list': [1, 1024]}

    Raises:
        UnclearError: with every fault of the file, up to the first that breaks its syntax; and with the document where
            the syntax is whole, so that what else is wrong can be told together with it.
    """
    reader = _Reader(data, name, integer_keys=integer_keys)
    try:
        root = reader.read()
    except _Broken as broken:
        reader.findings.append(broken.finding)
        root = None
    document = Document(name, data, root)
    if reader.findings:
        raise UnclearError(reader.findings, document if root is not None else None)
    return document


def plain(value: Any) -> Any:
    """A copy in builtin types alone, for a YAML or JSON writer."""
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return float(value) if isinstance(value, WrittenFloat) else value


class _Broken(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, finding: Finding) -> None:
        self.finding = finding


_PREAMBLE: Final = (StreamStartEvent, DocumentStartEvent)
_CONTAINER_TAGS: Final = (f"{_CORE_TAG}map", f"{_CORE_TAG}seq", "!")
_MERGE: Final = object()
_UNRESOLVED: Final = object()


class _Reader:
    """One pass over the events of one file."""

    def __init__(self, data: bytes, name: str, *, integer_keys: bool) -> None:
        self.data = data
        self.name = name
        self.integer_keys = integer_keys
        self.findings: list[Finding] = []
        self.scalars: dict[str, Any] = {}
        self.keys: set[str] = set()
        self.anchors: dict[str, Any] = {}
        self.open_anchors: set[str] = set()
        self.extents: dict[int, tuple[int, int]] = {}
        self.aliased = 0

    def read(self) -> Any:
        data = self.data
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.broken_bytes(error) from None
        if not data or data.isspace():
            raise self.empty()
        try:
            self.get_event = _parser(data.removeprefix(BOM_UTF8))
            root = self.construct()
        except _Broken:
            raise
        except Exception as error:  # noqa: BLE001 - the parsers' own; what is none of theirs is raised again
            raise self.broken_syntax(error) from None
        if b"\t" in data:
            self.check_tabs()
        return root

    def construct(self) -> Any:
        get_event = self.get_event
        event = get_event()
        while event.__class__ in _PREAMBLE:
            event = get_event()
        if event.__class__ is StreamEndEvent:
            raise self.empty()
        root = self.value(event, 0)
        while (event := get_event()) is not None and event.__class__ is not StreamEndEvent:
            if event.__class__ is DocumentStartEvent:
                message = "a second document begins here. Only the first would be read."
                fix = "keep one document a file; remove the ---"
                raise _Broken(self.finding(event.start_mark, "yaml-documents", message, fix))
        return root

    # The three methods below are the hot path of every command: one event each turn, no call for a scalar seen before.

    def mapping(self, start: Any, depth: int) -> Map:  # noqa: PLR0912
        self.enter(start, depth)
        get_event, scalars, keys = self.get_event, self.scalars, self.keys
        node = Map()
        node.mark = start.start_mark
        marks = node.marks = {}
        while True:
            event = get_event()
            kind = event.__class__
            if kind is ScalarEvent:
                key = event.value
                if key not in keys:
                    key = self.key(event)
                if event.anchor is not None:
                    self.anchors[event.anchor] = event.value
            elif kind is MappingEndEvent:
                break
            else:
                key = self.odd_key(event)
            key_mark = event.start_mark
            if key in node:
                self.duplicate(node, key, key_mark)
            event = get_event()
            kind = event.__class__
            if kind is ScalarEvent:
                if event.implicit[0] and event.anchor is None:
                    value = event.value
                    node[key] = scalars[value] if value in scalars else self.scalar(value, event.start_mark)
                else:
                    node[key] = self.unusual(event)
            else:
                node[key] = self.value(event, depth)
            marks[key] = (key_mark, event.start_mark)
        if _MERGE in node:
            self.merge(node)
        if start.anchor is not None:
            self.leave(start, node)
        return node

    def sequence(self, start: Any, depth: int) -> Seq:
        self.enter(start, depth)
        get_event, scalars = self.get_event, self.scalars
        node = Seq()
        node.mark = start.start_mark
        marks = node.marks = []
        while True:
            event = get_event()
            kind = event.__class__
            if kind is ScalarEvent:
                if event.implicit[0] and event.anchor is None:
                    value = event.value
                    node.append(scalars[value] if value in scalars else self.scalar(value, event.start_mark))
                else:
                    node.append(self.unusual(event))
            elif kind is SequenceEndEvent:
                break
            else:
                node.append(self.value(event, depth))
            marks.append(event.start_mark)
        if start.anchor is not None:
            self.leave(start, node)
        return node

    def value(self, event: Any, depth: int) -> Any:
        kind = event.__class__
        if kind is MappingStartEvent:
            return self.mapping(event, depth + 1)
        if kind is SequenceStartEvent:
            return self.sequence(event, depth + 1)
        if kind is AliasEvent:
            return self.alias(event.anchor, event.start_mark, depth)
        return self.unusual(event)

    def unusual(self, event: Any) -> Any:
        """A scalar that is quoted, tagged or anchored."""
        if event.implicit[0]:
            text = event.value
            value = self.scalars[text] if text in self.scalars else self.scalar(text, event.start_mark)
        else:
            value = event.value if event.implicit[1] else self.tagged(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = value
        return value

    def enter(self, start: Any, depth: int) -> None:
        if start.anchor is not None:
            self.open_anchors.add(start.anchor)
        if start.tag is not None and start.tag not in _CONTAINER_TAGS:
            self.complain(start.start_mark, "yaml-tag", f"the tag {start.tag} has no meaning here.", "remove the tag")
        if depth > _MAX_DEPTH:
            message = f"the nesting is deeper than {_MAX_DEPTH} levels. No configuration is."
            fix = "check the brackets and the indentation"
            raise _Broken(self.finding(start.start_mark, "yaml-depth", message, fix))

    def leave(self, start: Any, node: Any) -> None:
        self.open_anchors.discard(start.anchor)
        self.anchors[start.anchor] = node

    # -- scalars and keys -------------------------------------------------------------------------------------------

    def scalar(self, text: str, mark: Mark) -> Any:
        """The value of a plain scalar met for the first time; unclear ones are not remembered, so each is told."""
        value = self.resolve(text, mark)
        if value is not _UNRESOLVED:
            self.scalars[text] = value
            return value
        return text

    def resolve(self, text: str, mark: Mark) -> Any:
        if text and text[0] not in _MAYBE_NOT_A_STRING:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _INTEGER.match(text) or _HEX.match(text):
            if len(text) <= _MAX_DIGITS:
                return int(text, 16) if "x" in text else int(text)
            fix = "quote it if it is a name; otherwise write the number you meant"
            self.complain(mark, "yaml-number", f"{text[:24]}… has {len(text)} digits. No count here does.", fix)
        elif _FLOAT.match(text):
            return WrittenFloat(text)
        elif text in _AMBIGUOUS_BOOL:
            message = f"{text} is a boolean to YAML 1.1 and a word to YAML 1.2."
            self.complain(
                mark,
                "yaml-word",
                message,
                f"write true or false, quote it ('{text}'), or use none where nothing is meant",
            )
        elif _UNCLEAR_NUMBER.match(text):
            message = f"{text} is read as different numbers by different YAML readers (octal, base 60, or text)."
            self.complain(mark, "yaml-number", message, f"write a plain decimal number, or quote it: '{text}'")
        elif _NOT_FINITE.match(text):
            self.complain(
                mark,
                "yaml-number",
                f"{text} is not a finite number.",
                "write a finite number, or quote it if it is a name",
            )
        else:
            return text
        return _UNRESOLVED

    def key(self, event: Any) -> Any:
        """A key met for the first time, or one that needs a look each time: only plain words are remembered."""
        text: str = event.value
        if not event.implicit[0]:
            return text if event.implicit[1] else self.tagged(event)
        if text and text[0] not in _MAYBE_NOT_A_STRING and text != "<<":
            self.keys.add(text)
            return text
        return self.unclear_key(text, event.start_mark)

    def odd_key(self, event: Any) -> Any:
        """A key that is no scalar: an alias of a word will do."""
        mark: Any = event.start_mark
        if event.__class__ is not AliasEvent:
            message = "a mapping or list is used as a key. Keys are words here."
            raise _Broken(self.finding(mark, "yaml-key", message, "write a plain string key"))
        name = str(event.anchor)
        value = self.alias(name, mark, 0)
        if isinstance(value, str):
            return value
        self.complain(mark, "yaml-key", f"the alias *{name} is used as a key.", "write the key out")
        return f"*{name}"

    def unclear_key(self, text: str, mark: Mark) -> Any:
        """A plain key that may not be a string. ``on`` and its like stay strings: workflows are made of them."""
        if text == "<<":
            return _MERGE
        if text in _AMBIGUOUS_BOOL:
            return text
        value = self.resolve(text, mark)
        if value is _UNRESOLVED or isinstance(value, str) or (self.integer_keys and type(value) is int):
            return text if value is _UNRESOLVED else value
        spelled = text or "an empty key"
        kind = {int: "a number", WrittenFloat: "a number", bool: "a boolean"}.get(type(value), "null")
        self.complain(mark, "yaml-key", f"the key {spelled} is {kind}, not a string.", f"quote it: '{text}'")
        return text

    def tagged(self, event: Any) -> Any:
        """A scalar with an explicit tag: the core tags are obeyed, any other is refused."""
        text, tag = event.value, event.tag
        if tag in ("!", f"{_CORE_TAG}str"):
            return text
        wanted = {f"{_CORE_TAG}{name}": kind for name, kind in _TAGGED.items()}.get(tag)
        if wanted is None:
            self.complain(event.start_mark, "yaml-tag", f"the tag {tag} has no meaning here.", "remove the tag")
            return text
        value = self.resolve(text, event.start_mark)
        if type(value) is not wanted and value is not _UNRESOLVED:
            self.complain(
                event.start_mark,
                "yaml-tag",
                f"{text} is not what its tag {tag} says.",
                "remove the tag, or mend the value",
            )
        return value

    def duplicate(self, node: Map, key: Any, mark: Mark) -> None:
        from matrix.findings import Related

        name = "<<" if key is _MERGE else key if str(key).isprintable() else repr(key)
        first = self.span(node.marks[key][0])
        self.complain(
            mark,
            "yaml-duplicate-key",
            f"the key {name} is set twice in one mapping. A plain reader drops the first in silence.",
            f"keep one of the two (lines {first.line} and {mark.line + 1}), or rename one",
            (Related(first, "first here"),),
        )

    # -- anchors and merges -----------------------------------------------------------------------------------------

    def alias(self, name: str, mark: Mark, depth: int) -> Any:
        anchors = self.anchors
        if name in self.open_anchors:
            message = f"the alias *{name} stands inside the value it names, which would hold itself."
            raise _Broken(self.finding(mark, "yaml-alias", message, "write the value out instead of the alias"))
        if name not in anchors:
            self.complain(
                mark,
                "yaml-alias",
                f"the alias *{name} names no anchor above it.",
                f"add &{name} to the value, or write it out",
            )
            return None
        value = anchors[name]
        size, levels = self.extent(value)
        if depth + levels > _MAX_DEPTH:
            message = f"the alias *{name} brings the nesting below more than {_MAX_DEPTH} levels. No configuration is."
            raise _Broken(self.finding(mark, "yaml-depth", message, "write the values out"))
        self.aliased += size
        if self.aliased > _MAX_ALIASED:
            message = f"aliases expand to more than {_MAX_ALIASED:,} values. That is how an alias bomb looks."
            raise _Broken(self.finding(mark, "yaml-alias-bomb", message, "write the values out"))
        return value

    def extent(self, value: Any) -> tuple[int, int]:
        """Values below and with this one, aliases expanded, and how many levels they take."""
        if not isinstance(value, (Map, Seq)):
            return 1, 0
        known = self.extents.get(id(value))
        if known is None:
            members = [self.extent(member) for member in (value.values() if isinstance(value, Map) else value)]
            size = 1 + sum(size for size, _ in members)
            known = self.extents[id(value)] = size, 1 + max((levels for _, levels in members), default=0)
        return known

    def merge(self, node: Map) -> None:
        """Put the members of ``<<`` first; a key of the mapping's own overrides a merged one and is no duplicate."""
        merged = node.pop(_MERGE)
        place = node.marks.pop(_MERGE)[1]
        own = dict(node)
        own_marks = dict(node.marks)
        node.clear()
        node.marks.clear()
        for base in merged if isinstance(merged, Seq) else [merged]:
            if not isinstance(base, Map):
                self.complain(
                    place, "yaml-merge", "<< takes a mapping or a list of mappings.", "write <<: *name of a mapping"
                )
                continue
            for name, value in base.items():
                if name not in node:
                    node[name] = value
                    node.marks[name] = base.marks[name]
        node.update(own)
        node.marks.update(own_marks)

    # -- refusals ---------------------------------------------------------------------------------------------------

    def span(self, mark: Mark | None) -> Span:
        from matrix.findings import Span

        return Span(self.name, mark.line + 1, mark.column + 1) if mark is not None else Span(self.name)

    def finding(self, mark: Mark | None, rule: str, message: str, fix: str, related: tuple[Any, ...] = ()) -> Finding:
        from matrix.findings import Finding

        return Finding(rule=rule, message=message, fix=fix, span=self.span(mark), related=related)

    def complain(self, mark: Mark | None, rule: str, message: str, fix: str, related: tuple[Any, ...] = ()) -> None:
        self.findings.append(self.finding(mark, rule, message, fix, related))

    def empty(self) -> _Broken:
        from matrix.findings import Finding, Span

        message = "the file is empty." if not self.data.strip() else "the file holds only comments."
        fix = "write the content, or name another file"
        return _Broken(Finding(rule="yaml-empty", message=message, fix=fix, span=Span(self.name, 1, 1)))

    def broken_bytes(self, error: UnicodeDecodeError) -> _Broken:
        from matrix.findings import Finding, Span

        before = self.data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        byte = self.data[error.start]
        if b"\0" in self.data[:4096]:
            message, fix = "this is a binary file.", "name a YAML file"
        else:
            message, fix = f"the byte 0x{byte:02x} is not UTF-8.", "save the file as UTF-8"
        return _Broken(Finding(rule="yaml-encoding", message=message, fix=fix, span=Span(self.name, line, column)))

    def broken_syntax(self, error: Exception) -> _Broken:
        from yaml.error import MarkedYAMLError
        from yaml.reader import ReaderError

        if isinstance(error, MarkedYAMLError):
            mark: Any = error.problem_mark or error.context_mark
            problem = (error.problem or error.context or "broken syntax").strip()
            if "\\t" in problem or self.at_tab(mark):
                message = "a tab stands where YAML wants spaces."
                return _Broken(self.finding(mark, "yaml-tab", message, "replace the tab by spaces"))
            context = f" {error.context.strip()}" if error.context and error.problem else ""
            where = (
                f" begun at line {error.context_mark.line + 1}" if context and error.context_mark is not None else ""
            )
            fix = "check the indentation, quotes and brackets of this line and the one above"
            return _Broken(self.finding(mark, "yaml-syntax", f"{problem}{context}{where}.", fix))
        if isinstance(error, ReaderError):
            from matrix.findings import Finding, Span

            text = self.data.decode("utf-8-sig")
            found = _FORBIDDEN.search(text)
            lines = _BREAK.split(text[: found.start()] if found else "")
            span = Span(self.name, len(lines), len(lines[-1]) + 1)
            message = f"the character U+{ord(found[0]) if found else 0:04X} cannot stand in YAML."
            return _Broken(
                Finding(rule="yaml-encoding", message=message, fix="remove it; is this a text file?", span=span)
            )
        raise error

    def at_tab(self, mark: Mark) -> bool:
        lines = self.data.decode("utf-8-sig").splitlines()
        line = lines[mark.line] if mark.line < len(lines) else ""
        before, here = line[: mark.column], line[mark.column : mark.column + 1]
        return here == "\t" or (not before.strip() and "\t" in before)

    def check_tabs(self) -> None:
        """Tabs are fine in quotes, text blocks and comments; elsewhere they look like an indentation they are not."""
        text = self.data.decode("utf-8-sig")
        inside = bytearray(len(text) + 1)
        scalars: Iterator[Any] = (event for event in _events(self.data) if event.__class__ is ScalarEvent)
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
                    from matrix.findings import Finding, Span

                    span = Span(self.name, number, found.start() + 1)
                    message, fix = "a tab stands between YAML tokens.", "replace the tab by spaces"
                    self.findings.append(Finding(rule="yaml-tab", message=message, fix=fix, span=span))
                break
            offset += len(line)


_MAYBE_NOT_A_STRING: Final = frozenset("0123456789+-.~nNtTfFyYoO")
_TAGGED: Final[dict[str, type]] = {"int": int, "float": WrittenFloat, "bool": bool, "null": type(None)}


def _parser(data: bytes) -> Callable[[], Any]:
    """``get_event`` of libyaml's parser, or of PyYAML's own where libyaml is missing."""
    try:
        from yaml._yaml import CParser
    except ImportError:
        return _pure_parser(data)
    get_event: Callable[[], Any] = CParser(data).get_event
    return get_event


def _pure_parser(data: bytes) -> Callable[[], Any]:
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class PureParser(Reader, Scanner, Parser):
        def __init__(self, stream: bytes) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)

    get_event: Callable[[], Any] = PureParser(data).get_event
    return get_event


def _events(data: bytes) -> Iterator[Any]:
    get_event = _parser(data.removeprefix(BOM_UTF8))
    while (event := get_event()) is not None:
        yield event


def _refuse(path: str | Path, rule: str, message: str, fix: str) -> Exception:
    from matrix.errors import RefusedError
    from matrix.findings import Finding, Span

    return RefusedError([Finding(rule=rule, message=message, fix=fix, span=Span(str(path)))])


def _nearest_file(named: str | Path) -> str:
    from pathlib import Path

    from matrix.findings import did_you_mean

    path = Path(named)
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist either; check the path"
    yaml = (".yaml", ".yml")
    kinds = (path.suffix,) if path.suffix not in ("", *yaml) else yaml
    siblings = [entry.name for entry in folder.iterdir() if entry.suffix in kinds]
    return did_you_mean(path.name, siblings, list_all=6) if siblings else "check the path"
