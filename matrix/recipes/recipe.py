"""Recipe file + selector -> one resolved recipe, as ``srtctl`` resolves it.

A file with a top-level ``base`` is a bundle: ``override_NAME`` is deep-merged over the base, ``zip_override_NAME[N]``
takes the N-th member of every list leaf first. Deep merge: mapping into mapping recursively, a list or scalar
replaces, null deletes the key (never inside a list item, nor inside a mapping that the base does not have). Resolved
mappings keep the marks of the lines their values came from.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from matrix.config.source import Map, Seq, load, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.config.source import Document, Mark
    from matrix.findings import Finding, Span

__all__ = [
    "PREFIXES",
    "Recipe",
    "RecipeBook",
    "RecipeError",
    "Reference",
    "deep_merge",
    "parse_reference",
    "variants",
]

PREFIXES: Final = (
    "benchmarks/multi_node/srt-slurm-recipes/",
    "benchmarks/single_node/srt-slurm-recipes/",
    "recipes/",
)
"""Spellings of a recipe root in a master config; what follows is looked up below every root."""

_INDEXED: Final = re.compile(r"(zip_override_[\w-]+)\[(\d+)\]\Z")


class Reference(NamedTuple):
    """A recipe as a master names it: ``text`` as written, ``path`` below a root, ``selector`` None for the whole file.

    >>> parse_reference("recipes/a/b.yaml:override_x")
    Reference(text='recipes/a/b.yaml:override_x', path='a/b.yaml', selector='override_x')
    """

    text: str
    path: str
    selector: str | None


def parse_reference(text: str) -> Reference:
    """Split ``path:selector`` at the last colon and strip a known root prefix."""
    path, colon, selector = text.rpartition(":")
    if not colon:
        path, selector = text, ""
    for prefix in PREFIXES:
        if path.startswith(prefix):
            path = path[len(prefix) :]
            break
    return Reference(text, path, selector or None)


class RecipeError(Exception):
    """A reference that leads to no recipe. ``missing``: the file or the selector is not there, rather than broken."""

    def __init__(self, finding: Finding, *, missing: bool) -> None:
        super().__init__(str(finding))
        self.finding = finding
        self.missing = missing


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """One resolved recipe: ``data`` as the cluster would get it, ``document`` the file it stands in."""

    reference: Reference
    data: Map
    document: Document
    path: Path

    def canonical(self) -> str:
        """Compact JSON with sorted keys: equal text, equal recipe; comments, key order and file names do not count."""
        return json.dumps(plain(self.data), sort_keys=True, separators=(",", ":"))

    def span(self, node: Map | Seq, key: Any) -> Span:
        """The line that gave a value of the resolved recipe."""
        return self.document.of_value(node, key)

    def home(self) -> Span:
        """The line of the variant: its override's key, or the file where it has no variants."""
        root, selector = self.document.root, self.reference.selector
        name = selector.split("[", 1)[0] if selector else None
        return self.document.of_key(root, name) if name in root else self.document.span()


