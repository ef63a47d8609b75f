"""GitHub, as the environment of a workflow names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matrix.github import GitHub
    from matrix.sticky import Sticky

__all__ = ["forge_of", "number_of", "sticky_of"]

_TOKEN: Final = "GITHUB_TOKEN"  # noqa: S105 - where it is, not what it is


def forge_of(repository: str, environment: Mapping[str, str], *, minutes: int = 15) -> GitHub:
    """A repository by ``GITHUB_TOKEN`` and ``GITHUB_API_URL``; ``minutes`` is how long all its answers may take."""
    from matrix.github import API, GitHub
    from matrix.retry import Patience

    api = environment.get("GITHUB_API_URL") or API
    return GitHub(repository, environment.get(_TOKEN), api=api, patience=Patience(total=minutes * 60.0))


def sticky_of(name: str, environment: Mapping[str, str], author: str | None = None) -> Sticky:
    """The comment of this name, written by this run; outside of a workflow by the oldest run that there can be."""
    from matrix.sticky import BOT, Sticky

    run, attempt = (number_of(environment.get(key, "")) for key in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"))
    return Sticky(name, run, attempt, author or BOT)


def number_of(text: str) -> int:
    """A number of the environment; 0 where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0
