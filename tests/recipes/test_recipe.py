"""A file and a selector to one recipe, as srtctl does it."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.config.source import Map, loads, plain
from matrix.recipes.recipe import PREFIXES, RecipeBook, RecipeError, deep_merge, parse_reference, variants

if TYPE_CHECKING:
    from tests.recipes.conftest import Make

BUNDLE: Final = """
    base:
      schema: 2
      name: b
      model: {path: a, container: c}
      keep: {x: 1, y: [1, 2], z: {deep: true}}
    override_one: {keep: {x: 2}}
    override_named: {name: own}
    zip_override_two:
      keep:
        x: [10, 20, 30]
        y: [[7], [8, 9], []]
        z: {deep: [false]}
      same: 5
    zip_override_names: {name: [p, q], keep: {x: 1}}
    zip_override_scalar_name: {name: r, keep: {x: [1, 2]}}
"""


@pytest.mark.parametrize(
    ("text", "path", "selector"),
    [
        ("recipes/a/b.yaml:override_x", "a/b.yaml", "override_x"),
        ("benchmarks/multi_node/srt-slurm-recipes/a/b.yaml:base", "a/b.yaml", "base"),
        ("a/b.yaml", "a/b.yaml", None),
        ("recipes/a.yaml:zip_override_x[2]", "a.yaml", "zip_override_x[2]"),
        ("recipes/we:ird.yaml:override_x", "we:ird.yaml", "override_x"),
        ("recipes/a.yaml:", "a.yaml", None),
        ("recipes/recipes/a.yaml", "recipes/a.yaml", None),
    ],
)
def test_a_reference_is_split_at_the_last_colon(text: str, path: str, selector: str | None) -> None:
    reference = parse_reference(text)
    assert (reference.path, reference.selector, reference.text) == (path, selector, text)


@pytest.mark.parametrize(
    ("selector", "name", "keep"),
    [
        ("base", "b", {"x": 1, "y": [1, 2], "z": {"deep": True}}),
        ("override_one", "b_one", {"x": 2, "y": [1, 2], "z": {"deep": True}}),
        ("override_named", "own", {"x": 1, "y": [1, 2], "z": {"deep": True}}),
        ("zip_override_two[0]", "b_two_0", {"x": 10, "y": [7], "z": {"deep": False}}),
        ("zip_override_two[1]", "b_two_1", {"x": 20, "y": [8, 9], "z": {"deep": False}}),
        ("zip_override_two[2]", "b_two_2", {"x": 30, "y": [], "z": {"deep": False}}),
        ("zip_override_names[1]", "q", {"x": 1, "y": [1, 2], "z": {"deep": True}}),
        ("zip_override_scalar_name[1]", "b_scalar_name_1", {"x": 2, "y": [1, 2], "z": {"deep": True}}),
    ],
)
def test_a_selector_names_one_variant(make: Make, selector: str, name: str, keep: dict[str, Any]) -> None:
    recipe = make(BUNDLE, selector)
    assert (recipe.data["name"], plain(recipe.data["keep"])) == (name, keep)


def test_every_variant_of_a_bundle_is_listed(make: Make) -> None:
    assert variants(make(BUNDLE, "base").document.root) == [
        "override_one",
        "override_named",
        "zip_override_two[0]",
        "zip_override_two[1]",
        "zip_override_two[2]",
        "zip_override_names[0]",
        "zip_override_names[1]",
        "zip_override_scalar_name[0]",
        "zip_override_scalar_name[1]",
    ]


NULLS: Final = """
    base: {name: b, keep: {x: 1, y: 2}, list: [1], none: null}
    override_n:
      keep: {x: null, new: {inner: null}}
      list: [null, {inner: null}]
      absent: null
