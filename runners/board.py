"""The board of a sweep: a table that is written over on a terminal, one line a change elsewhere, a table at the end."""

from __future__ import annotations

from collections import Counter
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from runners.display import PlainDisplay
from runners.harmless import for_log, on_one_line, printable
from runners.sweep import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from runners.sweep import Entry

__all__ = ["Above", "Board", "table"]

_QUIET = frozenset({Stage.WAITING, Stage.SKIPPED})


class Board:
    """Shows the entries of a sweep as they change."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.live = stream.isatty()
        self.lines = 0
        self.told: dict[str, tuple[Stage, str]] = {}

    def show(self, entries: Sequence[Entry]) -> None:
        """Show how things stand."""
        if self.live:
            self._draw(entries)
            return
        for entry in entries:
            state = (entry.stage, entry.job)
            before = self.told.get(entry.id, (Stage.WAITING, ""))
            if state != before and not (entry.stage in _QUIET and before[0] in _QUIET):
                parts = [str(entry.stage), entry.id, f"job {entry.job}" if entry.job else "", on_one_line(entry.note)]
                self.stream.write(for_log("  ".join(part for part in parts if part)) + "\n")
            self.told[entry.id] = state
        self.stream.flush()

    def note(self, text: str) -> None:
        """Show one line of ours above the table."""
        self._erase()
        self.stream.write("".join(f"{printable(line)}\n" for line in text.splitlines()))
        self.stream.flush()

    def _draw(self, entries: Sequence[Entry]) -> None:
        width, height = get_terminal_size((120, 24))
        moving = [entry for entry in entries if entry.stage in {Stage.SUBMITTED, Stage.RUNNING}]
        failed = [entry for entry in entries if entry.stage is Stage.FAILED]
        rows = [*failed, *moving][-max(1, height - 3) :]
        lines = [
            f"{entry.stage:10} {entry.job:>9} {entry.elapsed:>10}  {entry.id}  {on_one_line(entry.note)}".rstrip()
            for entry in rows
        ]
        lines.append(counts(entries))
        self._erase()
        self.stream.writelines(f"{line[: width - 1]}\n" for line in lines)
        self.stream.flush()
        self.lines = len(lines)

    def _erase(self) -> None:
        if self.lines:
            self.stream.write(f"\x1b[{self.lines}A\x1b[J")
            self.lines = 0


class Above(PlainDisplay):
    """What launches show while there is a board: our lines above it. What jobs write is in their folders."""

    def __init__(self, board: Board) -> None:
        super().__init__(board.stream)
        self.board = board

    def log(self, lines: Sequence[str]) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """Show one line of ours."""
        self.board.note(text)

    def phase(self, text: str) -> None:
        """Show nothing."""


def counts(entries: Sequence[Entry]) -> str:
    """How many points stand where, in one line."""
    found = Counter(entry.stage for entry in entries)
    return ", ".join(f"{found[stage]} {stage}" for stage in Stage if found[stage])


def table(entries: Sequence[Entry]) -> str:
    """The end of a sweep as a table."""
    from tabulate import tabulate

    rows = [[entry.id, str(entry.stage), entry.job, on_one_line(entry.note)] for entry in entries]
    return tabulate(rows, headers=["point", "end", "job", "why"], maxcolwidths=[None, None, None, 60])
