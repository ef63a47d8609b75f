"""Chromium for the tests of pages: started once, and every page watched for errors and for requests that leave it."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Dialog, Page

__all__ = [
    "MARKUP", "attributes", "box", "checked_mode", "chromium", "flat", "focused", "is_dark", "link", "opened", "option",
    "table", "text", "visible",
]  # fmt: skip

MARKUP: Final = "</script><img src=x onerror=alert(1)>"
"""What would run, if a page took data for markup."""


# As root in a container, and quiet: nothing of the browser itself asks a network for anything.
_FLAGS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_INSTALL: Final = "apt-get install chromium && pip install playwright"


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; skips where there is none, or fails where it is wanted (REQUIRE_BROWSER=1)."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None or find_spec("playwright") is None:
        what = "chromium" if program is None else "playwright"
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail(f"a browser is wanted (REQUIRE_BROWSER=1), and {what} is not there: {_INSTALL}")
        pytest.skip(f"{what} is not there: {_INSTALL}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_FLAGS))
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Browser, file: Path, fragment: str = "", *, width: int = 1440, height: int = 900, **settings: Any
) -> Iterator[Page]:
    """A page in a window of its own. At the end: nothing went wrong in it, and it asked for nothing but itself."""
    context = browser.new_context(viewport={"width": width, "height": height}, **settings)
    page = context.new_page()
    page.set_default_timeout(10_000)
    told: list[str] = []

    def on_dialog(dialog: Dialog) -> None:
        told.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", lambda message: told.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: told.append(f"error: {error}"))
    page.on("dialog", on_dialog)
    context.on("request", lambda request: told.append(f"request: {request.url}"))
    page.goto(f"{file.as_uri()}{fragment}")
    yield page
    context.close()
    itself = f"request: {file.as_uri()}"
    assert [line for line in told if not (line == itself or line.startswith(f"{itself}#"))] == []
    assert any(line.startswith(itself) for line in told), "the first request was seen"


def box(page: Page, name: str) -> Any:
    found = page.locator(name).first.bounding_box()
    assert found is not None, name
    return found


def visible(page: Page) -> list[str]:
    return [link_.removeprefix("#") for link_ in attributes(page, ".chip", "href")]


def table(page: Page) -> list[list[str]]:
    """The row of the point that is shown: field, value, place."""
    found: list[list[str]] = page.locator("table.fields tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"
    )
    return found


def attributes(page: Page, selector: str, name: str) -> list[str]:
    found: list[str] = page.locator(selector).evaluate_all(
        "(nodes, name) => nodes.filter(node => node.checkVisibility()).map(node => node.getAttribute(name))", name
    )
    return found


def option(page: Page, facet: str, value: str) -> str:
    """The words of a choice, which end with how many points it has."""
    labels = page.locator(f"select[name={facet}] option").all_text_contents()
    [found] = [label for label in labels if label.startswith(f"{value} (")]
    return found


def link(page: Page) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('href')"))


def focused(page: Page) -> str:
    found = page.evaluate(
        "document.activeElement.id || document.activeElement.classList[0] || document.activeElement.name"
    )
    return str(found)


def checked_mode(page: Page) -> str:
    return str(page.locator("#modes input:checked").get_attribute("value"))


def is_dark(page: Page) -> bool:
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return max(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) < 100


def flat(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= (
            {f"{name}.{inner}": each for inner, each in value.items()} if isinstance(value, dict) else {name: value}
        )
    return found


def text(value: Any) -> str:
    """A value as the page writes it."""
    if isinstance(value, list):
        return "\n".join(map(text, value))
    return value if isinstance(value, str) else json.dumps(value)
