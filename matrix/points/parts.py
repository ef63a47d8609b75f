"""The parts of an id, read back: config key, scenario, topology, concurrency, variant, kind of run, node.

An id is made by `matrix.points.point`; this is the way back, for people who ask about one that no point has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from matrix.config.model import MAX_TOKENS
from matrix.points.row import SEQUENCES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Parts", "differences", "lengths_of", "parts_of", "topology_fields"]

_CONCS: Final = re.compile(r"c[0-9]+(-[0-9]+)*\Z")
_LENGTHS: Final = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})\Z")
_SIZES: Final = (
    r"tp(?P<{0}tp>\d+)(?:ep(?P<{0}ep>\d+))?(?P<{0}dpa>dpa)?(?:pp(?P<{0}pp>\d+))?(?:dcp(?P<{0}dcp>\d+))?"
    r"(?:pcp(?P<{0}pcp>\d+))?(?:adp(?P<{0}adp>\d+))?"
)
_END: Final = r"(?:-(?P<spec>mtp|draft))?(?:-kv(?P<mode>[a-z]+)-(?P<backend>.+))?\Z"
_SHAPES: Final = tuple(
    re.compile(pattern + _END)
    for pattern in (
        rf"(?P<p_n>\d+)p-{_SIZES.format('p_')}-(?P<d_n>\d+)d-{_SIZES.format('d_')}",
        rf"(?P<w_n>\d+)w-{_SIZES.format('w_')}",
        _SIZES.format(""),
    )
)
_ROLES: Final = {"p_": "prefill.", "d_": "decode.", "w_": "worker.", "": ""}
_NAMES: Final = {
    "n": "num-worker", "tp": "tp", "ep": "ep", "dpa": "dp-attn", "pp": "pp", "dcp": "dcp-size", "pcp": "pcp-size",
    "adp": "attn-dp-size",
}  # fmt: skip
_SPEC: Final = {None: "none", "mtp": "mtp", "draft": "draft_model"}


class Parts(NamedTuple):
    """What an id says. ``run``: ``eval``, ``eval-<framework>``, or empty for throughput."""

    key: str
    scenario: str
    topology: str
    concs: tuple[int, ...]
    variant: str = ""
    run: str = ""
    node: str = ""

    @property
    def stem(self) -> str:
        """What stands before the concurrency: equal for the points of one entry."""
        return f"{self.key}--{self.scenario}--{self.topology}--c"

    @property
    def tail(self) -> str:
        """What stands behind the concurrency and names no kind of run."""
        return f"--{self.variant}" if self.variant else ""

    @property
    def throughput(self) -> str:
        """The id of the throughput run of the same point."""
        node = f"--on-{self.node}" if self.node else ""
        return f"{self.stem}{'-'.join(map(str, self.concs))}{self.tail}{node}"

    def fields(self) -> Iterator[tuple[str, str]]:
        """Field and value of everything that it says."""
        yield "config-key", self.key
        yield "scenario", self.scenario
        sizes = topology_fields(self.topology)
        yield from sizes.items() if sizes else [("topology", self.topology)]
        yield "concurrency", " ".join(map(str, self.concs))
        yield "variant", self.variant or "none"
        yield "run", self.run or "throughput"
        yield "node", self.node or "any"


def parts_of(name: str) -> Parts | None:
    """The parts of an id; None for a text that has not the shape of one.

    >>> parts_of("m--8k1k--tp8--c4-16--override_a--eval")
    Parts(key='m', scenario='8k1k', topology='tp8', concs=(4, 16), variant='override_a', run='eval', node='')
    >>> parts_of("m--8k1k") is None
    True
    """
    whole, _, node = name.partition("--on-")
    words = whole.split("--")
    if len(words) < 4 or not all(words) or _CONCS.match(words[3]) is None:
        return None
    key, scenario, topology, concs, *rest = words
    run = rest.pop() if rest and (rest[-1] == "eval" or rest[-1].startswith("eval-")) else ""
    return Parts(key, scenario, topology, tuple(map(int, concs[1:].split("-"))), "--".join(rest), run, node)


def lengths_of(scenario: str) -> tuple[int, int] | None:
    """Input and output length of a scenario of an id; None for one that has none, or that no id spells so.

    >>> lengths_of("8k1k"), lengths_of("2048-128"), lengths_of("8192-1024"), lengths_of("agentic")
    ((8192, 1024), (2048, 128), None, None)
    """
    for lengths, name in SEQUENCES.items():
        if name == scenario:
            return lengths
    found = _LENGTHS.match(scenario)
    lengths = (int(found[1]), int(found[2])) if found else (0, 0)
    return None if 0 in lengths or max(lengths) > MAX_TOKENS or lengths in SEQUENCES else lengths


def topology_fields(topology: str) -> dict[str, str]:
    """The sizes that a topology of an id stands for, by field of an entry; empty for what is no topology.

    >>> topology_fields("2w-tp8ep8-mtp")["worker.ep"], topology_fields("tp8")["spec-decoding"]
    ('8', 'none')
    """
    for shape in _SHAPES:
        if found := shape.match(topology):
            break
    else:
        return {}
    fields: dict[str, str] = {}
    for name, value in found.groupdict().items():
        prefix, letter = (name[:2], name[2:]) if name[:2] in _ROLES else ("", name)
        if letter == "dpa":
            fields[f"{_ROLES[prefix]}dp-attn"] = "true" if value else "false"
        elif letter in _NAMES:
            fields[f"{_ROLES[prefix]}{_NAMES[letter]}"] = value or "1"
    fields["spec-decoding"] = _SPEC[found["spec"]]
    fields["kv-offload"] = f"{found['mode']} {found['backend']}" if found["mode"] else "none"
    return fields


def differences(asked: Parts, there: Parts) -> tuple[tuple[str, str, str], ...]:
    """Field, asked value, value there, of everything in which two ids differ."""
    left, right = dict(asked.fields()), dict(there.fields())
    return tuple(
        (name, left.get(name, "none"), right.get(name, "none"))
        for name in dict.fromkeys((*left, *right))
        if left.get(name) != right.get(name)
    )
