"""GitHub's own workflow parser and expression evaluator, as a process that answers questions about workflows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import pytest

from runners.workspace import locked

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Evaluator", "bundle"]

HERE: Final = Path(__file__).resolve().parent
SOURCES: Final = ("package.json", "package-lock.json", "evaluate.js")


def bundle(cache: Path) -> Path:
    """The evaluator as one file, made once for each state of its sources.

    The packages are ES modules with imports of JSON, which not every Node loads; the bundle is CommonJS.
    """
    state = sha256(b"\0".join((HERE / name).read_bytes() for name in SOURCES)).hexdigest()[:16]
    target = cache / state / "bundle.cjs"
    with locked(cache / "lock"):  # other workers wait for the one that makes it
        if not target.exists():
            _make(target)
    return target


def _make(target: Path) -> None:
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            unavailable(f"{program} is missing (Debian: apt-get install nodejs npm)")
    folder = Path(mkdtemp(prefix="new-", dir=target.parents[1]))
    for name in SOURCES:
        shutil.copy(HERE / name, folder / name)
    options = ("--bundle", "--platform=node", "--format=cjs", "--outfile=bundle.cjs", "--log-level=warning")
    for command in (
        ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"),
        ("node_modules/.bin/esbuild", "evaluate.js", *options),
    ):
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode:
            unavailable(f"{command[0]} failed: {result.stderr.strip()[-300:]}")
    shutil.rmtree(folder / "node_modules")
    folder.rename(target.parent)


def unavailable(reason: str) -> NoReturn:
    if os.environ.get("REQUIRE_NODE") == "1":
        pytest.fail(f"GitHub's evaluator is wanted (REQUIRE_NODE=1): {reason}")
    pytest.skip(f"GitHub's evaluator: {reason}")


class Evaluator:
    """A context manager around the process. Workflows are known by their file's name without its ending."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(["node", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()

    def parse(self, name: str, text: str) -> dict[str, Any]:
        """The errors of a workflow, and its jobs: id, needs, uses."""
        return self._ask({"parse": {"name": name, "text": text}})

    def value(
        self, workflow: str, job: str | None, what: str, contexts: Mapping[str, Any], status: str = "success"
    ) -> Any:
        """A field of a workflow (job None) or of a job, its expressions evaluated.

        ``status``: how the jobs before it ended, as success(), failure() and cancelled() see it.
        """
        request = {"workflow": workflow, "job": job, "what": what, "contexts": contexts, "status": status}
        answer = self._ask(request)
        if "error" in answer:
            raise EvaluationError(answer["error"])
        return answer["value"]

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


class EvaluationError(Exception):
    """GitHub's evaluator refuses."""
