"""`Reuse`: an earlier full sweep whose results stand in for points of this one, on the word of somebody who may.

``/reuse-sweep-run`` alone on a line of a comment takes the newest sweep of the pull request's own commits;
``/reuse-sweep-run 1001`` takes that run. What counts is the digest: a point is reused where the earlier run has the
result of the very same job, and runs where it has not. Whatever would make it fail is said when it is asked for.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.errors import RefusedError
from matrix.findings import Finding, Span
from matrix.forge import ForgeError
from matrix.plan.earlier import TooManyError, is_id, read_earlier
from matrix.plan.event import shown
from matrix.plan.labels import Permission, Primary

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from matrix.forge import Comment, Forge, PullRequest, Run
    from matrix.plan.approval import Asking
    from matrix.plan.earlier import Earlier
    from matrix.plan.labels import Registry
    from matrix.plan.plan import Plan

__all__ = [
    "COMMAND",
    "Request",
    "Reuse",
    "find_request",
    "find_reuse",
    "find_source",
    "reuse_of",
    "reused_by",
    "without_reused",
]

COMMAND: Final = "/reuse-sweep-run"
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_HTML: Final = re.compile(r"<(!--|pre\b|code\b|blockquote\b)(?!.*<(?:!--|pre\b|code\b|blockquote\b))", re.IGNORECASE)
"""The last piece of HTML in a line that hides, quotes or shows as code what follows it."""
_COMMAND: Final = re.compile(rf" {{0,3}}{COMMAND}(?!\S)(.*)")
"""Four blanks make code of a line."""
_LISTED_COMMITS: Final = 250
_PULL_REQUEST: Final = "pull_request"
_LOOKED_AT: Final = 30
"""Earlier runs whose plans are read before the search is given up: every push has one, also where nothing sweeps."""


class Request(NamedTuple):
    """Somebody who may asked for it. ``run_id`` is None where no run is named."""

    comment: int
    by: str
    run_id: int | None


class Reuse(NamedTuple):
    """What is reused: ``points`` maps the id of a point to the id that the same job had in the earlier run, ``digests``
    to its digest, by which its result is known again.

    That run may have reused results itself. ``runs`` maps the points whose results are in a run before it to that run.
    """

    run_id: int
    attempt: int
    head_sha: str
    by: str
    comment: int
    points: Mapping[str, str]
    digests: Mapping[str, str]
    runs: Mapping[str, int] = MappingProxyType({})

    def run_of(self, name: str) -> int:
        """The run that has the result of a point."""
        return self.runs.get(name, self.run_id)

    def record(self) -> dict[str, Any]:
        """As ``plan.json`` keeps it."""
        return {
            "run-id": self.run_id,
            "attempt": self.attempt,
            "head-sha": self.head_sha,
            "by": self.by,
            "comment": self.comment,
            "points": dict(self.points),
            "digests": dict(self.digests),
            **({"runs": dict(self.runs)} if self.runs else {}),
        }


def reuse_of(record: Mapping[str, Any], path: str = "plan.json") -> Reuse | None:
    """What the ``plan.json`` at a path says is reused; None where it says nothing.

    Raises:
        RefusedError: it says it in another form than `Reuse.record`.
    """
    found = record.get("reuse")
    if found is None:
        return None
    names: Any = found if isinstance(found, dict) else {}
    points, digests, runs = names.get("points"), names.get("digests"), names.get("runs", {})
    numbers = [names.get(key) for key in ("run-id", "attempt", "comment")]
    texts = [names.get(key) for key in ("head-sha", "by")]
    good = isinstance(points, dict) and isinstance(digests, dict) and points.keys() == digests.keys()
    good = good and isinstance(runs, dict) and runs.keys() <= points.keys()
    if good and all(type(one) is int for one in [*numbers, *runs.values()]):
        texts += digests.values()
        if all(isinstance(one, str) for one in texts) and all(map(is_id, [*points, *points.values()])):
            return Reuse(numbers[0], numbers[1], texts[0], texts[1], numbers[2], points, digests, runs)
    message = "what it says of an earlier run is not as a plan has it."
    fix = "give the plan.json of this run's planning job"
    raise RefusedError([Finding(rule="plan-form", message=message, fix=fix, span=Span(path))])


def find_request(comments: Iterable[Comment], asking: Asking) -> Request | None:
    """The last request of somebody with write permission; everybody else is not heard.

    Raises:
        RefusedError: the last request names no run but something else.
        ForgeError: the forge does not answer.
    """
    asked = [(comment, words) for comment in comments if (words := _command(comment.body)) is not None]
    for comment, words in sorted(asked, key=lambda one: one[0].id, reverse=True):
        held = None if comment.author is None else asking.permission(comment.author)
        if comment.author is None or held is None or not held.covers(Permission.WRITE):
            continue
        if not words:
            return Request(comment.id, comment.author, None)
        if len(words) == 1 and re.fullmatch("[1-9][0-9]{0,17}", words[0]):
            return Request(comment.id, comment.author, int(words[0]))
        message = f"{COMMAND} takes the number of a run or nothing, and {shown(' '.join(words))} follows it."
        raise _refuse(message, "reuse-command", f"write {COMMAND} RUN, alone on its line")
    return None


def _command(body: str) -> list[str] | None:
    """The words behind the last command of a comment; None where there is none.

    Quotes, code, and what GitHub does not show are no commands.
    """
    found, fence, hidden = None, "", ""
    for line in body.splitlines():
        if hidden:
            hidden = "" if hidden in line.casefold() else hidden
        elif fence:
            bare = line.strip()
            if bare.startswith(fence) and not bare.strip(fence[0]):
                fence = ""
        elif opening := _FENCE.match(line):
            fence = opening[1]
        elif (begun := _HTML.search(line)) and "`" not in line:
            end = "-->" if begun[1] == "!--" else f"</{begun[1].casefold()}>"
            hidden = "" if end in line[begun.end() :].casefold() else end
        elif asked := _COMMAND.match(line):
            found = asked[1].split()
    return found


def find_source(
    request: Request, number: int, *, forge: Forge, registry: Registry, workflow: str
) -> tuple[Run, Earlier]:
    """The run that a request means, and what it left behind: known as soon as somebody asks, without a plan.

    Raises:
        RefusedError: there is no such run that could be reused, with the cure.
        ForgeError: the forge does not answer.
    """
    pull = forge.pull(number)
    _full_label(forge.labels(number), registry)
    if request.run_id is None:
        return _newest(pull, forge, workflow)
    return _named(request.run_id, pull, forge, workflow)


def find_reuse(
    request: Request,
    rows: Iterable[Mapping[str, Any]],
    number: int,
    *,
    forge: Forge,
    registry: Registry,
    workflow: str,
) -> Reuse:
    """What a request gives for the points of a plan (``rows``: their id and digest).

    Raises:
        RefusedError: it gives nothing, with the cure.
        ForgeError: the forge does not answer.
    """
    run, plan = find_source(request, number, forge=forge, registry=registry, workflow=workflow)
    wanted = {row["id"]: row["digest"] for row in rows}
    where = _results(run.id, plan, set(wanted.values()), forge)
    if rest := {digest for digest in wanted.values() if digest not in where}:
        for earlier, jobs in _before(plan, rest).items():
            where |= _results_of(earlier, jobs, number, forge, workflow)
    digests = {name: digest for name, digest in wanted.items() if digest in where}
    if not digests:
        message = f"run {run.id} has the result of none of these points: the configs changed, or its results expired."
        raise _refuse(message, "reuse-nothing", f"delete the comment with {COMMAND}, and let the sweep run")
    points = {name: where[digest][1] for name, digest in digests.items()}
    runs = {name: where[digest][0] for name, digest in digests.items() if where[digest][0] != run.id}
    return Reuse(run.id, run.attempt, run.head_sha, request.by, request.comment, points, digests, runs)


def reused_by(plan: Earlier) -> Reuse | None:
    """What an earlier run reused itself; None where its plan says nothing that can be understood."""
    try:
        return reuse_of(plan.record)
    except RefusedError:
        return None


def _results(run_id: int, plan: Earlier, wanted: Container[str], forge: Forge) -> dict[str, tuple[int, str]]:
    """By digest: the run, and the id of the job there, for each wanted job that it has a verified result of."""
    jobs = {digest: name for digest, name in plan.jobs() if digest in wanted}
    return _verified(run_id, plan, jobs, forge)


def _verified(run_id: int, plan: Earlier, jobs: Mapping[str, str], forge: Forge) -> dict[str, tuple[int, str]]:
    try:
        good = plan.verified(jobs, forge)
    except TooManyError as error:
        message = (
            f"run {run_id} did not end with success, and {error.count:,} results would have to be read one by one."
        )
        raise _refuse(message, "reuse-run", "name a run that ended with success") from None
    return {digest: (run_id, jobs[digest]) for digest in good}


def _before(plan: Earlier, wanted: Container[str]) -> dict[int, dict[str, str]]:
    """By run: the wanted jobs, digest to id, whose results an earlier run had from it. A plan names where they are."""
    reused = reused_by(plan)
    found: dict[int, dict[str, str]] = {}
    for name, then in reused.points.items() if reused is not None else ():
        if reused is not None and reused.digests[name] in wanted:
            found.setdefault(reused.run_of(name), {})[reused.digests[name]] = then
    return found


def _results_of(
    run_id: int, jobs: Mapping[str, str], number: int, forge: Forge, workflow: str
) -> dict[str, tuple[int, str]]:
    """Which of these jobs a run before the earlier one has; none where it cannot be reused any more."""
    try:
        _, plan = _named(run_id, forge.pull(number), forge, workflow)
    except ForgeError:
        raise
    except RefusedError:
        return {}
    known = set(plan.jobs())
    return _verified(run_id, plan, {digest: name for digest, name in jobs.items() if (digest, name) in known}, forge)


def without_reused(plan: Plan, reuse: Reuse) -> Plan:
    """The plan of what still has to run; what is reused is left out, with the run that has its result."""
    from matrix.plan.plan import LeftOut

    left_out = [
        LeftOut(name, "reuse", f"run {reuse.run_of(name)} has the result of the same job, {then}")
        for name, then in reuse.points.items()
    ]
    points = tuple(point for point in plan.points if point.id not in reuse.points)
    numbers = sorted({reuse.run_of(name) for name in reuse.points})
    have = f"run {numbers[0]} has" if len(numbers) == 1 else f"runs {', '.join(map(str, numbers))} have"
    reason = plan.reason if points else f"{have} the results of all points"
    return plan._replace(points=points, left_out=(*plan.left_out, *left_out), reason=reason)


def _full_label(labels: Iterable[str], registry: Registry) -> None:
    """Reuse stands in for a full sweep, so a full sweep has to be what the pull request asks for."""
    primaries = [label for name in labels if isinstance(label := registry.find(name), Primary)]
    full = " or ".join(label.name for label in registry.primaries.values() if not label.trim)
    if not primaries:
        message = "no label asks for a full sweep, so there is nothing that an earlier one could stand in for."
        raise _refuse(message, "reuse-label", f"set {full}")
    for label in primaries:
        if label.trim:
            message = f"{label.name} is not a full sweep, and only a full sweep can be reused or replaced."
            raise _refuse(message, "reuse-label", f"set {full} in its place, or delete the comment with {COMMAND}")


def _named(number: int, pull: PullRequest, forge: Forge, workflow: str) -> tuple[Run, Earlier]:
    """A run that somebody named; its commit need not be one of the pull request's any more."""
    run = forge.run(number)
    if run is None:
        message = f"there is no run {number}, or it is older than runs are kept."
        raise _refuse(message, "reuse-run", "name a run by the number in its address")
    if run.workflow.rpartition("/")[2] != workflow:
        message = f"run {number} is one of {run.workflow}, and a sweep is one of {workflow}."
        raise _refuse(message, "reuse-run", "name the run of a sweep")
    if not _own(run, pull):
        message = f"run {number} ran the code of {run.head_repository or 'a fork that is gone'}."
        raise _refuse(message, "reuse-run", "name a run of this repository's own branches")
    if run.conclusion is None:
        message = f"run {number} has not ended."
        raise _refuse(message, "reuse-run", "wait for its end, or name another run")
    plan = read_earlier(run, forge)
    if plan is None:
        message = f"run {number} has no plan that can be read: it expired, or it is from before plans were kept."
        raise _refuse(message, "reuse-run", "name a newer run")
    if run.event != _PULL_REQUEST:
        message = f"run {number} ran what somebody selected by hand, which is not a full sweep."
        raise _refuse(message, "reuse-not-full", "name the run of a full sweep of a pull request")
    if not plan.is_full:
        message = f"run {number} was started by {plan.label}, which is not a full sweep."
        raise _refuse(message, "reuse-not-full", "name the run of a full sweep")
    return run, plan


