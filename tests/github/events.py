"""Event files of pull request 77, and the label registry of the shipped configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from matrix.plan.event import Event, Kind
from matrix.plan.labels import load_labels
from tests.github.server import REPOSITORY

if TYPE_CHECKING:
    from matrix.plan.labels import Registry

ROOT: Final = Path(__file__).resolve().parents[2]
HEAD: Final = "c" * 40
FULL: Final = "full-sweep-enabled"


def registry() -> Registry:
    return load_labels(str(ROOT / "configs" / "labels.yaml"))


def payload(head: str = HEAD, base: str = "b" * 40, label: str = FULL) -> dict[str, Any]:
    """What GitHub sends when Ada sets a label."""
    return {
        "action": "labeled",
        "number": 77,
        "label": {"name": label},
        "sender": {"login": "ada"},
        "repository": {"full_name": REPOSITORY},
        "pull_request": {
            "number": 77,
            "draft": False,
            "merged": False,
            "labels": [{"name": label}],
            "head": {"sha": head, "repo": {"full_name": REPOSITORY}},
            "base": {"sha": base},
        },
    }


def event(action: str = "labeled", label: str | None = FULL, *, sender: str = "ada", sha: str = HEAD) -> Event:
    """Label ``label`` is on the pull request; ``labeled`` is about it."""
    return Event(
        kind=Kind.PULL_REQUEST,
        repository=REPOSITORY,
        action=action,
        number=77,
        head_sha=sha,
        head_repository=REPOSITORY,
        labels=() if label is None else (label,),
        label=label if action == "labeled" else None,
        sender=sender,
    )
