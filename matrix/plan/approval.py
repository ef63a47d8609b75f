"""Who let a sweep run: asked of the forge, bound to one commit, written into the plan, and void after a push.

An event file is what was true when the event happened, and a run can be repeated weeks later by somebody else. So
before anything is planned the pull request is read again, and what counts is who set each label, never who repeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from matrix.findings import Finding
from matrix.plan.decision import Action, Decision, decide
from matrix.plan.event import Kind, shown
from matrix.plan.labels import Modifier, Primary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matrix.forge import Forge, Labelling, Permission, PullRequest
    from matrix.plan.event import Event
    from matrix.plan.labels import Registry

__all__ = ["Asking", "Receipt", "approve", "misfit"]


class Asking:
    """`matrix.plan.decision.Answers` by a forge; each login is asked for once."""

    def __init__(self, forge: Forge, subject: Callable[[str], str]) -> None:
        self._forge = forge
        self._subject = subject
        self._known: dict[str, Permission] = {}

    def permission(self, login: str) -> Permission | None:
        """What somebody may do; None for an event without a sender.

        Raises:
            ForgeError: nobody answers. That is no permission, and no refusal of one either.
        """
        if not login:
            return None
        if login not in self._known:
            self._known[login] = self._forge.permission(login)
        return self._known[login]

    def subject(self, sha: str) -> str:
        """The first line of a commit's message."""
        return self._subject(sha)


class Receipt(NamedTuple):
    """One label that shaped the sweep: who set it and when, what they may do, and the commit that it is for."""

    label: str
    by: str
    at: str
    permission: Permission
    head_sha: str


def approve(event: Event, registry: Registry, forge: Forge, asking: Asking) -> tuple[Decision, tuple[Receipt, ...]]:
    """The decision on an event as things are now, with a receipt for each label that it rests on.

    Raises:
        ForgeError: the forge does not answer.
    """
    decision = decide(event, registry, asking)
    if event.kind is not Kind.PULL_REQUEST or decision.action is not Action.RUN:
        return decision, ()
    pull = forge.pull(event.number)
    if (changed := _changed(event, pull)) is not None:
        return Decision(Action.SKIP, changed), ()
    # Two labels set in one second are two events, each with a list that may lack the other.
    now = event._replace(labels=forge.labels(event.number), draft=pull.draft)
    decision = decide(now, registry, asking)
    if decision.action is not Action.RUN:
        return decision, ()
    setters = {one.label.lower(): one for one in forge.labellings(event.number)}
    found = [
        _receipt(label, setters.get(label.name.lower()), event.head_sha, asking) for label in _shaping(now, registry)
    ]
    if faults := [one for one in found if isinstance(one, str)]:
        return Decision(Action.REFUSE, " ".join(faults)), ()
    return decision, tuple(one for one in found if isinstance(one, Receipt))


def _changed(event: Event, pull: PullRequest) -> str | None:
    """What happened to the pull request since the event, when it voids the event."""
    if not pull.is_open:
        return "the pull request was closed since"
    if pull.head_sha != event.head_sha:
        now, then = pull.head_sha[:12], event.head_sha[:12]
        return f"the head is {now} by now, and this event is about {then}; set the label again"
    if (pull.head_repository or "").lower() != event.repository.lower():
        return "the head is in a fork by now, and a fork's change never reaches our machines"
    return None


def _shaping(event: Event, registry: Registry) -> Iterator[Primary | Modifier]:
    found = dict.fromkeys(registry.find(name) for name in event.labels)
    yield from (label for label in found if isinstance(label, Primary | Modifier))


def _receipt(label: Primary | Modifier, setter: Labelling | None, sha: str, asking: Asking) -> Receipt | str:
    again = f"Somebody with {label.set_by} permission may set it again."
    if setter is None or setter.by is None:
        return f"nobody who is still there is known to have set {label.name}. {again}"
    held = asking.permission(setter.by)
    if held is None or not held.covers(label.set_by):
        return f"{shown(setter.by)}, who set {label.name}, has {held} permission. {again}"
    return Receipt(label.name, setter.by, setter.at, held, sha)


def misfit(record: dict[str, Any], checkout: str) -> Finding | None:
    """Why a plan may not run on a checkout; None when it may. ``record`` is the plan's JSON, ``checkout`` a commit id.

    A plan that a label approved is for the commit of its approval, as each of its labels is, any other one for its own
    head.
    """
    approval, head = record.get("approval"), record.get("head")
    bound = approval.get("head_sha") if isinstance(approval, dict) else None
    if bound is None and isinstance(head, dict):
        bound = head.get("commit")
    fits = [_commit_of(bound), *map(_commit_of, _receipts(record))]
    strange = next((one for one in fits if not one or one != checkout), None)
    if strange is None:
        return None
    what = f"is for {strange[:12]}" if strange else "says of no commit that it is for it"
    message = f"the plan {what}, and {checkout[:12] or 'no commit'} is checked out."
    return Finding(rule="plan-approval", message=message, fix="set the label again, so that this commit is planned")


def _receipts(record: dict[str, Any]) -> list[Any]:
    """The commit of each label that a plan names."""
    receipts = record.get("receipts") or []
    listed = receipts if isinstance(receipts, list) else [None]
    return [one.get("head_sha") if isinstance(one, dict) else None for one in listed]


def _commit_of(value: object) -> str:
    return value if isinstance(value, str) else ""
