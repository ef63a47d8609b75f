"""The two revisions of the log that a check compares: two commits, a commit and the working tree, or two files."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.changelog.text import MAX_BYTES
from matrix.config.source import read_bytes

if TYPE_CHECKING:
    from matrix.errors import RefusedError
    from matrix.findings import Finding
    from matrix.plan.history import History, Revision, Version

__all__ = ["USUAL_PATH", "Revisions", "of_commits", "of_files", "of_worktree"]

USUAL_PATH: Final = Path("perf-changelog.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
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
        if not self.behind:
            return None
        from matrix.findings import Finding, Severity

        message = f"{self.head_revision} does not contain {self.base_revision}. What the base gained looks deleted."
        base = self.base_revision.name if self.base_revision else ""
        fix = f"git rebase {base}, or git merge {base}"
        return Finding(rule="git-behind", message=message, fix=fix, severity=Severity.WARNING)


def of_files(base: Path, head: Path) -> Revisions:
    """Two files, as they lie on the disk."""
    before, after = (read_bytes(path, limit=MAX_BYTES, what="changelog") for path in (base, head))
    return Revisions(base=before, head=after, base_name=str(base), head_name=str(head))


def of_commits(folder: Path, path: Path | None, base_ref: str | None, head_ref: str | None) -> Revisions:
    """Two commits; without a base the one where the head left the default branch, without a head ``HEAD``.

    Raises:
        RefusedError: not a repository, an unknown ref, no merge base, no log there.
    """
    from matrix.plan.history import History

    with History(folder) as history:
        head = history.revision(head_ref or "HEAD")
        base = history.revision(base_ref) if base_ref else history.merge_base(history.default_branch(), head)
        before, after = history.pair(base, head, _place(history, path))
        behind = bool(base_ref) and before.data != after.data and not history.holds(head, base)
    return _revisions(before, after, behind=behind)


def of_worktree(folder: Path, path: Path | None, base_ref: str | None, *, tip_for_conflicts: bool = False) -> Revisions:
    """A commit against the file as it lies in the working tree.

    ``tip_for_conflicts``: while the file holds conflict markers a merge is under way, and the base is the tip of the
    default branch instead of the merge base, because its entries come first.
    """
    from matrix.plan.history import History

    with History(folder) as history:
        place = file_of(folder, path, history)
        if place.is_symlink():
            message = "a symbolic link stands where the log is wanted."
            raise _refuse(message, "git-kind", "put the file itself there", place)
        head = read_bytes(place, limit=MAX_BYTES, what="changelog")
        if base_ref:
            base = history.revision(base_ref)
        else:
            base = history.default_branch()
            if not (tip_for_conflicts and b"<" * 7 in head):
                base = history.merge_base(base, history.revision("HEAD"))
        before = history.read(base, _place(history, path))
    return Revisions(
        base=before.data or b"", head=head, base_name=before.name, head_name=str(place), base_revision=base
    )


def file_of(folder: Path, path: Path | None, history: History) -> Path:
    """The log in the working tree, as people would write it from ``folder``."""
    if path is not None:
        return path
    return USUAL_PATH if _is_top(folder) else Path(history.top()) / USUAL_PATH


def _is_top(folder: Path) -> bool:
    return (folder / ".git").exists()


def _place(history: History, path: Path | None) -> str:
    """The path from the top of the repository, as git wants it; ``path`` is one from the folder."""
    if path is None:
        return USUAL_PATH.name
    if path.is_absolute():
        place = Path(normpath(path))
        top = Path(history.top())
        name = place.relative_to(top).as_posix() if place.is_relative_to(top) else ".."
    else:
        prefix = "" if _is_top(history.folder) else history.prefix()
        name = normpath(Path(prefix) / path)
    if name.split("/")[0] == "..":
        message = "this file is outside the repository."
        fix = "name a file of the repository, or compare two files with --base-file and --head-file"
        raise _refuse(message, "git-outside", fix, path)
    return name


def _refuse(message: str, rule: str, fix: str, path: Path) -> RefusedError:
    from matrix.errors import RefusedError
    from matrix.findings import Finding, Span

    return RefusedError([Finding(rule=rule, message=message, fix=fix, span=Span(str(path)))])


def _revisions(before: Version, after: Version, *, behind: bool) -> Revisions:
    return Revisions(
        base=before.data or b"",
        head=after.data or b"",
        base_name=before.name,
        head_name=after.path,
        base_revision=before.revision,
        head_revision=after.revision,
        behind=behind,
    )
