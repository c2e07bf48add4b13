"""The pages in a real browser, on a small board with known rows."""

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.fakes.fleet import MARKUP
from tests.pages.conftest import WITHOUT_SCRIPT, Site, fill_with_one_machine
from tests.pages.looking import EMPTY_COLUMNS

from bench_protocol.base import format as people


@WITHOUT_SCRIPT
def test_an_empty_board_says_how_to_be_the_first_whose_set_ups_can_be_compared(
    page: Page, empty_site: str
) -> None:
    page.goto(empty_site)
    expect(page.get_by_role("heading", name="Be the first")).to_be_visible()
    expect(page.locator("pre")).to_contain_text("bench-agent run")
    expect(page.locator("pre")).to_contain_text(f"--server {empty_site}")
    expect(page.locator("pre")).not_to_contain_text(re.compile("ADDRESS|REPOSITORY|pip install"))
    expect(page.get_by_role("heading", level=1)).to_have_text("No ranked results yet")
    expect(page.locator(".lead")).not_to_contain_text("signed")
    page.goto(f"{empty_site}/log")
    expect(page.locator(".none")).to_have_text("No entries yet. Be the first.")
    expect(page.locator("main")).not_to_contain_text("first 0 entries")
    page.goto(f"{empty_site}/?rank_by=mfu")
    expect(page.locator(".empty")).to_contain_text("No result here has hardware with a known peak")
    page.goto(f"{empty_site}/compare")
    expect(page.locator("main")).to_contain_text("No GPU or CPU has ranked results so far")
    for kind in ("hardware", "machines", "results"):
        page.goto(f"{empty_site}/{kind}")
        what = "results" if kind == "results" else "ranked results"
        expect(page.locator(".none")).to_have_text(f"No {what} yet. Be the first.")
    page.goto(f"{empty_site}/hardware?q=m2")
    expect(page.locator(".none")).to_have_text("Nothing matches.")
    fill_with_one_machine(empty_site)
    page.goto(f"{empty_site}/?workload=resnet50-transfer")
    expect(page.get_by_role("heading", name="Be the first")).to_have_count(0)
    expect(page.locator(".empty")).to_contain_text("Nobody has measured it here")
    expect(page.get_by_role("navigation", name="Figure")).to_be_visible()
    page.get_by_role("link", name="Show everything").click()
    expect(page.locator("table.ranking")).to_have_count(1)
    page.goto(empty_site)
    expect(page.locator("input[name=ids]")).to_have_count(0)
    expect(page.get_by_role("button", name="Compare selected")).to_have_count(0)
    page.get_by_role("link", name="Compare its set-ups").click()
    expect(page.locator(".board-foot")).to_contain_text("No figure of a baseline on this board.")
    page.get_by_role("button", name="What Evidence means").click()
    expect(page.locator("#about-evidence")).to_contain_text("1: signed.")
    page.keyboard.press("Escape")
    page.get_by_label("Compare Intel Core i7-8700, tensorflow tuned").check()
    page.get_by_label("Compare Intel Core i7-8700, mlx tuned").check()
    page.get_by_role("button", name="Compare selected").click()
    table = page.locator("table.comparison")
    expect(table.locator("thead")).to_contain_text("Intel Core i7-8700, mlx tuned")
    expect(table.locator(".interval")).to_have_count(1)
    for address in ("/", "/?group=setup", "/machines", "/hardware/intel-core-i7-8700"):
        page.goto(f"{empty_site}{address}")
        assert page.evaluate(EMPTY_COLUMNS) == [], address
    page.get_by_role("link", name=re.compile("^[0-9a-f]{16}$")).click()
    assert page.evaluate(EMPTY_COLUMNS) == []
    page.goto(f"{empty_site}/compare?ids=intel-core-i7-8700")
    expect(page.locator("main")).to_contain_text("Choose at least two different things")
    page.get_by_role("link", name="every set-up").click()
    expect(page.locator("input[name=ids]")).to_have_count(4)


def test_keyboard_alone_reaches_the_content(page: Page, site: Site) -> None:
    page.goto(site.address)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Tab")
    focused = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert focused == "solid"


def test_the_page_and_its_json_twin_agree(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/?workload=mnist-cnn")
    twin = page.get_by_role("link", name="This page as JSON").get_attribute("href")
    answer = httpx.get(f"{site.address}{twin}").json()
    rows = page.locator("table.ranking tbody tr")
    expect(rows).to_have_count(len(answer["rows"]))
    for place, row in enumerate(answer["rows"]):
        shown = rows.nth(place)
        expect(shown.locator("td.rank")).to_have_text(str(row["rank"]))
        expect(shown.locator("a.name")).to_have_text(row["hardware"])
        expect(shown.locator("td.speed")).to_have_text(people.rate(row["samples_per_second"]))
        speed_up = shown.locator("td.number").nth(0).locator(".figure")
        expect(speed_up).to_have_text(people.ratio(row["speed_up"]))
    expect(page.locator(".common")).to_contain_text("All data is generated.")
    unranked = page.locator(".unranked li")
    expect(unranked).to_have_count(len(answer["unranked"]))
    expect(unranked.first).to_contain_text("out of memory during warm-up")


def test_result_page_and_its_json_twin_agree(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/results/{site.measured}")
    answer = httpx.get(f"{site.address}/api/v1/results/{site.measured}").json()
    tiles = page.locator(".tiles dd")
    expect(tiles.nth(0)).to_contain_text(people.rate(answer["samples_per_second"]))
    expect(tiles.nth(1)).to_have_text(people.seconds(answer["epoch_seconds"]))
    expect(tiles.nth(2)).to_have_text(people.percent(answer["spread"]))
    expect(page.locator("main")).to_contain_text(answer["key_id"])
    durations = answer["result"]["outcome"]["measurement"]["blocks"]["durations_ns"]
    expect(page.locator("figure .dot")).to_have_count(len(durations))


def test_the_program_on_a_result_page_verifies_its_envelope(
    page: Page,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page.goto(f"{site.address}/results/{site.measured}")
    page.locator(".signature summary").click()
    program = page.locator(".signature pre.program").inner_text()
    raw = httpx.get(f"{site.address}/api/v1/results/{site.measured}/envelope").content
    (tmp_path / "envelope.json").write_bytes(raw)
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    assert "unaltered" in capsys.readouterr().out


def test_submitted_text_is_shown_as_text(page: Page, site: Site) -> None:
    for address in ("/", f"/results/{site.marked_up}", "/compare"):
        page.goto(site.address + address)
        expect(page.locator("main")).to_contain_text(MARKUP)
        assert page.locator("img").count() == 0


def test_no_command_is_cut_on_a_phone(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    for address in ("/submit", "/log", "/docs", f"/results/{site.measured}"):
        page.goto(site.address + address)
        cut = page.locator("pre").evaluate_all(
            "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
        )
        assert cut == 0, address
