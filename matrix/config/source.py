"""YAML text -> plain values that know their line and column; strict where YAML readers disagree.

Built on the events of libyaml's parser (PyYAML's ``CParser``, or its pure parser where libyaml is missing), with a
constructor of our own and one `Mark` per key and value. Mappings and lists are `Map` and `Seq`, a ``dict`` and a
``list`` that remember where each member stands; scalars are plain ``str``, ``int``, ``bool``, ``None`` and
`WrittenFloat`.

What YAML 1.1 and 1.2 read differently is refused rather than guessed: ``off``, ``010``, ``1:30``, ``0o17``.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from matrix.config.events import scalar_events
from matrix.config.nodes import Map, Mark, Seq, WrittenFloat, plain
from matrix.config.reader import read
from matrix.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from matrix.findings import Finding, Span

__all__ = [
    "MAX_BYTES",
    "Document",
    "Map",
    "Mark",
    "Seq",
    "UnclearError",
    "WrittenFloat",
    "load",
    "loads",
    "parsed_once",
    "places_noted",
    "plain",
    "read_bytes",
]

MAX_BYTES: Final = 32 * 1024 * 1024
"""A configuration larger than this is refused unread; the largest real one is a hundredth of it."""


class Document:
    """A parsed file: its ``root`` value, the path as people know it, and the way from a value to its place."""

    __slots__ = ("_texts", "data", "name", "root")

    def __init__(self, name: str, data: bytes, root: Any) -> None:
        self.name = name
        self.data = data
        self.root = root
        self._texts: dict[int, str] | None = None

    def span(self, mark: Mark | None = None) -> Span:
        """The place of a mark; of the whole file without one."""
        from matrix.findings import Span

        return Span(self.name, mark.line + 1, mark.column + 1) if mark is not None else Span(self.name)

    def of_key(self, node: Map, key: Any) -> Span:
        """The place of a key."""
        marks = node.marks.get(key)
        return self.span(marks[0] if marks else node.mark)

    def of_value(self, node: Map | Seq, key: Any) -> Span:
        """The place of a member's value: a mapping's by key, a list's by index."""
        if isinstance(node, Map):
            marks = node.marks.get(key)
            return self.span(marks[1] if marks else node.mark)
        return self.span(node.marks[key])

    def written(self, mark: Mark) -> str:
        """The scalar at a mark as the file spells it, quotes and all; the slow way, for refusals."""
        if self._texts is None:
            text = self.data.decode("utf-8-sig")
            self._texts = {
                event.start_mark.index: text[event.start_mark.index : event.end_mark.index]
                for event in scalar_events(self.data)
            }
        return self._texts.get(mark.index, "").strip()


class UnclearError(RefusedError):
    """A file whose values readers disagree about. ``document`` is None where its syntax is broken."""

    def __init__(self, findings: Iterable[Finding], document: Document | None) -> None:
        super().__init__(findings)
        self.document = document


def read_bytes(path: str | Path, *, limit: int = MAX_BYTES, what: str = "file") -> bytes:
    """The bytes of a regular file.

    Raises:
        RefusedError: missing, a directory, unreadable, or larger than ``limit`` bytes.
    """
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - pathlib costs 4 ms of every command
            data = stream.read(limit + 1)
    except FileNotFoundError:
        raise _refuse(path, "file-missing", f"this {what} does not exist.", _nearest_file(path)) from None
    except IsADirectoryError:
        raise _refuse(
            path, "file-directory", f"this is a directory where a {what} is wanted.", "name the file itself"
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _refuse(
            path, "file-unreadable", f"this {what} cannot be read: {reason}.", "check its type and permissions"
        ) from None
    if len(data) > limit:
        message = f"this {what} is larger than {limit // 1024 // 1024} MiB. Nothing people maintain by hand is."
        raise _refuse(path, "file-too-large", message, "check that this is the file you meant")
    return data


def load(path: str | Path, *, integer_keys: bool = False, noted: bool = True, what: str = "file") -> Document:
    """Read one YAML document from a file. See `loads`."""
    return loads(read_bytes(path, what=what), str(path), integer_keys=integer_keys, noted=noted)


def loads(data: bytes, name: str, *, integer_keys: bool = False, noted: bool = True) -> Document:
    r"""Parse the bytes of one YAML document; ``name`` is what refusals call the file.

    ``integer_keys`` lets integers be keys (golden curves); otherwise every key must be a string. ``noted`` False leaves
    it open where members stand until somebody asks: faster for a file that is seldom asked, slower for one that is.

    >>> loads(b"tp: 8\nconc-list: [1, 1_024]\n", "x.yaml").root
    {'tp': 8, 'conc-list': [1, 1024]}

    Raises:
        UnclearError: with every fault of the file, up to the first that breaks its syntax; and with the document where
            the syntax is whole, so that what else is wrong can be told together with it.
    """
    key = (data, integer_keys)
    if _SHARED is not None and key in _SHARED:
        return Document(name, data, _SHARED[key])
    root, findings = read(data, name, integer_keys=integer_keys, noted=noted or _NOTED)
    document = Document(name, data, root)
    if _SHARED is not None and not findings:
        _SHARED[key] = root
    if findings:
        raise UnclearError(findings, document if root is not None else None)
    return document


_SHARED: dict[tuple[bytes, bool], Any] | None = None
_NOTED = False


@contextmanager
def parsed_once() -> Iterator[None]:
    """As long as the context lasts, equal bytes are parsed once, and their documents share the values.

    For who reads two revisions of the same files. Values are never changed once read, so sharing them is safe.
    """
    global _SHARED  # noqa: PLW0603 - the callers in between read one file each, and have no say in this
    before, _SHARED = _SHARED, {} if _SHARED is None else _SHARED
    try:
        yield
    finally:
        _SHARED = before


@contextmanager
def places_noted() -> Iterator[None]:
    """As long as the context lasts, files are read with the places of all members: for who asks for nearly all."""
    global _NOTED  # noqa: PLW0603 - as above
    before, _NOTED = _NOTED, True
    try:
        yield
    finally:
        _NOTED = before


def _refuse(path: str | Path, rule: str, message: str, fix: str) -> Exception:
    from matrix.errors import RefusedError
    from matrix.findings import Finding, Span

    return RefusedError([Finding(rule=rule, message=message, fix=fix, span=Span(str(path)))])


def _nearest_file(named: str | Path) -> str:
    from pathlib import Path

    from matrix.findings import did_you_mean

    path = Path(named)
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist either; check the path"
    yaml = (".yaml", ".yml")
    kinds = (path.suffix,) if path.suffix not in ("", *yaml) else yaml
    siblings = [entry.name for entry in folder.iterdir() if entry.suffix in kinds]
    return did_you_mean(path.name, siblings, list_all=6) if siblings else "check the path"
