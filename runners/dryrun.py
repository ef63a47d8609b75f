"""A launch without its submission: everything is made and proven, then shown and taken away again."""

from __future__ import annotations

import sys
from collections import UserDict
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from runners.prepare import prepare
from runners.profile import find_profile
from runners.resolved import images_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matrix.findings import Finding
    from runners.prepare import Prepared, Wishes
    from runners.profile import Profile
    from runners.target import Target

__all__ = ["away", "rehearse"]


class _Pretended(UserDict[str, str]):
    """An environment where every variable that a profile names has a value."""

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        return self.data.get(key, f"/{key}" if default is None else default)

    def __getitem__(self, key: str) -> str:
        return self.data.get(key, f"/{key}")


def away(
    cluster: str | None, runner: str, environ: Mapping[str, str], instead: Mapping[str, str], folders: Sequence[Path]
) -> Profile:
    """The profile as far as a host that is not of the cluster can have it: variables stand for themselves."""
    known = dict(environ)
    known.setdefault("XDG_CACHE_HOME", str(Path(known.get("HOME", "/")) / ".cache"))
    profile = find_profile(cluster, runner, _Pretended(known), folders=folders, instead=instead)
    return replace(
        profile, cache=Path(known["XDG_CACHE_HOME"]) / "matrix-runner", python=Path(sys.executable).resolve()
    )


def rehearse(
    target: Target, profile: Profile, repository: Path, environ: Mapping[str, str], wishes: Wishes, *, keep: bool
) -> tuple[tuple[Finding, ...], str]:
    """Prepare a launch: warnings, and what it would do.

    Raises:
        RefusedError: it could not be launched.
    """
    folder = Path(mkdtemp(prefix="launch-"))
    kept = False
    try:
        prepared = prepare(target, replace(profile, jobs=folder), repository, environ, wishes)
        kept = keep
        return prepared.warnings, "\n".join(_told(prepared, kept=keep))
    finally:
        if not kept:
            rmtree(folder, ignore_errors=True)


def _told(prepared: Prepared, *, kept: bool) -> list[str]:
    document, profile, receipt = prepared.resolved.document, prepared.profile, prepared.receipt
    slurm = document.get("slurm") or {}
    lines = []
    for name, value in (
        ("point", prepared.id),
        ("digest", receipt.point["digest"]),
        ("golden length", receipt.point["golden"] or "none"),
        ("pin", f"{receipt.software['pin']} with {', '.join(receipt.software['patches']) or 'no patch'}"),
        ("packages", f"{len(receipt.software['packages'])} for Python {receipt.software['python']}"),
        ("cluster", f"{profile.cluster}, partition {profile.partition}, account {profile.account}"),
        ("time limit", slurm.get("time_limit", profile.time_limit)),
        ("model", f"{document['model']['path']} -> {profile.models.get(document['model']['path'], 'as it is')}"),
        *(("container", f"{image} -> {profile.container(image)}") for image in images_of(document)),
        ("workspace", f"{profile.workspace} at {receipt.inputs['workspace-commit'] or 'no commit'}"),
        ("recipe", receipt.inputs["recipe-content-sha256"]),
        ("folder", str(prepared.folder.root) if kept else "removed again; --keep leaves it"),
        ("would run", f"srtctl apply -f {prepared.folder.recipe.name} --json --yes"),
    ):
        lines.append(f"{name + ':':15}{value}")
    lines.append("srtctl takes the cluster file and the recipe; nothing was submitted.")
    return lines
