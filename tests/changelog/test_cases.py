"""The public failure stories about logs: one verdict at every door (hook, pull request, merge, fix)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from matrix.changelog.context import Context, Stage
from matrix.changelog.merge import Side, merge
from matrix.changelog.repair import repair
from matrix.changelog.rules import Change, check
from matrix.findings import errors_of
from tests.changelog.support import BASE, HISTORY, Repository, entry, log

if TYPE_CHECKING:
    from pathlib import Path


class Story(NamedTuple):
    """The rules that refuse it (none: accepted), what the report says and never says, and what ``fix`` leaves."""

    rules: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


STORIES = {
    "C14/ok": Story(),
    "C14/base_no_newline": Story(
        ("changelog-newline",), ("base_no_newline.base.yaml:11:", "base file"), ("delet",), ("changelog-newline",)
    ),
    "C14/head_no_newline": Story(("changelog-newline",), ("head_no_newline.head.yaml:17:", "newline"), ("base",)),
    "C16/spaces_sep": Story(("changelog-separator",), (":12:1:", "xactly one empty line")),
    "C16/no_sep": Story(("changelog-separator",), (":12:1:", "xactly one empty line")),
    "C16/two_blank": Story(("changelog-separator",), (":13:1:", "xactly one empty line")),
    "C16/trailing_blank": Story(("changelog-tail",), (":18:1:", "one newline")),
    "C16/crlf": Story(("changelog-cr",), (":12:1:", "LF alone")),
    "C18/delete": Story(("changelog-deleted",), ("append an entry that describes the revert",)),
    "C18/link_fix": Story(),
    "C18/mixed": Story(("changelog-mixed",), ("a pull request of their own",), (), ("changelog-mixed",)),
    "C20/markers": Story(
        ("changelog-conflict-marker",), (":13:1:", "onflict marker"), ("parser", "expected"), ("changelog-link",)
    ),
    "C21/deleted_key": Story(),
    "C21/unknown_and_no_link": Story(("changelog-field",), ("no pr-link",), (), ("changelog-field",)),
    "C24/add_point": Story(),
    "C24/nothing_added": Story(),
}
"""As far as bytes, entries and links go; the keys of C21 and the points of C24 are the plan's business."""


@pytest.fixture(params=STORIES)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def pair(shared: Path, name: str) -> tuple[Path, Path]:
    stem = shared / "cases" / name
    base, head = (stem.with_name(f"{stem.name}.{side}.yaml") for side in ("base", "head"))
    return base, head


def test_the_check(pair: tuple[Path, Path], name: str) -> None:
    context = Context(number=77, base_name=pair[0].name, head_name=pair[1].name)
    findings, verdict = check(pair[0].read_bytes(), pair[1].read_bytes(), context)
    told, text = STORIES[name], "\n".join(map(str, findings))
    assert tuple(finding.rule for finding in findings) == told.rules
    assert (verdict.change is Change.REFUSED) == bool(told.rules)
    for phrase in told.says:
        assert phrase in text
    for phrase in told.never:
        assert phrase not in text.replace(pair[0].stem, "").replace(pair[1].stem, "")
    if name == "C18/link_fix":
        assert (verdict.change, len(verdict.corrections)) == (Change.CORRECTIONS, 1)


def test_every_door_agrees(pair: tuple[Path, Path], name: str, tmp_path: Path) -> None:
    """Pull request, hook (working tree) and two files by the command; the merge by its stage."""
    told = STORIES[name]
    scratch = Repository(tmp_path / "scratch")
    scratch.commit(pair[0].read_bytes())
    scratch.git("switch", "--quiet", "--create", "feature")
    scratch.commit(pair[1].read_bytes())
    command = (sys.executable, "-m", "matrix", "changelog", "check", "--bytes-only", "--pr", "77")
    files = ("--base-file", str(pair[0]), "--head-file", str(pair[1]))
    for door in ((), ("--worktree",), files, ("--merge",)):
        output = scratch.run(*command, *door, status=1 if told.rules else 0)
        assert output.count("changelog-") == len(told.rules), door
        assert "Traceback" not in output


def test_fix_leaves_what_only_people_can_decide(pair: tuple[Path, Path], name: str) -> None:
    context = Context(number=77)
    mended = repair(pair[0].read_bytes(), pair[1].read_bytes(), context)
    assert {finding.rule for finding in errors_of(mended.findings)} == set(STORIES[name].left)
    if not mended.findings and not STORIES[name].rules:
        assert mended.data == pair[1].read_bytes()


def test_the_merge_driver_takes_what_the_check_accepts(pair: tuple[Path, Path]) -> None:
    """An accepted append merges; a refused one is never merged silently."""
    base, head = pair[0].read_bytes(), pair[1].read_bytes()
    other = base + b"\n" + log(entry("other", link=5))
    merged = merge(base, head, other, Side.THEIRS)
    appended = check(base, head, Context(number=77))[1].change is Change.ADDITIONS
    if appended:
        assert merged is not None
        assert check(other, merged, Context(number=77))[1].change is Change.ADDITIONS
    elif merged is not None:
        assert check(other, merged, Context(number=77, stage=Stage.MERGE))[1].change is Change.REFUSED


def test_the_same_stories_without_the_collection() -> None:
    """Their kinds, on logs of our own."""
    new = log(*HISTORY, entry("a"))
    kinds = {
        "changelog-newline": (BASE, new[:-1]),
        "changelog-separator": (BASE, BASE + b"  \n" + log(entry("a"))),
        "changelog-tail": (BASE, new + b"\n"),
        "changelog-cr": (BASE, new.replace(b"Why.", b"Why.\r")),
        "changelog-deleted": (BASE, log(*HISTORY[:2])),
        "changelog-mixed": (BASE, new.replace(b"pull/12", b"pull/14")),
        "changelog-conflict-marker": (BASE, BASE + b"<<<<<<< a\n" + log(entry("a")) + b"=======\n>>>>>>> b\n"),
        "changelog-field": (BASE, log(*HISTORY, entry("a").rsplit("\n", 1)[0])),
    }
    for rule, (base, head) in kinds.items():
        for stage in Stage:
            findings, verdict = check(base, head, Context(number=77, stage=stage))
            assert [finding.rule for finding in findings] == [rule]
            assert verdict.change is Change.REFUSED
