"""The log of this project: right by its own rules, and about every config that is shipped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from matrix.changelog.context import Context, Stage
from matrix.changelog.entries import Entry
from matrix.changelog.rules import Verdict, check
from matrix.plan.plan import plan_change
from matrix.workspace import open_workspace

if TYPE_CHECKING:
    from pathlib import Path

TEN = 10
"""What the log began with; later entries follow."""


@pytest.fixture(scope="module")
def verdict(root: Path) -> Verdict:
    data = (root / "perf-changelog.yaml").read_bytes()
    findings, found = check(b"", data, Context(stage=Stage.MERGE))
    assert not findings
    return found


def first_ten(verdict: Verdict) -> tuple[Entry, ...]:
    return verdict.additions[:TEN]


def test_it_begins_with_the_pull_requests_that_the_configs_come_from(verdict: Verdict) -> None:
    links = [int(re.sub(r".*/pull/", "", entry.pr_link)) for entry in first_ten(verdict)]
    assert links == [2542, 2555, 2558, 2627, 2628, 2629, 2630, 2631, 2633, 3158]


def test_it_runs_every_point_that_is_shipped(verdict: Verdict, root: Path) -> None:
    space = open_workspace(str(root))
    plan, findings = plan_change(verdict, space, space._replace(configs=()))
    assert not findings
    keys = {point.deployment.config.key for point in plan.points}
    assert keys == {config.key for config in space.configs}
    throughput = [point.id for point in plan.points if not point.eval_only]
    assert len(throughput) == len(set(throughput)) >= 160
    assert not plan.left_out


def test_each_config_stands_in_one_of_the_first_entries(verdict: Verdict) -> None:
    named = [key for entry in first_ten(verdict) for key in entry.config_keys]
    assert len(named) == len(set(named)) == 21
