"""`Side`: a thing that has points, whatever it is: the working tree, a commit, or a ``plan.json``.

Of a commit only git objects are read. What is asked of the points themselves is asked of `Side`, and so works on each.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.checks.changed import unchanged_configs
from matrix.config.settings import find_settings
from matrix.config.source import parsed_once
from matrix.errors import RefusedError
from matrix.findings import Finding, Severity, errors_of
from matrix.plan.history import History
from matrix.plan.revisions import place_in
from matrix.plan.snapshot import Label, Named, Snapshot, committed, in_folder
from matrix.plan.sweep import read_plan
from matrix.points.evals import only_evals
from matrix.points.pipeline import expand
from matrix.points.request import Request
from matrix.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from matrix.config.model import Config
    from matrix.points.point import Point
    from matrix.workspace import Workspace

__all__ = ["WORKING_TREE", "Side", "is_plan", "open_side", "open_sides", "open_snapshot", "plan_side", "points_side"]

WORKING_TREE: Final = "working tree"
"""What people are told of the files as they lie on the disk."""

_ALL: Final = Request()
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class Side(NamedTuple):
    """The points of one thing by id, in plan order: throughput first, then the accuracy runs that it marks.

    ``name`` is for people: ``working tree``, ``main (1a2b3c4d5e6f)``, ``out/plan.json``. ``points`` and ``workspace``
    are there where configs were expanded; a ``plan.json`` has ``written`` rows and its whole ``record``, and a commit
    without a master config nothing. ``findings`` are warnings; ``label`` tells the paths of a commit as
    ``main:configs/…``, also those of later findings about its workspace.
    """

    name: str
    points: Mapping[str, Point] = _NONE
    written: Mapping[str, dict[str, Any]] = _NONE
    workspace: Workspace | None = None
    findings: tuple[Finding, ...] = ()
    label: Label = Label()
    record: Mapping[str, Any] = _NONE

    @property
    def ids(self) -> Collection[str]:
        """Every id, in plan order."""
        return self.points.keys() or self.written.keys()

    def digest(self, name: str) -> str:
        """The digest of a point: of equal ones the job is the same."""
        point = self.points.get(name)
        return point.digest if point is not None else str(self.written[name]["digest"])

    def row(self, name: str) -> dict[str, Any]:
        """The row of a point. A throughput row of a ``plan.json`` has no marks for evals."""
        point = self.points.get(name)
        return point.row() if point is not None else self.written[name]

    def rows(self) -> dict[str, dict[str, Any]]:
        """All rows by id, made anew."""
        return {name: self.row(name) for name in self.ids}


def is_plan(word: str) -> bool:
    """Whether a word of a command line names a plan file rather than a commit."""
    return word.endswith(".json")


@contextmanager
def open_side(
    word: str | None,
    named: Named = Named(),  # noqa: B008 - immutable
    request: Request = _ALL,
    *,
    history: History | None = None,
    folder: str = ".",
) -> Iterator[Side]:
    """The side that a word names: a ``plan.json``, a commit, or without a word the working tree.

    ``named`` are files of the command line as seen from ``folder``; a ``plan.json`` has been selected before, and
    ``request`` selects of the others. ``history`` is a reader of the repository that is open already. The files of a
    commit can be read as long as the context lasts.

    Raises:
        RefusedError: what expansion refuses; of a commit the places are told as ``main:configs/amd-master.yaml:3:1``.
    """
    if word is not None and is_plan(word):
        yield plan_side(word)
        return
    with open_snapshot(word, named, history=history, folder=folder) as (name, snapshot):
        yield points_side(name, snapshot, request) if snapshot is not None else _nothing(name)


def plan_side(path: str) -> Side:
    """The points of a ``plan.json``.

    Raises:
        RefusedError: it is another file, or not whole.
    """
    plan = read_plan(path)
    return Side(path, written=plan.rows, record=plan.record)


@contextmanager
def open_snapshot(
    word: str | None, named: Named, *, history: History | None = None, folder: str = "."
) -> Iterator[tuple[str, Snapshot | None]]:
    """The configuration of a commit, or without a word of the working tree, and its name. See `open_side`."""
    if word is None:
        yield WORKING_TREE, in_folder(open_workspace(folder, **named._asdict()))
        return
    with History.reader(folder, history) as reader:
        revision = reader.revision(word)
        root = find_settings(folder).root
        inside = named.placed(lambda path: place_in(reader, path))
        below = place_in(reader, root) if root else ""
        with committed(reader, revision, inside, root=below, label=f"{revision.short}:") as snapshot:
            yield str(revision), snapshot


@contextmanager
def open_sides(
    one: str | None,
    other: str | None,
    named: Named = Named(),  # noqa: B008 - immutable
    request: Request = _ALL,
    *,
    history: History | None = None,
    folder: str = ".",
) -> Iterator[tuple[Side, Side, frozenset[str]]]:
    """Two sides, and the keys of the configs that are made of the same things in both, down to pin and patches.

    ``request`` selects of both, but not of a ``plan.json``.

    Raises:
        RefusedError: as `open_side`, with what is wrong on either side.
    """
    with ExitStack() as stack:
        stack.enter_context(parsed_once())
        findings: list[Finding] = []
        sides: list[Side] = []
        snapshots: list[Snapshot | None] = []
        for word in (one, other):
            snapshot = None
            try:
                if word is not None and is_plan(word):
                    side = stack.enter_context(open_side(word))
                else:
                    name, snapshot = stack.enter_context(open_snapshot(word, named, history=history, folder=folder))
                    side = points_side(name, snapshot, request) if snapshot is not None else _nothing(name)
            except RefusedError as error:
                findings += error.findings
                continue
            sides.append(side)
            snapshots.append(snapshot)
        if findings:
            raise RefusedError(findings)
        yield sides[0], sides[1], _unchanged(*snapshots)


def points_side(
    name: str, snapshot: Snapshot, request: Request = _ALL, configs: Sequence[Config] | None = None
) -> Side:
    """The points of a configuration; of some configs of it where these are given.

    Raises:
        RefusedError: what expansion refuses, warnings with it.
    """
    workspace, label = snapshot.workspace, snapshot.label
    chosen = workspace.configs if configs is None else configs
    found = expand(chosen, workspace.facts, workspace.policy, request._replace(ids=()))
    findings = [*found.findings]
    points = [point for point in found.points if not point.eval_only]
    points += only_evals(found.points)
    if request.ids:
        from matrix.points.select import matches
        from matrix.points.unknown import unknown_ids

        findings += unknown_ids(points, request.ids)
        points = [point for point in points if any(matches(pattern, point.id) for pattern in request.ids)]
    told = tuple(label.relabel(findings))
    if errors_of(told):
        raise RefusedError(told)
    return Side(name, {point.id: point for point in points}, _NONE, workspace, told, label)


def _unchanged(before: Snapshot | None, after: Snapshot | None) -> frozenset[str]:
    if before is None or after is None or before.workspace.facts.stack != after.workspace.facts.stack:
        return frozenset()
    same = cache(lambda path: after.stamp(path) == before.stamp(path))
    return unchanged_configs(after.workspace, before.workspace, same)


def _nothing(name: str) -> Side:
    message = f"{name} has no master config, so it has no points."
    fix = "name its master with --config, or another commit"
    return Side(name, findings=(Finding(rule="side-empty", message=message, fix=fix, severity=Severity.WARNING),))
