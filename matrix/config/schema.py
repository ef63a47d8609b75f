"""What is wrong with a document that was refused: the slow and talkative half of "fast accept, slow explain".

The JSON Schemas in ``matrix/schemas`` say what each value must be; `matrix.config.rules` says what no schema can. For
an editor's sake the schemas repeat some of those rules, in subschemas marked ``x-told-by``; they are left out here, for
the rules have better words.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from matrix.config.fleet_rules import runners_faults
from matrix.config.place import Place, joined
from matrix.config.rules import master_faults
from matrix.config.source import Map, Seq, WrittenFloat
from matrix.findings import Finding, Span, did_you_mean, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

    from matrix.config.source import Document

__all__ = ["Kind", "explain", "load_schema"]


class Kind(StrEnum):
    """What a document is meant to be; each kind has its schema."""

    MASTER = "master"
    RUNNERS = "runners"
    EVALS = "evals"
    ROW = "row"


_MOST_ERRORS: Final = 10_000
"""A file with more was made by a broken program; its last faults are not looked for."""

_MANY: Final = 20
_WANTED: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
_READ_AS: Final[dict[type, str]] = {
    str: "text",
    int: "a number",
    WrittenFloat: "a number with a fraction",
    bool: "a boolean",
}
_TRUTHS: Final = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}


def explain(document: Document, kind: Kind) -> list[Finding]:
    """Everything that is wrong with a document, one finding a cause, in the order of the file."""
    stranger = _stranger(document, kind)
    if stranger is not None:
        return [stranger]
    root = Place.root(document, titled=kind is Kind.MASTER)
    reader = _Reader(kind)
    found = list(reader.faults(root))
    if kind is Kind.MASTER:
        found += islice(master_faults(root, reader.is_meant), _MOST_ERRORS)
    elif kind is Kind.RUNNERS:
        found += islice(runners_faults(root), _MOST_ERRORS)
    # A value that several configs share through an alias or a merge is told once, for the first of them.
    return in_order({(finding.span, finding.rule, finding.fix): finding for finding in reversed(found)}.values())


@cache
def load_schema(kind: Kind) -> dict[str, Any]:
    """The JSON Schema of a kind, as it is shipped."""
    import json
    from importlib.resources import files

    schema: dict[str, Any] = json.loads((files("matrix") / "schemas" / f"{kind}.json").read_text(encoding="utf-8"))
    return schema


@cache
def _validator(kind: Kind) -> Validator:
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def is_integer(_checker: Any, value: Any) -> bool:
        return type(value) is int

    def extras(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        # The library's own goes through a set, so where errors are cut off would differ from run to run.
        for key in value if isinstance(value, Map) else ():
            if key not in schema.get("properties", ()):
                if allowed is False:
                    yield ValidationError("unknown keys")
                    return
                yield from validator.descend(value[key], allowed, path=key)

    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", is_integer)
    strict = extend(Draft202012Validator, {"additionalProperties": extras}, type_checker=checker)  # type: ignore[no-untyped-call]
    validator: Validator = strict(_compiled(load_schema(kind)))
    return validator


def _compiled(schema: dict[str, Any]) -> Any:
    """The schema with its references filled in, and without the parts that `matrix.config.rules` tells."""

    @cache
    def definition(name: str) -> Any:
        return walk(schema["$defs"][name])

    def walk(part: Any) -> Any:
        if isinstance(part, list):
            return [walk(member) for member in part]
        if not isinstance(part, dict):
            return part
        if "x-told-by" in part:
            return {}
        if "$ref" in part:
            return definition(part["$ref"].removeprefix("#/$defs/"))
        walked = {key: walk(value) for key, value in part.items() if key != "$defs"}
        if not any(walked.get("allOf", [True])):
            del walked["allOf"]
        return walked

    return walk(schema)


@cache
def _homes(kind: Kind) -> Mapping[str, list[str]]:
    """Where each key belongs: key -> titles of the mappings that have it."""
    schema = load_schema(kind)
    homes: dict[str, list[str]] = {}
    for part in (schema, *schema.get("$defs", {}).values()):
        for key in part.get("properties", ()):
            if "title" in part:
                homes.setdefault(key, []).append(part["title"])
    return homes


class _Reader:
    """The schema errors of one document, folded to one finding a cause."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.meant: dict[int, set[str]] = {}

    def is_meant(self, node: Map, key: str) -> bool:
        """Whether an unknown key of the mapping is a misspelling of this one, which then is not missing as well."""
        return key in self.meant.get(id(node), ())

    def faults(self, root: Place) -> Iterator[Finding]:
        by_path: dict[tuple[str | int, ...], dict[str, ValidationError]] = {}
        for number, error in enumerate(_validator(self.kind).iter_errors(root.value), start=1):
            if number > _MOST_ERRORS:
                message = f"has more than {_MOST_ERRORS:,} faults. Those after them were not looked for."
                yield root.fault("too-many-faults", message, "check that this is the file you meant")
                break
            by_path.setdefault(tuple(error.absolute_path), {}).setdefault(str(error.validator), error)
        for path, here in by_path.items():
            place = root.down(path)
            if "type" in here:
                yield _wrong_type(place, here["type"].schema)
                continue
            keys = [here.pop(name) for name in ("additionalProperties", "required") if name in here]
            if keys:
                yield from self.wrong_keys(place, keys[0].schema)
            for error in list(here.values())[:1]:
                yield _wrong_value(place, error)

    def wrong_keys(self, place: Place, schema: Any) -> Iterator[Finding]:
        node: Map = place.value
        known = schema["properties"]
        homes = _homes(self.kind)
        strays = [key for key in node if key not in known and key in homes]
        unknown = [key for key in node if key not in known and key not in homes]
        absent = frozenset(known).difference(node)
        for key in unknown[:_MANY]:
            near = _nearest(key, absent) or _nearest(key, frozenset(homes).difference(node))
            if near is not None:
                self.meant.setdefault(id(node), set()).add(near)
            if near is None:
                fix = did_you_mean(key, known, list_all=len(known))
            else:
                fix = f"write {near}" if _kebab(key) == near else f"did you mean {near}?"
            yield place.at(key).fault("unknown-key", "is no known key. Nothing would read it.", fix, title=True)
        if len(unknown) > _MANY:
            message = f"holds {len(unknown) - _MANY} more keys that are not known here."
            span = place.at(unknown[_MANY]).title_span
            fix = "check that this is the file and the level you meant"
            yield place.fault("unknown-key", message, fix, span=span)
        if not self.meant.get(id(node), set()) <= set(known):
            return  # a misspelled key decides what else belongs here
        if strays:
            yield _misplaced(place, strays, schema["title"], homes)
        missing = [key for key in schema.get("required", ()) if key not in node and not self.is_meant(node, key)]
        if missing:
            message = f"lacks {joined(missing)}. {_article(schema['title']).capitalize()} needs {_them(missing)}."
            yield place.fault("missing-key", message, f"add {joined(missing)}", title=True)