class RecipeBook:
    """The recipe files below some roots; each file is parsed once, and only when a point needs it."""

    def __init__(self, roots: Iterable[str | Path]) -> None:
        self.roots: tuple[Path, ...] = tuple(map(Path, roots))
        self._documents: dict[str, Document | RecipeError] = {}
        self._resolved: dict[str, Recipe | RecipeError] = {}
        self._names: list[str] | None = None
        self._hints: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.roots)

    def resolve(self, text: str) -> Recipe:
        """The one recipe that ``path:selector`` names.

        Raises:
            RecipeError: no such file or selector, several variants, or a file that is no recipe.
        """
        found = self._resolved.get(text)
        if found is None:
            try:
                found = self._resolve(parse_reference(text))
            except RecipeError as error:
                found = error
            self._resolved[text] = found
        if isinstance(found, RecipeError):
            raise found
        return found

    def files(self) -> list[tuple[Path, str]]:
        """Every recipe file below the roots with its path below its root, in a stable order."""
        found: dict[str, Path] = {}
        for root in self.roots:
            for path in sorted(root.rglob("*.yaml")):
                found.setdefault(path.relative_to(root).as_posix(), path)
        return [(path, name) for name, path in sorted(found.items())]

    def document(self, path: str) -> Document:
        """The parsed file at a path below a root.

        Raises:
            RecipeError: not there, outside the roots, or not valid YAML.
        """
        found = self._documents.get(path)
        if found is None:
            try:
                found = self._open(path)
            except RecipeError as error:
                found = error
            self._documents[path] = found
        if isinstance(found, RecipeError):
            raise found
        return found

    def locate(self, path: str) -> Path | None:
        """The file that a path below a root names, if one of the roots has it."""
        return next((root / path for root in self.roots if (root / path).is_file()), None)

    def _open(self, path: str) -> Document:
        from matrix.errors import RefusedError

        if path.startswith("/") or ".." in path.split("/"):
            message = f"the recipe path {path} leaves the recipe roots."
            _fail("recipe-path", message, "name a file below a recipe root, as recipes/...", missing=False)
        file = self.locate(path)
        if file is None:
            _fail("recipe-missing", self._missing(path), self._near(path), missing=True)
        if not any(file.resolve().is_relative_to(root.resolve()) for root in self.roots):
            message = f"the recipe path {path} is a link that leaves the recipe roots."
            _fail("recipe-path", message, "put the file itself below a recipe root", missing=False)
        try:
            document = load(file, what="recipe")
        except RefusedError as error:
            first = error.findings[0]
            more = f" ({len(error.findings) - 1} more faults in this file)" if len(error.findings) > 1 else ""
            _fail("recipe-yaml", f"{first.rule}: {first.message}{more}", first.fix, first.span, missing=False)
        if type(document.root) is not Map:
            message = "a recipe is a mapping, and this file is none."
            _fail("recipe-yaml", message, "write the recipe's keys at the top level", document.span(), missing=False)
        return document

    def _missing(self, path: str) -> str:
        roots = ", ".join(map(str, self.roots)) or "no recipe root is configured"
        return f"the recipe {path} does not exist. Roots searched: {roots}."

    def _near(self, path: str) -> str:
        """The same file name elsewhere, else a like one in its folder, else a like folder.

        Whole paths are not compared with each other: of a repository without its recipes hundreds are missing, and
        long words that begin alike are what takes difflib longest.
        """
        from matrix.findings import did_you_mean

        if self._names is None:
            self._names = [name for _, name in self.files()]
        if not self._names:
            return "the recipe roots hold no recipe at all"
        folder, _, name = path.rpartition("/")
        same = [known for known in self._names if known.rpartition("/")[2] == name]
        if same:
            return f"did you mean {' or '.join(same[:3])}?"
        siblings = [known.rpartition("/")[2] for known in self._names if known.rpartition("/")[0] == folder]
        if siblings:
            return f"in {folder or 'the root'}, {did_you_mean(name, siblings, list_all=4)}"
        folders = {known.rpartition("/")[0] for known in self._names if "/" in known}
        if folder not in self._hints:
            self._hints[folder] = did_you_mean(folder, folders, list_all=4)
        return f"there is no folder {folder or '.'}; {self._hints[folder]}"

    def _resolve(self, reference: Reference) -> Recipe:
        document = self.document(reference.path)
        root: Map = document.root
        path = self.locate(reference.path)
        assert path is not None  # document() found it  # noqa: S101
        if "base" not in root:
            if reference.selector is not None:
                message = (
                    f"{reference.path} has no variants (no base:), and the selector {reference.selector} names one."
                )
                _fail(
                    "recipe-selector",
                    message,
                    "drop the selector, or give the file base: and overrides",
                    document.span(),
                )
            return Recipe(reference, root, document, path)
        base = _mapping(root, "base", document)
        merged = _variant(root, base, reference, document)
        if "schema" not in merged and "schema" in root:
            merged["schema"] = root["schema"]
            merged.marks["schema"] = root.marks["schema"]
        return Recipe(reference, merged, document, path)


def variants(root: Map) -> list[str]:
    """The selectors of a bundle that name exactly one variant, in file order; zips by index."""
    found = []
    for key, node in root.items():
        if key.startswith("override_"):
            found.append(key)
        elif key.startswith("zip_override_") and isinstance(node, Map):
            found.extend(f"{key}[{index}]" for index in range(max(_zip_lengths(node), default=0)))
    return found


def deep_merge(base: Map, over: Map) -> Map:
    """``over`` merged onto ``base``; neither is changed. Source of the rule: srtctl's own merge."""
    merged = Map(base)
    merged.mark = base.mark
    merged.marks = dict(base.marks)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
            merged.marks.pop(key, None)
        else:
            below = merged.get(key)
            merged[key] = deep_merge(below, value) if isinstance(value, Map) and isinstance(below, Map) else value
            merged.marks[key] = over.marks[key]
    return merged


