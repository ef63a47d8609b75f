"""What happened to the entries that the base already had: they stay byte for byte, but for the link of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.changelog.compare import compare, identity
from matrix.changelog.past import Correction, Past
from matrix.changelog.text import LINK_LINE, first_difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matrix.changelog.compare import Comparison
    from matrix.changelog.context import Context
    from matrix.changelog.text import Block, Text
    from matrix.findings import Finding, Related

__all__ = ["edited", "rewritten"]

_REPAIR: Final = ", or run `matrix changelog fix`"


def rewritten(old: Text, new: Text, context: Context) -> Past:
    """Compare two readable revisions of which the head does not begin with the bytes of the base."""
    pairs = compare(old.blocks, new.blocks)
    same_place = sorted([*pairs.kept, *pairs.edited])
    last = max((head for _, head in (*same_place, *pairs.moved)), default=-1)
    appended = tuple(at for at in pairs.new if at > last)
    findings = [*_deletions(old, new, pairs), *_moves(old, new, pairs)]
    findings += (edited(old, new, base, head) for base, head in pairs.edited)
    findings += _insertions(new, [at for at in pairs.new if at < last])
    corrections: list[Correction] = []
    tail: int | None = None
    spelling = _Spelling(old, new)
    spelling.compare(0, old.preamble, 0, new.preamble)
    for base, head in pairs.kept:
        corrections += _correction(old.blocks[base], new.blocks[head], base + 1, spelling)
    for (base, head), following in zip(same_place, [*same_place[1:], None], strict=False):
        if following == (base + 1, head + 1):
            spelling.compare(*_gap(old, base), *_gap(new, head))
        elif base == len(old.blocks) - 1 and head == last:
            start, blank = _gap(old, base)
            begin, gap = _gap(new, head)
            if gap.startswith(blank):
                tail = begin + len(blank)
            else:
                # The blank lines that belong to a new entry are judged with it: only the base's own are compared here.
                spelling.compare(start, blank, begin, gap[: len(blank)] if appended else gap)
    findings += spelling.findings()
    findings += _wrong_links(corrections, new, context)
    return Past(pairs.new, appended, tail, tuple(findings), tuple(corrections))


def _correction(old: Block, head: Block, number: int, spelling: _Spelling) -> Iterator[Correction]:
    """The corrected link of an entry that says the same; what else changed in its lines goes to ``spelling``."""
    if old.data == head.data:
        return
    before, after = identity(old.data).link, identity(head.data).link
    lines, others = old.data.split(b"\n"), head.data.split(b"\n")
    changed = [at for at, (one, other) in enumerate(zip(lines, others, strict=False)) if one != other]
    links = [at for at in changed if lines[at].startswith(LINK_LINE) and others[at].startswith(LINK_LINE)]
    if before == after or len(lines) != len(others) or not links:
        spelling.compare(old.start, old.data, head.start, head.data)
        return
    for at in changed:
        if at not in links:
            start, begin = (
                block.start + len(b"\n".join([*kept[:at], b""])) for block, kept in ((old, lines), (head, others))
            )
            spelling.compare(start, lines[at], begin, others[at])
    at = links[0]
    offset = head.start + len(b"\n".join([*others[:at], b""]))
    yield Correction(number=number, line=head.line + at, offset=offset, old=before, new=after)


def _wrong_links(corrections: Sequence[Correction], new: Text, context: Context) -> Iterator[Finding]:
    for one in corrections:
        if not context.is_canonical(one.new):
            link = one.new or "empty"
            message = f"the new pr-link of entry {one.number} is not the canonical link of a pull request: {link}."
            fix = f"write pr-link: {context.link('<number>')}, or restore {one.old}"
            yield new.finding(one.offset, "changelog-link", message, fix)


def _gap(text: Text, index: int) -> tuple[int, bytes]:
    """The bytes between a block and the next, or the end, and where they begin."""
    start = text.blocks[index].end
    stop = text.blocks[index + 1].start if index + 1 < len(text.blocks) else len(text.data)
    return start, text.data[start:stop]


class _Spelling:
    """History that says the same in other bytes. However many lines: one editor did it, so one finding tells it."""

    def __init__(self, old: Text, new: Text) -> None:
        self.old = old
        self.new = new
        self.places: list[tuple[int, int]] = []
        self.lines = 0
        self.blanks_only = True

    def compare(self, start: int, before: bytes, begin: int, after: bytes) -> None:
        if before == after:
            return
        first = first_difference(before, after)
        self.places.append((begin + first, start + first))
        old_lines, new_lines = before.split(b"\n"), after.split(b"\n")
        differing = sum(one != other for one, other in zip(old_lines, new_lines, strict=False))
        self.lines += differing + abs(len(old_lines) - len(new_lines))
        self.blanks_only = self.blanks_only and b"".join(before.split()) == b"".join(after.split())

    def findings(self) -> Iterator[Finding]:
        if not self.places:
            return
        offset, base_offset = min(self.places)
        what = "blanks or empty lines" if self.blanks_only else "spelling"
        why = "Editors strip blanks on save." if self.blanks_only else "It says the same, in other bytes."
        lines = f" in {self.lines} lines" if self.lines > 1 else ""
        message = f"{what} of history changed{lines}. {why} History stays byte for byte."
        wanted = _show(self.old.line_at(self.old.line_of(base_offset)))
        fix = f"restore line {self.old.line_of(base_offset)} of the base, {wanted}{', and the rest' if lines else ''}"
        rule = "changelog-whitespace" if self.blanks_only else "changelog-changed"
        yield self.new.finding(offset, rule, message, fix + _REPAIR)


def edited(old: Text, new: Text, base: int, head: int) -> Finding:
    """An entry that says something else than in the base; the indices are those of its blocks."""
    before, after = old.blocks[base], new.blocks[head]
    first = first_difference(before.data, after.data)
    line = old.line_of(before.start + first)
    offset = after.start + first
    if first == len(before.data):
        offset += after.data[first : first + 1] == b"\n"
        fix = f"remove what follows line {line} of the base up to the next entry"
    else:
        fix = f"restore line {line} of the base, {_show(old.line_at(line))}"
    message = (
        f"{_label(before, base)} changed. History is immutable but for a pr-link, corrected in a change of its own."
    )
    related = (_related(old, before.start, "the entry in the base"),)
    fix = f"{fix}, and append an entry for what is new{_REPAIR}"
    return new.finding(min(offset, len(new.data)), "changelog-changed", message, fix, related=related)


def _deletions(old: Text, new: Text, pairs: Comparison) -> Iterator[Finding]:
    heads = dict((*pairs.kept, *pairs.edited))
    for run in _runs(pairs.deleted):
        first = old.blocks[run[0]]
        after = next((heads[at] for at in range(run[-1] + 1, len(old.blocks)) if at in heads), None)
        offset = len(new.data) if after is None else new.blocks[after].start
        many = f"entries {run[0] + 1} to {run[-1] + 1} were" if len(run) > 1 else f"{_label(first, run[0])} was"
        message = f"{many} deleted. The log only grows; what was swept stays told."
        last = old.blocks[run[-1]]
        lines = f"lines {first.line} to {last.last_line}"
        fix = f"restore {lines} of the base; to undo a sweep, append an entry that describes the revert{_REPAIR}"
        related = (_related(old, first.start, "deleted"),)
        yield new.finding(offset, "changelog-deleted", message, fix, related=related)


def _moves(old: Text, new: Text, pairs: Comparison) -> Iterator[Finding]:
    for base, head in pairs.moved:
        block = new.blocks[head]
        message = f"{_label(old.blocks[base], base)} was moved. The order of the log is the order of the sweeps."
        fix = f"move it back to line {old.blocks[base].line}{_REPAIR}"
        related = (_related(old, old.blocks[base].start, "its place in the base"),)
        yield new.finding(block.start, "changelog-moved", message, fix, related=related)


def _insertions(new: Text, inserted: Sequence[int]) -> Iterator[Finding]:
    for run in _runs(inserted):
        first, last = new.blocks[run[0]], new.blocks[run[-1]]
        many = f"{len(run)} new entries stand" if len(run) > 1 else "a new entry stands"
        message = f"{many} in the middle of history. The log grows at its end alone."
        lines = f"lines {first.line} to {last.last_line}"
        fix = f"move {lines} to the end of the file, after one empty line{_REPAIR}"
        yield new.finding(first.start, "changelog-inserted", message, fix)


def _runs(indices: Sequence[int]) -> list[list[int]]:
    """Neighbours together.

    >>> _runs([1, 2, 5])
    [[1, 2], [5]]
    """
    runs: list[list[int]] = []
    for index in sorted(indices):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def _label(block: Block, index: int) -> str:
    """An entry as people find it: its number and its first config key."""
    second = block.data.split(b"\n", 2)[1:2]
    key = second[0].strip().removeprefix(b"- ").decode("utf-8", "replace") if second else ""
    return f"entry {index + 1} ({key})" if key else f"entry {index + 1}"


def _show(line: bytes) -> str:
    """A line in quotes, blanks at its end visible."""
    text = line.decode("utf-8", "replace")
    return repr(text if len(text) <= 80 else f"{text[:60]} … {text[-16:]}")


def _related(text: Text, offset: int, note: str) -> Related:
    from matrix.findings import Related

    return Related(text.span(offset), note)
