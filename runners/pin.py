"""The pin of srt-slurm: what the repository says it is, and whether the submodule holds just that.

The pin is the commit that the superproject's own tree records for the submodule. What the submodule happens to have
checked out is compared with it, never taken for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.errors import RefusedError
from matrix.findings import Finding, Severity, Span
from runners import git

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SUBMODULE", "Pin", "read_pin", "require"]

SUBMODULE: Final = "runners/srt-slurm/upstream"
_GITLINK: Final = "160000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The recorded commit of a submodule and the state in which the submodule really is."""

    repository: Path
    path: str
    commit: str
    """What the superproject's HEAD records."""
    head: str | None
    """What the submodule has checked out; None when it is not initialised."""
    modified: tuple[str, ...] = ()
    present: bool = True
    """Whether the submodule has the pinned commit at all; a shallow one may lack it."""

    @property
    def folder(self) -> Path:
        """The work tree of the submodule."""
        return self.repository / self.path

    @property
    def base(self) -> str:
        """The commit that patches go on: the pin, or with a drift that was allowed, what is really there."""
        return self.head if self.head is not None and self.drifted else self.commit

    @property
    def drifted(self) -> bool:
        """Whether the submodule stands at another commit than the pin."""
        return self.head is not None and self.head != self.commit

    def findings(self) -> Iterator[Finding]:
        """Everything that makes the submodule another tree than the pin, each with the command that mends it."""
        span = Span(str(self.folder))
        update = f"git submodule update --init {self.path}"
        if self.head is None:
            message = f"the submodule is not initialised. The pin {self.commit} is needed, and nothing is there."
            yield Finding(rule="pin-missing", span=span, message=message, fix=update)
            return
        if not self.present:
            message = f"the submodule is shallow and lacks the pin {self.commit}; it is at {self.head}."
            fix = f"git -C {self.path} fetch --depth 1 origin {self.commit} && git submodule update {self.path}"
            yield Finding(rule="pin-shallow", span=span, message=message, fix=fix)
        elif self.drifted:
            message = f"the submodule is at {self.head}, the pin is {self.commit}. What runs must be what is recorded."
            fix = f"git submodule update {self.path}, or commit the new pin"
            yield Finding(rule="pin-drift", span=span, message=message, fix=fix)
        if self.modified:
            shown = ", ".join(self.modified[:10]) + (
                f" and {len(self.modified) - 10} more" if self.modified[10:] else ""
            )
            message = f"the submodule at {self.head} (pin {self.commit}) has changes of its own: {shown}."
            fix = f"keep what is needed as a patch; git -C {self.path} stash --include-untracked takes the changes away"
            yield Finding(rule="pin-dirty", span=span, message=message, fix=fix)


def read_pin(repository: Path, path: str = SUBMODULE) -> Pin:
    """The pin of a submodule and its state.

    Raises:
        RefusedError: the folder is no repository of its own, or its HEAD records no such submodule.
    """
    if not git.is_root(repository):
        message = "this is not the root of a git work tree, so nothing records a pin."
        raise RefusedError(
            [Finding(rule="pin-repository", span=Span(str(repository)), message=message, fix="name a checkout")]
        )
    tree = git.attempt("ls-tree", "-z", "HEAD", "--", path, cwd=repository)
    mode, _, commit = tree.stdout.decode("utf-8", "surrogateescape").partition("\t")[0].partition(" commit ")
    if tree.returncode or mode != _GITLINK:
        message = f"HEAD records no submodule at {path}."
        fix = f"commit the submodule, or name where it is (the project has it at {SUBMODULE})"
        raise RefusedError([Finding(rule="pin-unrecorded", span=Span(str(repository)), message=message, fix=fix)])

    folder = repository / path
    # An empty folder would answer for the repository around it.
    if not folder.is_dir() or not git.is_root(folder):
        return Pin(repository=repository, path=path, commit=commit, head=None, present=False)
    head = git.attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}", cwd=folder).stdout.decode().strip()
    present = git.attempt("cat-file", "-e", f"{commit}^{{commit}}", cwd=folder).returncode == 0
    return Pin(
        repository=repository,
        path=path,
        commit=commit,
        head=head or None,
        modified=tuple(changed_files(folder)) if head else (),
        present=present,
    )


def require(pin: Pin, *, allow_drift: bool = False) -> list[Finding]:
    """What is tolerated of a pin's state, as warnings; the commit to use is then `Pin.base`.

    Raises:
        RefusedError: the submodule is not the pin. ``allow_drift`` lets another commit and changes pass, but not a
            submodule without any commit.
    """
    findings = list(pin.findings())
    tolerated = {"pin-drift", "pin-dirty", "pin-shallow"} if allow_drift else set()
    if any(finding.rule not in tolerated for finding in findings):
        raise RefusedError(findings)
    return [
        Finding(rule=each.rule, span=each.span, message=each.message, fix=each.fix, severity=Severity.WARNING)
        for each in findings
    ]


def changed_files(folder: Path) -> list[str]:
    """Files of a work tree that differ from HEAD, with new ones, without ignored ones."""
    entries = git.paths(git.run("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", cwd=folder))
    return sorted(entry[3:] for entry in entries)
