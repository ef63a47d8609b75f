"""The page as people use it, in a real browser. Screens are compared by structure: what is where, and what it says."""

from __future__ import annotations

import contextlib
import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from matrix.answers.side import open_side
from tests.answers.receipts import launched
from tests.changelog.support import Repository
from tests.cli.support import ROOT, cli
from tests.plan.support import RUNNERS, commit, single
from tests.report.browser import (
    attributes,
    box,
    checked_mode,
    flat,
    focused,
    is_dark,
    link,
    opened,
    option,
    table,
    text,
    visible,
)  # fmt: skip

if TYPE_CHECKING:
    from playwright.sync_api import Browser

POINT: Final = "dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark--agentic--1p-tp8-1d-tp8--c16--override_tp8_c16"
CONTRAST: Final = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
"""Every text on the screen whose contrast with what is behind it is below AA."""
CENTRES: Final = """nodes => nodes.map((node) => {
  const place = node.getBoundingClientRect();
  return [node.textContent, place.x + place.width / 2];
})"""
SIZES: Final = [(1440, 900), (390, 844)]
SCHEMES: Final = ["light", "dark"]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped search space with results of its first points and a plan of some of it."""
    folder = tmp_path_factory.mktemp("shipped")
    now = datetime.now(UTC)
    with contextlib.chdir(ROOT):
        with open_side(None) as side:
            points = list(side.points.values())
        for number, point in enumerate(points[:8]):
            launched(folder / "results", point, now - timedelta(days=10 * number), success=number != 5)
        plan = {"version": 1, "reason": "the label asks for it", "decision": "run", "canary": points[0].id}
        plan |= {"points": [point.row() for point in points[:4]], "left-out": []}
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        told = cli(
            "report", "-o", str(folder / "page.html"), "--results", str(folder / "results"),
            "--plan", str(folder / "plan.json"),
        )  # fmt: skip
    assert (told.status, told.out) == (0, ""), told.err
    return folder / "page.html"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """5,000 throughput points in 100 configs, and the accuracy runs that they mark."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "configs").mkdir()
    (folder / "configs" / "runners.yaml").write_text(RUNNERS, encoding="utf-8")
    ladder = f"[{', '.join(str(4 * number) for number in range(1, 26))}]"
    masters = "".join(single(f"model-{number:03}", ladder, ladder) for number in range(100))
    (folder / "configs" / "amd-master.yaml").write_text(masters, encoding="utf-8")
    with contextlib.chdir(folder):
        told = cli("report", "-o", "page.html")
    assert told.status == 0, told.err
    return folder / "page.html"


def test_what_is_seen_first(browser: Browser, shipped: Path) -> None:
    with opened(browser, shipped) as page:
        assert page.title() == page.inner_text("h1") == "Benchmark matrix"
        boxes = [box(page, name) for name in (".top", "#overview", "#tools", "#filters", "#matrix")]
        assert all(one["y"] + one["height"] <= other["y"] + 1 for one, other in pairwise(boxes))
        assert page.inner_text("#count") == "188 points"
        assert page.inner_text(".tile >> nth=0").split() == ["188", "points"]
        assert checked_mode(page) == "Plan"
        assert [text.split() for text in page.locator(".entry .number").all_inner_texts()][:2] == [["1"], ["3"]]
        assert "the label asks for it" in page.inner_text("section[aria-label=Plan]")
        # Each link stands below the head of its column.
        heads = dict(page.locator("#columns .cells span").evaluate_all(CENTRES))
        links = page.locator(".chip").evaluate_all(CENTRES)
        assert len(links) > 8
        assert all(abs(at - heads[conc.removesuffix("A")]) < 3 for conc, at in links if "-" not in conc)


