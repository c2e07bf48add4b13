"""The agent's report in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.fakes.runs import a_run

from bench_agent.output.report import page
from bench_agent.output.report.figures import report_of


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_a_browser_shows_it_without_scrolling_sideways(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    path = tmp_path / "report.html"
    path.write_text(page.html(report_of(a_run())))
    shown = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    shown.goto(path.as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    ground, ink = (
        [
            int(n)
            for n in re.findall(r"\d+", shown.evaluate(f"getComputedStyle(document.body).{name}"))
        ]
        for name in ("backgroundColor", "color")
    )
    assert (sum(ground) > sum(ink)) == (scheme == "light")
    longest = shown.locator(".fill").first.bounding_box()
    assert longest is not None
    assert longest["width"] > 100
    shown.close()
