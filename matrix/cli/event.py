"""``matrix plan --event``: an event in; out come ``plan.json``, the outputs of the planning job and its summary."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import click

from matrix.cli.command import option
from matrix.cli.simulate import PERMISSIONS, Given, labels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matrix.findings import Finding
    from matrix.forge import Forge
    from matrix.plan.decision import Decision
    from matrix.plan.event import Event
    from matrix.plan.labels import Mode, Registry
    from matrix.plan.plan import Plan
    from matrix.plan.reuse import Reuse
    from matrix.plan.sweep import Sweep

__all__ = ["event_options", "plan_event"]

_MOST_FINDINGS: Final = 1000
"""In plan.json, for the comment on the pull request; all of them are in the log of the job."""
_ELSEWHERE: Final = {
    "base_ref": "--base-ref", "head_ref": "--head-ref", "base_file": "--base-file", "head_file": "--head-file",
    "base_masters": "--base-config", "worktree": "--worktree", "number": "--pr", "merging": "--merge",
    "trim": "--trim-conc", "all_evals": "--all-evals", "evals_only": "--evals-only", "allow_empty": "--allow-empty",
    "over_budget": "--over-budget-approved",
}  # fmt: skip
"""What an event or its labels say."""


def event_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What goes with an event."""
    options = [
        option("--event", type=click.Path(), help="Decide about this event file; plan what it starts."),
        option("--event-name", metavar="NAME", help="What GitHub calls the event. [default: by its shape]"),
        option("--labels", type=click.Path(), help="The label registry."),
        option(
            "--permission", type=click.Choice(PERMISSIONS),
            help="What whoever did it may do. [default: GitHub is asked, with GITHUB_TOKEN]",
        ),
        option("--output", type=click.Path(dir_okay=False), help="Where plan.json goes. [default: plan.json]"),
    ]  # fmt: skip
    for add in reversed(options):
        command = add(command)
    return command


def plan_event(options: dict[str, Any], environment: Mapping[str, str] = os.environ) -> int:
    """Decide, plan, write. Only a refusal is exit status 1; a run, a skip and a cancel are 0.

    In GitHub Actions the outputs and the summary go where the runner wants them, and findings are annotations too.
    """
    from matrix.errors import RefusedError
    from matrix.plan.decision import Action
    from matrix.plan.sweep import Sweep

    if said := [option for name, option in _ELSEWHERE.items() if options[name]]:
        message = f"{said[0]} does not go with --event, which says that itself."
        raise click.UsageError(message)
    try:
        sweep, findings = _swept(options, environment)
    except RefusedError as error:
        sweep, findings = Sweep(_refusal(error.findings)), error.findings
    _write(sweep, findings, options["output"] or "plan.json", environment)
    return int(sweep.decision.action is Action.REFUSE)


def _refusal(findings: Sequence[Finding]) -> Decision:
    from matrix.findings import errors_of
    from matrix.plan.decision import Action, Decision

    count = len(errors_of(findings))
    return Decision(Action.REFUSE, f"{count} {'fault' if count == 1 else 'faults'}, told below")


def _swept(options: dict[str, Any], environment: Mapping[str, str]) -> tuple[Sweep, tuple[Finding, ...]]:
    """What becomes of the event. GitHub is asked for what the file does not tell, unless the command line tells it."""
    from matrix.plan.event import Kind, read_event

    registry = labels_of(options["labels"])
    event = read_event(options["event"], options["event_name"])
    if options["permission"] is not None or event.kind is not Kind.PULL_REQUEST:
        return _planned(event, registry, options, None)
    from matrix.cli.forge import forge_of

    # One for everything that is asked: its patience is for all requests together, and the job has its own end.
    with forge_of(event.repository, environment) as forge:
        return _planned(event, registry, options, forge)


def _planned(
    event: Event, registry: Registry, options: dict[str, Any], forge: Forge | None
) -> tuple[Sweep, tuple[Finding, ...]]:
    """The decision and, where it says run, the plan; a plan that is refused keeps its costs and what it changes."""
    from matrix.errors import RefusedError
    from matrix.findings import errors_of
    from matrix.plan.decision import Action
    from matrix.plan.event import Kind
    from matrix.plan.reuse import without_reused
    from matrix.plan.sweep import Sweep, sweep_of

    decision, receipts = _decided(event, registry, options["permission"], forge)
    if decision.action is not Action.RUN or decision.mode is None:
        return sweep_of(decision), ()
    by_hand = event.kind is Kind.DISPATCH
    if by_hand:
        plan, findings = _selected(event, decision.mode, options)
        changes = None
    else:
        plan, findings = _changed(event, decision.mode, options, forge)
        findings = (*findings, *_loosened(plan))
        changes = _changes(plan, options)
    sweep = Sweep(decision, plan, receipts=receipts, changes=changes, budget=_budget())
    try:
        if errors_of(findings):
            raise RefusedError(findings)
        if forge is not None and (reuse := _reuse(event, plan, registry, forge)) is not None:
            sweep = sweep._replace(plan=without_reused(plan, reuse), reuse=reuse.record())
        sweep, more = _held(sweep, decision.mode, registry, by_hand=by_hand)
    except RefusedError as error:
        findings = tuple(dict.fromkeys((*findings, *error.findings)))
        return sweep._replace(decision=_refusal(findings)), findings
    return sweep, (*findings, *more)


