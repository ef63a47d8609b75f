"""What a site has or answers in a situation, and the calls that meet it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from matrix.forge import Artifact, Permission
from tests.github.server import (
    SECONDARY,
    Reply,
    Site,
    error,
    zipped,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from matrix.github import GitHub


def labels(github: GitHub) -> int:
    return len(github.labels(77))


def post(github: GitHub) -> str:
    return github.post(77, "text").body


def planted(*replies: Reply | Callable[[Site], Reply], at: str = "") -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.labels += ["one", "two"]
        site.plant(at, *replies)

    return plant


def page(following: str) -> Reply:
    return Reply(200, [], {"Link": f'<{following}>; rel="next"'})


def moved(to: str) -> Callable[[Site], Reply]:
    return lambda site: Reply(301, {"message": "Moved"}, {"Location": to.format(port=site.port)})


def files(count: int, told: int | None = None) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.files += [f"docs/{number}.md" for number in range(count)]
        site.changed_files = told

    return plant


def changed(github: GitHub) -> tuple[int, bool]:
    found = github.changed_files(github.pull(77))
    return len(found.paths), found.complete


def renamed(site: Site) -> None:
    site.files += [("old.yaml", "new.yaml"), "other"]


def pushed_between_pages(site: Site) -> None:
    """The 101st file moved to the 100th place, so that it is listed twice and another one never."""
    files(150)(site)

    def shift(site: Site) -> None:
        site.files[:] = ["docs/new.md", *site.files[:-1]]

    site.plant(r"files\?.*page=2", shift)


def limited_page(site: Site) -> None:
    with_labels(150)(site)
    site.plant("page=2", error(403, SECONDARY))


def failing_page(site: Site) -> None:
    files(150)(site)
    site.plant("page=2", Reply(502))


def with_labels(count: int) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.labels += [f"l{number}" for number in range(count)]

    return plant


def history(
    *events: tuple[str, str | None, str], padding: int = 0, times: tuple[int, ...] = ()
) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.events += [("mentioned", "bob", "")] * padding
        site.events += events
        site.event_times = times

    return plant


def sweep_label(github: GitHub) -> tuple[str, str | None] | None:
    found = {one.label.lower(): (one.label, one.by) for one in github.labellings(77)}
    return found.get("full-sweep-enabled")


def people(**roles: tuple[str, str]) -> Callable[[Site], None]:
    return lambda site: site.people.update(roles)


def may(login: str) -> Callable[[GitHub], Permission]:
    return lambda github: github.permission(login)


def sweeps(site: Site) -> None:
    site.add_run(1, "a" * 40, head_branch="another")
    site.add_run(2, "c" * 40, event="workflow_dispatch")
    for number in range(10, 268):
        site.add_run(number, "c" * 40, None if number == 267 else "success")
    site.add_run(300, "c" * 40, path=".github/workflows/ci.yml")


def runs(github: GitHub) -> tuple[int, int]:
    found = github.runs("run-sweep.yml", "feature")
    return len(found), found[0].id


def artifacts(site: Site) -> None:
    site.add_artifact(5, "plan", **{"plan.json": "{}"})
    site.add_artifact(5, "old", x="y")
    site.expired.add("old")


def listed(github: GitHub) -> list[tuple[str, bool]]:
    return [(one.name, one.expired) for one in github.artifacts(5)]


def plan_file(github: GitHub) -> bool:
    [found] = [one for one in github.artifacts(5) if one.name == "plan"]
    return github.download(found) == zipped({"plan.json": "{}"})


def saved(github: GitHub) -> bool:
    [found] = [one for one in github.artifacts(5) if one.name == "plan"]
    with TemporaryDirectory() as folder:
        path = Path(folder, "plan.zip")
        github.save(found, path)
        return path.read_bytes() == zipped({"plan.json": "{}"})


def old_file(github: GitHub) -> bytes:
    [found] = [one for one in github.artifacts(5) if one.name == "old"]
    return github.download(found)


def stored(*replies: Reply, at: str) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        artifacts(site)
        site.plant(at, *replies)

    return plant


def huge(github: GitHub) -> bytes:
    return github.download(Artifact(5000, "plan", 10**9, expired=False))


def no_comment(github: GitHub) -> Any:
    return github.edit(1, "text")


def deleted_twice(github: GitHub) -> None:
    number = github.post(77, "text").id
    github.delete(number)
    github.delete(number)


def crowded(site: Site) -> None:
    for number in range(101):
        site.comment("ada", str(number))
    site.comment(None, "by a deleted account")


def last_comment(github: GitHub) -> tuple[int, str, str | None]:
    found = list(github.comments(77))
    return len(found), found[-1].body, found[-1].author
