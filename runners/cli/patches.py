"""``python -m runners patches``: the vendored patches of srt-slurm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import runners
from runners.pin import SUBMODULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.findings import Finding
    from runners.patches import Judgement

__all__ = ["patches"]

_PACKAGE: Final = Path(runners.__file__).parent
_FOLDER: Final = click.Path(file_okay=False, path_type=Path)

_patches_option = click.option(
    "--patches", "folder", type=_FOLDER, default=_PACKAGE / "srt-slurm" / "patches", help="Folder of patches."
)
_repository_option = click.option(
    "--repository", type=_FOLDER, default=_PACKAGE.parent, help="Checkout whose HEAD records the pin."
)
_submodule_option = click.option(
    "--submodule", default=SUBMODULE, show_default=True, help="Path of the submodule in the repository."
)
_drift_option = click.option("--allow-drift", is_flag=True, help="Take the submodule as it is, and say so.")
_format_option = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output."
)


@click.group()
def patches() -> None:
    """The patches that teach the pinned srt-slurm what it lacks."""


@patches.command("list")
@_patches_option
@_format_option
def list_(folder: Path, form: str) -> None:
    """Show the patches in the order of application."""
    from runners.series import load_series

    series = load_series(folder)
    rows = [
        {
            "number": entry.number,
            "file": entry.name,
            "sha256": entry.patch.sha256,
            "files": len(entry.patch.changes),
            "upstream": entry.upstream,
            "why": entry.why,
        }
        for entry in series.entries
    ]
    _print(form, rows, ("file", "files", "upstream", "why"))


@patches.command()
@_patches_option
@_repository_option
@_submodule_option
@_drift_option
@_format_option
def check(folder: Path, repository: Path, submodule: str, allow_drift: bool, form: str) -> None:
    """Judge every patch on the pin: it applies, is in the pin already, or conflicts."""
    from matrix.errors import RefusedError
    from runners.patches import judge
    from runners.pin import read_pin, require
    from runners.series import pin_findings, read_series

    pin = read_pin(repository, submodule)
    series, findings = read_series(folder)
    try:
        warnings = require(pin, allow_drift=allow_drift)
    except RefusedError as error:
        raise RefusedError([*error.findings, *findings]) from None
    if series is None:
        raise RefusedError(findings)
    findings += pin_findings(series, pin.commit)
    judgements = judge(series, pin.folder, pin.base)
    _report(judgements, form)
    _tell(warnings)
    refused = [*findings, *(finding for judgement in judgements for finding in judgement.findings)]
    if refused:
        raise RefusedError(refused)


@patches.command()
@click.argument("target", metavar="DIR", type=_FOLDER)
@_patches_option
@_repository_option
@_submodule_option
@_drift_option
@click.option("--up-to", type=int, metavar="NUMBER", help="Leave out the patches with a higher number.")
def apply(target: Path, folder: Path, repository: Path, submodule: str, allow_drift: bool, up_to: int | None) -> None:
    """Apply all patches to the repository at DIR, or none.

    DIR is a clean clone at the pin; where there is none yet, it is made from the submodule.
    """
    from matrix.errors import RefusedError
    from runners.patches import apply as apply_series
    from runners.patches import patched_checkout
    from runners.pin import read_pin, require
    from runners.series import load_series, pin_findings

    series = load_series(folder)
    if up_to is not None:
        series = series.up_to(up_to)
    facts: dict[str, Any] = {}
    if target.exists():
        applied = apply_series(series, target)
    else:
        pin = read_pin(repository, submodule)
        _tell(require(pin, allow_drift=allow_drift))
        if not allow_drift and (unlike := pin_findings(series, pin.commit)):
            raise RefusedError(unlike)
        applied = patched_checkout(series, pin.folder, pin.base, target)
        facts = {"pin": pin.commit, "modified-in-submodule": list(pin.modified)}
    facts |= {"base": applied.base, "tree": applied.tree, "patches": dict(applied.patches)}
    click.echo(json.dumps(facts, indent=2))


@patches.command()
@click.argument("tree", metavar="DIR", type=_FOLDER)
@click.option("--patch", "name", help="File name or number of the patch; the last one by default.")
@click.option("--upstream", default="", help="Address of the pull request of a new patch.")
@click.option("--why", default="", help="Reason for a new patch, in one sentence.")
@_patches_option
@_format_option
def refresh(tree: Path, name: str | None, upstream: str, why: str, folder: Path, form: str) -> None:
    """Make a patch again from the edited work tree at DIR.

    DIR has the pin as HEAD and holds the patches up to the one to make, plus the edits; `apply DIR --up-to NUMBER`
    makes such a tree. Patches behind it are carried along where the edits leave them room.
    """
    from matrix.errors import RefusedError
    from runners.refresh import refresh as make_again

    done = make_again(folder, tree, name, upstream=upstream, why=why)
    _report(done.judgements, form)
    click.echo(f"written: {', '.join(done.written) or 'nothing, the patch is as it was'}", err=True)
    refused = [finding for judgement in done.judgements for finding in judgement.findings]
    if refused:
        raise RefusedError(refused)


def _report(judgements: Sequence[Judgement], form: str) -> None:
    rows = [
        {"file": each.entry.name, "verdict": each.verdict.value, "sha256": each.entry.patch.sha256}
        for each in judgements
    ]
    _print(form, rows, ("file", "verdict"))


def _print(form: str, rows: list[dict[str, Any]], columns: Sequence[str]) -> None:
    if form == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    from tabulate import tabulate

    click.echo(
        tabulate(
            [[row[name] for name in columns] for row in rows],
            headers=columns,
            maxcolwidths=[None, None, None, 60][: len(columns)],
        )
    )


def _tell(findings: Sequence[Finding]) -> None:
    for finding in findings:
        click.echo(str(finding), err=True)
