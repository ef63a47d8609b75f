"""One id, one job: exact repetitions are dropped with a warning, two different jobs under one id are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matrix.findings import Finding, Severity
    from matrix.points.point import Deployment, Point

__all__ = ["Distinct", "suspects"]


def suspects(groups: Iterable[tuple[Deployment, ...]], *, step: int = 2, whole: bool = False) -> frozenset[int]:
    """The deployments (by ``id()``) whose points can repeat an id: alike but for concurrencies, of which some are too.

    Everything else is unique by construction, so a stream of a million points need not remember its ids. ``step``
    climbs the ranges. ``whole``: no point loses a concurrency: those of one allocation are alike if all are.
    """
    homes: dict[str, list[tuple[Deployment, ...]]] = {}
    for group in groups:
        first = group[0]
        homes.setdefault(first.stem + first.tail, []).append(group)
    return frozenset(
        id(deployment)
        for home in homes.values()
        if len(home) > 1 or len(home[0][0].entry.concurrencies) > 1
        if _meet([group[0] for group in home], step, whole=whole)
        for group in home
        for deployment in group
    )


def _meet(alike: Sequence[Deployment], step: int, *, whole: bool) -> bool:
    """Whether two points of these deployments can have one concurrency, or one list of them repeats a member."""
    names: list[Any] = []
    for deployment in alike:
        ladder = deployment.entry.ladder(step)
        if len(set(ladder)) < len(ladder):
            return True
        together = whole and deployment.multinode and not deployment.agentic
        names += (tuple(ladder),) if together else ladder
    return len(alike) > 1 and len(set(names)) < len(names)


class Distinct:
    """The points without exact repetitions; ``findings`` tells of each id that came twice."""

    def __init__(self, points: Iterable[Point], suspicious: frozenset[int], severity: Severity | None = None) -> None:
        self.points = points
        self.suspicious = suspicious
        self.findings: tuple[Finding, ...] = tuple(self._check(severity)) if suspicious else ()

    def __iter__(self) -> Iterator[Point]:
        return self._first() if self.suspicious else iter(self.points)

    def _first(self) -> Iterator[Point]:
        seen: set[str] = set()
        for point in self.points:
            if id(point.deployment) in self.suspicious:
                name = point.id
                if name in seen:
                    continue
                seen.add(name)
            yield point

    def _check(self, severity: Severity | None) -> Iterator[Finding]:
        from matrix.findings import Finding, Related, Severity

        first: dict[str, Point] = {}
        told: set[tuple[int, int]] = set()
        for point in self.points:
            if id(point.deployment) not in self.suspicious:
                continue
            entry = point.deployment.entry
            for conc in point.concs:
                if entry.concurrencies.count(conc) > 1 and (id(entry), conc) not in told:
                    told.add((id(entry), conc))
                    yield self._repeated(point.deployment, conc, severity or Severity.WARNING)
            name = point.id
            earlier = first.setdefault(name, point)
            if earlier is point:
                continue
            same = earlier.digest == point.digest
            if same and earlier.deployment is point.deployment:
                continue
            place = self._place(point)
            related = (Related(self._place(earlier), "first here"),)
            if same:
                message = f"{name} is declared twice, and one job is enough."
                fix = "remove one of the two"
                kind = severity or Severity.WARNING
                yield Finding(
                    rule="point-duplicate", message=message, fix=fix, span=place, related=related, severity=kind
                )
            else:
                differ = _difference(earlier, point)
                message = f"{name} names two different jobs; they differ in {differ}."
                fix = "give each its own recipe variant (CONFIG_FILE=…:override_…), topology or config key"
                yield Finding(rule="point-conflict", message=message, fix=fix, span=place, related=related)

    def _repeated(self, deployment: Deployment, conc: int, severity: Severity) -> Finding:
        from matrix.findings import Finding

        node = deployment.entry.node["conc-list"]
        second = node.index(conc, node.index(conc) + 1)
        return Finding(
            rule="point-duplicate",
            message=f"conc-list holds {conc} more than once, and a concurrency is run once.",
            fix="list each concurrency once",
            span=deployment.config.document.of_value(node, second),
            severity=severity,
        )

    def _place(self, point: Point) -> Any:
        deployment = point.deployment
        return deployment.config.document.span(deployment.entry.node.mark)


def _difference(one: Point, other: Point) -> str:
    left, right = one.row(), other.row()
    names = [
        key for key in left | right if left.get(key) != right.get(key) and key not in ("digest", "recipe-fingerprint")
    ]
    return ", ".join(names[:4]) or "the recipe they resolve to"
