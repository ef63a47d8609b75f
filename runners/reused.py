"""The results of an earlier run that stand in for points of a plan: fetched, unpacked, and each held to its digest."""

from __future__ import annotations

from errno import EEXIST, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENOTDIR
from shutil import copyfileobj, rmtree
from typing import TYPE_CHECKING, Final, NamedTuple

from matrix.forge import ForgeError, ForgeRule
from matrix.plan.earlier import RESULT, zip_faults
from runners.receipt import NAME
from runners.workspace import beside

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from matrix.findings import Finding
    from matrix.forge import Artifact, Forge

__all__ = ["Brought", "bring", "folder_of"]

_MAX_UNPACKED: Final = 8 * 1024**3
"""Bytes that one result may have: a small file can be packed so that it fills any disk."""
_ODD_NAMES: Final = frozenset({EEXIST, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENOTDIR})
"""What a disk says of names that somebody made up, and not of itself."""
_GONE: Final = (404, 410)
_UNANSWERED: Final = "its result is in run {}, and GitHub did not give it"


class Brought(NamedTuple):
    """Where the results are, by their ids in the earlier run; and why the others are not there.

    ``findings``: what GitHub did not answer; nothing was asked after it.
    """

    places: Mapping[str, Path]
    missing: Mapping[str, str]
    findings: tuple[Finding, ...] = ()


def folder_of(results: Path, run_id: int) -> Path:
    """Where the results of an earlier run lie. It is no point's folder, whose name would have ``--`` in it."""
    return results / f"reused-{run_id}"


def bring(names: Iterable[str], run_id: int, results: Path, forge: Forge | None, *, silent: bool = False) -> Brought:
    """The results of some points of a run, fetched unless they are there. Without a forge nothing is fetched.

    ``silent``: it is known that the forge would not answer.

    Raises:
        OSError: they cannot be written.
    """
    folder = folder_of(results, run_id)
    wanted = list(dict.fromkeys(names))
    places = {name: folder / name for name in wanted if (folder / name / NAME).is_file()}
    absent = [name for name in wanted if name not in places]
    if not absent:
        return Brought(places, {})
    if forge is None or silent:
        why = f"run {run_id} has its result, and no repository is named to fetch it from"
        why = _UNANSWERED.format(run_id) if silent else why
        return Brought(places, dict.fromkeys(absent, why))
    missing: dict[str, str] = {}
    try:
        listed = _listed(forge, run_id)
        for name in absent:
            if why := _fetched(forge, listed, name, folder):
                missing[name] = f"run {run_id} {why}"
            else:
                places[name] = folder / name
    except ForgeError as error:
        why = _UNANSWERED.format(run_id)
        unasked = [name for name in absent if name not in places and name not in missing]
        return Brought(places, {**missing, **dict.fromkeys(unasked, why)}, error.findings)
    return Brought(places, missing)


def _listed(forge: Forge, run_id: int) -> dict[str, Artifact]:
    """The newest artifact of each name: a later attempt of the run has the last word."""
    return {artifact.name: artifact for artifact in reversed(forge.artifacts(run_id))}


def _fetched(forge: Forge, listed: Mapping[str, Artifact], name: str, folder: Path) -> str:
    """Fetch one result; else why not.

    Raises:
        ForgeError: nothing else would be answered either.
    """
    artifact = listed.get(f"{RESULT}{name}")
    if artifact is None:
        return "has no result of it"
    if artifact.expired:
        return "had its result, which has expired"
    folder.mkdir(parents=True, exist_ok=True)
    packed = beside(folder / name)
    try:
        forge.save(artifact, packed)
        return _unpacked(packed, name, folder)
    except ForgeError as error:
        if error.status in _GONE:
            return "had its result, which is gone"
        if error.rule is ForgeRule.ANSWER:
            return f"has a result of it that cannot be read: {error.findings[0].message.rstrip('.')}"
        raise
    finally:
        packed.unlink(missing_ok=True)


def _unpacked(packed: Path, name: str, folder: Path) -> str:
    """Unpack what lies in the folder of the point; else say what is wrong with the file."""
    from zipfile import ZipFile

    target = beside(folder / name)
    try:
        with ZipFile(packed) as archive:
            members = [one for one in archive.infolist() if one.filename.startswith(f"{name}/") and not one.is_dir()]
            if sum(one.file_size for one in members) > _MAX_UNPACKED:
                return "has a result of it that is too large"
            for member in members:
                path = (target / member.filename.removeprefix(f"{name}/")).resolve()
                if not path.is_relative_to(target.resolve()):
                    return "has a result of it that would write outside of its folder"
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, path.open("wb") as copy:
                    copyfileobj(source, copy)
        if not (target / NAME).is_file():
            return "has a result of it without a receipt"
        rmtree(folder / name, ignore_errors=True)
        target.rename(folder / name)
    except zip_faults():
        return "has a result of it that is no whole zip file"
    except OSError as error:
        if error.errno is None:
            return "has a result of it that is no whole zip file"
        if error.errno not in _ODD_NAMES:
            raise
        return f"has a result of it that cannot be unpacked: {error.strerror}"
    finally:
        rmtree(target, ignore_errors=True)
    return ""
