"""Two revisions of the log side by side: which entries stayed, changed, moved, went or came.

By blocks, not by YAML nodes, so that a head that cannot be parsed is still compared. What an entry says is its content,
everything but its link; how it is written does not count here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from matrix.changelog.entries import content_of
from matrix.config.source import Map, Seq, loads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.changelog.text import Block

__all__ = ["Comparison", "Identity", "compare", "identity"]


class Identity(NamedTuple):
    """What an entry says and where it links to; ``content`` of a block that is no YAML is its stripped lines."""

    content: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Indices of blocks, in base and head.

    ``kept``: the same content in the same order. ``moved``: the same content elsewhere. ``edited``: other content in
    the same place. ``deleted``: gone from the base. ``new``: neither of these, in the head.
    """

    kept: tuple[tuple[int, int], ...]
    moved: tuple[tuple[int, int], ...]
    edited: tuple[tuple[int, int], ...]
    deleted: tuple[int, ...]
    new: tuple[int, ...]


@lru_cache(maxsize=4096)
def identity(data: bytes) -> Identity:
    r"""Read one block alone.

    >>> identity(b"- config-keys: [a]\n  description: [b]\n  pr-link: XXX")
    Identity(content="[('config-keys', ['a']), ('description', ['b'])]", link='XXX')
    """
    from matrix.errors import RefusedError

    try:
        root = loads(data + b"\n", "").root
    except RefusedError:
        root = None
    if isinstance(root, Seq) and len(root) == 1 and isinstance(root[0], Map):
        return Identity(content_of(root[0]), str(root[0].get("pr-link", "")))
    lines = [line.strip() for line in data.decode("utf-8", "replace").split("\n")]
    links = [line for line in lines if line.startswith("pr-link:")]
    content = "\n".join(line for line in lines if line and line not in links and not line.startswith("#"))
    return Identity(content, links[-1].removeprefix("pr-link:").strip() if links else "")


def compare(base: Sequence[Block], head: Sequence[Block]) -> Comparison:
    """Put every block of both revisions in its class. Equal beginnings and ends are set aside first, unparsed."""
    first = _common(base, head, reverse=False)
    last = _common(base[first:], head[first:], reverse=True)
    old, new = range(first, len(base) - last), range(first, len(head) - last)
    kept = [(at, at) for at in range(first)]
    regions: list[tuple[list[int], list[int]]] = []
    if old and new:
        from difflib import SequenceMatcher

        before = [identity(base[at].data).content for at in old]
        after = [identity(head[at].data).content for at in new]
        for tag, i, k, j, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if tag == "equal":
                kept += zip(old[i:k], new[j:m], strict=True)
            else:
                regions.append((list(old[i:k]), list(new[j:m])))
    else:
        regions.append((list(old), list(new)))
    kept += zip(range(len(base) - last, len(base)), range(len(head) - last, len(head)), strict=True)

    moved = _take_moved(base, head, regions)
    edited = _take_edited(base, head, regions)
    return Comparison(
        kept=tuple(kept),
        moved=tuple(moved),
        edited=tuple(edited),
        deleted=tuple(at for olds, _ in regions for at in olds),
        new=tuple(at for _, news in regions for at in news),
    )


def _common(base: Sequence[Block], head: Sequence[Block], *, reverse: bool) -> int:
    pairs = zip(reversed(base), reversed(head), strict=False) if reverse else zip(base, head, strict=False)
    count = 0
    for old, new in pairs:
        if old.data != new.data:
            break
        count += 1
    return count


def _take_moved(
    base: Sequence[Block], head: Sequence[Block], regions: list[tuple[list[int], list[int]]]
) -> list[tuple[int, int]]:
    places: dict[str, list[int]] = {}
    for olds, _ in regions:
        for at in olds:
            places.setdefault(identity(base[at].data).content, []).append(at)
    moved = []
    for _, news in regions:
        for at in list(news):
            if candidates := places.get(identity(head[at].data).content):
                moved.append((candidates.pop(0), at))
                news.remove(at)
    gone = {old for old, _ in moved}
    for olds, _ in regions:
        olds[:] = [at for at in olds if at not in gone]
    return moved


def _take_edited(
    base: Sequence[Block], head: Sequence[Block], regions: list[tuple[list[int], list[int]]]
) -> list[tuple[int, int]]:
    edited = []
    for olds, news in regions:
        for old in list(olds):
            alike = [new for new in news if _alike(base[old].data, head[new].data)]
            if alike:
                edited.append((old, alike[0]))
                olds.remove(old)
                news.remove(alike[0])
    return edited


def _alike(old: bytes, new: bytes) -> bool:
    """Whether one is an edit of the other: at least half of the lines are the same."""
    before, after = ({line.strip() for line in data.split(b"\n")} for data in (old, new))
    return 2 * len(before & after) >= max(len(before), len(after))
