"""What a signal does to a process that follows, among programs that only say lines."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

STAND_IN = """\
#!/bin/sh
name=${0##*/}
echo "$name $*" >> "$FAKE_DIR/calls.log"
case $name in squeue) echo "900 $(cat "$FAKE_DIR/state")" ;; esac
"""


class Launched:
    """`follow` in a process of its own, among stand-ins that never end the job."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.process = process

    def calls(self) -> list[str]:
        file = self.folder / "calls.log"
        return file.read_text().splitlines() if file.exists() else []

    def wait_for(self, program: str) -> None:
        deadline = time.monotonic() + 60
        while not any(call.startswith(program) for call in self.calls()):
            assert time.monotonic() < deadline, f"{program} was not called"
            assert self.process.poll() is None
            time.sleep(0.02)

    def end(self) -> int:
        return self.process.wait(60)


def environment(folder: Path, programs: Path) -> dict[str, str]:
    root = Path(__file__).parents[2]
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "FAKE_DIR": str(folder), "PYTHONPATH": str(root), "TAKEN": "0.5"}
    env.pop("GITHUB_ACTIONS", None)
    return env


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("squeue", "scontrol", "sacct", "scancel"):
        (programs / name).write_text(STAND_IN)
        (programs / name).chmod(0o755)
    (tmp_path / "state").write_text("RUNNING")
    return programs


@pytest.fixture
def launched(tmp_path: Path, programs: Path) -> Iterator[Launched]:
    yield from start(tmp_path, programs)


def start(folder: Path, programs: Path, *arguments: str, stderr: int = subprocess.DEVNULL) -> Iterator[Launched]:
    driver = Path(__file__).with_name("follow_driver.py")
    process = subprocess.Popen(
        [sys.executable, str(driver), "900", *arguments],
        env=environment(folder, programs),
        stdout=subprocess.PIPE,
        stderr=stderr,
    )
    with process:
        try:
            yield Launched(folder, process)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_one_cancel_and_its_status(launched: Launched, number: signal.Signals) -> None:
    launched.wait_for("squeue")
    before = len(launched.calls())
    launched.process.send_signal(number)
    assert launched.end() == 128 + number
    after = [call.split()[0] for call in launched.calls()[before:]]
    assert launched.calls().count("scancel 900") == 1
    # What was under way when the signal came may still be there; nothing new comes before the cancel.
    assert "scancel" in after[:2]
    assert launched.process.stdout is not None
    assert json.loads(launched.process.stdout.read())["signal"] == number


def test_more_signals_change_nothing(launched: Launched) -> None:
    launched.wait_for("squeue")
    launched.process.send_signal(signal.SIGINT)
    launched.wait_for("scancel")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        launched.process.send_signal(number)
    assert launched.end() == 130
    assert [call for call in launched.calls() if call.startswith("scancel")] == ["scancel 900"]


def test_recorded_stand_ins_are_cancelled_alike(shared: Path, tmp_path: Path) -> None:
    shutil.copy(shared / "cases" / "C54" / "squeue.seq", tmp_path)
    for launched in start(tmp_path, shared / "cases" / "_fake" / "bin"):
        launched.wait_for("squeue")
        launched.process.send_signal(signal.SIGINT)
        assert launched.end() == 130
        cancels = [call for call in launched.calls() if call.startswith("scancel")]
        assert cancels == ["scancel 900"]


def test_a_terminal_that_goes_away_cancels_the_job(launched: Launched, tmp_path: Path) -> None:
    """The hang-up of a terminal: its writes fail from then on, and HUP comes."""
    leader, follower = pty.openpty()
    driver = Path(__file__).with_name("follow_driver.py")
    process = subprocess.Popen(
        [sys.executable, str(driver), "900"],
        env={**environment(tmp_path, tmp_path / "bin"), "TERM": "xterm"},
        stdin=follower,
        stdout=subprocess.DEVNULL,
        stderr=follower,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 - no thread is running here
    )
    os.close(follower)
    seen = b""
    while b"job 900 RUNNING" not in seen:
        assert select.select([leader], [], [], 60)[0], seen
        seen += os.read(leader, 4096)
    os.close(leader)
    assert process.wait(60) == 128 + signal.SIGHUP
    assert launched.calls().count("scancel 900") == 1


def test_a_reader_that_has_stopped_reading_does_not_keep_a_job_from_being_cancelled(
    tmp_path: Path, programs: Path
) -> None:
    """As after Ctrl-S, or under a pager that shows its first page."""
    log = tmp_path / "sweep_900.log"
    log.write_text("a line of the log\n" * 100_000)
    for launched in start(tmp_path, programs, str(log), stderr=subprocess.PIPE):
        assert launched.process.stderr is not None
        assert launched.process.stderr.readline() == b"job 900 RUNNING\n"
        launched.process.send_signal(signal.SIGTERM)
        assert launched.end() == 143
        assert launched.calls().count("scancel 900") == 1


def test_a_slow_reader_gets_every_line(tmp_path: Path, programs: Path) -> None:
    log = tmp_path / "sweep_900.log"
    lines = [f"line {number}" for number in range(100_000)]
    log.write_text("\n".join(lines))
    (tmp_path / "state").write_text("TIMEOUT")
    for launched in start(tmp_path, programs, str(log), stderr=subprocess.PIPE):
        assert launched.process.stderr is not None
        launched.wait_for("sacct")
        assert launched.process.stderr.read().decode().splitlines() == lines
        assert launched.end() == 1


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
