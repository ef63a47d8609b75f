"""`Curve`: the golden acceptance lengths of one file, and which runs the file is for.

A length is the mean number of tokens that one step yields, the guaranteed one included, so it lies in [1, k + 1] for k
draft tokens. Curves are not monotone: DSpark falls again behind its sixth token.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.source import Map, Seq, WrittenFloat, load
from matrix.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from matrix.config.source import Document
    from matrix.findings import Finding, Span

__all__ = ["WORD", "Curve", "DraftSampling", "Identity", "Thinking", "read_curve", "short_text"]

WORD: Final = re.compile(r"[a-z0-9_.-]+\Z")
"""A model prefix or a draft method; together they once were a file name."""

_IDENTITY_KEYS: Final = ("model-prefixes", "methods", "draft-model", "draft-sampling")
_IDENTITY_FIX: Final = "write identity: {model-prefixes: [...], methods: [...]}"


class Thinking(StrEnum):
    """The two ways a model is asked; each has values of its own."""

    ON = "thinking_on"
    OFF = "thinking_off"


class DraftSampling(StrEnum):
    """How the draft picks its tokens."""

    GREEDY = "greedy"
    PROBABILISTIC = "probabilistic"


class Identity(NamedTuple):
    """Which runs a curve is for: model prefix and method always, the other two where they decide."""

    model_prefixes: tuple[str, ...]
    methods: tuple[str, ...]
    draft_model: re.Pattern[str] | None = None
    draft_sampling: DraftSampling | None = None

    @property
    def conditions(self) -> int:
        """How many conditions there are besides prefix and method; of two matches the narrower one wins."""
        return (self.draft_model is not None) + (self.draft_sampling is not None)

    def __str__(self) -> str:
        text = f"{'|'.join(self.model_prefixes)} {'|'.join(self.methods)}"
        if self.draft_model is not None:
            text += f", draft model like {self.draft_model.pattern}"
        return text + (f", {self.draft_sampling} draft" if self.draft_sampling is not None else "")


class Curve(NamedTuple):
    """One file. ``modes`` holds the cells that are right, ``faults`` says what is wrong with the others.

    ``identity`` is None where the file has none and goes by its name; ``readable`` is False where nobody can tell which
    runs it is for.
    """

    path: Path
    document: Document | None
    model: str
    identity: Identity | None
    modes: Mapping[str, Mapping[int, Decimal]]
    faults: tuple[Finding, ...]
    readable: bool

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    def span(self, mode: str | None = None, tokens: int | None = None) -> Span:
        """The line of a value, of its mode, or of the file."""
        from matrix.findings import Span

        if self.document is None:
            return Span(str(self.path))
        if mode is None:
            return self.document.span()
        modes = self.document.root[self.model]
        return self.document.of_key(modes, mode) if tokens is None else self.document.of_value(modes[mode], tokens)


def short_text(value: Decimal) -> str:
    """The shortest exact decimal text.

    >>> short_text(Decimal("3.00")), short_text(Decimal("2.78") - 1), short_text(Decimal("10"))
    ('3', '1.78', '10')
    """
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def read_curve(path: Path) -> Curve:
    """Read one curve file. Never raises for bad input: the faults are in the curve."""
    try:
        document = load(path, integer_keys=True, what="golden curve")
    except RefusedError as error:
        return Curve(path, None, "", None, {}, error.findings, readable=False)
    reader = _Reader(document)
    root = document.root
    if not isinstance(root, Map):
        reader.fault(
            None, None, "golden-model", "a curve is a mapping.", "write a model key with thinking_on: {1: ...} below it"
        )
        return Curve(path, document, "", None, {}, tuple(reader.faults), readable=False)
    identity = reader.identity(root) if "identity" in root else None
    readable = not reader.faults
    models = [key for key in root if key != "identity"]
    modes: Mapping[str, Mapping[int, Decimal]] = {}
    if len(models) == 1 and isinstance(models[0], str):
        modes = reader.modes(root, models[0])
    else:
        said = f"the model {models[0]}, which is no name" if len(models) == 1 else "no model key"
        if len(models) > 1:
            said = f"{len(models)} model keys ({', '.join(map(str, models))})"
        reader.fault(
            root,
            None,
            "golden-model",
            f"the file has {said}, and a curve is of exactly one model.",
            "keep one model a file",
        )
    return Curve(path, document, str(models[0]) if models else "", identity, modes, tuple(reader.faults), readable)


class _Reader:
    """Collects the faults of one file."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.faults: list[Finding] = []

    def fault(
        self, node: Map | Seq | None, key: Any, rule: str, message: str, fix: str, *, at_key: bool = False
    ) -> None:
        from matrix.findings import Finding

        if node is None:
            span = self.document.span()
        elif key is None:
            span = self.document.span(node.mark)
        elif at_key and isinstance(node, Map):
            span = self.document.of_key(node, key)
        else:
            span = self.document.of_value(node, key)
        self.faults.append(Finding(rule=rule, message=message, fix=fix, span=span))

    def written(self, node: Map | Seq, key: Any) -> str:
        """A value as the file spells it."""
        value = node[key]
        if isinstance(value, (Map, Seq)):
            return "a mapping" if isinstance(value, Map) else "a list"
        mark = node.marks[key][1] if isinstance(node, Map) else node.marks[key]
        return self.document.written(mark) or "nothing"

    # -- identity ---------------------------------------------------------------------------------------------------

    def identity(self, root: Map) -> Identity | None:
        node = root["identity"]
        if not isinstance(node, Map):
            message = f"identity is {self.written(root, 'identity')}, and a mapping is wanted."
            self.fault(root, "identity", "golden-identity", message, _IDENTITY_FIX)
            return None
        before = len(self.faults)
        for key in node:
            if key not in _IDENTITY_KEYS:
                from matrix.findings import did_you_mean

                fix = did_you_mean(str(key), _IDENTITY_KEYS)
                self.fault(node, key, "golden-identity", f"identity has no key {key}.", fix, at_key=True)
        prefixes = self.words(node, "model-prefixes")
        methods = self.words(node, "methods")
        model = self.pattern(node)
        sampling = self.sampling(node)
        if len(self.faults) > before:
            return None
        return Identity(model_prefixes=prefixes, methods=methods, draft_model=model, draft_sampling=sampling)

    def words(self, node: Map, key: str) -> tuple[str, ...]:
        value = node.get(key)
        if not isinstance(value, Seq) or not value:
            said = f"is {self.written(node, key)}" if key in node else "is missing"
            fix = f"write {key}: [{'dsv4' if key == 'model-prefixes' else 'mtp'}]"
            self.fault(
                node,
                key if key in node else None,
                "golden-identity",
                f"{key} of the identity {said}, and a list of words is wanted.",
                fix,
            )
            return ()
        for index, word in enumerate(value):
            if not isinstance(word, str) or not WORD.match(word):
                message = f"{key} holds {self.written(value, index)}, which no run can ask for."
                self.fault(value, index, "golden-identity", message, "use lower-case letters, digits and . _ - alone")
            elif word in value[:index]:
                self.fault(value, index, "golden-identity", f"{key} holds {word} twice.", "keep one")
        return tuple(map(str, value))

    def pattern(self, node: Map) -> re.Pattern[str] | None:
        if "draft-model" not in node:
            return None
        value = node["draft-model"]
        try:
            if isinstance(value, str) and value:
                return re.compile(value)
            why = "a regular expression is wanted"
        except re.error as error:
            why = f"it is no regular expression: {error}"
        message = f"draft-model is {self.written(node, 'draft-model')}, and {why}."
        self.fault(
            node,
            "draft-model",
            "golden-identity",
            message,
            "write a pattern that is searched in the draft model's name",
        )
        return None

    def sampling(self, node: Map) -> DraftSampling | None:
        if "draft-sampling" not in node:
            return None
        value = node["draft-sampling"]
        if isinstance(value, str) and value in tuple(DraftSampling):
            return DraftSampling(value)
        from matrix.findings import did_you_mean

        message = f"draft-sampling is {self.written(node, 'draft-sampling')}."
        self.fault(node, "draft-sampling", "golden-identity", message, did_you_mean(str(value), DraftSampling))
        return None

    # -- values -----------------------------------------------------------------------------------------------------

    def modes(self, root: Map, model: str) -> dict[str, dict[int, Decimal]]:
        node = root[model]
        if not isinstance(node, Map) or not node:
            message = f"{model} is {self.written(root, model)}, and a mapping of thinking modes is wanted."
            self.fault(root, model, "golden-model", message, "write thinking_on: {1: ...} below it")
            return {}
        found: dict[str, dict[int, Decimal]] = {}
        for mode in node:
            if mode not in tuple(Thinking):
                from matrix.findings import did_you_mean

                fix = did_you_mean(str(mode), Thinking)
                self.fault(
                    node,
                    mode,
                    "golden-thinking",
                    f"{model} has a thinking mode {mode}, which no run asks for.",
                    fix,
                    at_key=True,
                )
            elif not isinstance(node[mode], Map) or not node[mode]:
                message = f"{mode} is {self.written(node, mode)}, and a mapping of draft lengths is wanted."
                self.fault(node, mode, "golden-level", message, "write one line a draft length, as 3: 2.49")
            else:
                found[mode] = dict(self.cells(mode, node[mode]))
        return found

    def cells(self, mode: str, node: Map) -> Iterable[tuple[int, Decimal]]:
        for level in node:
            if type(level) is not int or level < 1:
                said = self.document.written(node.marks[level][0]) or level
                message = f"{mode} has the draft length {said}, and a draft length counts tokens."
                self.fault(
                    node, level, "golden-level", message, "write a whole number of 1 or more, unquoted", at_key=True
                )
                continue
            value = node[level]
            if type(value) not in (int, WrittenFloat):
                message = f"{mode}/{level} is {self.written(node, level)}, and a number is wanted."
                self.fault(
                    node, level, "golden-value", message, "write the measured length as a plain number, unquoted"
                )
                continue
            length = Decimal(value.text if isinstance(value, WrittenFloat) else value)
            if not 1 <= length <= level + 1:
                said = self.written(node, level)
                message = (
                    f"{mode}/{level} is {said}. A step that drafts {level} yields between 1 and {level + 1} tokens."
                )
                self.fault(node, level, "golden-range", message, "look the value up in the run that measured it")
                continue
            yield level, length
