"""A job of the cluster followed in this process, and what was shown of it."""

import io
import threading
from collections.abc import Callable
from pathlib import Path

from runners.display import PlainDisplay
from runners.follow import Followed, FollowPatience, follow
from runners.job import JobId
from runners.signals import Signals
from runners.slurm import Slurm
from runners.watch import Patience
from tests.slurm.cluster import until

# Ends are looked for more often than a user would, so that the tests are short; nothing else is different.
SOON = Patience(first=0.25, longest=1.0, unverified=3.0)


class Following:
    """A job followed in this process, with what was shown."""

    def __init__(self, job: JobId, log: Path | None = None) -> None:
        self.job = job
        self.log = log
        self.stream = io.StringIO()

    def __call__(self) -> Followed:
        clock = Signals()
        return follow(
            self.job,
            slurm=Slurm(interrupt=clock.fileno),
            clock=clock,
            display=PlainDisplay(self.stream),
            log=self.log,
            patience=FollowPatience(watch=SOON, pulse=0.25, quiet=0.25),
        )

    @property
    def shown(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    def says(self, text: str) -> bool:
        return text in self.stream.getvalue()


def meanwhile(following: Following, action: Callable[[], object]) -> Followed:
    """Follow, and do something in another thread once the job runs."""
    failures: list[BaseException] = []

    def act() -> None:
        try:
            until(lambda: following.says("RUNNING"), 30, following.stream.getvalue)
            action()
        except BaseException as failure:  # noqa: BLE001 - it is raised again in the thread of the test
            failures.append(failure)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        return following()
    finally:
        thread.join(60)
        for failure in failures:
            raise failure
