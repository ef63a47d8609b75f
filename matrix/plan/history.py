"""Files as they were at a commit: git objects, read by one ``git cat-file --batch`` process, never the working tree.

Refs, trees and blobs all come out of that process, so two revisions of any number of files cost one start of git. Other
git programs are asked for the merge base, and, when something is refused, for what would help.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, Self

from matrix.changelog.text import MAX_BYTES
from matrix.errors import RefusedError
from matrix.findings import Finding, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["DEFAULT_BRANCHES", "History", "Revision", "Version"]

DEFAULT_BRANCHES: Final = (
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
)
"""Where the branch that is merged into is looked for, the first that is there."""

_KINDS: Final = {0o040000: "a directory", 0o120000: "a symbolic link", 0o160000: "a submodule"}


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit, and the name by which people asked for it."""

    name: str
    commit: str

    @property
    def short(self) -> str:
        """The name, or the beginning of an id that was written out."""
        return self.name[:12] if self.name == self.commit else self.name

    def __str__(self) -> str:
        return self.short if self.commit.startswith(self.name) else f"{self.name} ({self.commit[:12]})"


@dataclass(frozen=True, slots=True)
class Version:
    """A file at a revision; ``data`` is None where it is absent."""

    revision: Revision
    path: str
    data: bytes | None

    @property
    def name(self) -> str:
        """The file as git names it: ``main:perf-changelog.yaml``."""
        return f"{self.revision.short}:{self.path}"


@dataclass(frozen=True, slots=True)
class _Object:
    kind: str
    data: bytes


