"""The digest changes when a byte that reaches the cluster changes, and only then.

What reaches it is the resolved recipe (as data: comments, layout, anchors, key order and file names are gone by then),
the row, the golden length, the patches and the pin.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from matrix.config.source import Map, Seq, WrittenFloat, loads, plain
from matrix.points.evals import EvalPolicy
from matrix.points.expand import Facts
from matrix.points.lookup import accuracy_run
from matrix.points.pipeline import expand
from matrix.points.point import Deployment, Point, Stack
from matrix.points.request import Request
from matrix.recipes.acceptance import injector
from matrix.recipes.golden import CurveBook
from matrix.recipes.recipe import Recipe, RecipeBook, parse_reference
from matrix.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SEED: Final = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark"
SEED_RECIPE: Final = "dsv4/atom/mi355x-fp4/agentx/disagg-lmcache-dspark.yaml"
PATCHES: Final = (("433-atom.patch", "a" * 64),)


@pytest.fixture(scope="module")
def workspace(root: Path) -> Workspace:
    return open_workspace(str(root))


@pytest.fixture(scope="module")
def points(workspace: Workspace) -> tuple[Point, ...]:
    return expanded(workspace, workspace.facts)


def expanded(workspace: Workspace, facts: Facts) -> tuple[Point, ...]:
    found = expand(workspace.configs, facts, EvalPolicy(), Request())
    assert not found.findings
    return tuple(found.points)


def digests(points: tuple[Point, ...]) -> dict[str, str]:
    return {point.id: point.digest for point in points}


def with_recipe(point: Point, data: Map) -> Point:
    """The same point, had its recipe resolved to other data."""
    old = point.deployment
    assert old.recipe is not None
    recipe = Recipe(old.recipe.reference, data, old.recipe.document, old.recipe.path)
    deployment = Deployment(
        old.frame,
        old.entry,
        budget_gb=old.budget_gb,
        nodes=old.nodes,
        gpus=old.gpus,
        reference=old.reference,
        recipes=(recipe, recipe, old.golden),
        stack=old.stack,
    )
    return point._replace(deployment=deployment)


# -- every byte counts -----------------------------------------------------------------------------------------------


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else None
    if members is None:
        yield path, node
    else:
        for key, value in members:
            yield from leaves(value, (*path, key))


def replaced(node: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """A copy of the way to a member, changed there."""
    copy: Any = Map(node) if isinstance(node, Map) else Seq(node)
    if len(path) == 1:
        change(copy, path[0])
    else:
        copy[path[0]] = replaced(node[path[0]], path[1:], change)
    return copy


def other(value: Any) -> list[Any]:
    """Values that look or count alike and are not the same to a server."""
    match value:
        case bool():
            return [not value, str(value).lower(), int(value)]
        case WrittenFloat():
            return [WrittenFloat(f"{value.text}1"), value.text]
        case int():
            return [value + 1, str(value), bool(value)]
        case None:
            return ["", "null", False]
        case _:
            return [f"{value} ", value.upper() if value.upper() != value else f"{value}x", None]


def test_every_value_of_every_recipe_counts(points: tuple[Point, ...]) -> None:
    seen: set[str] = set()
    for point in points:
        config, recipe = point.deployment.config.key, point.deployment.recipe
        if config in seen:
            continue
        seen.add(config)
        assert recipe is not None
        for path, value in leaves(recipe.data):
            for replacement in other(value):

                def change(node: Any, key: Any, replacement: Any = replacement) -> None:
                    node[key] = replacement

                changed = with_recipe(point, replaced(recipe.data, path, change))
                assert changed.digest != point.digest, f"{config}: {path} as {replacement!r}"
    assert len(seen) == len({point.deployment.config.key for point in points}) > 20


def test_a_member_more_or_less_counts(points: tuple[Point, ...]) -> None:
    point = next(point for point in points if point.deployment.config.key == SEED)
    assert point.deployment.recipe is not None
    data = point.deployment.recipe.data
    for path, _ in leaves(data):
        without = with_recipe(point, replaced(data, path, lambda node, key: node.__delitem__(key)))
        assert without.digest != point.digest, path
    added = with_recipe(
        point, replaced(data, ("environment",), lambda node, key: node.__setitem__(key, Map({"A": "1"})))
    )
    assert added.digest != point.digest
    assert with_recipe(point, data).digest == point.digest


def test_equal_digests_are_one_job(points: tuple[Point, ...]) -> None:
    """Over the shipped space: the digest stands for what is covered, and for nothing else."""
    by_digest: dict[str, str] = {}
    for point in points:
        covered = json.dumps(point.digest_payload(), sort_keys=True)
        assert by_digest.setdefault(point.digest, covered) == covered
    assert len(set(by_digest.values())) == len(by_digest) == len(points)


# -- and nothing else ------------------------------------------------------------------------------------------------


def commented(text: str, name: str) -> str:
    """A comment before the line of every key."""
    lines = text.splitlines()
    at: set[int] = set()

    def visit(node: Any) -> None:
        if isinstance(node, Map):
            at.update(marks[0].line for marks in node.marks.values())
        for member in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            visit(member)

    visit(loads(text.encode(), name).root)
    found = []
    for number, line in enumerate(lines):
        if number in at:
            indent = len(line) - len(line.lstrip())
            found.append(f"{' ' * indent}# {number}: a word on what follows")
        found.append(line)
    return "\n".join([*found, "# the end", ""])


class Quoting(yaml.SafeDumper):
    """Quotes every text, so that none of them reads as a number elsewhere."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def dumped(text: str, _: str) -> str:
    """The same data in another layout: no anchors, keys sorted, each text quoted and as long as it is."""
    data = json.loads(json.dumps(plain(loads(text.encode(), "x").root)))  # nothing shared, so no anchors
    return str(yaml.dump(data, Dumper=Quoting, sort_keys=True, width=200))


