"""What is wrong with a file, collected while it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matrix.config.nodes import Mark
    from matrix.findings import Finding, Related, Span

__all__ = ["BrokenError", "Complaints"]


class BrokenError(Exception):
    """The rest of the file cannot be read; never leaves its reader."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


class Complaints:
    """The findings about one file, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.findings: list[Finding] = []

    def span(self, mark: Mark | None) -> Span:
        """The place of a mark; the whole file without one."""
        from matrix.findings import Span

        return Span(self.name, mark.line + 1, mark.column + 1) if mark is not None else Span(self.name)

    def finding(
        self, mark: Mark | None, rule: str, message: str, fix: str, related: tuple[Related, ...] = ()
    ) -> Finding:
        """A finding at a mark, which is not among the others yet."""
        from matrix.findings import Finding

        return Finding(rule=rule, message=message, fix=fix, span=self.span(mark), related=related)

    def complain(self, mark: Mark | None, rule: str, message: str, fix: str, related: tuple[Related, ...] = ()) -> None:
        """One more finding."""
        self.findings.append(self.finding(mark, rule, message, fix, related))

    def broken(self, mark: Mark | None, rule: str, message: str, fix: str) -> BrokenError:
        """What ends the reading, to be raised."""
        return BrokenError(self.finding(mark, rule, message, fix))
