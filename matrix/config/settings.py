"""Where a repository keeps its files: ``[tool.matrix]`` of the nearest ``pyproject.toml``, or the usual places.

Paths in ``[tool.matrix]`` are relative to that file. Without it a folder upwards of the working directory that holds
``configs/runners.yaml`` is the repository. Paths are strings here: pathlib would cost every command 4 ms.
"""

# ruff: noqa: PTH100, PTH110, PTH112, PTH113, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import re
from math import inf
from os import listdir
from os.path import abspath, dirname, exists, isdir, isfile, join
from typing import TYPE_CHECKING, Any, Final

from matrix.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.findings import Finding

__all__ = ["LABELS", "Settings", "find_settings"]

LABELS: Final = "configs/labels.yaml"
"""Where the label registry is unless ``[tool.matrix]`` says otherwise."""

_TABLE: Final = "[tool.matrix"
_PATH_LISTS: Final = ("masters", "recipes")
_PATHS: Final = ("runners", "golden", "evals", "changelog", "labels", "workflows", "clusters")
_OTHERS: Final = ("repository", "budget-gpu-hours")
_RECIPE_ROOTS: Final = ("configs/recipes", "benchmarks/multi_node/srt-slurm-recipes")


class Settings(Record):
    """The files of one repository. ``root``: its folder, None when no repository was found.

    ``budget_gpu_hours``: the most that a plan may cost; None for no bound.
    """

    root: str | None = None
    masters: tuple[str, ...] = ()
    runners: str | None = None
    recipes: tuple[str, ...] = ()
    golden: str | None = None
    evals: str | None = None
    changelog: str | None = None
    labels: str | None = None
    workflows: str | None = None
    clusters: str | None = None
    repository: str | None = None
    budget_gpu_hours: float | None = None

    def override(
        self,
        *,
        masters: Sequence[str] = (),
        runners: str | None = None,
        recipes: Sequence[str] = (),
        golden: str | None = None,
    ) -> Settings:
        """The settings with what a command line names in their place."""
        return self._replace(
            masters=tuple(masters) or self.masters,
            runners=runners or self.runners,
            recipes=tuple(recipes) or self.recipes,
            golden=golden or self.golden,
        )


def find_settings(start: str) -> Settings:
    """The settings in force in a folder; their paths are written as seen from it.

    Raises:
        RefusedError: ``[tool.matrix]`` is broken or has an unknown key.
    """
    folder, shown = abspath(start), start if start != "." else ""
    while True:
        pyproject = join(folder, "pyproject.toml")
        if isfile(pyproject):
            with open(pyproject, encoding="utf-8", errors="replace") as stream:
                text = stream.read()
            table = _table(join(shown, "pyproject.toml"), text) if _TABLE in text else None
            if table is not None:
                return _from_table(folder, shown, table)
        if isfile(join(folder, "configs", "runners.yaml")):
            return _from_table(folder, shown, {})
        parent = dirname(folder)
        if parent == folder:
            return Settings()
        folder, shown = parent, join(shown, "..") if shown else ".."


def _from_table(folder: str, shown: str, table: dict[str, Any]) -> Settings:
    def place(key: str, usual: str) -> str | None:
        if key in table:
            return join(shown, str(table[key]))
        return join(shown, usual) if exists(join(folder, usual)) else None

    recipes = table.get("recipes", [name for name in _RECIPE_ROOTS if isdir(join(folder, name))])
    return Settings(
        root=shown or ".",
        masters=tuple(join(shown, name) for name in table.get("masters") or _usual_masters(folder)),
        runners=place("runners", "configs/runners.yaml"),
        recipes=tuple(join(shown, name) for name in recipes),
        golden=place("golden", "configs/golden"),
        evals=place("evals", "configs/evals.yaml"),
        changelog=place("changelog", "perf-changelog.yaml"),
        labels=place("labels", LABELS),
        workflows=place("workflows", ".github/workflows"),
        clusters=place("clusters", "configs/clusters"),
        repository=table.get("repository"),
        budget_gpu_hours=table.get("budget-gpu-hours"),
    )


def _usual_masters(folder: str) -> list[str]:
    configs = join(folder, "configs")
    names = sorted(listdir(configs)) if isdir(configs) else []
    return [f"configs/{name}" for name in names if name.endswith("-master.yaml")]


def _table(name: str, text: str) -> dict[str, Any] | None:
    """The checked ``[tool.matrix]`` of a pyproject; None when it has none after all."""
    import tomllib

    from matrix.errors import RefusedError
    from matrix.findings import Finding, Span

    try:
        tool = tomllib.loads(text).get("tool")
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).removesuffix(" (at end of document)").partition(" (at line ")
        line, _, column = place.rstrip(")").partition(", column ")
        span = Span(name, int(line), int(column)) if column.isdecimal() else Span(name, text.count("\n") or 1, 1)
        message = f"this is not valid TOML: {what[:1].lower()}{what[1:]}."
        raise RefusedError([Finding(rule="settings-toml", message=message, fix="mend the file", span=span)]) from None
    if not isinstance(tool, dict) or "matrix" not in tool:
        return None
    table = tool["matrix"]
    if not isinstance(table, dict):
        span = Span(name, text.count("\n", 0, text.index(_TABLE)) + 1, 1)
        message = "[tool.matrix] is a list of tables, and a repository has one."
        raise RefusedError([Finding(rule="settings-value", message=message, fix="write [tool.matrix]", span=span)])
    findings = [finding for key, value in table.items() for finding in _check(name, text, key, value)]
    if findings:
        raise RefusedError(findings)
    return table


def _check(name: str, text: str, key: str, value: Any) -> list[Finding]:
    from matrix.findings import Finding, Span, did_you_mean

    table_at = text.index(_TABLE)
    at = re.compile(rf"^[ \t]*[\"']?{re.escape(key)}(?![\w-])", re.MULTILINE).search(text, table_at)
    line = text.count("\n", 0, at.start() if at else table_at) + 1
    span = Span(name, line, 1)
    known = (*_PATH_LISTS, *_PATHS, *_OTHERS)
    if key not in known:
        message = f"[tool.matrix] has no key {key}."
        return [Finding(rule="settings-key", message=message, fix=did_you_mean(key, known), span=span)]
    if key in _PATH_LISTS:
        good = isinstance(value, list) and bool(value) and all(isinstance(path, str) and path for path in value)
        wanted = "a list of paths"
    elif key == "budget-gpu-hours":
        good, wanted = type(value) in (int, float) and 0 < value < inf, "a finite number above 0"
    else:
        good, wanted = isinstance(value, str) and bool(value), "a string"
    message = f"[tool.matrix] {key} is {value!r}, and it takes {wanted}."
    return [] if good else [Finding(rule="settings-value", message=message, fix=f"write {wanted}", span=span)]
