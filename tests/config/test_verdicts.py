"""The fast way and the slow way agree: the constructors accept exactly what schema and rules find no fault with."""

from __future__ import annotations

import copy
import gzip
import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matrix.config.accept import configs_of
from matrix.config.fleet import fleet_of
from matrix.config.loading import _evals_of
from matrix.config.model import Unacceptable
from matrix.config.schema import Kind, explain
from matrix.config.source import Document, loads, plain
from matrix.errors import RefusedError
from tests.config.support import document
from tests.config.test_fleet_rules import ACCEPTED as FLEETS
from tests.config.test_rules import ACCEPTED as MASTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hypothesis.strategies import DataObject

CONSTRUCT: Final[dict[Kind, Callable[[Document], object]]] = {
    Kind.MASTER: configs_of,
    Kind.RUNNERS: fleet_of,
    Kind.EVALS: _evals_of,
}
POLICY: Final = """
version: 1
minimum-concurrency: 16
sequence: {isl: 8192, osl: 1024}
default: {framework: lm-eval, suite: ''}
model-suites: {kimik3: {framework: kimi-vendor, suite: kimi_tool_call_schema_full}}
"""
BASES: Final = {
    Kind.EVALS: [plain(document(POLICY).root)],
    Kind.MASTER: [plain(document(text).root) for text in MASTERS.values()],
    Kind.RUNNERS: [plain(document(text).root) for text in FLEETS.values()],
}
VALUES: Final[list[Any]] = [
    *(None, True, False, 0, -1, 1, 2, 3, 8, 1024, 8192, 1_000_000, 1_000_001, 100_000_001, 0.5, 1.0, 1.5, 8.0, -0.5),
    *("", "x", "8", "1.10", "true", "none", "dram", "mtp", "draft_model", "cluster:x-a", "image:x", "slurm", "a,b"),
    *([], {}, [1], [0], ["x"], [1, None], [[1]], {"name": "a"}, {"name": "a", "version": "1"}, {"x": 1}, {"A": "b,c"}),
]


DROPPED: Final = object()
OTHERS: Final[dict[type, list[Any]]] = {str: ["", "image:x", "a,b"], bool: [True, False], int: [0, 3, 4096]}


def keys_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from keys_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from keys_in(member)


NAMES: Final = {
    kind: sorted({*keys_in(bases), "conc_list", "dp_attn", "zz", "a--b", "cluster:x", "", "a\n"})
    for kind, bases in BASES.items()
}


def holders(value: Any) -> Iterator[Any]:
    """Every mapping and list, from the outside in."""
    if isinstance(value, (dict, list)):
        yield value
        for member in value.values() if isinstance(value, dict) else value:
            yield from holders(member)


def mutate(root: Any, kind: Kind, data: DataObject) -> None:
    """One change somewhere: a member dropped, replaced, doubled, renamed or added."""
    holder = data.draw(st.sampled_from(list(holders(root))))
    value = data.draw(st.sampled_from(VALUES))
    name = data.draw(st.sampled_from(NAMES[kind]))
    change = data.draw(st.sampled_from(["drop", "replace", "rename", "add"]))
    if change == "add" or not holder:
        if isinstance(holder, dict):
            holder[name] = copy.deepcopy(value)
        else:
            holder.append(copy.deepcopy(value if not holder or data.draw(st.booleans()) else holder[0]))
        return
    key = data.draw(st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder))))
    if change == "replace":
        holder[key] = copy.deepcopy(value)
    else:
        member = holder.pop(key)
        if change == "rename" and isinstance(holder, dict):
            holder[name] = member


def written(root: Any) -> Document:
    """A value as a file; JSON is YAML, too, and quicker to write."""
    return loads(json.dumps(root, indent=1).encode(), "m.yaml")


