"""Chromium for the tests of pages: started once, and every page watched for errors and for requests that leave it."""

from __future__ import annotations

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

__all__ = ["chromium", "opened"]

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
