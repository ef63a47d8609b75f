"""A small repository that is right, to be broken one line at a time."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from matrix.cli.check import check
from matrix.cli.main import run

if TYPE_CHECKING:
    import pytest

SPACE: Final = Path(__file__).parent / "space"
FILES: Final = ("--config", "master.yaml", "--runners", "runners.yaml", "--recipes", "recipes")
GOLDEN: Final = ("--golden", "golden")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a run of `check` said."""

    status: int
    out: str
    err: str
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def findings(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.data["findings"]
        return found

    @property
    def rules(self) -> set[str]:
        return {finding["rule"] for finding in self.findings}

    def only(self, rule: str) -> dict[str, Any]:
        """The one finding of a rule."""
        found = [finding for finding in self.findings if finding["rule"] == rule]
        assert len(found) == 1, self.findings
        return found[0]


class Repository:
    """A copy of the small repository, as working directory."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys
        shutil.copytree(SPACE, folder, dirs_exist_ok=True)

    def edit(self, name: str, line: int, old: str, new: str) -> None:
        """Replace what is there once in one line; nothing that another line says can be meant."""
        path = self.folder / name
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        assert lines[line - 1].count(old) == 1, f"{name}:{line} is {lines[line - 1]!r}, not {old!r}"
        lines[line - 1] = lines[line - 1].replace(old, new)
        path.write_text("".join(lines), encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, *args: str, files: tuple[str, ...] = (*FILES, *GOLDEN)) -> Answer:
        """Run `check` as a terminal does."""
        self.capsys.readouterr()
        status = run(check, [*args, *files], prog="matrix check")
        out, err = self.capsys.readouterr()
        return Answer(status=status, out=out, err=err)

    def check(self, *args: str, files: tuple[str, ...] = (*FILES, *GOLDEN)) -> Answer:
        """The findings, for a program."""
        answer = self.run(*args, "--format", "json", files=files)
        return Answer(status=answer.status, out=answer.out, err=answer.err, data=json.loads(answer.out))
