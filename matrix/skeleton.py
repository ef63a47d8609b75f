"""`Skeleton`: the files that make a repository ready. Nothing that is there is ever overwritten."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from matrix.errors import RefusedError
from matrix.findings import Finding, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["TEMPLATES", "Fate", "Piece", "below_top", "pieces", "remote_repository", "write"]

TEMPLATES: Final = Path(__file__).parent / "templates" / "init"
_REPOSITORY: Final = "@REPOSITORY@"
_RENAMED: Final = {"pyproject.toml.txt": "pyproject.toml", "pre-commit-config.yaml.txt": ".pre-commit-config.yaml"}
"""Names that tools would take for settings of our own while they stand in the package."""
_EXAMPLE: Final = (
    "configs/example-master.yaml", "configs/runners.yaml", "configs/recipes/", "configs/golden/", "configs/clusters/",
)  # fmt: skip
"""These name each other, so they come together or not at all; so does the log, which names the example's config."""
_LOG: Final = "perf-changelog.yaml"
_REMOTE: Final = re.compile(r"(?:^|[/@])github\.com[:/]+([\w.-]+/[\w.-]+?)(?:\.git)?/?$")


class Fate(StrEnum):
    """What becomes of a file."""

    WRITE = "write"
    KEEP = "keep"
    LEAVE = "leave"
    """It is not there, and is not written either: it goes with files that are there already."""


class Piece(NamedTuple):
    """One file of the skeleton: its path below the folder, its text, its fate and, where it is not written, why."""

    path: str
    text: str
    fate: Fate
    why: str = ""


def pieces(
    folder: Path, repository: str | None, more: Mapping[str, str] | None = None, masters: Sequence[str] = ()
) -> tuple[Piece, ...]:
    """What would be done in a folder. ``more``: further files, path to text; ``masters``: configs that are there, else
    those at their usual place.

    Raises:
        RefusedError: a file stands where a folder has to be, or a folder where a file has to be.
    """
    texts = dict(_texts(repository)) | dict(more or {})
    findings = [finding for path in texts for finding in _obstacles(folder, path)]
    if findings:
        raise RefusedError(dict.fromkeys(findings))
    example = [path for path in texts if path.startswith(_EXAMPLE)]
    present = masters or [path.relative_to(folder).as_posix() for path in sorted(folder.glob("configs/*-master.yaml"))]
    taken = [*present, *(path for path in example if os.path.lexists(folder / path))]
    return tuple(_piece(folder, path, text, taken) for path, text in texts.items())


def write(folder: Path, skeleton: tuple[Piece, ...]) -> None:
    """Write what is to be written, each file whole or not at all.

    Raises:
        RefusedError: a file cannot be written, or has come into being since it was looked at.
    """
    for piece in skeleton:
        if piece.fate is not Fate.WRITE:
            continue
        target = folder / piece.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _create(target, piece.text)
        except FileExistsError:
            message = "this file has just come into being, and is left as it is."
            raise _refuse(message, "init-exists", "run the command again", str(target)) from None
        except OSError as error:
            message = f"this file cannot be written: {(error.strerror or str(error)).lower()}."
            raise _refuse(message, "init-unwritable", "check the folder and its rights", str(target)) from None


def remote_repository(folder: Path) -> str | None:
    """``owner/name`` of the remote ``origin`` on GitHub; None where there is none."""
    found = _REMOTE.search(_git(folder, "config", "--get", "remote.origin.url"))
    return found[1] if found else None


def below_top(folder: Path) -> str:
    """The folder as seen from the top of the repository that it is in; empty at the top, and outside of any."""
    return _git(folder, "rev-parse", "--show-prefix").rstrip("/")


def _git(folder: Path, *command: str) -> str:
    """What git says; nothing where it does not answer."""
    try:
        result = subprocess.run(["git", "-C", str(folder), *command], capture_output=True, text=True, check=False)
    except (OSError, UnicodeDecodeError):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def _texts(repository: str | None) -> Iterator[tuple[str, str]]:
    for path in sorted(TEMPLATES.rglob("*")):
        if path.is_file():
            name = path.relative_to(TEMPLATES).as_posix()
            text = path.read_text(encoding="utf-8")
            if repository is None:
                text = re.sub(rf'^(.*)"{_REPOSITORY}"$', r'# \1"owner/name"', text, flags=re.MULTILINE)
            yield _RENAMED.get(name, name), text.replace(_REPOSITORY, repository or "")


def _obstacles(folder: Path, path: str) -> Iterator[Finding]:
    target = folder / path
    if target.is_dir():
        message = "a folder stands where a file has to be."
        yield Finding(rule="init-folder", message=message, fix="move it away", span=Span(str(target)))
    for parent in target.relative_to(folder).parents:
        place = folder / parent
        if os.path.lexists(place) and not place.is_dir():
            message = "this is no folder, and files have to go below it."
            yield Finding(rule="init-folder", message=message, fix="move it away", span=Span(str(place)))


def _piece(folder: Path, path: str, text: str, taken: list[str]) -> Piece:
    if os.path.lexists(folder / path):
        return Piece(path, text, Fate.KEEP, "it is there")
    if taken and (path == _LOG or path.startswith(_EXAMPLE)):
        return Piece(path, text, Fate.LEAVE, f"it goes with an example, and {taken[0]} is there")
    return Piece(path, text, Fate.WRITE)


def _create(target: Path, text: str) -> None:
    """A new file at once; one that came into being meanwhile stays as it is."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        temporary.chmod(0o644)
        target.hardlink_to(temporary)
    finally:
        temporary.unlink()


def _refuse(message: str, rule: str, fix: str, path: str) -> RefusedError:
    return RefusedError([Finding(rule=rule, message=message, fix=fix, span=Span(path))])
