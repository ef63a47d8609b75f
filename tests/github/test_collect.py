"""`collect` with a plan that reuses an earlier run: what is fetched, what counts, and what is missing; a real API."""

from __future__ import annotations

import json
from hashlib import sha256
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA

import pytest
from click.testing import CliRunner

from matrix.plan.reuse import Reuse
from runners.cli.main import main
from runners.receipt import Receipt, Step
from tests.github.clock import FakeClock
from tests.github.odd_zips import broken, swollen
from tests.github.server import INTEGRATION, REPOSITORY, Reply, Server, Site, error, zipped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

NOW, REUSED, OTHER = "k--8k1k--tp8--c1", "k--8k1k--tp8--c2", "k--8k1k--tp8--c4"
THEN: Final = "old-k--8k1k--tp8--c2"
"""What the job of REUSED was called in run 1001."""
DIGESTS: Final = {name: sha256(name.encode()).hexdigest() for name in (NOW, REUSED, OTHER)}
FIGURES: Final = {"conc": 2, "successful": 40, "total": 40, "total-tokens-per-second": 1234.5}


def left(name: str, digest: str, **changed: Any) -> dict[str, str]:
    """The files that the job of a point leaves."""
    result = '{"completed": 40}\n'
    content: dict[str, Any] = {
        "step": Step.ENDED,
        "point": {"id": name, "digest": digest},
        "job": {"id": "7", "nodes": "node1"},
        "outcome": {"success": True, "verdict": "passed", "why": "job 7 COMPLETED 0:0"},
        "results": [{"file": "r.json", "bytes": len(result), "sha256": sha256(result.encode()).hexdigest()}],
    }
    receipt = Receipt(**{**content, **changed}).as_json()
    return {
        f"{name}/receipt.json": json.dumps(receipt),
        f"{name}/summary.json": json.dumps({"figures": [FIGURES]}),
        f"{name}/r.json": result,
    }


def kept(site: Site, name: str = THEN, digest: str = DIGESTS[REUSED], **changed: Any) -> None:
    """Run 1001 has the result of a point."""
    site.add_artifact(1001, f"result-{name}", **left(name, digest, **changed))


