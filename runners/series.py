"""The folder of vendored patches: the patches in their order, ``series.yaml``, and the table of its README.

``series.yaml`` records the pin that the patches are made for, and of every patch its hash, where it comes from, and the
blob id of every file before and after it, in the order of application. So what identifies a patched tree can be read
without git. A folder without it is taken as well; its patches are then judged by their context.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from matrix.config.source import Map, Seq, load
from matrix.errors import RefusedError
from matrix.findings import Finding, Span, did_you_mean, in_order
from runners.patchfile import Patch, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from matrix.config.source import Document

__all__ = ["Blobs", "Entry", "Series", "load_series", "number_of", "pin_findings", "read_series"]

SERIES_FILE: Final = "series.yaml"
TABLE_FILE: Final = "README.md"

_NAME: Final = re.compile(r"(?P<number>\d+)-[A-Za-z0-9][A-Za-z0-9._-]*\.patch\Z")
_ROW: Final = re.compile(r"\|\s*(?:\[)?`?(?P<name>[^|`\]]*\.patch)\b")
_BLOB: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_SHA256: Final = re.compile(r"[0-9a-f]{64}\Z")
_FIELDS: Final = ("number", "file", "sha256", "upstream", "why", "files")
_FILE_FIELDS: Final = ("path", "pre", "post")
_REFRESH: Final = "python -m runners patches refresh"


@dataclass(frozen=True, slots=True)
class Blobs:
    """Blob ids of one file before and after a patch; None where the file does not exist."""

    pre: str | None
    post: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One patch of the series, with what ``series.yaml`` says of it."""

    number: int
    patch: Patch
    upstream: str = ""
    """Address of the pull request that makes the patch superfluous."""
    why: str = ""
    recorded: Mapping[str, Blobs] | None = None
    """Path -> blob ids; None without ``series.yaml``."""

    @property
    def name(self) -> str:
        """The file name of the patch."""
        return self.patch.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The patches of a folder, in numeric order."""

    folder: Path
    entries: tuple[Entry, ...]
    pin: str | None = None
    """The commit that the record was made for; None without ``series.yaml``."""

    @property
    def record(self) -> tuple[tuple[str, str], ...]:
        """(file, sha256) of every patch, sorted: what identifies the series in receipts and digests."""
        return tuple(sorted((entry.name, entry.patch.sha256) for entry in self.entries))

    def up_to(self, number: int) -> Series:
        """The part of the series up to and including a number."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry.number <= number))


def load_series(folder: Path) -> Series:
    """The series of a folder.

    Raises:
        RefusedError: with everything that is wrong with patches, ``series.yaml`` and table.
    """
    series, findings = read_series(folder)
    if findings or series is None:
        raise RefusedError(findings)
    return series


def read_series(folder: Path) -> tuple[Series | None, list[Finding]]:
    """The series of a folder, and everything that is wrong with it; no series when a patch cannot be read."""
    if not folder.is_dir():
        message = "this folder of patches does not exist."
        return None, [Finding(rule="patches-folder", span=Span(str(folder)), message=message, fix="name the folder")]
    patches, findings = _patches(folder)
    recorded: dict[str, Entry] = {}
    pin: str | None = None
    if (folder / SERIES_FILE).exists():
        try:
            reader = _Recorded(load(folder / SERIES_FILE, what="series"), patches, findings)
            recorded, pin = reader.entries(), reader.pin()
        except RefusedError as error:
            findings.extend(error.findings)
    findings.extend(_table_findings(folder, [patch.name for patch in patches]))
    entries = [recorded.get(patch.name) or Entry(number=number_of(patch.name) or 0, patch=patch) for patch in patches]
    return Series(folder=folder, entries=tuple(entries), pin=pin), in_order(findings)


def pin_findings(series: Series, commit: str) -> list[Finding]:
    """Whether the record was made for the commit that is patched: digests of points go by the record."""
    if series.pin is None or series.pin == commit:
        return []
    message = f"the patches are recorded for the pin {series.pin}, and the pin is {commit}."
    fix = f"{_REFRESH} DIR, with a clone at the pin, writes the record again"
    return [Finding(rule="series-pin", span=Span(str(series.folder / SERIES_FILE)), message=message, fix=fix)]


def number_of(name: str) -> int | None:
    """The number that a patch is ordered by.

    >>> number_of("1000-late.patch"), number_of("99-early.patch"), number_of("fix.patch")
    (1000, 99, None)
    """
    found = _NAME.match(name)
    return int(found["number"]) if found else None