def _held(sweep: Sweep, mode: Mode, registry: Registry, *, by_hand: bool) -> tuple[Sweep, tuple[Finding, ...]]:
    """The sweep with its canary, proven against GitHub's limits and the budget, and what is told all the same.

    Raises:
        RefusedError: it may not run.
    """
    from matrix.errors import RefusedError
    from matrix.findings import errors_of
    from matrix.plan.limits import measures
    from matrix.plan.sweep import outputs_of, sweep_of, written_of

    made = sweep_of(sweep.decision, sweep.plan)
    sweep = sweep._replace(decision=made.decision, plan=made.plan, canary=made.canary)
    if not sweep.points or sweep.plan is None:
        return sweep, ()
    over = [one.finding() for one in measures(written_of(sweep.record()), outputs_of(sweep, "")) if not one.fits]
    told = (*over, *_over_budget(sweep, mode, registry, by_hand=by_hand))
    if errors_of(told):
        raise RefusedError(told)
    return sweep, told


def _decided(
    event: Event, registry: Registry, permission: str | None, forge: Forge | None
) -> tuple[Decision, tuple[dict[str, Any], ...]]:
    """The decision, and as records who set each label that it rests on."""
    if forge is None:
        from matrix.plan.decision import decide

        return decide(event, registry, Given(permission or "unknown")), ()
    from matrix.plan.approval import Asking, approve

    decision, receipts = approve(event, registry, forge, Asking(forge, Given("unknown").subject))
    return decision, tuple(receipt._asdict() for receipt in receipts)


def _reuse(event: Event, plan: Plan, registry: Registry, forge: Forge) -> Reuse | None:
    """What the comments of the pull request let be reused of an earlier sweep."""
    from matrix.cli.reuse import asked_reuse

    rows = [{"id": point.id, "digest": point.digest} for point in plan.points]
    return asked_reuse(forge, event.number, rows, registry) if rows else None


def _changed(
    event: Event, mode: Mode, options: dict[str, Any], forge: Forge | None
) -> tuple[Plan, tuple[Finding, ...]]:
    """The plan of a pull request: from where its branch began to the commit that was approved.

    Where there is a forge, it is asked, too, whether the log is the same.
    """
    from matrix.cli.changelog import judge, revisions_of
    from matrix.errors import RefusedError
    from matrix.plan.history import History

    with History(".") as history:
        head = history.revision(event.head_sha)
        tip = history.revision(event.base_sha) if event.base_sha else history.default_branch()
        base = history.merge_base(tip, head)
    settings = {**options, "base_ref": base.commit, "head_ref": head.commit, "number": event.number}
    revisions = revisions_of(settings)
    if forge is not None and revisions.base == revisions.head:
        _prove_unchanged(event, revisions.head_name, forge)
    findings, _, plan = judge(revisions, settings, mode.options)
    if plan is None and not findings:
        message = "no master config is there to plan with; name one with --config."
        raise click.UsageError(message)
    if plan is None:
        raise RefusedError(findings)
    return plan._replace(base=revisions.base_revision, head=revisions.head_revision), tuple(findings)


def _changes(plan: Plan, options: dict[str, Any]) -> dict[str, Any] | None:
    """Which jobs the change changes; nothing where one of its revisions cannot be read, which is told already."""
    from matrix.answers.diff import difference
    from matrix.answers.side import open_sides
    from matrix.errors import RefusedError
    from matrix.plan.snapshot import Named
    from matrix.report.diff import diff_record

    if plan.base is None or plan.head is None:
        return None
    named = Named(options["masters"], options["runners"], options["recipes"], options["golden"])
    try:
        with open_sides(plan.base.commit, plan.head.commit, named) as (before, after, unchanged):
            return diff_record(difference(before, after, unchanged))
    except RefusedError:
        return None


