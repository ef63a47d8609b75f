"""Logs to test with, and scratch repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.changelog.context import Context

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT: Final = Path(__file__).resolve().parents[2]
LINK: Final = "https://github.com/SemiAnalysisAI/InferenceX/pull/"
PR: Final = Context(number=77)


def entry(key: str, text: str = "Why.", link: int | str = 77, extra: str = "") -> str:
    """One entry, its last line end left out."""
    link = f"{LINK}{link}" if isinstance(link, int) else link
    return f'- config-keys:\n    - {key}\n{extra}  description:\n    - "{text}"\n  pr-link: {link}'


def log(*entries: str) -> bytes:
    """A well-formed log."""
    return ("\n\n".join(entries) + "\n").encode()


HISTORY: Final = (entry("omega", "First.", 11), entry("omega", "Second.", 12), entry("sigma", "Third.", 13))
BASE: Final = log(*HISTORY)
NEW: Final = entry("alpha", "Bump image.")
"""An entry of pull request 77."""


class Repository:
    """A scratch repository, cut off from the configuration of the machine."""

    def __init__(self, folder: Path, *init: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *init)

    def run(self, *command: str, status: int | None = 0) -> str:
        """Run a program here; its output."""
        result = subprocess.run(
            command, cwd=self.folder, env=environment(), capture_output=True, text=True, check=False
        )
        assert status is None or result.returncode == status, (command, result.returncode, result.stdout, result.stderr)
        return result.stdout + result.stderr

    def git(self, *command: str, status: int | None = 0) -> str:
        return self.run("git", *command, status=status)

    def write(self, data: bytes, name: str = "perf-changelog.yaml") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def commit(self, data: bytes | None = None, name: str = "perf-changelog.yaml", message: str = "change") -> str:
        """Commit a file as it is given, and whatever else changed; the commit's id."""
        if data is not None:
            self.write(data, name)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD").strip()


def environment() -> dict[str, str]:
    """An environment in which git knows an author and nothing of the machine's configuration."""
    who = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Test")
    mail = dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "test@example.invalid")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    nowhere = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**clean, **who, **mail, **nowhere, "PYTHONPATH": path, "GIT_EDITOR": "true"}


def spots(findings: Iterable[object]) -> list[str]:
    """Each finding as ``line: rule``."""
    from matrix.findings import Finding

    told = [finding for finding in findings if isinstance(finding, Finding)]
    return [
        f"{finding.span.line if finding.span else 0}: {finding.rule.removeprefix('changelog-')}" for finding in told
    ]
