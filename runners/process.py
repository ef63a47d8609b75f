"""Run a program to its end, within a time, and let a signal cut the wait short."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from matrix.errors import MatrixError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["CallError", "Done", "InterruptedCallError", "run"]


class CallError(MatrixError):
    """A program could not be started, or did not end in time."""

    def __init__(self, argv: Sequence[str], said: str) -> None:
        self.argv = tuple(argv)
        self.said = said
        super().__init__(f"{' '.join(self.argv)}: {said}")


class InterruptedCallError(Exception):
    """A signal came while a program ran; the program was ended. What it had done by then is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A program that has ended: its status (negative for a signal) and its whole output."""

    status: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    interrupt: int | None = None,
) -> Done:
    """Run a program with nothing on its standard input.

    It gets a session of its own, so that the Ctrl-C of a terminal reaches us alone: a second one must not end the
    scancel that the first one started.

    Args:
        argv: Program and arguments.
        timeout: Seconds; then the program and its children are killed.
        env: The whole environment, ours by default.
        cwd: Folder to run in, ours by default.
        interrupt: A descriptor with a byte to read when the wait shall end at once (`runners.signals.Clock.fileno`).

    Raises:
        CallError: it cannot be started, or has not ended in time.
        InterruptedCallError: `interrupt` became readable first.
    """
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise CallError(argv, f"cannot be started: {error.strerror}") from None
    with process:
        try:
            output = _collect(process, timeout, interrupt)
            status = process.wait()
        except TimeoutError:
            _kill(process)
            raise CallError(argv, f"has not ended after {timeout:g} s") from None
        except BaseException:
            _kill(process)
            raise
    stdout, stderr = (part.decode("utf-8", "replace") for part in output)
    return Done(status=status, stdout=stdout, stderr=stderr)


def _collect(process: subprocess.Popen[bytes], timeout: float, interrupt: int | None) -> list[bytearray]:
    """Both outputs, read until their ends. Raises TimeoutError and InterruptedCallError."""
    deadline = time.monotonic() + timeout
    streams: list[IO[bytes]] = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    output = [bytearray() for _ in streams]
    with selectors.DefaultSelector() as selector:
        for number, stream in enumerate(streams):
            selector.register(stream, selectors.EVENT_READ, number)
        if interrupt is not None:
            selector.register(interrupt, selectors.EVENT_READ, None)
        still_open = len(streams)
        while still_open:
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready and time.monotonic() >= deadline:
                raise TimeoutError
            if interrupt is not None and any(key.data is None for key, _ in ready):
                # Once: whoever catches this has seen the signal, and starts the next program in peace.
                os.read(interrupt, 1)
                raise InterruptedCallError
            for key, _ in ready:
                part = os.read(key.fd, 65536)
                output[key.data] += part
                if not part:
                    selector.unregister(key.fileobj)
                    still_open -= 1
    return output


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
