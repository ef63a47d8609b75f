"""Selectors: each removes points by one rule, and says which and why."""

from __future__ import annotations

import pytest

from matrix.findings import Severity
from matrix.points.select import Selector, config_selectors, point_selectors, scenario_selectors
from tests.points.support import config, errors, expanded, ids, listed, request, roles, rules, warnings

SPACE = (
    config(
        key="one",
        fixed=["tp: 8, conc-list: [4, 16, 64]", "tp: 4, ep: 4, conc-list: [8]"],
        agentic=["tp: 2, ep: 2, kv-offloading: none, conc-list: [1]"],
        prefix="alpha",
    ),
    config(
        key="two",
        fixed=[f"{roles()}, conc-list: [4, 64]"],
        block="isl: 1024, osl: 1024",
        disagg=True,
        prefix="beta",
        framework="vllm",
        runner="cluster:gb-n",
    ).replace("precision: fp8", "precision: fp4"),
)
ALL = [
    "one--8k1k--tp8--c4",
    "one--8k1k--tp8--c16",
    "one--8k1k--tp8--c64",
    "one--8k1k--tp4ep4--c8",
    "one--agentic--tp2ep2--c1",
    "two--1k1k--1p-tp8-1d-tp8--c4-64",
]


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ("", ALL),
        ("--config-keys one", ALL[:5]),
        ("--config-keys o*", ALL[:5]),
        ("--config-keys ?wo", ALL[5:]),
        ("--config-keys [ot]*", ALL),
        ("--config-keys two,one", ALL),
        ("--config-keys two --config-keys one", ALL),
        ("--model-prefix alpha", ALL[:5]),
        ("--model-prefix alpha,beta", ALL),
        ("--precision fp4", ALL[5:]),
        ("--framework sglang --framework vllm", ALL),
        ("--framework vllm", ALL[5:]),
        ("--runner-type cluster:gb-n", ALL[5:]),
        ("--seq-lens 8k1k", ALL[:5]),
        ("--seq-lens 1k1k", [*ALL[4:5], *ALL[5:]]),
        ("--scenario-type agentic-coding", ALL[4:5]),
        ("--scenario-type fixed-seq-len", [*ALL[:4], *ALL[5:]]),
        ("--scenario-type fixed-seq-len,agentic-coding", ALL),
        ("--single-node", ALL[:5]),
        ("--multi-node", ALL[5:]),
        ("--single-node --multi-node", ALL),
        ("--min-conc 16", [*ALL[1:3], "two--1k1k--1p-tp8-1d-tp8--c64"]),
        ("--max-conc 4", [ALL[0], ALL[4], "two--1k1k--1p-tp8-1d-tp8--c4"]),
        ("--min-conc 5 --max-conc 16", [ALL[1], ALL[3]]),
        ("--conc 4,8", [ALL[0], ALL[3], "two--1k1k--1p-tp8-1d-tp8--c4"]),
        ("--conc 4 --conc 8", [ALL[0], ALL[3], "two--1k1k--1p-tp8-1d-tp8--c4"]),
        ("--max-tp 4", ALL[3:]),
        ("--max-ep 1", [*ALL[:3], *ALL[4:]]),
        ("--max-ep 4", ALL),
        ("--exp-names alpha_8k1k", ALL[:4]),
        ("--exp-names alpha_tp2_conc1_kvnone,beta_1k1k", ALL[4:]),
        ("--ids one--8k1k--tp8--c16", ALL[1:2]),
        ("--ids two--1k1k--1p-tp8-1d-tp8--c4-64,one--agentic--tp2ep2--c1", ALL[4:]),
        ("--ids one--8k1k--*", ALL[:4]),
        ("--ids one--8k1k--tp8--c?", ALL[:1]),
        ("--config-keys one --min-conc 5 --max-tp 4", ALL[3:4]),
    ],
)
def test_what_a_filter_keeps(flags: str, kept: list[str]) -> None:
    assert ids(*SPACE, flags=flags.split()) == kept


@pytest.mark.parametrize(
    ("flags", "point", "reason"),
    [
        ("--config-keys two", ALL[0], "one is not two"),
        ("--model-prefix beta", ALL[0], "alpha is not beta"),
        ("--precision fp4,int4", ALL[0], "fp8 is not fp4 or int4"),
        ("--framework vllm", ALL[0], "sglang is not vllm"),
        ("--runner-type cluster:gb-n", ALL[0], "cluster:mi355x-a is not cluster:gb-n"),
        ("--seq-lens 1k1k", ALL[0], "8k1k is not 1k1k"),
        ("--scenario-type agentic-coding", ALL[0], "fixed-seq-len is not agentic-coding"),
        ("--single-node", ALL[5], "multi-node is not single-node"),
        ("--multi-node", ALL[0], "single-node is not multi-node"),
        ("--min-conc 5", ALL[0], "concurrency 4 is below 5"),
        ("--max-conc 3", ALL[0], "concurrency 4 is above 3"),
        ("--min-conc 65", ALL[5], "concurrency 4, 64 is below 65"),
        ("--conc 7,9", ALL[0], "concurrency 4 is not 7 or 9"),
        ("--max-tp 4", ALL[0], "tp 8 is above 4"),
        ("--max-ep 2", ALL[3], "ep 4 is above 2"),
        ("--exp-names x", ALL[0], "exp-name alpha_8k1k is not x"),
        ("--framework a,b,c,d,e,f", ALL[0], "sglang is not a or b or c or d or 2 more"),
    ],
)
def test_a_removed_point_is_told_why(flags: str, point: str, reason: str) -> None:
    filters = request(flags.split()).filters
    (candidate,) = [each for each in listed(expanded(*SPACE)) if each.id == point]
    selectors: list[Selector] = [*config_selectors(filters), *scenario_selectors(filters), *point_selectors(filters)]
    (selector,) = selectors
    verdict = selector(candidate)
    assert (verdict.point, verdict.rule, verdict.reason) == (None, flags.partition(" ")[0], reason)
    assert selector.looks_at(candidate)


