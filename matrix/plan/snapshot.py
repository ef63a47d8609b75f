"""The repository as it was at a commit: what expansion reads of it, laid out in a folder of its own.

Only configuration is written there, out of git objects: masters, runners, recipes, curves, settings. The working tree
and the index are not touched, and both revisions go through the one expander.
"""

from __future__ import annotations

import hashlib
import posixpath
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.config.settings import find_settings
from matrix.config.source import MAX_BYTES
from matrix.errors import RefusedError
from matrix.recipes.recipe import RecipeBook
from matrix.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matrix.findings import Finding, Span
    from matrix.plan.history import History, Revision
    from matrix.workspace import Workspace

__all__ = ["Label", "Named", "Snapshot", "committed", "in_folder", "table_at"]

_READ: Final = ("pyproject.toml", "configs", "runners/srt-slurm/patches/series.yaml")
_RECIPES: Final = ("configs/recipes", "benchmarks/multi_node/srt-slurm-recipes")
"""What the settings name unless ``[tool.matrix]`` says otherwise. Of recipes there are hundreds, so they wait."""

_LINK: Final = 0o120000


class Named(NamedTuple):
    """Files that a command line names instead of the settings'."""

    masters: tuple[str, ...] = ()
    runners: str | None = None
    recipes: tuple[str, ...] = ()
    golden: str | None = None

    def paths(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.masters, *filter(None, (self.runners, self.golden)), *self.recipes)

    def placed(self, place: Callable[[str], str]) -> Named:
        """The same files by other paths."""
        return Named(
            tuple(map(place, self.masters)),
            place(self.runners) if self.runners else None,
            tuple(map(place, self.recipes)),
            place(self.golden) if self.golden else None,
        )


