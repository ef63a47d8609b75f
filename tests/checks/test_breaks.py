"""Each check's subject broken, one at a time: the rule, the edit, and both places that the finding has to name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from matrix.checks.registry import RULES
from tests.checks.breaks_of_engines import ENGINES, NAMES, ROUTERS
from tests.checks.breaks_of_recipes import IDENTITY, READING, TOPOLOGY
from tests.checks.breaks_of_runs import HOST_MEMORY, MEASUREMENT, SPECULATION

if TYPE_CHECKING:
    from tests.checks.breaks import Break
    from tests.checks.support import Repository

BREAKS: Final = (
    *READING,
    *IDENTITY,
    *TOPOLOGY,
    *MEASUREMENT,
    *HOST_MEMORY,
    *SPECULATION,
    *ENGINES,
    *ROUTERS,
    *NAMES,
)


@pytest.mark.parametrize("case", BREAKS, ids=str)
def test_a_broken_subject_is_told_with_both_places(case: Break, repository: Repository) -> None:
    for name, line, old, new in sorted(case.edits, key=lambda edit: -edit[1]):
        repository.edit(name, line, old, new)
    answer = repository.check()
    assert answer.rules == {case.rule, *case.also}, answer.findings
    told = [
        finding
        for finding in answer.findings
        if finding["rule"] == case.rule and (finding["file"], finding["line"]) == case.place
    ]
    assert len(told) == 1, answer.findings
    finding = told[0]
    assert case.says in finding["message"]
    assert tuple((other["file"], other["line"]) for other in finding.get("related", ())) == case.others
    assert len(finding.get("points", ())) == case.points
    assert finding["severity"] == ("warning" if case.warns else "error")
    assert finding["fix"]
    errors = [finding for finding in answer.findings if finding["severity"] == "error"]
    assert answer.status == (1 if errors else 0)


def test_the_small_repository_is_right(repository: Repository) -> None:
    answer = repository.check("--strict")
    assert (answer.status, answer.findings) == (0, [])
    assert answer.err == "5 points, 3 configs, 3 recipes: no finding\n"


def test_every_rule_is_broken_above() -> None:
    elsewhere = {"recipe-client", "recipe-root", "golden-folder"}  # they need other options: test_cli.py
    golden = {rule.name for rule in RULES if rule.name.startswith("golden-")}  # tests/golden
    assert {rule.name for rule in RULES} - elsewhere - golden == {case.rule for case in BREAKS} - golden
