"""What a launch works with: what all launches of a command share, and one job on its way."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from matrix.findings import Finding, Severity, Span
from runners.follow import FollowPatience
from runners.job import JobId, JobRecord
from runners.prepare import Wishes
from runners.receipt import Receipt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runners.display import Display
    from runners.signals import Clock
    from runners.slurm import Slurm

__all__ = ["Flight", "Launch", "fault"]

_TAGGED_SECONDS: Final = 10.0
_LAG_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What launches share. ``keep``: leave the job's folder where it is, also after a success."""

    repository: Path
    results: Path
    environ: Mapping[str, str]
    slurm: Slurm
    clock: Clock
    display: Display
    wishes: Wishes = field(default_factory=Wishes)
    patience: FollowPatience = field(default_factory=FollowPatience)
    keep: bool = False
    tagged: float = _TAGGED_SECONDS
    lag: float = _LAG_SECONDS

    def tell(self, text: str) -> None:
        """Show one line of ours."""
        self.display.note(text)


@dataclass(slots=True, kw_only=True)
class Flight:
    """A job on its way, ours or one that an earlier launch left behind."""

    receipt: Receipt
    folder: Path
    """The point's."""
    job: JobId
    output: Path
    since: datetime
    row: Mapping[str, Any]
    ended: JobRecord | None = None
    """Slurm's last record, of a job whose results alone are still to be kept."""

    @property
    def log(self) -> Path:
        """What the batch script writes."""
        return self.output / "logs" / f"sweep_{self.job}.log"


def fault(rule: str, message: str, place: Path, fix: str = "") -> Finding:
    """A fault of a launch at a place on disk."""
    return Finding(rule=rule, message=message, fix=fix, span=Span(str(place)), severity=Severity.ERROR)
