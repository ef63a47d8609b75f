"""Make a patch again from an edited work tree, and carry the patches behind it along.

The tree has the pin as HEAD, and in its files the series up to one patch plus the edits. The result has no context
lines, whole blob ids and a stable order of files, so the same edit gives the same bytes on every machine.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from matrix.errors import RefusedError, UsageError
from matrix.findings import Finding, Span, did_you_mean
from runners import git
from runners.patches import Judgement, Scratch, judge, scratch
from runners.patchfile import Patch, parse
from runners.series import SERIES_FILE, Blobs, Entry, Series, number_of, read_series

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Refreshed", "refresh"]

_DIFF: Final = (
    "diff-tree", "--patch", "--unified=0", "--inter-hunk-context=0", "--full-index", "--no-renames", "--no-color",
    "--no-ext-diff", "--no-textconv", "--no-indent-heuristic", "--diff-algorithm=myers", "--src-prefix=a/",
    "--dst-prefix=b/", "-O/dev/null",
)  # fmt: skip
# Faults of the folder that making a patch again mends; any other one stays in the way.
_MENDED: Final = frozenset(
    {"series-sha256", "series-files", "series-blob", "series-unlisted", "series-pin", "patch-table"}
)
_NO_BLOB: Final = "0" * 40
_HEADER: Final = """\
# The vendored patches in the order of application. `python -m runners patches refresh` writes this file.
# pin is the commit they are made for, the one that the submodule has to be at.
# pre and post are the blob ids of a file before and after the patch, on top of the patches above it; null: no file.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """Which files were written, and how the series stands on the base now."""

    written: tuple[str, ...]
    judgements: tuple[Judgement, ...]


@dataclass(frozen=True, slots=True)
class _Change:
    """What a patch does to one file; no blob means no file."""

    mode: str
    pre: str | None
    post: str | None


def refresh(folder: Path, tree: Path, name: str | None = None, *, upstream: str = "", why: str = "") -> Refreshed:
    """Write one patch of a folder again, those behind it that it moves, and ``series.yaml``.

    Args:
        folder: The folder of patches.
        tree: A clone at the pin, with the series up to the patch applied, and edited.
        name: File name or number of the patch; the last one by default. A new name, with the address of its pull
            request and its reason, adds a patch.
        upstream: Address of the pull request of a new patch.
        why: Reason for a new patch.

    Raises:
        RefusedError: the tree holds nothing to make the patch of, or more than belongs to it.
        UsageError: there is no such patch.
    """
    series, findings = read_series(folder)
    if series is None or any(finding.rule not in _MENDED for finding in findings):
        raise RefusedError(findings)
    if not tree.is_dir() or not git.is_root(tree):
        _refuse("patch-target", tree, "this is not the root of a git work tree.", "name a clone at the pin")
    entries, at = _with_chosen(series, name, upstream, why)
    base = git.text("rev-parse", "HEAD", cwd=tree)

    with scratch(tree, base) as index:
        for entry in entries[:at]:
            if (refusal := index.apply(entry)) is not None:
                message = f"{entry.name} comes before {entries[at].name} and does not apply: {refusal}."
                _refuse("patch-conflict", entry.patch.file, message, f"refresh {entry.name} first")
        before = index.tree()
        later = _later_changes(index, entries[at:], before)
        git.run("add", "--all", cwd=tree, env=index.env)
        after = index.tree()
        _refuse_swallowed(index, tree, entries[at], later)
        entries[at] = _made(index, entries[at], before, after)
        for position, (_, changes) in enumerate(later, start=at + 1):
            before = after
            if not _carry(index, changes):
                break
            after = index.tree()
            entries[position] = _made(index, entries[position], before, after)

    written = _write(folder, base, entries)
    done, findings = read_series(folder)
    if done is None:
        raise RefusedError(findings)
    return Refreshed(written=written, judgements=judge(done, tree, base))


def _refuse(rule: str, place: Path, message: str, fix: str) -> NoReturn:
    raise RefusedError([Finding(rule=rule, span=Span(str(place)), message=message, fix=fix)])


def _with_chosen(series: Series, name: str | None, upstream: str, why: str) -> tuple[list[Entry], int]:
    """The entries, with a new one where the name asks for it, and the position of the one to make."""
    entries = list(series.entries)
    if name is None and entries:
        return entries, len(entries) - 1
    for position, entry in enumerate(entries):
        if name in (entry.name, str(entry.number)):
            return entries, position
    number = number_of(name or "")
    if name is None or number is None or not (upstream and why):
        known = did_you_mean(name or "", [entry.name for entry in entries])
        msg = (
            f"no patch {name or 'at all'}; {known}. A new one needs a name like 123-words.patch, --upstream and --why."
        )
        raise UsageError(msg)
    if any(entry.number == number for entry in entries):
        msg = f"number {number} is taken; {name} needs another one."
        raise UsageError(msg)
    empty = Patch(file=series.folder / name, data=b"", preamble=b"", changes=())
    new = Entry(number=number, patch=empty, upstream=upstream, why=why, recorded={})
    entries = sorted((*entries, new), key=lambda entry: entry.number)
    return entries, entries.index(new)


