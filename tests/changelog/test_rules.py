"""Every rule by example: base and head in, the place and name of each finding out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.changelog.context import Context, Stage
from matrix.changelog.rules import Change, check
from matrix.findings import Severity
from tests.changelog.support import BASE, HISTORY, LINK, NEW, PR, entry, log, spots

MAIN = Context(stage=Stage.MERGE)
MERGE = Context(number=77, stage=Stage.MERGE)
FIRST, SECOND, THIRD = HISTORY


def swap(data: bytes, old: str, new: str) -> bytes:
    assert old.encode() in data
    return data.replace(old.encode(), new.encode())


def added(*entries: str) -> bytes:
    return log(*HISTORY, *entries)


RIGHT = {
    "nothing": (BASE, BASE, PR, Change.NONE, 0, 0),
    "one entry": (BASE, added(NEW), PR, Change.ADDITIONS, 1, 0),
    "two entries": (BASE, added(NEW, NEW), PR, Change.ADDITIONS, 2, 0),
    "the first entry of all": (b"", log(NEW), PR, Change.ADDITIONS, 1, 0),
    "a new file with a comment": (b"", b"# $schema: x\n" + log(NEW), PR, Change.ADDITIONS, 1, 0),
    "after a comment alone": (b"# log\n", b"# log\n\n" + log(NEW), PR, Change.ADDITIONS, 1, 0),
    "base that ends with an empty line": (BASE + b"\n", BASE + b"\n" + log(NEW), PR, Change.ADDITIONS, 1, 0),
    "base that ends with blanks": (BASE + b"  \n", BASE + b"  \n\n" + log(NEW), PR, Change.ADDITIONS, 1, 0),
    "placeholder on a pull request": (BASE, added(entry("a", link="XXX")), PR, Change.ADDITIONS, 1, 0),
    "long placeholder": (BASE, added(entry("a", link=f"{LINK}XXX")), PR, Change.ADDITIONS, 1, 0),
    "number unknown": (BASE, added(entry("a", link=5)), Context(), Change.ADDITIONS, 1, 0),
    "on main": (BASE, added(entry("a", link=5)), MAIN, Change.ADDITIONS, 1, 0),
    "a comment inside an entry": (BASE, added(entry("a", extra="    # b\n")), PR, Change.ADDITIONS, 1, 0),
    "letters beyond ASCII": (BASE, added(entry("a", "添加")), PR, Change.ADDITIONS, 1, 0),
    "after letters beyond ASCII": (log(entry("a", "添加")), log(entry("a", "添加"), NEW), PR, Change.ADDITIONS, 1, 0),
    "a link corrected": (swap(BASE, f"{LINK}12", "XXX"), BASE, PR, Change.CORRECTIONS, 0, 1),
    "every link corrected": (BASE, swap(BASE, "pull/1", "pull/2"), MAIN, Change.CORRECTIONS, 0, 3),
}  # fmt: skip


@pytest.mark.parametrize(("base", "head", "context", "change", "added", "corrected"), RIGHT.values(), ids=RIGHT)
def test_right(base: bytes, head: bytes, context: Context, change: Change, added: int, corrected: int) -> None:
    findings, verdict = check(base, head, context)
    assert not findings
    assert (verdict.change, len(verdict.additions), len(verdict.corrections)) == (change, added, corrected)


WRONG = {
    # bytes
    "no newline": (BASE, added(NEW)[:-1], PR, ["23: newline"]),
    "no newline in the base": (BASE[:-1], added(NEW), PR, ["17: newline"]),
    "CRLF in what is new": (BASE, BASE + log(NEW).replace(b"\n", b"\r\n"), PR, ["18: separator", "18: cr"]),
    "CRLF everywhere": (BASE, added(NEW).replace(b"\n", b"\r\n"), PR, ["1: cr"]),
    "a lone CR": (BASE, added(entry("a", "b\rc")), PR, ["22: cr"]),
    "a tab in a text": (BASE, added(entry("a", "b\tc")), PR, ["22: tab"]),
    "tabs that indent": (BASE, BASE + b"\n" + log(NEW).replace(b"    -", b"\t-"), PR, ["20: tab"]),
    "NUL": (BASE, added(entry("a", "b\0c")), PR, ["22: nul"]),
    "not UTF-8": (BASE, BASE + b"\n" + log(NEW).replace(b"Bump", b"\xff"), PR, ["22: encoding"]),
    "byte order mark": (BASE, b"\xef\xbb\xbf" + added(NEW), PR, ["1: encoding"]),
    # separators and the end
    "no empty line": (BASE, BASE + log(NEW), PR, ["18: separator"]),
    "two blanks": (BASE, BASE + b"  \n" + log(NEW), PR, ["18: separator"]),
    "two empty lines": (BASE, BASE + b"\n\n" + log(NEW), PR, ["19: separator"]),
    "an empty line too many": (BASE + b"\n", BASE + b"\n\n" + log(NEW), PR, ["19: separator"]),
    "a comment between": (BASE, BASE + b"\n# mine\n" + log(NEW), PR, ["18: separator"]),
    "no empty line between new ones": (BASE, added(NEW) + log(NEW), PR, ["24: separator"]),
    "three empty lines between new ones": (BASE, added(NEW) + b"\n\n\n" + log(NEW), PR, ["25: separator"]),
    "an empty line at the end": (BASE, added(NEW) + b"\n", PR, ["24: tail"]),
    "the document ended": (BASE, added(NEW) + b"...\n", PR, ["24: tail"]),
    "only an empty line added": (BASE, BASE + b"\n", PR, ["18: changed"]),
    "only a comment added": (BASE, BASE + b"# hello\n", PR, ["18: changed"]),
    # history
    "deleted": (BASE, log(FIRST, THIRD), PR, ["7: deleted"]),
    "deleted at the end": (BASE, log(FIRST, SECOND), PR, ["12: deleted"]),
    "two deleted": (BASE, log(THIRD), PR, ["1: deleted"]),
    "deleted and added": (BASE, log(FIRST, THIRD, NEW), PR, ["7: deleted"]),
    "all deleted": (BASE, b"", PR, ["1: deleted"]),
    "inserted": (BASE, log(FIRST, NEW, SECOND, THIRD), PR, ["7: inserted"]),
    "two inserted": (BASE, log(FIRST, NEW, NEW, SECOND, THIRD), PR, ["7: inserted"]),
    "inserted at the top": (BASE, log(NEW, *HISTORY), PR, ["1: inserted"]),
    "inserted here and there": (BASE, log(NEW, FIRST, NEW, SECOND, THIRD, NEW), PR, ["1: inserted", "13: inserted"]),
    "moved": (BASE, log(SECOND, FIRST, THIRD), PR, ["1: moved"]),
    "a word changed": (BASE, swap(BASE, "Second", "2nd"), PR, ["10: changed"]),
    "a field added to the last entry": (BASE, BASE + b"  evals-only: true\n", PR, ["18: changed"]),
    "a field added, and an entry": (BASE, BASE + b"  evals-only: true\n\n" + log(NEW), PR, ["18: changed"]),
    "a field added in the middle": (BASE, swap(BASE, "11\n", "11\n  no-evals: true\n"), PR, ["6: changed"]),
    "quotes changed": (BASE, swap(BASE, '"Second."', "'Second.'"), PR, ["10: changed"]),
    "blanks stripped": (swap(BASE, "12\n", "12 \n"), BASE, PR, ["11: whitespace"]),
    "blanks stripped everywhere": (BASE.replace(b"\n", b" \n"), BASE, PR, ["1: whitespace"]),
    "blanks stripped, entry added": (swap(BASE, "12\n", "12 \n"), added(NEW), PR, ["11: whitespace"]),
    "empty line lost": (BASE, swap(BASE, "11\n\n", "11\n"), PR, ["6: whitespace"]),
    "blank line stripped at the end": (BASE + b"  \n", added(NEW), PR, ["18: whitespace"]),
    "top comment changed": (b"# a\n" + BASE, b"# b\n" + BASE, PR, ["1: changed"]),
    # links
    "no link": (BASE, added('- config-keys:\n    - a\n  description:\n    - "b"'), PR, ["19: field"]),
    "another number": (BASE, added(entry("a", link=78)), PR, ["23: link"]),
    "another repository": (BASE, added(entry("a", link="https://github.com/o/n/pull/77")), PR, ["23: link"]),
    "a link to its files": (BASE, added(entry("a", link=f"{LINK}77/files")), PR, ["23: link"]),
    "no link at all": (BASE, added(entry("a", link="soon")), PR, ["23: link"]),
    "placeholder on main": (BASE, added(entry("a", link="XXX")), MAIN, ["23: link"]),
    "placeholder at the merge": (BASE, added(entry("a", link="XXX")), MERGE, ["23: link"]),
    "corrected to a placeholder": (BASE, swap(BASE, f"{LINK}12", "XXX"), PR, ["11: link"]),
    "corrected to another repository": (BASE, swap(BASE, "InferenceX/pull/12", "Other/pull/12"), PR, ["11: link"]),
    "corrected and added": (swap(BASE, f"{LINK}12", "XXX"), added(NEW), PR, ["11: mixed"]),
    "corrected, with blanks elsewhere": (swap(BASE, "11\n", "11 \n"), swap(BASE, "12", "14"), PR, ["5: whitespace"]),
    # fields
    "unknown field": (BASE, added(entry("a", extra="  why: b\n")), PR, ["21: field"]),
    "two faults in one": (BASE, added(entry("a", link="x", extra="  no-evals: 1\n")), PR,
        ["21: field", "24: link"]),
    "no-evals with evals-only": (BASE, added(entry("a", extra="  no-evals: true\n  evals-only: true\n")), PR,
        ["22: exclusive"]),
    "append-only with an eval choice": (BASE,
        added(entry("a", extra="  append-only: true\n  eval-min-prefill-ep: 8\n")),
        PR, ["22: exclusive"]),
    "a key twice": (BASE, added(NEW + "\n  pr-link: XXX"), PR, ["24: yaml-duplicate-key"]),
    "config-keys not first": (BASE, added('- description: ["b"]\n  config-keys: [a]\n  pr-link: XXX'), PR,
        ["19: entry-start"]),
    "indented": (BASE, BASE + b"\n  " + log(NEW), PR, ["19: yaml-syntax"]),
    "not a mapping": (BASE, BASE + b"\n- alpha\n", PR, ["19: field"]),
    "an entry in a text": (BASE, added(entry("a", 'b\n- config-keys: ')), PR, ["23: entry-inside"]),
    "root is a mapping": (b"", b"config-keys: []\n", PR, ["1: root"]),
    "broken base": (BASE + b"- [\n", BASE + b"- [\n\n" + log(NEW), PR, ["19: yaml-syntax"]),
    # conflicts
    "conflict": (BASE, BASE + b"\n<<<<<<< a\n" + log(NEW) + b"=======\n" + log(NEW) + b">>>>>>> b\n", PR,
        ["19: conflict-marker"]),
    "conflict, diff3": (BASE, BASE + b"<<<<<<< a\nx\n||||||| o\ny\n=======\nz\n>>>>>>> b\n", PR,
        ["18: conflict-marker"]),
    "rest of a conflict": (BASE, added(NEW) + b">>>>>>> b\n", PR, ["24: conflict-marker"]),
    "two conflicts": (BASE, BASE + 2 * b"<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n", PR,
        ["18: conflict-marker", "23: conflict-marker"]),
}  # fmt: skip


@pytest.mark.parametrize(("base", "head", "context", "wanted"), WRONG.values(), ids=WRONG)
def test_wrong(base: bytes, head: bytes, context: Context, wanted: list[str]) -> None:
    findings, verdict = check(base, head, context)
    assert spots(findings) == wanted
    assert verdict.change is Change.REFUSED
    assert all(finding.fix and finding.message.endswith(".") for finding in findings)


def test_blanks_at_the_end_are_told_and_accepted() -> None:
    findings, verdict = check(BASE, added(NEW) + b"  \n", PR)
    assert spots(findings) == ["24: tail"]
    assert findings[0].severity is Severity.WARNING
    assert verdict.change is Change.ADDITIONS


def test_additions_of_a_refused_change_are_told() -> None:
    """Their keys are checked in the same report."""
    _, verdict = check(BASE, log(FIRST, NEW, THIRD, entry("beta", link="bad")), PR)
    assert [entry.config_keys for entry in verdict.additions] == [("alpha",), ("beta",)]


def test_a_fault_of_the_base_is_told_once_and_as_such() -> None:
    broken = swap(BASE, "description", "descriptoin")
    findings, _ = check(broken, broken + b"\n" + log(NEW), PR)
    assert len(findings) == 6
    assert all("the base file has this fault already" in finding.message for finding in findings)
    assert {finding.span.file for finding in findings if finding.span} == {PR.base_name}


def test_a_base_fault_that_the_head_repeats_elsewhere_is_told_of_both() -> None:
    broken = swap(BASE, "Second", "Sec\tond")
    findings, _ = check(broken, broken + b"\n" + log(entry("a", "b\tc")), PR)
    assert [(finding.span.file, finding.span.line) for finding in findings if finding.span] == [
        (PR.base_name, 10),
        (PR.head_name, 22),
    ]


@pytest.mark.parametrize(("base", "head", "context", "wanted"), WRONG.values(), ids=WRONG)
def test_the_first_wrong_byte_is_named(base: bytes, head: bytes, context: Context, wanted: list[str]) -> None:
    """The byte that a message names lies in the line that its place names."""
    del wanted
    for finding in check(base, head, context)[0]:
        if (found := re.search(r"First wrong byte: (\d+)\.", finding.message)) and finding.span:
            data = base if finding.span.file == context.base_name else head
            assert data.count(b"\n", 0, int(found[1])) + 1 == finding.span.line


PIECES = st.sampled_from([*HISTORY, NEW, entry("beta", link="XXX"), entry("gamma", link=5), "", " ", "  ", "# note"])


@given(st.lists(PIECES, max_size=7), st.lists(PIECES, max_size=8), st.sampled_from([PR, MAIN, Context()]))
def test_accepted_means_the_exact_rule(base: list[str], head: list[str], context: Context) -> None:
    """Whatever the explanations say: a change is accepted when the byte rules hold, and refused when they do not."""
    before, after = ("\n".join([*lines, ""]).encode() for lines in (base, head))
    findings, verdict = check(before, after, context)
    refused = any(finding.severity is Severity.ERROR for finding in findings)
    assert (verdict.change is Change.REFUSED) == refused
    if refused:
        return
    if after.startswith(before):
        gap = b"" if not before.strip() or before.endswith(b"\n\n") else b"\n"
        suffix = after[len(before) :]
        assert not suffix or not before.strip() or suffix.startswith(gap + b"- config-keys:")
        assert not suffix or not after.endswith(b"\n\n")
    else:
        pairs = list(zip(before.split(b"\n"), after.split(b"\n"), strict=True))
        changed = [line for pair in pairs if pair[0] != pair[1] for line in pair]
        assert all(line.startswith(b"  pr-link:") for line in changed)
        assert len(changed) == 2 * len(verdict.corrections)
