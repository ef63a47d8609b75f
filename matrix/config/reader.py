"""One pass over a YAML parser's events: values out, whatever readers disagree about collected on the way."""

from __future__ import annotations

from codecs import getincrementaldecoder
from sys import intern
from typing import TYPE_CHECKING, Any, Final

from matrix.config import events
from matrix.config.complaints import BrokenError, Complaints
from matrix.config.events import (
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
from matrix.config.nodes import MAX_DEPTH, Map, Seq, WrittenFloat
from matrix.config.places import Places

if TYPE_CHECKING:
    from matrix.config.anchors import Anchors
    from matrix.config.nodes import Mark
    from matrix.findings import Finding

__all__ = ["read"]

_MAX_DIGITS: Final = 18
_PIECE: Final = 16 * 1024

_CONSTANTS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_AMBIGUOUS: Final = ("on", "off", "yes", "no")
_MAYBE_NOT_A_STRING: Final = frozenset("0123456789+-.~nNtTfFyYoO")
_CORE_TAG: Final = "tag:yaml.org,2002:"
_CONTAINER_TAGS: Final = (f"{_CORE_TAG}map", f"{_CORE_TAG}seq", "!")
_TAGGED: Final[dict[str, type]] = {"int": int, "float": WrittenFloat, "bool": bool, "null": type(None)}
_PREAMBLE: Final = (StreamStartEvent, DocumentStartEvent)
_MERGE: Final = object()
_UNRESOLVED: Final = object()


class _UnnotedError(Exception):
    """What comes next takes the places of members that were not noted."""


def read(data: bytes, name: str, *, integer_keys: bool, noted: bool) -> tuple[Any, list[Finding]]:
    """The value of the one document in ``data``, and what is wrong; the value is None where the syntax is broken.

    ``noted``: where each member stands is noted; else it is found again when somebody asks.
    """
    reader = _Reader(data, name, integer_keys=integer_keys, places=None if noted or b"<<" in data else Places(data))
    root = None
    try:
        root = reader.read()
    except _UnnotedError:
        return read(data, name, integer_keys=integer_keys, noted=True)
    except BrokenError as broken:
        reader.complaints.findings.append(broken.finding)
    if findings := reader.complaints.findings:
        from matrix.findings import in_order

        return root, in_order(findings)
    return root, []


def _is_utf8(data: bytes) -> bool:
    """Whether all of it decodes, piece by piece: the whole text at once would be more fresh memory than all values."""
    decode, view = getincrementaldecoder("utf-8")().decode, memoryview(data)
    try:
        for start in range(0, len(data), _PIECE):
            decode(view[start : start + _PIECE])
        decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


class _Reader:
    """One pass over the events of one file."""

    def __init__(self, data: bytes, name: str, *, integer_keys: bool, places: Places | None) -> None:
        self.data = data
        self.integer_keys = integer_keys
        self.places = places
        self.complaints = Complaints(name)
        self.complain = self.complaints.complain
        self.scalars: dict[str, Any] = {}
        self.keys: dict[str, str] = {}
        self.anchors: Anchors | None = None

    def read(self) -> Any:
        data = self.data
        if not data.isascii() and not _is_utf8(data):
            from matrix.config.syntax import broken_bytes

            raise BrokenError(broken_bytes(data, self.complaints.name))
        if not data or data.isspace():
            raise self.empty()
        try:
            self.get_event = events.parser(data)
            root = self.construct()
        except BrokenError:
            raise
        except Exception as error:  # noqa: BLE001 - the parsers' own; what is none of theirs is raised again
            from matrix.config.syntax import broken_syntax

            raise BrokenError(broken_syntax(data, self.complaints.name, error)) from None
        if b"\t" in data:
            from matrix.config.syntax import stray_tabs

            self.complaints.findings += stray_tabs(data, self.complaints.name, events.scalar_events(data))
        return root

    def construct(self) -> Any:
        get_event = self.get_event
        event = get_event()
        while type(event) in _PREAMBLE:
            event = get_event()
        if type(event) is StreamEndEvent:
            raise self.empty()
        root = self.value(event, 0)
        while (event := get_event()) is not None and type(event) is not StreamEndEvent:
            if type(event) is DocumentStartEvent:
                mark: Any = event.start_mark
                message = "a second document begins here. Only the first would be read."
                fix = "keep one document a file; remove the ---"
                raise self.complaints.broken(mark, "yaml-documents", message, fix)
        return root

    # The two methods below see every event of every file, which is most of what a command does. So a scalar seen before
    # costs no call, and what is seldom there (a tag, an anchor) costs one only where it is.

    def mapping(self, start: Any, depth: int) -> Map:  # noqa: C901, PLR0912, PLR0915
        if start.anchor is not None or start.tag is not None or depth > MAX_DEPTH:
            self.enter(start, depth)
        get_event, scalars, keys = self.get_event, self.scalars, self.keys
        node = Map()
        node.mark = start.start_mark
        size, noted = 0, self.places is None
        places: Any = [] if noted else self.places
        node.places = places
        try:
            while True:
                event = get_event()
                kind = type(event)
                if kind is ScalarEvent:
                    try:
                        key = keys[event.value]
                    except KeyError:
                        key = self.key(event)
                    if event.anchor is not None:
                        self.anchored().values[event.anchor] = event.value
                elif kind is MappingEndEvent:
                    break
                else:
                    key = self.odd_key(event)
                if noted:
                    key_mark = event.start_mark
                event = get_event()
                kind = type(event)
                if kind is ScalarEvent:
                    if event.implicit[0] and event.anchor is None:
                        try:
                            node[key] = scalars[event.value]
                        except KeyError:
                            node[key] = self.scalar(event.value, event.start_mark)
                    else:
                        node[key] = self.unusual(event)
                elif kind is MappingStartEvent:
                    node[key] = self.mapping(event, depth + 1)
                elif kind is SequenceStartEvent:
                    node[key] = self.sequence(event, depth + 1)
                else:
                    node[key] = self.anchored().follow(event.anchor, event.start_mark, depth)
                size += 1
                if noted:
                    places += (key, key_mark, event.start_mark)
        finally:
            if size > len(node):
                self.duplicates(places)
        if _MERGE in node:
            self.merge(node)
        if start.anchor is not None:
            self.leave(start, node)
        return node

    def sequence(self, start: Any, depth: int) -> Seq:
        if start.anchor is not None or start.tag is not None or depth > MAX_DEPTH:
            self.enter(start, depth)
        get_event, scalars = self.get_event, self.scalars
        node = Seq()
        node.mark = start.start_mark
        noted = self.places is None
        marks: Any = [] if noted else self.places
        node.places = marks
        while True:
            event = get_event()
            kind = type(event)
            if kind is ScalarEvent:
                if event.implicit[0] and event.anchor is None:
                    try:
                        value = scalars[event.value]
                    except KeyError:
                        value = self.scalar(event.value, event.start_mark)
                    node.append(value)
                else:
                    node.append(self.unusual(event))
            elif kind is SequenceEndEvent:
                break
            else:
                node.append(self.value(event, depth))
            if noted:
                marks.append(event.start_mark)
        if start.anchor is not None:
            self.leave(start, node)
        return node

    def value(self, event: Any, depth: int) -> Any:
        kind = type(event)
        if kind is MappingStartEvent:
            return self.mapping(event, depth + 1)
        if kind is SequenceStartEvent:
            return self.sequence(event, depth + 1)
        if kind is AliasEvent:
            return self.anchored().follow(event.anchor, event.start_mark, depth)
        return self.unusual(event)

    def unusual(self, event: Any) -> Any:
        """A scalar that is quoted, tagged or anchored."""
        if event.implicit[0]:
            text = event.value
            value = self.scalars[text] if text in self.scalars else self.scalar(text, event.start_mark)
        else:
            value = event.value if event.implicit[1] else self.tagged(event)
        if event.anchor is not None:
            self.anchored().values[event.anchor] = value
        return value

    def enter(self, start: Any, depth: int) -> None:
        if start.anchor is not None:
            self.anchored().open.add(start.anchor)
        if start.tag is not None and start.tag not in _CONTAINER_TAGS:
            self.complain(start.start_mark, "yaml-tag", f"the tag {start.tag} has no meaning here.", "remove the tag")
        if depth > MAX_DEPTH:
            message = f"the nesting is deeper than {MAX_DEPTH} levels. No configuration is."
            fix = "check the brackets and the indentation"
            raise self.complaints.broken(start.start_mark, "yaml-depth", message, fix)

    def leave(self, start: Any, node: Any) -> None:
        anchors = self.anchored()
        anchors.open.discard(start.anchor)
        anchors.values[start.anchor] = node

    # -- scalars and keys -------------------------------------------------------------------------------------------

    def scalar(self, text: str, mark: Mark) -> Any:
        """The value of a plain scalar met for the first time; unclear ones are not remembered, so each is told."""
        value = self.resolve(text, mark)
        if value is not _UNRESOLVED:
            self.scalars[text] = value
            return value
        return text

    def resolve(self, text: str, mark: Mark) -> Any:
        """The value of a plain scalar: words and plain decimal numbers here, what takes a closer look elsewhere."""
        if text and text[0] not in _MAYBE_NOT_A_STRING:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text[0].isalpha() and text.casefold() not in _AMBIGUOUS:
            return text
        if text.isascii() and len(text) <= _MAX_DIGITS:
            parts = text.split(".")
            if len(parts) == 1 and (text[0] != "0" or text == "0") and all(map(str.isdigit, text.split("_"))):
                return int(text)
            if len(parts) > 1 and all(map(str.isdigit, parts)):
                return WrittenFloat(text) if len(parts) == 2 else text
        from matrix.config.scalars import Unclear, meaning

        value = meaning(text)
        if isinstance(value, Unclear):
            self.complain(mark, *value)
            return _UNRESOLVED
        return value

    def key(self, event: Any) -> Any:
        """A key met for the first time, or one that needs a look each time: only plain words are remembered.

        They are shared with the names in this program, so that a look-up by name compares no letters.
        """
        text: str = event.value
        if not event.implicit[0]:
            return text if event.implicit[1] else self.tagged(event)
        if text and text[0] not in _MAYBE_NOT_A_STRING and text != "<<":
            self.keys[text] = text = intern(text)
            return text
        return self.unclear_key(text, event.start_mark)

    def odd_key(self, event: Any) -> Any:
        """A key that is no scalar: an alias of a word will do."""
        mark: Any = event.start_mark
        if type(event) is not AliasEvent:
            message = "a mapping or list is used as a key. Keys are words here."
            raise self.complaints.broken(mark, "yaml-key", message, "write a plain string key")
        name = str(event.anchor)
        value = self.anchored().follow(name, mark, 0)
        if isinstance(value, str):
            return value
        self.complain(mark, "yaml-key", f"the alias *{name} is used as a key.", "write the key out")
        return f"*{name}"

    def unclear_key(self, text: str, mark: Mark) -> Any:
        """A plain key that may not be a string. ``on`` and its like stay strings: workflows are made of them."""
        if text == "<<":
            return _MERGE
        value = text if text.casefold() in _AMBIGUOUS else self.resolve(text, mark)
        if isinstance(value, str):
            self.keys[text] = text = intern(text)
            return text
        if value is _UNRESOLVED or (self.integer_keys and type(value) is int):
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

    def duplicates(self, places: list[Any] | Places) -> None:
        """Tell of each key that a mapping has again; ``places`` as in `Map`."""
        if not isinstance(places, list):
            raise _UnnotedError
        from matrix.findings import Related

        before: dict[Any, Mark] = {}
        for key, mark in zip(places[::3], places[1::3], strict=True):
            if key in before:
                name = "<<" if key is _MERGE else key if str(key).isprintable() else repr(key)
                first = self.complaints.span(before[key])
                self.complain(
                    mark,
                    "yaml-duplicate-key",
                    f"the key {name} is set twice in one mapping. A plain reader drops the first in silence.",
                    f"keep one of the two (lines {first.line} and {mark.line + 1}), or rename one",
                    (Related(first, "first here"),),
                )
            before[key] = mark

    # -- anchors and merges -----------------------------------------------------------------------------------------

    def anchored(self) -> Anchors:
        """The anchors of the file, from the first one on."""
        if self.anchors is None:
            from matrix.config.anchors import Anchors

            self.anchors = Anchors(self.complaints)
        return self.anchors

    def merge(self, node: Map) -> None:
        from matrix.config.anchors import merge

        merge(node, _MERGE, self.complaints)

    def empty(self) -> BrokenError:
        from matrix.findings import Finding, Span

        message = "the file is empty." if not self.data.strip() else "the file holds only comments."
        fix = "write the content, or name another file"
        return BrokenError(Finding(rule="yaml-empty", message=message, fix=fix, span=Span(self.complaints.name, 1, 1)))
