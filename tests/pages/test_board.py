"""Boards in a real browser: heads that sort and explain, chips, ticked rows, sizes."""

import re

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.pages.conftest import WITH_AND_WITHOUT_SCRIPT, WITHOUT_SCRIPT
from tests.pages.looking import BOARD, THREE, Fleet


def names(page: Page) -> list[str]:
    return page.locator("table.ranking a.name").all_inner_texts()


def names_of_buttons(page: Page) -> set[str]:
    """As a screen reader has them. It reads no counter, so the bar has other words for it."""
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    found = (node for node in nodes if node.get("role", {}).get("value") == "button")
    return {" ".join(node["name"]["value"].split()) for node in found}


@WITHOUT_SCRIPT
def test_heads_sort_without_a_script_and_ranks_stay(page: Page, fleet: Fleet) -> None:
    page.goto(f"{fleet.address}{BOARD}")
    sorted_head = page.locator("th[aria-sort]")
    expect(sorted_head).to_have_attribute("aria-label", "Samples per second")
    expect(sorted_head).to_have_attribute("aria-sort", "descending")
    first = names(page)[0]
    page.get_by_role("columnheader", name="Spread").get_by_role("link", name="Spread").click()
    assert page.url.endswith("sort=spread")
    expect(sorted_head).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("columnheader", name="Spread").get_by_role("link", name="Spread").click()
    expect(sorted_head).to_have_attribute("aria-sort", "descending")
    twin = page.get_by_role("link", name="This page as JSON").get_attribute("href")
    rows = httpx.get(f"{fleet.address}{twin}", timeout=30).json()["rows"]
    assert names(page) == [row["hardware"] for row in rows]
    ranked = page.locator("table.ranking tbody tr", has_text=first).locator(".rank").first
    expect(ranked).to_have_text("1")
    head = page.get_by_role("columnheader", name="Samples per second")
    head.get_by_role("link", name="Samples per second").click()
    expect(page).to_have_url(f"{fleet.address}{BOARD}")


@pytest.mark.parametrize("address", [BOARD, f"/compare?ids={THREE}", "/hardware/nvidia-h200"])
@WITHOUT_SCRIPT
def test_a_head_says_what_it_means(page: Page, fleet: Fleet, address: str) -> None:
    page.goto(f"{fleet.address}{address}")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    signs = page.locator("button.help")
    targets = {one.get_attribute("popovertarget") for one in signs.all()}
    ids = page.locator("[popover]").evaluate_all("all => all.map(one => one.id)")
    assert targets == set(ids)
    assert len(ids) == len(targets) > 2
    expect(page.locator("a.help").first).to_be_hidden()
    signs.first.focus()
    page.keyboard.press("Enter")
    about = page.locator("[popover]:popover-open")
    expect(about).to_have_count(1)
    link = about.get_by_role("link")
    for one in page.locator("[popover] a").all():
        path, _, anchor = (one.get_attribute("href") or "").partition("#")
        assert f'id="{anchor}"' in httpx.get(f"{fleet.address}{path}", timeout=30).text, anchor
    page.keyboard.press("Tab")
    expect(link).to_be_focused()
    page.keyboard.press("Escape")
    expect(about).to_have_count(0)


@WITH_AND_WITHOUT_SCRIPT
def test_a_bar_counts_the_ticked_rows(page: Page, fleet: Fleet) -> None:
    page.set_viewport_size({"width": 1440, "height": 700})
    page.goto(f"{fleet.address}{BOARD}")
    tray = page.locator(".tray")
    expect(tray).to_be_hidden()
    for name in ("NVIDIA H200", "NVIDIA A100-SXM4-80GB"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    expect(tray).to_be_in_viewport()
    assert "Compare the ticked rows" in names_of_buttons(page)
    counted = page.locator("input[name=ids]").evaluate_all(
        "all => all.map(one => getComputedStyle(one).counterIncrement)"
    )
    assert counted.count("ticked 1") == 2
    assert set(counted) == {"ticked 1", "none"}
    tray.get_by_role("button", name="Untick all").click()
    expect(tray).to_be_hidden()
    for name in ("NVIDIA H200", "NVIDIA A100-SXM4-80GB"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    tray.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(re.compile("ids=nvidia-h200&ids=nvidia-a100"))


@WITHOUT_SCRIPT
def test_chips_narrow_and_take_back(page: Page, fleet: Fleet) -> None:
    page.goto(f"{fleet.address}{BOARD}&device=cuda")
    chips = page.get_by_role("navigation", name="Filters, with the number of hardware models")
    counted = chips.get_by_role("link", name="GeForce")
    number = int(re.sub(r"\D", "", counted.inner_text()))
    counted.click()
    expect(page.locator("table.ranking a.name")).to_have_count(number)
    assert all(name.startswith("NVIDIA GeForce") for name in names(page))
    expect(page.locator(".board-foot")).to_contain_text("Ranks are of all")
    chips.get_by_role("link", name="device: cuda").click()
    chips.get_by_role("link", name="GeForce").click()
    expect(page).to_have_url(f"{fleet.address}{BOARD}")
