"""What is written where, and that a reader who hangs up stops nothing."""

import io
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from runners.cli.main import main
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


def obeyed(text: str) -> list[str]:
    """The lines that GitHub would take for commands, by its own rules."""
    token, found = None, []
    for line in re.split(r"\r\n|\r|\n", text):
        command = line.lstrip()
        if token is not None:
            token = None if command == f"::{token}::" else token
        elif command.startswith("::stop-commands::"):
            token = command.rpartition("::")[2]
        elif command.startswith("::") or "##[" in line:
            found.append(command)
    return found


ORDERS = (
    "::error::x", "  ::add-mask::x", "a\n::warning::x", "a\r::set-output name=a::b", "##[add-path]/tmp",
    "said ##[error]x", "\n\n::endgroup::", "::stop-commands::mine\n::mine::\n::error::x", "a\x85::error::x",
)  # fmt: skip


@pytest.mark.parametrize("text", ORDERS)
def test_nobody_but_us_commands_github(text: str) -> None:
    """What srtctl and Slurm say is quoted in notes and states."""
    assert obeyed(text) or "\x85" in text
    stream = io.StringIO()
    display = ActionsDisplay(stream)
    display.note(text)
    display.log([text])
    display.phase(f"job 9 {text}")
    display.note("ours")
    display.close()
    assert {line.partition("::")[2].partition("::")[0].partition(" ")[0] for line in obeyed(stream.getvalue())} <= {
        "group", "endgroup"
    }  # fmt: skip
    assert stream.getvalue().count("ours") == 1


def test_what_a_command_is_refused_with_commands_nobody(tmp_path: Path) -> None:
    place = str(tmp_path / "a\n::error::x")
    plain = CliRunner().invoke(main, ["collect", place])
    assert plain.exit_code == 3
    assert obeyed(plain.stderr)
    done = CliRunner().invoke(main, ["collect", place], env={"GITHUB_ACTIONS": "true"})
    assert done.exit_code == 3
    assert "::error::x: no launch has left a receipt here" in done.stderr
    assert obeyed(done.stderr) == []


HOSTILE = {
    "\x1b[32mgreen\x1b[0m": "\x1b[32mgreen\x1b[0m\x1b[0m",
    "\x1b[1;31mbold": "\x1b[1;31mbold\x1b[0m",
    "\x1b[2J\x1b[1;1Hcleared": "cleared",
    "\x1b]0;a title\x07shown": "shown",
    "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
    "\x1b[6n\x1bcreset": "reset",
    "\x1b]0;it has no end": "",
    " 10%\r 50%\r100%": "100%",
    "a\x08\x7f\x00b": "a\\x08\\x7f\\x00b",
    "tab\tstays, ä and \u202eback": "tab\tstays, ä and \\u202eback",
    "\x9b2Jeight bits": "\\x9b2Jeight bits",
}


@pytest.mark.parametrize("line", HOSTILE)
def test_a_terminal_shows_and_obeys_nothing_but_colours(line: str) -> None:
    stream = io.StringIO()
    display = TerminalDisplay(stream)
    display.log([line])
    assert stream.getvalue() == f"{HOSTILE[line]}\n"
    display.note(f"srun said\n{line}")
    display.live(line)
    left = re.sub(r"\x1b\[[0-9;]*m|\r\x1b\[K", "", stream.getvalue())
    assert "\x1b" not in left
    assert "\x08" not in left


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
