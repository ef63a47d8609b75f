"""A sweep that reuses one that has itself reused another: no result is lost on the way, and none is believed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from matrix.errors import RefusedError
from matrix.plan.reuse import Reuse
from tests.github.server import INTEGRATION, error
from tests.github.test_reuse import BOTH, HEAD, OLD, PUSHED, ROWS, asked, plan, ready, result, swept

if TYPE_CHECKING:
    from collections.abc import Callable

    from matrix.github import GitHub
    from tests.github.server import Site

DIGESTS: Final = {"x--c1": "d1", "x--c2": "d2"}


def reusing(run: int, points: dict[str, str], runs: dict[str, int] | None = None) -> dict[str, Any]:
    """What the plan of a run says that it reused."""
    digests = {name: DIGESTS[name] for name in points}
    return Reuse(run, 1, OLD, "ada", 9, points, digests, runs or {}).record()


def second(site: Site, text: str = "", conclusion: str = "success") -> None:
    """Run 6 ran the first point, and had the second one of run 5."""
    site.add_run(6, HEAD, conclusion)
    record = json.loads(plan(rows=ROWS[:1])) | {"reuse": reusing(5, {"x--c2": "x--c2"})}
    site.add_artifact(6, "plan", **{"plan.json": text or json.dumps(record)})
    result(site, 6, "x--c1", "d1")


def usual(site: Site) -> None:
    swept(site, 5, PUSHED)
    second(site)


def orphaned(site: Site) -> None:
    swept(site, 5, OLD)
    second(site)


def everything(site: Site) -> None:
    swept(site, 5, PUSHED)
    site.add_run(6, HEAD)
    record = json.loads(plan(rows=[])) | {"decision": "skip", "reuse": reusing(5, BOTH)}
    site.add_artifact(6, "plan", **{"plan.json": json.dumps(record)})


def thrice(site: Site) -> None:
    usual(site)
    site.add_run(7, HEAD)
    record = json.loads(plan(rows=[])) | {"decision": "skip", "reuse": reusing(6, BOTH, {"x--c2": 5})}
    site.add_artifact(7, "plan", **{"plan.json": json.dumps(record)})


def under_another_id(site: Site) -> None:
    site.add_run(5, PUSHED)
    site.add_artifact(5, "plan", **{"plan.json": plan(rows=[{"id": "old--c2", "digest": "d2"}])})
    result(site, 5, "old--c2", "d2")
    record = json.loads(plan(rows=ROWS[:1])) | {"reuse": reusing(5, {"x--c2": "old--c2"})}
    second(site, json.dumps(record))


def gone(site: Site) -> None:
    second(site)


def expired(site: Site) -> None:
    usual(site)
    site.expired.add("result-x--c2")


def of_a_fork(site: Site) -> None:
    usual(site)
    site.runs[0]["head_repository"] = {"full_name": "mallory/bench"}


def trimmed(site: Site) -> None:
    swept(site, 5, PUSHED, plan("sweep-enabled"))
    second(site)


def another_job(site: Site) -> None:
    swept(site, 5, PUSHED, plan(rows=[{"id": "x--c2", "digest": "other"}]))
    second(site)


def failed_there(site: Site) -> None:
    swept(site, 5, PUSHED, conclusion="failure")
    site.artifacts[5].pop()
    result(site, 5, "x--c2", "d2", success=False)
    second(site)


def nonsense(site: Site) -> None:
    swept(site, 5, PUSHED)
    second(site, json.dumps(json.loads(plan(rows=ROWS[:1])) | {"reuse": {"run-id": "5"}}))


class Case(NamedTuple):
    """``points`` that are reused, ``runs`` of those that are not in the run itself."""

    change: Callable[[Site], object]
    run: int
    points: dict[str, str]
    runs: dict[str, int]


FIRST: Final = {"x--c1": "x--c1"}
CASES: Final[dict[str, Case]] = {
    "what it ran, and what it had from another": Case(usual, 6, BOTH, {"x--c2": 5}),
    "the other one is no commit of the pull request any more": Case(orphaned, 6, BOTH, {"x--c2": 5}),
    "it had everything from another": Case(everything, 6, BOTH, {"x--c1": 5, "x--c2": 5}),
    "over three runs": Case(thrice, 7, BOTH, {"x--c1": 6, "x--c2": 5}),
    "under another id": Case(under_another_id, 6, {"x--c1": "x--c1", "x--c2": "old--c2"}, {"x--c2": 5}),
    "the other one is gone": Case(gone, 6, FIRST, {}),
    "the other one's result has expired": Case(expired, 6, FIRST, {}),
    "the other one is of a fork": Case(of_a_fork, 6, FIRST, {}),
    "the other one is no full sweep": Case(trimmed, 6, FIRST, {}),
    "the other one planned another job": Case(another_job, 6, FIRST, {}),
    "the other one's job failed": Case(failed_there, 6, FIRST, {}),
    "what it says is nonsense": Case(nonsense, 6, FIRST, {}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("named", [False, True])
def test_case(name: str, named: bool, site: Site, github: GitHub) -> None:
    ready(site)
    case = CASES[name]
    case.change(site)
    site.comment("ada", f"/reuse-sweep-run {case.run}" if named else "/reuse-sweep-run")
    found = asked(github)
    assert found is not None
    assert (found.run_id, found.points, found.runs) == (case.run, case.points, case.runs)
    assert found.digests == {point: DIGESTS[point] for point in case.points}


def test_an_api_that_fails_is_no_missing_result(site: Site, github: GitHub) -> None:
    ready(site)
    usual(site)
    site.comment("ada", "/reuse-sweep-run")
    site.plant("runs/5$", error(403, INTEGRATION))
    with pytest.raises(RefusedError, match="github-permission"):
        asked(github)


def test_a_run_by_hand_is_no_full_sweep(site: Site, github: GitHub) -> None:
    ready(site)
    swept(site, 5, PUSHED)
    site.runs[0]["event"] = "workflow_dispatch"
    site.comment("ada", "/reuse-sweep-run 5")
    with pytest.raises(RefusedError, match="reuse-not-full: run 5 ran what somebody selected by hand"):
        asked(github)


@pytest.mark.parametrize(("others", "good"), [(29, True), (30, False)])
def test_runs_that_swept_nothing_hide_no_sweep(others: int, good: bool, site: Site, github: GitHub) -> None:
    ready(site)
    swept(site, 5, PUSHED)
    for number in range(others):
        site.add_run(100 + number, HEAD)
        site.add_artifact(100 + number, "plan", **{"plan.json": json.dumps({"decision": "skip", "mode": None})})
    site.comment("ada", "/reuse-sweep-run")
    if good:
        found = asked(github)
        assert found is not None
        assert found.run_id == 5
    else:
        with pytest.raises(RefusedError, match=r"none of the newest 30 runs .* name the run: /reuse-sweep-run RUN"):
            asked(github)