@cache
def _nearest(wrong: str, known: frozenset[str]) -> str | None:
    """The known key that a misspelled one was probably meant to be: ``conc_list`` and ``conc-lst`` are conc-list."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(_kebab(wrong), sorted(known), n=1, cutoff=0.7)), None)


def _kebab(key: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_ ]", "-", key).casefold()


def _misplaced(place: Place, strays: list[str], title: str, homes: Mapping[str, list[str]]) -> Finding:
    """Keys of one mapping that belong elsewhere are one cause: they came together, or the mapping is a wrong one."""
    known = list(dict.fromkeys(home for key in strays for home in homes[key]))
    where = ", ".join(home for home in known if home.removeprefix("agentic ") == home or home[8:] not in known)
    message = f"holds {joined(strays)}, which {'do' if strays[1:] else 'does'} not belong in {_article(title)}."
    fix = f"remove {_them(strays)}, or move {_them(strays)} to a place that knows {_them(strays)}: {where}"
    return place.fault("misplaced-key", message, fix, span=place.at(strays[0]).title_span)


def _wrong_type(place: Place, schema: Any) -> Finding:
    wanted = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    value, written = place.value, place.written
    words = _WANTED[wanted] if "enum" not in schema else joined(map(str, schema["enum"]), "or")
    if value is None:
        return place.fault("no-value", f"has no value. {_why(schema)}", f"write {words}, or remove the key")
    if isinstance(value, (Map, Seq)):
        read = ""
    elif wanted == "string" and isinstance(value, WrittenFloat) and str(float(value)) != value.text:
        read = f", which YAML reads as the number {float(value)}"
    else:
        read = f", which YAML reads as {_READ_AS[type(value)]}"
    message = f"is {written}{read}; {words} is wanted. {_why(schema)}"
    if "enum" in schema:
        fix = f"write {words}"
    elif isinstance(value, str) and "name" in schema.get("required", ()):
        fix = f"write {{name: {written}}}"
    else:
        fix = _mended(value, written, wanted)
    return place.fault("wrong-type", message, fix)


def _mended(value: Any, written: str, wanted: str) -> str:
    """How to write a value of the wrong type, where it is plain what it was meant to be."""
    scalar = not isinstance(value, (Map, Seq))
    if wanted == "string" and scalar:
        return f"quote it: '{written}'"
    if wanted == "array" and scalar:
        return f"write it in brackets: [{written}]"
    if wanted == "boolean" and isinstance(value, str) and value.casefold() in _TRUTHS:
        return f"write {_TRUTHS[value.casefold()]}, without quotes"
    digits = {"integer": r"[0-9]+", "number": r"[0-9]+(\.[0-9]+)?"}.get(wanted)
    if digits is not None and isinstance(value, str) and re.fullmatch(digits, value):
        return f"write {value}, without quotes"
    if wanted == "integer" and isinstance(value, WrittenFloat) and value.is_integer():
        return f"write {int(value)}"
    return f"write {_WANTED[wanted]}"


def _wrong_value(place: Place, error: ValidationError) -> Finding:
    schema: Any = error.schema
    why = _why(schema)
    match error.validator:
        case "enum":
            allowed = [str(value) for value in schema["enum"]]
            message = f"is {place.written}; {joined(allowed, 'or')} is wanted. {why}"
            near = did_you_mean(str(place.value), allowed)
            fix = near if near.startswith("did") else f"write {joined(allowed, 'or')}"
            return place.fault("unknown-value", message, fix)
        case "minimum" | "maximum" | "exclusiveMinimum":
            message = f"is {place.written}; a number {_range(schema)} is wanted. {why}"
            return place.fault("out-of-range", message, f"write a number {_range(schema)}")
        case "minLength" | "minItems":
            fix = (
                "write at least one, or remove the key"
                if error.validator == "minItems"
                else "write a value, or remove it"
            )
            return place.fault("empty-value", f"is empty. {why}", fix)
        case _:
            pass
    return place.fault("schema", f"is not as it must be: {error.message[:200]}. {why}", "see the schema of this file")


def _range(schema: Any) -> str:
    above, least, most = schema.get("exclusiveMinimum"), schema.get("minimum"), schema.get("maximum")
    if above is not None:
        return f"above {above} and at most {most}"
    return f"from {least:,} to {most:,}" if most is not None else f"of {least:,} or more"


def _why(schema: Any) -> str:
    return str(schema.get("description", ""))


def _article(title: str) -> str:
    return f"{'an' if title[0] in 'aeiou' else 'a'} {title}"


def _them(names: list[str]) -> str:
    return "them" if names[1:] else "it"


_NAMES: Final = {Kind.MASTER: "a master config", Kind.RUNNERS: "a runners file"}
_FLEET_KEYS: Final = frozenset(("labels", "hardware", "clusters"))


def _stranger(document: Document, kind: Kind) -> Finding | None:
    """A whole file of another kind: one finding, not one for each of its keys."""
    wanted = _NAMES.get(kind)
    if kind is Kind.RUNNERS and _is_labels(document.root):
        message = "the labels stand at the top level. They have a place of their own, beside clusters."
        return Finding(
            rule="wrong-file", message=message, fix="indent them under labels:", span=Span(document.name, 1, 1)
        )
    found = _looks_like(document.root)
    if found is None or wanted is None or found == wanted:
        return None
    option = {"a master config": "--config", "a runners file": "--runners"}.get(found)
    fix = f"pass it as {option}" if option else "check the name"
    message = f"this is {found}; {wanted} is wanted."
    return Finding(rule="wrong-file", message=message, fix=fix, span=Span(document.name, 1, 1))


def _looks_like(root: Any) -> str | None:
    if isinstance(root, Seq):
        return "a changelog" if any(isinstance(entry, Map) and "config-keys" in entry for entry in root) else None
    if not isinstance(root, Map):
        return None
    if any(isinstance(value, Map) and "scenarios" in value for key, value in root.items() if key not in _FLEET_KEYS):
        return _NAMES[Kind.MASTER]
    if _is_labels(root) or (root.keys() <= _FLEET_KEYS and isinstance(root.get("labels"), Map)):
        return _NAMES[Kind.RUNNERS]
    base = root.get("base", root)
    if isinstance(base, Map) and any(isinstance(base.get(key), Map) for key in ("roles", "resources")):
        return "a recipe"
    return "a workflow" if {"on", "jobs"} <= root.keys() else None


def _is_labels(root: Any) -> bool:
    """The oldest form of a runners file: labels alone."""
    if not isinstance(root, Map) or not root or not _FLEET_KEYS.isdisjoint(root):
        return False
    return all(isinstance(nodes, Seq) and nodes and isinstance(nodes[0], str) for nodes in root.values())