def _changes(index: Scratch, before: str, after: str) -> dict[str, _Change]:
    """Path -> change between two trees."""
    fields = git.paths(
        git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after, cwd=index.repository, env=index.env)
    )
    changes = {}
    for facts, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, pre, post, _ = facts.removeprefix(":").split(" ")
        mode = old_mode if set(post) == {"0"} else new_mode
        changes[path] = _Change(mode, *(None if set(blob) == {"0"} else blob for blob in (pre, post)))
    return changes


def _later_changes(index: Scratch, entries: list[Entry], before: str) -> list[tuple[Entry, dict[str, _Change]]]:
    """What the patches behind the first of ``entries`` did until now, as far as they apply to the base."""
    later = []
    for position, entry in enumerate(entries):
        if entry.patch.changes and index.apply(entry) is not None:
            break
        after = index.tree()
        if position:
            later.append((entry, _changes(index, before, after)))
        before = after
    return later


def _refuse_swallowed(index: Scratch, tree: Path, chosen: Entry, later: list[tuple[Entry, dict[str, _Change]]]) -> None:
    """Refuse a tree that holds later patches too: they would all end up in the chosen one."""
    for entry, changes in later:
        found = index.blobs(tuple(changes))
        if any(change.post and found.get(path) == change.post for path, change in changes.items()):
            message = f"this tree holds {entry.name} as well. {chosen.name} would swallow it."
            fix = f"make a tree of its own: python -m runners patches apply DIR --up-to {chosen.number}, and edit there"
            _refuse("patch-swallow", tree, message, fix)


def _made(index: Scratch, entry: Entry, before: str, after: str) -> Entry:
    """The patch that leads from one tree to another, with the preamble of the old one."""
    diff = git.run(*_DIFF, before, after, cwd=index.repository, env=index.env)
    file = entry.patch.file
    if not diff:
        message = f"nothing is left of {entry.name}: the tree is as without it."
        _refuse("patch-empty", file, message, "edit the tree, or delete the patch with its row and its entry")
    patch, findings = parse(file, entry.patch.preamble + diff)
    if patch is None:
        raise RefusedError(findings)
    recorded = {path: Blobs(change.pre, change.post) for path, change in _changes(index, before, after).items()}
    return replace(entry, patch=patch, recorded=recorded)


def _carry(index: Scratch, changes: dict[str, _Change]) -> bool:
    """Make the changes of a later patch again in the index; False when they touch the same lines as the edit."""
    found = index.blobs(tuple(changes))
    lines = []
    for path, change in changes.items():
        there = found.get(path)
        post = change.post
        if there != change.pre:
            if None in (there, change.pre, post):
                return False
            post = _merged(index, str(there), str(change.pre), str(post))
            if post is None:
                return False
        lines.append(f"{change.mode if post else 0} {post or _NO_BLOB}\t{path}\0")
    data = "".join(lines).encode("utf-8", "surrogateescape")
    git.run("update-index", "-z", "--index-info", cwd=index.repository, env=index.env, data=data)
    return True


def _merged(index: Scratch, ours: str, base: str, theirs: str) -> str | None:
    """Blob with the change from ``base`` to ``theirs`` made in ``ours``, if the two do not meet."""
    with tempfile.TemporaryDirectory(prefix="patches-") as folder:
        files: list[str] = []
        for blob in (ours, base, theirs):
            file = Path(folder) / str(len(files))
            file.write_bytes(git.run("cat-file", "blob", blob, cwd=index.repository, env=index.env))
            files.append(str(file))
        done = git.attempt("merge-file", "--stdout", "--quiet", *files, cwd=index.repository)
    if done.returncode:
        return None
    blob_id = git.run("hash-object", "-w", "--stdin", cwd=index.repository, env=index.env, data=done.stdout)
    return blob_id.decode().strip()


def _write(folder: Path, base: str, entries: list[Entry]) -> tuple[str, ...]:
    """Write what differs, the record last: a break in between is seen by the next check."""
    texts = {entry.name: entry.patch.data for entry in entries}
    texts[SERIES_FILE] = _series_text(folder / SERIES_FILE, base, entries).encode()
    written = []
    for name, data in texts.items():
        file = folder / name
        if file.exists() and file.read_bytes() == data:
            continue
        descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        written.append(name)
    return tuple(written)


def _series_text(file: Path, base: str, entries: Iterable[Entry]) -> str:
    """``series.yaml``; every string is quoted, since a blob id may look like a number."""
    old = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    first = next((number for number, line in enumerate(old) if not line.startswith("#")), 0)
    lines = ["".join(old[:first]) or _HEADER, f"pin: {_quoted(base)}\n", "patches:\n"]
    for entry in entries:
        fields = {"file": entry.name, "sha256": entry.patch.sha256, "upstream": entry.upstream, "why": entry.why}
        lines.append(f"  - number: {entry.number}\n")
        lines += [f"    {name}: {_quoted(value)}\n" for name, value in fields.items()]
        lines.append("    files:\n")
        for path, blobs in sorted((entry.recorded or {}).items()):
            lines.append(f"      - path: {_quoted(path)}\n")
            lines += [f"        {side}: {_quoted(blob)}\n" for side, blob in (("pre", blobs.pre), ("post", blobs.post))]
    return "".join(lines)


def _quoted(value: str | None) -> str:
    return json.dumps(value, ensure_ascii=False)
