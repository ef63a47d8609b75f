"""An earlier sweep that stands in for this one: who may ask, which run it is, and which points it covers."""

from __future__ import annotations

import json
from errno import ENOSPC
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zipfile import ZIP_BZIP2, ZipFile

import pytest

from matrix.errors import RefusedError
from matrix.plan.approval import Asking
from matrix.plan.reuse import Request, Reuse, find_request, find_reuse, reuse_of
from tests.github.events import registry
from tests.github.server import Reply, Site, error, zipped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matrix.github import GitHub

WORKFLOW: Final = "run-sweep.yml"
OLD, PUSHED, HEAD = "a" * 40, "b" * 40, "c" * 40
ROWS: Final[list[Any]] = [{"id": "x--c1", "digest": "d1"}, {"id": "x--c2", "digest": "d2"}]


def plan(label: str = "full-sweep-enabled", rows: list[Any] = ROWS, **changed: Any) -> str:
    found = registry().find(label)
    mode = {"label": label, "trim": getattr(found, "trim", False), "evals_only": False, **changed}
    return json.dumps({"version": 1, "decision": "run", "mode": mode, "points": rows})


def swept(site: Site, run: int, sha: str, text: str = "", *, conclusion: str | None = "success") -> None:
    """A run with its plan and the results of both points."""
    site.add_run(run, sha, conclusion)
    site.add_artifact(run, "plan", **{"plan.json": text or plan()})
    for row in ROWS:
        result(site, run, row["id"], row["digest"])


def result(site: Site, run: int, name: str, digest: str, *, success: object = True) -> None:
    """What the job of a point left."""
    summary = json.dumps({"id": name, "digest": digest, "success": success})
    site.add_artifact(run, f"result-{name}", **{f"{name}/summary.json": summary, f"{name}/receipt.json": "{}"})


def asked(github: GitHub) -> Reuse | None:
    """What `matrix plan` asks, from the comments on."""
    asking = Asking(github, str)
    request = find_request(github.comments(77), asking)
    if request is None:
        return None
    return find_reuse(request, ROWS, 77, forge=github, registry=registry(), workflow=WORKFLOW)


# -- the seven situations of the failure stories

STORIES: Final = {
    "ok": 1001,
    "orphan_commit": "pin the run id: /reuse-sweep-run 1001",
    "pinned_orphan": 1001,
    "trimmed_source": "only a full sweep can be reused or replaced. fix: set .* or delete the comment",
    "not_a_member": None,
    "quoted_in_text": None,
    "no_full_label": "no label asks for a full sweep",
}


@pytest.mark.parametrize("name", STORIES)
def test_story(name: str, shared: Path, site: Site, github: GitHub) -> None:
    case = json.loads((shared / "cases" / "C63" / "cases.json").read_text(encoding="utf-8"))[name]
    site.head, site.labels, site.commits = case["head_sha"], case["labels"], case["commits"]
    for comment in case["comments"]:
        site.people["ada"] = ("write", "write") if comment["author_association"] == "MEMBER" else ("read", "read")
        site.comment("ada", comment["body"], comment["author_association"])
    for run in case["runs"]:
        swept(site, run["id"], run["head_sha"], plan(run["labels_at_start"][0]), conclusion=run["conclusion"])
    wanted = STORIES[name]
    if isinstance(wanted, str):
        with pytest.raises(RefusedError, match=wanted):
            asked(github)
    else:
        found = asked(github)
        assert (found.run_id if found else None) == wanted


def test_all_stories_are_told(shared: Path) -> None:
    assert json.loads((shared / "cases" / "C63" / "cases.json").read_text(encoding="utf-8")).keys() == STORIES.keys()


# -- runs


def ready(site: Site) -> None:
    site.people["ada"] = ("write", "write")
    site.labels.append("full-sweep-fail-fast")
    site.commits[:] = [PUSHED, HEAD]


def two(site: Site) -> None:
    swept(site, 5, PUSHED)
    swept(site, 6, HEAD)
    site.artifacts[5].clear()


def only_first_result(site: Site) -> None:
    swept(site, 5, PUSHED)
    site.artifacts[5].pop()


