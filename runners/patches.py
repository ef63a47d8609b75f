"""Verdicts on vendored patches, and their application: all of them, or a tree as if nothing had happened.

Every patch is judged on the tree that the ones before it leave, in an index and an object store of our own, so that
judging changes nothing anywhere. With recorded blob ids the verdict is theirs; without, git's, by context.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.errors import MatrixError, RefusedError
from matrix.findings import Finding, Span
from runners import git
from runners.pin import changed_files
from runners.series import Blobs, Entry, Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Applied", "Judgement", "Scratch", "Verdict", "apply", "checkout", "judge", "patched_checkout", "scratch"]

_APPLY: Final = ("apply", "--whitespace=nowarn")


class Verdict(StrEnum):
    """What becomes of a patch on a given commit."""

    APPLIES = "applies"
    ALREADY = "already in the pin"
    CONFLICTS = "conflicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on one patch; anything but `Verdict.APPLIES` comes with findings."""

    entry: Entry
    verdict: Verdict
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A patched tree, as a receipt records it."""

    base: str
    """The commit that the patches were applied to."""
    patches: tuple[tuple[str, str], ...]
    """(file, sha256), sorted."""
    tree: str
    """Id of the git tree that the patched files make up: equal ids are equal source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """An index and an object store beside those of a repository, which stays as it is."""

    repository: Path
    env: Mapping[str, str]

    def blobs(self, paths: tuple[str, ...]) -> dict[str, str]:
        """Path -> blob id, of the paths that the index has."""
        listed = git.paths(git.run("ls-files", "-s", "-z", "--", *_literal(paths), cwd=self.repository, env=self.env))
        return {path: facts.split(" ")[1] for facts, _, path in (entry.partition("\t") for entry in listed)}

    def apply(self, entry: Entry, *options: str) -> str | None:
        """Apply a patch to the index; what git says against it, or None."""
        zero = ("--unidiff-zero",) if entry.recorded is not None else ()
        done = git.attempt(
            *_APPLY, "--cached", *zero, *options, cwd=self.repository, env=self.env, data=entry.patch.data
        )
        return (git.message(done) or f"git apply ended with status {done.returncode}") if done.returncode else None

    def tree(self) -> str:
        """The tree that the index stands for."""
        return git.text("write-tree", cwd=self.repository, env=self.env)


@contextmanager
def scratch(repository: Path, commit: str) -> Iterator[Scratch]:
    """A `Scratch` that holds the tree of a commit."""
    objects = (repository / git.text("rev-parse", "--git-path", "objects", cwd=repository)).resolve()
    with tempfile.TemporaryDirectory(prefix="patches-") as folder:
        # A file, not GIT_ALTERNATE_OBJECT_DIRECTORIES: that is a list, and a path may hold its separator.
        alternates = Path(folder) / "objects" / "info" / "alternates"
        alternates.parent.mkdir(parents=True)
        alternates.write_text(f"{objects}\n", encoding="utf-8", errors="surrogateescape")
        env = {"GIT_INDEX_FILE": f"{folder}/index", "GIT_OBJECT_DIRECTORY": f"{folder}/objects"}
        git.run("read-tree", commit, cwd=repository, env=env)
        yield Scratch(repository=repository, env=env)


def judge(series: Series, repository: Path, commit: str) -> tuple[Judgement, ...]:
    """One verdict a patch, on the tree of a commit with the patches before it that apply."""
    with scratch(repository, commit) as index:
        return tuple(_judge(entry, index) for entry in series.entries)


