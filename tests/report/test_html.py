"""What a page is made of, without a browser: its data, its policy, its size and how it is written."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from matrix.answers.side import open_side
from matrix.report.html import TEMPLATES, page_html
from matrix.report.page import page_record
from tests.cli.support import cli, repository

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(repository(tmp_path))
    return tmp_path


def data(page: str) -> dict[str, Any]:
    [found] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    record: dict[str, Any] = json.loads(found)
    return record


@pytest.mark.usefixtures("folder")
def test_the_page_holds_its_record_and_is_the_same_each_time() -> None:
    with open_side(None) as side:
        record = page_record(side, NOW, "t")
        page = page_html(record, "t")
        assert page_html(page_record(side, NOW, "t"), "t") == page
    assert data(page) == json.loads(json.dumps(record))
    assert len(record["points"]) == 3


def test_data_is_never_markup_nor_a_mark_of_the_template() -> None:
    hostile = "</script><!--<script>@SCRIPT@ @STYLE@ &\u2028\udc80"
    page = page_html({"version": 1, "title": hostile, "figure": float("nan")}, hostile)
    assert data(page)["title"] == hostile
    assert data(page)["figure"] == "nan"
    assert page.count("<script") == 2
    assert page.count("<!--") == 0
    assert page.encode("utf-8", "surrogateescape")


@pytest.mark.usefixtures("folder")
def test_the_policy_names_the_one_script_and_the_one_style() -> None:
    page = page_html({"version": 1}, "t")
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    for kind, text in (("style", r"<style>(.*?)</style>"), ("script", r"<script>(.*?)</script>")):
        [inside] = re.findall(text, page, flags=re.DOTALL)
        wanted = b64encode(sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src &#x27;sha256-{wanted}&#x27;" in policy
    assert policy.startswith("default-src &#x27;none&#x27;;")
    assert "unsafe" not in policy


def test_no_address_and_no_way_to_make_markup_of_text() -> None:
    for path in TEMPLATES.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.findall(r"https?:|url\(|@import|\bsrc=", text), path.name
        assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text), (
            path.name
        )


def test_the_file_is_whole_or_what_it_was(folder: Path) -> None:
    told = cli("report", "-o", "page.html")
    assert (told.status, told.out) == (0, "")
    assert told.err.endswith("page.html: 3 points, 0.1 MB\n")
    before = (folder / "page.html").read_bytes()
    (folder / "configs" / "amd-master.yaml").write_text("alpha: [", encoding="utf-8")
    assert cli("report", "-o", "page.html").status == 1
    assert (folder / "page.html").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["configs", "page.html"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("-o", "missing/page.html"), 1, "file-unwritable"),
        (("-o", "page.html", "--plan", "missing.json"), 1, "missing.json"),
        (("-o", "page.html", "--results", "missing"), 1, "results-missing"),
        (("-o", "page.html", "--diff", "HEAD"), 1, "git-repository"),
        (("-o", "page.html", "--ids", "*--c999"), 3, "no point is selected"),
        (("-o", "page.html", "--min-conc", "999"), 3, "no point is selected"),
        ((), 2, "--output"),
    ],
)
def test_what_is_refused(folder: Path, words: tuple[str, ...], status: int, said: str) -> None:
    told = cli("report", *words)
    assert (told.status, told.out) == (status, "")
    assert said in told.err
    assert not (folder / "page.html").exists()


@pytest.mark.usefixtures("folder")
def test_standard_output_and_a_selection() -> None:
    told = cli("report", "-o", "-", "--conc", "16", "--no-evals", "--title", "Mine", "--assume", "30")
    record = data(told.out)
    assert (told.status, len(record["points"]), record["title"]) == (0, 1, "Mine")
    assert record["points"][0][3] == 4.0, "eight GPUs, half an hour"
    assert record["bases-of-length"][record["points"][0][4]] == "assumed"
    empty = cli("report", "-o", "-", "--min-conc", "999", "--allow-empty")
    assert (empty.status, data(empty.out)["points"]) == (0, [])
