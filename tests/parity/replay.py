"""InferenceX's recorded runs, and ours of the same command line."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.cli.expand import expand as command
from matrix.cli.expand import request_of
from matrix.cli.main import matrix, run
from matrix.points.pipeline import expand
from matrix.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matrix.points.pipeline import Expansion
    from tests.parity.model import Row

__all__ = ["EXTRA", "Outcome", "Session", "expand_cli", "our_flags", "recorded", "without_ours"]

EXTRA: Final = ("id", "name", "config-key", "recipe", "recipe-fingerprint", "digest")
"""The fields that we add to a row of theirs."""


class Outcome(NamedTuple):
    """What a command line gave."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[Row]:
        """The rows, as a reader of theirs sees them."""
        return [without_ours(row) for row in json.loads(self.out)]


def expand_cli(*flags: str) -> Outcome:
    """``matrix expand`` in this process and folder."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(matrix, ["expand", "--format", "json", *flags], prog="matrix")
    return Outcome(status, out.getvalue(), err.getvalue())


class Session:
    """Files that are read once, for many command lines."""

    def __init__(self, masters: Sequence[Path], runners: Path, recipes: Sequence[Path] = ()) -> None:
        self.workspace = open_workspace(
            str(runners.parent), masters=list(map(str, masters)), runners=str(runners), recipes=list(map(str, recipes))
        )

    def expand(self, flags: Iterable[str]) -> Expansion:
        """What the flags select."""
        context = command.make_context("expand", list(flags))
        files = ("masters", "runners", "recipes", "golden", "style", "allow_empty")
        request = request_of({name: value for name, value in context.params.items() if name not in files})
        workspace = self.workspace
        return expand(workspace.configs, workspace.facts, workspace.policy, request)

    def rows(self, flags: Iterable[str]) -> list[Row]:
        """The rows of what the flags select."""
        return [without_ours(json.loads(point.row_json())) for point in self.expand(flags).points]


def our_flags(argv: Sequence[str]) -> list[str]:
    """Their arguments as ours: without the files, and with an option of several words repeated for each."""
    flags: list[str] = []
    option = ""
    taken = 0
    for word in argv:
        if word.startswith("--"):
            option, taken = word, 0
            flags += [] if option in ("--config-files", "--runner-config") else [option]
        elif option not in ("--config-files", "--runner-config"):
            flags += [word] if not taken else [option, word]
            taken += 1
    return flags


def without_ours(row: Row) -> Row:
    """A row without the fields that only we have."""
    return {key: value for key, value in row.items() if key not in EXTRA}


def recorded(file: Path) -> Any:
    """A recorded JSON value."""
    return json.loads(gzip.decompress(file.read_bytes()))
