"""The browser of page tests and screenshots: one of this machine, else Playwright's."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Error, Playwright, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MACOS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
QUIET = (
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
START_SECONDS = 30


class NoBrowser(Exception):
    """No browser starts on this machine."""


@contextmanager
def open_browser() -> Iterator[Browser]:
    """The first browser that starts; raises NoBrowser if none does."""
    with sync_playwright() as playwright:
        opened = _start(playwright)
        yield opened
        opened.close()


def starts() -> bool:
    """Whether a browser starts: one that is there may lack a library, or be a stub."""
    try:
        with open_browser():
            return True
    except NoBrowser:
        return False


def _start(playwright: Playwright) -> Browser:
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    arguments = [*QUIET, "--no-sandbox"] if root else [*QUIET]
    for path in _paths():
        try:
            return playwright.chromium.launch(
                executable_path=path, args=arguments, timeout=START_SECONDS * 1000
            )
        except Error:
            continue
    raise NoBrowser("no browser starts on this machine")


def _paths() -> Iterator[str | None]:
    if chosen := os.environ.get("CHROME"):
        yield chosen
    yield from filter(None, map(shutil.which, NAMES))
    yield from filter(os.path.exists, MACOS)
    yield None
