"""Cancel own jobs: by id, each once. An order that the controller did not take is given again, within a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runners.job import JobState
from runners.process import InterruptedCallError
from runners.slurm import DeniedError, SlurmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from runners.job import JobId
    from runners.signals import Clock
    from runners.slurm import Slurm

__all__ = ["after_the_order", "cancel", "find_tagged"]

_FIRST: Final = 1.0


def cancel(
    slurm: Slurm, jobs: Iterable[JobId], *, clock: Clock, tell: Callable[[str], None], within: float = 60.0
) -> bool:
    """Cancel jobs, and say whether the controller took the order; their ends are for `runners.watch` to see.

    Jobs that have ended are no fault. A signal does not cut the order short.

    Args:
        slurm: Where they are.
        jobs: Own ids.
        clock: Time.
        tell: Takes what a person should read.
        within: Seconds to go on trying.
    """
    ids = tuple(jobs)
    if not ids:
        return True
    deadline, delay = clock.now() + within, _FIRST
    while True:
        try:
            slurm.cancel(ids)
        except InterruptedCallError:
            continue
        except DeniedError as error:
            tell(f"not cancelled: {error}. fix: ask the owner of the job, or name one of yours")
            return False
        except SlurmError as error:
            if delay == _FIRST:
                tell(f"the order to cancel was not taken, trying again ({error})")
            if clock.now() + delay > deadline:
                tell(f"not cancelled: {error}. fix: scancel {' '.join(map(str, ids))}")
                return False
            clock.sleep(delay)
            delay *= 2
        else:
            return True


def after_the_order(slurm: Slurm, jobs: Iterable[JobId]) -> Iterator[str]:
    """What became of each job, one line each. scancel itself says nothing of a job that has ended or never was."""
    ids = tuple(jobs)
    try:
        rows = slurm.queue(ids)
    except SlurmError as error:
        yield f"the order was taken, and Slurm does not say what became of it: {error}"
        return
    for job in ids:
        row = rows.get(job)
        if row is None:
            yield f"{job}: the controller knows no such job (any more), so there was nothing to cancel"
        elif row.state is JobState.CANCELLED:
            yield f"{job}: cancelled"
        elif row.state.terminal:
            yield f"{job}: it had ended before, as {row.word}"
        else:
            yield f"{job}: it is being cancelled, and is {row.word} still"


def find_tagged(slurm: Slurm, tag: str, *, clock: Clock, within: float, cluster: str = "") -> tuple[JobId, ...]:
    """The jobs with a tag, looked for until there is one: a submission that was cut off may still be on its way.

    Args:
        slurm: Where they are.
        tag: The comment that the submission gave.
        clock: Time.
        within: Seconds to go on looking. Nothing found by then most likely means that nothing was submitted.
        cluster: Where else than on the default cluster.

    Raises:
        SlurmError: the controller did not answer until the end, so nobody knows.
    """
    deadline, delay = clock.now() + within, _FIRST / 4
    while True:
        found: tuple[JobId, ...] = ()
        failure: SlurmError | None = None
        try:
            found = slurm.tagged(tag, cluster)
        except InterruptedCallError:
            # It is all the more urgent now to know the job.
            continue
        except SlurmError as error:
            failure = error
        if found:
            return found
        if clock.now() + delay > deadline:
            if failure is not None:
                raise failure
            return ()
        clock.sleep(delay)
        delay = min(delay * 2, 4 * _FIRST)
