"""What a host lacks for launches to a cluster, each thing with its remedy."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from matrix.errors import MatrixError, RefusedError
from runners import process, srtctl
from runners.pin import read_pin, require
from runners.series import load_series, pin_findings
from runners.slurm import PROGRAMS, Slurm, SlurmError
from runners.workspace import checkout_of, lacking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from runners.profile import Profile

__all__ = ["Check", "examine", "examine_profile"]

_LEAST_FREE: Final = 2**30
"""Bytes that a cluster which is to run many jobs should have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at. ``good`` is None for what is of use and not needed."""

    what: str
    good: bool | None
    said: str
    fix: str = ""


def examine(repository: Path, environ: Mapping[str, str]) -> Iterator[Check]:
    """What every cluster needs."""
    yield from _programs(environ)
    yield _told("submodule", lambda: _submodule(repository))
    yield _told("patches", lambda: _patches(repository))


def examine_profile(profile: Profile) -> Iterator[Check]:
    """What one cluster needs besides."""
    yield Check(what="profile", good=True, said=f"{profile.cluster}, {len(profile.variables)} variables set")
    yield _told("python", lambda: f"{profile.python} is Python {srtctl.python_version(profile.python)}")
    for name in ("outputs", "jobs", "cache"):
        yield _writable(name, getattr(profile, name))
    checkout = checkout_of(profile.workspace)
    there = profile.workspace.is_dir()
    said = f"{profile.workspace} at {checkout.commit}" if checkout.commit else f"{profile.workspace}, no commit"
    if checkout.modified:
        said += f", {len(checkout.modified)} files changed"
    fix = "check out InferenceX there, or set what the profile names"
    yield Check(what="workspace", good=there, said=said if there else f"{profile.workspace} is not there", fix=fix)
    for alias, path in profile.models.items():
        said = str(path) if path.is_dir() else f"{path} is not there"
        yield Check(what=f"model {alias}", good=path.is_dir() or None, said=said, fix="copy the model there")
    for host in profile.mounts:
        # Devices and node-local folders need not be on the login node.
        seen = os.path.exists(host)  # noqa: PTH110 - a text of the profile
        yield Check(what=f"mount {host}", good=seen or None, said="there" if seen else "not on this host")
    for name, path in profile.tools.items():
        good = path.is_file() and os.access(path, os.X_OK)
        said = str(path) if good else f"{path} is no program; recipes that need it are refused"
        yield Check(what=name, good=good or None, said=said, fix="put it there")


def _programs(environ: Mapping[str, str]) -> Iterator[Check]:
    search = environ.get("PATH")
    slurm = [name for name in PROGRAMS if shutil.which(name, path=search) is None]
    if slurm:
        fix = "work on the login node, or apt-get install slurm-client"
        yield Check(what="slurm", good=False, said=f"{', '.join(slurm)} not on PATH", fix=fix)
    else:
        yield _told("slurm", lambda: Slurm(timeout=25.0).ping())
    yield _told("git", _git)
    uv = shutil.which("uv", path=search)
    yield Check(what="uv", good=True if uv else None, said=uv or "not there, venv and pip are used instead")


def _git() -> str:
    return process.run(["git", "--version"], timeout=10).stdout.strip()


def _submodule(repository: Path) -> str:
    pin = read_pin(repository)
    require(pin)
    return f"at the pin {pin.commit}"


def _patches(repository: Path) -> str:
    series = load_series(repository / "runners" / "srt-slurm" / "patches")
    if unlike := pin_findings(series, read_pin(repository).commit):
        raise RefusedError(unlike)
    return ", ".join(entry.name for entry in series.entries) or "none"


def _told(what: str, look: Callable[[], str]) -> Check:
    """What a look says, or why it fails."""
    try:
        return Check(what=what, good=True, said=look())
    except RefusedError as refused:
        first = refused.findings[0]
        return Check(what=what, good=False, said=first.message, fix=first.fix)
    except SlurmError as error:
        return Check(what=what, good=False, said=str(error), fix="ask the administrators of the cluster")
    except MatrixError as error:
        return Check(what=what, good=False, said=str(error), fix=f"install {what}")


def _writable(what: str, path: Path) -> Check:
    if why := lacking(path, _LEAST_FREE):
        return Check(what=what, good=False, said=f"{path}: {why}", fix=f"make room, or see {what}: in the profile")
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    return Check(what=what, good=True, said=f"{path}, {shutil.disk_usage(nearest).free / 2**30:.0f} GiB free")