def _newest(pull: PullRequest, forge: Forge, workflow: str) -> tuple[Run, Earlier]:
    """The newest successful full sweep at one of the pull request's commits."""
    ended = [run for run in forge.runs(workflow, pull.head_ref) if run.conclusion == "success" and _own(run, pull)]
    # Of a long pull request the last commits are not listed.
    commits = {pull.head_sha, *forge.commits(pull.number)} if ended else set[str]()
    orphans = [run for run in ended if run.head_sha not in commits]
    own = [run for run in ended if run.head_sha in commits]
    trimmed = []
    for run in own[:_LOOKED_AT]:
        plan = read_earlier(run, forge)
        if plan is not None and plan.is_full:
            return run, plan
        if plan is not None:
            trimmed.append(f"run {run.id} was started by {plan.label}")
    if len(own) > _LOOKED_AT:
        message = f"none of the newest {_LOOKED_AT} runs of this pull request is a full sweep that can be reused."
        raise _refuse(message, "reuse-run", f"name the run: {COMMAND} RUN")
    if trimmed:
        message = f"no earlier run of this pull request is a full sweep: {', '.join(trimmed)}."
        raise _refuse(message, "reuse-not-full", f"name a full sweep: {COMMAND} RUN")
    if orphans:
        run = orphans[0]
        cut = f"; only the first {_LISTED_COMMITS} commits are listed" if pull.commits > _LISTED_COMMITS else ""
        message = f"run {run.id} ran at {run.head_sha[:12]}, which is no commit of this pull request any more{cut}."
        raise _refuse(message, "reuse-orphan", f"pin the run id: {COMMAND} {run.id}")
    message = "no sweep of this pull request has ended with success."
    raise _refuse(message, "reuse-run", f"wait for one, or name a run: {COMMAND} RUN")


def _own(run: Run, pull: PullRequest) -> bool:
    return run.head_repository is not None and run.head_repository == pull.head_repository


def _refuse(message: str, rule: str, fix: str) -> RefusedError:
    return RefusedError([Finding(rule=rule, message=message, fix=fix)])
