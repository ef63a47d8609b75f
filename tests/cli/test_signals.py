"""How a command ends when somebody stops it, stops reading it, or it is broken."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import MASTER, ROOT, cli, environment, process, repository

HUGE = 400


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of a hundred thousand points."""
    concs = str(list(range(1, 256)))
    text = "".join(MASTER.replace("alpha", f"a{number}").replace("[4, 16]", concs) for number in range(HUGE))
    return repository(tmp_path_factory.mktemp("huge") / "repo", text)


def started(*words: str, cwd: Path, **changes: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "matrix", *words],
        cwd=cwd,
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("style", ["jsonl", "json", "ids"])
def test_a_closed_pipe_ends_it_quietly(huge: Path, style: str, unbuffered: str) -> None:
    child = started("expand", "--format", style, cwd=huge, PYTHONUNBUFFERED=unbuffered)
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline()
    child.stdout.close()
    assert (child.wait(timeout=60), child.stderr.read()) == (128 + signal.SIGPIPE, b"")
    child.stderr.close()


def test_a_pipe_that_is_closed_before_anything_comes() -> None:
    for words in (["expand", "--format", "ids"], ["--help"], ["expand", "--help"]):
        child = started(*words, cwd=ROOT)
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert (child.wait(timeout=60), child.stderr.read()) == (128 + signal.SIGPIPE, b""), words
        child.stderr.close()


def test_refusals_that_nobody_reads(tmp_path: Path) -> None:
    child = started("expand", "--config", "none.yaml", "--runners", "none.yaml", cwd=tmp_path)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stderr.close()
    assert (child.wait(timeout=60), child.stdout.read()) == (128 + signal.SIGPIPE, b"")
    child.stdout.close()


def test_an_interrupt_ends_it_quietly(huge: Path) -> None:
    child = started("expand", "--format", "jsonl", cwd=huge)
    assert child.stdout is not None
    assert child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err.strip()) == (128 + signal.SIGINT, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("style", ["ids", "jsonl", "table"])
def test_a_full_disk_is_no_bug_of_ours(style: str) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "matrix", "expand", "--format", style],
            cwd=ROOT,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert (result.returncode, result.stderr.decode()) == (1, "matrix: the output: No space left on device\n")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of ours behind the command line."""

    def mistaken(*_: object, **__: object) -> None:
        message = "a mistake"
        raise ZeroDivisionError(message)

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("matrix.workspace.open_workspace", mistaken)


@pytest.mark.usefixtures("broken")
def test_an_internal_error_says_so_and_how_to_see_more() -> None:
    outcome = cli("expand")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == (
        "matrix: internal error: ZeroDivisionError: a mistake. This is a bug; matrix --debug … shows where.\n"
    )


@pytest.mark.usefixtures("broken")
def test_debug_shows_where() -> None:
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        cli("--debug", "expand")


def test_debug_of_a_refusal_is_the_refusal(tmp_path: Path) -> None:
    outcome = process("--debug", "expand", "--config", "none.yaml", cwd=tmp_path)
    assert outcome.status == 1
    assert "Traceback" not in outcome.err


def test_version() -> None:
    outcome = process("--version", cwd=ROOT)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("matrix, version ")
