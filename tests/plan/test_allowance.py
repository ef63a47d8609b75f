"""The most that a plan may take: what refuses it, what the refusal says, and what lets it run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matrix.cli.main import run
from matrix.cli.plan import plan as command
from matrix.plan.allowance import approving_label, over_budget
from matrix.plan.labels import load_labels
from matrix.plan.plan import Plan
from matrix.points.pipeline import expand
from matrix.points.request import Filters, Request
from tests.changelog.support import Repository
from tests.plan.support import added, commit, of, single, workspace

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.workspace import Workspace

SPACE = single("a", "[4]", "[1, 2]") + single("b", "", "[1]") + single("c", "", "[1, 2, 4]") + single("d", "", "[1]")


def whole(found: Workspace) -> Plan:
    request = Request(filters=Filters(config_keys=("a", "b", "c", "d")))
    return Plan(tuple(expand(found.configs, found.facts, found.policy, request).points))


@pytest.mark.parametrize(("most", "refused"), [(None, False), (56, False), (56.1, False), (55.9, True), (1, True)])
def test_up_to_the_budget_a_plan_runs(tmp_path: Path, most: float | None, refused: bool) -> None:
    plan = whole(workspace(tmp_path, SPACE))
    assert plan.cost.gpu_hours == 56
    assert (over_budget(plan, most) is not None) is refused
    assert over_budget(plan, most, approved=True) is None


def test_the_refusal_names_figures_the_dearest_configs_and_the_ways_out(tmp_path: Path) -> None:
    found = over_budget(whole(workspace(tmp_path, SPACE)), 55.5, way_out="ask")
    assert str(found) == (
        "plan-budget: the plan takes 56 GPU-hours in 8 jobs, and budget-gpu-hours allows 55.5. Most of it: c 24, a 16,"
        " b 8, and 1 more config. 1 job of unknown length, which count as none, come on top. fix: sweep fewer points,"
        " as --trim-conc and a label that trims do, ask, or raise budget-gpu-hours in [tool.matrix]"
    )


def test_the_label_of_the_registry(root: Path) -> None:
    registry = load_labels(str(root / "configs/labels.yaml"))
    assert approving_label(registry) == "have somebody with maintain permission set over-budget-approved"
    assert approving_label(registry._replace(modifiers={})) == ""
    label = registry.modifiers["over-budget-approved"]
    primary = next(iter(registry.primaries.values()))
    assert registry.mode(primary, [label]).over_budget
    assert not registry.mode(primary).over_budget


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scratch = Repository(tmp_path / "scratch")
    scratch.write(b"[tool.matrix]\nbudget-gpu-hours = 10\n", "pyproject.toml")
    commit(scratch, single("a", "[4]"))
    base = scratch.git("rev-parse", "HEAD").strip()
    commit(scratch, single("a", "[4]", "[1, 2]"), added(of("a")))
    monkeypatch.chdir(scratch.folder)
    assert run(command, ["--base-ref", base], prog="matrix plan") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("plan-budget: the plan takes 16 GPU-hours")
    assert "give --over-budget-approved" in err
    assert run(command, ["--base-ref", base, "--over-budget-approved"], prog="matrix plan") == 0
    assert "agentic" in capsys.readouterr().out
