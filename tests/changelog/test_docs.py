"""docs/changelog.md: its commands run, section by section, and it names every rule there is."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.changelog.support import BASE, HISTORY, ROOT, Repository, entry, log
from tests.plan.support import commit, single

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE: Final = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
MINE: Final = entry("dsv4-fp4-mi355x-atom-disagg", "Raise the decode batch to 512.", "XXX")
FIRST, SECOND, THIRD = HISTORY


def sections() -> dict[str, list[str]]:
    """The commands under each heading."""
    found = {}
    for part in PAGE.split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if lines := [line for block in blocks for line in block.splitlines()]:
            found[title] = lines
    return found


def branch(scratch: Repository) -> None:
    scratch.commit(log(*HISTORY, MINE))
    scratch.write(BASE, "old.yaml")


def unmended(scratch: Repository) -> None:
    scratch.commit(log(FIRST, MINE, SECOND, THIRD) + b"\n")


def behind(scratch: Repository) -> None:
    scratch.commit(log(*HISTORY, MINE))
    scratch.git("switch", "--quiet", "main")
    scratch.commit(log(*HISTORY, entry("later", link=70)))
    scratch.git("switch", "--quiet", "feature")


def corrected(scratch: Repository) -> None:
    scratch.commit(BASE.replace(b"pull/12", b"pull/14"))


def reverted(scratch: Repository) -> None:
    scratch.write(log(FIRST, SECOND))


def configured(scratch: Repository) -> None:
    scratch.git("switch", "--quiet", "main")
    commit(scratch, single("dsv4-fp4-mi355x-atom-disagg"))
    scratch.git("switch", "--quiet", "feature")
    scratch.git("merge", "--quiet", "main")
    commit(scratch, single("dsv4-fp4-mi355x-atom-disagg", "[4, 512]"), log(*HISTORY, MINE))


SITUATIONS: Final[dict[str, Callable[[Repository], None]]] = {
    "Check it": branch,
    "See what it runs": configured,
    "Let it be mended": unmended,
    "The branch is behind, or two branches appended": behind,
    "Correct a link in history": corrected,
    "Revert a change": reverted,
    "In a workflow": branch,
}


def test_every_section_with_commands_is_run() -> None:
    assert sections().keys() == SITUATIONS.keys()


@pytest.mark.parametrize("title", SITUATIONS)
def test_commands(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = Repository(tmp_path / "scratch")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in {"matrix": "", "validate_perf_changelog": " changelog check"}.items():
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m matrix{words} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    scratch.commit(BASE)
    scratch.git("switch", "--quiet", "--create", "feature")
    SITUATIONS[title](scratch)
    for line in sections()[title]:
        if line.startswith("git merge") and "exits" in line:
            # The page speaks of a clone that never had the driver.
            scratch.git("reset", "--quiet", "--hard", "HEAD~1")
            scratch.git("config", "--remove-section", "merge.perf-changelog")
        scratch.run("sh", "-c", line, status=1 if "# exits 1" in line else 0)
        if "install-merge-driver" in line:
            scratch.commit(message="attributes")


def test_the_example_is_an_entry() -> None:
    example = PAGE.split("```yaml\n", 1)[1].split("```", 1)[0]
    assert example.rstrip("\n") == MINE


def test_every_rule_is_in_the_table() -> None:
    table = set(re.findall(r"`((?:changelog|git)-[a-z*-]+)`", PAGE))
    sources = [*(ROOT / "matrix" / "changelog").glob("*.py"), *(ROOT / "matrix" / "plan").glob("*.py")]
    sources.append(ROOT / "matrix" / "checks" / "changelog.py")
    rules = {
        rule for path in sources for rule in re.findall(r'"(changelog-[a-z-]+)"', path.read_text(encoding="utf-8"))
    }
    assert rules <= table
    assert {rule for rule in table if not rule.endswith("*")} <= rules


def test_the_hook_looks_at_the_log_alone() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"^  files: (.*)$", text, re.MULTILINE)
    assert re.search(pattern, "perf-changelog.yaml")
    assert re.search(pattern, "deep/perf-changelog.yaml")
    assert not re.search(pattern, "my-perf-changelog.yaml.orig")
    assert not re.search(pattern, "configs/amd-master.yaml")
