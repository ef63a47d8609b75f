"""How findings are told to GitHub: nothing in their text is read as a command, a property or markup."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matrix.findings import Finding, Related, Severity, Span
from matrix.report.github import annotation_lines
from matrix.report.markdown import cell, findings_table

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
FINDINGS = st.builds(
    Finding,
    rule=TEXT,
    message=TEXT,
    fix=TEXT,
    span=st.none() | st.builds(Span, TEXT, st.integers(0, 99), st.integers(0, 99)),
    severity=st.sampled_from(Severity),
    related=st.lists(st.builds(Related, st.builds(Span, TEXT, st.integers(0, 99)), TEXT), max_size=2).map(tuple),
)


def unescaped(text: str, *, inside: bool) -> str:
    """As the runner of GitHub Actions does it: each mark once, the percent sign last."""
    marks = {"%0D": "\r", "%0A": "\n", **({"%3A": ":", "%2C": ","} if inside else {})}
    for mark, meant in marks.items():
        text = text.replace(mark, meant)
    return text.replace("%25", "%")


@given(st.lists(FINDINGS, max_size=4))
def test_an_annotation_is_one_line_and_comes_back_whole(findings: list[Finding]) -> None:
    lines = list(annotation_lines(findings))
    assert len(lines) == len(findings)
    for line, finding in zip(lines, findings, strict=True):
        assert "\n" not in line
        assert "\r" not in line
        command, properties, data = line.removeprefix("::").partition(" ")[0], *line.split("::", 2)[1:]
        assert command == finding.severity
        pairs = dict(pair.split("=", 1) for pair in properties.partition(" ")[2].split(","))
        assert unescaped(pairs["title"], inside=True) == finding.rule
        if finding.span is not None:
            assert unescaped(pairs["file"], inside=True) == finding.span.file
            assert pairs.get("line", "0") == str(finding.span.line)
            assert pairs.get("col", "0") == str(finding.span.column)
        message = unescaped(data, inside=False)
        assert message.startswith(finding.message)
        assert not finding.fix or message.endswith(f"fix: {finding.fix}")


def test_an_annotation_of_a_whole_file_has_no_line() -> None:
    finding = Finding("recipe-unreferenced", "no entry names this recipe.", span=Span("a.yaml"))
    assert list(annotation_lines([finding])) == [
        "::error file=a.yaml,title=recipe-unreferenced::no entry names this recipe."
    ]


@given(st.lists(FINDINGS, min_size=1, max_size=4))
def test_a_table_has_a_row_a_finding_and_five_columns(findings: list[Finding]) -> None:
    lines = list(findings_table(findings))
    assert len(lines) == len(findings) + 2
    for line in lines[2:]:
        assert len(line.splitlines()) == 1
        bare = line.replace("\\\\", "").replace("\\|", "")
        assert bare.count("|") == 6


@given(TEXT)
def test_a_cell_is_text(text: str) -> None:
    shown = cell(text)
    for mark in "<>`*_[]@#":
        assert shown.replace("\\\\", "").count(mark) == shown.replace("\\\\", "").count(f"\\{mark}")


def test_nothing_found_is_no_table() -> None:
    assert list(findings_table([])) == []
