"""A launch that is ended or killed at any moment, on a real Slurm: no orphan, no lost result, no half receipt."""

from __future__ import annotations

import json
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.runners.standin import CLIENT, World
from tests.slurm.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.slow
def test_a_launch_that_is_ended_at_any_moment_leaves_no_job_and_no_half_receipt(
    make: Callable[..., World], cluster: Cluster
) -> None:
    """Ten moments, from the first import to the end of the job; the seed is fixed, the machine is not."""
    made = make(**{f"v{index}": {"conc": index + 1, "command": f"sleep 2; {CLIENT}"} for index in range(10)})
    moments = random.Random(20260821)  # noqa: S311 - no secret

    def end_at_some_moment(index: int) -> int:
        process = made.start(made.id(f"v{index}", index + 1))
        time.sleep(moments.uniform(0.1, 7.0))
        process.send_signal(moments.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
        process.communicate(timeout=60)
        return process.returncode

    with ThreadPoolExecutor(3) as pool:
        statuses = list(pool.map(end_at_some_moment, range(10)))
    assert cluster.queue() == []
    # Before Python has got as far as to hold signals, one ends it at once, and nothing has been done then.
    assert set(statuses) <= {0, 129, 130, 143, -1, -2, -15, 1}
    ended = 0
    for index, status in enumerate(statuses):
        path = made.results / made.id(f"v{index}", index + 1) / "receipt.json"
        if path.is_file():
            receipt = json.loads(path.read_text())
            ended += receipt["step"] == "ended"
            assert receipt["step"] == "ended", receipt
            assert receipt["outcome"]["success"] is (status == 0)
        else:
            assert status < 0 or status > 128 or status == 1
    assert ended >= 4, statuses


@pytest.mark.slow
def test_a_launch_that_is_killed_at_any_moment_is_mended_by_the_next(
    make: Callable[..., World], cluster: Cluster
) -> None:
    made = make(**{f"v{index}": {"conc": index + 1, "command": f"sleep 2; {CLIENT}"} for index in range(6)})
    moments = random.Random(433)  # noqa: S311 - no secret

    def kill_and_launch_again(index: int) -> tuple[int, str]:
        process = made.start(made.id(f"v{index}", index + 1))
        time.sleep(moments.uniform(0.5, 6.0))
        process.kill()
        process.communicate()
        again = made.run(made.id(f"v{index}", index + 1))
        return again.returncode, again.stderr

    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(kill_and_launch_again, range(6)))
    assert [status for status, _ in ends] == [0] * 6, ends
    assert cluster.queue() == []
    tags = [tag for tag in cluster.run("squeue", "-h", "-t", "all", "-o", "%k").split() if tag != "(null)"]
    for index in range(6):
        assert made.receipt(f"v{index}", index + 1)["outcome"]["success"] is True
    assert len(tags) == len(set(tags))
