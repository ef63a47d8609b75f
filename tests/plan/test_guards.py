"""What a change does to the bounds of its own sweep: budgets and rights at two commits of a real repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matrix.plan.guards import loosened
from matrix.plan.history import History
from tests.changelog.support import Repository

if TYPE_CHECKING:
    from pathlib import Path

LABELS = """\
version: 1
skip-word: "[skip-sweep]"
primary:
  full: {meaning: m, canary: true, fail-fast: true, trim: false, set-by: %s}
  small: {meaning: m, canary: false, fail-fast: true, trim: true, set-by: %s}
modifiers:
  dear: {meaning: m, effect: over-budget, set-by: %s}
"""


def settings(budget: str, more: str = "") -> str:
    return f"[tool.matrix]\n{f'budget-gpu-hours = {budget}' if budget else ''}\n{more}\n"


def told(folder: Path, before: dict[str, str], after: dict[str, str], root: str = "") -> list[tuple[str, str, str]]:
    repository = Repository(folder)
    commits = []
    for files in (before, after):
        for path in repository.folder.rglob("*.*"):
            if ".git" not in path.parts and path.is_file():
                path.unlink()
        for name, text in files.items():
            repository.write(text.encode(), name)
        commits.append(repository.commit())
    with History(str(folder)) as history:
        found = list(loosened(history, history.revision(commits[0]), history.revision(commits[1]), root))
    assert {(one.rule, one.severity.value) for one in found} <= {("sweep-bounds", "warning")}
    return [(str(one.span), one.message.partition(";")[0].partition(",")[0], one.fix) for one in found]


REVIEW = "see that whoever reviews it wants that"


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("500", "5000", "this change raises budget-gpu-hours from 500 to 5"),
        ("500", "500.5", "this change raises budget-gpu-hours from 500 to 500.5"),
        ("500", "", "this change takes away budget-gpu-hours"),
        ("500", "500", None),
        ("500", "500.0", None),
        ("500", "400", None),
        ("", "400", None),
        ("", "", None),
        ("'much'", "400", None),
        ("400", "'much'", None),
    ],
)
def test_budget(before: str, after: str, wanted: str | None, tmp_path: Path) -> None:
    found = told(tmp_path, {"pyproject.toml": settings(before)}, {"pyproject.toml": settings(after)})
    assert found == ([("pyproject.toml", wanted, REVIEW)] if wanted else [])


def test_a_pyproject_that_goes(tmp_path: Path) -> None:
    found = told(tmp_path, {"pyproject.toml": settings("7")}, {"other.toml": ""})
    assert [message for _, message, _ in found] == ["this change takes away budget-gpu-hours"]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (("maintain", "maintain", "admin"), ("maintain", "write", "admin"), "write permission start a sweep"),
        (("write", "maintain", "admin"), ("write", "write", "admin"), None),
        (("write", "write", "maintain"), ("write", "write", "write"), "write permission let a sweep take more than"),
        (("write", "write", "maintain"), ("write", "write", "admin"), None),
    ],
)
def test_rights(before: tuple[str, str, str], after: tuple[str, str, str], wanted: str | None, tmp_path: Path) -> None:
    name = "configs/labels.yaml"
    found = told(tmp_path, {name: LABELS % before}, {name: LABELS % after})
    assert len(found) == (wanted is not None)
    for place, message, _ in found:
        assert place == name
        assert wanted is not None
        assert wanted in message


def test_another_label_of_the_same_effect(tmp_path: Path) -> None:
    name = "configs/labels.yaml"
    before = LABELS % ("write", "write", "maintain")
    more = before + "  cheap: {meaning: m, effect: over-budget, set-by: write}\n"
    [(_, message, _)] = told(tmp_path, {name: before}, {name: more})
    assert message == "this change lets write permission let a sweep take more than the budget"


def test_settings_that_are_no_file(tmp_path: Path) -> None:
    assert told(tmp_path, {"pyproject.toml/x.toml": ""}, {"y.toml": settings("7")}) == []


def test_labels_under_another_name_in_a_folder(tmp_path: Path) -> None:
    texts = [LABELS % ("write", "write", right) for right in ("admin", "write")]
    before = {"lab/pyproject.toml": settings("7"), "lab/configs/labels.yaml": texts[0]}
    after = {"lab/pyproject.toml": settings("8", 'labels = "../new.yaml"'), "new.yaml": texts[1]}
    assert [place for place, _, _ in told(tmp_path, before, after, "lab")] == ["lab/pyproject.toml", "new.yaml"]


@pytest.mark.parametrize("broken", [": [", "version: 2\n", "[]"])
def test_labels_that_cannot_be_read_are_told_elsewhere(broken: str, tmp_path: Path) -> None:
    good = LABELS % ("write", "write", "admin")
    assert told(tmp_path / "a", {"configs/labels.yaml": broken}, {"configs/labels.yaml": good}) == []
    assert told(tmp_path / "b", {"configs/labels.yaml": good}, {"configs/labels.yaml": broken}) == []
