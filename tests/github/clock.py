"""Time that passes only while somebody sleeps."""

from __future__ import annotations


class FakeClock:
    """A clock that writes down what it was asked to sleep."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
