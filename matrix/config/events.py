"""The events of a YAML parser: libyaml's, or PyYAML's own where libyaml is missing.

PyYAML is imported here first, before anybody else of this package does.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Any

from matrix.config.patterns import patterns_postponed

with patterns_postponed():
    from yaml import YAMLError
    from yaml.events import (
        AliasEvent,
        CollectionEndEvent,
        CollectionStartEvent,
        DocumentStartEvent,
        MappingEndEvent,
        MappingStartEvent,
        NodeEvent,
        ScalarEvent,
        SequenceEndEvent,
        SequenceStartEvent,
        StreamEndEvent,
        StreamStartEvent,
    )

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "AliasEvent",
    "CollectionEndEvent",
    "CollectionStartEvent",
    "DocumentStartEvent",
    "MappingEndEvent",
    "MappingStartEvent",
    "NodeEvent",
    "ScalarEvent",
    "SequenceEndEvent",
    "SequenceStartEvent",
    "StreamEndEvent",
    "StreamStartEvent",
    "YAMLError",
    "parser",
    "pure_parser",
    "scalar_events",
]


def parser(data: bytes) -> Callable[[], Any]:
    """``get_event`` of libyaml's parser, or of PyYAML's own where libyaml is missing."""
    try:
        from yaml._yaml import CParser
    except ImportError:
        return pure_parser(data)
    get_event: Callable[[], Any] = CParser(data.removeprefix(BOM_UTF8)).get_event
    return get_event


def pure_parser(data: bytes) -> Callable[[], Any]:
    """``get_event`` of PyYAML's own parser."""
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class PureParser(Reader, Scanner, Parser):
        def __init__(self, stream: bytes) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)

    get_event: Callable[[], Any] = PureParser(data.removeprefix(BOM_UTF8)).get_event
    return get_event


def scalar_events(data: bytes) -> Iterator[Any]:
    """The scalars of a file as the parser gives them, with begin, end and style."""
    get_event = parser(data)
    while (event := get_event()) is not None:
        if event.__class__ is ScalarEvent:
            yield event