def _prove_unchanged(event: Event, log: str, forge: Forge) -> None:
    """Git sees no change of the log. Where GitHub sees one, two different things were compared.

    Raises:
        RefusedError: they disagree, or GitHub does not answer: "no change" is never said on doubt.
    """
    from matrix.errors import RefusedError
    from matrix.findings import Finding, Span
    from matrix.plan.touched import touched_paths

    if log in touched_paths(forge, event.number):
        message = f"pull request {event.number} changes this file, and git sees no change of it between base and head."
        fix = "check that the clone has the base and the head of the pull request, then set the label again"
        raise RefusedError([Finding(rule="touched-log", message=message, fix=fix, span=Span(log))])


def _selected(event: Event, mode: Mode, options: dict[str, Any]) -> tuple[Plan, tuple[Finding, ...]]:
    """The plan of a sweep by hand: what its inputs select of the checkout."""
    from matrix.cli.options import workspace_of
    from matrix.plan.history import History
    from matrix.plan.selection import plan_selection

    inputs = dict(event.inputs)
    ids = tuple(inputs.get("ids", "").replace(",", " ").split())
    request = _request(inputs.get("select", ""))
    workspace = workspace_of(options["masters"], options["runners"], options["recipes"], options["golden"])
    plan, findings = plan_selection(workspace, request._replace(ids=(*request.ids, *ids)), mode)
    with History(".") as history:
        return plan._replace(head=history.revision("HEAD")), findings


def _request(text: str) -> Any:
    """The options of ``matrix expand``, as an input of a workflow has them."""
    import shlex

    from matrix.cli.expand import request_of, selection_options
    from matrix.errors import RefusedError
    from matrix.findings import Finding
    from matrix.plan.event import shown

    @click.command(add_help_option=False)
    @selection_options
    def select(**selection: Any) -> Any:
        return request_of(selection)

    try:
        return select.main(shlex.split(text), prog_name="select", standalone_mode=False)
    except (click.ClickException, ValueError) as error:
        said = error.format_message() if isinstance(error, click.ClickException) else str(error)
        message = f"the selection {shown(text)} is not understood: {shown(said, 200)}"
        raise RefusedError(
            [Finding(rule="event-select", message=message, fix="give options of matrix expand")]
        ) from None


def _over_budget(sweep: Sweep, mode: Mode, registry: Registry, *, by_hand: bool) -> list[Finding]:
    """What is told where a plan costs more than the repository allows. No label is set on a sweep by hand."""
    from matrix.plan.allowance import approving_label, over_budget
    from matrix.plan.plan import Plan

    way_out = "" if by_hand else approving_label(registry)
    found = over_budget(sweep.plan or Plan(), sweep.budget, approved=mode.over_budget, way_out=way_out)
    return [found] if found is not None else []


def _budget() -> float | None:
    from matrix.config.settings import find_settings

    return find_settings(".").budget_gpu_hours


def _loosened(plan: Plan) -> tuple[Finding, ...]:
    """What the change does to the bounds of its own sweep."""
    from matrix.config.settings import find_settings
    from matrix.plan.guards import loosened
    from matrix.plan.history import History
    from matrix.plan.revisions import place_in

    if plan.base is None or plan.head is None:
        return ()
    root = find_settings(".").root
    with History(".") as history:
        return tuple(loosened(history, plan.base, plan.head, place_in(history, root) if root else ""))


def _write(sweep: Sweep, findings: Sequence[Finding], path: str, environment: Mapping[str, str]) -> None:
    """plan.json, outputs, summary, and the same for people."""
    import sys

    from matrix.cli.files import append, replace
    from matrix.findings import in_order
    from matrix.plan.sweep import outputs_of
    from matrix.report.findings import print_findings
    from matrix.report.github import annotation_lines
    from matrix.report.json import finding_record
    from matrix.report.summary import summary_text

    ordered = in_order(findings)
    sweep = sweep._replace(findings=tuple(map(finding_record, ordered[:_MOST_FINDINGS])))
    text = sweep.text()
    replace(path, text)
    outputs = "".join(f"{name}={value}\n" for name, value in outputs_of(sweep, text).items())
    print_findings(ordered, sys.stderr)
    click.echo(f"{sweep.decision.action}: {sweep.decision.reason}")
    if (file := environment.get("GITHUB_OUTPUT")) is None:
        click.echo(outputs, nl=False)
    else:
        append(file, outputs)
    if file := environment.get("GITHUB_STEP_SUMMARY"):
        append(file, summary_text(sweep, ordered))
    if environment.get("GITHUB_ACTIONS") == "true":
        for line in annotation_lines(ordered):
            click.echo(line)
        if sweep.decision.action == "refuse" and not ordered:
            click.echo(f"::error title=sweep::{sweep.decision.reason.replace('%', '%25')}")
