"""One patch file: what it changes, and whether it is one that can be carried.

Plain ``git diff`` output and mails of ``git format-patch`` are read alike. Everything that git would take but that
cannot be verified afterwards by blob ids alone is refused: binary content, renames, changes of mode, symbolic links.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from matrix.findings import Finding, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FileChange", "Patch", "parse", "read"]

_HUNK: Final = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@")
_INDEX: Final = re.compile(r"index (?P<pre>[0-9a-f]{4,64})\.\.(?P<post>[0-9a-f]{4,64})(?: (?P<mode>\d{6}))?\Z")
_FILE_MODES: Final = frozenset({"100644", "100755"})
_ESCAPES: Final = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_SMALL_FIX: Final = "make the patch again with: git diff --no-renames --full-index"


@dataclass(slots=True, kw_only=True)
class FileChange:
    """What a patch does to one file. ``line`` is where it begins in the patch."""

    path: str
    line: int
    created: bool = False
    deleted: bool = False
    pre: str = ""
    """Blob id before, as far as the ``index`` line gives it; all zeros for a new file."""
    post: str = ""
    bare_hunks: list[int] = field(default_factory=list)
    """Lines of hunks in an existing file that show no unchanged line around the change."""
    hunks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A patch file. ``preamble`` is the text before its first file."""

    file: Path
    data: bytes
    preamble: bytes
    changes: tuple[FileChange, ...]

    @property
    def name(self) -> str:
        """The name of the file, which is the name of the patch everywhere."""
        return self.file.name

    @property
    def sha256(self) -> str:
        """Hash of the file's bytes, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that the patch touches."""
        return tuple(change.path for change in self.changes)


def read(file: Path) -> tuple[Patch | None, list[Finding]]:
    """Read and parse a patch file; no patch when there are findings."""
    if file.is_symlink() or not file.is_file():
        message = f"{file.name} is no regular file. A patch is hashed and shipped as it lies here."
        return None, [
            Finding(rule="patch-file", span=Span(str(file)), message=message, fix="put the patch itself here")
        ]
    return parse(file, file.read_bytes())


def parse(file: Path, data: bytes) -> tuple[Patch | None, list[Finding]]:
    """Parse the bytes of a patch. Every fault of the file is told at once."""
    if b"\r" in data:
        line = data[: data.index(b"\r")].count(b"\n") + 1
        return None, [
            Finding(
                rule="patch-line-ends",
                span=Span(str(file), line),
                message=f"CR line ends in {file.name}. Git does not find the lines of such a patch in the tree.",
                fix=f"keep '*.patch -text' in .gitattributes, and write LF: sed -i 's/\\r$//' {file}",
            )
        ]
    reader = _Reader(file, data.decode("utf-8", "surrogateescape").split("\n"))
    changes = reader.read()
    if reader.findings:
        return None, reader.findings
    preamble = "\n".join(reader.lines[: changes[0].line - 1])
    return Patch(
        file=file,
        data=data,
        preamble=(preamble + "\n").encode("utf-8", "surrogateescape") if changes[0].line > 1 else b"",
        changes=tuple(changes),
    ), []