def test_charts_have_axes_with_units_and_their_figures_as_a_table(browser: Browser, shipped: Path) -> None:
    with opened(browser, shipped, f"#{POINT}") as page:
        names = attributes(page, "svg.chart", "aria-label")
        assert names == [
            "GPU-hours per runner pool",
            "Concurrency ladder per topology (7 of 11)",
            "Golden curve: 3.01 tokens a step with 3 draft tokens, thinking on",
            "Concurrencies of dsv4-fp4-mi355x-atom-disagg-agentic-lmcache-dspark, agentic",
        ]
        units = page.locator("svg.chart .unit").all_text_contents()
        assert {"GPU-hours", "concurrency, clients, log scale", "tokens a step", "draft tokens"} <= set(units)
        assert page.locator("figure").count() == page.locator("figure table caption").count() == len(names)
        used = page.locator("svg.chart .dot.here").count()
        assert used >= 2, "the point is marked on its ladder, and the used level on its curve"


def test_search_and_filters_only_take_away(browser: Browser, shipped: Path) -> None:
    with opened(browser, shipped) as page:
        page.keyboard.press("/")
        assert focused(page) == "search"
        page.keyboard.type("DSPARK tp8_c16")
        assert page.inner_text("#count") == "2 of 188 points"
        assert visible(page) == [POINT, f"{POINT}--eval"]
        page.keyboard.press("Escape")
        assert page.inner_text("#count") == "188 points"
        assert page.evaluate("document.activeElement.className").startswith("chip")
        page.select_option("select[name=Framework]", label=option(page, "Framework", "atom-disagg"))
        some = int(page.inner_text("#count").split()[0])
        assert 0 < some < 188
        page.select_option("select[name=Run]", label=option(page, "Run", "accuracy"))
        assert 0 < int(page.inner_text("#count").split()[0]) < some
        page.fill("#search", "no such thing")
        assert page.is_visible("#nothing")
        assert page.locator(".chip").count() == 0
        page.click("#reset")
        assert page.inner_text("#count") == "188 points"
        assert page.is_hidden("#reset")


def test_the_legend_names_each_colour_by_word_and_mark_and_filters(browser: Browser, shipped: Path) -> None:
    with opened(browser, shipped) as page:
        for mode in ("Status", "Cost", "Coverage", "Plan"):
            page.check(f"input[value={mode}]")
            marks = attributes(page, "#legend button use", "href")
            assert len(set(marks)) == len(marks) >= 2
            assert sum(int(text) for text in page.locator("#legend .number").all_inner_texts()) == 188
        page.check("input[value=Coverage]")
        stale = page.locator("#legend button", has_text="stale")
        count = int(stale.locator(".number").inner_text())
        stale.click()
        assert page.inner_text("#count") == f"{count} of 188 points"
        assert all(label.endswith(", stale") for label in attributes(page, ".chip", "aria-label"))
        page.locator("#legend button", has_text="stale").click()
        assert page.inner_text("#count") == "188 points"


def test_a_point_has_an_address_and_everything_that_show_says(browser: Browser, shipped: Path) -> None:
    with contextlib.chdir(ROOT):
        record = json.loads(cli("show", POINT, "--format", "json").out)
        commands = cli("show", POINT, "--commands").out
    with opened(browser, shipped, f"#{POINT}") as page:
        assert page.inner_text("#point-title") == POINT
        assert page.title().startswith(POINT)
        rows = {name: (value, place) for name, value, place in table(page)}
        assert rows["image"] == (record["row"]["image"], record["sources"]["image"]["places"][0])
        assert rows["prefill.tp"] == ("8", record["sources"]["prefill.tp"]["places"][0])
        assert rows["digest"][0] == record["row"]["digest"]
        assert rows["conc"] == ("16", record["sources"]["conc"]["places"][0])
        assert list(rows) == list(record["sources"])
        for name, source in record["sources"].items():
            told = ", ".join(source["places"])
            assert rows[name][1] == (
                f"{told} ({source['note']})" if told and source["note"] else told or source["note"]
            )
        shown = page.locator("#point pre").all_text_contents()
        assert shown[0] == commands.split("\n\n")[0]
        assert list(shown[1:]) == [
            block.partition("\n")[2].rstrip("\n") for block in commands.rstrip().split("\n\n")[1:]
        ]
        assert "3.01" in page.inner_text("section[aria-label='Golden acceptance length']")
        assert page.locator(".chip[aria-current]").get_attribute("href") == f"#{POINT}"
        page.click("#point .close")
        assert page.is_hidden("#point")
        page.go_back()
        assert page.inner_text("#point-title") == POINT


