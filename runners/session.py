"""What a command that follows jobs runs in: signals held, Slurm at hand, a display on stderr."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from matrix.errors import RefusedError
from matrix.findings import Finding
from runners.display import display_for
from runners.flight import Launch
from runners.follow import FollowPatience
from runners.signals import Signals
from runners.slurm import Slurm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runners.prepare import Wishes

__all__ = ["need_slurm", "session"]


def need_slurm(slurm: Slurm) -> None:
    """Refuse a host without the Slurm programs.

    Raises:
        RefusedError: some are missing.
    """
    if missing := slurm.missing():
        message = f"{', '.join(missing)} are not on PATH, so no job can be submitted from here."
        fix = "launch on the login node, or apt-get install slurm-client; --dry-run needs no Slurm"
        raise RefusedError([Finding(rule="host-slurm", message=message, fix=fix)])


@contextmanager
def session(repository: Path, results: Path, wishes: Wishes, *, keep: bool) -> Iterator[Launch]:
    """Hold INT, TERM and HUP, to the end of the process, and give what launches share."""
    with Signals(last=True) as clock:
        slurm = Slurm(interrupt=clock.fileno)
        need_slurm(slurm)
        actions = os.environ.get("GITHUB_ACTIONS") == "true"
        display = display_for(sys.stderr, os.environ)
        try:
            yield Launch(
                repository=repository,
                results=results.resolve(),
                environ=os.environ,
                slurm=slurm,
                clock=clock,
                display=display,
                wishes=wishes,
                patience=FollowPatience.for_actions() if actions else FollowPatience(),
                keep=keep,
            )
        finally:
            display.close()