class _Reader:
    """Walks the lines of a patch; a line inside a hunk is never taken for a header."""

    def __init__(self, file: Path, lines: list[str]) -> None:
        self.file = file
        self.lines = lines
        self.findings: list[Finding] = []
        self.at = 0

    def refuse(self, line: int, rule: str, message: str, fix: str = _SMALL_FIX) -> None:
        self.findings.append(Finding(rule=rule, span=Span(str(self.file), line), message=message, fix=fix))

    def read(self) -> list[FileChange]:
        changes: list[FileChange] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith("diff --git "):
                changes.append(self.git_header())
            elif line.startswith("--- ") and self.next_line().startswith("+++ "):
                changes.append(self.plain_header())
            elif changes and _HUNK.match(line):
                self.hunk(changes[-1])
            else:
                self.at += 1
        self.whole(changes)
        return changes

    def next_line(self) -> str:
        return self.lines[self.at + 1] if self.at + 1 < len(self.lines) else ""

    def git_header(self) -> FileChange:
        """The lines from ``diff --git`` up to the first hunk or the next file."""
        change = FileChange(path=_name_of_both(self.lines[self.at].removeprefix("diff --git ")), line=self.at + 1)
        self.at += 1
        while self.at < len(self.lines):
            line = self.lines[self.at]
            match line.split(" "):
                case ["index", *_] if found := _INDEX.match(line):
                    change.pre, change.post = found["pre"], found["post"]
                    self.mode(found["mode"] or "100644", change)
                case ["new", "file", "mode", mode]:
                    change.created = True
                    self.mode(mode, change)
                case ["deleted", "file", "mode", mode]:
                    change.deleted = True
                    self.mode(mode, change)
                case ["old" | "new", "mode", *_]:
                    self.refuse(
                        self.at + 1, "patch-mode", f"changes the mode of {change.path}. Blob ids cannot tell it."
                    )
                case ["rename" | "copy" as kind, "from", *_]:
                    old = line.removeprefix(f"{kind} from ")
                    message = f"holds a {kind} of {old}. What the new file was made from has no blob id in the patch."
                    self.refuse(self.at + 1, "patch-rename", message)
                case ["rename" | "copy", "to", *name]:
                    change.path = " ".join(name)
                case ["GIT", "binary", "patch"] | ["Binary", "files", *_]:
                    self.refuse(
                        self.at + 1, "patch-binary", f"{change.path} is binary. Nobody can review that.", "leave it out"
                    )
                case ["similarity" | "dissimilarity", "index", *_]:
                    pass
                case ["---", *_] if self.next_line().startswith("+++ "):
                    self.names(change)
                    return self.safe(change)
                case _:
                    return self.safe(change)
            self.at += 1
        return self.safe(change)

    def plain_header(self) -> FileChange:
        """A file of a diff that git did not write: two lines with the names."""
        change = FileChange(path="", line=self.at + 1)
        self.names(change)
        return self.safe(change)

    def names(self, change: FileChange) -> None:
        old, new = _name(self.lines[self.at]), _name(self.lines[self.at + 1])
        self.at += 2
        change.created = change.created or old == "/dev/null"
        change.deleted = change.deleted or new == "/dev/null"
        change.path = _strip(old if new == "/dev/null" else new)
        if "/dev/null" not in (old, new) and _strip(old) != _strip(new):
            self.refuse(
                self.at, "patch-rename", f"renames {_strip(old)} to {_strip(new)}. Its blob id is not in the patch."
            )

    def mode(self, mode: str, change: FileChange) -> None:
        if mode not in _FILE_MODES:
            message = f"{change.path} has mode {mode}. Only regular files are patched: a link may lead out of the tree."
            self.refuse(self.at + 1, "patch-mode", message, "leave it out")

    def safe(self, change: FileChange) -> FileChange:
        """Refuse a name that leads out of the tree or into the repository's own data."""
        parts = PurePosixPath(change.path).parts
        if not parts or change.path.startswith("/") or ".." in parts or "\\" in change.path:
            message = f"touches {change.path or 'a file without a name'}, which is not in the tree."
            self.refuse(change.line, "patch-path", message, "name files from the root of the tree, as a/… and b/…")
        elif any(part.casefold().rstrip(". ") == ".git" for part in parts):
            message = f"touches {change.path}. That is the repository's own data, not its content."
            self.refuse(change.line, "patch-path", message, "leave it out")
        return change

    def hunk(self, change: FileChange) -> None:
        start = self.at
        head = _HUNK.match(self.lines[start])
        assert head is not None  # noqa: S101 - the caller matched it
        old, new = int(head["old"] or 1), int(head["new"] or 1)
        context = False
        self.at += 1
        while old > 0 or new > 0:
            line = self.lines[self.at] if self.at < len(self.lines) else "\0"
            match line[:1]:
                case " " | "":
                    old, new, context = old - 1, new - 1, True
                case "-":
                    old -= 1
                case "+":
                    new -= 1
                case "\\":
                    pass
                case _:
                    message = (
                        f"the hunk of {change.path} is shorter than its header says. It was cut or edited by hand."
                    )
                    self.refuse(start + 1, "patch-hunk", message)
                    return
            self.at += 1
        if old or new:
            message = f"the hunk of {change.path} is longer than its header says. It was edited by hand."
            self.refuse(start + 1, "patch-hunk", message)
        change.hunks += 1
        if not (context or change.created or change.deleted):
            change.bare_hunks.append(start + 1)

    def whole(self, changes: list[FileChange]) -> None:
        """What only the patch as a whole can show."""
        if not changes:
            self.refuse(0, "patch-empty", f"{self.file.name} changes nothing: no file header was found in it.")
        seen: dict[str, FileChange] = {}
        for change in changes:
            first = seen.setdefault(change.path, change)
            if first is not change:
                message = (
                    f"{change.path} is changed twice, first in line {first.line}. One change has one blob id before."
                )
                self.refuse(change.line, "patch-twice", message, "make one patch of the two")
        empty = [change for change in changes if not (change.hunks or change.created or change.deleted)]
        for change in empty if not self.findings else []:
            self.refuse(change.line, "patch-empty", f"{change.path} is named, but nothing in it is changed.")


def _name(line: str) -> str:
    """The name in a ``---`` or ``+++`` line; a tab ends it, since GNU diff writes a date behind one.

    >>> _name("--- a/with space.txt\\t2026-01-01")
    'a/with space.txt'
    """
    return _unquote(line[4:].split("\t", 1)[0])


def _strip(name: str) -> str:
    """Without the first part, as ``git apply`` reads names."""
    return name.partition("/")[2] if not name.startswith("/") else name


def _name_of_both(names: str) -> str:
    r"""The name that stands twice behind ``diff --git``; empty when the two differ.

    >>> _name_of_both("a/x y b/x y"), _name_of_both('"a/\\303\\244" "b/\\303\\244"'), _name_of_both("a/x b/y")
    ('x y', 'ä', '')
    """
    if names.startswith('"'):
        quoted = re.findall(r'"(?:[^"\\]|\\.)*"', names)
        old, new = (_unquote(name) for name in quoted) if len(quoted) == 2 else ("", "/")
    else:
        old, new = names[: len(names) // 2], names[len(names) // 2 + 1 :]
    return _strip(old) if _strip(old) == _strip(new) else ""


def _unquote(name: str) -> str:
    """A name as git writes it when it holds quotes, control characters or, by default, letters beyond ASCII."""
    if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
        return name
    return bytes(_unquoted(name[1:-1])).decode("utf-8", "surrogateescape")


def _unquoted(text: str) -> Iterator[int]:
    for plain, octal, letter in re.findall(r"([^\\]+)|\\([0-7]{3})|\\(.)", text):
        if plain:
            yield from plain.encode("utf-8", "surrogateescape")
        else:
            yield int(octal, 8) & 0xFF if octal else _ESCAPES.get(letter, ord(letter) & 0xFF)
