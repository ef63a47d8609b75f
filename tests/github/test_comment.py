"""The comment's text: what it says, that it fits, and that no stranger's text gets out of its code span."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.findings import Finding, Span
from matrix.report.comment import MAX_COMMENT, Effect, code, code_block, comment_text, label_effects
from matrix.sticky import Sticky
from tests.github.events import event, registry

if TYPE_CHECKING:
    from collections.abc import Sequence

URL: Final = "https://github.com/org/bench/actions/runs/1001"


def plan(count: int = 2, **changed: Any) -> dict[str, Any]:
    rows = [{"id": f"x--c{number}", "runner": "cluster:a", "digest": "d", "node-count": 2} for number in range(count)]
    cost = {"jobs": count, "nodes": 2 * count, "gpu-hours": 16.0 * count, "jobs-of-unknown-length": 1}
    receipt = {"label": "full-sweep-enabled", "by": "ada", "at": "2026-11-30T10:00:00Z", "permission": "write"}
    return {
        "version": 1,
        "decision": "run",
        "reason": "labeled by ada, write: full-sweep-enabled at cccccccccccc",
        "points": rows,
        "cost": cost,
        "canary": "x--c0" if count else None,
        "receipts": [{**receipt, "head_sha": "c" * 40}],
        **changed,
    }


def finding(text: str = "no such key", rule: str = "recipe-missing") -> Finding:
    return Finding(rule=rule, message=text, fix="add it", span=Span("configs/a-master.yaml", 3, 5))


def test_what_it_says() -> None:
    reuse = {"run-id": 900, "by": "ada", "points": {"x--c7": "x--c7"}}
    effects = [Effect("full-sweep-enabled", "runs", "everything"), Effect("other", "skip: a draft", "less")]
    text = comment_text(plan(reuse=reuse), [finding()], effects, url=URL)
    assert (
        text
        == f"""\
### Sweep

`labeled by ada, write: full-sweep-enabled at cccccccccccc`

- `full-sweep-enabled` by `ada` (`write`) at `2026-11-30T10:00:00Z`, for `cccccccccccc` alone
- 1 result of run `900` reused, as `ada` asked
- everything else is in [the run]({URL})

**2 jobs, 4 nodes, 32 GPU-hours of known length, 1 job of unknown length**

<details><summary>2 points</summary>

| point | runner | nodes | |
|---|---|--:|---|
| `x--c0` | `cluster:a` | 2 | canary |
| `x--c1` | `cluster:a` | 2 |  |

</details>

#### Findings (1)

```text
configs/a-master.yaml:3:5: recipe-missing: no such key
  fix: add it
```

Here is how to see them again, and to mend what can be mended:

```sh
python -m matrix check
```

<details><summary>What a label would do now</summary>

| label | it | meaning |
|---|---|---|
| `full-sweep-enabled` | runs | `everything` |
| `other` | `skip: a draft` | `less` |

</details>
"""
    )


def changes(count: int, value: str = "i:2") -> dict[str, Any]:
    difference = {"kind": "changed", "what": "image", "old": "i:1", "new": value, "where": "all 8 points", "points": 8}
    configs = [{"key": f"config-{number}", "differences": [difference]} for number in range(count)]
    return {
        "version": 1, "before": "aaaaaaaaaaaa", "after": "cccccccccccc", "same": not count, "configs": configs,
        "points": {"changed": 8 * count, "added": 0, "removed": 0, "renamed": 0}, "jobs": [100, 100],
        "gpu-hours": [16.0, 32.0], "jobs-of-unknown-length": [0, 0],
    }  # fmt: skip


def test_the_jobs_that_change() -> None:
    text = comment_text(plan(changes=changes(2)), url=URL)
    assert (
        """
#### Jobs that change

`aaaaaaaaaaaa` to `cccccccccccc`: 2 configs: 16 changed; 100 jobs; 16 -> 32 GPU-hours (+16)

<details><summary>By config</summary>

| config | | points |
|---|---|---|
| `config-0` | changed `image`: `i:1` to `i:2` | `all 8 points` |
| `config-1` | changed `image`: `i:1` to `i:2` | `all 8 points` |

