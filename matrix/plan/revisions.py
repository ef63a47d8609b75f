"""The two revisions of the log that a check compares: two commits, a commit and the working tree, or two files.

Paths are strings here: pathlib would cost every check 4 ms.
"""

# ruff: noqa: PTH110, PTH114, PTH117, PTH118

from __future__ import annotations

from os.path import exists, isabs, islink, join, normpath, relpath
from typing import TYPE_CHECKING, Final, NamedTuple

from matrix.changelog.text import MAX_BYTES
from matrix.config.source import read_bytes

if TYPE_CHECKING:
    from matrix.errors import RefusedError
    from matrix.findings import Finding
    from matrix.plan.history import History, Revision

__all__ = ["USUAL_NAME", "Revisions", "of_commits", "of_files", "of_worktree", "place_in"]

USUAL_NAME: Final = "perf-changelog.yaml"


class Revisions(NamedTuple):
    """The bytes of the log before and after a change, what refusals call them, and the commits they are from.

    ``behind``: the head lacks commits of the base, so what the base gained meanwhile looks deleted.
    """

    base: bytes
    head: bytes
    base_name: str
    head_name: str
    base_revision: Revision | None = None
    head_revision: Revision | None = None
    behind: bool = False

    def hint(self) -> Finding | None:
        """What explains faults that no author made."""
        if not self.behind or self.base_revision is None:
            return None
        from matrix.findings import Finding, Severity

        message = f"{self.head_revision} does not contain {self.base_revision}. What the base gained looks deleted."
        fix = f"git rebase {self.base_revision.name}, or git merge {self.base_revision.name}"
        return Finding(rule="git-behind", message=message, fix=fix, severity=Severity.WARNING)


def of_files(base: str, head: str) -> Revisions:
    """Two files, as they lie on the disk."""
    before, after = (read_bytes(path, limit=MAX_BYTES, what="changelog") for path in (base, head))
    return Revisions(before, after, base, head)


def of_commits(
    folder: str, path: str | None, base_ref: str | None, head_ref: str | None, given: History | None = None
) -> Revisions:
    """Two commits; without a base the one where the head left the default branch, without a head ``HEAD``.

    ``path`` is the log as seen from ``folder``; without it the usual name at the top of the repository. ``given`` is a
    reader of the repository that is open already.

    Raises:
        RefusedError: not a repository, an unknown ref, no merge base, no log there.
    """
    from matrix.plan.history import History

    with History.reader(folder, given) as history:
        head = history.revision(head_ref or "HEAD")
        base = history.revision(base_ref) if base_ref else history.merge_base(history.default_branch(), head)
        before, after = history.pair(base, head, place_in(history, path))
        behind = bool(base_ref) and before.data != after.data and not history.holds(head, base)
    return Revisions(before.data or b"", after.data or b"", before.name, after.path, base, head, behind)


def of_worktree(
    folder: str,
    path: str | None,
    base_ref: str | None,
    given: History | None = None,
    *,
    tip_for_conflicts: bool = False,
) -> Revisions:
    """A commit against the file as it lies in the working tree.

    ``tip_for_conflicts``: while the file holds conflict markers a merge is under way, and the base is the tip of the
    default branch instead of the merge base, because its entries come first.
    """
    from matrix.plan.history import History

    with History.reader(folder, given) as history:
        place = path or (USUAL_NAME if _is_top(folder) else join(history.top(), USUAL_NAME))
        there = join(folder, place)
        if islink(there):
            message = "a symbolic link stands where the log is wanted."
            raise _refuse(message, "git-kind", "put the file itself there", place)
        head = read_bytes(there, limit=MAX_BYTES, what="changelog")
        if base_ref:
            base = history.revision(base_ref)
        elif history.is_unborn():
            # The first commit of a repository, which a hook sees as any other.
            return Revisions(b"", head, "a repository without a commit", place)
        else:
            base = history.default_branch()
            if not (tip_for_conflicts and b"<" * 7 in head):
                base = history.merge_base(base, history.revision("HEAD"))
        before = history.read(base, place_in(history, path))
    return Revisions(before.data or b"", head, before.name, place, base)


def _is_top(folder: str) -> bool:
    return exists(join(folder, ".git"))


def place_in(history: History, path: str | None) -> str:
    """A path as git wants it, from the top of the repository; the usual log without one."""
    if path is None:
        return USUAL_NAME
    if isabs(path):
        name = relpath(path, history.top())
    else:
        name = normpath(join("" if _is_top(history.folder) else history.prefix(), path))
    name = name.replace("\\", "/")
    if name.split("/", 1)[0] == "..":
        # Nobody named it where the settings come from a folder above the repository.
        message = "this file is outside the git repository that the working directory is in."
        fix = (
            "name a file of that repository, give it a configuration of its own with matrix init, or compare two files"
            " with --base-file and --head-file"
        )
        raise _refuse(message, "git-outside", fix, path)
    return "" if name == "." else name


def _refuse(message: str, rule: str, fix: str, path: str) -> RefusedError:
    from matrix.errors import RefusedError
    from matrix.findings import Finding, Span

    return RefusedError([Finding(rule=rule, message=message, fix=fix, span=Span(path))])
