"""`Registry`: the labels that start a sweep, those that change it, and those that are refused by name.

GitHub compares label names without case, and so does this. A name outside ASCII is never one of ours: letters that fold
to ASCII would mean one thing here and another in a workflow expression.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.source import Map, load
from matrix.errors import RefusedError
from matrix.findings import Finding, did_you_mean
from matrix.forge import Permission

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matrix.config.source import Document
    from matrix.plan.claims import Options

__all__ = ["Effect", "Mode", "Modifier", "Permission", "Primary", "Refused", "Registry", "load_labels", "registry_of"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/:-]{0,49}\Z")
"""GitHub allows 50 characters. Quotes are left out: names stand in workflow expressions."""


class Effect(StrEnum):
    """What a modifier changes."""

    ALL_EVALS = "all-evals"
    EVALS_ONLY = "evals-only"
    OVER_BUDGET = "over-budget"


class Primary(NamedTuple):
    """A label that starts a sweep."""

    name: str
    meaning: str
    canary: bool
    fail_fast: bool
    trim: bool
    set_by: Permission


class Modifier(NamedTuple):
    """A label that changes a sweep."""

    name: str
    meaning: str
    effect: Effect
    set_by: Permission


class Refused(NamedTuple):
    """A label that people know from elsewhere."""

    name: str
    reason: str
    instead: str


class Mode(NamedTuple):
    """How a sweep runs: what its primary label says, and what the modifiers change."""

    label: str
    canary: bool
    fail_fast: bool
    trim: bool
    all_evals: bool = False
    evals_only: bool = False
    over_budget: bool = False

    @property
    def options(self) -> Options:
        """What it asks of the planner."""
        from matrix.plan.claims import Options

        return Options(self.trim, self.all_evals, self.evals_only)


class Registry(NamedTuple):
    """Every label that means something, by its name in lower case."""

    primaries: dict[str, Primary]
    modifiers: dict[str, Modifier]
    refused: dict[str, Refused]
    skip_word: str
    name: str

    @property
    def ours(self) -> tuple[str, ...]:
        """The names of the labels that start or change a sweep, as the file spells them and in its order."""
        return (
            *(label.name for label in self.primaries.values()),
            *(label.name for label in self.modifiers.values()),
        )

    def find(self, text: str) -> Primary | Modifier | Refused | None:
        """The label with this name, whatever its case."""
        key = _folded(text)
        return self.primaries.get(key) or self.modifiers.get(key) or self.refused.get(key)

    def near(self, text: str) -> str:
        """The label that somebody may have meant; empty when none is near."""
        hint = did_you_mean(text, self.ours)
        return hint if hint.startswith("did you mean") else ""

    def mode(self, primary: Primary, modifiers: Sequence[Modifier] = ()) -> Mode:
        """The mode of a primary label with modifiers."""
        effects = {modifier.effect for modifier in modifiers}
        return Mode(
            primary.name,
            primary.canary and Effect.EVALS_ONLY not in effects,
            primary.fail_fast,
            primary.trim,
            Effect.ALL_EVALS in effects,
            Effect.EVALS_ONLY in effects,
            Effect.OVER_BUDGET in effects,
        )


def load_labels(path: str) -> Registry:
    """The registry of a file.

    Raises:
        RefusedError: with every fault of the file.
    """
    return registry_of(load(path, what="label registry"))


def registry_of(document: Document) -> Registry:
    """The registry of a parsed file.

    Raises:
        RefusedError: with every fault of the file.
    """
    reader = _Reader(document)
    registry = reader.registry()
    if reader.findings:
        raise RefusedError(reader.findings)
    return registry


_Fields = dict[str, tuple[type, frozenset[str] | None]]
_SETTERS: Final = frozenset({"write", "maintain", "admin"})
_PRIMARY: Final[_Fields] = {
    "meaning": (str, None),
    "canary": (bool, None),
    "fail-fast": (bool, None),
    "trim": (bool, None),
    "set-by": (str, _SETTERS),
}
_MODIFIER: Final[_Fields] = {
    "meaning": (str, None),
    "effect": (str, frozenset(Effect)),
    "set-by": (str, _SETTERS),
}
_REFUSED: Final[_Fields] = {"reason": (str, None), "instead": (str, None)}
_KINDS: Final = {str: "text", bool: "true or false", Map: "a mapping"}
_TOP: Final = ("version", "skip-word", "primary", "modifiers", "refused")


class _Reader:
    """Collects the faults of one file; what it returns is meant only where there are none."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.findings: list[Finding] = []
        self.seen: dict[str, str] = {}

    def registry(self) -> Registry:
        root = self.document.root
        if not isinstance(root, Map):
            self.fault("labels-form", "the registry is a mapping.", f"begin with {', '.join(_TOP)}", root)
            return Registry({}, {}, {}, "", self.document.name)
        for key in root:
            if key not in _TOP:
                self.tell("labels-field", f"the registry has no {key}.", did_you_mean(key, _TOP), root, key)
        if type(root.get("version")) is not int or root["version"] != 1:
            self.tell("labels-version", "this form of the file has version 1.", "write version: 1", root, "version")
        skip = root.get("skip-word")
        if not isinstance(skip, str) or len(skip) < 3:
            message = "skip-word is a text of at least 3 characters; less would be in subjects by chance."
            self.tell("labels-value", message, 'write skip-word: "[skip-sweep]"', root, "skip-word")
        if not root.get("primary"):
            message = "no primary label is there, so nothing could start a sweep."
            self.tell("labels-field", message, "add one under primary", root, "primary")
        primary = {
            _folded(name): Primary(
                name, entry["meaning"], entry["canary"], entry["fail-fast"], entry["trim"], Permission(entry["set-by"])
            )
            for name, entry in self.entries(root, "primary", _PRIMARY)
        }
        modifiers = {
            _folded(name): Modifier(name, entry["meaning"], Effect(entry["effect"]), Permission(entry["set-by"]))
            for name, entry in self.entries(root, "modifiers", _MODIFIER)
        }
        refused = {
            _folded(name): Refused(name, entry["reason"], entry["instead"])
            for name, entry in self.entries(root, "refused", _REFUSED)
        }
        return Registry(primary, modifiers, refused, str(skip), self.document.name)

    def entries(self, root: Map, section: str, fields: _Fields) -> Iterator[tuple[str, Map]]:
        """The labels of a section that are right."""
        labels = root.get(section, Map())
        if not isinstance(labels, Map):
            self.tell("labels-form", f"{section} is a mapping of labels.", "write one label a line", root, section)
            return
        for name, entry in labels.items():
            if self.names_well(labels, name) & self.holds(labels, name, entry, fields):
                yield name, entry

    def names_well(self, labels: Map, name: str) -> bool:
        if _NAME.match(name) is None:
            message = f"{name!r} cannot be a label here: 1 to 50 letters, digits, blanks and ._/:- are taken."
            return self.tell("labels-name", message, "choose another name", labels, name)
        if (first := self.seen.get(_folded(name))) is not None:
            message = f"{name} is {first} again: GitHub compares labels without case."
            return self.tell("labels-twice", message, "keep one of them", labels, name)
        self.seen[_folded(name)] = name
        return True

    def holds(self, labels: Map, name: str, entry: Any, fields: _Fields) -> bool:
        if not isinstance(entry, Map):
            fix = f"write {', '.join(fields)} below it"
            return self.tell("labels-form", f"{name} is a mapping.", fix, labels, name)
        good = True
        for key in entry:
            if key not in fields:
                message = f"{name} has no field {key}."
                good = self.tell("labels-field", message, did_you_mean(key, fields), entry, key)
        for key, (kind, allowed) in fields.items():
            value = entry.get(key)
            if key not in entry:
                good = self.tell("labels-field", f"{name} lacks {key}.", f"add {key}", labels, name)
            elif type(value) is not kind or value == "":
                message = f"{name}: {key} takes {_KINDS[kind]}."
                good = self.tell("labels-value", message, f"write {_KINDS[kind]}", entry, key)
            elif allowed is not None and value not in allowed:
                message = f"{name}: {key} is {value!r}."
                good = self.tell("labels-value", message, did_you_mean(str(value), allowed), entry, key)
        return good

    def tell(self, rule: str, message: str, fix: str, node: Map, key: str) -> bool:
        """A fault at a key, or at the mapping that lacks it; False, for the caller to pass on."""
        span = self.document.of_key(node, key)
        self.findings.append(Finding(rule=rule, message=message, fix=fix, span=span))
        return False

    def fault(self, rule: str, message: str, fix: str, node: object) -> None:
        span = self.document.span(getattr(node, "mark", None))
        self.findings.append(Finding(rule=rule, message=message, fix=fix, span=span))


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else text
