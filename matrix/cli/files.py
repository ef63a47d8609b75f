"""Files that commands write: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["append", "replace"]


def replace(name: str | Path, content: str | bytes) -> None:
    """Write a file at once: nobody ever sees half of it. A link stays one, and its target is written.

    What is no file, as ``/dev/null``, ``/dev/stdout`` and a pipe, is written into: to put a file in its place would
    take it away from everybody.

    Raises:
        RefusedError: its folder is missing, or nothing can be written there.
    """
    path = Path(name)
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as stream:
                stream.write(data)
            return
        path = path.resolve() if path.is_symlink() else path
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unwritable(path, error) from None


def append(name: str, text: str) -> None:
    """Add to a file that a runner reads after the step.

    Raises:
        RefusedError: it cannot be written.
    """
    try:
        with Path(name).open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        raise _unwritable(Path(name), error) from None


def _unwritable(path: Path, error: OSError) -> Exception:
    from matrix.errors import RefusedError
    from matrix.findings import Finding, Span

    message = f"this file cannot be written: {(error.strerror or str(error)).lower()}."
    return RefusedError(
        [Finding(rule="file-unwritable", message=message, fix="check the folder and its rights", span=Span(str(path)))]
    )
