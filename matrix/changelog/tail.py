"""The part of the log that a change adds: what stands before, between and after its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matrix.changelog.text import Block, Text
    from matrix.findings import Finding

__all__ = ["examine_tail", "separator"]


def separator(history: bytes) -> bytes:
    r"""What goes between history and the first new entry.

    >>> separator(b"- config-keys: [a]\n"), separator(b"- config-keys: [a]\n\n"), separator(b"")
    (b'\n', b'', b'')
    """
    return b"" if not history or history.endswith(b"\n\n") else b"\n"


def examine_tail(old: Text, new: Text, appended: Sequence[int], begin: int | None) -> Iterator[Finding]:
    """Faults around the appended blocks; ``begin`` is where history ends in the head, None where that is in doubt."""
    for at in appended:
        block = new.block(at)
        if at == appended[0]:
            if begin is not None and old.data.strip() and old.data.endswith(b"\n"):
                yield from _gap(new, begin, block.start, separator(old.data))
        elif not _one_empty_line(new, at):
            previous = new.block(at - 1)
            yield from _gap(new, min(previous.end + 1, block.start), block.start, b"\n")
    if appended and appended[-1] == len(new.starts) - 1:
        yield from _end(new, new.block(appended[-1]))


def _one_empty_line(new: Text, at: int) -> bool:
    return new.data[new.block(at - 1).end : new.starts[at]] == b"\n\n"


def _gap(new: Text, begin: int, start: int, wanted: bytes) -> Iterator[Finding]:
    gap = new.data[begin:start]
    if gap == wanted:
        return
    line = new.line_of(start)
    lines = gap.split(b"\n")[:-1]
    strange = next((text for text in lines if text.strip()), None)
    if not gap and not new.line_at(line - 1).strip():
        blanks = len(new.line_at(line - 1))
        what = f"line {line - 1}, the last of the base, holds {blanks} blanks and is not the empty line that separates"
        fix = f"keep it, and insert one empty line before line {line}"
    elif not gap:
        what, fix = "no empty line stands before this new entry", f"insert one empty line before line {line}"
    elif strange is not None:
        text = strange.strip().decode("utf-8", "replace")
        what = f"a line that belongs to no entry stands before this one: {text}"
        fix = "remove the line; leave one empty line"
    elif not wanted:
        what = "the base ends with an empty line already, and the new entry adds another"
        fix = f"remove the empty line before line {line}"
    elif len(lines) == 1:
        what = f"the line before this new entry is not empty but {len(gap) - 1} blanks"
        fix = f"make line {line - 1} empty"
    else:
        what = f"{len(lines)} empty lines stand before this new entry"
        fix = f"remove lines {line - len(lines) + 1} to {line - 1}" if len(lines) > 2 else f"remove line {line - 1}"
    wrong = begin if strange is not None or not gap or gap[:1] != b"\n" else min(begin + len(wanted), start)
    message = f"{what}. Exactly one empty line separates entries."
    yield new.finding(wrong, "changelog-separator", message, f"{fix}, or run `matrix changelog fix`")


def _end(new: Text, last: Block) -> Iterator[Finding]:
    end = last.end
    if last.data.endswith(b"\n..."):
        message = "'...' ends the YAML document. No entry could follow it."
        yield new.finding(end - 3, "changelog-tail", message, "remove the line")
    rest = new.data[end:]
    if rest in (b"\n", b""):
        return
    lines = rest.count(b"\n") - 1
    if rest.endswith(b"\n\n"):
        message = f"the file ends with {lines} empty lines." if lines > 1 else "the file ends with an empty line."
        message = f"{message} The last entry ends with one newline, and nothing follows."
        fix = "remove what follows the last entry, or run `matrix changelog fix`"
        yield new.finding(end + 1, "changelog-tail", message, fix)
    else:
        from matrix.findings import Severity

        message = "the last line holds only blanks. The next entry has to keep it for ever."
        fix = "remove the line, or run `matrix changelog fix`"
        yield new.finding(end + 1, "changelog-tail", message, fix, severity=Severity.WARNING)
