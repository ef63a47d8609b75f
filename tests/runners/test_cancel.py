"""Orders to cancel, and jobs that are known by their tag alone."""

import pytest

from runners.cancel import cancel, find_tagged
from runners.job import JobId
from runners.slurm import Slurm, SlurmError
from tests.runners.scripted import INTERRUPTED, NO_CONTROLLER, FakeClock, Programs


def test_an_order_is_given_once() -> None:
    programs, clock = Programs(), FakeClock()
    told: list[str] = []
    assert cancel(Slurm(call=programs), [JobId(1), JobId(2)], clock=clock, tell=told.append)
    assert programs.calls == [("scancel", "1", "2")]
    assert (told, clock.sleeps) == ([], [])
    assert cancel(Slurm(call=programs), [], clock=clock, tell=told.append)
    assert len(programs.calls) == 1


def test_an_order_that_was_not_taken_is_given_again() -> None:
    programs = Programs(scancel=[NO_CONTROLLER, NO_CONTROLLER, ""])
    told: list[str] = []
    assert cancel(Slurm(call=programs), [JobId(1)], clock=FakeClock(), tell=told.append)
    assert len(programs.calls) == 3
    assert len(told) == 1


def test_after_the_bound_the_order_is_left_to_a_person() -> None:
    told: list[str] = []
    clock = FakeClock()
    programs = Programs(scancel=[NO_CONTROLLER])
    assert not cancel(Slurm(call=programs), [JobId(1), JobId(2)], clock=clock, tell=told.append, within=10)
    assert clock.now() <= 10
    assert told[-1].endswith("fix: scancel 1 2")


def test_a_job_on_its_way_is_found_by_its_tag() -> None:
    clock = FakeClock()
    slurm = Slurm(call=Programs(squeue=["", NO_CONTROLLER, "7 other\n900 tag-1\n"]))
    assert find_tagged(slurm, "tag-1", clock=clock, within=10) == (JobId(900),)


def test_no_job_with_the_tag() -> None:
    clock = FakeClock()
    assert find_tagged(Slurm(call=Programs(squeue=["7 other\n"])), "tag-1", clock=clock, within=10) == ()
    assert clock.now() <= 10
    with pytest.raises(SlurmError, match="Unable to contact"):
        find_tagged(Slurm(call=Programs(squeue=[NO_CONTROLLER])), "tag-1", clock=clock, within=10)


def test_a_signal_cuts_neither_the_order_nor_the_search_short() -> None:
    programs = Programs(scancel=[INTERRUPTED, ""], squeue=[INTERRUPTED, "900 tag-1\n"])
    slurm, clock = Slurm(call=programs), FakeClock()
    told: list[str] = []
    assert cancel(slurm, [JobId(1)], clock=clock, tell=told.append)
    assert find_tagged(slurm, "tag-1", clock=clock, within=10) == (JobId(900),)
    assert (told, clock.sleeps) == ([], [])
