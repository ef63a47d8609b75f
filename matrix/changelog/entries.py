"""The entries of a changelog: what one pull request sweeps, and why.

The schema is `schemas/changelog.json`; this is the same by hand, so that a good file costs one pass and a bad one is
told about in the words of its writers. A test holds the two to one verdict.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.changelog.text import FIRST_LINE
from matrix.config.source import Map, Seq, loads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.changelog.text import Block, Text
    from matrix.config.source import Document
    from matrix.findings import Finding, Span

__all__ = ["Entry", "Log", "ScenarioType", "content_of", "read"]


class ScenarioType(StrEnum):
    """The two kinds of scenario, in the order in which an entry claims them.

    As `matrix.config.model.ScenarioKind` has them; a check of bytes loads no config model.
    """

    FIXED_SEQ_LEN = "fixed-seq-len"
    AGENTIC_CODING = "agentic-coding"


class Entry(NamedTuple):
    """One entry, and where it stands: item ``number`` of the file, at ``line``, in the bytes ``start`` to ``end``.

    A field that a finding refuses has its empty value here, so that the rest of the entry can still be checked.
    """

    number: int
    line: int
    start: int
    end: int
    node: Map
    config_keys: tuple[str, ...] = ()
    description: tuple[str, ...] = ()
    pr_link: str = ""
    evals_only: bool = False
    all_evals: bool = False
    no_evals: bool = False
    append_only: bool = False
    eval_min_prefill_ep: int | None = None
    scenario_types: tuple[ScenarioType, ...] = tuple(ScenarioType)

    def content(self) -> str:
        """Everything the entry says but its link: two entries with equal content are the same one."""
        return content_of(self.node)


def content_of(node: Map) -> str:
    """See `Entry.content`."""
    return repr(sorted((key, value) for key, value in node.items() if key != "pr-link"))


class Log(NamedTuple):
    """A file as read: its entries, what is wrong with it, and the way from an entry to a place in the file."""

    entries: tuple[Entry, ...]
    findings: tuple[Finding, ...]
    document: Document | None

    def span(self, entry: Entry, field: str) -> Span:
        """The place of a field's value; of the entry when it has no such field."""
        assert self.document is not None  # noqa: S101 - an entry comes out of a document
        return self.document.of_value(entry.node, field)


def read(text: Text, since: int = 0) -> Log:
    """Check every entry of a readable text, and keep those that begin at or after the byte ``since``.

    A file that is no YAML, or no list of blocks, yields findings alone.
    """
    if since and (log := _read_thinned(text, since)) is not None:
        return log
    if not text.starts and _is_blank(text.data):
        return Log((), (), None)
    from matrix.errors import RefusedError

    try:
        document = loads(text.data, text.name)
    except RefusedError as error:
        return Log((), error.findings, None)
    root = document.root
    if not isinstance(root, Seq):
        message = "the top level is not a list. The log is a list of entries."
        fix = "begin every entry with '- config-keys:' in the first column"
        return Log(
            (), (_finding("changelog-root", message, fix, document.span(getattr(root, "mark", None))),), document
        )
    if not _in_blocks(text, root):
        return Log((), tuple(_misplaced(text, document, root)), document)
    findings: list[Finding] = []
    entries = []
    for number, (node, start) in enumerate(zip(root, text.starts, strict=True), 1):
        right: dict[str, Any] = node
        if not _is_right(node):
            findings += _explain(document, node, number)
            right = {field: value for field, value in node.items() if not _problem(field, value)}
        if start >= since:
            entries.append(_entry(node, number, text.block(number - 1), right))
    return Log(tuple(entries), tuple(findings), document)


def _is_blank(data: bytes) -> bool:
    """Whether there are comments and blanks alone."""
    return not data.strip() or all(not line or line.startswith(b"#") for line in map(bytes.strip, data.split(b"\n")))


_PLAIN: Final = rb"""- config-keys:
(?:    - [A-Za-z][A-Za-z0-9.*_]*-[A-Za-z0-9.*_-]+
)+(?:  scenario-type:
    - (?:agentic-coding|fixed-seq-len)
)?  description:
(?:    - "[ !#-\[\]-~]*" *
)+  pr-link: https://[!-~]*[A-Za-z0-9/] *(?=\n)"""
"""An entry in the spelling of nine out of ten, which means the same to every reader of YAML."""