class History:
    """A reader of one repository, bare or not. A context manager: it keeps a git process until it is closed."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        try:
            self._process = subprocess.Popen(
                ["git", "cat-file", "--batch"],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError:
            message = "git is not installed, or not on PATH."
            raise _refuse(message, "git-missing", "install git") from None
        self._trees: dict[str, dict[bytes, tuple[int, str]]] = {}

    @classmethod
    def reader(cls, folder: str, given: History | None) -> AbstractContextManager[History]:
        """The given reader, which stays open, or one of its own for as long as the context lasts."""
        return cls(folder) if given is None else nullcontext(given)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the git process."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                # What git did not read before it ended is still buffered; nobody waits for it.
                with suppress(BrokenPipeError):
                    stream.close()
        self._process.kill()
        self._process.wait()

    # -- revisions ----------------------------------------------------------------------------------------------------

    def find(self, ref: str) -> Revision | None:
        """The commit that a ref, a tag or an id names; None when there is none here."""
        commit = None if set(ref) & set("\0\n") or not ref else self._read(f"{ref}^{{commit}}")
        return None if commit is None else Revision(ref, commit[0])

    def revision(self, ref: str) -> Revision:
        """The commit that a ref names.

        Raises:
            RefusedError: it names none here; the fix says what to fetch.
        """
        if (found := self.find(ref)) is not None:
            return found
        from matrix.findings import did_you_mean

        remote, _, branch = ref.partition("/")
        if self._is_other(ref):
            fix = "name a commit, as HEAD~1, or a branch"
        elif branch and remote in self._lines("remote"):
            fix = f"git fetch {remote} {branch}"
        elif len(ref) >= 7 and set(ref) <= set("0123456789abcdef"):
            depth = " --depth=1" if self.is_shallow() else ""
            fix = f"git fetch{depth} origin {ref}"
        elif ("~" in ref or "^" in ref) and self.is_shallow():
            fix = self._fetch()
        else:
            fix = did_you_mean(ref, self._lines("for-each-ref", "--format=%(refname:short)"))
        shallow = " This clone is shallow." if self.is_shallow() else ""
        message = f"{ref!r} names no commit of this repository.{shallow}"
        raise _refuse(message, "git-ref", fix)

    def _is_other(self, ref: str) -> bool:
        """Whether something that is no commit has the name: a file of a commit, a tagged tree, a path that is here."""
        plain = bool(ref) and not set(ref) & set("\0\n")
        return plain and (os.path.exists(os.path.join(self.folder, ref)) or self._read(ref) is not None)  # noqa: PTH110, PTH118

    def default_branches(self) -> Iterator[Revision]:
        """The tips of every default branch that is here, the likeliest first."""
        for ref in DEFAULT_BRANCHES:
            if (found := self.find(ref)) is not None:
                yield Revision(ref.removeprefix("refs/remotes/").removeprefix("refs/heads/"), found.commit)

    def default_branch(self) -> Revision:
        """The tip of the branch that is merged into.

        Raises:
            RefusedError: none of `DEFAULT_BRANCHES` is here.
        """
        if (found := next(self.default_branches(), None)) is not None:
            return found
        message = "no default branch is known here: neither origin/HEAD nor main or master, of origin or local."
        fix = f"{self._fetch()} +refs/heads/main:refs/remotes/origin/main, or name the base with --base-ref"
        raise _refuse(message, "git-default-branch", fix)

    def is_unborn(self) -> bool:
        """Whether the repository has no commit at all."""
        return self.find("HEAD") is None and not self._lines("rev-list", "--max-count=1", "--all")

    def merge_base(self, one: Revision, other: Revision) -> Revision:
        """The commit where two histories part.

        Raises:
            RefusedError: there is none, or a shallow clone does not reach it; the fix says what to fetch.
        """
        if one.commit == other.commit:
            return one
        if bases := self._lines("merge-base", one.commit, other.commit):
            name = one.name if bases[0] == one.commit else bases[0][:12]
            return Revision(name, bases[0])
        if self.is_shallow():
            message = f"the merge base of {one} and {other} is not in this shallow clone."
            raise _refuse(message, "git-shallow", "git fetch --unshallow origin (in actions/checkout, fetch-depth: 0)")
        message = f"{one} and {other} have no common history."
        raise _refuse(message, "git-merge-base", "name the base with --base-ref")

    def holds(self, head: Revision, base: Revision) -> bool:
        """Whether ``base`` is an ancestor of ``head``."""
        return head.commit == base.commit or base.commit in self._lines("merge-base", base.commit, head.commit)

    def _fetch(self) -> str:
        return "git fetch --unshallow origin" if self.is_shallow() else "git fetch origin"

    def is_shallow(self) -> bool:
        """Whether history was cut when the repository was cloned."""
        return self._lines("rev-parse", "--is-shallow-repository") == ["true"]

    # -- files --------------------------------------------------------------------------------------------------------

    def read(self, revision: Revision, path: str, *, limit: int = MAX_BYTES) -> Version:
        """A file at a revision.

        Raises:
            RefusedError: something that is no regular file stands there, or it is larger than ``limit`` bytes.
        """
        mode, oid = 0o040000, f"{revision.commit}^{{tree}}"
        parts = path.encode().split(b"/")
        for depth, part in enumerate(parts):
            entry = self._tree(oid).get(part) if mode == 0o040000 else None
            if entry is None and mode in (0o040000, 0o100644, 0o100755):
                return Version(revision, path, None)
            if entry is None:
                self._refuse_kind(revision, b"/".join(parts[:depth]).decode(), mode)
            else:
                mode, oid = entry
        if mode in _KINDS:
            self._refuse_kind(revision, path, mode)
        found = self._read(oid, limit=limit, name=f"{revision.name}:{path}")
        if found is None:
            message = f"git has no object {oid} for this file. The clone is incomplete."
            raise _refuse(message, "git-object", "git fetch --refetch origin", f"{revision.name}:{path}")
        return Version(revision, path, found[1].data)

    def id_of(self, revision: Revision, path: str) -> str | None:
        """The id of what stands at a path: equal ids, equal content."""
        found = self._entry(revision, path)
        return found[1] if found else None

    def is_folder(self, revision: Revision, path: str) -> bool:
        """Whether a folder stands at a path."""
        found = self._entry(revision, path)
        return found is not None and found[0] == 0o040000

    def is_link(self, revision: Revision, path: str) -> bool:
        """Whether a symbolic link stands at a path."""
        found = self._entry(revision, path)
        return found is not None and found[0] == 0o120000

    def files(
        self, revision: Revision, path: str, *, without: frozenset[str] = frozenset(), limit: int = MAX_BYTES
    ) -> Iterator[tuple[str, int, bytes]]:
        """Path, mode and content of a file, or of every file and symbolic link below a folder; nothing if absent.

        ``without`` are paths below it that are passed over.

        Raises:
            RefusedError: one is larger than ``limit`` bytes.
        """
        found = self._entry(revision, path)
        if found is None:
            return
        waiting = [(path, *found)]
        while waiting:
            name, mode, oid = waiting.pop()
            if name in without:
                continue
            if mode == 0o040000:
                members = self._tree(oid).items()
                waiting += (
                    (f"{name}/{member.decode('utf-8', 'surrogateescape')}", *entry) for member, entry in members
                )
            elif mode != 0o160000 and (blob := self._read(oid, limit=limit, name=f"{revision.name}:{name}")):
                yield name, mode, blob[1].data

    def _entry(self, revision: Revision, path: str) -> tuple[int, str] | None:
        """Mode and id of what stands at a path."""
        mode, oid = 0o040000, f"{revision.commit}^{{tree}}"
        for part in path.encode().split(b"/"):
            entry = self._tree(oid).get(part) if mode == 0o040000 else None
            if entry is None:
                return None
            mode, oid = entry
        return mode, oid

    def pair(self, base: Revision, head: Revision, path: str, *, limit: int = MAX_BYTES) -> tuple[Version, Version]:
        """A file at two revisions, which it must not have been renamed between.

        Raises:
            RefusedError: it is at neither, is gone at the head, came by a rename, or `read` refuses it.
        """
        before, after = (self.read(revision, path, limit=limit) for revision in (base, head))
        if before.data is not None and after.data is not None:
            return before, after
        if before.data is None and after.data is None:
            names = {name.decode("utf-8", "replace") for name in self._tree(f"{head.commit}^{{tree}}")}
            from matrix.findings import did_you_mean

            message = f"the file is neither at {base} nor at {head}."
            raise _refuse(message, "changelog-missing", did_you_mean(path, names), path)
        for was, now in self._renames(base, head):
            if was == path:
                message = f"the log was renamed to {now}. Its history would begin anew."
                raise _refuse(message, "changelog-renamed", f"git mv {now} {path}", path)
            if now == path:
                message = f"the log is {was} under a new name, so all its entries would count as new."
                raise _refuse(
                    message, "changelog-renamed", f"git mv {path} {was}, or rename it on {base.name} first", path
                )
        if after.data is None:
            message = f"the log is at {base} and was deleted since. It only grows."
            raise _refuse(message, "changelog-deleted", f"git checkout {base.commit[:12]} -- {path}", path)
        return before, after

    def prefix(self) -> str:
        """The path from the top of the repository to the folder, with ``/`` at its end; empty at the top."""
        return "".join(self._lines("rev-parse", "--show-prefix"))

    def top(self) -> str:
        """The top folder of the working tree.

        Raises:
            RefusedError: the repository is bare.
        """
        if lines := self._lines("rev-parse", "--show-toplevel"):
            return lines[0]
        message = "this repository is bare: it has no working tree."
        raise _refuse(message, "git-bare", "name two commits with --base-ref and --head-ref")

    # -- git ----------------------------------------------------------------------------------------------------------

    def _renames(self, base: Revision, head: Revision) -> Iterable[tuple[str, str]]:
        command = ("diff-tree", "-r", "-M", "--diff-filter=R", "--name-status", "-z", base.commit, head.commit)
        fields = self._run(*command).decode("utf-8", "replace").split("\0")
        return zip(fields[1::3], fields[2::3], strict=False)

    def _refuse_kind(self, revision: Revision, path: str, mode: int) -> None:
        message = f"{_KINDS.get(mode, 'another kind of object')} stands where a regular file is wanted."
        raise _refuse(message, "git-kind", "commit the file itself under this name", f"{revision.name}:{path}")

    def _tree(self, spec: str) -> dict[bytes, tuple[int, str]]:
        """The members of a tree: name to mode and id."""
        if spec in self._trees:
            return self._trees[spec]
        found = self._read(spec, limit=None)
        members: dict[bytes, tuple[int, str]] = {}
        if found is not None:
            size, data, at = len(found[0]) // 2, found[1].data, 0
            while at < len(data):
                end = data.index(b"\0", at)
                mode, name = data[at:end].split(b" ", 1)
                members[name] = (int(mode, 8), data[end + 1 : end + 1 + size].hex())
                at = end + 1 + size
        self._trees[spec] = members
        return members

    def _read(self, spec: str, *, limit: int | None = MAX_BYTES, name: str = "") -> tuple[str, _Object] | None:
        """Ask the batch process for one object: its id and content; None when git does not know it."""
        process = self._process
        assert process.stdin is not None  # noqa: S101 - a pipe, as asked for
        assert process.stdout is not None  # noqa: S101
        try:
            process.stdin.write(spec.encode() + b"\n")
            process.stdin.flush()
            header = process.stdout.readline()
        except BrokenPipeError:
            header = b""
        if not header:
            raise self._ended(process.stderr)
        fields = header.rstrip(b"\n").rsplit(b" ", 2)
        if len(fields) != 3 or not fields[2].isdigit():
            return None
        oid, kind, size = fields[0].decode(), fields[1].decode(), int(fields[2])
        if limit is not None and size > limit:
            self._process.kill()
            message = f"this file has {size // 1_000_000} MB, and at most {limit // 1_000_000} are read."
            raise _refuse(message, "file-too-large", "check what was committed under this name", name or spec)
        data = process.stdout.read(size)
        process.stdout.read(1)
        return oid, _Object(kind, data)

    def _ended(self, errors: IO[bytes] | None) -> RefusedError:
        said = errors.read().decode("utf-8", "replace").strip() if errors is not None else ""
        if "not a git repository" in said:
            fix = "run it inside the repository, or name files instead of commits, as --base-file and --head-file do"
            return _refuse(f"{self.folder} is not in a git repository.", "git-repository", fix)
        last = said.splitlines()[0] if said else "it ended without a word"
        return _refuse(f"git cannot read this repository: {last}.", "git-failed", "see what `git status` says")

    def _run(self, *command: str) -> bytes:
        result = subprocess.run(["git", *command], cwd=self.folder, capture_output=True, check=False)
        return result.stdout if result.returncode == 0 else b""

    def _lines(self, *command: str) -> list[str]:
        return self._run(*command).decode("utf-8", "replace").split("\n")[:-1]


def _refuse(message: str, rule: str, fix: str, file: str = "") -> RefusedError:
    return RefusedError([Finding(rule=rule, message=message, fix=fix, span=Span(file) if file else None)])
