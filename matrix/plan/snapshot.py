"""The repository as it was at a commit: what expansion reads of it, laid out in a folder of its own.

Only configuration is written there, out of git objects: masters, runners, recipes, curves, settings. The working tree
and the index are not touched, and both revisions go through the one expander.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple

from matrix.config.settings import find_settings
from matrix.config.source import MAX_BYTES
from matrix.errors import RefusedError
from matrix.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from matrix.findings import Finding, Span
    from matrix.plan.history import History, Revision
    from matrix.workspace import Workspace

__all__ = ["Label", "Named", "Snapshot", "committed"]

_READ: Final = (
    "pyproject.toml",
    "configs",
    "benchmarks/multi_node/srt-slurm-recipes",
    "runners/srt-slurm/patches/series.yaml",
)
"""What the settings name unless ``[tool.matrix]`` says otherwise."""


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
    """A workspace, and how its paths are told."""

    workspace: Workspace
    label: Label = Label()


@contextmanager
def committed(
    history: History, revision: Revision, named: Named, *, root: str = "", label: str = ""
) -> Iterator[Snapshot | None]:
    """The workspace at a commit, as long as the context lasts; recipes are read from it on demand.

    ``root`` is the folder of the repository that holds the configuration; paths of ``named`` are from the top. None
    where the commit has no master config.

    Raises:
        RefusedError: what ``open_workspace`` refuses, told by the paths of the repository.
    """
    with TemporaryDirectory(prefix="matrix-") as folder:
        below = f"{root}/" if root else ""
        wanted = [f"{below}{name}" for name in (*_READ, *_configured(history, revision, below))]
        for path in dict.fromkeys([*wanted, *named.paths()]):
            for name, mode, data in history.files(revision, path, limit=MAX_BYTES):
                _lay(Path(folder, name), mode, data)
        start = f"{folder}/{root}" if root else folder
        shown = Label(folder, label)
        try:
            settings = find_settings(start)
            # Without configuration of its own the snapshot would take that of a folder around it.
            held = settings.root == start and bool(settings.masters)
            if held or named.masters:
                files = named.placed(lambda path: f"{folder}/{path}")
                workspace = open_workspace(start, **files._asdict())
            else:
                workspace = None
        except RefusedError as error:
            raise RefusedError(shown.relabel(error.findings)) from None
        yield Snapshot(workspace, shown) if workspace else None


def _configured(history: History, revision: Revision, below: str) -> Iterator[str]:
    """The paths of ``[tool.matrix]`` at the revision."""
    data = history.read(revision, f"{below}pyproject.toml").data
    if data is None or b"[tool.matrix" not in data:
        return
    import tomllib

    try:
        table = tomllib.loads(data.decode("utf-8", "replace")).get("tool", {}).get("matrix", {})
    except tomllib.TOMLDecodeError:
        return  # told where the settings are read
    for value in table.values():
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and not path.startswith(("/", "..")):
                yield path


def _lay(path: Path, mode: int, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode == 0o120000:
        target = data.decode("utf-8", "surrogateescape")
        if not path.is_symlink() and not target.startswith("/"):
            path.symlink_to(target)
    else:
        path.write_bytes(data)
