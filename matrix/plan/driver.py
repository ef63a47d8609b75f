"""git's merge driver for the log: its three files in, one out; and what tells git to use it.

git knows two sides, not which of them the default branch has. The driver looks the default branches up, so that a merge
into a branch and a rebase of it give the same bytes.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.changelog.merge import base_side, merge
from matrix.changelog.text import MAX_BYTES
from matrix.config.source import read_bytes
from matrix.errors import RefusedError
from matrix.findings import Finding
from matrix.plan.history import History

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NAME", "append_both", "install", "merge_lines"]

NAME: Final = "perf-changelog"
"""What ``.gitattributes`` and git's configuration call the driver."""


def append_both(folder: str, path: str, ancestor: str, ours: str, theirs: str) -> bytes | None:
    """The merged log; None when a side did anything but append, which is then for git to merge."""
    base, left, right = (read_bytes(file, limit=MAX_BYTES, what="changelog") for file in (ancestor, ours, theirs))
    return merge(base, left, right, base_side(left, right, _published(folder, path)))


def _published(folder: str, path: str) -> Iterator[bytes]:
    try:
        with History(folder) as history:
            for branch in history.default_branches():
                if (data := history.read(branch, path).data) is not None:
                    yield data
    except RefusedError:
        return  # Three files outside any repository, or a repository that cannot be asked: ours comes first.


def merge_lines(ancestor: str, ours: str, theirs: str, *, marker_size: int) -> int:
    """What git would have done without the driver, into ``ours``; 1 when that leaves conflicts."""
    labels = [word for label in ("ours", "base", "theirs") for word in ("-L", label)]
    files = [ours, ancestor, theirs]
    command = ["git", "merge-file", f"--marker-size={marker_size}", *labels, *files]
    return 1 if subprocess.run(command, check=False).returncode else 0


def install(folder: str, path: str) -> Iterator[str]:
    """Configure the clone that ``folder`` is in, and its .gitattributes; yields what was done."""
    import sys

    program = f"{shlex.quote(sys.executable)} -m matrix changelog merge-driver"
    lines = "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B"
    # A clone can outlive the environment this was installed from. Without the program git merges as it always did;
    # a driver that just fails would leave our side in place, as if theirs had nothing.
    run = f"{program} %O %A %B --path %P --marker-size %L"
    command = f"if {program} --help >/dev/null 2>&1; then {run}; else {lines}; fi"
    for key, value in (("name", "append both sides of the performance changelog"), ("driver", command)):
        _git(folder, "config", f"merge.{NAME}.{key}", value)
    yield f"git config merge.{NAME}.driver: {run}"
    top = Path(_git(folder, "rev-parse", "--show-toplevel").strip())
    if _git(folder, "check-attr", "merge", "--", path).rstrip().endswith(f"merge: {NAME}"):
        yield f".gitattributes: {path} merges with {NAME} already"
        return
    attributes = top / ".gitattributes"
    text = attributes.read_text(encoding="utf-8") if attributes.exists() else ""
    line = f"{path} merge={NAME}"
    separator = "" if not text or text.endswith("\n") else "\n"
    temporary = attributes.with_name(".gitattributes.new")
    temporary.write_text(f"{text}{separator}{line}\n", encoding="utf-8", newline="\n")
    temporary.replace(attributes)
    yield f".gitattributes: {line} (commit it)"


def _git(folder: str, *command: str) -> str:
    result = subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        message = f"git {command[0]} failed: {result.stderr.strip().splitlines()[-1:] or ['without a word']}"
        raise RefusedError(
            [Finding(rule="git-failed", message=message, fix="run it inside a work tree of a repository")]
        )
    return result.stdout
