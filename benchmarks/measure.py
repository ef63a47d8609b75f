"""Times whole processes in alternating pairs, so that a machine that slows down slows both sides."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Command", "Pair", "Run", "middle", "pair", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program with its arguments, started in a folder; ``statuses`` are the exit statuses that count as done."""

    words: tuple[str, ...]
    folder: Path
    statuses: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One finished process: seconds on the clock, and the most memory it held, in MiB."""

    seconds: float
    mebibytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two commands timed in turn: the medians of each, and the median of the ratios of neighbours."""

    ours: Run
    other: Run
    ratio: float
    rounds: int


def run(command: Command) -> Run:
    """Start a command and wait for it; its output is thrown away."""
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command.words, cwd=command.folder, env=environment(), stdout=subprocess.DEVNULL, stderr=errors
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in command.statuses:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip()[-2000:]
            msg = f"{' '.join(command.words)} ended with {process.returncode}: {said}"
            raise RuntimeError(msg)
    return Run(seconds=seconds, mebibytes=usage.ru_maxrss / 1024)


def pair(ours: Command, other: Command, rounds: int) -> Pair:
    """Both commands, one after the other, so many times; a first round warms caches and does not count."""
    run(ours), run(other)
    runs = [(run(ours), run(other)) for _ in range(rounds)]
    return Pair(
        ours=middle([first for first, _ in runs]),
        other=middle([second for _, second in runs]),
        ratio=statistics.median(first.seconds / second.seconds for first, second in runs),
        rounds=rounds,
    )


def middle(runs: Sequence[Run]) -> Run:
    """The median of each figure."""
    return Run(
        seconds=statistics.median(one.seconds for one in runs),
        mebibytes=statistics.median(one.mebibytes for one in runs),
    )


def environment() -> dict[str, str]:
    """The caller's, with this checkout's packages, and without what makes Python compile each module or each line."""
    unwanted = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    paths = (str(Path(__file__).resolve().parents[1]), kept.get("PYTHONPATH"))
    return kept | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
