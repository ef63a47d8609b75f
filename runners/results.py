"""Which files a job must have left, what is read of them, and the copies that are kept.

Slurm knows whether a script ended with 0, not whether anything was measured: a worker that exits 0 and a client whose
pipe swallowed its error end as COMPLETED. So each kind of run names its files, and each file must say that requests
succeeded.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from matrix.findings import Finding, Severity, Span
from runners.resolved import WORKSPACE
from runners.workspace import beside

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
]

_LOGS: Final = "server-logs.tar.gz"
_EVAL_FILES: Final = ("results*.json", "sample*.jsonl", "meta_env.json")
_TOLERANCE: Final = 0.02
"""Of a golden length, relative: a forced length is drawn at random, request by request."""

_ACCEPTANCE: Final = frozenset({
    "acceptance_length", "mean_acceptance_length", "average_tokens_per_forward", "mtp_average_tokens_per_forward",
    "avg_spec_accept_length", "spec_accept_length",
})  # fmt: skip
_FIXED: Final = {
    "total-tokens-per-second": "total_token_throughput",
    "output-tokens-per-second": "output_throughput",
    "requests-per-second": "request_throughput",
    "median-ttft-ms": "median_ttft_ms",
    "median-tpot-ms": "median_tpot_ms",
    "median-e2el-ms": "median_e2el_ms",
}


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
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _fixed_files(logs: Path, conc: int) -> list[Path]:
    names = (f"results_concurrency_{conc}.json", f"results_concurrency_{conc}_*.json")
    return sorted({path for name in names for path in logs.rglob(name)}) if logs.is_dir() else []


def _agentic(found: Collected, concs: Sequence[int], folder: Path, prefix: str, into: Path) -> None:
    for conc in concs:
        path = folder / f"{prefix}_conc{conc}.json"
        record = _read(found, path, f"the agentic client has left no result for concurrency {conc}")
        if record is None:
            continue
        accounting = record.get("request_accounting")
        successful = record.get("num_requests_successful")
        if successful is None and isinstance(accounting, dict):
            successful = accounting.get("records_profiled")
        metrics = record.get("request_metrics")
        throughput = metrics.get("throughput") if isinstance(metrics, dict) else None
        figures = {"conc": conc, "successful": successful, "total": record.get("num_requests_total")}
        figures |= _numbers("", throughput)
        if _take(found, path, into / f"result_conc{conc}.json", figures, record):
            # The folder is shared by jobs, and this name is ours alone.
            path.unlink(missing_ok=True)


def _fixed(found: Collected, concs: Sequence[int], logs: Path, into: Path) -> None:
    for conc in concs:
        paths = _fixed_files(logs, conc)
        if len(paths) > 1:
            message = f"there are {len(paths)} results for concurrency {conc}: {', '.join(map(str, paths))}."
            found.findings.append(Finding(rule="result-twice", message=message, span=Span(str(logs))))
            continue
        path = paths[0] if paths else logs / f"results_concurrency_{conc}.json"
        record = _read(found, path, f"the client has left no result for concurrency {conc}")
        if record is None:
            continue
        figures = {"conc": conc, "successful": record.get("completed"), "total": record.get("num_prompts")}
        figures |= {name: record[field] for name, field in _FIXED.items() if _is_number(record.get(field))}
        _take(found, path, into / f"result_conc{conc}.json", figures, record)


def _evaluations(found: Collected, folder: Path, into: Path) -> None:
    paths = sorted(folder.rglob("results*.json")) if folder.is_dir() else []
    if not paths:
        _read(found, folder / "results.json", "the evaluation has left no result")
    for path in paths:
        record = _read(found, path, "")
        if record is None:
            continue
        scores = record.get("results")
        if not isinstance(scores, dict) or not scores:
            message = "this evaluation names no task and no score."
            found.findings.append(Finding(rule="result-empty", message=message, span=Span(str(path))))
            continue
        name = f"eval_{path.relative_to(folder).as_posix().replace('/', '_')}"
        found.figures.append({"eval": {task: _numbers("", score) for task, score in sorted(scores.items())}})
        _keep(found, path, into / name)


def _read(found: Collected, path: Path, missing: str) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        fix = "see the log of the benchmark in server-logs.tar.gz"
        found.findings.append(Finding(rule="result-missing", message=f"{missing}.", fix=fix, span=Span(str(path))))
    except (OSError, ValueError) as error:
        message = f"this result cannot be read, it may be half written: {error}."
        found.findings.append(Finding(rule="result-broken", message=message, span=Span(str(path))))
    else:
        if isinstance(record, dict):
            return record
        message = "this result is no mapping."
        found.findings.append(Finding(rule="result-broken", message=message, span=Span(str(path))))
    return None


def _take(found: Collected, path: Path, target: Path, figures: dict[str, Any], record: dict[str, Any]) -> bool:
    """Judge a result and keep a copy of it; whether the copy is there."""
    successful = figures["successful"]
    if type(successful) is not int:
        message = f"this result does not say how many requests succeeded (it says {successful!r})."
        found.findings.append(Finding(rule="result-shape", message=message, span=Span(str(path))))
    elif successful <= 0:
        message = "no request succeeded, so nothing was measured."
        found.findings.append(Finding(rule="result-empty", message=message, span=Span(str(path))))
    lengths = sorted(set(_acceptance(record)))
    if lengths:
        figures["acceptance-lengths"] = lengths
    found.figures.append({name: value for name, value in figures.items() if value is not None})
    return _keep(found, path, target)


def _keep(found: Collected, path: Path, target: Path) -> bool:
    temporary = beside(target)
    try:
        shutil.copyfile(path, temporary)
        temporary.replace(target)
        found.kept.append(_kept(target))
    except OSError as error:
        message = f"the result cannot be copied to {target}: {error.strerror}."
        found.findings.append(Finding(rule="result-copy", message=message, span=Span(str(path))))
        return False
    finally:
        # Half a copy on a full disk would leave no room for the receipt.
        temporary.unlink(missing_ok=True)
    return True


def _kept(path: Path) -> Kept:
    digest = sha256()
    with path.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return Kept(name=path.name, size=path.stat().st_size, sha256=digest.hexdigest())


def leftovers(workspace: Path) -> list[Path]:
    """Files in the workspace that an evaluation would take for its own: it writes there and copies by name."""
    return sorted(path for pattern in _EVAL_FILES for path in workspace.glob(pattern) if path.is_file())


def clear_leftovers(workspace: Path, output: Path) -> None:
    """Take out of the workspace what an evaluation has copied from there, byte by byte, into its job's logs."""
    for path in leftovers(workspace):
        copied = output / "logs" / "eval_results" / path.name
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
        for length in figures.get("acceptance-lengths", ()):
            if abs(length - golden) > golden * _TOLERANCE:
                message = f"the realised acceptance length is {length:g} and {golden:g} was to be forced."
                fix = "see whether the image takes the setting: python -m matrix golden inject"
                found.findings.append(Finding(rule="result-acceptance", message=message, fix=fix))


def _acceptance(node: Any) -> Iterator[float]:
    if isinstance(node, dict):
        for key, value in node.items():
            if isinstance(key, str) and key.rpartition(":")[2] in _ACCEPTANCE and _is_number(value):
                yield float(value)
            else:
                yield from _acceptance(value)
    elif isinstance(node, list):
        for value in node:
            yield from _acceptance(value)


def _numbers(prefix: str, node: Any) -> dict[str, float]:
    """The numbers of nested mappings by dotted name."""
    if _is_number(node):
        return {prefix: node}
    if not isinstance(node, dict):
        return {}
    found: dict[str, float] = {}
    for key, value in node.items():
        found |= _numbers(f"{prefix}.{key}" if prefix else str(key), value)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