def _read_thinned(text: Text, since: int) -> Log | None:
    """The log read without the plain entries of its history; None when what is left has any fault, or is no YAML.

    They are replaced by empty lines, so every other entry keeps its line and column. It spares the parser two years of
    history that it would accept.
    """
    kept, data = _thin(text, since)
    if not kept:
        return Log((), (), None) if _is_blank(data) else None
    from matrix.changelog.text import Text as Thinned
    from matrix.errors import RefusedError

    try:
        document = loads(data, text.name)
    except RefusedError:
        return None
    root = document.root
    if not isinstance(root, Seq) or not _in_blocks(Thinned(text.name, data), root) or not all(map(_is_right, root)):
        return None
    entries = [
        _entry(node, index + 1, text.block(index), node)
        for node, index in zip(root, kept, strict=True)
        if text.starts[index] >= since
    ]
    return Log(tuple(entries), (), document)


def _thin(text: Text, since: int) -> tuple[list[int], bytes]:
    """The indices of the entries that are left, and the text with empty lines for the others."""
    import re

    plain = re.compile(_PLAIN).match
    data, starts = text.data, text.starts
    kept, parts, copied = [], [], 0
    for index, start in enumerate(starts):
        found = plain(data, start, since) if start < since else None
        stop = starts[index + 1] if index + 1 < len(starts) else len(data)
        if found is None or not data[found.end() : stop].isspace():
            kept.append(index)
            continue
        parts += [data[copied:start], b"\n" * data.count(b"\n", start, stop)]
        copied = stop
    return kept, b"".join([*parts, data[copied:]])


def _finding(rule: str, message: str, fix: str, span: Span) -> Finding:
    from matrix.findings import Finding

    return Finding(rule=rule, message=message, fix=fix, span=span)


# -- where entries begin -----------------------------------------------------------------------------------------------


def _block_indices(text: Text) -> list[int]:
    """The index, in characters, of the first key of each block: where YAML sees its mapping begin."""
    if text.data.isascii():
        return [start + 2 for start in text.starts]
    indices, characters, counted = [], 0, 0
    for start in text.starts:
        characters += len(text.data[counted:start].decode("utf-8"))
        counted = start
        indices.append(characters + 2)
    return indices


def _in_blocks(text: Text, root: Seq) -> bool:
    """Whether every item of the list is a mapping, written as a block that begins with its config-keys."""
    return (
        len(root) == len(text.starts)
        and all(text.data.startswith(FIRST_LINE, start) for start in text.starts)
        and all(isinstance(node, Map) for node in root)
        and [mark.index for mark in root.marks] == _block_indices(text)
    )


def _misplaced(text: Text, document: Document, root: Seq) -> Iterator[Finding]:
    blocks = dict(zip(_block_indices(text), text.blocks, strict=True))
    for number, (node, mark) in enumerate(zip(root, root.marks, strict=True), 1):
        block = blocks.pop(mark.index, None)
        place = document.span(mark)
        if not isinstance(node, Map):
            fix = "write '- config-keys:' and the other fields below it"
            yield _finding("changelog-field", f"entry {number} is not a mapping.", fix, place)
        elif block is None:
            message = f"entry {number} does not begin in the first column."
            yield _finding("changelog-entry-start", message, "begin it with '- config-keys:' in column 1", place)
        elif not block.data.startswith(FIRST_LINE):
            first = next(iter(node), "nothing")
            message = f"entry {number} begins with {first}. Tools find entries by their first line, '- config-keys:'."
            yield _finding("changelog-entry-start", message, "move config-keys to the first line of the entry", place)
    for block in blocks.values():
        message = "this line looks like the beginning of an entry, and is inside the text of the one above."
        fix = "indent it, or write the text in one line"
        yield _finding("changelog-entry-inside", message, fix, text.span(block.start))


# -- fields ------------------------------------------------------------------------------------------------------------

_REQUIRED: Final = ("config-keys", "description", "pr-link")
_SWITCHES: Final = ("evals-only", "all-evals", "no-evals", "append-only")
_EVAL_CHOICE: Final = ("evals-only", "all-evals", "eval-min-prefill-ep")
_FIELDS: Final = (*_REQUIRED, *_SWITCHES, "eval-min-prefill-ep", "scenario-type")
_SCENARIO_TYPES: Final = frozenset(ScenarioType)


def _is_right(node: Map) -> bool:
    if not (_are_strings(node.get("config-keys")) and _are_strings(node.get("description"))):
        return False
    if not isinstance(node.get("pr-link"), str):
        return False
    return len(node) == len(_REQUIRED) or not (
        any(_problem(field, value) for field, value in node.items()) or any(_conflicts(node))
    )


