"""Follow one job in a process of its own, so that a test can send it signals: ``follow_driver.py JOB [LOG]``.

Writes what came of it to standard output, as JSON, and everything for people to standard error.
"""

import json
import os
import signal
import sys
from pathlib import Path

from runners.display import display_for
from runners.follow import FollowPatience, follow
from runners.job import JobId
from runners.signals import Signals
from runners.slurm import Slurm


def main(job: str, log: str | None = None) -> int:
    # The tests may run under nohup, where a hang-up is rightly passed over.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with Signals() as signals:
        followed = follow(
            JobId.parse(job),
            slurm=Slurm(interrupt=signals.fileno),
            clock=signals,
            display=display_for(sys.stderr, os.environ),
            log=Path(log) if log else None,
            patience=FollowPatience(taken=float(os.environ.get("TAKEN", "20"))),
        )
    result = {
        "outcome": followed.verdict.outcome,
        "why": followed.verdict.why,
        "signal": followed.signal,
        "cancelled": followed.cancelled,
        "state": followed.record.word if followed.record else None,
        "log": str(followed.log) if followed.log else None,
    }
    sys.stdout.write(json.dumps(result))
    return followed.exit_status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
