"""``fix``: history byte for byte, the change behind it, nothing lost; by example and over random edits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.changelog.compare import identity
from matrix.changelog.context import Context
from matrix.changelog.repair import repair
from matrix.changelog.rules import Change, check
from matrix.changelog.text import Text
from matrix.config.source import loads
from matrix.findings import errors_of
from tests.changelog.support import BASE, HISTORY, LINK, NEW, PR, entry, log, spots

FIRST, SECOND, THIRD = HISTORY
GOOD = log(*HISTORY, NEW)
REWORDED = entry("omega", "Second, reworded.")
OLD_PLACEHOLDER = BASE.replace(b"pull/12", b"pull/XXX")
TWICE = b"<<<<<<< a\n" + log(NEW) + b"=======\n" + log(NEW) + b">>>>>>> b\n"
BOTH = b"<<<<<<< a\n\n" + log(entry("a")) + b"=======\n\n" + log(entry("b")) + b">>>>>>> b\n"
WITHIN = entry("a").replace("    - a\n", "<<<<<<< a\n    - a\n=======\n    - b\n>>>>>>> b\n")
EDITED = entry("omega", "Second, reworded.", 12)

MENDED = {
    "right already": (BASE, GOOD, GOOD),
    "no newline": (BASE, GOOD[:-1], GOOD),
    "an empty line at the end": (BASE, GOOD + b"\n", GOOD),
    "blanks at the end": (BASE, GOOD + b"  \n", GOOD),
    "no separator": (BASE, BASE + log(NEW), GOOD),
    "blanks in the separator": (BASE, BASE + b"  \n" + log(NEW), GOOD),
    "three empty lines": (BASE, BASE + b"\n\n\n" + log(NEW), GOOD),
    "base with an empty line": (BASE + b"\n", BASE + b"\n\n" + log(NEW), BASE + b"\n" + log(NEW)),
    "CRLF": (BASE, GOOD.replace(b"\n", b"\r\n"), GOOD),
    "byte order mark": (BASE, b"\xef\xbb\xbf" + GOOD, GOOD),
    "tabs": (BASE, GOOD.replace(b"Bump image", b"Bump\timage"), GOOD),
    "inserted": (BASE, log(FIRST, NEW, SECOND, THIRD), GOOD),
    "at the top": (BASE, log(NEW, *HISTORY), GOOD),
    "moved": (BASE, log(THIRD, FIRST, SECOND), BASE),
    "deleted": (BASE, log(FIRST, THIRD, NEW), GOOD),
    "all deleted": (BASE, b"", BASE),
    "blanks stripped": (BASE.replace(b"12\n", b"12 \n"), GOOD, GOOD.replace(b"12\n", b"12 \n")),
    "quotes changed": (BASE, GOOD.replace(b'"Second."', b"'Second.'"), GOOD),
    "comment in history": (BASE, BASE + b"# mine\n\n" + log(NEW), GOOD),
    "placeholder": (BASE, log(*HISTORY, entry("alpha", "Bump image.", "XXX")), GOOD),
    "long placeholder": (
        BASE, log(*HISTORY, entry("a", link=f"{LINK}XXX  # soon")), log(*HISTORY, entry("a", link=f"{LINK}77  # soon")),
    ),
    "a link corrected": (BASE, BASE.replace(b"pull/12", b"pull/14"), BASE.replace(b"pull/12", b"pull/14")),
    "a link corrected, blanks stripped": (
        BASE.replace(b"11\n", b"11 \n"),
        BASE.replace(b"12", b"14"),
        BASE.replace(b"11\n", b"11 \n").replace(b"12", b"14"),
    ),
    "edited": (BASE, log(FIRST, EDITED, THIRD), log(*HISTORY, REWORDED)),
    "edited, entry added": (BASE, log(FIRST, EDITED, THIRD, NEW), log(*HISTORY, REWORDED, NEW)),
    "old placeholder filled by a tool": (
        OLD_PLACEHOLDER, OLD_PLACEHOLDER.replace(b"XXX", b"77") + b"\n" + log(NEW), OLD_PLACEHOLDER + b"\n" + log(NEW),
    ),
    "conflict": (BASE, BASE + BOTH, log(*HISTORY, entry("a"), entry("b"))),
    "conflict within entries": (BASE, log(*HISTORY, WITHIN), log(*HISTORY, entry("a"), entry("b"))),
    "conflict with one entry on both sides": (BASE, BASE + b"\n" + TWICE, GOOD),
    "conflict, diff3": (BASE, BASE + b"<<<<<<< a\n\n" + log(NEW) + b"||||||| o\n=======\n>>>>>>> b\n", GOOD),
    "new file": (b"", b"# a note\n" + log(NEW) + b"\n", b"# a note\n" + log(NEW)),
}  # fmt: skip


@pytest.mark.parametrize(("base", "head", "wanted"), MENDED.values(), ids=MENDED)
def test_mended(base: bytes, head: bytes, wanted: bytes) -> None:
    result = repair(base, head, PR)
    assert result.data == wanted
    assert not errors_of(result.findings)
    assert bool(result.steps) == (head != wanted)
    assert repair(base, result.data, PR).data == result.data


LEFT = {
    "broken base": (BASE[:-1], BASE + b"\n" + log(NEW), "17: newline"),
    "NUL": (BASE, GOOD.replace(b"Bump", b"\0"), "22: nul"),
    "not UTF-8": (BASE, GOOD.replace(b"Bump", b"\xff"), "22: encoding"),
    "broken YAML": (BASE, GOOD.replace(b'Bump image."', b"Bump"), "24: yaml-syntax"),
    "an entry begun in another": (BASE, BASE + b"\n  " + log(NEW), "19: yaml-syntax"),
    "markers out of order": (BASE, BASE + b"=======\n>>>>>>> b\n", "19: conflict-marker"),
    "links corrected and entries added": (BASE, GOOD.replace(b"pull/12", b"pull/14"), "11: mixed"),
    "another link": (BASE, log(*HISTORY, entry("a", link=78)), "23: link"),
    "unknown field": (BASE, log(*HISTORY, entry("a", extra="  why: b\n")), "21: field"),
    "text at the top": (BASE, b"--- \n" + BASE, "1: changed"),
}


@pytest.mark.parametrize(("base", "head", "wanted"), LEFT.values(), ids=LEFT)
def test_what_only_people_can_decide_is_left_and_told(base: bytes, head: bytes, wanted: str) -> None:
    result = repair(base, head, PR)
    assert result.data == head
    assert wanted in spots(result.findings)


def test_what_can_be_mended_is_mended_beside_what_cannot() -> None:
    result = repair(BASE, log(FIRST, entry("a", link=78), SECOND, THIRD) + b"\n", PR)
    assert result.data == log(*HISTORY, entry("a", link=78))
    assert spots(result.findings) == ["23: link"]
    assert [step.split(": ")[1] for step in result.steps] == ["changelog-inserted"]


def test_without_a_number_placeholders_stay() -> None:
    head = log(*HISTORY, entry("a", link="XXX"))
    assert repair(BASE, head + b"\n", Context()).data == head


# -- random histories and edits ----------------------------------------------------------------------------------------

KEYS = st.sampled_from(["alpha", "beta", "gamma-*"])
TEXTS = st.sampled_from(["Why.", "# no comment", "a: b", "Wörter 添加", "x" * 90, "two  blanks"])
LINKS = st.sampled_from([11, 12, 77, "XXX", f"{LINK}XXX"])
EXTRAS = st.sampled_from(["", "", "  evals-only: true\n", "  scenario-type:\n    - agentic-coding\n", "    # note\n"])
ENTRIES = st.builds(entry, KEYS, TEXTS, LINKS, EXTRAS)
SEPARATORS = st.sampled_from(["\n\n", "\n\n", "\n", "\n  \n", "\n\n\n", "\n \n\n"])
TAILS = st.sampled_from(["\n", "\n", "", "\n\n", "\n  \n", "  \n"])


@dataclass(frozen=True)
class Case:
    base: bytes
    head: bytes


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A history, and what a careless author and a careless editor made of it."""
    history = draw(st.lists(ENTRIES, max_size=5))
    blanks = draw(st.lists(SEPARATORS, min_size=len(history), max_size=len(history)))
    base = "".join(one + gap for one, gap in zip(history, blanks, strict=True)).rstrip() + "\n" if history else ""
    base += draw(st.sampled_from(["", "", "  \n", "\n"])) if base else ""
    entries = list(history)
    for _ in range(draw(st.integers(0, 3))):
        entries.insert(draw(st.integers(0, len(entries))), draw(ENTRIES))
    for _ in range(draw(st.integers(0, 2))):
        if entries:
            at = draw(st.integers(0, len(entries) - 1))
            one = entries.pop(at)
            how = draw(st.sampled_from(["delete", "edit", "relink", "move"]))
            if how == "edit":
                entries.insert(at, one.replace("description:\n", f'description:\n    - "{draw(TEXTS)}"\n'))
            elif how == "relink":
                entries.insert(at, one.rsplit("\n", 1)[0] + f"\n  pr-link: {LINK}{draw(st.integers(11, 13))}")
            elif how == "move":
                entries.insert(draw(st.integers(0, len(entries))), one)
    gaps = draw(st.lists(SEPARATORS, min_size=len(entries), max_size=len(entries)))
    head = "".join(one + gap for one, gap in zip(entries, gaps, strict=True)).rstrip() + draw(TAILS)
    if draw(st.booleans()):
        head = "\n".join(line.rstrip() for line in head.split("\n"))
    if draw(st.integers(0, 3)) == 0:
        head = head.replace("\n", "\r\n")
    return Case(base.encode(), head.encode())


