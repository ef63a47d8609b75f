"""A broken change to the log, mended: history as the base has it, then every entry of the change, well separated.

Nothing is thrown away: an old entry that was edited comes back, and its edited text follows as an entry of the change.
Where that cannot be done (no text, broken YAML, a broken base) the file is left as it is, and the findings say why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from matrix.changelog.compare import compare, identity
from matrix.changelog.conflict import sides
from matrix.changelog.rules import check
from matrix.changelog.tail import separator
from matrix.changelog.text import Text
from matrix.config.source import Map, Seq, loads
from matrix.errors import RefusedError

if TYPE_CHECKING:
    from matrix.changelog.context import Context
    from matrix.changelog.text import Block
    from matrix.findings import Finding

__all__ = ["Repair", "repair"]

_LINK: Final = re.compile(rb"""^(  pr-link: *)("[^"\n]*"|'[^'\n]*'|[^\s#][^\n#]*?)( *(?: #[^\n]*)?)$""", re.MULTILINE)
_MOST_TURNS: Final = 8
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """``data`` to write, what was done to get it, and what no repair can decide (errors of ``data``)."""

    data: bytes
    steps: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _Change:
    """What the author did, taken out of the bytes: own entries, corrected links, and notes for the report."""

    own: list[bytes]
    corrections: dict[int, bytes]
    notes: list[str]


def repair(base: bytes, head: bytes, context: Context) -> Repair:
    """Mend the change from ``base`` to ``head``. Mending twice is mending once."""
    found, _ = check(base, head, context)
    mended = _mend(base, head, context)
    if mended is None or mended[0] == head:
        return Repair(data=head, steps=(), findings=found)
    data, notes = mended
    # Which of several equal entries was corrected is a choice that the mended bytes can turn over, once.
    for _ in range(_MOST_TURNS):
        again = _mend(base, data, context)
        if again is None or again[0] == data:
            break
        data = again[0]
    left, _ = check(base, data, context)
    open_rules = {finding.rule for finding in left}
    steps = [f"{finding.span}: {finding.rule}: mended" for finding in found if finding.rule not in open_rules]
    return Repair(data=data, steps=(*steps, *notes), findings=left)


def _mend(base: bytes, head: bytes, context: Context) -> tuple[bytes, list[str]] | None:
    old = Text("", base)
    if next(old.faults(), None):
        return None
    whole = (head,) if Text("", head).readable or b"<" * 7 not in head else sides(head)
    if whole is None:
        return None
    change = _Change([], {}, [])
    preamble = old.preamble
    for data in whole:
        told = list(change.own)
        text = Text("", data.removeprefix(_BOM))
        if not text.readable:
            return None
        if not old.data.strip() and not preamble and text.preamble.strip():
            preamble = text.preamble
        if not _collect(old, text, context, change, told):
            return None
    if change.own:
        _undo_own_links(old, context, change)
    history = _with_links(old, change.corrections) if old.blocks else preamble
    if not change.own:
        return history, change.notes
    own = [_fill_link(block, context, change.notes) for block in change.own]
    between = separator(history) if old.data.strip() else b""
    return history + between + b"\n\n".join(own) + b"\n", change.notes


def _collect(old: Text, text: Text, context: Context, change: _Change, told: list[bytes]) -> bool:
    """Take the change out of one whole file; false when something in it would be lost.

    ``told`` are the entries that the other side of a conflict has given already: each is taken once.
    """
    if text.preamble != old.preamble and not _is_comment(text.preamble):
        return False
    pairs = compare(old.blocks, text.blocks)
    for before, after in (*pairs.kept, *pairs.moved):
        if not _collect_kept(old.blocks[before], text.blocks[after], before, change):
            return False
    edited = {after: before for before, after in pairs.edited}
    for at in sorted([*pairs.new, *edited]):
        block = text.blocks[at]
        if not _is_entry(block.data):
            return False
        data = block.data
        if at in edited:
            was = identity(old.blocks[edited[at]].data)
            if identity(data).link == was.link:
                data = _set_link(data, context.link())
            note = f"entry {edited[at] + 1} is back as it was; its edited text is now an entry of this change"
            change.notes.append(note)
        if twin := next((other for other in told if identity(other) == identity(data)), None):
            told.remove(twin)
        else:
            change.own.append(data)
    return True


def _collect_kept(old: Block, new: Block, index: int, change: _Change) -> bool:
    if old.data == new.data:
        return True
    known = set(old.data.split(b"\n"))
    for line in new.data.split(b"\n"):
        if line.lstrip().startswith(b"#") and line not in known:
            change.notes.append(f"a comment in history is dropped: {line.strip().decode('utf-8', 'replace')}")
    if identity(old.data).link == identity(new.data).link:
        return True
    before, after = _LINK.findall(old.data), _LINK.findall(new.data)
    if len(before) != 1 or len(after) != 1:
        return False
    change.corrections[index] = after[0][1]
    return True


def _undo_own_links(old: Text, context: Context, change: _Change) -> None:
    """A tool that writes the number of this pull request into old placeholders too has corrected nothing."""
    for index, link in list(change.corrections.items()):
        written = link.strip(b"'\"").decode("utf-8")
        was = identity(old.blocks[index].data).link
        if context.is_placeholder(was) and context.number is not None and written == context.link():
            del change.corrections[index]
            change.notes.append(f"entry {index + 1} has its own link back: {was}")


def _with_links(old: Text, corrections: dict[int, bytes]) -> bytes:
    parts, copied = [], 0
    for index, link in sorted(corrections.items()):
        block = old.blocks[index]
        parts += [old.data[copied : block.start], _put_link(block.data, link)]
        copied = block.end
    return b"".join([*parts, old.data[copied:]])


def _fill_link(block: bytes, context: Context, notes: list[str]) -> bytes:
    link = identity(block).link
    if context.number is None or not context.is_placeholder(link):
        return block
    filled = _set_link(block, context.link())
    if filled != block:
        notes.append(f"the placeholder {link} is now {context.link()}")
    return filled


def _set_link(block: bytes, link: str) -> bytes:
    return _put_link(block, link.encode()) if len(_LINK.findall(block)) == 1 else block


def _put_link(block: bytes, link: bytes) -> bytes:
    return _LINK.sub(lambda found: found[1] + link + found[3], block)


def _is_entry(block: bytes) -> bool:
    try:
        root = loads(block + b"\n", "").root
    except RefusedError:
        return False
    return isinstance(root, Seq) and len(root) == 1 and isinstance(root[0], Map)


def _is_comment(data: bytes) -> bool:
    return all(not line or line.startswith(b"#") for line in map(bytes.strip, data.split(b"\n")))
