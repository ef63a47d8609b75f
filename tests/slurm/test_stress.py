"""The table of repeated runs shows every failure."""

from pathlib import Path

from tests.slurm.stress import Result, results, table

REPORT = """\
<testsuites><testsuite>
<testcase classname="tests.slurm.test_contract_follow" name="test_a[x]" time="1.5" />
<testcase classname="tests.slurm.test_contract_follow" name="test_b" time="2"><failure /></testcase>
<testcase classname="tests.slurm.test_contract_slurm" name="test_c" time="3"><error message="no"></error></testcase>
<testcase classname="tests.slurm.test_contract_slurm" name="test_d" time="0"><skipped message="no"></skipped></testcase>
</testsuite></testsuites>
"""


def test_outcomes_in_a_report(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert results(tmp_path / "report.xml") == [
        Result("follow: test_a[x]", "passed", 1.5),
        Result("follow: test_b", "failed", 2.0),
        Result("slurm: test_c", "failed", 3.0),
        Result("slurm: test_d", "skipped", 0.0),
    ]


def test_a_failure_in_one_round_comes_first() -> None:
    rounds = [Result("slow", "passed", 9.0), Result("quick", "passed", 1.0), Result("quick", "failed", 2.0)]
    rows = [line.split() for line in table(rounds).splitlines()[2:]]
    assert rows == [["quick", "1", "1", "0", "1.0", "1.5", "2.0"], ["slow", "1", "0", "0", "9.0", "9.0", "9.0"]]