def agree(file: Document, kind: Kind) -> bool:
    """Whether the file is right, after a check that both ways say so, and say it well."""
    try:
        CONSTRUCT[kind](file)
        accepted = True
    except Unacceptable:
        accepted = False
    findings = explain(file, kind)
    assert accepted is (findings == []), list(map(str, findings))
    lines = file.data.decode().split("\n")
    for finding in findings:
        assert finding.span is not None
        assert finding.message
        assert finding.fix
        assert finding.rule != "schema"
        assert finding.span.file == file.name
        assert 1 <= finding.span.line <= len(lines)
        assert 1 <= finding.span.column <= len(lines[finding.span.line - 1]) + 1
    assert len({(finding.span, finding.rule, finding.message) for finding in findings}) == len(findings)
    return accepted


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), kind=st.sampled_from(list(BASES)), changes=st.integers(1, 4))
def test_whatever_is_changed(data: DataObject, kind: Kind, changes: int) -> None:
    root = copy.deepcopy(data.draw(st.sampled_from(BASES[kind])))
    for _ in range(changes):
        mutate(root, kind, data)
    try:
        file = written(root)
    except RefusedError:
        return
    agree(file, kind)


@pytest.mark.parametrize(("kind", "number"), [(kind, n) for kind in BASES for n in range(len(BASES[kind]))])
def test_each_member_dropped_or_replaced(kind: Kind, number: int) -> None:
    base = BASES[kind][number]
    count = len(list(holders(base)))
    verdicts = []
    for index in range(count):
        for key in _keys(list(holders(base))[index]):
            old = list(holders(base))[index][key]
            for value in (DROPPED, None, 8.0, {}, *OTHERS.get(type(old), ())):
                root = copy.deepcopy(base)
                holder = list(holders(root))[index]
                if value is DROPPED:
                    holder.pop(key)
                else:
                    holder[key] = value
                verdicts.append(agree(written(root), kind))
    assert False in verdicts or not base


def _keys(holder: Any) -> list[Any]:
    return list(holder) if isinstance(holder, dict) else list(range(len(holder)))


def read(path: Path) -> Document:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return loads(data, path.name)


def test_real_files_that_were_refused(shared: Path) -> None:
    """The history of real files, most of it written before today's form."""
    refused = 0
    for path in (shared / "parity/aug/inputs").glob("*.yaml.gz"):
        file = read(path)
        try:
            configs_of(file)
        except Unacceptable:
            assert not agree(file, Kind.MASTER)
            agree(file, Kind.RUNNERS)
            refused += 1
    assert refused


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (Kind.MASTER, "cases/C*/X_m*.yaml"),
        (Kind.MASTER, "cases/C*/X.yaml"),
        (Kind.MASTER, "data/masters/*master.yaml"),
        (Kind.MASTER, "data/masters/amd-srt-entries.yaml"),
        (Kind.MASTER, "parity/newest/inputs/*master.yaml.gz"),
        (Kind.RUNNERS, "data/masters/runners*.yaml"),
        (Kind.RUNNERS, "parity/newest/inputs/runners.yaml.gz"),
        (Kind.RUNNERS, "parity/mini/runners*.yaml"),
    ],
)
def test_what_people_run_is_accepted(shared: Path, kind: Kind, pattern: str) -> None:
    paths = list(shared.glob(pattern))
    assert paths
    for path in paths:
        if "C03" not in path.parts:  # the case of the duplicate key
            assert agree(read(path), kind)


DIFFERENT: Final = {
    "tp-string-lax": "quoted digits",
    "tp-float-lax": "a float for an integer",
    "dpattn-string": "a quoted boolean",
    "half-range-plus-list": "half a range beside a list",
    "empty-list-plus-range-full": "an empty list beside a range",
    "empty-list-plus-range-test": "an empty list beside a range",
    "empty-list-plus-range-test-mn": "an empty list beside a range",
    "mn-agg-old-shape": "accepted here: the older shape of an aggregated entry",
}
"""Inputs that InferenceX's generator judges otherwise, and why."""

MASTER_ERRORS: Final = ("failed validation", "must be a string", "master config keys", "require-power", "KeyError")
"""Marks of a refusal that is about the master file alone, not about runners, recipes or the command line."""


def test_verdicts_of_the_peer(shared: Path) -> None:
    different = set()
    with gzip.open(shared / "parity/mini/cases.jsonl.gz", "rt", encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            error = case["newest"].get("error", "")
            theirs = not any(mark in error for mark in (*MASTER_ERRORS, "TypeError"))
            try:
                ours = agree(loads(case["config"].encode(), "k.yaml"), Kind.MASTER)
            except RefusedError:
                ours = False
            if ours is not theirs:
                different.add(case["name"])
    assert different == set(DIFFERENT)
