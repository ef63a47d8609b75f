"""Which ends are successes: one of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from runners.job import ExitCode, JobId, JobRecord, JobState, state_of
from runners.slurm import read_accounting
from runners.verdict import Outcome, judge

FAIL, GONE, CANCELLED, PASS = Outcome.FAILED, Outcome.INFRASTRUCTURE, Outcome.CANCELLED, Outcome.PASSED

# state|exit|derived -> the outcome, and a word that the reason holds.
ROWS = {
    "COMPLETED|0:0|0:0": (PASS, "succeeded"),
    "COMPLETED|0:0|": (PASS, "succeeded"),
    "COMPLETED|0:0|0:9": (FAIL, "step"),
    "COMPLETED|0:0|0:15": (FAIL, "step"),
    "COMPLETED|0:0|137:0": (FAIL, "step"),
    "COMPLETED|0:0|143:0": (FAIL, "step"),
    "COMPLETED|0:0|1:0": (FAIL, "step"),
    "COMPLETED|0:0|0:11": (FAIL, "step"),
    "COMPLETED|0:0|139:0": (FAIL, "step"),
    "COMPLETED|0:0|0:125": (FAIL, "step"),
    "COMPLETED|3:0|3:0": (FAIL, "exited with 3"),
    "COMPLETED||": (Outcome.UNVERIFIED, "no exit code"),
    "FAILED|1:0|1:0": (FAIL, "exited with 1"),
    "FAILED|137:0|0:0": (FAIL, "signal 9"),
    "FAILED|0:9|0:9": (FAIL, "signal 9"),
    "FAILED|192:0|0:0": (FAIL, "signal 64"),
    "FAILED|193:0|0:0": (FAIL, "it exited with 193"),
    "FAILED|255:0|0:0": (FAIL, "it exited with 255"),
    "FAILED|128:0|0:0": (FAIL, "it exited with 128"),
    "FAILED|0:0|1:0": (FAIL, "failed"),
    "OUT_OF_MEMORY|0:125|0:0": (FAIL, "memory"),
    "OUT_OF_ME+|0:125|0:0": (FAIL, "memory"),
    "TIMEOUT|0:0|0:0": (FAIL, "time limit"),
    "TIMEOUT|0:1|0:0": (FAIL, "time limit"),
    "CANCELLED by 1001|0:0|0:0": (CANCELLED, "by 1001"),
    "CANCELLED+|0:15|0:0": (CANCELLED, "cancelled"),
    "DEADLINE|0:0|0:0": (FAIL, "deadline"),
    "BOOT_FAIL|0:0|0:0": (GONE, "boot"),
    "NODE_FAIL|0:0|0:0": (GONE, "node"),
    "PREEMPTED|0:0|0:0": (GONE, "preempted"),
    "SOME_NEW_STATE|0:0|0:0": (FAIL, "SOME_NEW_STATE"),
    "RUNNING|0:0|0:0": (Outcome.UNVERIFIED, "no end"),
}


def record(text: str, restarts: int = 0) -> JobRecord:
    word, code, derived = text.split("|")
    return JobRecord(
        job=JobId(900),
        state=state_of(word),
        word=word,
        source="test",
        exit=ExitCode.parse(code),
        derived=ExitCode.parse(derived),
        restarts=restarts,
    )


@pytest.mark.parametrize("text", ROWS)
def test_the_verdict(text: str) -> None:
    outcome, word = ROWS[text]
    verdict = judge(record(text))
    assert verdict.outcome is outcome
    assert word in verdict.why
    assert "900" in verdict.why


# Of a job that ends steps of its own, as srtctl's do: derived code -> whether it passes.
ENDED = {
    "0:0": True, "": True, "0:9": True, "0:15": True, "137:0": True, "143:0": True,
    "1:0": False, "0:1": False, "0:2": False, "0:6": False, "0:7": False, "0:11": False, "0:125": False,
    "9:0": False, "15:0": False, "134:0": False, "139:0": False, "137:9": False, "1:9": False, "255:0": False,
}  # fmt: skip


@pytest.mark.parametrize("derived", ENDED)
def test_steps_that_the_job_itself_has_ended(derived: str) -> None:
    found = record(f"COMPLETED|0:0|{derived}")
    verdict = judge(found, ends_steps=True)
    assert verdict.passed is ENDED[derived]
    assert derived in verdict.why
    assert judge(found).passed is (derived in {"", "0:0"})


@pytest.mark.parametrize(
    "text", [text for text, (outcome, _) in ROWS.items() if outcome is not PASS and "COMPLETED|0:0" not in text]
)
def test_no_other_end_becomes_a_success(text: str) -> None:
    """The job's own code, and every other state, count as for any job."""
    state, code, _ = text.split("|")
    for derived in ("0:0", "0:9", "137:0"):
        assert judge(record(f"{state}|{code}|{derived}"), ends_steps=True).outcome is ROWS[text][0]


@pytest.mark.parametrize("state", JobState)
def test_only_completed_passes(state: JobState) -> None:
    verdict = judge(record(f"{state}|0:0|0:0"))
    assert verdict.passed is (state is JobState.COMPLETED)
    assert verdict.why


LAUNCHED: dict[str, str] = {
    "0:53": "could not start it",
    "": "could not start it",
    "0:9": "signal 9",
    "0:15": "signal 15",
    "1:0": "exited with 1",
}


@pytest.mark.parametrize("code", LAUNCHED)
def test_slurm_says_launch_failure_of_a_script_that_was_killed_as_well(code: str) -> None:
    found = replace(record(f"FAILED|{code}|0:0"), reason="JobLaunchFailure")
    assert LAUNCHED[code] in judge(found).why
    assert found.never_started is ("start" in LAUNCHED[code])


def test_the_end_of_a_code_is_no_signal() -> None:
    for code in (128, 193, 255):
        assert "signal" not in judge(record(f"FAILED|{code}:0|0:0")).why


def test_two_runs_in_one_folder_are_no_success() -> None:
    verdict = judge(record("COMPLETED|0:0|0:0", restarts=1))
    assert verdict.outcome is Outcome.FAILED
    assert "again once" in verdict.why


def test_recorded_states(shared: Path) -> None:
    lines = (shared / "cases" / "C52" / "states.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert len(rows) == 14
    for row, wanted, status in rows:
        found = read_accounting(row, JobId(900), "sacct")
        assert found is not None
        for ends_steps in (False, True):
            verdict = judge(found, ends_steps=ends_steps)
            assert verdict.passed is (wanted == "pass"), row
            assert verdict.passed is (status == "0"), row
            assert (verdict.outcome is Outcome.CANCELLED) is (wanted == "cancelled"), row
            assert (verdict.outcome is Outcome.INFRASTRUCTURE) is ("infrastructure" in wanted), row
