"""Pages of odd search spaces, in a real browser: none or one point, hundreds on a line, long names, foreign markup."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.answers.side import open_side
from tests.answers.receipts import launched
from tests.cli.support import cli
from tests.plan.support import RUNNERS, single
from tests.report.browser import MARKUP, attributes, opened

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

LONG: Final = f"a{'-very-long-name' * 11}"
MASTERS: Final = {
    "none": single("a", "[4]"),
    "one": single("a", "[4]"),
    "many on a line": single("a", f"[{', '.join(map(str, range(1, 401)))}]") + single("b", "[4, 1024, 65536]"),
    "far apart": single("a", "[1, 4, 100000, 999999]", "[1, 7]"),
    "long names": single(LONG, "[4, 100000]", image=f"registry.example.com/{'x' * 300}:t").replace(
        f"org/{LONG}", f"org/{'M' * 200}"
    ).replace("{tp: 8,", "{tp: 8, ep: 8, dp-attn: true, dcp-size: 8, pp: 16, spec-decoding: mtp,"),
    "many configs": "".join(single(f"c{number:03}", "[4]") for number in range(300)),
    "short runs": single("a", "", "[1]"),
}  # fmt: skip
OUTSIDE: Final = """nodes => nodes.filter((node) => {
  const chart = node.closest('svg').getBoundingClientRect();
  const place = node.getBoundingClientRect();
  return place.left < chart.left - 1 || place.right > chart.right + 1;
}).map((node) => node.textContent)"""
OVERLAPPING: Final = """(svgs) => svgs.flatMap((svg) => {
  const rows = new Map();
  for (const node of svg.querySelectorAll('text:not(.unit)')) {
    const place = node.getBoundingClientRect();
    const row = Math.round(place.top);
    rows.set(row, [...(rows.get(row) ?? []), [place.left, place.right, node.textContent]]);
  }
  return [...rows.values()].flatMap((row) => row.sort((a, b) => a[0] - b[0])
    .filter((one, at) => at && one[0] < row[at - 1][1] - 0.5).map((one) => one[2]));
})"""
WIDER: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each."""
    found = {}
    for name, masters in MASTERS.items():
        folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
        (folder / "configs").mkdir()
        (folder / "configs" / "runners.yaml").write_text(RUNNERS, encoding="utf-8")
        (folder / "configs" / "amd-master.yaml").write_text(masters, encoding="utf-8")
        words = ("--min-conc", "99", "--allow-empty") if name == "none" else ()
        with contextlib.chdir(folder):
            told = cli("report", "-o", "page.html", *words)
        assert told.status == 0, told.err
        found[name] = folder / "page.html"
    return found


@pytest.mark.parametrize("name", MASTERS)
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_nothing_is_cut_off_and_nothing_overlaps(
    name: str, width: int, scheme: Any, browser: Browser, pages: dict[str, Path]
) -> None:
    with opened(browser, pages[name], width=width, height=844, color_scheme=scheme) as page:
        assert page.evaluate(WIDER) == 0
        assert page.locator("svg.chart text").evaluate_all(OUTSIDE) == []
        assert page.locator("svg.chart").evaluate_all(OVERLAPPING) == []
        told = page.inner_text("body").split()
        assert not {"false", "undefined", "null", "NaN", "Infinity", "[object"} & set(told)
        ticks = axis(page)
        assert len(ticks) == len(set(ticks)), ticks


def axis(page: Page) -> list[str]:
    """The labels of the axis of GPU-hours."""
    return page.locator("svg.chart").first.locator("text:not([class])").all_text_contents()[:-1] if page.locator(
        "svg.chart"
    ).count() else []  # fmt: skip


@pytest.mark.parametrize("name", MASTERS)
def test_the_keyboard_goes_through_every_page(name: str, browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages[name]) as page:
        if name == "none":
            assert page.inner_text("#nothing").startswith("There is no point to show")
            assert page.is_hidden("#columns")
            for key in ("/", "Escape", "ArrowDown", "Enter"):
                page.keyboard.press(key)
            return
        page.focus(".chip[tabindex='0']")
        for key in ("End", "PageDown", "ArrowDown", "Home", "ArrowLeft", "PageUp", "ArrowRight"):
            page.keyboard.press(key)
            assert page.evaluate("document.activeElement.classList[0]") == "chip"
        page.keyboard.press("Enter")
        assert page.is_visible("#point")
        assert page.evaluate(WIDER) == 0
        page.keyboard.press("Escape")
        assert page.is_hidden("#point")


@pytest.mark.parametrize("name", MASTERS)
def test_every_page_prints(name: str, browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages[name], width=794) as page:
        page.emulate_media(media="print")
        assert page.pdf(format="A4").startswith(b"%PDF")
        assert page.evaluate(WIDER) == 0


