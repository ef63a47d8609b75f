"""What is wrong, where, why, and how to mend it.

A check yields findings; it never prints and never raises for bad input. One line of text per finding::

    configs/amd-master.yaml:31:9: conc-positive: conc-list holds 0. A concurrency counts clients ... fix: ...
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from matrix.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Finding", "Related", "Severity", "Span", "did_you_mean", "errors_of", "in_order", "one_line", "printable"]


class Severity(StrEnum):
    """``ERROR`` refuses the input; ``WARNING`` is told and passed over unless the caller is strict."""

    ERROR = "error"
    WARNING = "warning"


class Span(NamedTuple):
    """A place in a file. ``line`` and ``column`` count from 1; 0 means the file as a whole.

    >>> str(Span("configs/amd-master.yaml", 31, 9))
    'configs/amd-master.yaml:31:9'
    >>> str(Span("configs/amd-master.yaml"))
    'configs/amd-master.yaml'
    """

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


class Related(Record):
    """A second place that a finding speaks of, with what is there."""

    span: Span
    note: str


class Finding(Record):
    """One fault: ``rule`` is its stable id, ``message`` says what and why, ``fix`` what to do about it."""

    rule: str
    message: str
    fix: str = ""
    span: Span | None = None
    severity: Severity = Severity.ERROR
    related: tuple[Related, ...] = ()

    def __str__(self) -> str:
        where = f"{self.span}: " if self.span else ""
        kind = "warning: " if self.severity is Severity.WARNING else ""
        fix = f" fix: {self.fix}" if self.fix else ""
        also = "".join(f" ({related.span}: {related.note})" for related in self.related)
        return f"{where}{kind}{self.rule}: {self.message}{also}{fix}"


def errors_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that refuse the input."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sorted by place, without exact repetitions: one cause reached on two ways is told once."""
    return sorted(
        dict.fromkeys(findings), key=lambda finding: (finding.span or Span(""), finding.rule, finding.message)
    )


def one_line(text: str) -> str:
    r"""Text that quotes what somebody wrote, as one line that a terminal shows and GitHub Actions does not obey.

    A runner obeys ``::command::`` at the beginning of a line and ``##[command]`` anywhere in it.

    >>> one_line("as it is"), one_line("a\n::add-mask::b"), one_line(" ::error::x"), one_line("##[error]")
    ('as it is', 'a\\n::add-mask::b', ': :error::x', '# #[error]')
    """
    text = printable(text).replace("##[", "# #[")
    return f": :{text.lstrip()[2:]}" if text.lstrip().startswith("::") else text


def printable(text: str) -> str:
    r"""Text with every character to be seen: what breaks lines, turns text around or hides it is written out.

    >>> printable("a\u202eb")
    'a\\u202eb'
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def did_you_mean(wrong: str, known: Iterable[str], *, limit: int = 3, list_all: int = 12) -> str:
    """The near names, or else all of them when they are few enough to read.

    >>> did_you_mean("conc-lst", ["conc-list", "kv-offloading", "tp"])
    'did you mean conc-list?'
    >>> did_you_mean("zz", ["tp", "ep"])
    'known: ep, tp'
    """
    from difflib import get_close_matches

    names = sorted(set(known))
    folded = {name.casefold(): name for name in names}
    near = [folded[name] for name in get_close_matches(wrong.casefold(), folded, n=limit, cutoff=0.6)]
    if near:
        return f"did you mean {' or '.join(near)}?"
    if not names:
        return "none is known"
    shown = names if len(names) <= list_all else [*names[:list_all], f"… {len(names) - list_all} more"]
    return f"known: {', '.join(shown)}"
