"""The agent's report in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.fakes import results
from tests.fakes.outboxes import put
from tests.fakes.runs import a_run
from tests.pages.conftest import Site
from typer.testing import CliRunner

from bench_agent.cli.main import app
from bench_agent.output.report import page
from bench_agent.output.report.figures import report_of
from bench_agent.remote.outbox import Outbox
from bench_protocol.catalogue.matrix import Device


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
    for chart in shown.locator("figure").all():
        assert chart.is_visible() == (chart.locator("xpath=ancestor::details").count() == 0)
    longest = shown.locator(".fill").first.bounding_box()
    assert longest is not None
    assert longest["width"] > 100
    shown.close()


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
