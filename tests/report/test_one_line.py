"""What somebody wrote into a file is quoted on one line, and neither a terminal nor a log of GitHub obeys it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.findings import Finding, Span, one_line
from matrix.report.findings import print_findings
from matrix.report.markdown import cell
from tests.changelog.support import BASE, Repository, entry
from tests.cli.support import MASTER, RUNNERS, cli

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "k\\n::add-mask::x\\e[31m ##[add-mask]y"
"""As a quoted text of YAML has it."""


def obeyed(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line or "\x1b" in line]


@given(st.text())
def test_any_text(text: str) -> None:
    shown = one_line(text)
    assert shown.isprintable()
    assert obeyed(shown) == []
    assert shown.encode().decode() == shown


@given(st.text(alphabet=st.characters(categories=("L", "N")), max_size=40))
def test_plain_text_stays(text: str) -> None:
    assert one_line(text) == text


@given(st.text())
def test_a_cell_of_a_table_hides_nothing(text: str) -> None:
    assert cell(text).isprintable()


@pytest.mark.parametrize("place", ["::add-mask::x.yaml", "a\n::error::b.yaml", "##[error].yaml"])
def test_the_name_of_a_file(place: str) -> None:
    stream = io.StringIO()
    print_findings([Finding("rule", "what.", "fix", Span(place, 1, 2))], stream)
    assert stream.getvalue().count("\n") == 1
    assert obeyed(stream.getvalue()) == []


def test_a_key_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = Repository(tmp_path)
    clone.write(MASTER.encode(), "configs/a-master.yaml")
    clone.write(RUNNERS.encode(), "configs/runners.yaml")
    clone.commit(BASE)
    clone.git("switch", "--quiet", "--create", "feature")
    clone.commit(BASE + b"\n" + entry("alpha", "New.").replace("alpha", f'"{EVIL}"').encode())
    monkeypatch.chdir(tmp_path)
    outcome = cli("changelog", "check", "--base-ref", "main", "--pr", "77")
    assert outcome.status == 1
    assert "k\\n::add-mask::x" in outcome.err
    assert obeyed(outcome.err) == []


def test_the_model_in_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.yaml").write_text(MASTER.replace("model: org/M", f'model: "{EVIL}"'), encoding="utf-8")
    (tmp_path / "r.yaml").write_text(RUNNERS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    outcome = cli("expand", "--config", "m.yaml", "--runners", "r.yaml")
    assert outcome.status == 0
    assert "k\\n::add-mask::x" in outcome.out
    assert obeyed(outcome.out) == []
