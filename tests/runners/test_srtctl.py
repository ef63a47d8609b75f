"""What srtctl says of a submission, and its Python."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from matrix.errors import RefusedError
from runners.job import JobId
from runners.srtctl import features, python_version, submit
from runners.submission import SubmissionError, read_submission
from runners.workspace import JobFolder

GOOD = {
    "status": "submitted", "slurm_job_id": "41", "job_name": "n", "output_dir": "/o/41",
    "metadata_path": "/o/41/41.json", "config_path": "/c", "tags": None,
}  # fmt: skip


def line(**changes: object) -> str:
    return json.dumps({**GOOD, **changes}) + "\n"


def test_one_job_is_one_object() -> None:
    submission = read_submission(0, line(), "Job 41 submitted")
    assert submission.job == JobId(41)
    assert submission.output == Path("/o/41")


@pytest.mark.parametrize("place", ["", None, 7, "outputs/41", "."])
def test_logs_are_looked_for_nowhere_near_us(place: object) -> None:
    assert read_submission(0, line(output_dir=place), "").output is None


def test_a_message_is_not_as_long_as_what_it_quotes() -> None:
    with pytest.raises(SubmissionError) as error:
        read_submission(0, "x" * 100_000, "y" * 100_000)
    assert len(str(error.value)) < 5000


def test_an_id_may_carry_its_cluster_and_prose_may_stand_beside() -> None:
    assert read_submission(0, "a warning\n" + line(slurm_job_id="41;east"), "").job == JobId(41, "east")


UNCLEAR = {
    "nothing": (0, "", ""),
    "no object": (0, "Job 41 submitted!\n", ""),
    "a number on stderr alone": (0, "", "Submitted batch job 41"),
    "two jobs": (0, line() + line(slurm_job_id="42"), ""),
    "no submissions": (0, '{"status": "no-submissions"}\n', ""),
    "text for an id": (0, line(slurm_job_id="submitted"), ""),
    "no id": (0, line(slurm_job_id=""), ""),
    "an array task": (0, line(slurm_job_id="41_1"), ""),
    "a failure after the submission": (1, line(), "Traceback"),
    "half an object": (0, line()[:30], ""),
    "lists in lists": (0, "[" * 200_000, ""),
    "one object over many lines": (0, json.dumps(GOOD, indent=2), ""),
    "a truth for an id": (0, line(slurm_job_id=True), ""),
    "no number for an id": (0, line(slurm_job_id=41.0), ""),
    "job 0": (0, line(slurm_job_id=0), ""),
    "two ids": (0, line(slurm_job_id="41 42"), ""),
    "an option for a cluster": (0, line(slurm_job_id="41;-M"), ""),
    "sbatch failed": (1, '{"status": "error", "error": "Command \'[\\"sbatch\\"]\' returned 1"}\n', "Socket timed out"),
}


@pytest.mark.parametrize(("status", "stdout", "stderr"), UNCLEAR.values(), ids=UNCLEAR)
def test_a_job_that_is_not_named_is_looked_up_and_never_guessed(status: int, stdout: str, stderr: str) -> None:
    with pytest.raises(SubmissionError) as error:
        read_submission(status, stdout, stderr)
    assert "fix: " not in str(error.value)
    end = re.sub(r"\W", "", stdout or stderr)[-8:]
    assert end in re.sub(r"\W", "", str(error.value)), "what it said is quoted"


def test_a_refusal_of_srtctl_is_a_refusal() -> None:
    said = '{"status": "error", "error": "Preflight failed for r: model.path"}\n'
    with pytest.raises(RefusedError, match=r"Preflight failed for r: model\.path"):
        read_submission(1, said, "")


def test_options_are_read_off_the_help() -> None:
    text = "usage: srtctl apply [-h] -f CONFIG [-y]\n  -y, --yes  Skip\n  --no-preflight  not-an--option\n"
    assert features(text) == {"--yes", "--no-preflight"}


def test_options_are_asked_for_once_and_without_json_nothing_is_submitted(tmp_path: Path) -> None:
    folder = JobFolder(root=tmp_path)
    folder.clone.mkdir()
    program = tmp_path / "srtctl"
    program.write_text(f"#!/bin/sh\necho \"$*\" >> {tmp_path}/calls\necho 'usage: srtctl apply --file X'\n")
    program.chmod(0o755)
    for _ in range(2):
        with pytest.raises(RefusedError, match="no apply --json"):
            submit(folder, (str(program),), dict(os.environ), remembered=tmp_path / "options" / "content")
    assert (tmp_path / "calls").read_text().splitlines() == ["apply --help"]
    (tmp_path / "options" / "content").write_text("--file --json --yes")
    with pytest.raises(SubmissionError):
        submit(folder, (str(program),), dict(os.environ), remembered=tmp_path / "options" / "content")
    asked = (tmp_path / "calls").read_text().splitlines()
    assert asked[1:] == [f"apply -f {folder.recipe} --json --yes"]


def test_a_python_says_its_version(tmp_path: Path) -> None:
    assert python_version(Path(sys.executable)) == ".".join(map(str, sys.version_info[:3]))
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 3.9.1\n")
    old.chmod(0o755)
    for path, words in (
        (old, r"needs 3\.10"),
        (tmp_path / "none", "cannot be started"),
        (Path("/bin/false"), "answer"),
    ):
        with pytest.raises(RefusedError, match=words):
            python_version(path)
