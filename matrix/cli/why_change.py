"""What ``matrix why`` asks about when it is not the working tree: the plan of a change, or a plan file."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matrix.answers.grounds import OfChange
    from matrix.answers.verdicts import Cause, Ground
    from matrix.findings import Span
    from matrix.plan.claims import Options
    from matrix.plan.labels import Mode, Registry
    from matrix.plan.revisions import Revisions
    from matrix.plan.sweep import Written

__all__ = ["ground_of"]

_UNSAID: Final = {"path": None, "base_file": None, "head_file": None, "number": None, "repository": None}


@contextmanager
def ground_of(change: dict[str, Any], files: dict[str, Any]) -> Iterator[Ground]:
    """The ground that the options name. The files of commits can be read as long as the context lasts."""
    from matrix.cli.simulate import labels_of

    registry = labels_of(None) if change["label"] else _labels()
    with ExitStack() as stack:
        if change["plan"] is not None:
            if any(change[name] for name in ("base_ref", "head_ref", "worktree", "label")):
                message = "--plan says itself which commits and labels it is of."
                raise click.UsageError(message)
            yield _planned(change["plan"], files, registry, stack)
            return
        mode, unlabeled = _mode(change["label"], registry)
        yield _changed(change, files, registry, mode, stack, unlabeled)


def _labels() -> Registry | None:
    from matrix.config.settings import find_settings
    from matrix.plan.labels import load_labels

    path = find_settings(".").labels
    return load_labels(path) if path is not None else None


def _mode(names: Sequence[str], registry: Registry | None) -> tuple[Mode | None, Cause | None]:
    """The mode of the labels; or why they start nothing."""
    from matrix.answers.edit import Action, Edit
    from matrix.answers.verdicts import Cause
    from matrix.plan.labels import Modifier, Primary, Refused

    if not names or registry is None:
        return None, None
    found = [(name, registry.find(name)) for name in names]
    for name, label in found:
        if label is None:
            message = f"--label {name}: {registry.name} has no such label; {registry.near(name) or _known(registry)}"
            raise click.UsageError(message)
        if isinstance(label, Refused):
            message = f"--label {name}: it is not supported here: {label.reason}; {label.instead}."
            raise click.UsageError(message)
    primaries = [label for _, label in found if isinstance(label, Primary)]
    modifiers = [label for _, label in found if isinstance(label, Modifier)]
    if len(primaries) > 1:
        message = f"{' and '.join(label.name for label in primaries)} ask for different sweeps; give one of them."
        raise click.UsageError(message)
    if not primaries:
        first = next(iter(registry.primaries.values()))
        reason = f"{' and '.join(label.name for label in modifiers)} changes a sweep and starts none"
        return None, Cause("label", reason, None, (Edit(Action.LABEL, new=first.name),))
    return registry.mode(primaries[0], modifiers), None


def _known(registry: Registry) -> str:
    return f"known: {', '.join(registry.ours)}"


def _planned(path: str, files: dict[str, Any], registry: Registry | None, stack: ExitStack) -> Ground:
    """A plan file, with the change that it was made of where this clone has it."""
    from matrix.answers.grounds import OfPlan
    from matrix.plan.labels import Mode
    from matrix.plan.sweep import read_plan

    written = read_plan(path)
    record = written.record
    mode = Mode(**record["mode"]) if record.get("mode") else None
    commits = _commits(written)
    change = None
    if commits is not None:
        asked = {"base_ref": commits[0], "head_ref": commits[1], "worktree": False}
        change = _changed(asked, files, registry, mode, stack, planned=True)
    return OfPlan(written, path, change, registry)


def _commits(written: Written) -> tuple[str, str] | None:
    """Base and head of a plan, where both are in this clone."""
    from matrix.errors import RefusedError
    from matrix.plan.history import History

    base, head = (written.record.get(name) or {} for name in ("base", "head"))
    if not base.get("commit") or not head.get("commit"):
        return None
    try:
        with History(".") as history:
            both = [history.find(one["commit"]) for one in (base, head)]
    except RefusedError:  # not in a repository
        return None
    return (base["commit"], head["commit"]) if all(both) else None


def _changed(
    asked: dict[str, Any],
    files: dict[str, Any],
    registry: Registry | None,
    mode: Mode | None,
    stack: ExitStack,
    unlabeled: Cause | None = None,
    *,
    planned: bool = False,
) -> OfChange:
    """The plan of a change, and all points of its two revisions. ``planned``: it was let pass once."""
    from matrix.answers.change import Change
    from matrix.answers.grounds import OfChange
    from matrix.answers.space import Space
    from matrix.changelog.rules import check
    from matrix.changelog.text import Text
    from matrix.cli.changelog import context_of, history_of, revisions_of
    from matrix.cli.report import tell
    from matrix.cli.why import evals_of
    from matrix.plan.claims import Options
    from matrix.plan.proof import proven
    from matrix.plan.snapshot import Named
    from matrix.points.request import Request

    said = {**_UNSAID, "base_ref": asked["base_ref"], "head_ref": asked["head_ref"], "worktree": asked["worktree"]}
    revisions = revisions_of(said)
    found, verdict = check(revisions.base, revisions.head, context_of(revisions, said))
    options: Options = mode.options if mode is not None else Options()
    both = stack.enter_context(
        proven(
            revisions,
            verdict,
            Named(files["masters"], files["runners"], files["recipes"], files["golden"]),
            options=options,
            waivers=[("*", "planned before")] if planned else [],
            given=history_of(),
        )
    )
    plan, head, base = both.proof.plan, both.head, both.base
    if plan is None or head is None:
        message = "no master config is there to plan with; name one with --config."
        raise click.UsageError(message)
    space = Space(head.workspace, Request())
    findings = (*found, *both.proof.findings)
    tell([one for one in findings if one.severity == "warning"])
    labels = [snapshot.label for snapshot in (head, base) if snapshot is not None]

    def place(span: Span) -> Span:
        for label in labels:
            span = label.place(span)
        return span

    change = Change(
        plan=plan,
        findings=() if planned else findings,
        entries=verdict.additions,
        options=options,
        log=Text(revisions.head_name, revisions.head).data,
        log_name=revisions.head_name,
        head=space,
        base=Space(base.workspace, Request()) if base is not None else None,
        registry=registry,
        mode=mode,
        evals=evals_of(head.workspace),
    )
    return OfChange(change, f"the plan of {_title(revisions)}", place, unlabeled)


def _title(revisions: Revisions) -> str:
    base, head = revisions.base_revision, revisions.head_revision
    return f"{base.short if base else 'the base'}..{head.short if head else 'the working tree'}"
