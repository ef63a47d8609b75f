"""docs/running.md names commands, options and profile keys that there are."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import click

from runners.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


def test_every_command_and_option_exists(root: Path) -> None:
    text = (root / "docs" / "running.md").read_text()
    shown = re.findall(r"python -m runners ([a-z]+)([^\n`#]*)", text)
    assert {name for name, _ in shown} == set(main.commands) - {"patches"}
    for name, rest in shown:
        known = {option for parameter in main.commands[name].params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--[a-z-]+", rest)) <= known, (name, rest)
    everywhere = {option for command in main.commands.values() for each in command.params for option in each.opts}
    for option in re.findall(r"`(--[a-z-]+)`", text):
        assert option in everywhere
    assert isinstance(main, click.Group)


def test_every_key_of_a_profile_that_is_shown_exists(root: Path) -> None:
    known = json.loads((root / "runners" / "schemas" / "cluster.json").read_text())["properties"]
    rows = re.findall(r"^   \| (`[^|]*) \|", (root / "docs" / "running.md").read_text(), flags=re.MULTILINE)
    shown = {key for row in rows for key in re.findall(r"`([a-z-]+)`", row)}
    assert len(shown) > 12
    assert shown <= set(known)
