"""Run the command line: in this process for speed, or in one of its own for signals, pipes and terminals."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from matrix.cli.main import matrix, run

__all__ = ["HEAD", "MASTER", "ROOT", "RUNNERS", "Outcome", "cli", "environment", "process", "program", "repository"]

ROOT: Final = Path(__file__).parents[2]
RUNNERS: Final = """\
labels:
  mi355x: [mi355x-a_00, mi355x-a_01]
  cluster:mi355x-a: [mi355x-a_00, mi355x-a_01]
clusters:
  mi355x-a: {gpus-per-node: 8, available-cpu-dram-mib: 1471356}
"""
HEAD: Final = "image: i:1, model: org/M, model-prefix: m, precision: fp8, framework: sglang"
MASTER: Final = f"""\
alpha:
  {{{HEAD}, runner: mi355x, multinode: false, scenarios: {{fixed-seq-len: [
    {{isl: 8192, osl: 1024, search-space: [{{tp: 8, conc-list: [4, 16]}}]}}]}}}}
"""


class Outcome(NamedTuple):
    """What a command line gave."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of JSON output."""
        found: list[dict[str, Any]] = json.loads(self.out)
        return found


def cli(*words: str) -> Outcome:
    """``matrix`` in this process and its working directory."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(matrix, words, prog="matrix")
    return Outcome(status, out.getvalue(), err.getvalue())


def program(*lines: str) -> str:
    """What a program of its own prints, which imports from this checkout."""
    words = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(words, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def environment(**changes: str) -> dict[str, str]:
    """The environment of a child that runs this checkout."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "PYTHONUNBUFFERED")}
    return {**kept, "PYTHONPATH": str(ROOT), **changes}


def process(*words: str, cwd: Path, **changes: str) -> Outcome:
    """``python -m matrix`` in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "matrix", *words],
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Outcome(result.returncode, result.stdout, result.stderr)


def repository(folder: Path, master: str = MASTER, runners: str = RUNNERS) -> Path:
    """A repository with the usual places."""
    (folder / "configs").mkdir(parents=True)
    (folder / "configs" / "amd-master.yaml").write_text(master, encoding="utf-8")
    (folder / "configs" / "runners.yaml").write_text(runners, encoding="utf-8")
    return folder
