"""The errors that end a command, each with its exit status.

The core raises; ``matrix.cli.main`` turns an error into text on stderr and an exit status, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matrix.findings import Finding

__all__ = ["MatrixError", "NothingSelectedError", "RefusedError", "UsageError"]


class MatrixError(Exception):
    """Base of every error that a user can cause. ``exit_status`` is what the process ends with."""

    exit_status: ClassVar[int] = 1


class RefusedError(MatrixError):
    """An input is refused: carries every finding of the pass that refused it, warnings included."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(findings)
        super().__init__("\n".join(map(str, self.findings)))


class UsageError(MatrixError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_status = 2


class NothingSelectedError(MatrixError):
    """Everything was read and understood, and no point is left."""

    exit_status = 3
