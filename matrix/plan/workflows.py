"""The workflows of a repository, rendered from the templates of this package, and what became of them since.

A template has three words to fill in: the labels, the options of a dispatch, and what is installed. The result is the
same for 5 points and for 50,000. A newer pin of an action is kept: whoever raises pins need not wait for this package.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from matrix import __version__
from matrix.findings import Finding, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.plan.labels import Registry

__all__ = ["TEMPLATES", "State", "Workflow", "compare", "render"]

TEMPLATES: Final = Path(__file__).resolve().parents[1] / "templates" / "workflows"
_HEAD: Final = "# Written by `matrix workflows write`."
_OURS: Final = frozenset({"ci.yml"})
"""What only the repository of this package itself has: its tests."""

_USES: Final = re.compile(r"(?m)^(\s*(?:- )?uses: )([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # v(\d+(?:\.\d+)*)\s*$")


class Workflow(NamedTuple):
    """A workflow as its template has it."""

    name: str
    text: str


class State(NamedTuple):
    """A workflow against the file of its name. ``text`` is what the file should hold, ``found`` what it does.

    ``foreign``: somebody else wrote the file; it is never written over.
    """

    path: Path
    text: str
    found: str | None
    foreign: bool = False

    @property
    def right(self) -> bool:
        """Whether there is nothing to do."""
        return not self.foreign and self.found == self.text

    def difference(self) -> Iterator[str]:
        """The lines of a unified diff from what is there to what should be."""
        from difflib import unified_diff

        before = (self.found or "").splitlines()
        name = str(self.path) if self.found is not None else "/dev/null"
        yield from unified_diff(before, self.text.splitlines(), name, str(self.path), lineterm="")

    def finding(self) -> Finding:
        """What is told where it is not right."""
        span = Span(str(self.path))
        if self.foreign:
            message = f"this file was not written by matrix, and a workflow of its name is needed ({self.path.name})."
            return Finding(rule="workflow-foreign", message=message, fix="rename it, or remove it", span=span)
        what = "this workflow is missing" if self.found is None else "this workflow differs from its template"
        return Finding(rule="workflow-drift", message=f"{what}.", fix="matrix workflows write", span=span)


def render(registry: Registry, root: Path) -> list[Workflow]:
    """The workflows of a repository; ``root`` is its top folder, which may be that of this package's own sources."""
    own = (root / "matrix" / "templates" / "workflows").is_dir()
    words = {
        "@OURS@": json.dumps(list(registry.ours)),
        "@KNOWN@": json.dumps([*registry.ours, *(label.name for label in registry.refused.values())]),
        "@PRIMARIES@": json.dumps([label.name for label in registry.primaries.values()]),
        "@INSTALL@": "." if own else f"matrix-runner=={__version__}",
    }
    found = []
    for path in sorted(TEMPLATES.glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(word, value)
        if own or path.name not in _OURS:
            found.append(Workflow(path.name, text))
    return found


def compare(folder: Path, workflows: list[Workflow]) -> list[State]:
    """Each workflow against the file of its name in a folder."""
    return [_state(folder / workflow.name, workflow.text) for workflow in workflows]


def _state(path: Path, text: str) -> State:
    try:
        found = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return State(path, text, None)
    except (OSError, UnicodeDecodeError):
        return State(path, text, "", foreign=True)
    if not found.startswith(_HEAD):
        return State(path, text, found, foreign=True)
    return State(path, _with_newer_pins(text, found), found)


def _with_newer_pins(text: str, found: str) -> str:
    """The text with the pins of the file where the file's are newer, each action by the newest of its pins."""
    newest: dict[str, tuple[tuple[int, ...], str]] = {}
    for source in (text, found):
        for match in _USES.finditer(source):
            version = tuple(map(int, match[4].split(".")))
            if match[2] not in newest or version > newest[match[2]][0]:
                newest[match[2]] = (version, f"{match[3]} # v{match[4]}")
    return _USES.sub(lambda match: f"{match[1]}{match[2]}@{newest[match[2]][1]}", text)
