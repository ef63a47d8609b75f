"""Programs that end, hang, cannot be started, or are overtaken by a signal."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.process import CallError, InterruptedCallError, run
from runners.signals import Signals

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _handlers_are_given_back() -> Iterator[None]:
    before = [signal.getsignal(number) for number in CAUGHT]
    yield
    for number, handler in zip(CAUGHT, before, strict=True):
        signal.signal(number, handler)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_what_a_program_leaves() -> None:
    done = run(python("import sys; print('é' * 70000); sys.stderr.write('bad'); sys.exit(7)"), timeout=60)
    assert (done.status, done.stderr) == (7, "bad")
    assert done.stdout == "é" * 70000 + "\n"


def test_environment_folder_and_no_input(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['X'], os.getcwd(), repr(sys.stdin.read()))"
    done = run(python(code), timeout=60, env={"X": "1"}, cwd=tmp_path)
    assert done.stdout == f"1 {tmp_path} ''\n"


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(CallError, match="no-such-program: cannot be started: No such file"):
        run(["no-such-program"], timeout=60)


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/child; wait"
    with pytest.raises(CallError, match=r"has not ended after 0\.5 s"):
        run(["sh", "-c", script], timeout=0.5)
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 30
    while alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


def test_a_signal_ends_the_wait_for_one_program_and_later_ones_nothing() -> None:
    with Signals() as signals:
        program = f"import os, signal, time; os.kill({os.getpid()}, signal.SIGTERM); time.sleep(600)"
        with pytest.raises(InterruptedCallError):
            run(python(program), timeout=60, interrupt=signals.fileno())
        assert signals.received == signal.SIGTERM
        program = f"import os, signal; os.kill({os.getpid()}, signal.SIGINT); print('done')"
        assert run(python(program), timeout=60, interrupt=signals.fileno()).stdout == "done\n"
        assert signals.received == signal.SIGTERM


def test_a_signal_that_was_seen_ends_nothing() -> None:
    with Signals() as signals:
        signals.acknowledge()
        os.kill(os.getpid(), signal.SIGTERM)
        signals.acknowledge()
        assert run(python("print('done')"), timeout=60, interrupt=signals.fileno()).stdout == "done\n"


def test_signals_end_a_sleep_once_and_stay_off() -> None:
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        signals.sleep(600)
        assert signals.received == signal.SIGHUP
        start = signals.now()
        os.kill(os.getpid(), signal.SIGINT)
        signals.sleep(0.2)
        assert signals.now() - start >= 0.2
    for number in CAUGHT:
        os.kill(os.getpid(), number)
    assert signals.received == signal.SIGHUP
    assert signals.fileno() is None
    signals.sleep(0)


def test_a_hangup_that_nohup_has_switched_off_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.received is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_after_the_last_thing_of_a_process_no_signal_changes_its_status() -> None:
    numbers = ", ".join(str(int(number)) for number in CAUGHT)
    program = f"""
import os
from runners.signals import Signals
with Signals(last=True) as signals:
    pass
for number in ({numbers}):
    os.kill(os.getpid(), number)
print("written down", signals.received)
"""
    done = run(python(program), timeout=60, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    assert (done.status, done.stdout) == (0, "written down None\n")