def _judge(entry: Entry, index: Scratch) -> Judgement:
    recorded = entry.recorded
    verdict, findings = _by_blobs(entry, recorded, index) if recorded is not None else _by_context(entry, index)
    if verdict is Verdict.ALREADY:
        message = f"{entry.name} is in the pin already. Every file is as the patch would leave it."
        fix = f"delete {entry.name}, its row in the README and its entry in series.yaml"
        findings = [Finding(rule="patch-already", span=Span(str(entry.patch.file)), message=message, fix=fix)]
    elif verdict is Verdict.APPLIES:
        refusal = index.apply(entry)
        after = index.blobs(entry.patch.paths)
        wrong = [path for path in entry.patch.paths if recorded and after.get(path) != recorded[path].post]
        if refusal or wrong:
            verdict = Verdict.CONFLICTS
            message = f"{entry.name} does not make what is recorded of it: {refusal or ', '.join(wrong)}."
            findings = [_conflict(entry, message)]
    return Judgement(entry=entry, verdict=verdict, findings=tuple(findings))


def _by_blobs(entry: Entry, recorded: Mapping[str, Blobs], index: Scratch) -> tuple[Verdict, list[Finding]]:
    """Every file as before the patch: it applies. Every file as after it: it is there. Anything else conflicts."""
    found = index.blobs(entry.patch.paths)
    before = [path for path in entry.patch.paths if found.get(path) == recorded[path].pre]
    after = [path for path in entry.patch.paths if found.get(path) == recorded[path].post]
    if len(before) == len(entry.patch.paths):
        return Verdict.APPLIES, []
    if len(after) == len(entry.patch.paths):
        return Verdict.ALREADY, []
    part = (
        f" {len(after)} of {len(entry.patch.paths)} files are as after the patch: part of it is there." if after else ""
    )
    return Verdict.CONFLICTS, [
        _conflict(
            entry,
            f"{entry.name} was made for another {path}: expected blob {recorded[path].pre or 'none (a new file)'}, "
            f"found {found.get(path) or 'none (no such file)'}.{part}",
        )
        for path in entry.patch.paths
        if path not in before
    ]


def _by_context(entry: Entry, index: Scratch) -> tuple[Verdict, list[Finding]]:
    """Git's own judgement, which needs the unchanged lines around a change."""
    bare = [(change.path, line) for change in entry.patch.changes for line in change.bare_hunks]
    if bare:
        fix = "record its blob ids in series.yaml (python -m runners patches refresh), or make it with context lines"
        return Verdict.CONFLICTS, [
            Finding(
                rule="patch-context",
                span=Span(str(entry.patch.file), line),
                message=f"this hunk of {path} has no unchanged line, and no blob id says where it belongs.",
                fix=fix,
            )
            for path, line in bare
        ]
    refusal = index.apply(entry, "--check")
    if refusal is None:
        return Verdict.APPLIES, []
    if index.apply(entry, "--check", "--reverse") is None:
        return Verdict.ALREADY, []
    return Verdict.CONFLICTS, [_conflict(entry, f"{entry.name} does not fit: {refusal}.")]


def _conflict(entry: Entry, message: str) -> Finding:
    fix = (
        f"apply the series up to the patch before it to a checkout of the pin, make its change there, then "
        f"python -m runners patches refresh DIR --patch {entry.name}"
    )
    return Finding(rule="patch-conflict", span=Span(str(entry.patch.file)), message=message, fix=fix)


