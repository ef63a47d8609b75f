"""``matrix init``: the files that make a repository ready."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from matrix.cli.command import option

if TYPE_CHECKING:
    from matrix.config.settings import Settings
    from matrix.skeleton import Piece

__all__ = ["init"]


@click.command(short_help="Make a repository ready.")
@click.argument("folder", metavar="[DIR]", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@option("--repository", metavar="OWNER/NAME", help="On GitHub. [default: by the remote origin]")
@option("--dry-run", "dry", is_flag=True, help="Say what would be done, and do nothing.")
def init(*, folder: Path, repository: str | None, dry: bool) -> int:
    """Write a small example of every file: settings, master config, recipes, golden curve, log, labels, workflows.

    A file that is there is never touched. Where a master config is there, the example stays away, and the rest comes.
    """
    from matrix.config.settings import Settings, find_settings
    from matrix.skeleton import below_top, pieces, remote_repository, write

    if repository is not None and not _is_repository(repository):
        message = f"--repository takes owner/name, and not {repository!r}."
        raise click.UsageError(message)
    settings = find_settings(str(folder))
    if settings.root != str(folder):
        settings = Settings()  # those of a repository around this folder
    workflows = _workflows(folder, settings)
    skeleton = pieces(folder, repository or remote_repository(folder), workflows, settings.masters)
    if not dry:
        write(folder, skeleton)
    for piece in skeleton:
        click.echo(_line(piece, dry=dry))
    if hint := _settings_hint(folder, skeleton):
        click.echo(hint, err=True)
    if inside := below_top(folder):
        message = f"{inside} is not the top of its repository, and only there GitHub looks for workflows and pre-commit"
        click.echo(f"matrix: {message} for its hooks: move .github and .pre-commit-config.yaml up.", err=True)
    return 0


def _workflows(folder: Path, settings: Settings) -> dict[str, str]:
    """The workflows for the labels that are there, or else for those that come now."""
    from matrix.plan.labels import load_labels
    from matrix.plan.workflows import render
    from matrix.skeleton import TEMPLATES

    labels = settings.labels or str(TEMPLATES / "configs" / "labels.yaml")
    place = Path(settings.workflows).relative_to(folder) if settings.workflows else Path(".github/workflows")
    return {(place / workflow.name).as_posix(): workflow.text for workflow in render(load_labels(labels), folder)}


def _is_repository(text: str) -> bool:
    import re

    return re.fullmatch(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", text) is not None


def _line(piece: Piece, *, dry: bool) -> str:
    from matrix.skeleton import Fate

    done = {Fate.WRITE: "would write" if dry else "wrote", Fate.KEEP: "kept", Fate.LEAVE: "left out"}[piece.fate]
    return f"{done} {piece.path}{f': {piece.why}' if piece.why else ''}"


def _settings_hint(folder: Path, skeleton: tuple[Piece, ...]) -> str:
    """What to add by hand to a pyproject.toml that was there; empty where nothing is to be added."""
    from matrix.skeleton import Fate

    [settings] = [piece for piece in skeleton if piece.path == "pyproject.toml"]
    if settings.fate is not Fate.KEEP:
        return ""
    if "[tool.matrix" in (folder / settings.path).read_text(encoding="utf-8", errors="replace"):
        return ""
    lines = [line for line in settings.text.splitlines() if "repository =" in line]
    add = "\n".join(["[tool.matrix]", *lines])
    return f"matrix: pyproject.toml is there and is not touched. Add to it:\n\n{add}\n"
