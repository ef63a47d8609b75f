"""One id, one job: repetitions are dropped and told, two jobs under one id are refused."""

from __future__ import annotations

import pytest

from matrix.findings import Severity
from tests.points.support import config, dram, errors, expanded, recipe, roles, warnings

SINGLE = "tp: 8, conc-list: "


def test_a_list_that_repeats_a_concurrency() -> None:
    expansion = expanded(config(fixed=[f"{SINGLE}[4, 4, 8, 4, 8]"]))
    assert [point.concs for point in expansion.points] == [(4,), (8,)]
    assert [(finding.rule, finding.severity) for finding in expansion.findings] == [
        ("point-duplicate", Severity.WARNING),
        ("point-duplicate", Severity.WARNING),
    ]
    assert [finding.message.split()[2] for finding in expansion.findings] == ["4", "8"]
    places = [finding.span.column for finding in expansion.findings if finding.span]
    assert places == [30, 39]


def test_members_of_one_allocation_are_a_set() -> None:
    expansion = expanded(config(fixed=[f"{roles()}, conc-list: [4, 4, 8, 4]"], disagg=True))
    assert [point.concs for point in expansion.points] == [(4, 8)]
    (finding,) = warnings(expansion)
    assert "conc-list holds 4 more than once" in finding.message


def test_a_repetition_that_a_filter_removed_is_none() -> None:
    expansion = expanded(config(fixed=[f"{SINGLE}[4, 4, 8]"]), flags=["--min-conc", "8"])
    assert ([point.concs for point in expansion.points], expansion.findings) == ([(8,)], ())


def test_an_entry_that_is_there_twice() -> None:
    expansion = expanded(config(fixed=[f"{SINGLE}[4, 8]", f"{SINGLE}[8, 16]"]))
    assert [point.concs for point in expansion.points] == [(4,), (8,), (16,)]
    (finding,) = warnings(expansion)
    assert finding.span is not None
    assert (finding.rule, finding.span.line) == ("point-duplicate", 5)
    (related,) = finding.related
    assert (related.span.line, related.note) == (4, "first here")
    assert "k--8k1k--tp8--c8 is declared twice" in finding.message


def test_a_range_and_a_list_that_meet() -> None:
    expansion = expanded(config(fixed=["tp: 8, conc-start: 4, conc-end: 16", f"{SINGLE}[16]"]))
    assert [point.concs for point in expansion.points] == [(4,), (8,), (16,)]
    assert len(warnings(expansion)) == 1


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        (f"{roles('additional-settings: [A=1]')}", f"{roles('additional-settings: [A=2]')}", "prefill"),
        (f"{roles('hardware: mi355x-a', 'hardware: gb-n')}", f"{roles('hardware: gb-n', 'hardware: gb-n')}",
         "prefill, node-count"),
        (f"{roles(recipe('a.yaml'))}", f"{roles(recipe('b.yaml'))}", "prefill, recipe"),
    ],
)  # fmt: skip
def test_two_jobs_with_one_id(one: str, other: str, differ: str) -> None:
    text = config(fixed=[f"{one}, conc-list: [4]", f"{other}, conc-list: [4]"], disagg=True)
    expansion = expanded(text)
    (finding,) = errors(expansion)
    assert finding.rule == "point-conflict"
    assert f"k--8k1k--1p-tp8-1d-tp8--c4 names two different jobs; they differ in {differ}." in finding.message
    assert finding.span is not None
    assert (finding.span.line, finding.related[0].span.line) == (5, 4)
    assert "its own recipe variant" in finding.fix


def test_the_same_topology_under_two_keys_is_two_jobs() -> None:
    text = config(fixed=[f"{SINGLE}[4]"])
    expansion = expanded(text, text.replace("k:", "l:", 1))
    assert ([point.id.split("--")[0] for point in expansion.points], expansion.findings) == (["k", "l"], ())


def test_two_backends_of_one_name_are_two_jobs_of_one_id() -> None:
    backends = [dram("b").replace("}", f", version: '{version}'}}") for version in (1, 2)]
    entries = [f"tp: 8, {backend}, conc-list: [4]" for backend in backends]
    (finding,) = errors(expanded(config(agentic=entries, utilization="0.5")))
    assert "differ in kv-offload-backend" in finding.message


@pytest.mark.parametrize("flags", [(), ("--evals-only",), ("--all-evals",), ("--trim-conc",), ("--smoke",)])
def test_ids_are_unique_in_every_mode(flags: tuple[str, ...]) -> None:
    text = config(
        fixed=[f"{SINGLE}[4, 16, 16]", f"{SINGLE}[16, 64]"],
        agentic=["tp: 8, kv-offloading: none, conc-list: [1, 1, 2]"],
        prefix="kimik3",
    )
    names = [point.id for point in expanded(text, flags=flags).points]
    assert names
    assert len(names) == len(set(names))
