"""How to run again what a receipt records, and what has changed since."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import join, quote
from typing import TYPE_CHECKING, Any

from matrix.errors import RefusedError
from runners.prepare import Wishes
from runners.resolved import resolve
from runners.workspace import JobFolder, checkout_of, sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runners.profile import Profile
    from runners.receipt import Receipt
    from runners.target import Target

__all__ = ["Change", "changes", "commands", "wishes_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that is another one today."""

    what: str
    then: Any
    today: Any

    def __str__(self) -> str:
        return f"{self.what}: {_short(self.then)} then, {_short(self.today)} today"


def wishes_of(receipt: Receipt) -> Wishes:
    """What the launch was asked for."""
    return Wishes(rdma=bool(receipt.inputs.get("rdma-userspace")))


def commands(name: str, profile: str, receipt: Receipt | None = None) -> list[str]:
    """The commands that run a point again, to be given in a checkout; with a receipt, from where it came from."""
    found = []
    if receipt is not None:
        commit = receipt.inputs.get("repository-commit")
        workspace = receipt.inputs.get("workspace-commit")
        if commit:
            found.append(join(["git", "checkout", str(commit)]))
        found.append("git submodule update --init runners/srt-slurm/upstream")
        if workspace:
            found.append(join(["git", "-C", str(receipt.job.get("workspace")), "checkout", str(workspace)]))
        variables = receipt.inputs.get("variables")
        variables = variables if isinstance(variables, dict) else {}
        found += [f"export {key}={quote(str(value))}" for key, value in sorted(variables.items())]
    rdma = ["--rdma-userspace"] if receipt is not None and wishes_of(receipt).rdma else []
    return [*found, join(["python", "-m", "runners", "launch", name, "--cluster", profile, *rdma])]


def changes(receipt: Receipt, target: Target, profile: Profile, software: Mapping[str, Any]) -> Iterator[Change]:
    """What is another one today than the receipt says.

    Args:
        receipt: Of the launch.
        target: Its point, resolved today.
        profile: Its cluster, today.
        software: Pin and patches of today, as a receipt has them.
    """
    for what, then, today in (
        ("digest", receipt.point.get("digest"), target.row["digest"]),
        *((key, receipt.software.get(key), value) for key, value in software.items()),
        ("recipe", receipt.inputs.get("recipe-content-sha256"), _recipe(target, profile)),
        ("cluster profile", receipt.inputs.get("profile-sha256"), sha256_of(profile.source)),
        ("workspace", receipt.inputs.get("workspace-commit"), checkout_of(profile.workspace).commit),
        ("variables", receipt.inputs.get("variables"), dict(profile.variables)),
    ):
        if then != today:
            yield Change(what=what, then=then, today=today)


def _recipe(target: Target, profile: Profile) -> str | None:
    try:
        return resolve(target.point, tag="x", scratch=JobFolder(root=profile.jobs / "x").scratch).content_sha256
    except RefusedError:
        return None


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
