"""`Decision`: whether an event starts a sweep, how, and why. A pure function of the event, the labels and answers."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from matrix.plan.event import Kind, shown
from matrix.plan.labels import Modifier, Permission, Primary, Refused

if TYPE_CHECKING:
    from matrix.plan.event import Event
    from matrix.plan.labels import Mode, Registry

__all__ = ["Action", "Answers", "Approval", "Decision", "concurrency_group", "decide", "supersedes"]

_ENDS: Final = {"closed": "the pull request was closed", "converted_to_draft": "the pull request became a draft"}
_STARTS: Final = ("labeled", "unlabeled", "synchronize", "ready_for_review")
_THE_LABEL: Final = "the label"
_AGAIN: Final = f"set {_THE_LABEL} again"


class Action(StrEnum):
    """What becomes of an event. ``CANCEL`` ends the sweep of this pull request that is under way, and starts none."""

    RUN = "run"
    SKIP = "skip"
    CANCEL = "cancel"
    REFUSE = "refuse"


class Answers(Protocol):
    """What an event file does not tell and somebody has to be asked."""

    def permission(self, login: str) -> Permission | None:
        """What somebody may do in the repository; None where nobody can tell."""

    def subject(self, sha: str) -> str:
        """The first line of a commit's message."""


class Approval(NamedTuple):
    """Who let a sweep run, by which right, and the one commit that it is for."""

    by: str
    permission: Permission
    head_sha: str


class Decision(NamedTuple):
    """The answer. ``mode`` and ``approval`` only where something runs; who may dispatch is for GitHub to say."""

    action: Action
    reason: str
    mode: Mode | None = None
    approval: Approval | None = None


def supersedes(event: Event, registry: Registry) -> bool:
    """Whether the event ends a sweep of its pull request that is under way: a new head, a label of ours, the end.

    The workflow's concurrency group says the same in GitHub's expression language; a test compares the two.
    """
    if event.kind is not Kind.PULL_REQUEST:
        return False
    if event.action in ("labeled", "unlabeled"):
        return isinstance(registry.find(event.label or ""), Primary | Modifier)
    if event.action == "closed":
        return not event.merged
    return event.action in ("synchronize", "ready_for_review", "converted_to_draft")


def concurrency_group(event: Event, registry: Registry, run: str) -> str:
    """The group of the workflow run: the pull request's, or the run's own where it must not end another one."""
    return f"run-sweep-pr-{event.number}" if supersedes(event, registry) else f"run-sweep-run-{run}"


def decide(event: Event, registry: Registry, answers: Answers) -> Decision:
    """The decision on one event."""
    match event.kind:
        case Kind.PUSH:
            return _skip("a push never sweeps; the log is checked as on main")
        case Kind.MERGE_GROUP:
            return _skip("a merge queue never sweeps; the log is checked as on main")
        case Kind.DISPATCH:
            return _dispatched(event, registry)
        case Kind.PULL_REQUEST:
            return _pull_request(event, registry, answers)


def _skip(reason: str) -> Decision:
    return Decision(Action.SKIP, reason)


def _refuse(reason: str) -> Decision:
    return Decision(Action.REFUSE, reason)


def _dispatched(event: Event, registry: Registry) -> Decision:
    inputs = dict(event.inputs)
    found = registry.find(inputs.get("label", ""))
    if not isinstance(found, Primary):
        label = shown(inputs.get("label", ""))
        return _refuse(f"{label} is no primary label. Choose one of {', '.join(_names(registry))}.")
    if not inputs.get("ids", "").strip() and not inputs.get("select", "").strip():
        return _refuse("a sweep by hand names its points: give ids, or select with the options of matrix expand.")
    modifiers = [one for one in registry.modifiers.values() if inputs.get(one.effect.value) == "true"]
    return Decision(Action.RUN, f"by hand, as {found.name}", registry.mode(found, modifiers))


def _pull_request(event: Event, registry: Registry, answers: Answers) -> Decision:
    if event.action in _ENDS:
        if event.merged:
            return _skip("the pull request was merged; its sweep goes on")
        return Decision(Action.CANCEL, f"{_ENDS[event.action]}; its sweep ends")
    if event.action not in _STARTS:
        return _skip(f"{shown(event.action)} starts nothing; {_AGAIN}")
    if event.label is not None and (foreign := _foreign(event, registry)) is not None:
        return foreign
    if event.fork:
        where = shown(event.head_repository or "a fork that is gone")
        return _skip(f"the head is in {where}, and a fork's change never reaches our machines")
    if event.closed:
        return _skip("the pull request is closed")
    if event.draft:
        return _skip("the pull request is a draft; a sweep waits until it is ready for review")
    chosen = _chosen(event, registry)
    return chosen if isinstance(chosen, Decision) else _approved(event, registry, answers, *chosen)