def _are_strings(value: Any) -> bool:
    return value.__class__ is Seq and {member.__class__ for member in value} == {str}


def _problem(field: str, value: Any) -> str:
    """What is wrong with a field's value; empty when nothing is."""
    match field:
        case "config-keys" | "description":
            if _are_strings(value):
                return ""
            return f"{_content_kind(value)}, not a list of strings"
        case "pr-link":
            return "" if isinstance(value, str) else f"is {_kind(value)}, not a link"
        case "evals-only" | "all-evals" | "no-evals" | "append-only":
            return "" if isinstance(value, bool) else f"is {_kind(value)}, not true or false"
        case "eval-min-prefill-ep":
            return "" if type(value) is int and value >= 1 else f"is {_kind(value)}, not an integer from 1"
        case "scenario-type":
            right = _are_strings(value) and _SCENARIO_TYPES.issuperset(value)
            return "" if right else f"{_content_kind(value, _SCENARIO_TYPES)}, not a list of scenario types"
        case _:
            return "is unknown"


def _kind(value: Any) -> str:
    match value:
        case None:
            return "empty"
        case True | False:
            return str(value).lower()
        case dict():
            return "a mapping"
        case list():
            return "a list" if value else "an empty list"
        case str():
            return "a string"
        case _:
            return str(value)


def _content_kind(value: Any, known: frozenset[str] = frozenset()) -> str:
    """What a list that was refused holds, or what stands there instead of a list."""
    if not isinstance(value, Seq) or not value:
        return f"is {_kind(value)}"
    wrong = [member for member in value if not isinstance(member, str)] or [one for one in value if one not in known]
    return f"holds {wrong[0] if isinstance(wrong[0], str) else _kind(wrong[0])}"


def _conflicts(node: Map) -> Iterator[tuple[str, str]]:
    """Pairs of fields that are both set and exclude each other."""
    for switch in ("no-evals", "append-only"):
        if node.get(switch) is True:
            yield from ((switch, other) for other in _EVAL_CHOICE if node.get(other) not in (None, False))


def _explain(document: Document, node: Map, number: int) -> Iterator[Finding]:
    for field in _REQUIRED:
        if field not in node:
            message = f"entry {number} has no {field}. Every entry says what it sweeps, why, and in which pull request."
            yield _finding("changelog-field", message, _ADD[field], document.of_value(node, field))
    for field, value in node.items():
        if not (problem := _problem(field, value)):
            continue
        if field not in _FIELDS:
            from matrix.findings import did_you_mean

            place, fix = document.of_key(node, field), did_you_mean(field, _FIELDS)
        else:
            place, fix = document.of_value(node, field), _WRITE[field]
        yield _finding("changelog-field", f"entry {number}: {field} {problem}.", fix, place)
    for switch, other in _conflicts(node):
        message = f"entry {number}: {switch} and {other} exclude each other. {_WHY[switch]}"
        yield _finding("changelog-exclusive", message, "remove one of the two", document.of_key(node, other))


_WHY: Final = {
    "no-evals": "The one runs no evals, the other chooses which evals run.",
    "append-only": "An append-only entry runs its new points and no evals.",
}
_ADD: Final = {
    "config-keys": "begin it with '- config-keys:' and a line '    - <key>' for each config",
    "description": "add '  description:' and a line '    - \"…\"' that says why",
    "pr-link": "add '  pr-link: XXX'; XXX becomes the link once the pull request has a number",
}
_WRITE: Final = {
    "config-keys": "list one config key a line, each '    - <key>'; * stands for any text",
    "description": "list one sentence a line, each '    - \"…\"'",
    "pr-link": "write the link on the line of the key",
    **dict.fromkeys(_SWITCHES, "write true, or remove the field"),
    "eval-min-prefill-ep": "write a number such as 8, or remove the field",
    "scenario-type": f"list {' or '.join(ScenarioType)}, or remove the field for both",
}


def _entry(node: Map, number: int, block: Block, fields: dict[str, Any]) -> Entry:
    get = fields.get
    return Entry(
        number=number,
        line=block.line,
        start=block.start,
        end=block.end,
        node=node,
        config_keys=tuple(get("config-keys", ())),
        description=tuple(get("description", ())),
        pr_link=get("pr-link", ""),
        evals_only=get("evals-only", False),
        all_evals=get("all-evals", False),
        no_evals=get("no-evals", False),
        append_only=get("append-only", False),
        eval_min_prefill_ep=get("eval-min-prefill-ep"),
        scenario_types=tuple(kind for kind in ScenarioType if kind in get("scenario-type", ScenarioType)),
    )