def _patches(folder: Path) -> tuple[list[Patch], list[Finding]]:
    """Every patch of a folder in numeric order: 99 before 504 before 1000."""
    findings: list[Finding] = []
    patches: list[Patch] = []
    numbers: dict[int, str] = {}
    names = sorted(
        (file.name for file in folder.iterdir() if file.suffix == ".patch"),
        key=lambda name: (number_of(name) or 0, name),
    )
    for name in names:
        number = number_of(name)
        if number is None:
            message = f"'{name}' has no place in the order of application."
            fix = "name it <number>-<words>.patch, of letters, digits, '.', '_' and '-'"
            findings.append(Finding(rule="patch-name", span=Span(str(folder / name)), message=message, fix=fix))
        elif number in numbers:
            message = f"has the same number as {numbers[number]}. Which of the two is applied first is not said."
            findings.append(
                Finding(rule="patch-number", span=Span(str(folder / name)), message=message, fix="renumber one")
            )
        else:
            numbers[number] = name
        patch, faults = read(folder / name)
        findings.extend(faults)
        if patch is not None:
            patches.append(patch)
    return patches, findings


def _table_findings(folder: Path, names: Sequence[str]) -> Iterator[Finding]:
    """The README of a folder lists its patches, each in one row, in their order."""
    table = folder / TABLE_FILE
    if not table.is_file():
        if (folder / SERIES_FILE).exists():
            message = "the table that tells people what each patch is for is missing."
            yield Finding(rule="patch-table", span=Span(str(table)), message=message, fix="write it, one row a patch")
        return
    rows: dict[str, int] = {}
    for line, content in enumerate(table.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        found = _ROW.match(content)
        if found is None:
            continue
        name = found["name"]
        if name in rows:
            message = f"{name} has a row already, in line {rows[name]}."
            yield Finding(rule="patch-table", span=Span(str(table), line), message=message, fix="delete one of the two")
        elif not (folder / name).is_file():
            message = f"{name} has a row, but there is no such patch."
            yield Finding(rule="patch-table", span=Span(str(table), line), message=message, fix="delete the row")
        rows.setdefault(name, line)
    for name in names:
        if name not in rows:
            message = f"{name} has no row in the table."
            yield Finding(rule="patch-table", span=Span(str(table)), message=message, fix="add its row")
    shown = [name for name in rows if name in names]
    if shown != [name for name in names if name in rows]:
        message = f"the rows are not in the order of application: {', '.join(shown)}."
        yield Finding(rule="patch-table", span=Span(str(table)), message=message, fix="sort them by number")


class _Recorded:
    """Reads ``series.yaml`` against the patches that are there."""

    def __init__(self, document: Document, patches: Sequence[Patch], findings: list[Finding]) -> None:
        self.document = document
        self.patches = {patch.name: patch for patch in patches}
        self.findings = findings

    def refuse(self, span: Span, rule: str, message: str, fix: str) -> None:
        self.findings.append(Finding(rule=rule, span=span, message=message, fix=fix))

    def entries(self) -> dict[str, Entry]:
        document = self.document
        root = document.root
        listed = root.get("patches") if isinstance(root, Map) else None
        if not isinstance(root, Map) or not isinstance(listed, Seq):
            self.refuse(
                document.span(),
                "series-shape",
                "a mapping with a list 'patches' is wanted.",
                "write 'patches:' and a list below it",
            )
            return {}
        self.unknown(root, ("pin", "patches"))
        entries: dict[str, Entry] = {}
        last = -1
        for index, item in enumerate(listed):
            span = document.of_value(listed, index)
            if not self.complete(item, span):
                continue
            name, number = item["file"], item["number"]
            if number != number_of(name):
                self.refuse(
                    document.of_value(item, "number"),
                    "series-number",
                    f"{number} is not the number of {name}.",
                    "write the one of the file name",
                )
            if number <= last:
                self.refuse(
                    span,
                    "series-order",
                    f"{name} stands behind number {last}. Patches are applied by number.",
                    "sort the list by number",
                )
            last = max(last, number)
            if name not in self.patches:
                if not (self.is_refused(name)):
                    message = f"{name} is not in the folder; {did_you_mean(name, self.patches)}"
                    self.refuse(
                        document.of_value(item, "file"),
                        "series-missing",
                        message,
                        "delete the entry, or put the patch back",
                    )
            elif name in entries:
                self.refuse(span, "series-twice", f"{name} is listed twice.", "delete one of the two")
            else:
                entries[name] = self.entry(item, self.patches[name])
        for name in self.patches.keys() - {item.get("file") for item in listed if isinstance(item, Map)}:
            self.refuse(
                document.span(),
                "series-unlisted",
                f"{name} is in the folder, but not listed.",
                f"add its entry, then {_REFRESH}",
            )
        return entries

    def pin(self) -> str | None:
        """The commit at the top of the record."""
        root = self.document.root
        if not isinstance(root, Map):
            return None
        pin = root.get("pin")
        if not _BLOB.match(str(pin)):
            where = self.document.of_value(root, "pin") if "pin" in root else self.document.span()
            self.refuse(
                where, "series-pin", "pin is the whole id of the commit that the patches are made for.", _REFRESH
            )
            return None
        return str(pin)

    def is_refused(self, name: str) -> bool:
        """Whether a patch is there although it could not be read, which is told already."""
        return any(finding.span is not None and finding.span.file.endswith(f"/{name}") for finding in self.findings)

    def unknown(self, item: Map, known: Sequence[str]) -> None:
        for key in item:
            if key not in known:
                self.refuse(
                    self.document.of_key(item, key),
                    "series-field",
                    f"{key} is not known here; {did_you_mean(key, known)}",
                    "remove it",
                )

    def complete(self, item: Any, span: Span) -> bool:
        """Whether an entry has its fields, each of its type."""
        if not isinstance(item, Map):
            self.refuse(span, "series-shape", "an entry is a mapping.", f"give it {', '.join(_FIELDS)}")
            return False
        self.unknown(item, _FIELDS)
        right = True
        for name in _FIELDS:
            kind = {"number": int, "files": list}.get(name, str)
            if not isinstance(item.get(name), kind) or isinstance(item.get(name), bool):
                what = {"number": "an integer", "files": "a list"}.get(name, "a string")
                where = self.document.of_value(item, name) if name in item else span
                self.refuse(where, "series-field", f"{name} must be {what}.", f"write it, or let {_REFRESH} write it")
                right = False
        return right

    def entry(self, item: Map, patch: Patch) -> Entry:
        document = self.document
        if not _SHA256.match(item["sha256"]) or item["sha256"] != patch.sha256:
            message = f"the sha256 of {patch.name} is {patch.sha256}. The patch was changed without its record."
            self.refuse(
                document.of_value(item, "sha256"), "series-sha256", message, f"{_REFRESH}, or restore the patch"
            )
        recorded = self.blobs(item["files"])
        for path in patch.paths:
            if path not in recorded:
                message = f"{patch.name} changes {path}, which has no blob ids here."
                self.refuse(document.of_key(item, "files"), "series-files", message, _REFRESH)
        for path in recorded.keys() - set(patch.paths):
            message = f"{path} is listed, but {patch.name} does not change it."
            self.refuse(document.of_key(item, "files"), "series-files", message, _REFRESH)
        for change in patch.changes:
            blobs = recorded.get(change.path)
            for side, written, known in (
                ("before", change.pre, blobs and blobs.pre),
                ("after", change.post, blobs and blobs.post),
            ):
                if blobs and written and not (known or "0" * 40).startswith(written):
                    message = f"{patch.name} has {written} as the blob of {change.path} {side} it, not {known}."
                    self.refuse(document.of_key(item, "files"), "series-files", message, _REFRESH)
        return Entry(number=item["number"], patch=patch, upstream=item["upstream"], why=item["why"], recorded=recorded)

    def blobs(self, files: Seq) -> dict[str, Blobs]:
        found: dict[str, Blobs] = {}
        for index, item in enumerate(files):
            span = self.document.of_value(files, index)
            if not isinstance(item, Map) or set(item) != set(_FILE_FIELDS) or not isinstance(item["path"], str):
                self.refuse(span, "series-shape", f"a file is a mapping of {', '.join(_FILE_FIELDS)}.", _REFRESH)
                continue
            for side in ("pre", "post"):
                if item[side] is not None and not _BLOB.match(str(item[side])):
                    where = self.document.of_value(item, side)
                    self.refuse(where, "series-blob", f"{side} is a whole blob id, or null for no file.", _REFRESH)
            found[item["path"]] = Blobs(item["pre"], item["post"])
        return found
