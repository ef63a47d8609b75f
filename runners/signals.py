"""INT, TERM and HUP, held until the code that follows a job can act: the first counts, later ones do nothing."""

from __future__ import annotations

import contextlib
import math
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
        """What has come interrupts nothing more: neither `sleep` nor a program that runs."""

    def now(self) -> float:
        """Seconds, from a clock that nobody sets."""

    def sleep(self, seconds: float, writable: int | None = None) -> None:
        """Wait, at most until the first signal comes, or until this descriptor takes data."""


class Signals:
    """The three signals, caught while the context is entered, which only the main thread can do.

    Nothing is raised into running code: a handler that raises would cut a submission or the writing of a file in half.
    When the context is left after a signal, the three stay switched off for good: the process is on its way out with
    the status of that signal, and a second one must not give it another. Outside of its context it is a plain clock.
    """

    def __init__(self, *, last: bool = False) -> None:
        """Nothing is caught yet.

        Args:
            last: Nothing but the end of the process comes after the context: the three stay switched off without a
                signal too, so that none gives another status to what has been written down.
        """
        self._last = last
        self._received: int | None = None
        self._pipe: tuple[int, int] | None = None
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Self:
        self._pipe = os.pipe()
        for end in self._pipe:
            os.set_blocking(end, False)
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
            if self._last or self._received is not None:
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
        """The reading end of a pipe with one byte in it once a signal has come. Who is woken by it takes it out.

        So one signal interrupts one thing: a loop that went on without acting on it would otherwise never rest again.
        """
        return None if self._pipe is None else self._pipe[0]

    def acknowledge(self) -> None:
        """Let what follows run to its end: the signal has been seen."""
        if self._pipe is not None:
            with contextlib.suppress(BlockingIOError):
                os.read(self._pipe[0], 1)

    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float, writable: int | None = None) -> None:
        """Wait; the first signal ends the wait at once, unless it has been seen already."""
        poller = select.poll()
        # Python goes on waiting after a handler has run, so only the pipe can end this.
        if (interrupt := self.fileno()) is not None:
            poller.register(interrupt, select.POLLIN)
        if writable is not None:
            poller.register(writable, select.POLLOUT)
        if any(descriptor == interrupt for descriptor, _ in poller.poll(math.ceil(max(0.0, seconds) * 1000))):
            self.acknowledge()
