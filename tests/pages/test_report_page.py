"""The agent's report in a real browser."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from tests.fakes import results
from tests.fakes.outboxes import put
from tests.fakes.runs import a_run
from tests.pages.conftest import Site
from typer.testing import CliRunner

from bench_agent.cli.main import app
from bench_agent.output.report.figures import report_of
from bench_agent.output.report.page import html
from bench_agent.remote.outbox import Outbox
from bench_protocol.catalogue.matrix import Device


def test_a_browser_shows_it_without_scrolling_sideways(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(html(report_of(a_run())))
    page.goto(path.as_uri())
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for chart in page.locator("figure").all():
            assert chart.is_visible() == (chart.locator("xpath=ancestor::details").count() == 0)
        longest = page.locator(".fill").first.bounding_box()
        assert longest is not None
        assert longest["width"] > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ground_and_ink_follow_the_scheme(page: Page, tmp_path: Path, scheme: Any) -> None:
    path = tmp_path / "report.html"
    path.write_text(html(report_of(a_run())))
    page.emulate_media(color_scheme=scheme)
    page.goto(path.as_uri())
    ground, ink = (
        sum(map(int, re.findall(r"\d+", page.evaluate(f"getComputedStyle(document.body).{name}"))))
        for name in ("backgroundColor", "color")
    )
    assert (ground > ink) == (scheme == "light")


def test_with_a_server_it_has_the_rank_and_the_hardware_above_and_below(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    outbox = Outbox(tmp_path / "outbox")
    cell = results.make_cell("fashion-mlp", device=Device(kind="metal"))
    machine = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
    entry = put(outbox, results.make_result(cell=cell, machine=machine, step_ns=240_000))
    outbox.move(entry, "sent", {"id": site.measured})
    answer = CliRunner().invoke(app, ["report", "--server", site.address, "--output", "-"])
    assert answer.exit_code == 0, answer.stderr
    assert (
        f"This hardware is 2nd of 4 on fashion-mlp. Its page: <code>{site.address}/machines/"
        in answer.stdout
    )
    assert "1st: NVIDIA H200, tensorflow tuned" in answer.stdout
    assert "3rd: Apple M2 Max (12-core CPU), tensorflow naive" in answer.stdout