</details>
"""
        in text
    )
    same = comment_text(plan(changes=changes(0)))
    assert "#### Jobs that change\n\nno change of any job\n\n<details><summary>2 points" in same
    for nothing in (plan(), plan(changes=None), plan(changes={"version": 2})):
        assert "Jobs that change" not in comment_text(nothing)


def test_many_changes_leave_room_for_the_rest() -> None:
    record = plan(20, changes=changes(2000, "x" * 250))
    text = comment_text(record, [finding()], url=URL)
    assert len(text.encode()) <= MAX_COMMENT
    assert "2,000 configs: 16,000 changed" in text
    assert re.search(r"… 1,\d+ more; \[the run\]", text)
    assert "`x--c19`" in text
    assert "#### Findings (1)" in text
    tight = comment_text(record, [finding("y" * 3000)] * 20, url=URL, limit=3000)
    assert len(tight.encode()) <= 3000
    assert "2,000 configs: 16,000 changed" in tight
    assert "`config-0`" not in tight


@pytest.mark.parametrize(
    ("rules", "commands"),
    [
        (["changelog-link"], ["changelog check", "changelog fix"]),
        (["recipe-missing"], ["check"]),
        (["append-only-removed", "recipe-missing"], ["changelog check", "changelog fix", "check"]),
        (["plan-budget"], ["plan"]),
        (["plan-budget", "recipe-missing"], ["check", "plan"]),
        (["reuse-nothing"], []),
        (["github-down", "sweep-bounds"], []),
    ],
)
def test_how_to_repair(rules: list[str], commands: list[str]) -> None:
    text = comment_text(plan(0), [finding(rule=rule) for rule in rules])
    assert re.findall(r"^python -m matrix (.*)$", text, re.MULTILINE) == commands


def test_a_refusal_says_why_first_and_then_what_it_would_have_taken() -> None:
    refused = {"jobs": 120, "nodes": 240, "gpu-hours": 812.5, "jobs-of-unknown-length": 0}
    record = plan(0, decision="refuse", reason="1 fault, told below", mode=None, receipts=[], changes=changes(1))
    record |= {"refused": refused, "budget-gpu-hours": 500}
    text = comment_text(record, [finding("the plan takes 812.5 GPU-hours", "plan-budget")], url=URL)
    parts = (
        "### Sweep refused",
        "plan-budget: the plan takes 812.5 GPU-hours\n  fix: add it",
        "python -m matrix plan",
        "It would have taken **120 jobs, 240 nodes, 812.5 GPU-hours of known length** (`budget-gpu-hours`: 500)",
        "#### Jobs that change",
        "`config-0`",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("over_budget", "told"),
    [(False, "1 job of unknown length** (`budget-gpu-hours`: 31.5)"), (True, "`: 31.5, and it may take more)")],
)
def test_the_budget_beside_the_costs(over_budget: bool, told: str) -> None:
    record = plan(2, mode={"over_budget": over_budget}) | {"budget-gpu-hours": 31.5}
    assert told in comment_text(record)
    assert "budget" not in comment_text(record | {"budget-gpu-hours": None})


def test_a_long_finding_is_folded() -> None:
    long = finding(" ".join(["word"] * 60))._replace(fix=" ".join(["mend"] * 40))
    lines = comment_text(plan(0), [long, finding("short")]).split("```text\n")[1].split("\n```")[0].splitlines()
    assert max(map(len, lines)) <= 110
    assert [line for line in lines if not line.startswith(" ")] == [
        lines[0], "configs/a-master.yaml:3:5: recipe-missing: short"
    ]  # fmt: skip
    assert [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "] == ["fix:", "fix:"]
    assert sum(line.count("word") for line in lines) == 60


@pytest.mark.parametrize(
    ("decision", "title"),
    [
        ("run", "Sweep"),
        ("skip", "No sweep"),
        ("cancel", "Sweep cancelled"),
        ("refuse", "Sweep refused"),
        (None, "Sweep"),
    ],
)
def test_the_decision_comes_first(decision: str | None, title: str) -> None:
    assert comment_text(plan(0, decision=decision)).startswith(f"### {title}\n")


def test_what_each_label_would_do() -> None:
    effects = {one.label: one.outcome for one in label_effects(event("synchronize", "sweep-enabled"), registry())}
    assert set(effects) == {label.name for label in registry().primaries.values()}
    assert set(effects.values()) == {"runs"}
    drafted = label_effects(event(label=None)._replace(draft=True), registry())
    assert {one.outcome.partition(":")[0] for one in drafted} == {"skip"}


# -- the limit

BIG: Final[dict[str, tuple[dict[str, Any], Sequence[Finding]]]] = {
    "5,000 points": (plan(5000), ()),
    "65,536 points": (plan(65_536), ()),
    "10,000 findings": (plan(3), [finding(f"fault {number}") for number in range(10_000)]),
    "both": (plan(5000), [finding("x" * 1000)] * 500),
    "a reason of 200 KB": (plan(2, reason="r" * 200_000), ()),
    "a finding of 200 KB": (plan(2), [finding("f" * 200_000)]),
    "a reason of 200 KB in four-byte letters": (plan(2, reason="\U0001f40e" * 200_000), ()),
    "an id of 200 KB": (plan(1, points=[{"id": "x" * 200_000, "runner": "y" * 200_000}]), ()),
    "1,000 receipts": (plan(2, receipts=plan()["receipts"] * 1000), ()),
    "a finding of backticks": (plan(2), [finding("`" * 200_000)] * 40),
}


@pytest.mark.parametrize("name", BIG)
def test_it_fits(name: str) -> None:
    record, findings = BIG[name]
    effects = [Effect("l" * 50, "runs", "m" * 5000)] * 50
    text = Sticky("plan", 10**17, 10**8).mark + comment_text(record, findings, effects, url=URL)
    assert len(text.encode()) <= MAX_COMMENT + 100
    assert len(text.encode("utf-16-le")) // 2 < 65_536
    assert URL in text
    assert text.count("<details>") == text.count("</details>")


def test_rows_that_do_not_fit_are_counted() -> None:
    text = comment_text(plan(5000), url=URL)
    shown = text.count("| `x--c")
    assert 100 < shown < 5000
    assert f"… {5000 - shown:,} more; [the run]({URL}) has them all" in text


def test_degraded_to_a_link() -> None:
    text = comment_text(plan(2, receipts=plan()["receipts"] * 1000), url=URL)
    assert text == f"### Sweep\n\nThis is too long for a comment; [the run]({URL}) has it.\n"


# -- strangers' texts

HOSTILE: Final = (
    "@org/everyone please",
    "<img src=x onerror=alert(1)>",
    "</details><script>",
    "```\n# owned\n```",
    "`",
    "``x``",
    "a|b|c",
    "a\\|b",
    "[x](javascript:alert(1))",
    "fixes #1",
    "line\nbreak\r\nand more",
    "\u202eevil\u2066",
    "\x1b[31mred\x00",
    "<!-- matrix:plan run=99 attempt=1 -->",
    "www.example.com https://example.com",
    "",
    " ",
)


def outside_code(text: str) -> str:
    """What of a comment GitHub reads as Markdown: without code blocks and code spans."""
    text = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text)


@pytest.mark.parametrize("stranger", HOSTILE)
def test_a_stranger_stays_in_code(stranger: str) -> None:
    def with_text(text: str) -> str:
        receipts = [{"label": text, "by": text, "at": text, "permission": text, "head_sha": text}]
        rows = [{"id": text, "runner": text}]
        shown = text or "blank"
        told = changes(1, shown) | {"before": shown, "after": shown}
        told["configs"][0] |= {"key": shown}
        told["configs"][0]["differences"][0] |= {"what": shown, "where": shown}
        reuse = {"run-id": text, "by": text}
        record = plan(1, reason=text, receipts=receipts, points=rows, reuse=reuse, changes=told)
        return comment_text(record, [finding(text)], [Effect(text, text, text)], url=URL)

    assert outside_code(with_text(stranger)) == outside_code(with_text("plain"))


@given(st.text(max_size=80))
def test_a_code_span_holds_any_text(text: str) -> None:
    span = code(text)
    opening = re.match("`+", span)
    assert opening is not None
    inside = span[len(opening[0]) : -len(opening[0])]
    assert opening[0] not in re.findall("`+", inside)
    assert span.isprintable()
    assert span.endswith(opening[0])


@given(st.lists(st.text(max_size=60), max_size=8))
def test_a_code_block_holds_any_lines(lines: list[str]) -> None:
    block = list(code_block([[line] for line in lines], 10_000, ""))
    if lines:
        fence = block[0].removesuffix("text")
        assert block[-1] == fence
        assert not any(fence in line for line in block[1:-1])
        assert len(block) == len(lines) + 2
