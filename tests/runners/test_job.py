"""Ids and state words, as Slurm and the sites around it write them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.errors import RefusedError
from runners.job import ExitCode, JobId, JobState, job_id_of, state_of

# Standard output of sbatch -> the id, or None where nothing may be followed.
OUTPUTS: dict[str, JobId | None] = {
    "Submitted batch job 481417": JobId(481417),
    "Submitted batch job 3969755 on cluster nautilus\n": JobId(3969755, "nautilus"),
    "75168975;clustername": JobId(75168975, "clustername"),
    'sbatch: Balance: 497,218.77 hours (99% left) on "x" 42\nSubmitted batch job 1556425\n': JobId(1556425),
    "60060368\n": JobId(60060368),
    "  Submitted batch job 7  \r\n": JobId(7),
    "Submitted batch job 7\nSubmitted batch job 7\n": JobId(7),
    "": None,
    "\n\n": None,
    "sbatch: error: Batch job submission failed: Invalid account": None,
    "Submitted batch job 12 34": None,
    "Submitted batch job 12\nSubmitted batch job 34\n": None,
    "12\n34\n": None,
    "Submitted batch job 12_3": None,
    "12+0": None,
    "Submitted batch job": None,
    "Submitted batch job 0": None,
    "-12": None,
    "12.5": None,
    "٣٤": None,
    "12;--all": None,
    "99999999999": None,
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_id_in_the_output_of_a_submission(output: str) -> None:
    wanted = OUTPUTS[output]
    if wanted is not None:
        assert job_id_of(output) == wanted
        return
    with pytest.raises(RefusedError) as caught:
        job_id_of(output)
    assert repr(output) in str(caught.value)


def test_recorded_outputs(shared: Path) -> None:
    rows = [
        line.split("\t")
        for line in (shared / "cases" / "C48" / "outputs.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert len(rows) == 8
    for name, output, wanted in rows:
        text = output.replace("\\n", "\n")
        if wanted == "!":
            with pytest.raises(RefusedError):
                job_id_of(text)
        else:
            assert str(job_id_of(text)) == wanted, name


@pytest.mark.parametrize("text", ["", "x", "12 34", "12_1", "12+1", "1;", ";c", "1;a;b", "1;-c", "0", "1e3", "None"])
def test_an_id_in_json_is_digits_with_a_cluster_at_most(text: str) -> None:
    with pytest.raises(RefusedError):
        JobId.parse(text)


@given(st.text())
def test_no_text_makes_an_id_that_is_an_option(text: str) -> None:
    try:
        job = job_id_of(text)
    except RefusedError:
        return
    assert str(job).isascii()
    assert str(job).isdecimal()
    assert not job.cluster.startswith("-")


WORDS = {
    "RUNNING": JobState.RUNNING,
    "CANCELLED by 0": JobState.CANCELLED,
    "CANCELLED+": JobState.CANCELLED,
    "OUT_OF_ME+": JobState.OUT_OF_MEMORY,
    "NODE_FAI+": JobState.NODE_FAIL,
    "COMPLETED+": JobState.COMPLETED,
    "COMPLET+": JobState.UNKNOWN,  # COMPLETING begins so as well
    "COMPLET": JobState.UNKNOWN,  # nothing says that this was cut
    "SOME_NEW_STATE": JobState.UNKNOWN,
    "+": JobState.UNKNOWN,
    "": JobState.UNKNOWN,
}


@pytest.mark.parametrize("word", WORDS)
def test_a_state_is_its_first_word(word: str) -> None:
    assert state_of(word) is WORDS[word]


def test_what_is_unknown_has_not_ended() -> None:
    assert not JobState.UNKNOWN.terminal
    assert not any(state.terminal and state.waiting for state in JobState)


@pytest.mark.parametrize("text", ["", "3", "3:", ":3", "a:b", "-1:0"])
def test_no_exit_code_is_made_up(text: str) -> None:
    assert ExitCode.parse(text) is None
