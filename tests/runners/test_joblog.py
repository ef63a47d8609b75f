"""A file that grows, appears late, is begun anew or ends without a line end: every line once, none lost."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.job import JobId
from runners.joblog import JobLog, carries


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "slurm-1.out"


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def test_whole_lines_as_they_come(path: Path) -> None:
    log = JobLog(path)
    assert (log.read(), log.beginnings) == ([], 0)
    append(path, b"one\ntw")
    assert (log.read(), log.beginnings) == (["one"], 1)
    assert log.read() == []
    append(path, b"o\r\n\nthree")
    assert log.read() == ["two", ""]
    assert log.finish() == ["three"]
    assert log.finish() == []
    append(path, b"!\n")
    assert log.finish() == ["!"]


def test_a_file_that_is_cut_is_read_from_its_beginning(path: Path) -> None:
    log = JobLog(path)
    append(path, b"first run, a long line\nhalf")
    assert log.read() == ["first run, a long line"]
    path.write_bytes(b"second\n")
    assert log.read() == ["half", "second"]
    assert log.beginnings == 2


def test_a_file_that_was_cut_and_is_longer_by_now_is_noticed(path: Path) -> None:
    log = JobLog(path)
    append(path, b"first run\n")
    log.read()
    path.write_bytes(b"second run, and it goes on\n")
    assert log.read() == ["second run, and it goes on"]
    assert log.beginnings == 2


def test_another_file_under_the_same_name(path: Path) -> None:
    log = JobLog(path)
    append(path, b"old\n")
    log.read()
    new = path.with_name("new")
    new.write_bytes(b"new\nand more\n")
    new.replace(path)
    assert log.read() == ["new", "and more"]


def test_what_is_no_text_is_shown_all_the_same(path: Path) -> None:
    append(path, b"\xff\xfe\0\x1b[31m\n")
    assert JobLog(path).read() == ["��\0\x1b[31m"]


def test_a_line_without_end_does_not_fill_the_memory(path: Path) -> None:
    append(path, b"x" * 200_000)
    log = JobLog(path)
    assert sum(map(len, log.read())) == 200_000
    append(path, b"\n")
    assert log.read() == [""]


def test_a_large_file_is_read_in_pieces(path: Path) -> None:
    line = b"y" * 99 + b"\n"
    append(path, line * 25_000)
    log = JobLog(path)
    counts = [len(log.read())]
    while log.behind:
        counts.append(len(log.read()))
    assert len(counts) == 3
    assert sum(counts) == 25_000


def test_a_file_that_may_not_be_read_and_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert JobLog(tmp_path / "no" / "folder" / "x").read() == []
    assert JobLog(tmp_path).read() == []


def test_the_name_has_to_carry_the_id() -> None:
    names = {
        "slurm-12.out": True,
        "outputs/12/logs/run.log": True,
        "outputs/12/logs/sweep_12.log": True,
        "slurm-112.out": False,
        "slurm-120.out": False,
        "12x/slurm.out": False,
        "slurm.out": False,
    }
    assert {name: carries(Path(name), JobId(12)) for name in names} == names


@given(
    st.lists(st.binary(max_size=40), max_size=20),
    st.randoms(use_true_random=False),
)
def test_however_it_is_written_every_line_comes_once(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], chance: object
) -> None:
    path = tmp_path_factory.mktemp("log") / "slurm-1.out"
    log = JobLog(path)
    lines: list[str] = []
    for part in parts:
        append(path, part)
        if chance.random() < 0.5:  # type: ignore[attr-defined]
            lines += log.read()
    lines += log.finish()
    whole = b"".join(parts)
    wanted = whole.removesuffix(b"\n").split(b"\n") if whole else []
    assert lines == [line.removesuffix(b"\r").decode("utf-8", "replace") for line in wanted]
    assert log.size == len(whole)
    assert log.beginnings == int(path.exists())


@pytest.mark.parametrize("letter", ["a", "ä", "→", "😀"])
@pytest.mark.parametrize("shift", range(4))
def test_a_line_without_end_is_cut_between_letters(path: Path, letter: str, shift: int) -> None:
    log, text = JobLog(path), "x" * shift + letter * 70_000
    shown = []
    for start in range(0, len(text.encode()), 65_521):
        append(path, text.encode()[start : start + 65_521])
        shown += log.read()
    assert "".join(shown + log.finish()) == text


@pytest.mark.parametrize("end", [b"caf\xc3", b"\xe2\x86", b"\xf0\x9f\x98", b"\xff"])
def test_half_a_letter_at_the_end_is_shown_as_such(path: Path, end: bytes) -> None:
    log = JobLog(path)
    append(path, b"whole\n" + end)
    assert log.read() == ["whole"]
    (line,) = log.finish()
    assert line.endswith("\ufffd")


def test_a_pipe_and_a_folder_hold_nothing_up(path: Path) -> None:
    log = JobLog(path)
    os.mkfifo(path)
    assert (log.read(), log.finish()) == ([], [])
    path.unlink()
    path.mkdir()
    assert (log.read(), log.finish()) == ([], [])