def test_a_change_is_told_at_its_points(browser: Browser, tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    commit(repository, single("a", "[4, 16, 64]"))
    repository.write(single("a", "[4, 16, 32]", image="i:2").encode(), "configs/amd-master.yaml")
    with contextlib.chdir(repository.folder):
        told = cli("report", "-o", "page.html", "--diff", "HEAD")
        same = cli("report", "-o", "same.html", "--diff", "HEAD..HEAD")
    assert (told.status, same.status) == (0, 0), told.err + same.err
    with opened(browser, repository.folder / "page.html", "#a--8k1k--tp8--c16") as page:
        assert checked_mode(page) == "Change"
        card = page.inner_text("section[aria-label=Change]")
        assert "2 changed" in card
        assert page.locator("section[aria-label=Change] li").all_text_contents()[0] == "a--8k1k--tp8--c64"
        part = page.locator("#point section").first.locator("tbody tr")
        assert part.all_inner_texts() == ["image\ti:1\ti:2"]
        labels = attributes(page, ".chip", "aria-label")
        assert sum(label.endswith(", added") for label in labels) >= 1
    with opened(browser, repository.folder / "same.html", "#a--8k1k--tp8--c64") as page:
        assert "No change of any job." in page.inner_text("section[aria-label=Change]")
        # A commit is laid out in a folder of its own, of which nothing is told.
        assert {name: place for name, _, place in table(page)}["image"].startswith("HEAD:configs/amd-master.yaml:2:")


def test_every_point_of_the_page_is_the_point_that_expand_shows(browser: Browser, shipped: Path) -> None:
    with contextlib.chdir(ROOT), open_side(None) as side:
        rows = side.rows()
    with opened(browser, shipped) as page:
        # The script keeps its names to itself, so each point is asked for by its address.
        for name in list(rows)[::19]:
            page.goto(f"{shipped.as_uri()}#{name}")
            assert {name_: value for name_, value, _ in table(page)} == {
                key: text(value) for key, value in flat(rows[name]).items()
            }


def test_the_keyboard_is_enough(browser: Browser, shipped: Path) -> None:
    with opened(browser, shipped) as page:
        order = []
        for _ in range(40):
            page.keyboard.press("Tab")
            order.append(focused(page))
            if order[-1] == "chip":
                break
        assert order[:3] == ["skip", "theme", "search"]
        assert order[-1] == "chip"
        assert order.count("chip") == 1
        first = link(page)
        page.keyboard.press("ArrowRight")
        assert link(page) != first
        page.keyboard.press("ArrowLeft")
        assert link(page) == first
        page.keyboard.press("ArrowDown")
        below = link(page)
        assert below not in (None, first)
        page.keyboard.press("PageDown")
        assert link(page).split("--")[0] != below.split("--")[0]
        page.keyboard.press("End")
        chosen = link(page)
        page.keyboard.press("Enter")
        assert page.inner_text("#point-title") == chosen.removeprefix("#")
        assert focused(page) == "point"
        page.keyboard.press("Escape")
        assert page.is_hidden("#point")
        assert link(page) == chosen
        assert page.locator(".chip[tabindex='0']").count() == 1


def test_five_thousand_points_are_built_as_they_come_near(browser: Browser, large: Path) -> None:
    assert large.stat().st_size < 3_000_000
    with opened(browser, large) as page:
        whole = int(page.inner_text("#count").split()[0].replace(",", ""))
        assert whole > 5000
        assert 0 < page.locator(".chip").count() < 1500
        page.fill("#search", "model-042 agentic")
        assert page.locator(".config:visible").count() == 1
        page.fill("#search", "")
        last = page.locator(".config").last
        last.scroll_into_view_if_needed()
        last.locator(".chip").first.wait_for()
        assert last.locator(".chip").count() >= 50
        deep = "model-077--agentic--tp8--c48"
        page.goto(f"{large.as_uri()}#{deep}")
        assert page.inner_text("#point-title") == deep
        assert page.locator(f".chip[href='#{deep}']").is_visible()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_it_is_readable(browser: Browser, shipped: Path, scheme: Any, width: int, height: int) -> None:
    with opened(browser, shipped, width=width, height=height, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for mode in ("Plan", "Cost", "Coverage"):
            page.check(f"input[value={mode}]")
            assert page.evaluate(CONTRAST) == []
        page.goto(f"{shipped.as_uri()}#{POINT}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        aside = page.locator("#point")
        assert aside.evaluate("node => node.scrollWidth <= node.clientWidth")
        assert box(page, "#point")["width"] == min(width, 700)
        assert page.evaluate(CONTRAST) == []
        assert is_dark(page) == (scheme == "dark")
        page.click("#point .close")
        small = page.locator(".chip, button:visible, select:visible").evaluate_all(
            "nodes => nodes.map(node => node.getBoundingClientRect()).filter(b => b.width && b.height < 24).length"
        )
        assert small == 0, "a finger needs room"


def test_the_theme_can_be_chosen_and_is_kept(browser: Browser, shipped: Path) -> None:
    with opened(browser, shipped, color_scheme="light") as page:
        assert not is_dark(page)
        page.click("#theme")
        page.click("#theme")
        assert page.inner_text("#theme") == "Theme: dark"
        assert is_dark(page)
        page.reload()
        assert is_dark(page)


def test_the_focus_stays_in_a_point_that_covers_a_phone(browser: Browser, shipped: Path) -> None:
    inside = "document.activeElement === document.body || document.activeElement.closest('#point') !== null"
    with opened(browser, shipped, f"#{POINT}", width=390, height=844) as page:
        for _ in range(12):
            page.keyboard.press("Shift+Tab")
            assert page.evaluate(inside)
        page.keyboard.press("Escape")
        assert page.locator("main").evaluate("node => node.inert") is False
        page.set_viewport_size({"width": 1440, "height": 900})
        page.evaluate("id => { location.hash = id; }", POINT)
        page.wait_for_selector("#point-title")
        assert page.locator("main").evaluate("node => node.inert") is False


def test_controls_have_names(browser: Browser, shipped: Path) -> None:
    with opened(browser, shipped, f"#{POINT}") as page:
        tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
        roles = {"button", "link", "textbox", "searchbox", "combobox", "radio", "region", "group", "image", "table"}
        found = [node for node in tree if not node["ignored"] and node["role"]["value"] in roles]
        assert len(found) > 50
        unnamed = [node["role"]["value"] for node in found if not node.get("name", {}).get("value", "").strip()]
        assert [role for role in unnamed if role not in ("group", "table")] == []
        labels = [node["name"]["value"] for node in found if node["role"]["value"] == "link"]
        assert any(label.startswith("concurrency 16, throughput, ") for label in labels)


def test_paper(browser: Browser, shipped: Path) -> None:
    with opened(browser, shipped) as page:
        page.emulate_media(media="print")
        page.locator(".chip").nth(187).wait_for()
        assert page.locator(".chip").count() == 188
        assert page.is_hidden("#tools")
        assert page.pdf().startswith(b"%PDF-")
    with opened(browser, shipped, f"#{POINT}") as page:
        page.emulate_media(media="print")
        assert page.is_hidden("#matrix")
        assert page.is_hidden("#point .close")
        # The page is told of the medium by an event of its own.
        page.locator("#point details:not([open])").first.wait_for(state="detached")
        assert page.locator("#point").evaluate("node => getComputedStyle(node).position") == "static"


def test_the_policy_lets_nothing_out(browser: Browser, shipped: Path) -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            if self.path == "/page.html":
                self.wfile.write(shipped.read_bytes())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        context = browser.new_context()
        page = context.new_page()
        address = f"http://127.0.0.1:{server.server_port}"
        page.goto(f"{address}/page.html")
        assert page.locator(".chip").count() > 0
        assert page.evaluate("fetch('/leak').then(() => 'out', () => 'held')") == "held"
        page.evaluate(
            "new Image().src = '/leak';"
            "document.body.append(Object.assign(document.createElement('script'), { src: '/leak' }))"
        )
        page.evaluate("navigator.sendBeacon('/leak')")
        page.wait_for_timeout(100)
        context.close()
        server.shutdown()
    assert asked == ["/page.html"]
