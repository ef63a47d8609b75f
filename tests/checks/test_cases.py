"""Failures that people reported in public: our own form of each, and the collected inputs where they are present."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.checks.breaks import MASTER, MU, XI
from tests.checks.support import FILES, Answer, Repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SELECTORS: Final = {
    "noselector": (6, "lambda.yaml without a selector"),
    "glob": (2, "the selector override_*"),
    "group": (4, "the selector zip_override_low"),
}
LAMBDA: Final = "lambda-fp4-mi355x-atom-disagg-agentic"


@pytest.fixture
def collected(shared: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Answer]:
    """Check one master of a collected case."""

    def run(case: str, name: str) -> Answer:
        monkeypatch.chdir(shared / "cases" / case)
        files = ("--config", f"{name}.yaml", "--runners", "R.yaml", "--recipes", "recipes")
        return repository.check(files=files)

    return run


# -- C32: a recipe that is not there ---------------------------------------------------------------------------------


def test_a_missing_recipe_names_config_entry_path_and_roots(repository: Repository) -> None:
    repository.edit(MASTER, 54, "nu.yaml", "nu-2.yaml")
    (repository.folder / "more").mkdir()
    found = repository.check(files=(*FILES, "--recipes", "more", "--golden", "golden")).only("recipe-missing")
    assert found["message"].startswith(
        "nu-fp8-mi355x-sglang-disagg-mtp, entry 2, names recipes/nu-2.yaml:zip_override_dep8[1]: the recipe nu-2.yaml"
        " does not exist. Roots searched: recipes, more."
    )
    assert "did you mean nu.yaml" in found["fix"]


def test_two_spellings_of_the_root_are_one_file(repository: Repository) -> None:
    repository.edit(MASTER, 27, "recipes/mu", "benchmarks/multi_node/srt-slurm-recipes/mu")
    repository.edit(MASTER, 20, "override_tp8_c16", "override_dpa8_c256")
    found = repository.check().only("variant-shared")
    assert "benchmarks/multi_node/srt-slurm-recipes/mu.yaml:override_dpa8_c256 already belongs" in found["message"]


def test_c32(collected: Callable[[str, str], Answer]) -> None:
    answer = collected("C32", "X_missing")
    found = answer.only("recipe-missing")
    assert answer.status == 1
    assert (found["file"], found["line"]) == ("X_missing.yaml", 16)
    wanted = (
        f"{LAMBDA}, entry 1, names recipes/lambda-dspark.yaml:override_tp8_c16: the recipe lambda-dspark.yaml does not"
    )
    assert found["message"].startswith(f"{wanted} exist. Roots searched: recipes.")
    assert not any(
        rule.startswith(("recipe-missing", "recipe-path")) for rule in collected("C32", "X_wrong_root").rules
    )


# -- C34: one point, several variants --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "written", "says"),
    [
        (27, "recipes/mu.yaml", "mu.yaml without a selector means 2 variants"),
        (27, "recipes/mu.yaml:override_*", "the selector override_* means 2 variants"),
        (49, "recipes/nu.yaml:zip_override_dep8", "the selector zip_override_dep8 means 2 variants"),
    ],
)
def test_a_point_runs_one_variant(repository: Repository, line: int, written: str, says: str) -> None:
    text = (repository.folder / MASTER).read_text(encoding="utf-8").splitlines()[line - 1]
    repository.edit(MASTER, line, text.split("=")[1].split('"')[0], written)
    found = repository.check().only("recipe-selector")
    assert f"{says}, and a point runs exactly one" in found["message"]
    assert found["fix"].startswith("name one of: ")


@pytest.mark.parametrize("kind", SELECTORS)
def test_c34(collected: Callable[[str, str], Answer], kind: str) -> None:
    count, how = SELECTORS[kind]
    answer = collected("C34", f"X_{kind}")
    assert f"{how} means {count} variants, and a point runs exactly one" in answer.only("recipe-selector")["message"]
    assert answer.status == 1


# -- C36: another concurrency than the recipe's ----------------------------------------------------------------------


@pytest.mark.parametrize("text", ['"4x8"', "[4, 8]", '"4 8"', '"4, 8"', '["4", "8"]'])
def test_every_form_of_a_list_is_read(repository: Repository, text: str) -> None:
    repository.edit(MASTER, 71, "[4]", "[4, 16]")
    repository.edit(XI, 21, '"4"', text)
    message = repository.check().only("recipe-concurrency")["message"]
    assert "the row says concurrency 4, 16, and the recipe says 4, 8." in message
    assert "Missing in the recipe: 16; only in the recipe: 8." in message


def test_c36(collected: Callable[[str, str], Answer]) -> None:
    one = collected("C36", "X")
    message = one.only("recipe-concurrency")["message"]
    assert "the row says concurrency 64, and the recipe says 16." in message
    several = collected("C36", "X_list")
    message = several.only("recipe-concurrency")["message"]
    assert "Missing in the recipe: 32; only in the recipe: 64." in message
    assert (one.status, several.status) == (1, 1)


# -- C38: nodes, and two recipes for one job -------------------------------------------------------------------------


def test_two_roles_name_one_recipe(repository: Repository) -> None:
    repository.edit(MASTER, 28, "true}", 'true, additional-settings: ["CONFIG_FILE=recipes/mu.yaml:override_tp8_c16"]}')
    message = repository.check().only("recipe-conflict")["message"]
    assert "recipes/mu.yaml:override_dpa8_c256 and recipes/mu.yaml:override_tp8_c16" in message


def test_c38(collected: Callable[[str, str], Answer]) -> None:
    conflict = collected("C38", "X_conflict")
    message = conflict.only("recipe-conflict")["message"]
    assert "recipes/lambda.yaml:override_tp8_c16 and recipes/lambda.yaml:override_tp8_c1." in message
    assert conflict.status == 1
    for name in ("X", "X_dedicated", "X_colocated"):
        assert not collected("C38", name).rules & {"recipe-conflict", "recipe-topology", "recipe-placement"}


# -- C56: names and flags word for word ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "served", "asked"),
    [
        ("hf:lab/Mu-Pro", "lab/Mu-Pro", "Mu-Pro"),
        ("/models/lab/Mu-Pro", "/model", "lab/Mu-Pro"),
        ("Mu-Pro", "/model", "Mu-Pro"),
        ("/models/lab/Mu-Pro, stage_dir: /scratch", "/scratch/Mu-Pro", "/model"),
    ],
)
def test_atom_serves_its_model_word_for_word(repository: Repository, path: str, served: str, asked: str) -> None:
    repository.edit(MU, 4, '"hf:lab/Mu-Pro"', path if ":" not in path or "," in path else f'"{path}"')
    repository.edit(MU, 33, "lab/Mu-Pro", asked)
    wrong = repository.check("--select", "served-name").only("served-name")
    assert f"the client asks for the model {asked}, and the server serves {served}." in wrong["message"]
    repository.edit(MU, 33, asked, served)
    assert repository.check("--select", "served-name").findings == []


def test_the_launchers_own_flags_are_refused(repository: Repository) -> None:
    repository.edit(MU, 18, "level: 3", "no-enable_prefix_caching: true")
    assert repository.check().findings == []
    repository.edit(MU, 16, "num-speculative-tokens: 3", 'num-speculative-tokens: 3\n        kv-transfer-config: "{}"')
    found = repository.check().only("atom-reserved-arg")
    assert "kv-transfer-config of roles prefill and decode belongs to srtctl" in found["message"]


def test_c56(shared: Path, repository: Repository) -> None:
    def look(name: str) -> list[dict[str, Any]]:
        ignored = "router-single-frontend"  # these recipes leave it to its default
        return repository.check(str(shared / "cases/C56" / name), "--ignore", ignored, files=()).findings

    assert look("recipe.yaml") == look("recipe_local.yaml") == []
    refused = look("recipe_reserved.yaml")
    assert {finding["rule"] for finding in refused} == {"atom-reserved-arg"}
    assert [finding["line"] for finding in refused] == [7, 8]
