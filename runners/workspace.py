"""The folder of one job: a clone of srt-slurm at the pin with our patches, its cluster file and its recipe.

What is equal by content is made once and shared: the patched tree (by pin and patches) and the packages of srtctl (by
what it asks for). Each job then has a clone, folders and files of its own, so launches beside each other never meet.
The submodule is read and never changed.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from matrix.errors import MatrixError, RefusedError
from matrix.findings import Finding, Span
from runners import git
from runners.patches import Applied, patched_checkout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runners.series import Series

__all__ = [
    "Checkout",
    "JobFolder",
    "checkout_of",
    "clear_temporary",
    "clone",
    "lacking",
    "locked",
    "make_job_folder",
    "patched_tree",
    "sha256_of",
    "write_atomic",
]

_PLACEHOLDER: Final = """#!/bin/sh
echo "{name} is not installed on this cluster: see tools: in the cluster profile" >&2
exit 127
"""
_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f]{8}")
_TOOLS: Final = {
    "nats-server": "configs/nats-server",
    "etcd": "configs/etcd",
    "tachometer-scraper": "bin/tachometer-scraper",
}
"""What srtctl wants to see in its checkout before it submits, whether the recipe needs it or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFolder:
    """The folder of one launch. ``clone`` holds srtctl, ``scratch`` what the client writes."""

    root: Path

    @property
    def clone(self) -> Path:
        """The patched srt-slurm; the batch script runs from here."""
        return self.root / "srt-slurm"

    @property
    def recipe(self) -> Path:
        """The one resolved recipe."""
        return self.root / "recipe.yaml"

    @property
    def cluster_file(self) -> Path:
        """In the clone, where srtctl looks for it on the login node and in the job."""
        return self.clone / "srtslurm.yaml"

    @property
    def scratch(self) -> Path:
        """Seen by the client as LOGS of its workspace."""
        return self.root / "client"

    def remove(self) -> None:
        """Take it away. A file system that is slow to let go is given a second try."""
        shutil.rmtree(self.root, ignore_errors=True)
        if self.root.exists():
            shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The workspace that containers see, as a receipt records it. ``commit`` is None where it is no checkout."""

    path: Path
    commit: str | None
    modified: tuple[str, ...] = ()


def make_job_folder(jobs: Path, tag: str) -> JobFolder:
    """An empty folder for one launch.

    Raises:
        RefusedError: it cannot be made.
    """
    folder = JobFolder(root=jobs / tag)
    try:
        folder.scratch.mkdir(parents=True)
    except OSError as error:
        message = f"the job's folder cannot be made: {error.strerror}."
        fix = "see the profile's jobs: a folder that you may write to, on a disk with room"
        raise RefusedError(
            [Finding(rule="launch-folder", message=message, fix=fix, span=Span(str(folder.root)))]
        ) from None
    return folder


def patched_tree(series: Series, source: Path, commit: str, cache: Path) -> tuple[Path, Applied]:
    """The patched tree of this pin and these patches, made when it is not there yet, and what it is.

    Git has every file of it as an object, so clones of it cost no patching.
    """
    key = sha256(json.dumps([commit, series.record]).encode()).hexdigest()[:24]
    tree, facts = cache / "trees" / key, cache / "trees" / f"{key}.json"
    with locked(cache / "trees" / f"{key}.lock"):
        if facts.is_file() and tree.is_dir():
            record = json.loads(facts.read_text(encoding="utf-8"))
            # What a clone is made of is named by its hash, so a cache that was changed is found out by git.
            if git.attempt("cat-file", "-e", f"{record['tree']}^{{tree}}", cwd=tree).returncode == 0:
                return tree, Applied(base=commit, patches=series.record, tree=record["tree"])
        shutil.rmtree(tree, ignore_errors=True)
        applied = patched_checkout(series, source, commit, tree)
        git.run("add", "--all", cwd=tree)
        stored = git.text("write-tree", cwd=tree)
        if stored != applied.tree:
            msg = f"{tree} holds the tree {stored}, and the patches make {applied.tree}. Delete the folder."
            raise MatrixError(msg)
        write_atomic(facts, json.dumps({"tree": applied.tree, "base": commit}))
    return tree, applied


def clone(tree: Path, applied: Applied, target: Path) -> None:
    """A clone of a patched tree for one job: HEAD is the pin, the patches lie uncommitted on it."""
    git.run("clone", "--quiet", "--shared", "--no-checkout", str(tree), str(target), cwd=tree)
    git.run("update-ref", "--no-deref", "HEAD", applied.base, cwd=target)
    git.run("read-tree", "-u", "--reset", applied.tree, cwd=target)
    git.run("read-tree", applied.base, cwd=target)


def add_tools(target: Path, tools: dict[str, Path]) -> None:
    """Put the programs into a clone that srtctl wants there; for one that the cluster lacks, a file that says so."""
    for name, place in _TOOLS.items():
        path = target / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in tools and tools[name].is_file():
            path.unlink(missing_ok=True)
            path.symlink_to(tools[name])
        elif not path.exists():
            path.write_text(_PLACEHOLDER.format(name=name), encoding="utf-8")
            path.chmod(0o755)


def checkout_of(path: Path) -> Checkout:
    """What can be said of the workspace: its commit and the tracked files that differ from it."""
    if not path.is_dir() or not git.is_root(path):
        return Checkout(path=path, commit=None)
    head = git.attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}", cwd=path).stdout.decode().strip()
    status = git.attempt("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", cwd=path)
    return Checkout(
        path=path, commit=head or None, modified=tuple(entry[3:] for entry in git.paths(status.stdout) if entry[3:])
    )


def lacking(folder: Path, least: int) -> str:
    """Why files cannot be made in a folder, which may still have to be made itself; nothing when they can.

    Args:
        folder: The folder.
        least: Bytes that have to be free there.
    """
    nearest = next((each for each in (folder, *folder.parents) if each.is_symlink() or each.exists()), folder)
    if not nearest.exists():
        return f"{nearest} is a link to what is not there" if nearest.is_symlink() else "cannot be written"
    if not nearest.is_dir():
        return f"{nearest} is no folder"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return "cannot be written"
    free = shutil.disk_usage(nearest).free
    return f"has {free / 2**20:,.0f} MiB free" if free < least else ""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, waiting for whoever holds it. The end of a process lets go, however it comes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def beside(path: Path) -> Path:
    """A name for a file that is to take the place of another one; unique also among hosts that share the folder."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def clear_temporary(folder: Path) -> None:
    """Remove what `beside` has named and a process that was killed has left; nobody else may be at work there."""
    for path in folder.glob(".*"):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that a reader sees all of it or what was there before."""
    temporary = beside(path)
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """The sha256 of a file of any size. Raises OSError."""
    digest = sha256()
    with path.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def write_yaml(path: Path, document: dict[str, Any]) -> str:
    """Write a mapping as YAML, keys in their order; gives the text."""
    from yaml import safe_dump

    text: str = safe_dump(document, sort_keys=False, allow_unicode=True, width=2**20)
    write_atomic(path, text)
    return text
