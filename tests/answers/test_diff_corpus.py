"""`diff` over real revisions of InferenceX's masters, as commits of a real repository, against their recorded rows."""

from __future__ import annotations

import gc
import gzip
import json
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from matrix.answers.diff import Kind, difference
from matrix.answers.side import Side, open_side, open_sides
from matrix.cli.diff import diff as command
from matrix.cli.main import run
from matrix.errors import RefusedError
from tests.changelog.support import Repository
from tests.parity.model import EVAL_FIELDS, fields
from tests.parity.replay import recorded, without_ours
from tests.parity.test_aug import NEWER, with_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matrix.answers.diff import Diff
    from tests.parity.model import Row

READABLE: Final = 13
"""Of the 25 commits that many, at least, are of a form that is read; the older ones are refused."""


class Corpus(NamedTuple):
    """Every commit of the corpus that has its files, oldest first, with the rows that InferenceX recorded of it."""

    repository: Repository
    commits: dict[str, dict[str, Any]]
    sides: dict[str, Side]
    refused: dict[str, RefusedError]
    folder: Path

    def theirs(self, name: str) -> Counter[str] | None:
        """The recorded rows without evals, spelled so that they can be compared."""
        run_ = self.commits[name]["runs"]["no-evals"]
        if not run_.get("ok"):
            return None
        return Counter(spelled(row) for row in recorded(self.folder / "outputs" / f"{run_['output']}.json.gz"))


def spelled(row: Row) -> str:
    return fields(with_settings(without_ours(row)), NEWER | EVAL_FIELDS)


