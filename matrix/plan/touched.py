"""The paths that a pull request touches: by the forge where its list is whole, else by git, else refused.

An empty answer means that nothing changed, so it is never given on doubt.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from matrix.errors import RefusedError
from matrix.findings import Finding
from matrix.forge import ForgeError

if TYPE_CHECKING:
    from matrix.forge import Forge

__all__ = ["touched_paths", "touched_paths_of_git"]


def touched_paths(forge: Forge, number: int, folder: str = ".") -> frozenset[str]:
    """Every path that a pull request touches, the old names of renamed files too.

    ``folder`` is a clone that git is asked in where the forge does not answer, or lists fewer files than it counts.

    Raises:
        RefusedError: neither knows; it carries what both said.
    """
    findings: list[Finding] = []
    try:
        pull = forge.pull(number)
    except ForgeError as error:
        message = "without it git cannot be asked either: nobody told which commits to compare."
        findings += (*error.findings, Finding(rule="touched-unknown", message=message, fix="try again later"))
        raise RefusedError(findings) from None
    try:
        listed = forge.changed_files(pull)
    except ForgeError as error:
        findings += error.findings
    else:
        if listed.complete:
            return listed.paths
        counted, told = f"{pull.changed_files:,}", f"{len(listed.paths):,}"
        message = f"pull request {number} touches {counted} files, and GitHub lists {told}."
        findings.append(Finding(rule="touched-incomplete", message=message, fix="see what git says below"))
    try:
        return touched_paths_of_git(pull.base_sha, pull.head_sha, folder)
    except RefusedError as error:
        raise RefusedError([*findings, *error.findings]) from None


def touched_paths_of_git(base: str, head: str, folder: str = ".") -> frozenset[str]:
    """What ``head`` changed since its history left that of ``base``; a renamed file counts under both names.

    Raises:
        RefusedError: git is not there, or this clone lacks one of the commits or where they part.
    """
    command = ["git", "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", f"{base}...{head}", "--"]
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    except FileNotFoundError:
        finding = Finding(rule="git-missing", message="git is not installed, or not on PATH.", fix="install git")
        raise RefusedError([finding]) from None
    if result.returncode:
        told = " ".join(result.stderr.decode("utf-8", "replace").split())[:300]
        message = f"git cannot compare {base[:12]} and {head[:12]} here: {told}."
        fix = f"git fetch --unshallow origin {base} {head} (in actions/checkout, fetch-depth: 0)"
        raise RefusedError([Finding(rule="touched-git", message=message, fix=fix)])
    names = result.stdout.decode("utf-8", "surrogateescape").split("\0")
    return frozenset(name for name in names if name)
