"""What `matrix check` refuses in the configs of a plan: nothing runs of a config that a check refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.findings import errors_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.config.model import Config
    from matrix.findings import Finding
    from matrix.workspace import Workspace

__all__ = ["faults_of", "with_checks"]


def faults_of(configs: Sequence[Config], workspace: Workspace) -> tuple[Finding, ...]:
    """The errors of every check over whole configs, waived ones aside; warnings are `matrix check`'s to tell."""
    if not configs:
        return ()
    from matrix.checks.registry import check_configs
    from matrix.recipes.golden import CurveBook

    golden = workspace.settings.golden
    report = check_configs(configs, workspace.facts, curves=None if golden is None else CurveBook(golden))
    return errors_of(report.findings)


def with_checks(expanded: Iterable[Finding], checked: Sequence[Finding]) -> tuple[Finding, ...]:
    """What expansion found and what the checks found; a fault that both know is told once, as a check tells it."""
    told = {(finding.rule, finding.span) for finding in checked}
    return (*(finding for finding in expanded if (finding.rule, finding.span) not in told), *checked)