def other_config(site: Site) -> None:
    swept(site, 5, PUSHED, plan(rows=[{"id": "x--c1", "digest": "d1"}, {"id": "x--c2", "digest": "other"}]))


def renamed(site: Site) -> None:
    swept(site, 5, PUSHED, plan(rows=[{"id": "old--c1", "digest": "d1"}]))
    result(site, 5, "old--c1", "d1")


def nothing_same(site: Site) -> None:
    swept(site, 5, PUSHED, plan(rows=[{"id": "x--c1", "digest": "other"}]))


def one_failed(site: Site) -> None:
    swept(site, 5, PUSHED, conclusion="failure")
    site.artifacts[5].pop()
    result(site, 5, "x--c2", "d2", success=False)


def failed_then_repeated(site: Site) -> None:
    one_failed(site)
    result(site, 5, "x--c2", "d2")


def repeated_and_failed(site: Site) -> None:
    swept(site, 5, PUSHED, conclusion="failure")
    result(site, 5, "x--c2", "d2", success=False)


def ran_something_else(site: Site) -> None:
    swept(site, 5, PUSHED, conclusion="failure")
    site.artifacts[5].pop()
    result(site, 5, "x--c2", "drifted")


def odd_summaries(site: Site) -> None:
    swept(site, 5, PUSHED, conclusion="failure")
    site.artifacts[5][1:] = [("result-x--c1", b"PK?"), ("result-x--c2", zipped({"x--c2/summary.json": "[1]"}))]


def success_in_words(site: Site) -> None:
    swept(site, 5, PUSHED, conclusion="cancelled")
    site.artifacts[5].pop()
    result(site, 5, "x--c2", "d2", success="true")


def expired_results(site: Site) -> None:
    swept(site, 5, PUSHED)
    site.expired.update(f"result-{row['id']}" for row in ROWS)


def expired_plan(site: Site) -> None:
    swept(site, 5, PUSHED)
    site.expired.add("plan")


def trimmed_then_full(site: Site) -> None:
    swept(site, 5, PUSHED)
    swept(site, 6, HEAD, plan("sweep-enabled"))


def of_another_workflow(site: Site) -> None:
    swept(site, 5, PUSHED)
    site.runs[0]["path"] = ".github/workflows/ci.yml"


def of_a_fork(site: Site) -> None:
    swept(site, 5, PUSHED)
    site.runs[0]["head_repository"] = {"full_name": "mallory/bench"}


def packed(data: bytes) -> Callable[[Site], object]:
    def change(site: Site) -> None:
        site.add_run(5, PUSHED)
        site.artifacts[5] = [("plan", data)]

    return change


def torn() -> bytes:
    """A zip file whose bzip2 data is broken."""
    data = BytesIO()
    with ZipFile(data, "w", ZIP_BZIP2) as archive:
        archive.writestr("plan.json", plan())
    return data.getvalue().replace(b"BZh9", b"BZx9")


def many_commits(site: Site) -> None:
    site.commits[:] = [f"{number:040x}" for number in range(300)]
    swept(site, 5, site.commits[-1])


def head_of_many(site: Site) -> None:
    many_commits(site)
    site.head = site.commits[-1]


def large(size: int) -> Callable[[Site], object]:
    def change(site: Site) -> None:
        swept(site, 5, PUSHED, conclusion="failure")
        site.sizes["result-x--c2"] = size

    return change


def gone_meanwhile(site: Site) -> None:
    swept(site, 5, PUSHED, conclusion="failure")
    site.plant("artifacts/5001/zip$", error(410, "Artifact has expired"))


class Case(NamedTuple):
    """``wanted``: the reused points, or the text of the refusal."""

    change: Callable[[Site], object]
    run: int | None
    wanted: dict[str, str] | str


