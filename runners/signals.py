"""INT, TERM and HUP, held until the code that follows a job can act: the first counts, later ones do nothing."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING, Final, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

__all__ = ["Clock", "Signals"]

_CAUGHT: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Clock(Protocol):
    """Time as the followers see it. Tests bring their own."""

    @property
    def received(self) -> int | None:
        """Number of the first signal, None before one has come."""

    def fileno(self) -> int | None:
        """A descriptor that becomes readable with the first signal; None where there is none to wait for."""

    def acknowledge(self) -> None:
        """From here on the signal interrupts nothing more: neither `sleep` nor a program that runs."""

    def now(self) -> float:
        """Seconds, from a clock that nobody sets."""

    def sleep(self, seconds: float) -> None:
        """Wait, at most until a signal comes."""


class Signals:
    """The three signals, caught while the context is entered, which only the main thread can do.

    Nothing is raised into running code: a handler that raises would cut a submission or the writing of a file in half.
    When the context is left after a signal, the three stay switched off for good: the process is on its way out with
    the status of that signal, and a second one must not give it another. Outside of its context it is a plain clock.
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._pipe: tuple[int, int] | None = None
        self._acknowledged = False
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Self:
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        for caught in _CAUGHT:
            before = signal.getsignal(caught)
            # nohup has HUP ignored on purpose.
            if caught is signal.SIGHUP and before is signal.SIG_IGN:
                continue
            self._before[caught] = before
            signal.signal(caught, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for caught, before in self._before.items():
            if self._received is not None:
                signal.signal(caught, signal.SIG_IGN)
            else:
                signal.signal(caught, signal.SIG_DFL if before is None else before)
        self._before.clear()
        if self._pipe is not None:
            pipe, self._pipe = self._pipe, None
            for end in pipe:
                os.close(end)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._received is None:
            self._received = number
            if self._pipe is not None:
                os.write(self._pipe[1], b"\0")

    @property
    def received(self) -> int | None:
        """Number of the first signal, None before one has come."""
        return self._received

    def fileno(self) -> int | None:
        """The reading end of a pipe that the first signal writes into, until it is acknowledged."""
        return None if self._pipe is None or self._acknowledged else self._pipe[0]

    def acknowledge(self) -> None:
        """Let the rest run to its end whatever else comes."""
        self._acknowledged = True

    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; the first signal ends the wait at once, unless it is acknowledged."""
        waited_for = self.fileno()
        # Python goes on waiting after a handler has run, so only the pipe can end this.
        select.select([] if waited_for is None else [waited_for], [], [], max(0.0, seconds))
