"""`Case`: one search-space entry with its resolved recipe. `Space`: all of them, and what is known beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from matrix.config.model import Aggregated, SingleNode
from matrix.config.source import Map
from matrix.points.expand import Selection, survey
from matrix.points.row import CONFIG_FILE
from matrix.points.select import matches
from matrix.points.unique import Distinct, suspects
from matrix.recipes.acceptance import settings_of
from matrix.recipes.recipe import parse_reference
from matrix.recipes.roles import ViewError, view_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matrix.config.model import Config, Entry, Scenario, Worker
    from matrix.findings import Finding, Span
    from matrix.points.expand import Facts
    from matrix.points.point import Deployment, Point
    from matrix.recipes.golden import CurveBook
    from matrix.recipes.roles import RecipeView, Role

__all__ = ["Case", "Side", "Space", "absent", "space_of"]


class Side(NamedTuple):
    """One kind of worker: ``worker`` as the row has it, ``role`` as the recipe does, None where it has no such role."""

    worker: Worker
    role: Role | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One entry as the cluster would get it.

    ``number`` counts the entries of its search space from 1. ``points`` are those that were asked for, all of them
    where it is ``whole``; ``concs`` is all that the entry declares. ``view`` is None where no recipe is named, or it is
    not there, or cannot be read. ``earlier``: the entries before it that name the same recipe, by config key and place.
    """

    deployment: Deployment
    number: int
    points: tuple[Point, ...]
    whole: bool
    concs: tuple[int, ...]
    view: RecipeView | None
    earlier: tuple[tuple[str, Span], ...]
    facts: Facts
    curves: CurveBook | None
    workspace: Path | None

    @property
    def config(self) -> Config:
        """The master config that the entry stands in."""
        return self.deployment.config

    @property
    def scenario(self) -> Scenario:
        """The scenario that the entry stands in."""
        return self.deployment.scenario

    @property
    def entry(self) -> Entry:
        """The entry itself."""
        return self.deployment.entry

    @property
    def place(self) -> Span:
        """Where the entry begins."""
        return self.config.document.span(self.entry.node.mark)

    @property
    def named(self) -> Span:
        """The line that names the recipe; where the entry begins when there is none."""
        node, document, wanted = self.entry.node, self.config.document, f"{CONFIG_FILE}{self.deployment.reference}"
        if "srt-recipe" in node:
            return document.of_value(node, "srt-recipe")
        for role in ("worker", "prefill", "decode"):
            for index, setting in enumerate(node.get(role, {}).get("additional-settings") or ()):
                if setting == wanted:
                    return document.of_value(node[role]["additional-settings"], index)
        return self.place

    def said(self, node: Map, key: str) -> Span:
        """The line of the master that says a value; where its mapping begins when it is a default."""
        return self.config.document.of_value(node, key)

    def sides(self) -> Iterator[Side]:
        """Prefill and decode, or the one kind of worker that does both."""
        assert self.view is not None  # noqa: S101 - asked of a readable recipe alone
        roles, topology = self.view.roles, self.entry.topology
        if isinstance(topology, SingleNode | Aggregated):
            yield Side(topology.worker, roles.get("agg"))
        else:
            yield Side(topology.prefill, roles.get("prefill"))
            yield Side(topology.decode, roles.get("decode"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Space:
    """Everything that is checked together.

    ``found`` is what expansion found on the way. ``named``: every recipe that a master names, as ``path:selector``
    below a root. ``complete``: all points of all configs were asked for, so that what nobody names is unused.
    """

    configs: Sequence[Config]
    cases: tuple[Case, ...]
    found: tuple[Finding, ...]
    named: frozenset[str]
    complete: bool
    facts: Facts
    curves: CurveBook | None


def space_of(
    configs: Sequence[Config],
    facts: Facts,
    *,
    names: Sequence[str] = (),
    curves: CurveBook | None = None,
    workspace: Path | None = None,
    complete: bool = True,
) -> tuple[Space, tuple[Finding, ...]]:
    """Every entry that ``names`` select, config keys or point ids, exact or as globs; and a finding per unknown name.

    ``complete`` says that the configs are all that use the recipe roots; it does not hold when there are names.
    """
    # Recipes are judged as they are written: injection is what a launch does to them.
    facts = facts._replace(inject=None)
    wanted = _Wanted(configs, names)
    found = survey(wanted.configs, facts)
    numbers: dict[int, int] = {}
    homes: dict[str, list[tuple[str, Span]]] = {}
    for config, entry, number in _entries(configs):
        numbers[id(entry.node)] = number
        for recipe in _recipes(entry):
            homes.setdefault(recipe, []).append((config.key, config.document.span(entry.node.mark)))
    cases = []
    for group in found.groups:
        every = tuple(Selection((group,)))
        picked = wanted.pick(every)
        if not picked:
            continue
        deployment = group[0]
        entry = deployment.entry
        place = deployment.config.document.span(entry.node.mark)
        sharing = homes[next(iter(_recipes(entry)))] if deployment.reference is not None else []
        cases.append(
            Case(
                deployment=deployment,
                number=numbers[id(entry.node)],
                points=picked,
                whole=len(picked) == len(every),
                concs=tuple(dict.fromkeys(conc for point in every for conc in point.concs)),
                view=_view(deployment),
                earlier=tuple(sharing[: [span for _, span in sharing].index(place)]) if sharing else (),
                facts=facts,
                curves=curves,
                workspace=workspace,
            )
        )
    space = Space(
        configs=wanted.configs,
        cases=tuple(cases),
        found=(*found.findings, *Distinct(Selection(found.groups), suspects(found.groups)).findings),
        named=frozenset(homes),
        complete=complete and not names,
        facts=facts,
        curves=curves,
    )
    return space, tuple(wanted.unknown())


class _Wanted:
    """The names of a command line: those of configs, and those of points."""

    def __init__(self, configs: Sequence[Config], names: Sequence[str]) -> None:
        every = [config.key for config in configs]
        self.keys = {key for key in every for name in names if matches(name, key)}
        self.ids = [name for name in names if not any(matches(name, key) for key in every)]
        reachable = {key for key in every for name in self.ids if matches(name.split("--")[0], key)}
        self.configs = [config for config in configs if not names or config.key in self.keys | reachable]
        self.every = every
        self.all = not names
        self.seen: set[str] = set()
        self.near: list[str] = []

    def pick(self, points: tuple[Point, ...]) -> tuple[Point, ...]:
        """Those of an entry's points that were asked for."""
        if self.all:
            return points
        self.near += [point.id for point in points]
        key = points[0].deployment.config.key if points else ""
        picked = []
        for point in points:
            hit = [name for name in self.ids if matches(_plain_id(name), point.id)]
            self.seen.update(hit)
            if hit or key in self.keys:
                picked.append(point)
        return tuple(picked)

    def unknown(self) -> Iterator[Finding]:
        """A finding for each name that nothing has."""
        from matrix.findings import Finding, did_you_mean

        for name in self.ids:
            if name in self.seen:
                continue
            if "--" in name:
                mine = [point for point in self.near if point.split("--")[0] == name.split("--")[0]]
                message, rule = f"no point has the id {name}.", "point-unknown"
                fix = did_you_mean(name, mine or self.every)
            else:
                message, rule = f"no config has the key {name}.", "config-key-unknown"
                fix = did_you_mean(name.strip("*?"), self.every)
            yield Finding(rule=rule, message=message, fix=fix)


def _entries(configs: Sequence[Config]) -> Iterator[tuple[Config, Entry, int]]:
    """Every entry with its config and its number in its search space."""
    for config in configs:
        for scenario in config.scenarios:
            for number, entry in enumerate(scenario.entries, 1):
                yield config, entry, number


def _recipes(entry: Entry) -> dict[str, None]:
    """The recipes that an entry names, as ``path:selector`` below a root, however that is spelled."""
    named = [text[len(CONFIG_FILE) :] for text in settings_of(entry) if text.startswith(CONFIG_FILE)]
    named += [entry.srt_recipe] if entry.srt_recipe is not None else []
    found: dict[str, None] = {}
    for text in named:
        _, path, selector = parse_reference(text)
        found[f"{path}:{selector}" if selector is not None else path] = None
    return found


def absent(view: RecipeView, *path: str) -> Span:
    """Where a value belongs that a recipe says nowhere: the deepest part of its path that the variants share."""
    document = view.recipe.document
    node: Any = document.root.get("base", document.root)
    span = document.of_key(document.root, "base") if "base" in document.root else document.span()
    for key in path:
        if not isinstance(node, Map) or key not in node:
            break
        span, node = document.of_key(node, key), node[key]
    return span


def _plain_id(name: str) -> str:
    """The throughput point of an id: what an accuracy run or one node of it is held to is the same."""
    return name.partition("--on-")[0].partition("--eval")[0]


def _view(deployment: Deployment) -> RecipeView | None:
    if deployment.recipe is None:
        return None
    try:
        return view_of(deployment.recipe)
    except ViewError:
        return None