def checkout(source: Path, commit: str, target: Path) -> None:
    """A clone of a repository at one commit, which shares nothing with it.

    Raises:
        RefusedError: the target exists and is not an empty folder.
        GitError: git cannot make it; nothing is left then.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        message = "there is something here already. A patched tree starts from nothing."
        raise RefusedError(
            [Finding(rule="patch-target", span=Span(str(target)), message=message, fix="name a new folder")]
        )
    with _removed_on_failure(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        git.run("clone", "--quiet", "--no-hardlinks", "--no-checkout", str(source.resolve()), str(target), cwd=source)
        git.run("checkout", "--quiet", "--detach", commit, cwd=target)


def patched_checkout(series: Series, source: Path, commit: str, target: Path) -> Applied:
    """A new clone of a repository at one commit with the series applied; on any failure no folder is left.

    Raises:
        RefusedError: the target is taken, or a patch does not apply.
    """
    checkout(source, commit, target)
    with _removed_on_failure(target):
        return apply(series, target)


def apply(series: Series, target: Path) -> Applied:
    """Apply a series to the work tree at ``target``, which has to be a clean repository of its own.

    The changes stay uncommitted, so HEAD goes on telling the base. On any failure, also an interrupt, the tree is as
    it was.

    Raises:
        RefusedError: the target cannot be patched, or a patch does not apply.
    """
    _clean_root(target)
    base = git.text("rev-parse", "HEAD", cwd=target)
    with scratch(target, base) as index:
        judgements = [_judge(entry, index) for entry in series.entries]
        if any(judgement.verdict is not Verdict.APPLIES for judgement in judgements):
            raise RefusedError(finding for judgement in judgements for finding in judgement.findings)
        touched = tuple(dict.fromkeys(path for entry in series.entries for path in entry.patch.paths))
        wanted = index.blobs(touched)
        try:
            for entry in series.entries:
                zero = ("--unidiff-zero",) if entry.recorded is not None else ()
                git.run(*_APPLY, *zero, cwd=target, data=entry.patch.data)
            _prove(target, base, touched, wanted)
        except BaseException:
            _restore(target, base, touched)
            raise
        return Applied(base=base, patches=series.record, tree=index.tree())


def _clean_root(target: Path) -> None:
    """Refuse a folder where git would do something else than patch a clean tree."""
    finding: Finding | None = None
    span = Span(str(target))
    if not target.is_dir() or not git.is_root(target):
        message = "this is not the root of a git work tree. Inside another one, git passes over the files of a patch."
        finding = Finding(rule="patch-target", span=span, message=message, fix="name a clone at the pin")
    elif git.attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}", cwd=target).returncode:
        message = "this repository has no commit to patch."
        finding = Finding(rule="patch-target", span=span, message=message, fix="name a clone at the pin")
    elif modified := changed_files(target):
        message = f"this tree is changed already: {', '.join(modified[:10])}. Part of a patch may be in it."
        finding = Finding(rule="patch-dirty", span=span, message=message, fix="start from a new clone")
    if finding is not None:
        raise RefusedError([finding])


def _prove(target: Path, base: str, touched: tuple[str, ...], wanted: Mapping[str, str]) -> None:
    """Hold the work tree against the index that the patches were judged in: each file changed, and no other."""
    with scratch(target, base) as before:
        originals = before.blobs(touched)
    there = tuple(path for path in touched if (target / path).is_file())
    hashed = git.text("hash-object", "--", *there, cwd=target).splitlines() if there else []
    found = dict(zip(there, hashed, strict=True))
    wrong = [path for path in touched if found.get(path) != wanted.get(path)]
    same = [path for path in touched if wanted.get(path) == originals.get(path)]
    stray = [path for path in changed_files(target) if path not in touched]
    for what, files in (("not as judged", wrong), ("unchanged in the end", same), ("changed by no patch", stray)):
        if files:
            message = f"after the patches these files are {what}: {', '.join(files)}."
            fix = "report it with the patches; the tree was put back"
            raise RefusedError([Finding(rule="patch-proof", span=Span(str(target)), message=message, fix=fix)])


def _restore(target: Path, base: str, touched: tuple[str, ...]) -> None:
    """Put the touched files back as the base has them."""
    with scratch(target, base) as index:
        original = index.blobs(touched)
    for path in touched:
        if path not in original:
            (target / path).unlink(missing_ok=True)
            for folder in (target / path).parents:
                if folder == target or not folder.is_dir() or any(folder.iterdir()):
                    break
                folder.rmdir()
    if original:
        git.run("checkout", "--quiet", "--force", base, "--", *_literal(tuple(original)), cwd=target)
    left = changed_files(target)
    if left:
        msg = f"{target} could not be put back: {', '.join(left)} still differ from {base}. Delete the folder."
        raise MatrixError(msg)


@contextmanager
def _removed_on_failure(target: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _literal(paths: tuple[str, ...]) -> list[str]:
    """Paths that git reads as they stand: a name may begin with a colon."""
    return [f":(literal){path}" for path in paths]
