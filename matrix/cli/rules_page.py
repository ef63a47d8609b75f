"""``python -m matrix.cli.rules_page``: writes ``docs/checks.md``, or says that it is stale."""

from __future__ import annotations

from pathlib import Path

import click

from matrix.cli.command import option

__all__ = ["rules_page"]


@click.command()
@option("--write/--check", "write", default=False, help="Write the page, or compare it. [default: compare]")
@click.argument("page", type=click.Path(path_type=Path), default="docs/checks.md")
def rules_page(*, write: bool, page: Path) -> int:
    """Write PAGE from the docstrings of the checks, or show how it differs and exit 1."""
    from difflib import unified_diff

    from matrix.report.rules_page import rules_page as text_of

    wanted = text_of()
    found = page.read_text(encoding="utf-8") if page.is_file() else ""
    if write and found != wanted:
        _replace(page, wanted)
    if write or found == wanted:
        return 0
    click.echo("".join(unified_diff(found.splitlines(True), wanted.splitlines(True), str(page), "as it should be")))
    click.echo(f"{page} is stale; mend it with python -m matrix.cli.rules_page --write {page}", err=True)
    return 1


def _replace(page: Path, text: str) -> None:
    """Whole or not at all: written beside the page, then moved over it."""
    beside = page.with_name(f".{page.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(page)


if __name__ == "__main__":
    from matrix.cli.main import finish, run

    finish(run(rules_page, prog="python -m matrix.cli.rules_page"))
