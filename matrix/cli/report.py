"""What every command does with findings: tell the warnings, refuse on errors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.findings import Finding

__all__ = ["tell"]


def tell(findings: Sequence[Finding]) -> None:
    """Print the warnings on stderr.

    Raises:
        RefusedError: one of the findings is an error; it carries them all.
    """
    if not findings:
        return
    from matrix.errors import RefusedError
    from matrix.findings import errors_of, in_order
    from matrix.report.findings import print_findings

    if errors_of(findings):
        raise RefusedError(findings)
    print_findings(in_order(findings), sys.stderr)
