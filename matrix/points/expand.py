"""Configs -> points: one expander for every scenario and topology kind.

`survey` turns each search-space entry into deployments, one per runner, and collects what refuses or warns; the points
themselves are streamed by `Selection`, so that a million of them cost no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matrix.config.model import Aggregated, SingleNode
from matrix.errors import RefusedError
from matrix.points.budget import BudgetError, dram_budget_gb, gpus_used, topology_nodes
from matrix.points.point import NO_RECIPES, Deployment, Point, Stack
from matrix.points.row import CONFIG_FILE, Frame
from matrix.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matrix.config.fleet import Fleet
    from matrix.config.model import Config, Disaggregated, Entry, Scenario
    from matrix.findings import Finding
    from matrix.points.point import Recipes
    from matrix.points.select import Selector
    from matrix.recipes.recipe import Recipe, RecipeBook

    Inject = Callable[[Recipe, Config, Scenario, Entry], tuple[Recipe, Recipe, str | None]]

__all__ = ["Facts", "Selection", "Survey", "survey"]


class Facts(Record):
    """What expansion asks of the world, read beforehand or on demand: runners, recipes, the software below them.

    ``inject`` turns a resolved recipe into (throughput recipe, accuracy recipe, golden value); None leaves it as it is.
    """

    fleet: Fleet
    recipes: RecipeBook | None = None
    stack: Stack = Stack()
    inject: Inject | None = None


class Survey(Record):
    """The deployments of the chosen configs in output order, grouped by entry, with what was found on the way."""

    groups: tuple[tuple[Deployment, ...], ...]
    findings: tuple[Finding, ...]


def survey(
    configs: Iterable[Config],
    facts: Facts,
    *,
    keep: Callable[[Config, Scenario], bool] | None = None,
    node_filter: str | None = None,
) -> Survey:
    """Every entry of the configs as deployments, one per runner.

    ``keep`` leaves out a scenario unread: what it holds can refuse nothing. ``node_filter`` puts those nodes of a label
    whose names contain it in the label's place.
    """
    surveyor = _Surveyor(facts)
    groups: list[tuple[Deployment, ...]] = []
    for config in configs:
        runners: Sequence[str] | None = None
        for scenario in config.scenarios:
            if keep is not None and not keep(config, scenario):
                continue
            if runners is None:
                runners = surveyor.runners(config, node_filter)
            frames = [Frame(config, scenario, runner, on_node=node_filter is not None) for runner in runners]
            for entry in scenario.entries:
                group = surveyor.deploy(config, scenario, entry, frames)
                if group:
                    groups.append(group)
    return Survey(tuple(groups), surveyor.report())


class _Surveyor:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.findings: list[Finding] = []
        self.told: set[str] = set()
        self.per_node: dict[str, tuple[int, ...]] = {}
        self.unread: list[str] = []

    def runners(self, config: Config, node_filter: str | None) -> Sequence[str]:
        label = config.runner
        fleet = self.facts.fleet
        if label not in fleet.labels:
            from matrix.findings import Finding, Severity

            message = f"{config.key}: {fleet.document.name} has no runner label {label}, so no machine takes its jobs."
            family = fleet.family(label)
            near = [name for name in fleet.labels if fleet.family(name) == family]
            fix = f"name one of its labels; of this family it has {', '.join(near)}" if near else _near(label, fleet)
            span = config.document.of_value(config.node, "runner")
            self.findings.append(
                Finding(rule="runner-unknown", message=message, fix=fix, span=span, severity=Severity.WARNING)
            )
        if node_filter is None:
            return (label,)
        return tuple(dict.fromkeys(node for node in fleet.nodes(label) if node_filter in node))

    def deploy(
        self, config: Config, scenario: Scenario, entry: Entry, frames: Sequence[Frame]
    ) -> tuple[Deployment, ...]:
        facts, topology, book = self.facts, entry.topology, self.facts.recipes
        try:
            budget = dram_budget_gb(config, scenario, entry, facts.fleet) if entry.offload.mode == "dram" else 0
            reference = self.reference(config, entry)
            recipes, recipe_nodes = NO_RECIPES, None
            if reference is not None:
                if book:
                    recipe, recipe_nodes = self.recipe(book, reference, config, entry)
                    recipes = self.injected(recipe, config, scenario, entry)
                else:
                    self.unread.append(reference)
            known = self.gpus_per_node(config.runner)
            per_node = known[0] if len(known) == 1 else None
            group = []
            for frame in frames:
                nodes = None
                if not isinstance(topology, SingleNode):
                    nodes = recipe_nodes
                    if nodes is None or (isinstance(topology, Aggregated) and topology.num_nodes is not None):
                        nodes = self.nodes(topology, frame.runner, config, entry)
                group.append(
                    Deployment(
                        frame,
                        entry,
                        budget_gb=budget,
                        nodes=nodes,
                        gpus=gpus_used(topology, nodes, per_node),
                        reference=reference,
                        recipes=recipes,
                        stack=facts.stack,
                    )
                )
        except BudgetError as error:
            self.findings.append(error.finding)
            return ()
        return tuple(group)

    def gpus_per_node(self, label: str) -> tuple[int, ...]:
        known = self.per_node.get(label)
        if known is None:
            known = self.per_node[label] = self.facts.fleet.gpus_per_node(label)
        return known

    def nodes(self, topology: Aggregated | Disaggregated, runner: str, config: Config, entry: Entry) -> int | None:
        """The count by topology. A runners file that need not hold every fact leaves it open, with a warning."""
        fleet = self.facts.fleet
        try:
            return topology_nodes(topology, config, entry, runner, fleet, self.gpus_per_node)
        except BudgetError as error:
            if fleet.complete or error.finding.rule != "hardware-missing":
                raise
            if runner not in self.told:
                from matrix.findings import Severity

                self.told.add(runner)
                self.findings.append(error.finding._replace(severity=Severity.WARNING))
            return None

    def reference(self, config: Config, entry: Entry) -> str | None:
        """The one recipe that the entry names."""
        topology = entry.topology
        if isinstance(topology, SingleNode):
            return entry.srt_recipe
        named = [text for worker in topology.workers for text in worker.settings if text.startswith(CONFIG_FILE)]
        if not named:
            return None
        if named.count(named[0]) < len(named):
            self.conflict(config, entry)
            return None
        return named[0][len(CONFIG_FILE) :]

    def conflict(self, config: Config, entry: Entry) -> None:
        """The roles of the entry name several recipes."""
        from matrix.findings import Finding, Related

        document, places = config.document, _places(entry)
        spans = [document.of_value(node, key) for _, node, key in places]
        texts = [text for text, _, _ in places]
        message = (
            f"{config.key}: the roles name different recipes, {' and '.join(dict.fromkeys(texts))}. One job runs one."
        )
        fix = "keep one CONFIG_FILE, on either role"
        related = tuple(Related(span, text) for span, text in list(zip(spans, texts, strict=True))[1:])
        self.findings.append(Finding(rule="recipe-conflict", message=message, fix=fix, span=spans[0], related=related))

    def recipe(
        self, book: RecipeBook, reference: str, config: Config, entry: Entry
    ) -> tuple[Recipe | None, int | None]:
        from matrix.recipes.recipe import RecipeError
        from matrix.recipes.roles import ViewError, node_count, view_of

        try:
            recipe = book.resolve(reference)
            return recipe, node_count(view_of(recipe))
        except RecipeError as error:
            self.tell(error.finding, reference, config, entry, missing=error.missing)
        except ViewError as error:
            self.tell(error.finding, reference, config, entry, missing=False)
        return None, None

    def injected(self, recipe: Recipe | None, config: Config, scenario: Scenario, entry: Entry) -> Recipes:
        """Throughput recipe, accuracy recipe, golden length. Without a length the row is right: a warning."""
        if recipe is None or self.facts.inject is None:
            return recipe, recipe, None
        try:
            return self.facts.inject(recipe, config, scenario, entry)
        except RefusedError as error:
            from matrix.findings import Severity

            self.findings += (finding._replace(severity=Severity.WARNING) for finding in error.findings)
            return recipe, recipe, None

    def tell(self, finding: Finding, reference: str, config: Config, entry: Entry, *, missing: bool) -> None:
        """Once per recipe: at the line of the master that names it, or in the recipe where that is the broken one."""
        if reference in self.told:
            return
        self.told.add(reference)
        from matrix.findings import Related, Severity

        _, node, key = _places(entry)[0]
        place = config.document.of_value(node, key)
        if missing:
            told = finding._replace(span=place, severity=Severity.WARNING)
        else:
            told = finding._replace(span=finding.span or place, severity=Severity.ERROR)
            if finding.span is not None:
                told = told._replace(related=(Related(place, f"named by {config.key}"),))
        self.findings.append(told)

    def report(self) -> tuple[Finding, ...]:
        if self.unread:
            from matrix.findings import Finding, Severity

            count = len(set(self.unread))
            message = f"no recipe root was found: {count} recipes are unread, and node counts come from topologies."
            fix = "name the folder with --recipes DIR or [tool.matrix] recipes"
            self.findings.append(Finding(rule="recipe-root", message=message, fix=fix, severity=Severity.WARNING))
        return tuple(self.findings)


def _places(entry: Entry) -> list[tuple[str, Any, Any]]:
    """Each recipe that an entry names, with what holds the name: a mapping and key, or a list and index."""
    topology = entry.topology
    if isinstance(topology, SingleNode):
        return [(entry.srt_recipe, entry.node, "srt-recipe")] if entry.srt_recipe is not None else []
    return [
        (setting[len(CONFIG_FILE) :], worker.node["additional-settings"], index)
        for worker in (topology.workers[0], topology.workers[1])
        for index, setting in enumerate(worker.settings)
        if setting.startswith(CONFIG_FILE)
    ]


def _near(label: str, fleet: Fleet) -> str:
    from matrix.findings import did_you_mean

    return did_you_mean(label, fleet.labels)


class Selection:
    """The points of a survey that every selector keeps, in order; iterating again makes them again."""

    def __init__(
        self, groups: tuple[tuple[Deployment, ...], ...], selectors: tuple[Selector, ...] = (), step: int = 2
    ) -> None:
        self.groups = groups
        self.selectors = selectors
        self.step = step

    def __iter__(self) -> Iterator[Point]:
        for deployment, concs in self.allocations():
            yield Point(deployment, concs)

    def allocations(self) -> Iterator[tuple[Deployment, tuple[int, ...]]]:
        """The points as pairs of deployment and concurrencies, for who makes points of another kind from them."""
        return self._kept() if self.selectors else self._all()

    def tops(self) -> Iterator[tuple[Deployment, Sequence[int]]]:
        """Each deployment with the highest concurrency of each of its allocations."""
        if self.selectors:
            for deployment, concs in self._kept():
                yield deployment, (max(concs),)
            return
        for group in self.groups:
            first = group[0]
            ladder = first.entry.ladder(self.step)
            tops = (max(ladder),) if first.multinode and not first.agentic else ladder
            for deployment in group:
                yield deployment, tops

    def _all(self) -> Iterator[tuple[Deployment, tuple[int, ...]]]:
        step = self.step
        for group in self.groups:
            first = group[0]
            ladder = first.entry.ladder(step)
            if not first.multinode:
                for conc in ladder:
                    for deployment in group:
                        yield deployment, (conc,)
            elif not first.agentic:
                concs = tuple(dict.fromkeys(ladder))
                for deployment in group:
                    yield deployment, concs
            else:
                for deployment in group:
                    for conc in ladder:
                        yield deployment, (conc,)
            for deployment in group:
                deployment.forget()

    def _kept(self) -> Iterator[tuple[Deployment, tuple[int, ...]]]:
        for deployment, concs in self._all():
            kept = Point(deployment, concs)
            for selector in self.selectors:
                left = selector(kept).point
                if left is None:
                    break
                kept = left
            else:
                yield deployment, kept.concs