"""


def test_null_deletes_a_key_and_nothing_in_a_list(make: Make) -> None:
    data = plain(make(NULLS, "override_n").data)
    assert data == {
        "name": "b_n",
        "keep": {"y": 2, "new": {"inner": None}},
        "list": [None, {"inner": None}],
        "none": None,
    }


REFUSED: Final = [
    # file, selector, rule, words of the refusal, line, whether something is missing rather than broken
    (BUNDLE, None, "recipe-selector", ["means 9 variants", "override_one"], 0, True),
    (BUNDLE, "override_*", "recipe-selector", ["means 2 variants"], 0, True),
    (BUNDLE, "zip_override_tw?", "recipe-selector", ["means 3 variants"], 0, True),
    (BUNDLE, "zip_override_two", "recipe-selector", ["means 3 variants", "zip_override_two[0]"], 8, True),
    (
        BUNDLE,
        "override_onne",
        "recipe-selector",
        ["has no variant override_onne", "did you mean override_one"],
        0,
        True,
    ),
    (BUNDLE, "zip_override_two[3]", "recipe-selector", ["out of range", "zip_override_two[2]"], 8, True),
    (BUNDLE, "zip_override_two[x]", "recipe-selector", ["has no variant"], 0, True),
    (BUNDLE, "keep", "recipe-selector", ["has no variant keep"], 0, True),
    ("name: flat", "override_x", "recipe-selector", ["has no variants (no base:)"], 0, True),
    ("base: {name: b}", "override_x", "recipe-selector", ["no variant at all"], 0, True),
    ("base: {}\nzip_override_z: {a: [1, 2], b: [1, 2, 3]}", "zip_override_z[0]", "recipe-zip", ["[2, 3]"], 2, False),
    ("base: {}\nzip_override_z: {a: []}", "zip_override_z[0]", "recipe-zip", ["[0]"], 2, False),
    ("base: {}\nzip_override_z: {a: 1}", "zip_override_z[0]", "recipe-zip", ["no list"], 2, False),
    ("base: [1]\noverride_x: {}", "override_x", "recipe-yaml", ["base is not a mapping"], 1, False),
    ("base: {}\noverride_x: 3", "override_x", "recipe-yaml", ["override_x is not a mapping"], 2, False),
    ("- 1", None, "recipe-yaml", ["a recipe is a mapping"], 0, False),
    ("name: a\nname: b", None, "recipe-yaml", ["yaml-duplicate-key"], 2, False),
    ("a: &a {b: *a}", None, "recipe-yaml", ["yaml-alias"], 1, False),
    ("a: {b: [1}", None, "recipe-yaml", ["yaml-syntax"], 1, False),
]


@pytest.mark.parametrize(("text", "selector", "rule", "words", "line", "missing"), REFUSED)
def test_a_reference_that_leads_to_no_recipe(
    make: Make, text: str, selector: str | None, rule: str, words: list[str], line: int, *, missing: bool
) -> None:
    with pytest.raises(RecipeError) as refusal:
        make(text, selector)
    finding = refusal.value.finding
    assert (finding.rule, refusal.value.missing) == (rule, missing)
    assert all(word in str(finding) for word in words), str(finding)
    assert finding.span is not None
    assert finding.span.line == line


@pytest.mark.parametrize("prefix", [*PREFIXES, ""])
def test_every_spelling_of_a_root_leads_to_one_file(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "r.yaml").write_text("name: here", encoding="utf-8")
    assert RecipeBook([tmp_path]).resolve(f"{prefix}a/r.yaml").data["name"] == "here"


def test_the_first_root_that_has_a_file_gives_it(tmp_path: Path) -> None:
    for root in ("one", "two"):
        (tmp_path / root).mkdir()
        (tmp_path / root / "r.yaml").write_text(f"name: {root}", encoding="utf-8")
    (tmp_path / "two" / "only.yaml").write_text("name: only", encoding="utf-8")
    book = RecipeBook([tmp_path / "one", tmp_path / "two"])
    assert book.resolve("r.yaml").data["name"] == "one"
    assert book.resolve("only.yaml").data["name"] == "only"
    assert [name for _, name in book.files()] == ["only.yaml", "r.yaml"]


@pytest.mark.parametrize("path", ["/etc/hostname", "../r.yaml", "recipes/../../r.yaml", "recipes//etc/hostname"])
def test_a_path_that_leaves_the_roots_is_refused_unread(tmp_path: Path, path: str) -> None:
    (tmp_path / "roots").mkdir()
    (tmp_path / "r.yaml").write_text("name: outside", encoding="utf-8")
    with pytest.raises(RecipeError, match="leaves the recipe roots") as refusal:
        RecipeBook([tmp_path / "roots"]).resolve(path)
    assert (refusal.value.finding.rule, refusal.value.missing) == ("recipe-path", False)


def test_a_link_out_of_the_roots_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.yaml").write_text("name: outside", encoding="utf-8")
    (root / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (root / "inside.yaml").write_text("name: inside", encoding="utf-8")
    (root / "alias.yaml").symlink_to(root / "inside.yaml")
    book = RecipeBook([root])
    assert book.resolve("alias.yaml").data["name"] == "inside"
    with pytest.raises(RecipeError, match="is a link that leaves the recipe roots"):
        book.resolve("link.yaml")


def test_links_in_a_circle_are_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to(tmp_path / "b.yaml")
    (tmp_path / "b.yaml").symlink_to(tmp_path / "a.yaml")
    with pytest.raises(RecipeError) as refusal:
        RecipeBook([tmp_path]).resolve("a.yaml")
    assert refusal.value.finding.rule == "recipe-missing"


def test_a_missing_file_says_where_it_was_looked_for_and_what_is_near(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "disagg.yaml").write_text("name: a", encoding="utf-8")
    with pytest.raises(RecipeError) as refusal:
        RecipeBook([tmp_path]).resolve("recipes/y/disagg.yaml:override_a")
    text = str(refusal.value.finding)
    assert (refusal.value.missing, str(tmp_path) in text, "did you mean x/disagg.yaml?" in text) == (True, True, True)


def test_no_root_is_said_as_such() -> None:
    with pytest.raises(RecipeError, match="no recipe root is configured"):
        RecipeBook([]).resolve("a.yaml")


def test_a_file_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(dedent(BUNDLE), encoding="utf-8")
    book = RecipeBook([tmp_path])
    first = book.resolve("r.yaml:override_one")
    file.write_text("name: flat", encoding="utf-8")
    assert book.resolve("r.yaml:override_one") is first
    assert book.resolve("recipes/r.yaml:override_named").document is first.document


def test_a_broken_file_is_read_once_too(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text("a: [", encoding="utf-8")
    book = RecipeBook([tmp_path])
    for _ in range(2):
        with pytest.raises(RecipeError, match="yaml-syntax"):
            book.resolve("r.yaml")
        if file.exists():
            file.unlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text("name: a", encoding="utf-8")
    file.chmod(0)
    with pytest.raises(RecipeError, match="file-unreadable"):
        RecipeBook([tmp_path]).resolve("r.yaml")


def test_a_value_keeps_the_line_it_was_written_on(make: Make) -> None:
    recipe = make(
        """
        base:
          name: b
          keep:
            x: 1
            y: 2
        override_one:
          keep:
            x: 3
        zip_override_z:
          keep:
            y: [4,
                5]
        """,
        "zip_override_z[1]",
    )
    keep = recipe.data["keep"]
    assert (recipe.span(keep, "x").line, recipe.span(keep, "y").line, recipe.home().line) == (4, 12, 9)


def test_comments_key_order_and_file_names_do_not_count(make: Make) -> None:
    one = make("name: a\nkeep: {x: 1, y: 0.80}\n").canonical()
    two = make("# why\nkeep:\n  y: 0.8  # because\n  x: 1\nname: a\n")
    assert one == two.canonical()
    assert two.canonical() != make("name: a\nkeep: {x: 1, y: 0.81}\n").canonical()


# -- the law of merging ---------------------------------------------------------------------------------------------

SCALARS: Final = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "b"])
VALUES: Final = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
MAPPINGS: Final = st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3)


def as_map(value: dict[str, Any]) -> Map:
    import json

    root: Map = loads(json.dumps(value).encode(), "x").root
    return root


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """The rule in one sentence a line: null deletes, mappings merge, anything else replaces."""
    out = {key: value for key, value in base.items() if over.get(key, 0) is not None}
    for key, value in over.items():
        if value is not None:
            old = base.get(key)
            out[key] = merged(old, value) if isinstance(value, dict) and isinstance(old, dict) else value
    return out


@given(MAPPINGS, MAPPINGS)
def test_merging_does_what_it_says_and_changes_neither(base: dict[str, Any], over: dict[str, Any]) -> None:
    one, two = as_map(base), as_map(over)
    result = deep_merge(one, two)
    assert plain(result) == merged(base, over)
    assert (plain(one), plain(two)) == (base, over)
    assert result.keys() == result.marks.keys()


@given(MAPPINGS)
def test_nothing_merged_is_nothing_changed(base: dict[str, Any]) -> None:
    assert plain(deep_merge(as_map(base), as_map({}))) == base