class World:
    """A results folder where the job of NOW has left its result, and a plan in which run 1001 has that of REUSED."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"
        self.plan = folder / "plan.json"
        self.put(left(NOW, DIGESTS[NOW]))
        self.write({REUSED: THEN})

    def put(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.results / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def write(
        self, reused: dict[str, str], points: tuple[str, ...] = (NOW,), runs: dict[str, int] | None = None
    ) -> None:
        rows = [{"id": name, "runner": "r", "digest": DIGESTS[name]} for name in points]
        reuse = Reuse(1001, 1, "a" * 40, "ada", 9, reused, {name: DIGESTS[name] for name in reused}, runs or {})
        self.plan.write_text(json.dumps({"version": 1, "points": rows, "reuse": reuse.record()}), encoding="utf-8")

    def collect(self, *more: str, form: str = "json", repository: str | None = REPOSITORY) -> Result:
        words = ["collect", str(self.results), "--plan", str(self.plan), "--format", form, *more]
        return CliRunner().invoke(main, words, env={"GITHUB_REPOSITORY": repository})


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> World:
    monkeypatch.setenv("GITHUB_API_URL", server.url)
    monkeypatch.setenv("GITHUB_TOKEN", "t0ken")
    monkeypatch.setattr("matrix.retry.SystemClock.sleep", lambda *_: None)
    return World(tmp_path)


def rows(done: Result) -> dict[str, tuple[str, int | None]]:
    """By id: how it ended, and the run that it is reused from."""
    found = json.loads(done.stdout)
    return {one["id"]: (one["end"], one["reused"] and one["reused"]["run-id"]) for one in found}


def test_every_point_of_the_plan_is_there_and_says_where_it_is_from(world: World, site: Site) -> None:
    kept(site)
    record = world.folder / "all.json"
    done = world.collect("--json", str(record))
    assert done.exit_code == 0, done.stderr
    assert rows(done) == {NOW: ("success", None), REUSED: ("success", 1001)}
    reused = json.loads(done.stdout)[1]
    assert reused["digest"] == DIGESTS[REUSED]
    assert reused["reused"] == {"run-id": 1001, "id": THEN}
    assert reused["figures"] == [FIGURES]
    assert json.loads(record.read_text(encoding="utf-8")) == json.loads(done.stdout)
    assert (world.results / "reused-1001" / THEN / "r.json").is_file()
    # The list of artifacts, the address of one, the one.
    assert len(site.requests) == 3
    assert site.store_tokens == {None}
    shown = world.collect(form="markdown")
    assert shown.stdout.startswith("2 of 2 points succeeded, 1 is reused from run 1001.\n")
    assert f"| {REUSED} | success | run 1001 | 7     |" in shown.stdout
    assert f"| {NOW} | success | now      | 7     |" in shown.stdout
    # What is here is not fetched again.
    assert len(site.requests) == 3


class Situation(NamedTuple):
    """What the site has, what the message says, and how many requests it takes."""

    plant: Callable[[Site], object]
    says: str
    requests: int
    rule: str = "collect-missing"


def nothing(site: Site) -> None:
    site.add_run(1001, "a" * 40)


def expired(site: Site) -> None:
    kept(site)
    site.expired.add(f"result-{THEN}")


def gone_meanwhile(site: Site) -> None:
    kept(site)
    site.plant("zip$", error(410, "Artifact has expired"))


def of_other_code(site: Site) -> None:
    kept(site, digest=DIGESTS[OTHER])


def of_another_point(site: Site) -> None:
    files = left(stranger := "k--8k1k--tp8--c9", DIGESTS[REUSED])
    site.add_artifact(1001, f"result-{THEN}", **{name.replace(stranger, THEN): one for name, one in files.items()})


def failed(site: Site) -> None:
    kept(site, outcome={"success": False, "verdict": "failed", "why": "job 7 FAILED 3:0"})


def unfinished(site: Site) -> None:
    kept(site, step=Step.SUBMITTED, outcome={})


def repeated_and_failed(site: Site) -> None:
    kept(site)
    failed(site)


def forged(site: Site) -> None:
    files = left(THEN, DIGESTS[REUSED])
    site.add_artifact(1001, f"result-{THEN}", **{**files, f"{THEN}/r.json": '{"completed": 41}\n'})


def file_lost(site: Site) -> None:
    files = left(THEN, DIGESTS[REUSED])
    del files[f"{THEN}/r.json"]
    site.add_artifact(1001, f"result-{THEN}", **files)


def packed(data: bytes) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.artifacts[1001] = [(f"result-{THEN}", data)]

    return plant


def down(site: Site) -> None:
    kept(site)
    site.plant("artifacts", *[Reply(503)] * 9)


def store_down(site: Site) -> None:
    kept(site)
    site.plant("^GET /store", *[Reply(500)] * 9)


def half(site: Site) -> None:
    kept(site)
    site.plant("^GET /store", *[Reply(200, b"PK", {"Content-Length": "999"})] * 9)


def no_rights(site: Site) -> None:
    kept(site)
    site.plant("artifacts", error(403, INTEGRATION))


def half_once(site: Site) -> None:
    kept(site)
    site.plant("^GET /store", Reply(200, b"PK", {"Content-Length": "999"}))


def listing(results: Any) -> bytes:
    """A good result whose receipt lists these files."""
    return zipped(left(THEN, DIGESTS[REUSED], results=results))


RECEIPT: Final = left(THEN, DIGESTS[REUSED])[f"{THEN}/receipt.json"]
SITUATIONS: Final = {
    "no artifact": Situation(nothing, "run 1001 has no result of it", 1),
    "expired": Situation(expired, "run 1001 had its result, which has expired", 1),
    "expired since it was listed": Situation(gone_meanwhile, "run 1001 had its result, which is gone", 2),
    "another digest": Situation(of_other_code, f"its digest is {DIGESTS[OTHER][:12]}, not {DIGESTS[REUSED][:12]}", 3),
    "the receipt of another point": Situation(of_another_point, f"receipt is of k--8k1k--tp8--c9, not of {THEN}", 3),
    "a failure": Situation(failed, "it did not succeed there: job 7 FAILED 3:0", 3),
    "a job without an end": Situation(unfinished, "it did not succeed there: submitted", 3),
    "repeated, and failed then": Situation(repeated_and_failed, "it did not succeed there", 3),
    "a file that was changed": Situation(forged, "r.json: this file is not the one that the receipt names", 3),
    "a file that is not there": Situation(file_lost, "the receipt names this file, and it is not here", 3),
    "no zip file": Situation(packed(b"PK?"), "no whole zip file", 3),
    "half of a zip file": Situation(packed(zipped({f"{THEN}/receipt.json": RECEIPT})[:200]), "no whole zip file", 3),
    "a zip file whose bzip2 is broken": Situation(packed(broken(ZIP_BZIP2, THEN)), "no whole zip file", 3),
    "a zip file whose lzma is broken": Situation(packed(broken(ZIP_LZMA, THEN)), "no whole zip file", 3),
    "a zip file whose deflate is broken": Situation(packed(broken(ZIP_DEFLATED, THEN)), "no whole zip file", 3),
    "an empty zip file": Situation(packed(zipped({})), "a result of it without a receipt", 3),
    "the folder of another": Situation(packed(zipped({"x/receipt.json": RECEIPT})), "without a receipt", 3),
    "a way out of the folder": Situation(
        packed(zipped({f"{THEN}/receipt.json": RECEIPT, f"{THEN}/../../../x": "y"})), "outside of its folder", 3
    ),
    "a file that is a folder too": Situation(
        packed(zipped({f"{THEN}/a": "x", f"{THEN}/a/b": "y", f"{THEN}/receipt.json": RECEIPT})), "cannot be unpacked", 3
    ),
    "a file with an endless name": Situation(
        packed(zipped({f"{THEN}/{'x' * 300}": "x", f"{THEN}/receipt.json": RECEIPT})), "cannot be unpacked", 3
    ),
    "an endless path": Situation(
        packed(zipped({f"{THEN}/{'x/' * 4000}y": "x", f"{THEN}/receipt.json": RECEIPT})), "cannot be unpacked", 3
    ),
    "a file that fills any disk": Situation(packed(swollen(THEN)), "is too large", 3),
    "a receipt of files that are no files": Situation(
        packed(listing([{"file": 7, "sha256": "a" * 64}])), "cannot be read", 3
    ),
    "a receipt of a file without a sum": Situation(packed(listing([{"file": "r.json"}])), "cannot be read", 3),
    "a receipt of files in no list": Situation(packed(listing({"r.json": "a"})), "cannot be read", 3),
    "a receipt of a file elsewhere": Situation(
        packed(listing([{"file": "/etc/hostname", "bytes": 1, "sha256": "a" * 64}])), "cannot be read", 3
    ),
    "a receipt of a name that no file has": Situation(
        packed(listing([{"file": "a\0b", "bytes": 1, "sha256": "a" * 64}])), "cannot be read", 3
    ),
    "a receipt of a name that no letters make": Situation(
        packed(listing([{"file": "a\ud800b", "bytes": 1, "sha256": "a" * 64}])), "cannot be read", 3
    ),
    "a receipt of a folder": Situation(
        packed(listing([{"file": "..", "bytes": 1, "sha256": "a" * 64}])), "cannot be read", 3
    ),
    "a receipt that is none": Situation(packed(zipped({f"{THEN}/receipt.json": "[]"})), "this is no receipt", 3),
    "down": Situation(down, "its result is in run 1001, and GitHub did not give it", 6, "github-down"),
    "the store is down": Situation(store_down, "GitHub did not give it", 8, "github-down"),
    "the store ends half way, always": Situation(half, "GitHub did not give it", 8, "github-down"),
    "a token without rights": Situation(no_rights, "GitHub did not give it", 1, "github-permission"),
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_cannot_be_proven_is_missing(name: str, world: World, site: Site) -> None:
    situation = SITUATIONS[name]
    situation.plant(site)
    done = world.collect()
    assert done.exit_code == 1
    assert rows(done) == {NOW: ("success", None), REUSED: ("missing", 1001)}
    why = json.loads(done.stdout)[1]["why"]
    assert situation.says in why
    assert f"collect-missing: 1 of 2 points counts as missing, {why}: {REUSED}." in done.stderr
    assert f"{situation.rule}: " in done.stderr
    assert len(site.requests) == situation.requests
    assert not (world.folder / "x").exists()
    # Nothing that was begun is left.
    assert list(world.results.rglob(".*")) == []


def test_a_store_that_ends_half_way_is_asked_again(world: World, site: Site) -> None:
    half_once(site)
    assert rows(world.collect()) == {NOW: ("success", None), REUSED: ("success", 1001)}
    assert len(site.requests) == 4


def test_without_a_repository_nothing_is_fetched(world: World, site: Site) -> None:
    kept(site)
    done = world.collect(repository=None)
    assert done.exit_code == 1
    assert rows(done)[REUSED] == ("missing", 1001)
    assert "no repository is named to fetch it from" in done.stderr
    assert site.requests == []


def test_where_everything_is_reused_nothing_has_run(world: World, site: Site) -> None:
    kept(site)
    kept(site, OTHER, DIGESTS[OTHER])
    world.write({REUSED: THEN, OTHER: OTHER}, points=())
    done = world.collect()
    assert done.exit_code == 0
    assert rows(done) == {REUSED: ("success", 1001), OTHER: ("success", 1001)}
    assert len(site.requests) == 5


def of_two_runs(world: World, site: Site) -> None:
    kept(site)
    site.add_artifact(900, f"result-{OTHER}", **left(OTHER, DIGESTS[OTHER]))
    world.write({REUSED: THEN, OTHER: OTHER}, runs={OTHER: 900})


def test_results_of_two_earlier_runs(world: World, site: Site) -> None:
    of_two_runs(world, site)
    done = world.collect()
    assert done.exit_code == 0, done.stderr
    assert rows(done) == {NOW: ("success", None), REUSED: ("success", 1001), OTHER: ("success", 900)}
    assert len(site.requests) == 6
    shown = world.collect(form="markdown").stdout
    assert shown.startswith("3 of 3 points succeeded, 1 is reused from run 1001, 1 is reused from run 900.\n")


def test_what_one_run_is_not_asked_for_the_next_is_not_either(world: World, site: Site) -> None:
    of_two_runs(world, site)
    site.plant("artifacts", error(403, INTEGRATION))
    done = world.collect()
    assert rows(done) == {NOW: ("success", None), REUSED: ("missing", 1001), OTHER: ("missing", 900)}
    assert len(site.requests) == 1
    assert "its result is in run 900, and GitHub did not give it" in done.stderr
    again = world.collect()
    assert rows(again) == {NOW: ("success", None), REUSED: ("success", 1001), OTHER: ("success", 900)}


def test_large_results_may_take_their_time(world: World, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr("matrix.github.SystemClock", lambda: clock)
    kept(site)
    kept(site, OTHER, DIGESTS[OTHER])
    world.write({REUSED: THEN, OTHER: OTHER})

    def slow(minutes: int) -> Callable[[Site], None]:
        def pass_by(_: Site) -> None:
            clock.time += minutes * 60

        return pass_by

    site.plant("^GET /store", slow(20), slow(20))
    done = world.collect()
    assert done.exit_code == 0, done.stderr
    for name in (THEN, OTHER):
        rmtree(world.results / "reused-1001" / name)
    site.plant("^GET /store", slow(51))
    done = world.collect()
    assert rows(done) == {NOW: ("success", None), REUSED: ("success", 1001), OTHER: ("missing", 1001)}
    assert "github-down" in done.stderr
    assert "3000 s have passed" in done.stderr


def test_one_that_cannot_be_had_leaves_the_others(world: World, site: Site) -> None:
    kept(site, OTHER, DIGESTS[OTHER])
    world.write({REUSED: THEN, OTHER: OTHER})
    done = world.collect()
    assert rows(done) == {NOW: ("success", None), REUSED: ("missing", 1001), OTHER: ("success", 1001)}
    assert done.exit_code == 1


def test_after_a_limit_nothing_more_is_asked(world: World, site: Site) -> None:
    names = [f"k--8k1k--tp8--c{conc}" for conc in range(10, 20)]
    for name in names:
        kept(site, name, DIGESTS.setdefault(name, sha256(name.encode()).hexdigest()))
    world.write({name: name for name in names})
    site.plant("zip$", Reply(403, {"message": "API rate limit exceeded"}, {"x-ratelimit-remaining": "0"}))
    site.plant("zip$", *[Reply(403, {"message": "API rate limit exceeded"}, {"x-ratelimit-remaining": "0"})] * 9)
    done = world.collect()
    assert done.exit_code == 1
    assert [end for end, _ in rows(done).values()] == ["success"] + ["missing"] * 10
    assert "github-limit: " in done.stderr
    assert len([line for line in site.requests if line.endswith("zip")]) <= 6
    assert "10 of 11 points count as missing" in done.stderr
