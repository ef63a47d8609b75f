"""The comment on a pull request: decision, cost, changed jobs, points, findings with their repair, what labels do.

What a stranger can have written (titles, labels, file names, values of configs) stands in code spans and code blocks
alone, where GitHub knows neither markup nor mentions nor references. The comment stays below GitHub's limit whatever
the plan: the points give way first, then the findings and all but the totals of the changes; at the end a link is left.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.findings import errors_of, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matrix.findings import Finding
    from matrix.plan.event import Event
    from matrix.plan.labels import Registry

__all__ = ["MAX_COMMENT", "Effect", "code", "code_block", "comment_text", "label_effects", "reuse_text"]

MAX_COMMENT: Final = 60_000
"""Bytes. GitHub takes 65,536 characters; the rest is for the mark, and for what counts a letter as two."""
_FINDINGS_ROOM: Final = 20_000
_LABELS_ROOM: Final = 8_000
_CHANGES_ROOM: Final = 12_000
_TITLES: Final = {"run": "Sweep", "skip": "No sweep", "cancel": "Sweep cancelled", "refuse": "Sweep refused"}
_RUNS_NAMED: Final = 5
_RUNS: Final = re.compile("`+")
_WIDTH: Final = 110
"""Columns of a finding: GitHub does not fold the lines of a code block."""
_SEEN_WITH: Final = (
    (("changelog-", "append-only"), ("changelog check", "changelog fix")),
    (("plan-budget",), ("plan",)),
    (("github-", "reuse-", "touched-", "event-", "plan-", "sweep-bounds"), ()),
)
"""How findings of a rule are seen again: by their beginnings, the commands. Those of all other rules are check's."""


class Effect(NamedTuple):
    """What setting a label now would do."""

    label: str
    outcome: str
    meaning: str


