"""The output file of a job, read as it grows: by offset, whole lines, nothing left behind at the end."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from runners.job import JobId

__all__ = ["JobLog", "carries"]

_PIECE: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 16
_FINGERPRINT: Final = 64


def carries(path: Path, job: JobId) -> bool:
    """Whether a file is that of this job: its name holds the id, or it lies in a folder named like it.

    A file that all jobs share would show the lines of another one.

    >>> from pathlib import Path
    >>> from runners.job import JobId
    >>> [carries(Path(name), JobId(12)) for name in ("slurm-12.out", "12/logs/run.log", "slurm-123.out", "slurm.out")]
    [True, True, False, False]
    """
    number = re.escape(str(job))
    return str(job) in path.parts or re.search(rf"(?<!\d){number}(?!\d)", path.name) is not None


class JobLog:
    """A file that may not be there yet, may grow, and may be begun anew when its job is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        """Bytes read so far of the file as it is now."""
        self.beginnings = 0
        """How often the file was begun; 0 before it is there."""
        self.behind = False
        """Whether `read` has left more than it took."""
        self._inode: tuple[int, int] | None = None
        self._last = b""
        self._partial = b""

    def read(self) -> list[str]:
        """The lines that have become whole since the last call, without their ends; at most 1 MiB of them."""
        new = self._fetch()
        *whole, self._partial = (self._partial + new).split(b"\n")
        lines = [_text(line) for line in whole]
        if len(self._partial) > _LONGEST_LINE:
            end = _whole(self._partial)
            lines.append(_text(self._partial[:end]))
            self._partial = self._partial[end:]
        return lines

    def finish(self) -> list[str]:
        """What is left, with the last line even when nothing ends it."""
        lines = self.read()
        if self._partial and not self.behind:
            lines.append(_text(self._partial))
            self._partial = b""
        return lines

    def _fetch(self) -> bytes:
        """The next bytes. The file is opened anew each time: that is when NFS asks the server for its size."""
        self.behind = False
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            self._refresh_folder()
            return b""
        try:
            facts = os.fstat(descriptor)
            inode = (facts.st_dev, facts.st_ino)
            if inode != self._inode or facts.st_size < self.size or not self._continues(descriptor, facts.st_size):
                self._begin(inode)
            new = os.pread(descriptor, _PIECE, self.size)
        except OSError:
            # An answer of a file server that is away, or a stale handle; the next look tells.
            return b""
        finally:
            os.close(descriptor)
        self.size += len(new)
        self.behind = len(new) == _PIECE
        self._last = (self._last + new)[-_FINGERPRINT:]
        return new

    def _continues(self, descriptor: int, size: int) -> bool:
        """Whether a longer file still holds what was read last; it does not when it was cut and written again."""
        if size == self.size or not self._last:
            return True
        return os.pread(descriptor, len(self._last), self.size - len(self._last)) == self._last

    def _begin(self, inode: tuple[int, int]) -> None:
        self._inode = inode
        self.beginnings += 1
        self.size = 0
        self._last = b""
        if self._partial:
            # The end of the old file will never come; its last line is not glued to the first of the new one.
            self._partial += b"\n"

    def _refresh_folder(self) -> None:
        """Make an NFS client forget that the file was not there; it would remember for up to a minute."""
        try:
            with os.scandir(self.path.parent) as entries:
                next(entries, None)
        except OSError:
            pass


def _whole(data: bytes) -> int:
    """Where the last whole letter of UTF-8 ends."""
    for back in range(1, min(4, len(data) + 1)):
        first = data[-back]
        if first >= 0xC0:
            length = 2 + (first >= 0xE0) + (first >= 0xF0)
            return len(data) - back if length > back else len(data)
        if first < 0x80:
            break
    return len(data)


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")