BOTH: Final = {"x--c1": "x--c1", "x--c2": "x--c2"}
CASES: Final[dict[str, Case]] = {
    "newest of its own commits": Case(two, None, BOTH),
    "a point without a result runs": Case(only_first_result, None, {"x--c1": "x--c1"}),
    "a point that changed runs": Case(other_config, None, {"x--c1": "x--c1"}),
    "the same job under another id": Case(renamed, None, {"x--c1": "old--c1"}),
    "no point is the same": Case(nothing_same, None, "the result of none of these points"),
    "results expired": Case(expired_results, None, "the result of none of these points"),
    "plan expired": Case(expired_plan, None, "no sweep of this pull request has ended with success"),
    "plan expired, named": Case(expired_plan, 5, "no plan that can be read"),
    "a trimmed one is passed over": Case(trimmed_then_full, None, BOTH),
    "a trimmed one, named": Case(trimmed_then_full, 6, "run 6 was started by sweep-enabled"),
    "accuracy alone": Case(lambda site: swept(site, 5, HEAD, plan(evals_only=True)), 5, "with evals-only, which is"),
    "trimmed alone": Case(lambda site: swept(site, 5, HEAD, plan("sweep-enabled")), None, "is a full sweep: run 5 was"),
    "failed": Case(lambda site: swept(site, 5, PUSHED, conclusion="failure"), None, "has ended with success"),
    "failed, named": Case(lambda site: swept(site, 5, PUSHED, conclusion="failure"), 5, BOTH),
    "failed, and one point with it": Case(one_failed, 5, {"x--c1": "x--c1"}),
    "failed, and repeated with success": Case(failed_then_repeated, 5, BOTH),
    "repeated without success": Case(repeated_and_failed, 5, {"x--c1": "x--c1"}),
    "ran something else than was planned": Case(ran_something_else, 5, {"x--c1": "x--c1"}),
    "success that is no boolean": Case(success_in_words, 5, {"x--c1": "x--c1"}),
    "failed, with summaries that are none": Case(odd_summaries, 5, "the result of none of these points"),
    "failed, with logs of 1 GB": Case(large(1 << 30), 5, BOTH),
    "failed, with more than anybody reads": Case(large(5 << 30), 5, {"x--c1": "x--c1"}),
    "failed, and a result expired since it was listed": Case(gone_meanwhile, 5, {"x--c2": "x--c2"}),
    "still running": Case(lambda site: swept(site, 5, PUSHED, conclusion=None), 5, "has not ended"),
    "no such run": Case(id, 5, "there is no run 5"),
    "none at all": Case(id, None, "has ended with success"),
    "of another workflow": Case(of_another_workflow, 5, "is one of .github/workflows/ci.yml"),
    "of a fork": Case(of_a_fork, 5, "ran the code of mallory/bench"),
    "of a fork with a branch of the same name": Case(of_a_fork, None, "has ended with success"),
    "after a force-push": Case(lambda site: swept(site, 5, OLD), None, "pin the run id: /reuse-sweep-run 5"),
    "behind the commits that are listed": Case(many_commits, None, "only the first 250 commits are listed"),
    "at the head, behind the commits that are listed": Case(head_of_many, None, BOTH),
    "not a zip file": Case(packed(b"PK?"), 5, "no plan that can be read"),
    "a zip file without a plan": Case(packed(zipped({"x": "{}"})), 5, "no plan that can be read"),
    "a plan that cannot be unpacked": Case(packed(torn()), 5, "no plan that can be read"),
    "a plan that is nested without end": Case(
        packed(zipped({"plan.json": "[" * 99_999})), 5, "no plan that can be read"
    ),
    "a plan that is no JSON": Case(packed(zipped({"plan.json": "{"})), 5, "no plan that can be read"),
    "a plan that is a list": Case(packed(zipped({"plan.json": "[]"})), 5, "no plan that can be read"),
    "an id that is a path": Case(
        packed(zipped({"plan.json": plan(rows=[{"id": "../x--c1", "digest": "d1"}])})),
        5, "the result of none of these points",
    ),
    "a plan of odd points": Case(
        packed(zipped({"plan.json": plan(rows=[7, {"digest": ["d1"]}, {"id": 1}])})),
        5, "the result of none of these points",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, site: Site, github: GitHub) -> None:
    ready(site)
    case = CASES[name]
    case.change(site)
    site.comment("ada", "/reuse-sweep-run" if case.run is None else f"/reuse-sweep-run {case.run}")
    if isinstance(case.wanted, str):
        with pytest.raises(RefusedError) as caught:
            asked(github)
        [finding] = caught.value.findings
        assert case.wanted in str(finding)
        assert finding.fix
    else:
        found = asked(github)
        assert found is not None
        assert found.points == case.wanted


def test_what_the_plan_keeps(site: Site, github: GitHub) -> None:
    ready(site)
    swept(site, 5, PUSHED)
    site.runs[0]["run_attempt"] = 3
    comment = site.comment("ada", "/reuse-sweep-run")
    found = asked(github)
    assert found is not None
    assert found.record() == {
        "run-id": 5, "attempt": 3, "head-sha": PUSHED, "by": "ada", "comment": comment, "points": BOTH,
        "digests": {"x--c1": "d1", "x--c2": "d2"},
    }  # fmt: skip
    assert len(site.requests) == 9
    assert reuse_of({"reuse": found.record()}) == found


GOOD: Final = Reuse(5, 1, PUSHED, "ada", 9, BOTH, {"x--c1": "d1", "x--c2": "d2"}).record()


@pytest.mark.parametrize(
    "changed",
    [
        {"run-id": "5"}, {"attempt": True}, {"by": None}, {"points": []}, {"points": {"x--c1": "x--c1"}},
        {"digests": {"x--c1": "d1", "x--c2": 2}}, {"points": {"x--c1": "../../c1", "x--c2": "x--c2"}},
        {"runs": []}, {"runs": {"x--c1": "4"}}, {"runs": {"x--c1": True}}, {"runs": {"x--c9": 4}},
        {"points": {"x--c1": "/c1", "x--c2": "x--c2"}}, {"points": {"x--c1": ".", "x--c2": "x--c2"}},
    ],
    ids=str,
)  # fmt: skip
def test_what_a_plan_says_of_a_reuse_is_read_with_care(changed: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match="plan-form"):
        reuse_of({"reuse": GOOD | changed})
    with pytest.raises(RefusedError, match="plan-form"):
        reuse_of({"reuse": 5})
    assert reuse_of({"reuse": None}) is reuse_of({}) is None
    of_two = reuse_of({"reuse": GOOD | {"runs": {"x--c1": 4}}})
    assert of_two is not None
    assert [of_two.run_of(name) for name in BOTH] == [4, 5]
    assert reuse_of({"reuse": of_two.record()}) == of_two


def test_too_many_results_to_ask_one_by_one(site: Site, github: GitHub) -> None:
    ready(site)
    rows = [{"id": f"x--c{number}", "digest": f"d{number}"} for number in range(201)]
    site.add_run(5, PUSHED, "failure")
    site.add_artifact(5, "plan", **{"plan.json": plan(rows=rows)})
    for row in rows:
        result(site, 5, row["id"], row["digest"])
    request = Request(1, "ada", 5)
    with pytest.raises(RefusedError, match="201 results would have to be read one by one"):
        find_reuse(request, rows, 77, forge=github, registry=registry(), workflow=WORKFLOW)
    site.runs[0]["conclusion"] = "success"
    found = find_reuse(request, rows, 77, forge=github, registry=registry(), workflow=WORKFLOW)
    assert len(found.points) == 201


def test_no_room_to_look_into_a_result(site: Site, github: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    ready(site)
    swept(site, 5, PUSHED, conclusion="failure")
    site.comment("ada", "/reuse-sweep-run 5")
    monkeypatch.setattr(github, "save", full)
    with pytest.raises(RefusedError, match=r"reuse-room: .*No space left on device"):
        asked(github)


def test_an_api_that_fails_is_no_answer(site: Site, github: GitHub) -> None:
    ready(site)
    swept(site, 5, PUSHED)
    site.comment("ada", "/reuse-sweep-run")
    site.plant("artifacts", *[Reply(500)] * 9)
    with pytest.raises(RefusedError, match="github-down"):
        asked(github)
    site.planted.clear()
    site.plant("permission", error(403, "Resource not accessible by integration"))
    with pytest.raises(RefusedError, match="github-permission"):
        asked(github)
