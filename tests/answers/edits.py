"""Do what an answer says: the edit of a file, a command line, or the labels of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matrix.answers.edit import Action, Edit
from matrix.findings import Span

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["apply", "edit_of", "edited", "relabeled", "rewritten"]


def edit_of(record: dict[str, Any]) -> Edit:
    """The edit of a JSON answer."""
    place = record["place"]
    span = Span(place["file"], place["line"], place["column"]) if place is not None else None
    return Edit(Action(record["action"]), span, record["old"], record["new"], record["note"])


def edited(text: str, edit: Edit) -> str:
    """The text of a file after an edit. What the edit says is there has to be there."""
    assert edit.place is not None
    lines = text.splitlines(keepends=True)
    before = "".join(lines[: edit.place.line - 1])
    match edit.action:
        case Action.ADD:
            head = "".join(lines[: edit.place.line])
            assert len(lines) >= edit.place.line
            return head + edit.new + text[len(head) :]
        case Action.REMOVE:
            assert text[len(before) :].startswith(edit.old)
            return before + text[len(before) + len(edit.old) :]
        case Action.WRITE:
            start = len(before) + edit.place.column - 1
            assert text[start:].startswith(edit.old), (text[start : start + 80], edit)
            return text[:start] + edit.new + text[start + len(edit.old) :]
        case _:
            raise AssertionError(edit)


def apply(edit: Edit, folder: Path) -> None:
    """Edit a file of a folder."""
    assert edit.place is not None
    path = folder / edit.place.file
    path.write_text(edited(path.read_text(encoding="utf-8"), edit), encoding="utf-8")


def rewritten(words: list[str], edit: Edit) -> list[str]:
    """A command line after an edit of its options."""
    assert edit.action is Action.OPTION
    old, new = edit.old.split(), edit.new.split()
    if not old:
        return [*words, *new]
    at = next(i for i in range(len(words)) if words[i : i + len(old)] == old)
    return [*words[:at], *new, *words[at + len(old) :]]


def relabeled(labels: list[str], edit: Edit) -> list[str]:
    """The labels of a pull request after an edit."""
    assert edit.action is Action.LABEL
    assert not edit.old or edit.old in labels
    kept = [label for label in labels if label != edit.old]
    return [*kept, *([edit.new] if edit.new else [])]