def test_each_of_many_marks_on_a_line_is_seen(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["many on a line"]) as page:
        marks = page.locator("svg.chart circle").evaluate_all(
            "nodes => nodes.map(node => [node.getBBox().width / 2, getComputedStyle(node).stroke])"
        )
        assert len(marks) == 402
        assert all(radius >= 1 for radius, _ in marks)
        assert [stroke for radius, stroke in marks if radius < 2 and stroke != "none"] == []
        assert len(attributes(page, "section[aria-label=a] .chip:not(.accuracy)", "href")) == 400


def test_the_mark_of_the_point_is_above_its_neighbours(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["many on a line"], "#a--8k1k--tp8--c200") as page:
        hidden = page.locator("#point svg.chart .dot.here").evaluate_all(
            "nodes => nodes.filter(node => { let next = node; while ((next = next.nextElementSibling))"
            " if (next.matches('circle') && next.getAttribute('cy') === node.getAttribute('cy')) return true; })"
        )
        assert page.locator("#point svg.chart .dot.here").count() == 1
        assert hidden == []


def test_the_legend_names_accuracy_runs_only_where_there_are_some(browser: Browser, pages: dict[str, Path]) -> None:
    for name, told in {"one": 0, "short runs": 1, "far apart": 1}.items():
        with opened(browser, pages[name]) as page:
            assert page.locator("#legend .note").count() == told
            assert page.locator("#legend").evaluate("node => [...node.childNodes].every(child => child.nodeType === 1)")


def test_one_point_is_counted_as_one(tmp_path: Path, pages: dict[str, Path]) -> None:
    with contextlib.chdir(pages["one"].parent):
        assert cli("report", "-o", str(tmp_path / "p.html")).err.split(": ")[1].startswith("1 point, ")


def test_markup_in_any_text_stays_text(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "<b>&amp;"
    (folder / "configs").mkdir(parents=True)
    (folder / "configs" / "runners.yaml").write_text(RUNNERS, encoding="utf-8")
    master = single("a", image=f'"{MARKUP}"').replace("org/a", f'"{MARKUP} @DATA@ @SCRIPT@"')
    (folder / "configs" / "amd-master.yaml").write_text(master, encoding="utf-8")
    with contextlib.chdir(folder):
        with open_side(None) as side:
            point = next(iter(side.points.values()))
            launched(folder / MARKUP.replace("/", "_"), point, datetime.now(UTC))
            record = {"version": 1, "reason": MARKUP, "decision": MARKUP, "points": [point.row()]}
            record |= {"left-out": [{"what": point.id, "rule": MARKUP, "reason": MARKUP}], "mode": {"label": MARKUP}}
        (folder / "plan.json").write_text(json.dumps(record), encoding="utf-8")
        told = cli("report", "-o", "page.html", "--results", ".", "--plan", "plan.json", "--title", MARKUP)
    assert told.status == 0, told.err
    page_text = (folder / "page.html").read_text(encoding="utf-8")
    assert page_text.count("</script>") == 2
    with opened(browser, folder / "page.html", f"#{point.id}") as page:
        assert page.inner_text("h1") == MARKUP
        assert page.locator("img").count() == 0
        assert MARKUP in page.inner_text("section[aria-label=Plan]")
        values = page.inner_text("table.fields")
        assert f"{MARKUP} @DATA@ @SCRIPT@" in values
        assert page.locator(".config .about").inner_text().startswith(MARKUP)
    with opened(browser, folder / "page.html", "#%3Cimg%20src=x%20onerror=alert(1)%3E") as page:
        assert "<img src=x onerror=alert(1)>" in page.inner_text("#point")


def test_a_server_that_did_nothing_has_a_chart(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "runners.yaml").write_text(RUNNERS, encoding="utf-8")
    (tmp_path / "configs" / "amd-master.yaml").write_text(single("a"), encoding="utf-8")
    with contextlib.chdir(tmp_path):
        with open_side(None) as side:
            points = [point for point in side.points.values() if not point.eval_only][:2]
        for point in points:
            idle = {"conc": point.concs[0], "total-tokens-per-second": 0}
            launched(tmp_path / "results", point, datetime.now(UTC), figures=(idle,))
        told = cli("report", "-o", "page.html", "--results", "results")
    assert told.status == 0, told.err
    with opened(browser, tmp_path / "page.html", f"#{points[0].id}") as page:
        chart = page.locator("#point svg.chart").first
        assert chart.locator(".unit").all_text_contents() == ["tokens/s", "concurrency, clients, log scale"]