def _foreign(event: Event, registry: Registry) -> Decision | None:
    """The answer to an event about a label that is none of ours."""
    label = event.label or ""
    found = registry.find(label)
    if isinstance(found, Primary | Modifier):
        return None
    if event.action == "unlabeled":
        return _skip(f"the label {shown(label)} was removed, and it has nothing to do with sweeps")
    if isinstance(found, Refused):
        return _refuse(_why_refused(found))
    near = registry.near(label)
    return _skip(f"the label {shown(label)} has nothing to do with sweeps{f'; {near}' if near else ''}")


def _why_refused(label: Refused) -> str:
    return f"the label {label.name} is not supported here: {label.reason}; {label.instead}."


def _chosen(event: Event, registry: Registry) -> Decision | tuple[Primary, list[Modifier]]:
    """What the pull request's labels ask for, or why they ask for nothing."""
    found = list(dict.fromkeys(label for name in event.labels if (label := registry.find(name)) is not None))
    primaries = [label for label in found if isinstance(label, Primary)]
    modifiers = [label for label in found if isinstance(label, Modifier)]
    if len(primaries) > 1:
        names = " and ".join(sorted(label.name for label in primaries))
        return _refuse(f"the labels {names} ask for different sweeps. Keep one of them.")
    if primaries:
        refused = [_why_refused(label) for label in found if isinstance(label, Refused)]
        return _refuse(" ".join(refused)) if refused else (primaries[0], modifiers)
    removed = registry.find(event.label or "") if event.action == "unlabeled" else None
    if isinstance(removed, Primary):
        return Decision(Action.CANCEL, f"the label {removed.name} was removed; its sweep ends")
    if modifiers:
        names = " and ".join(sorted(label.name for label in modifiers))
        return _skip(f"{names} changes a sweep and starts none; set one of {', '.join(_names(registry))}")
    near = [f"{shown(name)}: {hint}" for name in event.labels if (hint := registry.near(name))]
    return _skip(f"no label asks for a sweep{f' ({near[0]})' if near else ''}")


def _approved(
    event: Event, registry: Registry, answers: Answers, primary: Primary, modifiers: list[Modifier]
) -> Decision:
    """Whether somebody who may is behind it, for this very commit."""
    subject = answers.subject(event.head_sha)
    if registry.skip_word in subject:
        return _skip(f"the subject of {event.head_sha[:12]} has {registry.skip_word}")
    # What a label approved was another commit, or a sweep of another shape. So whoever changes one of them needs the
    # right to set every label that is on: else a push would run on an approval that was never given for it.
    above = [label for label in modifiers if not primary.set_by.covers(label.set_by)]
    top = next((label for label in above if all(label.set_by.covers(other.set_by) for other in above)), primary)
    held = answers.permission(event.sender)
    who = shown(event.sender) if event.sender else "the sender"
    if held is None or not held.covers(top.set_by):
        known = f"has {held} permission" if held is not None else "has a permission that nobody could tell"
        lack = f"{who} {known}, and {'a sweep' if top is primary else top.name} needs {top.set_by}"
        again = _AGAIN if top is primary else f"set {top.name} again"
        if event.action == "labeled":
            return _refuse(
                f"{lack}. Ask somebody who has it to {_AGAIN.removesuffix(' again') if top is primary else again}."
            )
        return _skip(f"{lack}; somebody who has it may {again}")
    mode = registry.mode(primary, modifiers)
    said = " with ".join([primary.name, " and ".join(sorted(label.name for label in modifiers))]).removesuffix(" with ")
    reason = f"{_ACTS[event.action]} by {who}, {held}: {said} at {event.head_sha[:12]}"
    return Decision(Action.RUN, reason, mode, Approval(event.sender, held, event.head_sha))


_ACTS: Final = {
    "labeled": "labeled",
    "unlabeled": "a label removed",
    "synchronize": "pushed",
    "ready_for_review": "marked ready",
}


def _names(registry: Registry) -> list[str]:
    return [label.name for label in registry.primaries.values()]
