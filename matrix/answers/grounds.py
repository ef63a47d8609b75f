"""What can be asked about: a search space and what is selected of it, the plan of a change, a plan file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matrix.answers.absence import absence_of
from matrix.answers.change import absent_from_change, present_in_change
from matrix.answers.edit import Action, Edit
from matrix.answers.nearest import nearest
from matrix.answers.presence import presence_of
from matrix.answers.verdicts import Absence, Cause, Fact, Presence, placed
from matrix.changelog.keys import pattern_matches
from matrix.findings import Span
from matrix.plan.reuse import COMMAND
from matrix.points.parts import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from matrix.answers.change import Change
    from matrix.answers.space import Space
    from matrix.changelog.entries import Log
    from matrix.config.source import Document
    from matrix.plan.labels import Registry
    from matrix.plan.sweep import Written

__all__ = ["OfChange", "OfPlan", "OfSpace"]


class OfSpace:
    """A search space; changelog, labels and eval policy where the repository has them."""

    def __init__(
        self,
        space: Space,
        where: str,
        log: Log | None = None,
        registry: Registry | None = None,
        evals: Document | None = None,
    ) -> None:
        self.space = space
        self.where = where
        self.log = log
        self.registry = registry
        self.evals = evals

    def ids(self) -> Iterable[str]:
        """Every point, selected or not."""
        return self.space.whole

    def holds(self, name: str) -> bool:
        """Whether an id is selected."""
        return name in self.space.selected

    def answer(self, name: str) -> Presence | Absence:
        """Whether and why an id is selected."""
        point = self.space.selected.get(name)
        if point is None:
            return absence_of(name, self.space, self.evals)
        return presence_of(point, self.space, self.log, self.registry)


class OfChange:
    """The plan of a change; ``place`` tells places of its two revisions as people know them."""

    def __init__(
        self, change: Change, where: str, place: Callable[[Span], Span], unlabeled: Cause | None = None
    ) -> None:
        self.change = change
        self.where = where
        self.place = place
        self.unlabeled = unlabeled

    def ids(self) -> Iterable[str]:
        """Every point of the plan, and of the head's search space."""
        return dict.fromkeys((*self.change.points, *self.change.head.whole))

    def holds(self, name: str) -> bool:
        """Whether an id is planned."""
        return self.unlabeled is None and name in self.change.points

    def answer(self, name: str) -> Presence | Absence:
        """Whether and why an id is planned."""
        if self.unlabeled is not None:
            return Absence(name, (self.unlabeled,))
        found = present_in_change(name, self.change) or absent_from_change(name, self.change)
        return placed(found, self.place)


class OfPlan:
    """A plan file; ``change`` is the change that it was made of, where this clone has its commits."""

    def __init__(self, written: Written, name: str, change: OfChange | None, registry: Registry | None) -> None:
        self.written = written
        self.where = name
        self.change = change
        self.registry = registry

    def ids(self) -> Iterable[str]:
        """Every point of the plan, what it left out, and the search space where that is known."""
        left = (one["what"] for one in self.written.record.get("left-out", ()) if parts_of(one["what"]))
        return dict.fromkeys((*self.written.rows, *left, *(self.change.ids() if self.change is not None else ())))

    def holds(self, name: str) -> bool:
        """Whether the plan runs an id."""
        return name in self.written.rows

    def answer(self, name: str) -> Presence | Absence:
        """Whether and why the plan runs an id."""
        row = self.written.rows.get(name)
        if row is not None:
            return self._present(name, row)
        record = self.written.record
        if record.get("decision", "run") != "run":
            return Absence(name, tuple(self._decided()))
        for one in record.get("left-out", ()):
            if one["what"] == name and (one["rule"] == "reuse" or self.change is None):
                edit = (Edit(Action.COMMENT, old=COMMAND),) if one["rule"] == "reuse" else ()
                return Absence(name, (Cause(one["rule"], one["reason"], None, edit),))
        if self.change is not None:
            return self.change.answer(name)
        return self._alone(name)

    def _present(self, name: str, row: dict[str, Any]) -> Presence:
        found = self.change.answer(name) if self.change is not None else None
        known = found if isinstance(found, Presence) else Presence(name, row, kept=tuple(self._entries(row)))
        return known._replace(kept=(*known.kept, *self._facts(name)))

    def _entries(self, row: dict[str, Any]) -> Iterable[Fact]:
        key = row.get("config-key", "")
        for number, entry in enumerate(self.written.record.get("changelog", {}).get("entries", ()), 1):
            if _names(entry, key):
                yield Fact("changelog", f"entry {number} of the change names its config: {entry['pr-link']}")

    def _facts(self, name: str) -> Iterable[Fact]:
        record = self.written.record
        if record.get("reason"):
            yield Fact("decision", f"{record.get('decision', 'run')}: {record['reason']}")
        mode = record.get("mode")
        if mode and (self.change is None or self.change.change.mode is None):
            yield Fact("label", f"{mode['label']} runs it")
        approval = record.get("approval")
        if approval:
            who, held = approval.get("by"), approval.get("permission")
            said = f"by {who}, who has {held} permission, for commit {str(approval.get('head_sha'))[:12]}"
            yield Fact("approval", said)
        for receipt in record.get("receipts", ()):
            yield Fact("label", f"{receipt.get('label')} was set by {receipt.get('by')} at {receipt.get('at')}")
        if record.get("canary") == name:
            yield Fact("canary", "it runs first, and the rest after its success")

    def _decided(self) -> Iterable[Cause]:
        record = self.written.record
        reason = record.get("reason") or "the plan does not say why"
        first = next(iter(self.registry.primaries.values()), None) if self.registry is not None else None
        # Of a draft, a fork and the like the reason speaks of other things; there a label would change nothing.
        about = record.get("mode") is None and first is not None and ("label" in reason or first.name in reason)
        edits = (Edit(Action.LABEL, new=first.name),) if about and first is not None else ()
        yield Cause("decision", f"{record['decision']}: {reason}", None, edits)
        for one in record.get("findings", ()):
            if one.get("severity") == "error":
                place = Span(one["file"], one["line"], one["column"]) if "file" in one else None
                yield Cause(one["rule"], f"{one['message']} fix: {one['fix']}" if one["fix"] else one["message"], place)

    def _alone(self, name: str) -> Absence:
        """The plan does not have it, and what it was made of is not here."""
        record = self.written.record
        entries = record.get("changelog", {}).get("entries", ())
        key = name.partition("--")[0]
        keys = list(dict.fromkeys(row.get("config-key", "") for row in self.written.rows.values()))
        near = nearest(name, parts_of(name), self.written.rows, keys)
        if entries and not any(_names(entry, key) for entry in entries):
            return Absence(name, (Cause("changelog", f"no entry of the change names {key}"),), True, near)
        commit = (record.get("head") or {}).get("commit", "")
        reason = "the plan neither has it nor left it out"
        reason += f"; ask in a clone that has {commit[:12]} for the line" if commit else ""
        return Absence(name, (Cause("plan", reason),), False, near)


def _names(entry: dict[str, Any], key: str) -> bool:
    return any(pattern_matches(pattern, key) for pattern in entry["config-keys"])