def said(data: bytes) -> Counter[str]:
    """What the entries of a file say, links aside."""
    return Counter(identity(block.data).content for block in Text("", data).blocks)


@given(cases())
def test_nothing_is_lost(case: Case) -> None:
    result = repair(case.base, case.head, PR)
    assert not said(case.head) - said(result.data)
    assert not said(case.base) - said(result.data)
    if result.data != case.head:
        assert all_links(case.head) <= all_links(result.data) | {PR.link(), "XXX", PR.link("XXX")}


def all_links(data: bytes) -> set[Any]:
    root = loads(data, "").root if data.strip() else []
    return {fields["pr-link"] for fields in root}


@given(cases())
def test_mending_twice_is_mending_once(case: Case) -> None:
    once = repair(case.base, case.head, PR).data
    twice = repair(case.base, once, PR)
    assert twice.data == once
    assert not twice.steps


@given(cases())
def test_only_links_and_mixed_changes_are_left(case: Case) -> None:
    result = repair(case.base, case.head, PR)
    rules = {finding.rule for finding in errors_of(result.findings)}
    if "changelog-mixed" in rules:
        # Of equal entries any one may be the new one, so a mixed change can be told as an insertion too.
        rules.discard("changelog-inserted")
    assert rules <= {"changelog-link", "changelog-mixed"}
    corrected = check(case.base, result.data, PR)[1].corrections
    if not corrected:
        assert result.data.startswith(case.base)


@given(cases())
def test_a_right_change_is_left_alone(case: Case) -> None:
    findings, verdict = check(case.base, case.head, Context())
    if not findings and verdict.change is not Change.REFUSED:
        assert repair(case.base, case.head, Context()).data == case.head