@pytest.fixture(scope="module", autouse=True)
def uncollected() -> Iterator[None]:
    """As the command does: the collector would walk over tens of thousands of points again and again."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="module")
def corpus(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    folder = shared / "parity" / "aug"
    scratch = Repository(tmp_path_factory.mktemp("corpus") / "scratch")
    index = [one for one in json.loads((folder / "index.json").read_text(encoding="utf-8")) if one["inputs"]]
    commits = {}
    for one in index:
        for name, digest in one["inputs"].items():
            data = gzip.decompress((folder / "inputs" / f"{digest}.yaml.gz").read_bytes())
            scratch.write(data, f"configs/{name}.yaml")
        commits[scratch.commit(message=one["commit"])] = one
    sides, refused = {}, {}
    with ExitStack() as stack:
        for commit in commits:
            try:
                sides[commit] = stack.enter_context(open_side(commit, folder=str(scratch.folder)))
            except RefusedError as error:
                refused[commit] = error
        yield Corpus(scratch, commits, sides, refused, folder)


def test_all_commits_are_read_or_refused(corpus: Corpus) -> None:
    assert len(corpus.sides) >= READABLE
    assert len(corpus.sides) + len(corpus.refused) == len(corpus.commits)
    for commit, error in corpus.refused.items():
        assert any(str(finding).startswith(f"{commit[:12]}:configs/") for finding in error.findings)


def test_neighbours_differ_by_the_set_difference_of_their_recorded_rows(corpus: Corpus) -> None:
    compared = 0
    names = list(corpus.commits)
    for one, other in pairwise(names):
        old, new = corpus.theirs(one), corpus.theirs(other)
        if one not in corpus.sides or other not in corpus.sides or old is None or new is None:
            continue
        before, after = corpus.sides[one], corpus.sides[other]
        mine = [change for change in difference(before, after).changes if "--eval" not in change.id]
        come = Counter(spelled(after.row(change.id)) for change in mine if change.kind is not Kind.REMOVED)
        gone = Counter(spelled(before.row(change.was or change.id)) for change in mine if change.kind is not Kind.ADDED)
        # What is in both changed in something that the generator of then did not know: a name, or a node count.
        assert come - gone == new - old, (one, other)
        assert gone - come == old - new, (one, other)
        compared += (new - old).total() + (old - new).total()
    assert compared > 2000


def test_neighbours_differ_by_the_set_difference_of_their_own_rows(corpus: Corpus) -> None:
    names = list(corpus.sides)
    rows = {commit: {name: plain(row) for name, row in side.rows().items()} for commit, side in corpus.sides.items()}
    for one, other in pairwise(names):
        before, after = corpus.sides[one], corpus.sides[other]
        slow = difference(before, after)
        if other in names[-5:]:
            with open_sides(one, other, folder=str(corpus.repository.folder)) as (old, new, unchanged):
                quick = difference(old, new, unchanged)
            assert told(quick) == told(slow), (one, other)
        was, now = rows[one], rows[other]
        renamed = {change.was: change.id for change in slow.changes if change.was}
        assert all(was[old_id] == now[new_id] for old_id, new_id in renamed.items() if is_rename(slow, new_id))
        added = now.keys() - was.keys() - set(renamed.values())
        removed = was.keys() - now.keys() - set(renamed)
        changed = {name for name in was.keys() & now.keys() if was[name] != now[name]}
        assert {change.id for change in slow.changes if change.kind is Kind.ADDED} == added
        assert {change.id for change in slow.changes if change.kind is Kind.REMOVED} == removed
        assert {change.id for change in slow.changes if change.kind is Kind.CHANGED and not change.was} == changed


def told(found: Diff) -> list[tuple[Any, ...]]:
    return [tuple(change) for change in found.changes]


def is_rename(found: Diff, name: str) -> bool:
    return any(change.id == name and change.kind is Kind.RENAMED for change in found.changes)


def plain(row: Row) -> Row:
    """What of a row makes the job: not what it is called, and of a throughput row not whether it is evaluated too."""
    names = {"id", "name", "exp-name", "config-key", "recipe", "recipe-fingerprint", "digest", "run-eval"}
    marks = set() if row.get("eval-only") else {"eval-framework", "eval-suite", "eval-conc", "eval-all-concs"}
    return {key: value for key, value in row.items() if key not in names | marks}


def test_all_commits_pairwise(corpus: Corpus) -> None:
    names = list(corpus.sides)
    for number, one in enumerate(names):
        for other in names[number + 1 :]:
            found = difference(corpus.sides[one], corpus.sides[other])
            jobs = found.old.jobs + found.count(Kind.ADDED) - found.count(Kind.REMOVED)
            assert jobs == found.new.jobs, (one, other)
            hours = sum(change.hours for change in found.changes)
            assert hours == pytest.approx(found.new.gpu_hours - found.old.gpu_hours), (one, other)


def test_the_way_back_is_the_way_there_turned_round(corpus: Corpus) -> None:
    names = list(corpus.sides)
    for one, other in pairwise(names):
        there = difference(corpus.sides[one], corpus.sides[other])
        back = difference(corpus.sides[other], corpus.sides[one])
        assert there.count(Kind.ADDED) == back.count(Kind.REMOVED), (one, other)
        assert there.count(Kind.REMOVED) == back.count(Kind.ADDED), (one, other)
        assert there.count(Kind.CHANGED) == back.count(Kind.CHANGED), (one, other)
        assert there.count(Kind.RENAMED) == back.count(Kind.RENAMED), (one, other)


def test_the_command_over_neighbours(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(corpus.repository.folder)
    names, refused = list(corpus.commits), list(corpus.refused)
    for one, other in (*pairwise(names[-4:]), (refused[-1], names[-1]), (refused[0], refused[-1])):
        status = run(command, [f"{one}..{other}", "--format", "json"], prog="matrix diff")
        out, err = capsys.readouterr()
        if one in corpus.sides and other in corpus.sides:
            assert status == 0
            record = json.loads(out)
            assert record["jobs"] == [len(corpus.sides[one].ids), len(corpus.sides[other].ids)]
        else:
            assert (status, out) == (1, "")
            for commit in {one, other} & corpus.refused.keys():
                assert f"{commit[:12]}:configs/" in err
