"""What the runner costs while it follows a job: ``python benchmarks/following.py JOB`` is the process that is measured.

The job runs on the small real cluster of the tests. A second of it is a line in its log, so there is something to show.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runners.display import PlainDisplay
from runners.follow import follow
from runners.job import JobId
from runners.process import run
from runners.signals import Signals
from runners.slurm import Slurm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runners.process import Done

__all__ = ["Cost", "cost_of_following"]

_JOB: Final = "for second in $(seq {seconds}); do echo second $second; sleep 1; done"


class Cost(NamedTuple):
    """Seconds on the clock, seconds of CPU with all children, and how often a program of Slurm was asked."""

    wall: float
    cpu: float
    calls: int


def cost_of_following(seconds: int) -> Cost:
    """Start a cluster and a job of that length, and have a process follow it.

    Raises:
        ClusterError: the cluster does not start.
    """
    from tests.slurm.cluster import running

    with running() as cluster:
        job = cluster.submit(_JOB.format(seconds=seconds))
        cluster.wait(job, ["RUNNING"])
        argv = [sys.executable, __file__, str(job)]
        done = run(argv, timeout=seconds + 120, env=cluster.env)
    if done.status:
        msg = f"the job was not followed to its end: {done.stderr[-2000:]}"
        raise RuntimeError(msg)
    return Cost(**json.loads(done.stdout))


def _cpu() -> float:
    """Of this process and of every program it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _main(job: str) -> int:
    calls = 0

    def counted(argv: Sequence[str], **how: object) -> Done:
        nonlocal calls
        calls += 1
        return run(argv, **how)  # type: ignore[arg-type]

    with Signals() as signals:
        slurm = Slurm(interrupt=signals.fileno, call=counted)
        began, before = time.monotonic(), _cpu()
        followed = follow(JobId.parse(job), slurm=slurm, clock=signals, display=PlainDisplay(sys.stderr))
        cost = Cost(wall=time.monotonic() - began, cpu=_cpu() - before, calls=calls)
    sys.stdout.write(json.dumps(cost._asdict()))
    return followed.exit_status


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
