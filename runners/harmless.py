"""Text that others wrote, made fit for a terminal and for a log of GitHub Actions: shown, and never obeyed."""

from __future__ import annotations

import os
import re
import secrets
from typing import Final

from matrix.findings import printable as written_out

__all__ = ["defused", "for_log", "on_one_line", "printable", "stop_commands", "visible"]

# Colours are kept. What else a terminal takes as an order is left out whole: CSI, then strings such as a title.
_COLOUR: Final = re.compile(r"(\x1b\[[0-9;:]*m)")
_ORDER: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]")
_PLAIN: Final = "\x1b[0m"


def visible(line: str) -> str:
    r"""A line as a terminal may show it: its colours end with it, and it moves, clears and renames nothing.

    Of a line that was written over, as progress bars are, the last state is left.

    >>> visible("\x1b[31mred"), visible("1%\r2%"), visible("\x1b[2J\x1b]0;title\x07a\x08")
    ('\x1b[31mred\x1b[0m', '2%', 'a\\x08')
    """
    parts = _COLOUR.split(line.rstrip("\r").rpartition("\r")[2])
    if len(parts) == 1:
        return printable(parts[0])
    shown = [part if index % 2 else printable(part) for index, part in enumerate(parts)]
    return "".join(shown) + _PLAIN


def printable(line: str) -> str:
    """A line without orders to a terminal, other characters that cannot be seen written as escapes."""
    if line.isprintable():
        return line
    return "\t".join(map(written_out, _ORDER.sub("", line).split("\t")))


def on_one_line(text: str) -> str:
    """Text that takes one line of a table or a list, whatever is in it."""
    return printable(" ".join(text.split()))


def stop_commands() -> tuple[str, str]:
    """Two lines, between which GitHub Actions takes no line for a command. The second cannot be guessed."""
    token = secrets.token_hex(16)
    return f"::stop-commands::{token}", f"::{token}::"


def defused(text: str) -> str:
    """The same text for a log of GitHub Actions, where a line of it could be a command.

    >>> defused("as it is"), defused("sbatch said\\n ::error::x").splitlines()[1:3]
    ('as it is', ['sbatch said', ' ::error::x'])
    """
    if not any(line.lstrip().startswith("::") or "##[" in line for line in text.splitlines()):
        return text
    stop, go_on = stop_commands()
    return f"{stop}\n{text}\n{go_on}"


def for_log(text: str) -> str:
    """The text for wherever this process writes: a log of GitHub Actions obeys some lines."""
    return defused(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text