def code(text: str, limit: int = 300) -> str:
    r"""Any text as a code span: one line, nothing invisible, no markup.

    >>> code("a|b"), code("x`y"), code("@org/team"), code("\n")
    ('`a|b`', '``x`y``', '`@org/team`', '`(blank)`')
    """
    text = _visible(" ".join(text.split()), limit) or "(blank)"
    fence = _fence(text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _cell(text: str, limit: int = 300) -> str:
    """A code span in a table, whose cells end at a bar even there."""
    return code(text, limit).replace("|", "\\|")


def code_block(items: Iterable[Sequence[str]], room: int, more: str) -> Iterator[str]:
    """Items of some lines each as a code block of at most about ``room`` bytes; ``more`` says where the others are."""
    shown: list[str] = []
    left_out = 0
    for item in items:
        kept = [_visible(line, 2000) for line in item]
        room -= _bytes(kept)
        if room < 0:
            left_out += 1
        else:
            shown += kept
    fence = _fence("\n".join(shown), 3)
    if shown:
        yield from (f"{fence}text", *shown, fence)
    if left_out:
        yield ""
        yield f"… {left_out:,} more{more}"


def comment_text(
    record: Mapping[str, Any],
    findings: Sequence[Finding] = (),
    effects: Sequence[Effect] = (),
    *,
    url: str = "",
    limit: int = MAX_COMMENT,
) -> str:
    """The comment as Markdown. ``record`` is ``plan.json``; ``url`` the page of the run, which has everything."""
    link = f"[the run]({url})" if url else "the run"
    more = f"; {link} has them all" if url else ""
    head = list(_head(record, link))
    changes = list(_changes(record, _CHANGES_ROOM, more))
    said = list(_findings(findings, more))
    refused = record.get("decision") == "refuse"
    labels = list(_labels(effects, "held to the same checks" if refused and errors_of(findings) else "runs"))
    room = limit - sum(map(_bytes, (head, changes, said, labels))) - 200
    # Who was refused wants to know why, and everybody else what runs.
    first, last = (said, []) if refused else ([], said)
    lines = [*head, *first, *_cost(record), *changes, *_points(record, room, more), *last, *labels]
    if _bytes(lines) > limit:
        head += [*_cost(record), *_changes(record, 0, more)]
        lines = [*head, *_points(record, limit - _bytes(head) - 200, more)]
    if _bytes(lines) > limit:
        lines = [f"### {_title(record)}", "", f"This is too long for a comment; {link} has it."]
    return "\n".join(lines).rstrip("\n") + "\n"


def reuse_text(said: str, findings: Sequence[Finding] = ()) -> str:
    """The answer to somebody who asked for a reuse: what will be reused, or why nothing can be."""
    lines = ["### Reuse refused" if findings else "### Reuse", ""]
    lines += code_block(map(_folded, findings), _FINDINGS_ROOM, "") if findings else [said]
    return "\n".join(lines) + "\n"


def label_effects(event: Event, registry: Registry) -> tuple[Effect, ...]:
    """For each label that starts a sweep: what it would do if somebody who may set it now, in place of the others."""
    from matrix.plan.decision import decide
    from matrix.plan.labels import Permission, Primary

    class Anybody:
        def permission(self, login: str) -> Permission | None:
            return Permission.ADMIN

        def subject(self, sha: str) -> str:
            return ""

    others = tuple(name for name in event.labels if not isinstance(registry.find(name), Primary))
    found = []
    for label in registry.primaries.values():
        now = event._replace(action="labeled", label=label.name, labels=(*others, label.name), sender="you")
        decision = decide(now, registry, Anybody())
        outcome = "runs" if decision.mode is not None else f"{decision.action}: {decision.reason}"
        found.append(Effect(label.name, outcome, label.meaning))
    return tuple(found)


def _title(record: Mapping[str, Any]) -> str:
    return _TITLES.get(str(record.get("decision")), "Sweep")


def _head(record: Mapping[str, Any], link: str) -> Iterator[str]:
    yield f"### {_title(record)}"
    yield ""
    yield code(str(record.get("reason") or "no reason given"), 1000)
    yield ""
    receipts = record.get("receipts")
    for receipt in receipts if isinstance(receipts, list) else ():
        words = {name: code(str(receipt.get(name, "?")), 100) for name in ("label", "by", "at", "permission")}
        sha = code(str(receipt.get("head_sha", "?"))[:12])
        yield f"- {words['label']} by {words['by']} ({words['permission']}) at {words['at']}, for {sha} alone"
    reuse = record.get("reuse")
    if isinstance(reuse, dict):
        yield f"- {_reused(reuse)} reused, as {code(str(reuse.get('by')))} asked"
    yield f"- everything else is in {link}"
    yield ""


def _reused(reuse: Mapping[str, Any]) -> str:
    """How many results of which runs."""
    points, runs = reuse.get("points") or {}, reuse.get("runs") or {}
    counts: dict[str, int] = {}
    for name in points:
        run = str(runs.get(name, reuse.get("run-id")))
        counts[run] = counts.get(run, 0) + 1
    told = [f"{_counted(count, 'result')} of run {code(run)}" for run, count in counts.items()]
    return f"{', '.join(told[:_RUNS_NAMED])}{' and of others' if len(told) > _RUNS_NAMED else ''}" or "nothing"


def _cost(record: Mapping[str, Any]) -> Iterator[str]:
    refused = record.get("refused")
    cost = refused or (record.get("cost") if record.get("points") else None)
    if not isinstance(cost, dict):
        return
    hours, unknown = cost.get("gpu-hours"), cost.get("jobs-of-unknown-length")
    parts = [_counted(cost.get("jobs", 0), "job"), _counted(cost.get("nodes", 0), "node")]
    parts += [f"{_hours(hours)} GPU-hours of known length"] if hours else []
    parts += [f"{_counted(unknown, 'job')} of unknown length"] if unknown else []
    yield f"{'It would have taken ' if refused else ''}**{', '.join(parts)}**{_budget(record)}"
    yield ""


def _budget(record: Mapping[str, Any]) -> str:
    """The bound on the costs, where there is one."""
    most, mode = record.get("budget-gpu-hours"), record.get("mode")
    if not isinstance(most, int | float):
        return ""
    approved = isinstance(mode, dict) and mode.get("over_budget")
    return f" (`budget-gpu-hours`: {_hours(most)}{', and it may take more' if approved else ''})"


def _hours(hours: float) -> str:
    return f"{hours:,.1f}".removesuffix(".0")


def _changes(record: Mapping[str, Any], room: int, more: str) -> Iterator[str]:
    """Which jobs the change changes, whatever of them runs; without room the totals alone."""
    changes = record.get("changes")
    if not isinstance(changes, dict) or changes.get("version") != 1:
        return
    from matrix.report.diff import diff_markdown

    total, *rest = diff_markdown(changes, room, more)
    yield from ("#### Jobs that change", "", total, "")
    if rest:
        yield from ("<details><summary>By config</summary>", *rest, "", "</details>", "")


def _points(record: Mapping[str, Any], room: int, more: str) -> Iterator[str]:
    rows = record.get("points")
    if not isinstance(rows, list) or not rows:
        return
    canary, shown = record.get("canary"), []
    room -= 300
    for row in rows:
        mark = "canary" if row.get("id") == canary else ""
        mark = "accuracy" if row.get("eval-only") else mark
        line = (
            f"| {code(str(row.get('id')))} | {code(str(row.get('runner')))} | {row.get('node-count') or 1} | {mark} |"
        )
        room -= len(line.encode()) + 1
        if room < 0:
            break
        shown.append(line)
    title = _counted(len(rows), "point")
    if not shown:
        yield from (f"{title}{more}", "")
        return
    yield from (
        f"<details><summary>{title}</summary>",
        "",
        "| point | runner | nodes | |",
        "|---|---|--:|---|",
        *shown,
        "",
    )
    if len(shown) < len(rows):
        yield from (f"… {len(rows) - len(shown):,} more{more}", "")
    yield from ("</details>", "")


def _findings(findings: Sequence[Finding], more: str) -> Iterator[str]:
    if not findings:
        return
    yield f"#### Findings ({len(findings):,})"
    yield ""
    yield from code_block(map(_folded, findings), _FINDINGS_ROOM, more)
    yield ""
    commands = dict.fromkeys(command for finding in findings for command in _commands(finding.rule))
    if commands:
        yield "Here is how to see them again, and to mend what can be mended:"
        yield ""
        yield from ("```sh", *(f"python -m matrix {command}" for command in sorted(commands, key=_ORDER.index)), "```")
        yield ""


_ORDER: Final = ("changelog check", "changelog fix", "check", "plan")


def _commands(rule: str) -> Sequence[str]:
    return next((commands for rules, commands in _SEEN_WITH if rule.startswith(rules)), ("check",))


def _folded(finding: Finding) -> list[str]:
    """A finding as lines that need no scrolling; what to do has one of its own."""
    from textwrap import wrap

    def fold(text: str, first: str) -> list[str]:
        lines = wrap(
            _visible(text, 2000), _WIDTH, initial_indent=first, subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        return lines or [first]

    return [*fold(str(finding._replace(fix="")), ""), *(fold(f"fix: {finding.fix}", "  ") if finding.fix else ())]


def _labels(effects: Sequence[Effect], runs: str) -> Iterator[str]:
    """``runs``: what is said of a label that lets a sweep run."""
    if not effects:
        return
    yield "<details><summary>What a label would do now</summary>"
    yield ""
    yield "| label | it | meaning |"
    yield "|---|---|---|"
    room = _LABELS_ROOM
    for effect in effects:
        outcome = runs if effect.outcome == "runs" else _cell(effect.outcome, 200)
        line = f"| {_cell(effect.label)} | {outcome} | {_cell(effect.meaning, 200)} |"
        room -= len(line.encode())
        if room >= 0:
            yield line
    yield ""
    yield "</details>"
    yield ""


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _visible(text: str, limit: int) -> str:
    """A line whose characters can all be seen: what turns text around or hides it is written out."""
    clipped = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return printable(clipped)


def _fence(text: str, least: int) -> str:
    """More backticks than the text has in a row."""
    longest = max(map(len, _RUNS.findall(text)), default=0)
    return "`" * max(least, longest + 1)


def _bytes(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