def in_flow(text: str, _: str) -> str:
    return json.dumps(plain(loads(text.encode(), "x").root), indent=1)


@pytest.mark.parametrize("rewrite", [commented, dumped, in_flow])
def test_the_layout_of_recipes_does_not_count(
    rewrite: Callable[[str, str], str], workspace: Workspace, points: tuple[Point, ...], root: Path, tmp_path: Path
) -> None:
    shipped = root / "configs" / "recipes"
    for path in sorted(shipped.rglob("*.yaml")):
        target = tmp_path / path.relative_to(shipped)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
        changed = rewrite(text, str(path))
        assert changed != text
        target.write_text(changed, encoding="utf-8")
    again = expanded(workspace, workspace.facts._replace(recipes=RecipeBook([tmp_path])))
    assert digests(again) == digests(points)


def test_comments_and_layout_of_masters_do_not_count(
    workspace: Workspace, points: tuple[Point, ...], root: Path, tmp_path: Path
) -> None:
    text = (root / "configs" / "amd-master.yaml").read_text(encoding="utf-8")
    for number, rewrite in enumerate((commented, in_flow)):
        master = tmp_path / f"{number}-master.yaml"
        master.write_text(rewrite(text, "amd-master.yaml"), encoding="utf-8")
        again = open_workspace(str(root), masters=[str(master)])
        assert digests(expanded(again, workspace.facts)) == digests(points)


def test_a_recipe_may_move(points: tuple[Point, ...], root: Path, tmp_path: Path) -> None:
    """Its name is in the row that people see, and not in what the cluster gets."""
    shutil.copytree(root / "configs" / "recipes", tmp_path / "recipes")
    (tmp_path / "recipes" / SEED_RECIPE).rename(tmp_path / "recipes" / "moved.yaml")
    text = (root / "configs" / "amd-master.yaml").read_text(encoding="utf-8")
    (tmp_path / "a-master.yaml").write_text(text.replace(SEED_RECIPE, "moved.yaml"), encoding="utf-8")
    moved = open_workspace(str(root), masters=[str(tmp_path / "a-master.yaml")], recipes=[str(tmp_path / "recipes")])
    again = expanded(moved, moved.facts)
    assert digests(again) == digests(points)
    assert {parse_reference(point.deployment.reference or "").path for point in again} > {"moved.yaml"}


# -- one edit, the points it reaches ---------------------------------------------------------------------------------


SMALL: Final = """\
base:
  schema: 2
  name: b
  engine: atom
  roles: {prefill: {nodes: 1, args: {x: 1, flag: true}}, decode: {nodes: 1, args: {y: "2"}}}
  benchmark: {env: {CONC: "4"}}
override_a: {roles: {prefill: {args: {x: 3}}}}
override_b: {roles: {decode: {args: {y: null}}}}
"""
EDITS: Final = (
    ("x: 1", "x: 5"),
    ("x: 3", "x: 1"),
    ("flag: true", "flag: false"),
    ('y: "2"', "y: 2"),
    ("y: null", "z: 7"),
    ('CONC: "4"', 'CONC: "8"'),
    ("name: b", "name: c"),
    ("x: 1, flag: true", "flag: true, x: 1"),
    ("override_b:", "# b\noverride_b:"),
    ('"4"', "'4'"),
    ("{nodes: 1, args: {x", "{args: {x"),
)