def test_a_point_loses_members_and_the_reason_names_them() -> None:
    (selector,) = point_selectors(request(["--max-conc", "4"]).filters)
    verdict = selector(listed(expanded(*SPACE))[-1])
    assert verdict.point is not None
    assert (verdict.point.concs, verdict.reason) == ((4,), "concurrency 64 is above 4")


@pytest.mark.parametrize(
    ("flags", "unseen"),
    [("--seq-lens 1k1k", ALL[4:5]), ("--max-tp 1", ALL[4:]), ("--max-ep 1", ALL[4:])],
)
def test_what_a_filter_does_not_look_at_stays(flags: str, unseen: list[str]) -> None:
    (selector,) = point_selectors(request(flags.split()).filters)
    points = listed(expanded(*SPACE))
    assert [point.id for point in points if not selector.looks_at(point)] == unseen
    assert all(selector(point).point is point for point in points if point.id in unseen)


def test_marks_are_made_of_what_is_selected() -> None:
    marked = [point.id for point in listed(expanded(*SPACE, flags=["--max-conc", "16"])) if point.run_eval]
    assert marked == [ALL[1], ALL[4]]


def test_an_id_keeps_the_marks_of_the_whole() -> None:
    """Chosen by name a point is what it is among the others."""
    text = config(fixed=["tp: 8, conc-list: [16, 64]"])
    (point,) = listed(expanded(text, flags=["--ids", "k--8k1k--tp8--c16"]))
    assert point.run_eval is False
    (alone,) = listed(expanded(text, flags=["--conc", "16"]))
    assert alone.run_eval is True


@pytest.mark.parametrize(
    ("flags", "rule", "fix"),
    [
        ("--config-keys on", "config-key-unknown", "did you mean one?"),
        ("--config-keys one,x*", "config-key-unknown", "known: one, two"),
        ("--runner-type gb-n", "runner-unknown", "did you mean cluster:gb-n?"),
        ("--ids one--8k1k--tp8--c5", "point-unknown", "did you mean one--8k1k--tp8--c4"),
        ("--ids one--8k1k--tp8--c16--eval", "point-unknown", "add --evals-only"),
        ("--exp-names alpha_9k1k", "exp-name-unknown", "see exp-name"),
    ],
)
def test_a_name_that_does_not_exist_is_refused(flags: str, rule: str, fix: str) -> None:
    (finding,) = errors(expanded(*SPACE, flags=flags.split()))
    assert (finding.rule, fix in finding.fix) == (rule, True), finding
    assert flags.split()[1].rsplit(",", maxsplit=1)[-1] in finding.message


@pytest.mark.parametrize(
    ("flags", "fix"),
    [
        ("--framework vlm", "did you mean vllm?"),
        ("--framework vllm,sglan", "did you mean sglang?"),
        ("--precision int4", "known: fp4, fp8"),
        ("--model-prefix alph", "did you mean alpha?"),
        ("--seq-lens 8k2k", "did you mean 8k1k?"),
        ("--runner-type cluster:mi355x-b", "did you mean cluster:mi355x-a"),
    ],
)
def test_a_word_that_selects_nothing_is_told(flags: str, fix: str) -> None:
    expansion = expanded(*SPACE, flags=flags.split())
    (finding,) = warnings(expansion)
    assert (finding.rule, finding.severity) == ("filter-word-unknown", Severity.WARNING)
    assert fix in finding.fix
    assert not errors(expansion)


def test_a_glob_of_ids_may_match_nothing() -> None:
    expansion = expanded(*SPACE, flags=["--ids", "nothing*"])
    assert (list(expansion.points), rules(expansion)) == ([], [])


def test_a_config_that_is_not_selected_refuses_nothing() -> None:
    broken = config(key="broken", fixed=[f"{roles()}, conc-list: [1]"], runner="zz", disagg=True)
    assert rules(expanded(broken, *SPACE, flags=["--config-keys", "one"])) == []
    assert "hardware-missing" in rules(expanded(broken, *SPACE))


# -- unknown labels ----------------------------------------------------------------------------------------------------


def test_an_unknown_label_is_told_once_a_config() -> None:
    """Difference 4: the row is right all the same, so it is a warning here."""
    text = config(fixed=["tp: 8, conc-list: [1, 2]", "tp: 4, conc-list: [1]"], runner="mi355y")
    expansion = expanded(text, text.replace("k:", "l:", 1))
    assert [finding.message.split(":")[0] for finding in warnings(expansion)] == ["k", "l"]
    assert len(listed(expansion)) == 6
    finding = warnings(expansion)[0]
    assert finding.span is not None
    assert (finding.rule, finding.span.line) == ("runner-unknown", 2)


def test_an_unknown_label_of_a_known_family_names_its_labels() -> None:
    text = config(fixed=["tp: 8, conc-list: [1]"], runner="cluster:mi355x-z")
    (finding,) = warnings(expanded(text))
    assert "of this family it has mi355x, cluster:mi355x-a, cluster:mi355x-b" in finding.fix