def _variant(root: Map, base: Map, reference: Reference, document: Document) -> Map:
    selector = reference.selector
    if selector == "base":
        return base
    known = variants(root)
    listing = _listing(known)
    if selector is None or "*" in selector or "?" in selector:
        from fnmatch import fnmatchcase

        keys = [key for key in root if key.startswith(("override_", "zip_override_"))]
        hit = [key for key in keys if selector is None or fnmatchcase(key, selector)]
        count = len([name for name in known if name.split("[", 1)[0] in hit])
        how = f"the selector {selector}" if selector else f"{reference.path} without a selector"
        message = f"{how} means {count} variants, and a point runs exactly one."
        _fail("recipe-selector", message, f"name one of: {listing}", document.span())
    indexed = _INDEXED.match(selector)
    name = indexed.group(1) if indexed else selector
    if name not in root or not name.startswith(("override_", "zip_override_")):
        from matrix.findings import did_you_mean

        message = f"{reference.path} has no variant {selector}."
        hint = did_you_mean(selector, known) if known else "the file has no variant at all"
        fix = hint if hint.startswith("known") or not known else f"{hint} It has: {listing}"
        _fail("recipe-selector", message, fix, document.span())
    over = _mapping(root, name, document)
    base_name = base.get("name", "unnamed")
    place = root.marks[name]
    if not name.startswith("zip_"):
        merged = deep_merge(base, over)
        if "name" not in over:
            _set(merged, "name", f"{base_name}_{name.removeprefix('override_')}", place)
        return merged
    lengths = _zip_lengths(over)
    wide = {length for length in lengths if length != 1}
    if not lengths or 0 in lengths or len(wide) > 1:
        message = (
            f"{name} zips lists of lengths {sorted(set(lengths))}."
            if lengths
            else f"{name} holds no list, so nothing is zipped."
        )
        fix = "give every list the same length, or length 1 to repeat it"
        _fail("recipe-zip", message, fix, document.of_key(root, name), missing=False)
    count = wide.pop() if wide else 1
    if indexed is None:
        message = f"the selector {selector} means {count} variants, and a point runs exactly one."
        fix = f"name one of: {_listing([f'{name}[{index}]' for index in range(count)])}"
        _fail("recipe-selector", message, fix, document.of_key(root, name))
    index = int(indexed.group(2))
    if index >= count:
        message = f"the index of {selector} is out of range: {name} has {count} variants."
        _fail("recipe-selector", message, f"use {name}[0] to {name}[{count - 1}]", document.of_key(root, name))
    merged = deep_merge(base, _slice(over, index))
    if not isinstance(over.get("name"), list):
        _set(merged, "name", f"{base_name}_{name.removeprefix('zip_override_')}_{index}", place)
    return merged


def _set(node: Map, key: str, value: Any, place: tuple[Mark, Mark]) -> None:
    node[key] = value
    node.marks[key] = place


def _zip_lengths(node: Map) -> list[int]:
    lengths: list[int] = []
    for value in node.values():
        if isinstance(value, Seq):
            lengths.append(len(value))
        elif isinstance(value, Map):
            lengths.extend(_zip_lengths(value))
    return lengths


def _slice(node: Map, index: int) -> Map:
    taken = Map()
    taken.mark = node.mark
    taken.marks = dict(node.marks)
    for key, value in node.items():
        if isinstance(value, Seq):
            at = 0 if len(value) == 1 else index
            taken[key] = value[at]
            taken.marks[key] = (node.marks[key][0], value.marks[at])
        else:
            taken[key] = _slice(value, index) if isinstance(value, Map) else value
    return taken


def _mapping(root: Map, key: str, document: Document) -> Map:
    node = root[key]
    if not isinstance(node, Map):
        message = f"{key} is not a mapping."
        _fail("recipe-yaml", message, "write the recipe's keys below it", document.of_value(root, key), missing=False)
    return node


def _listing(names: Sequence[str], limit: int = 12) -> str:
    shown = ", ".join(names[:limit]) or "(none)"
    return f"{shown}, … {len(names) - limit} more" if len(names) > limit else shown


def _fail(rule: str, message: str, fix: str, span: Span | None = None, *, missing: bool = True) -> NoReturn:
    from matrix.findings import Finding

    raise RecipeError(Finding(rule=rule, message=message, fix=fix, span=span), missing=missing)
