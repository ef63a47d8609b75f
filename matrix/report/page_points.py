"""The points of a page as compact JSON: what many of them have alike is there once, and they name it by its number.

Five thousand rows written out are eight megabytes. Of the points of one deployment all but a few fields are equal, and
those that differ do so in the middle of a text: that is what is written of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from matrix.points.provenance import Provenance, concurrency_source
from matrix.report.show import flat_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from matrix.config.fleet import Fleet
    from matrix.findings import Span
    from matrix.plan.snapshot import Label
    from matrix.points.point import Deployment, Point
    from matrix.points.provenance import Source
    from matrix.points.row import Frame

__all__ = ["Interned", "Points"]

T = TypeVar("T")

_LEAST: Final = 8
"""Characters that two texts must share until it is shorter to say so."""


class Interned(Generic[T]):
    """Things by number; equal ones have one number."""

    __slots__ = ("items", "numbers")

    def __init__(self) -> None:
        self.items: list[T] = []
        self.numbers: dict[Any, int] = {}

    def __call__(self, item: T, key: Any = None) -> int:
        """The number of a thing. ``key`` stands for one that cannot be hashed."""
        key = item if key is None else key
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.items)
            self.items.append(item)
        return number


class Points:
    """What the page knows of its points.

    ``fields``: names of row fields. ``places``: lists of ``[origin, file, line, column]`` or a note; see `_Places`.
    ``shapes``: for the fields of a row, in their order, ``[field, place]``. ``configs`` and ``lines``: the rows of the
    matrix, a line being all points that differ in concurrency and variant alone. ``bases``: what the points of one
    deployment share. ``points``: base, concurrencies, kind, GPU-hours or null, how those are known, and the
    fields that differ.
    """

    def __init__(self, fleet: Fleet, label: Label, beside: Callable[[Point], list[Any]]) -> None:
        self.provenance = Provenance(fleet)
        self.beside = beside
        self.fields: Interned[str] = Interned()
        self.places = _Places(label)
        self.shapes: Interned[list[int]] = Interned()
        self.configs: Interned[list[str]] = Interned()
        self.lines: Interned[list[Any]] = Interned()
        self.bases: list[list[Any]] = []
        self.points: list[list[Any]] = []
        self._known: dict[Any, _Base] = {}
        self._parents: dict[Any, _Base] = {}
        self._shared: dict[Frame, dict[str, int]] = {}

    def record(self) -> dict[str, Any]:
        """For the page."""
        return {
            "fields": self.fields.items,
            "files": self.places.files.items,
            "places": self.places.places.items,
            "shapes": self.shapes.items,
            "configs": self.configs.items,
            "lines": self.lines.items,
            "bases": self.bases,
            "points": self.points,
        }

    def add(self, name: str, point: Point, hours: float | None, basis: int) -> None:
        """One more point; ``hours``: GPU-hours, None where nobody knows its length; ``basis``: how it is known."""
        row = point.row()
        key = (id(point.deployment), point.eval_only, tuple(row))
        base = self._known.get(key)
        if base is None:
            base = self._known[key] = self._base(point, dict(flat_row(row)))
        flat = base.row if base.row["id"] == name else dict(flat_row(row))
        self.points.append(
            [
                base.number,
                point.concs[0] if len(point.concs) == 1 else list(point.concs),
                2 if point.eval_only else 1 if point.run_eval else 0,
                None if hours is None else round(hours, 2),
                basis,
                *(self._differing(flat, base.row) if flat is not base.row else ()),
            ]
        )
        if flat is not base.row:
            place = self.places.number(concurrency_source(point), *_origins(point.deployment))
            if place != base.conc:
                self.points[-1].append(place)

    def _base(self, point: Point, flat: dict[str, Any]) -> _Base:
        deployment = point.deployment
        file, top, entry = _origins(deployment)
        shared, own = self._of_frame(deployment.frame), self.provenance.of_entry(point)
        number, names = self.places.number, tuple(flat)
        places = [shared[name] if name in shared else number(own[name], file, top, entry) for name in names]
        parent = self._parents.get((id(deployment.frame), names)) or self._parents.get(names)
        base = _Base(len(self.bases), flat, self.places.number(own["conc"], file, top, entry))
        self._parents[id(deployment.frame), names] = self._parents[names] = base
        self.bases.append(
            [
                -1 if parent is None else parent.number,
                self._shape(names, tuple(places)),
                top,
                entry,
                self._line(deployment),
                deployment.nodes or 1,
                deployment.gpus,
                deployment.selector or "",
                *self.beside(point),
                self._differing(flat, parent.row if parent is not None else {}),
            ]
        )
        return base

    def _shape(self, names: tuple[str, ...], places: tuple[int, ...]) -> int:
        known = self.shapes.numbers.get((names, places))
        if known is not None:
            return known
        pairs = zip(map(self.fields, names), places, strict=True)
        return self.shapes([number for pair in pairs for number in pair], (names, places))

    def _of_frame(self, frame: Frame) -> dict[str, int]:
        """The places of what a frame says, counted from its config: so all of its points share them."""
        found = self._shared.get(frame)
        if found is None:
            file, top = frame.config.document.name, frame.config.mark.line + 1
            sources = self.provenance.of_frame(frame)
            found = {name: self.places.number(source, file, top) for name, source in sources.items()}
            self._shared[frame] = found
        return found

    def _line(self, deployment: Deployment) -> int:
        entry, config = deployment.entry, deployment.config
        offload = entry.offload
        backend = offload.backend["name"] if offload.backend is not None else ""
        line = [
            self.configs(
                [config.key, config.model, config.model_prefix, config.precision, config.framework, config.image],
                config.key,
            ),
            deployment.frame.scenario_name,
            deployment.topology,
            "" if entry.spec_decoding == "none" else entry.spec_decoding,
            "" if offload.mode == "none" else f"{offload.mode} {backend}".rstrip(),
            deployment.runner,
        ]
        return self.lines(line, tuple(line))

    def _differing(self, row: dict[str, Any], base: dict[str, Any]) -> list[list[Any]]:
        """The fields of a row that are not those of another one with the same fields, or with none.

        As ``[field, value]``, or as ``[field, start, end, middle]`` of the other's text.
        """
        told: list[list[Any]] = []
        for name, value in row.items():
            known = base.get(name)
            if value == known and type(value) is type(known):
                continue
            short = _shorter(value, known) if type(value) is str and type(known) is str else None
            told.append([self.fields(name), value] if short is None else [self.fields(name), *short])
        return told


class _Base:
    """The first point of a deployment that has these fields; the others are told by their difference."""

    __slots__ = ("conc", "number", "row")

    def __init__(self, number: int, row: dict[str, Any], conc: int) -> None:
        self.number = number
        self.row = row
        self.conc = conc


class _Places:
    """Places by number, told from where an entry or its config begins: entries that are laid out alike share them.

    A place is a note, or a list of ``[origin, file, line, column]`` with the note behind them if there is one.
    ``origin`` is what the line is counted from: 0 the file, 1 the config, 2 the entry.
    """

    def __init__(self, label: Label) -> None:
        self.label = label
        self.files: Interned[str] = Interned()
        self.places: Interned[Any] = Interned()

    def number(self, source: Source, file: str, top: int, entry: int | None = None) -> int:
        """The number of a source, for an entry in a file, whose config and itself begin at these lines."""
        spans, note = source
        if not spans:
            return self.places(note)
        told = []
        for span in spans:
            name, line, column = span
            number = self._file(span)
            if name != file or line < top:
                told.append((0, number, line, column))
            elif entry is None or line < entry:
                told.append((1, number, line - top, column))
            else:
                told.append((2, number, line - entry, column))
        return self.places([*told, note] if note else told, (tuple(told), note))

    def _file(self, span: Span) -> int:
        number = self.files.numbers.get(span.file)
        return self.files(self.label.place(span).file, span.file) if number is None else number


def _origins(deployment: Deployment) -> tuple[str, int, int]:
    config = deployment.config
    return config.document.name, config.mark.line + 1, deployment.entry.node.mark.line + 1


def _shorter(text: str, base: str) -> tuple[int, int, str] | None:
    """A text as start, end and middle of another one, where that is shorter; the ends are counts of characters."""
    start = _alike(text, base, min(len(text), len(base)))
    end = _alike(text[::-1], base[::-1], min(len(text), len(base)) - start)
    return (start, end, text[start : len(text) - end]) if start + end >= _LEAST else None


def _alike(one: str, other: str, most: int) -> int:
    """How many characters at the beginning are equal, found by halving: each step is one comparison in C."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
