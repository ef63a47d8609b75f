"""Which files a job must have left, what is read of them, and the copies that are kept.

Slurm knows whether a script ended with 0, not whether anything was measured: a worker that exits 0 and a client whose
pipe swallowed its error end as COMPLETED. So each kind of run names its files, and each file must say that requests
succeeded.
"""

from __future__ import annotations

import shutil
import tarfile
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final

from matrix.findings import Finding, Severity, Span
from runners.figures import far_off, faults_of, finite, of_agentic, of_evaluation, of_fixed
from runners.jsontext import parse
from runners.resolved import WORKSPACE
from runners.workspace import beside, sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "Collected",
    "Kept",
    "Kind",
    "Places",
    "clear_leftovers",
    "collect",
    "kinds_of",
    "leftovers",
    "pack_logs",
    "settled",
    "take_away",
]

_LOGS: Final = "server-logs.tar.gz"
_LARGEST: Final = 512 * 2**20
"""Bytes of a result: one that does not fit into the memory of a login node would end the launch, not the point."""
_EVAL_FILES: Final = ("results*.json", "sample*.jsonl", "meta_env.json")


class Kind(StrEnum):
    """What a job measures."""

    FIXED = "throughput"
    AGENTIC = "agentic"
    EVAL = "eval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a job wrote: its output folder, the workspace, and the folder that it saw as LOGS of the workspace."""

    output: Path
    workspace: Path
    scratch: Path

    def host(self, path: str) -> Path:
        """A path of the containers on this host."""
        inside = PurePosixPath(path)
        for target, source in (
            (f"{WORKSPACE}/LOGS", self.scratch),
            (WORKSPACE, self.workspace),
            ("/logs", self.output / "logs"),
        ):
            if inside.is_relative_to(target):
                return source / inside.relative_to(target)
        return Path(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file in the point's folder."""

    name: str
    size: int
    sha256: str

    def as_json(self) -> dict[str, Any]:
        """As a receipt has it."""
        return {"file": self.name, "bytes": self.size, "sha256": self.sha256}


@dataclass(slots=True, kw_only=True)
class Collected:
    """What was found: kept files, figures by concurrency, and faults. Without a fault the results are verified."""

    kept: list[Kept] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    shared: list[Path] = field(default_factory=list)
    """Results in the workspace, which jobs share. They stay until a receipt says that they are kept: `take_away`."""

    @property
    def verified(self) -> bool:
        """Whether every file that must be there is, and says that something succeeded."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)


def kinds_of(row: Mapping[str, Any]) -> tuple[Kind, ...]:
    """What a row's job measures, in the order of its measurements."""
    if row.get("eval-only"):
        return (Kind.EVAL,)
    kind = Kind.FIXED if "isl" in row else Kind.AGENTIC
    return (kind, Kind.EVAL) if row.get("run-eval") else (kind,)


def collect(
    row: Mapping[str, Any],
    places: Places,
    prefix: str,
    into: Path,
    *,
    agentic_folder: str = WORKSPACE,
    golden: str | None = None,
) -> Collected:
    """Verify the results of a job and copy them into the folder of its point.

    Args:
        row: The point's row.
        places: Where the job wrote.
        prefix: RESULT_FILENAME of the job.
        into: The point's folder.
        agentic_folder: Where the agentic client writes, as containers see it.
        golden: The acceptance length that the job was given.
    """
    found = Collected()
    concs = [int(conc) for conc in (row["conc"] if isinstance(row["conc"], list) else [row["conc"]])]
    for kind in kinds_of(row):
        match kind:
            case Kind.AGENTIC:
                _agentic(found, concs, places.host(agentic_folder), prefix, into)
            case Kind.FIXED:
                _fixed(found, concs, places.output / "logs", into)
            case Kind.EVAL:
                _evaluations(found, places.output / "logs" / "eval_results", into)
    if golden is not None:
        _check_acceptance(found, float(golden))
    return found


def settled(row: Mapping[str, Any], places: Places, prefix: str, *, agentic_folder: str = WORKSPACE) -> bool:
    """Whether every file that must be there is there, and whole. Changes nothing."""
    concs = row["conc"] if isinstance(row["conc"], list) else [row["conc"]]
    logs = places.output / "logs"
    for kind in kinds_of(row):
        match kind:
            case Kind.AGENTIC:
                groups = [[places.host(agentic_folder) / f"{prefix}_conc{conc}.json"] for conc in concs]
            case Kind.FIXED:
                groups = [_fixed_files(logs, int(conc)) for conc in concs]
            case Kind.EVAL:
                groups = [list((logs / "eval_results").rglob("results*.json"))]
        if not all(group and all(map(_is_whole, group)) for group in groups):
            return False
    return True


def _is_whole(path: Path) -> bool:
    try:
        _record_of(path)
    except (OSError, ValueError):
        return False
    return True


def _record_of(path: Path) -> Any:
    """What a result says. Raises OSError and ValueError."""
    facts = path.stat()
    if not S_ISREG(facts.st_mode):
        msg = "it is no regular file"
        raise ValueError(msg)
    if facts.st_size > _LARGEST:
        msg = f"it has {facts.st_size:,} bytes, and {_LARGEST:,} is the most that is read"
        raise ValueError(msg)
    return parse(path.read_bytes())


def _fixed_files(logs: Path, conc: int) -> list[Path]:
    names = (f"results_concurrency_{conc}.json", f"results_concurrency_{conc}_*.json")
    return sorted({path for name in names for path in logs.rglob(name)}) if logs.is_dir() else []


def _agentic(found: Collected, concs: Sequence[int], folder: Path, prefix: str, into: Path) -> None:
    for conc in concs:
        path = folder / f"{prefix}_conc{conc}.json"
        record = _read(found, path, f"the agentic client has left no result for concurrency {conc}")
        if record is None:
            continue
        if _take(found, path, into / f"result_conc{conc}.json", of_agentic(conc, record)):
            found.shared.append(path)


def _fixed(found: Collected, concs: Sequence[int], logs: Path, into: Path) -> None:
    for conc in concs:
        paths = _fixed_files(logs, conc)
        if len(paths) > 1:
            message = f"there are {len(paths)} results for concurrency {conc}: {', '.join(map(str, paths))}."
            fix = "let the recipe write one of them"
            found.findings.append(Finding(rule="result-twice", message=message, fix=fix, span=Span(str(logs))))
            continue
        path = paths[0] if paths else logs / f"results_concurrency_{conc}.json"
        record = _read(found, path, f"the client has left no result for concurrency {conc}")
        if record is None:
            continue
        _take(found, path, into / f"result_conc{conc}.json", of_fixed(conc, record))


def _evaluations(found: Collected, folder: Path, into: Path) -> None:
    paths = sorted(folder.rglob("results*.json")) if folder.is_dir() else []
    if not paths:
        _read(found, folder / "results.json", "the evaluation has left no result")
    for path in paths:
        record = _read(found, path, "")
        if record is None:
            continue
        name = f"eval_{path.relative_to(folder).as_posix().replace('/', '_')}"
        # a/b.json and a_b.json are two results.
        names = count(2)
        while any(kept.name == name for kept in found.kept):
            name = f"eval{next(names)}_{name.partition('_')[2]}"
        _take(found, path, into / name, of_evaluation(record))


def _read(found: Collected, path: Path, missing: str) -> dict[str, Any] | None:
    try:
        record = _record_of(path)
    except FileNotFoundError:
        found.findings.append(_fault("result-missing", f"{missing}.", path))
    except (OSError, ValueError) as error:
        message = f"this result cannot be read, it may be half written: {_why(error)}."
        found.findings.append(_fault("result-broken", message, path))
    else:
        if isinstance(record, dict):
            return record
        found.findings.append(_fault("result-broken", "this result is no mapping.", path))
    return None


def _fault(rule: str, message: str, path: Path) -> Finding:
    return Finding(rule, message, "see the log of the benchmark in server-logs.tar.gz", Span(str(path)))


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def _take(found: Collected, path: Path, target: Path, figures: dict[str, Any]) -> bool:
    """Judge a result and keep a copy of it; whether the copy is there."""
    for fault in faults_of(figures):
        found.findings.append(_fault(fault.rule, fault.message, path))
    if read := finite(figures):
        found.figures.append(read)
    return _keep(found, path, target)


def take_away(found: Collected) -> Iterator[Finding]:
    """Take what is kept out of the workspace: these names are ours alone. Yields a warning for what cannot be."""
    for path in found.shared:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            message = f"this result is kept, and cannot be taken out of the workspace: {error.strerror}."
            fix = "remove it, and let the containers write as a user whose files you may remove"
            yield Finding("result-stays", message, fix, Span(str(path)), Severity.WARNING)


def _keep(found: Collected, path: Path, target: Path) -> bool:
    temporary = beside(target)
    try:
        shutil.copyfile(path, temporary)
        temporary.replace(target)
        found.kept.append(_kept(target))
    except OSError as error:
        message = f"the result cannot be copied to {target}: {error.strerror}."
        fix = "make room there: this one stays"
        found.findings.append(Finding(rule="result-copy", message=message, fix=fix, span=Span(str(path))))
        return False
    finally:
        # Half a copy on a full disk would leave no room for the receipt.
        temporary.unlink(missing_ok=True)
    return True


def _kept(path: Path) -> Kept:
    return Kept(name=path.name, size=path.stat().st_size, sha256=sha256_of(path))


def leftovers(workspace: Path) -> list[Path]:
    """Files in the workspace that an evaluation would take for its own: it writes there and copies by name."""
    return sorted(path for pattern in _EVAL_FILES for path in workspace.glob(pattern) if path.is_file())


def clear_leftovers(workspace: Path, output: Path) -> None:
    """Take out of the workspace what an evaluation has copied from there, byte by byte, into its job's logs."""
    for path in leftovers(workspace):
        copied = output / "logs" / "eval_results" / path.name
        # What cannot be removed is told by the next launch, which refuses the workspace for it.
        with suppress(OSError):
            if copied.is_file() and copied.read_bytes() == path.read_bytes():
                path.unlink(missing_ok=True)


def pack_logs(output: Path, into: Path) -> Kept | None:
    """Pack all that a job logged; None where it has logged nothing. Raises OSError when the disk takes no more."""
    if not (output / "logs").is_dir():
        return None
    target, temporary = into / _LOGS, beside(into / _LOGS)
    try:
        with tarfile.open(temporary, "w:gz", compresslevel=5) as archive:
            archive.add(output, arcname=output.name)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return _kept(target)


def _check_acceptance(found: Collected, golden: float) -> None:
    for figures in found.figures:
        for length in far_off(figures, golden):
            message = f"the realised acceptance length is {length:g} and {golden:g} was to be forced."
            fix = "see whether the image takes the setting: python -m matrix golden inject"
            found.findings.append(Finding(rule="result-acceptance", message=message, fix=fix))
