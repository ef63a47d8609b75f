"""The page of rules says what the docstrings say, and every rule says what, why and how to mend it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from matrix.checks.case import Case, Space
from matrix.checks.registry import BY_FAMILY, FAMILIES, RULES, WAIVABLE
from matrix.cli.main import run
from matrix.cli.rules_page import rules_page
from matrix.recipes.roles import RecipeView
from matrix.report.rules_page import rules_page as text_of

if TYPE_CHECKING:
    from pathlib import Path

NAMES = sorted({rule.name for rule in RULES})


def test_the_page_is_the_docstrings(root: Path) -> None:
    page = root / "docs" / "checks.md"
    assert page.read_text(encoding="utf-8") == text_of(), "python -m matrix.cli.rules_page --write"


def test_a_stale_page_is_told_and_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "checks.md"
    page.write_text(text_of().replace("recipe-image", "recipe-picture"), encoding="utf-8")
    assert run(rules_page, [str(page)], prog="x") == 1
    out, err = capsys.readouterr()
    assert "+### `recipe-image`" in out
    assert err == f"{page} is stale; mend it with python -m matrix.cli.rules_page --write {page}\n"
    assert run(rules_page, ["--write", str(page)], prog="x") == 0
    assert page.read_text(encoding="utf-8") == text_of()
    assert run(rules_page, ["--check", str(page)], prog="x") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["checks.md"]


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_says_what_why_and_how_to_mend_it(name: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", name)
    for rule in (rule for rule in RULES if rule.name == name):
        first = rule.text.split("\n\n")[0]
        assert first.endswith(".")
        assert "golden.md" in rule.text or ("\nWhy: " in rule.text and "\nFix: " in rule.text)


def test_a_name_is_one_rule() -> None:
    subjects = {name: sorted(rule.subject.__name__ for rule in RULES if rule.name == name) for name in NAMES}
    twice = {name: found for name, found in subjects.items() if len(found) > 1}
    assert all(name.startswith("golden-") and found == ["Case", "Space"] for name, found in twice.items())


def test_every_module_of_checks_with_rules_is_a_family() -> None:
    titles = [title for title, _ in BY_FAMILY]
    assert len(set(titles)) == len(titles) == len(FAMILIES) + 1
    assert all(rules for _, rules in BY_FAMILY)


def test_entries_waive_what_is_about_entries() -> None:
    for rule in RULES:
        if rule.subject in (Case, RecipeView):
            assert WAIVABLE[rule.name]
        else:
            assert rule.subject is Space


def test_the_golden_rules_are_those_of_the_golden_page(root: Path) -> None:
    page = (root / "docs" / "golden.md").read_text(encoding="utf-8")
    known = {name for name in NAMES if name.startswith("golden-")}
    assert known == set(re.findall(r"`(golden-[a-z-]+)`", page))
