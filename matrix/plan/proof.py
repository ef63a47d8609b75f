"""A change proven against the configs of both its revisions, wherever those are: commits, the working tree, files."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from matrix.config.settings import find_settings
from matrix.errors import RefusedError
from matrix.findings import Finding, Severity
from matrix.plan.claims import Options
from matrix.plan.history import History
from matrix.plan.plan import Plan, plan_change
from matrix.plan.revisions import place_in
from matrix.plan.snapshot import Named, Snapshot, committed, in_folder
from matrix.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from matrix.changelog.rules import Verdict
    from matrix.checks.changelog import Waiver
    from matrix.plan.history import Revision
    from matrix.plan.revisions import Revisions

__all__ = ["Proof", "Proven", "prove", "proven"]


class Proof(NamedTuple):
    """The plan and what refuses it. ``plan`` is None where no master config was there to prove anything by."""

    plan: Plan | None
    findings: tuple[Finding, ...] = ()


class Proven(NamedTuple):
    """A proof, and the configs of both revisions, where they could be read."""

    proof: Proof
    head: Snapshot | None = None
    base: Snapshot | None = None


def prove(
    revisions: Revisions,
    verdict: Verdict,
    named: Named = Named(),  # noqa: B008 - immutable
    *,
    base_masters: tuple[str, ...] = (),
    options: Options = Options(),  # noqa: B008 - immutable
    waivers: Sequence[Waiver] = (),
    folder: str = ".",
    given: History | None = None,
) -> Proof:
    """The proof of a change alone. See `proven`."""
    with proven(
        revisions, verdict, named, base_masters=base_masters, options=options, waivers=waivers, folder=folder,
        given=given,
    ) as both:  # fmt: skip
        return both.proof


@contextmanager
def proven(
    revisions: Revisions,
    verdict: Verdict,
    named: Named = Named(),  # noqa: B008 - immutable
    *,
    base_masters: tuple[str, ...] = (),
    options: Options = Options(),  # noqa: B008 - immutable
    waivers: Sequence[Waiver] = (),
    folder: str = ".",
    given: History | None = None,
) -> Iterator[Proven]:
    """Plan a change whose log was judged. The configs can be read as long as the context lasts.

    ``named`` are files of the command line, as seen from ``folder``; of commits they are looked up in git.
    ``base_masters`` are the masters of the base where two files are compared. ``given`` is a reader of the repository
    that is open already.

    Raises:
        RefusedError: the configs of the head cannot be read.
    """
    with ExitStack() as stack:
        findings: list[Finding] = []
        if revisions.base_revision is None:
            head = _opened(named, folder) if named.masters else None
            base = _opened(named._replace(masters=base_masters), folder) if base_masters else None
            before = base.workspace if base else None
        else:
            history = stack.enter_context(History.reader(folder, given))
            head, inside, root = _head(history, revisions, named, stack)
            base = None
            before = head.workspace._replace(configs=()) if head else None
            try:
                base = stack.enter_context(_base(history, revisions.base_revision, inside, root))
                before = base.workspace if base else before
            except RefusedError as error:
                before = None
                findings += map(_unreadable_base, error.findings[:1])
        if head is None:
            yield Proven(Proof(None))
            return
        plan, found = plan_change(verdict, head.workspace, before, options, waivers, _comparison(head, base))
        findings += found
        for snapshot in (head, base):
            findings = snapshot.label.relabel(findings) if snapshot else findings
        plan = plan._replace(base=revisions.base_revision, head=revisions.head_revision)
        yield Proven(Proof(plan, tuple(findings)), head, base)


def _comparison(head: Snapshot, base: Snapshot | None) -> Callable[[str], bool] | None:
    if base is None:
        return None
    return lambda path: head.stamp(path) == base.stamp(path)


def _opened(named: Named, folder: str) -> Snapshot:
    return in_folder(open_workspace(folder, **named._asdict()))


def _head(history: History, revisions: Revisions, named: Named, stack: ExitStack) -> tuple[Snapshot | None, Named, str]:
    """The head (of a check of the working tree: what lies there), and how to look the same files up in git."""
    settings = find_settings(history.folder)
    root = place_in(history, settings.root) if settings.root else ""
    inside = named.placed(lambda path: place_in(history, path))
    if revisions.head_revision is not None:
        return stack.enter_context(committed(history, revisions.head_revision, inside, root=root)), inside, root
    return _opened(named, history.folder) if named.masters or settings.masters else None, inside, root


def _base(history: History, revision: Revision, named: Named, root: str) -> AbstractContextManager[Snapshot | None]:
    return committed(history, revision, named, root=root, label=f"{revision.short}:")


def _unreadable_base(finding: Finding) -> Finding:
    message = f"the configs of the base cannot be read, so what changed is not known: {finding.message}"
    return finding._replace(rule="base-configs", message=message, severity=Severity.WARNING)
