"""Whatever stands in a recipe, the answer is findings with a place and a fix, and never a traceback."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from matrix.checks.case import space_of
from matrix.checks.registry import WAIVABLE, chosen
from matrix.checks.run import check_space
from matrix.recipes.golden import CurveBook
from matrix.workspace import open_workspace
from tests.checks.breaks import MASTER, MU, XI
from tests.checks.support import SPACE, Repository

if TYPE_CHECKING:
    from collections.abc import Iterator

ODD: Final[tuple[Any, ...]] = (
    None,
    0,
    -1,
    7,
    "",
    "x",
    "8x",
    "1",
    True,
    False,
    1.5,
    [],
    ["a"],
    [None],
    {},
    {"a": 1},
    {"type": [1]},
)
RECIPES: Final = {
    path.name: json.loads(json.dumps(yaml.safe_load(path.read_text(encoding="utf-8"))))
    for path in sorted((SPACE / "recipes").glob("*.yaml"))
}


class Quoting(yaml.SafeDumper):
    """Quotes every text, so that none of them reads as a number elsewhere."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from paths(value, (*path, key))


def put(node: Any, path: tuple[Any, ...], odd: Any) -> None:
    """Change one value, unless an earlier change took the way there."""
    with suppress(KeyError, IndexError, TypeError):
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = odd


PLACES: Final = [(name, path) for name, data in RECIPES.items() for path in paths(data)]


@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD)), min_size=1, max_size=3))
def test_any_value_anywhere_is_answered(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[tuple[str, tuple[Any, ...]], Any]]
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    recipes = json.loads(json.dumps(RECIPES))
    for (name, path), odd in changes:
        put(recipes[name], path, odd)
    for name, data in recipes.items():
        (folder / name).write_text(yaml.dump(data, Dumper=Quoting, sort_keys=False), encoding="utf-8")
    opened = open_workspace(
        str(folder), masters=[str(SPACE / MASTER)], runners=str(SPACE / "runners.yaml"), recipes=[str(folder)]
    )
    curves = CurveBook(SPACE / "golden")
    space, _ = space_of(opened.configs, opened.facts, curves=curves, workspace=Path(folder))
    report = check_space(space, chosen(), WAIVABLE)
    for outcome in report.outcomes:
        finding = outcome.finding
        assert finding.rule in WAIVABLE
        assert finding.span is not None
        assert finding.message
        assert finding.fix
        assert "{role}" not in str(finding)


def test_a_recipe_that_holds_itself_is_refused(repository: Repository) -> None:
    repository.edit(XI, 12, "args:", "args: &args")
    repository.edit(XI, 15, "max-num-seqs: 8", "max-num-seqs: *args")
    found = repository.check().only("recipe-yaml")
    assert (found["file"], found["line"]) == (XI, 15)


def test_a_link_out_of_the_root_is_refused(repository: Repository) -> None:
    (repository.folder / XI).rename(repository.folder / "xi.yaml")
    (repository.folder / XI).symlink_to("../xi.yaml")
    found = repository.check().only("recipe-path")
    assert (found["file"], found["line"]) == (MASTER, 74)
    assert "is a link that leaves the recipe roots" in found["message"]


def test_links_in_a_circle_are_a_missing_recipe(repository: Repository) -> None:
    (repository.folder / XI).unlink()
    (repository.folder / XI).symlink_to("xi.yaml")
    (repository.folder / "recipes/round").symlink_to(".")
    assert repository.check().only("recipe-missing")["line"] == 74


def test_a_file_that_cannot_be_read_is_told(repository: Repository) -> None:
    repository.write(MU, "\x00")
    assert {finding["file"] for finding in repository.check().findings} == {MU}
    (repository.folder / MU).write_bytes(b"\xff\xfe")
    assert repository.check().rules == {"recipe-yaml"}
    repository.write(MU, "- a list\n")
    assert "a recipe is a mapping" in repository.check().only("recipe-yaml")["message"]


def test_all_mismatches_of_a_point_come_together(repository: Repository) -> None:
    repository.edit(XI, 3, "hf:lab/Xi", "hf:lab/Xj")
    repository.edit(XI, 3, "lab/vllm:1", "lab/vllm:2")
    repository.edit(XI, 3, "fp16", "fp8")
    repository.edit(XI, 5, "mi300x", "mi355x")
    repository.edit(XI, 10, "2", "1")
    repository.edit(XI, 21, "4", "8")
    answer = repository.check()
    assert answer.rules == {
        "recipe-concurrency",
        "recipe-hardware",
        "recipe-image",
        "recipe-model",
        "recipe-precision",
        "recipe-topology",
    }
    assert {tuple(finding["points"]) for finding in answer.findings} == {
        ("xi-fp16-mi300x-vllm-agg--128-32--2w-tp2--c4",)
    }