class Label(NamedTuple):
    """How paths of a folder are told to people: ``text`` in the place of the folder."""

    folder: str = ""
    text: str = ""

    def place(self, span: Span) -> Span:
        """A place by the path that people know."""
        return self._span(span)

    def relabel(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings with the paths that people know."""
        return [self._relabel(finding) for finding in findings]

    def _relabel(self, finding: Finding) -> Finding:
        related = tuple(one._replace(span=self._span(one.span), note=self._text(one.note)) for one in finding.related)
        return finding._replace(
            message=self._text(finding.message),
            fix=self._text(finding.fix),
            span=self._span(finding.span) if finding.span else None,
            related=related,
        )

    def _span(self, span: Span) -> Span:
        return span._replace(file=self._text(span.file))

    def _text(self, text: str) -> str:
        if not self.folder or self.folder not in text:
            return text
        return text.replace(f"{self.folder}/", self.text).replace(
            self.folder, self.text.rstrip("/:") or "the repository"
        )


class Snapshot(NamedTuple):
    """A workspace, how its paths are told, and what stands for the content of a recipe file: equal, equal content."""

    workspace: Workspace
    label: Label
    stamp: Callable[[str], str | None]


def in_folder(workspace: Workspace) -> Snapshot:
    """What lies in the working tree, or where a command line says."""

    def stamp(path: str) -> str | None:
        book = workspace.facts.recipes
        place = book.locate(path) if book else None
        if place is None:
            return None
        data = place.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    return Snapshot(workspace, Label(), stamp)


@contextmanager
def committed(
    history: History, revision: Revision, named: Named, *, root: str = "", label: str = ""
) -> Iterator[Snapshot | None]:
    """The workspace at a commit, as long as the context lasts. None where the commit has no master config.

    ``root`` is the folder of the repository that holds the configuration; paths of ``named`` are from the top.

    Raises:
        RefusedError: what ``open_workspace`` refuses, told by the paths of the repository.
    """
    with TemporaryDirectory(prefix="matrix-") as folder:
        below = f"{root}/" if root else ""
        told = table_at(history, revision, below)
        table = {key: value for key, value in told.items() if isinstance(value, str | list)}
        books = [*(f"{below}{name}" for name in (*_RECIPES, *table.get("recipes", ()))), *named.recipes]
        others = [f"{below}{name}" for name in (*_READ, *_paths(table))]
        paper = _Paper(history, revision, folder)
        for path in dict.fromkeys([*others, *named.paths()]):
            if path not in books:
                paper.lay_all(path, without=books)
        for path in books:
            if history.is_folder(revision, path):
                Path(folder, path).mkdir(parents=True, exist_ok=True)
        start = f"{folder}/{root}" if root else folder
        shown = Label(folder, label)
        try:
            workspace = _open(start, named.placed(lambda path: f"{folder}/{path}"))
        except RefusedError as error:
            raise RefusedError(shown.relabel(error.findings)) from None
        yield _snapshot(workspace, shown, paper) if workspace else None


def _open(start: str, named: Named) -> Workspace | None:
    settings = find_settings(start)
    # Without configuration of its own the snapshot would take that of a folder around it.
    held = settings.root == start and bool(settings.masters)
    return open_workspace(start, **named._asdict()) if held or named.masters else None


def _snapshot(workspace: Workspace, label: Label, paper: _Paper) -> Snapshot:
    roots = [path.removeprefix(f"{paper.folder}/") for path in workspace.settings.recipes]
    book = _Recipes(workspace.settings.recipes, roots, paper) if roots else None
    facts = workspace.facts._replace(recipes=book)

    def stamp(path: str) -> str | None:
        history, revision = paper.history, paper.revision
        for root in roots:
            name = f"{root}/{path}"
            if (found := history.id_of(revision, name)) is not None:
                # Of a link the id says where it leads, not what is there.
                return f"{revision.commit}:{name}" if history.is_link(revision, name) else found
        return None

    return Snapshot(workspace._replace(facts=facts), label, stamp)


class _Paper:
    """The folder that a commit is laid out in."""

    def __init__(self, history: History, revision: Revision, folder: str) -> None:
        self.history = history
        self.revision = revision
        self.folder = folder
        self.laid: set[str] = set()

    def lay_all(self, path: str, without: Sequence[str] = ()) -> None:
        """A file, or every file below a folder."""
        for name, mode, data in self.history.files(self.revision, path, without=frozenset(without), limit=MAX_BYTES):
            self._lay(name, mode, data)

    def lay(self, path: str) -> None:
        """One file, and where it leads if it is a symbolic link."""
        while path not in self.laid:
            self.laid.add(path)
            for name, mode, data in self.history.files(self.revision, path, limit=MAX_BYTES):
                path = self._lay(name, mode, data)

    def _lay(self, name: str, mode: int, data: bytes) -> str:
        place = Path(self.folder, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        if mode != _LINK:
            place.write_bytes(data)
            return name
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), data.decode("utf-8", "surrogateescape")))
        if not target.startswith(("/", "..")) and not place.is_symlink():
            place.symlink_to(posixpath.relpath(target, posixpath.dirname(name) or "."))
        return target


class _Recipes(RecipeBook):
    """The recipes at a commit; a file is laid out when it is asked for."""

    def __init__(self, roots: Sequence[str], inside: Sequence[str], paper: _Paper) -> None:
        super().__init__(roots)
        self.inside = inside
        self.paper = paper

    def locate(self, path: str) -> Path | None:
        """See `RecipeBook.locate`."""
        for root in self.inside:
            self.paper.lay(f"{root}/{path}")
        return super().locate(path)

    def files(self) -> list[tuple[Path, str]]:
        """See `RecipeBook.files`."""
        for root in self.inside:
            self.paper.lay_all(root)
        return super().files()


def table_at(history: History, revision: Revision, below: str = "") -> dict[str, Any]:
    """``[tool.matrix]`` at a revision, unchecked: what is wrong with it is told where the settings are read.

    ``below`` is the folder of the configuration, with a slash at its end.
    """
    data = history.read(revision, f"{below}pyproject.toml").data
    if data is None or b"[tool.matrix" not in data:
        return {}
    import tomllib

    try:
        table = tomllib.loads(data.decode("utf-8", "replace")).get("tool", {}).get("matrix", {})
    except tomllib.TOMLDecodeError:
        return {}
    return table if isinstance(table, dict) else {}


def _paths(table: dict[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        for path in value if isinstance(value, list) else [value]:
            if key != "recipes" and isinstance(path, str) and not path.startswith(("/", "..")):
                yield path
