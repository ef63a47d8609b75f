"""How a followed job is shown: one live line on a terminal, groups in a log of GitHub Actions, plain lines elsewhere.

A display never fails and never waits for its reader (`runners.output`), so a job can be cancelled whatever that does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from runners.harmless import defused, printable, stop_commands, visible
from runners.output import Output

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

__all__ = ["ActionsDisplay", "Display", "PlainDisplay", "TerminalDisplay", "display_for"]

_ERASE: Final = "\r\x1b[K"


class Display(Protocol):
    """Takes what is to be shown, as it comes."""

    def log(self, lines: Sequence[str]) -> None:
        """Show lines that the job wrote."""

    def note(self, text: str) -> None:
        """Show one line of ours."""

    def phase(self, text: str) -> None:
        """Begin a part with this heading: the job is in another state."""

    def live(self, text: str) -> None:
        """Show how things stand now, in place of what this showed before."""

    def close(self) -> None:
        """Leave the stream fit for whatever writes to it next."""

    def flush(self) -> None:
        """Go on with what the reader has not taken yet."""

    @property
    def blocked(self) -> int | None:
        """The descriptor that the reader has to read from first; None when everything is shown."""


class PlainDisplay:
    """Lines in the order in which they come, and nothing live: for files and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._output = Output(stream)

    def log(self, lines: Sequence[str]) -> None:
        """Show lines that the job wrote."""
        self._output.write("".join(f"{line}\n" for line in lines))

    def note(self, text: str) -> None:
        """Show one line of ours."""
        self._output.write(f"{text}\n")

    def phase(self, text: str) -> None:
        """Show the heading as a line."""
        self._output.write(f"{text}\n")

    def live(self, text: str) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Go on with what the reader has not taken yet."""
        self._output.flush()

    @property
    def blocked(self) -> int | None:
        """The descriptor that the reader has to read from first; None when everything is shown."""
        return self._output.blocked


class TerminalDisplay(PlainDisplay):
    """The same with one line at the bottom that is written over."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._shown = ""
        self._text = ""

    def log(self, lines: Sequence[str]) -> None:
        """Show lines that the job wrote, above the live line."""
        if lines:
            self._above("".join(f"{visible(line)}\n" for line in lines))

    def note(self, text: str) -> None:
        """Show one line of ours, above the live line. Programs are quoted in it."""
        self._above("".join(f"{printable(line)}\n" for line in text.splitlines()))

    def phase(self, text: str) -> None:
        """Show the heading, above the live line."""
        self._above(f"{text}\n")

    def live(self, text: str) -> None:
        """Write over the line at the bottom; a line that would wrap is cut, or it could not be erased."""
        self._text = printable(text)[: max(1, self._output.columns - 1)]
        if self._text != self._shown and self.blocked is None:
            self._output.write(f"{_ERASE}{self._text}")
            self._shown = self._text

    def close(self) -> None:
        """Take the live line away."""
        self._text = ""
        self._above("")

    def _above(self, text: str) -> None:
        self._output.write(f"{_ERASE if self._shown else ''}{text}{self._text}")
        self._shown = self._text


class ActionsDisplay(PlainDisplay):
    """One group a state of the job. What the job writes is shown and never obeyed as a workflow command."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._heading = ""
        self._open = False
        self._go_on = ""

    def log(self, lines: Sequence[str]) -> None:
        """Show lines that the job wrote, with the commands of GitHub switched off until the next line of ours."""
        if not lines:
            return
        self._begin()
        start = ""
        if not self._go_on:
            stop, self._go_on = stop_commands()
            start = f"{stop}\n"
        self._output.write(start + "".join(f"{line}\n" for line in lines))

    def note(self, text: str) -> None:
        """Show one line of ours outside of the group, which is folded away once it has ended."""
        self._end()
        self._output.write(f"{defused(text)}\n")

    def phase(self, text: str) -> None:
        """End the group, and begin one with this heading."""
        self._end()
        self._heading = text
        self._begin()

    def close(self) -> None:
        """End the group."""
        self._end()

    def _begin(self) -> None:
        if not self._open:
            heading = (self._heading or "log").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
            self._output.write(f"::group::{heading}\n")
            self._open = True

    def _end(self) -> None:
        if self._go_on:
            self._output.write(f"{self._go_on}\n")
            self._go_on = ""
        if self._open:
            self._output.write("::endgroup::\n")
            self._open = False


def display_for(stream: TextIO, environment: Mapping[str, str]) -> Display:
    """The display that fits a stream: `ActionsDisplay` where GITHUB_ACTIONS is true, else by what the stream is."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return ActionsDisplay(stream)
    return TerminalDisplay(stream) if stream.isatty() and environment.get("TERM") != "dumb" else PlainDisplay(stream)
