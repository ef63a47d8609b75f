"""What is written where, and that a reader who hangs up stops nothing."""

import io
import os
import re
from pathlib import Path

import pytest

from runners.display import ActionsDisplay, Display, PlainDisplay, TerminalDisplay, display_for


def show(display: Display) -> None:
    display.phase("job 9 PENDING")
    display.live("waiting")
    display.note("a note")
    display.phase("job 9 RUNNING")
    display.log(["one", "::error::two"])
    display.log([])
    display.live("running")
    display.note("another note")
    display.log(["three"])
    display.close()


def test_plain_lines() -> None:
    stream = io.StringIO()
    show(PlainDisplay(stream))
    expected = "job 9 PENDING\na note\njob 9 RUNNING\none\n::error::two\nanother note\nthree\n"
    assert stream.getvalue() == expected


def test_groups_in_which_the_job_commands_nothing() -> None:
    stream = io.StringIO()
    show(ActionsDisplay(stream))
    text = stream.getvalue()
    tokens = re.findall(r"^::stop-commands::([0-9a-f]{32})$", text, re.MULTILINE)
    assert len(set(tokens)) == 2
    for number, token in enumerate(tokens):
        text = text.replace(token, f"T{number}")
    assert text.splitlines() == [
        "::group::job 9 PENDING",
        "::endgroup::",
        "a note",
        "::group::job 9 RUNNING",
        "::stop-commands::T0",
        "one",
        "::error::two",
        "::T0::",
        "::endgroup::",
        "another note",
        "::group::job 9 RUNNING",
        "::stop-commands::T1",
        "three",
        "::T1::",
        "::endgroup::",
    ]


def screen(text: str) -> list[str]:
    """What a terminal shows after this text, for the two codes that are used."""
    lines = [""]
    for part in re.split(r"(\n|\r\x1b\[K)", text):
        if part == "\n":
            lines.append("")
        elif part == "\r\x1b[K":
            lines[-1] = ""
        else:
            lines[-1] += part
    return lines


def test_one_live_line_below_everything_else() -> None:
    stream = io.StringIO()
    display = TerminalDisplay(stream)
    display.live("0:00:01")
    assert screen(stream.getvalue()) == ["0:00:01"]
    display.log(["one", "two"])
    assert screen(stream.getvalue()) == ["one", "two", "0:00:01"]
    written = len(stream.getvalue())
    display.live("0:00:01")
    assert len(stream.getvalue()) == written
    display.live("0:00:02")
    display.note("note")
    assert screen(stream.getvalue()) == ["one", "two", "note", "0:00:02"]
    display.live("x" * 500)
    assert len(screen(stream.getvalue())[-1]) == 79
    display.close()
    assert screen(stream.getvalue()) == ["one", "two", "note", ""]


@pytest.mark.parametrize("kind", [PlainDisplay, TerminalDisplay, ActionsDisplay])
def test_a_reader_who_hangs_up_is_no_failure(kind: type[PlainDisplay]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        show(kind(stream))
        # Nothing is left that could fail when the interpreter closes the stream at exit.
        stream.write("after")


def test_letters_that_the_stream_does_not_have(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        PlainDisplay(stream).log(["é→"])
    assert (tmp_path / "out").read_text() == "\\xe9\\u2192\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_display_that_fits() -> None:
    assert type(display_for(io.StringIO(), {})) is PlainDisplay
    assert type(display_for(Terminal(), {})) is TerminalDisplay
    assert type(display_for(Terminal(), {"TERM": "dumb"})) is PlainDisplay
    assert type(display_for(Terminal(), {"GITHUB_ACTIONS": "true"})) is ActionsDisplay
