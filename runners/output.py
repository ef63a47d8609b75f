"""A stream for people that never fails and never holds up who writes to it.

Whoever reads may hang up, or stop reading: a terminal after Ctrl-S, a pager, a log collector that is stuck. A writer
that waits for them would not see the signal that tells it to cancel a job.
"""

from __future__ import annotations

import contextlib
import os
import select
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["Output"]

_TERMINAL_PIECE: Final = 256


class Output:
    """What is written goes out as far as the reader takes it; the rest waits here for the next `flush`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._dead = False
        self._waiting = bytearray()
        try:
            self._descriptor: int | None = stream.fileno()
        except (OSError, ValueError):
            self._descriptor = None
        # What a pipe that is ready takes without holding us up; a terminal promises less.
        self._piece = _TERMINAL_PIECE if stream.isatty() else select.PIPE_BUF

    @property
    def blocked(self) -> int | None:
        """The descriptor that has to become writable first; None while nothing waits."""
        return self._descriptor if self._waiting else None

    @property
    def columns(self) -> int:
        """Width of the terminal; 80 where there is none."""
        try:
            return os.get_terminal_size(self._descriptor if self._descriptor is not None else -1).columns
        except (OSError, ValueError):
            return 80

    def write(self, text: str) -> None:
        """Write text; letters that the stream cannot hold are written as escapes."""
        if self._dead:
            return
        encoding = self._stream.encoding or "utf-8"
        data = text.encode(encoding, "backslashreplace")
        if self._descriptor is None:
            self._stream.write(data.decode(encoding))
            return
        self._waiting += data
        self.flush()

    def flush(self) -> None:
        """Write what waits, as far as that needs no waiting."""
        if self._descriptor is None or self._dead:
            return
        poller = select.poll()
        poller.register(self._descriptor, select.POLLOUT)
        try:
            self._stream.flush()
            while self._waiting and poller.poll(0):
                sent = os.write(self._descriptor, bytes(self._waiting[: self._piece]))
                del self._waiting[:sent]
        except (OSError, ValueError):
            self._give_up()

    def _give_up(self) -> None:
        """Let all that follows go nowhere, or its failure at exit would replace our exit status by 120."""
        self._dead = True
        self._waiting.clear()
        # Not the number from before: of a stream that was closed, somebody else may have it by now.
        with contextlib.suppress(OSError, ValueError):
            descriptor = self._stream.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            try:
                os.dup2(nowhere, descriptor)
            finally:
                os.close(nowhere)
