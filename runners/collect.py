"""What launches have left in a results folder: their receipts, and what their summaries measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from matrix.config.source import read_bytes
from matrix.errors import NothingSelectedError, RefusedError
from matrix.findings import Finding, Span
from runners.figures import read_back
from runners.jsontext import parse
from runners.receipt import NAME, Receipt, Step, read_receipt
from runners.workspace import sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Row", "changed", "collect", "launches", "read_row"]


class Row(NamedTuple):
    """One point and what came of it. Without a receipt it is missing, and ``why`` says why.

    ``run`` is the earlier run that its result was reused from, ``then`` the id that the job had there.
    """

    id: str
    digest: str
    why: str
    receipt: Receipt | None = None
    figures: tuple[dict[str, Any], ...] = ()
    run: int | None = None
    then: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether there is a verified result."""
        return self.receipt is not None and self.receipt.succeeded

    @property
    def end(self) -> str:
        """How it ended, in one word or two."""
        if self.receipt is None:
            return "missing"
        if self.receipt.step is not Step.ENDED:
            return str(self.receipt.step)
        if self.receipt.succeeded:
            return "success"
        verdict = str(self.receipt.outcome.get("verdict", "failed"))
        return "no result" if verdict == "passed" else verdict

    def of_job(self, name: str) -> str | None:
        """A text that the receipt knows of its job."""
        known = None if self.receipt is None else self.receipt.job.get(name)
        return known if isinstance(known, str) else None


def collect(folder: Path) -> tuple[list[Row], list[Finding]]:
    """The launches below a results folder, by id, and what is wrong with them.

    Raises:
        NothingSelectedError: there is none.
    """
    rows, findings = launches(folder)
    if not rows and not findings:
        msg = f"{folder}: no launch has left a receipt here"
        raise NothingSelectedError(msg)
    for row in rows:
        findings += changed(row.receipt, folder / row.id) if row.receipt is not None else ()
    return rows, findings


def launches(folder: Path) -> tuple[list[Row], list[Finding]]:
    """A row for each receipt below a folder, and a finding for each that cannot be read."""
    rows: list[Row] = []
    findings: list[Finding] = []
    for path in sorted(folder.glob(f"*/{NAME}")):
        try:
            row = read_row(path.parent)
        except RefusedError as refused:
            findings += refused.findings
            continue
        if row.id != path.parent.name:
            message = f"this receipt is of {row.id}, and it lies in the folder of another point."
            fix = f"move the folder to {folder / row.id}"
            findings.append(Finding(rule="collect-place", message=message, fix=fix, span=Span(str(path))))
            continue
        rows.append(row)
    return rows, findings


def read_row(place: Path) -> Row:
    """The launch whose receipt and summary are in a folder.

    Raises:
        RefusedError: one of the two cannot be read.
    """
    receipt = read_receipt(place)
    figures = _figures(place) if receipt.step is Step.ENDED else ()
    why = receipt.outcome.get("why")
    return Row(receipt.point["id"], receipt.point["digest"], str(why or ""), receipt, figures)


def _figures(folder: Path) -> tuple[dict[str, Any], ...]:
    path = folder / "summary.json"
    if not path.is_file():
        return ()
    try:
        found = parse(read_bytes(path, what="summary"))
        listed = found.get("figures") if isinstance(found, dict) else None
        if not isinstance(listed, list):
            msg = "it lists no figures"
            raise ValueError(msg)
        return tuple(map(read_back, listed))
    except ValueError as error:
        message = f"this summary cannot be read: {error}."
        fix = "take the summary.json of the launch, or launch again"
        raise RefusedError([Finding(rule="collect-summary", message=message, fix=fix, span=Span(str(path)))]) from None


def changed(receipt: Receipt, folder: Path) -> Iterator[Finding]:
    """Files that are not what the receipt says they are."""
    for entry in receipt.results:
        path = folder / entry["file"]
        try:
            if sha256_of(path) == entry["sha256"]:
                continue
            message = "this file is not the one that the receipt names: its sha256 is another one."
        except FileNotFoundError:
            message = "the receipt names this file, and it is not here."
        except OSError as error:
            message = f"the receipt names this file, and it cannot be read: {error.strerror}."
        yield Finding(rule="collect-changed", message=message, fix="take the file of the launch", span=Span(str(path)))
