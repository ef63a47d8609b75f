"""Orders to cancel, and jobs that are known by their tag alone."""

import pytest
from click.testing import CliRunner

from runners.cancel import after_the_order, cancel, find_tagged
from runners.cli.main import main
from runners.job import JobId
from runners.slurm import Slurm, SlurmError
from tests.runners.scripted import INTERRUPTED, NO_CONTROLLER, FakeClock, Programs, failed


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


def test_what_slurm_does_not_let_us_is_not_tried_again() -> None:
    """As scancel 22.05.8 says it, of two jobs at once; it has cancelled the other one."""
    said = "scancel: error: Kill job error on job id 5: Access/permission denied\n"
    programs, clock = Programs(scancel=[failed(said, 210)]), FakeClock()
    told: list[str] = []
    assert not cancel(Slurm(call=programs), [JobId(5), JobId(6)], clock=clock, tell=told.append)
    assert (len(programs.calls), clock.sleeps) == (1, [])
    assert "job id 5: Access/permission denied" in told[0]
    assert "fix: " in told[0]


def test_a_controller_that_is_down_saves_no_job_of_another_cluster() -> None:
    programs, clock = Programs(scancel=[NO_CONTROLLER, "", ""]), FakeClock()
    assert cancel(Slurm(call=programs), [JobId(1, "a"), JobId(2, "b")], clock=clock, tell=lambda _: None)
    assert programs.calls[:2] == [("scancel", "-M", "a", "1"), ("scancel", "-M", "b", "2")]


def test_what_became_of_each_job_is_told() -> None:
    queue = "1 CANCELLED 0:10 None\n2 COMPLETED 0:10 None\n3 COMPLETING 0:10 None\n"
    slurm = Slurm(call=Programs(squeue=[queue]))
    assert [line.split(",")[0] for line in after_the_order(slurm, map(JobId, (1, 2, 3, 4)))] == [
        "1: cancelled",
        "2: it had ended before",
        "3: it is being cancelled",
        "4: the controller knows no such job (any more)",
    ]
    (line,) = after_the_order(Slurm(call=Programs(squeue=[NO_CONTROLLER])), [JobId(1)])
    assert "Unable to contact" in line


def test_every_word_that_is_no_id_is_named() -> None:
    done = CliRunner().invoke(main, ["cancel", "7", "18_0", "0", "1;-M", "all"])
    assert done.exit_code == 1
    assert [line.split("'")[1] for line in done.stderr.splitlines()] == ["18_0", "0", "1;-M", "all"]


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
