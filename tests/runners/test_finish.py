"""The end of a job on this host: what is written down, when, and what stays to be collected later."""

from __future__ import annotations

import errno
import io
import json
import os
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from runners import finish as finishing
from runners.display import PlainDisplay
from runners.finish import finish
from runners.flight import Flight, Launch
from runners.job import ExitCode, JobId, JobRecord, JobState
from runners.launch import fly, left_behind
from runners.receipt import Receipt, Step, read_receipt
from runners.slurm import Slurm
from runners.sweep import Stage, sweep
from runners.verdict import Outcome, Verdict
from tests.runners.scripted import NO_ACCOUNTING, NO_SUCH_JOB, FakeClock, Programs

if TYPE_CHECKING:
    from pathlib import Path

    from runners.profile import Profile
    from runners.results import Kept
    from runners.target import Target

PASSED = Verdict(outcome=Outcome.PASSED, why="job 7 COMPLETED 0:0: it succeeded")
CANCELLED = Verdict(outcome=Outcome.CANCELLED, why="job 7 CANCELLED 0:15: it was cancelled")
RECORD = JobRecord(
    job=JobId(7), state=JobState.COMPLETED, word="COMPLETED", source="test", exit=ExitCode(0, 0), derived=ExitCode(0, 9)
)
ROW: dict[str, Any] = {"id": "a", "conc": [4]}


class Host:
    """A launch whose job has ended and left an agentic result in the workspace."""

    def __init__(self, folder: Path, signal: int | None = None) -> None:
        self.clock = FakeClock()
        self.clock.received = signal
        self.stream = io.StringIO()
        self.run = Launch(
            repository=folder,
            results=folder / "results",
            environ={},
            slurm=Slurm(),
            clock=self.clock,
            display=PlainDisplay(self.stream),
        )
        self.place = folder / "results" / "a"
        for each in (self.place, folder / "output" / "logs", folder / "workspace", folder / "jobs" / "a.1"):
            each.mkdir(parents=True)
        (folder / "output" / "logs" / "sweep_7.log").write_text("Benchmark")
        self.source = folder / "workspace" / "a.1_conc4.json"
        self.source.write_text(json.dumps({"num_requests_successful": 4, "num_requests_total": 4}))
        job = {
            "tag": "a.1", "id": "7", "folder": str(folder / "jobs" / "a.1"), "workspace": str(folder / "workspace"),
            "output": str(folder / "output"), "outputs": str(folder),
        }  # fmt: skip
        self.flight = Flight(
            receipt=Receipt(step=Step.SUBMITTED, point={"id": "a", "digest": "d", "row": ROW}, job=job),
            folder=self.place,
            job=JobId(7),
            output=folder / "output",
            since=datetime.now(),  # noqa: DTZ005 - as Slurm tells it
            row=ROW,
        )

    def end(self, verdict: Verdict = PASSED, status: int | None = None) -> bool:
        return finish(self.flight, verdict, RECORD, self.run, exit_status=status)

    @property
    def receipt(self) -> Receipt:
        return read_receipt(self.place)


def test_a_verified_success(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert host.end()
    assert host.receipt.succeeded
    assert host.receipt.job["derived-exit"] == "0:9"
    assert not host.source.exists()
    assert not (tmp_path / "jobs" / "a.1").exists()
    assert [each["file"] for each in host.receipt.results] == ["result_conc4.json", "server-logs.tar.gz"]


@pytest.mark.parametrize("verdict", [PASSED, CANCELLED])
def test_after_a_signal_the_receipt_is_there_before_logs_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict
) -> None:
    """GitHub kills a cancelled step within 10 s, and the logs of a sweep can take longer."""
    host = Host(tmp_path, signal=2)

    class KilledError(BaseException):
        pass

    def killed(*_: object) -> Kept | None:
        raise KilledError

    monkeypatch.setattr(finishing, "pack_logs", killed)
    with pytest.raises(KilledError):
        host.end(verdict, 130)
    receipt = host.receipt
    assert receipt.step is Step.ENDED
    assert not receipt.succeeded
    assert receipt.outcome["verdict"] == verdict.outcome.value
    assert receipt.outcome["exit-status"] == 130
    assert [each["file"] for each in receipt.results] == ["result_conc4.json"]
    assert json.loads((host.place / "summary.json").read_text())["figures"] == [
        {"conc": 4, "successful": 4, "total": 4}
    ]
    assert not host.source.exists()


def test_a_job_that_passed_while_a_signal_came_says_both(tmp_path: Path) -> None:
    host = Host(tmp_path, signal=15)
    assert not host.end(PASSED, 143)
    assert "it succeeded, but a signal ended the launch" in host.receipt.outcome["why"]
    assert (host.place / "result_conc4.json").exists()


@pytest.mark.parametrize(("step", "rule"), [("pack_logs", "result-logs"), ("collect", "result-unread")])
def test_what_only_this_host_lacks_is_collected_by_the_next_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, rule: str
) -> None:
    host = Host(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as patched:
        patched.setattr(finishing, step, fail)
        assert not host.end()
    assert host.receipt.open
    assert rule in host.receipt.outcome["faults"][0]
    assert "Stale file handle" in host.receipt.outcome["why"]
    assert host.source.exists()
    assert "launch again" in host.stream.getvalue()
    assert host.end()
    assert host.receipt.succeeded
    assert not host.source.exists()


def left_by_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host whose launch could not keep what its good job left."""
    host = Host(folder)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(finishing, "pack_logs", fail)
        assert not host.end()
    return host


@pytest.mark.parametrize("digest", ["d", "another"])
def test_what_slurm_has_forgotten_meanwhile_is_collected_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digest: str
) -> None:
    """A controller forgets within minutes, and not every site has accounting."""
    host = left_by_a_full_disk(tmp_path, monkeypatch)
    programs = Programs(squeue=[NO_SUCH_JOB], scontrol=[NO_SUCH_JOB], sacct=[NO_ACCOUNTING])
    run = replace(host.run, slurm=Slurm(call=programs))
    flight = left_behind(host.place, cast("Target", SimpleNamespace(row={"digest": digest})), run)
    if digest == "d":
        assert isinstance(flight, Flight)
        assert fly(flight, run) == 0
    else:
        assert flight is None, "it is written down first"
    assert host.receipt.succeeded
    assert host.receipt.job["derived-exit"] == "0:9"
    assert programs.calls == []


def test_a_sweep_collects_it_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = left_by_a_full_disk(tmp_path, monkeypatch)
    programs = Programs(squeue=[NO_SUCH_JOB])
    run = replace(host.run, slurm=Slurm(call=programs))
    target = cast("Target", SimpleNamespace(row={**ROW, "digest": "d"}))

    def nobody(_: Target) -> Profile:
        return cast("Profile", None)

    done = sweep([target], nobody, run, most=1, show=lambda _: None)
    assert [entry.stage for entry in done.entries] == [Stage.PASSED]
    assert done.exit_status == 0
    assert host.receipt.succeeded
    assert programs.calls == []


def test_what_no_disk_changes_is_a_failure_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path)
    host.source.write_text("{}")

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(finishing, "pack_logs", fail)
    assert not host.end()
    assert host.receipt.step is Step.ENDED
    assert "(and 1 more)" in host.receipt.outcome["why"]


def test_a_receipt_that_cannot_be_written_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(finishing, "write_atomic", fail)
    assert not host.end()
    assert "failure: job 7 COMPLETED 0:0: it succeeded, and it could not be written down" in host.stream.getvalue()
    assert host.source.exists()
    assert (tmp_path / "jobs" / "a.1").exists()
