"""Injection into real recipes: the reported cases, and the shipped search space."""

from pathlib import Path

import pytest

from matrix.points.expand import survey
from matrix.points.pipeline import expand
from matrix.points.request import Request
from matrix.recipes.acceptance import inject, injector
from matrix.recipes.forced import leftovers
from matrix.recipes.golden import CurveBook
from matrix.recipes.recipe import RecipeBook
from matrix.recipes.roles import view_of
from matrix.workspace import Workspace, open_workspace
from tests.golden.engines import request_for


@pytest.mark.parametrize(
    ("case", "file", "prefix", "framework", "roles"),
    [
        ("C26", "recipe.yaml", "eta", "trt", {"prefill": None, "decode": "1.78"}),
        ("C31", "recipe_atom.yaml", "theta", "atom", {"prefill": "3.01", "decode": "3.01"}),
        ("C31", "recipe_atom.yaml", "theta", "atom-disagg", {"prefill": "3.01", "decode": "3.01"}),
        ("C31", "recipe_asym.yaml", "kappa", "sglang", {"prefill": "2.5", "decode": "2.5"}),
        ("C31", "recipe_prefill_plain.yaml", "kappa", "sglang", {"prefill": None, "decode": "2.99"}),
    ],
)
def test_reported_cases(
    shared: Path, case: str, file: str, prefix: str, framework: str, roles: dict[str, str | None]
) -> None:
    folder = shared / "cases" / case
    recipe = RecipeBook([folder]).resolve(file)
    injected, _ = inject(recipe, request_for(framework, model_prefix=prefix), CurveBook(folder / "golden"))
    found: dict[str, str | None] = dict.fromkeys(roles)
    for left in leftovers(view_of(injected)):
        assert left.role is not None
        if left.path[-1].endswith(("length", "LEN", "TOKENS")):
            found[left.role] = str(left.value)
        assert not left.path[-1].endswith("rate")
    assert found == roles


# -- the shipped search space -----------------------------------------------------------------------------------------

SEED = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark"


@pytest.fixture(scope="module")
def workspace(root: Path) -> Workspace:
    return open_workspace(str(root))


def test_the_five_points_of_the_seed_get_3_01_on_both_roles_and_nothing_in_accuracy_runs(
    workspace: Workspace, shipped: CurveBook
) -> None:
    configs = [config for config in workspace.configs if config.key == SEED]
    groups = survey(configs, workspace.facts._replace(inject=injector(shipped))).groups
    assert len(groups) == 5
    for (deployment,) in groups:
        assert deployment.golden == "3.01"
        assert deployment.recipe is not None
        assert deployment.eval_recipe is not None
        lengths = [
            (one.path[1], one.path[-1], str(one.value).rstrip("0")) for one in leftovers(view_of(deployment.recipe))
        ]
        assert lengths == [
            ("prefill", "spec-decode-acceptance-length", "3.01"),
            ("decode", "spec-decode-acceptance-length", "3.01"),
        ]
        assert list(leftovers(view_of(deployment.eval_recipe))) == []


def test_a_changed_value_changes_the_digests_of_the_points_that_use_it_alone(
    workspace: Workspace, shipped: CurveBook, tmp_path: Path
) -> None:
    for curve in shipped.curves:
        text = curve.path.read_text(encoding="utf-8")
        if curve.name == "dsv4-pro-0813-dspark":
            assert "    3: 3.01\n" in text
            text = text.replace("    3: 3.01\n", "    3: 3.02\n").replace("    4: 3.36\n", "    4: 3.30\n")
        (tmp_path / curve.path.name).write_text(text, encoding="utf-8")

    def digests(book: CurveBook) -> dict[str, str]:
        facts = workspace.facts._replace(inject=injector(book))
        points = expand(workspace.configs, facts, workspace.policy, Request()).points
        return {point.id: point.digest for point in points}

    before, after = digests(shipped), digests(CurveBook(tmp_path))
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {name for name in before if name.startswith(f"{SEED}--")}
    assert len(changed) == 5