def edited(edits: frozenset[int], variant: str, folder: Path) -> Recipe | None:
    text = SMALL
    for number in sorted(edits):
        text = text.replace(*EDITS[number])
    (folder / "r.yaml").write_text(text, encoding="utf-8")
    return RecipeBook([folder]).resolve(f"r.yaml:{variant}")


@given(
    st.frozensets(st.integers(0, len(EDITS) - 1), max_size=4),
    st.frozensets(st.integers(0, len(EDITS) - 1), max_size=4),
    st.sampled_from(["override_a", "override_b"]),
)
def test_two_versions_of_a_recipe_have_one_digest_exactly_when_they_resolve_alike(
    tmp_path_factory: pytest.TempPathFactory,
    points: tuple[Point, ...],
    first: frozenset[int],
    second: frozenset[int],
    variant: str,
) -> None:
    folder = tmp_path_factory.mktemp("r")
    one, two = edited(first, variant, folder), edited(second, variant, folder)
    assert one is not None
    assert two is not None
    sent = [yaml.safe_dump(plain(recipe.data), sort_keys=True) for recipe in (one, two)]
    told = [with_recipe(points[0], recipe.data).digest for recipe in (one, two)]
    assert (sent[0] == sent[1]) is (told[0] == told[1])


def test_an_edit_reaches_the_points_that_get_it(
    workspace: Workspace, points: tuple[Point, ...], root: Path, tmp_path: Path
) -> None:
    def changed(old: str, new: str) -> set[str]:
        folder = tmp_path / "recipes"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(root / "configs" / "recipes", folder)
        path = folder / SEED_RECIPE
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
        again = digests(expanded(workspace, workspace.facts._replace(recipes=RecipeBook([folder]))))
        return {name.rsplit("--", 1)[1] for name, digest in digests(points).items() if again[name] != digest}

    every = {name.rsplit("--", 1)[1] for name in digests(points) if name.startswith(SEED)}
    assert len(every) == 5
    assert changed("block-size: 256", "block-size: 128") == every
    assert changed('CONC: "64"', 'CONC: "65"') == {"override_dpa8_c64"}
    assert changed("lmcache.max_local_cpu_size: 187", "lmcache.max_local_cpu_size: 186") == {
        "override_dpa8_c256_lmcache"
    }
    assert changed("prefill-policy: cache_aware", "prefill-policy: random") == {
        "override_dpa8_c64",
        "override_dpa8_c128",
    }
    assert changed("  # Several routers", "  # A few routers") == set()


# -- what is beside the recipe ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stack",
    [
        Stack(),
        Stack("c88ef73", PATCHES),
        Stack("c88ef74", ()),
        Stack("c88ef73", (("433-atom.patch", "b" * 64),)),
        Stack("c88ef73", (("434-atom.patch", "a" * 64),)),
        Stack("c88ef73", (*PATCHES, ("504-eval.patch", "c" * 64))),
    ],
)
def test_the_pin_and_every_patch_count(workspace: Workspace, stack: Stack) -> None:
    plain_stack = digests(expanded(workspace, workspace.facts._replace(stack=Stack("c88ef73", ()))))
    again = digests(expanded(workspace, workspace.facts._replace(stack=stack)))
    assert all(again[name] != digest for name, digest in plain_stack.items())


def test_a_golden_length_counts_for_the_runs_that_are_given_it(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    shutil.copytree(root / "configs" / "golden", tmp_path / "golden")

    def told() -> tuple[dict[str, str], dict[str, str]]:
        facts = workspace.facts._replace(inject=injector(CurveBook(tmp_path / "golden")))
        found = expanded(workspace, facts)
        return digests(found), digests(tuple(accuracy_run(point, EvalPolicy()) for point in found))

    throughput, accuracy = told()
    curve = tmp_path / "golden" / "dsv4-pro-0813-dspark.yaml"
    text = curve.read_text(encoding="utf-8")
    curve.write_text(f"# measured anew\n{text}", encoding="utf-8")
    assert told() == (throughput, accuracy)
    assert text.count("3.01") == 1
    curve.write_text(text.replace("3.01", "3.02"), encoding="utf-8")
    again, accuracy_again = told()
    assert accuracy_again == accuracy
    assert {name.split("--")[0] for name, digest in throughput.items() if again[name] != digest} == {SEED}
    assert sum(again[name] != digest for name, digest in throughput.items()) == 5
