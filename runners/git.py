"""The git command line, shielded from the caller's environment and from settings that would change a result."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.errors import MatrixError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GitError", "attempt", "is_root", "paths", "run", "text"]

# Inside a hook these name the repository of the hook, whatever folder git is started in.
_REDIRECTING: Final = frozenset({
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
})  # fmt: skip
_SETTINGS: Final = (
    "apply.ignoreWhitespace=no",
    "core.autocrlf=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "core.safecrlf=false",
)


class GitError(MatrixError):
    """Git ended with an error that nothing here explains better."""

    def __init__(self, arguments: tuple[str, ...], status: int, stderr: str) -> None:
        self.status = status
        self.stderr = stderr
        super().__init__(f"git {' '.join(arguments)} ended with status {status}: {stderr or 'no message'}")


def attempt(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, data: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder and give what came out, whatever its status.

    Raises:
        GitError: git itself, or the folder, is not there.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in _REDIRECTING}
    environment = inherited | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"} | dict(env or {})
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    try:
        return subprocess.run(
            ["git", *settings, *arguments], cwd=cwd, env=environment, input=data, capture_output=True, check=False
        )
    except OSError as error:
        raise GitError(arguments, 127, f"{error.filename or 'git'}: {error.strerror}") from None


def run(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, data: bytes | None = None) -> bytes:
    """Run git in a folder and give its output.

    Raises:
        GitError: it ended with another status than 0.
    """
    done = attempt(*arguments, cwd=cwd, env=env, data=data)
    if done.returncode:
        raise GitError(arguments, done.returncode, message(done))
    return done.stdout


def text(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """The output of git without its last line end."""
    return run(*arguments, cwd=cwd, env=env).decode("utf-8", "surrogateescape").rstrip("\n")


def paths(output: bytes) -> list[str]:
    """The names in output that was asked for with ``-z``."""
    return [name for name in output.decode("utf-8", "surrogateescape").split("\0") if name]


def message(done: subprocess.CompletedProcess[bytes]) -> str:
    """What git said on stderr, on one line."""
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    return "; ".join(line.removeprefix("error: ").removeprefix("fatal: ").strip() for line in lines if line.strip())


def is_root(folder: Path) -> bool:
    """Whether a folder is the top of a work tree of its own, not merely inside one.

    ``git apply`` below the top of a work tree passes over what lies elsewhere, and says nothing.
    """
    if not (folder / ".git").exists():
        return False
    done = attempt("rev-parse", "--show-toplevel", cwd=folder)
    top = done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")
    return done.returncode == 0 and bool(top) and Path(top).resolve() == folder.resolve()
