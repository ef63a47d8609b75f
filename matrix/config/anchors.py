"""Anchors, aliases and merges of one file; imported when it has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.config.nodes import MAX_DEPTH, Map, Seq

if TYPE_CHECKING:
    from matrix.config.complaints import Complaints
    from matrix.config.nodes import Mark

__all__ = ["Anchors", "merge"]

_MAX_ALIASED: Final = 200_000


class Anchors:
    """The values that anchors name, as far as the file was read. ``open``: anchors whose value is still being read."""

    def __init__(self, complaints: Complaints) -> None:
        self.complaints = complaints
        self.values: dict[str, Any] = {}
        self.open: set[str] = set()
        self.extents: dict[int, tuple[int, int]] = {}
        self.aliased = 0

    def follow(self, name: str, mark: Mark, depth: int) -> Any:
        """The value that an alias stands for."""
        complaints = self.complaints
        if name in self.open:
            message = f"the alias *{name} stands inside the value it names, which would hold itself."
            raise complaints.broken(mark, "yaml-alias", message, "write the value out instead of the alias")
        if name not in self.values:
            message = f"the alias *{name} names no anchor above it."
            complaints.complain(mark, "yaml-alias", message, f"add &{name} to the value, or write it out")
            return None
        value = self.values[name]
        size, levels = self.extent(value)
        if depth + levels > MAX_DEPTH:
            message = f"the alias *{name} brings the nesting below more than {MAX_DEPTH} levels. No configuration is."
            raise complaints.broken(mark, "yaml-depth", message, "write the values out")
        self.aliased += size
        if self.aliased > _MAX_ALIASED:
            message = f"aliases expand to more than {_MAX_ALIASED:,} values. That is how an alias bomb looks."
            raise complaints.broken(mark, "yaml-alias-bomb", message, "write the values out")
        return value

    def extent(self, value: Any) -> tuple[int, int]:
        """Values below and with this one, aliases expanded, and how many levels they take."""
        if not isinstance(value, (Map, Seq)):
            return 1, 0
        known = self.extents.get(id(value))
        if known is None:
            members = [self.extent(member) for member in (value.values() if isinstance(value, Map) else value)]
            size = 1 + sum(size for size, _ in members)
            known = self.extents[id(value)] = size, 1 + max((levels for _, levels in members), default=0)
        return known


def merge(node: Map, key: Any, complaints: Complaints) -> None:
    """Put the members of ``<<``, which stands under ``key``, first.

    A key of the mapping's own overrides a merged one and is no duplicate.
    """
    merged = node.pop(key)
    place = node.marks.pop(key)[1]
    own = dict(node)
    own_marks = dict(node.marks)
    node.clear()
    node.marks.clear()
    for base in merged if isinstance(merged, Seq) else [merged]:
        if not isinstance(base, Map):
            message = "<< takes a mapping or a list of mappings."
            complaints.complain(place, "yaml-merge", message, "write <<: *name of a mapping")
            continue
        for name, value in base.items():
            if name not in node:
                node[name] = value
                node.marks[name] = base.marks[name]
    node.update(own)
    node.marks.update(own_marks)
