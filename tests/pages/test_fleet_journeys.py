"""What a reader does on pages of 47 hardware, in a real browser."""

import re
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.pages.conftest import WITH_AND_WITHOUT_SCRIPT, WITHOUT_SCRIPT
from tests.pages.looking import Fleet


def test_with_script_the_board_follows_what_is_typed(page: Page, fleet: Fleet) -> None:
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.goto(f"{fleet.address}/?workload=mnist-cnn")
    page.get_by_text("Filter and baseline").click()
    page.evaluate("document.querySelector('h1').dataset.kept = 'yes'")
    page.get_by_role("searchbox", name="Hardware").press_sequentially("m4 max")
    expect(page.locator("table.ranking tbody tr")).to_have_count(2)
    expect(page).to_have_url(re.compile("q=m4"))
    assert page.evaluate("document.querySelector('h1').dataset.kept") == "yes"
    page.goto(f"{fleet.address}/compare")
    page.get_by_label("NVIDIA H200").check()
    page.get_by_label("Find hardware").press_sequentially("epyc")
    expect(page.locator("#found label")).to_have_count(2)
    expect(page.get_by_label("NVIDIA H200", exact=True)).to_be_checked()
    assert problems == []


@WITH_AND_WITHOUT_SCRIPT
def test_every_link_follows_the_filter(
    page: Page, fleet: Fleet, request: pytest.FixtureRequest
) -> None:
    script = request.node.callspec.params["page"]["java_script_enabled"]
    page.goto(f"{fleet.address}/?workload=mnist-cnn&trust_level=1")
    page.get_by_label("Device").select_option("metal")
    page.get_by_label("Recipe").select_option("tuned")
    if not script:
        page.get_by_role("button", name="Show").click()
    query = "workload=mnist-cnn&device=metal&recipe=tuned&trust_level=1"
    twin = page.locator('#twins a[href*="device=metal&recipe=tuned"]')
    expect(twin).to_have_count(1)
    expect(page).to_have_url(re.compile("device=metal"))

    def parameters(address: str) -> list[tuple[str, str]]:
        return sorted(parse_qsl(urlsplit(address).query, keep_blank_values=True))

    chosen = parameters(f"?{query}")
    assert parameters(page.url) == chosen
    for place, added in (
        (("Rows", "Every set-up"), ("group", "setup")),
        (("Figure", "Energy"), ("rank_by", "energy")),
    ):
        navigation, name = place
        link = page.get_by_role("navigation", name=navigation).get_by_role("link", name=name)
        assert parameters(link.get_attribute("href") or "") == sorted([*chosen, added])
    pill = page.get_by_role("navigation", name="Workload").get_by_role("link", name="fashion-lstm")
    assert ("device", "metal") in parameters(pill.get_attribute("href") or "")
    for name in ("This page as JSON", "All rows as CSV"):
        href = page.get_by_role("link", name=name).get_attribute("href") or ""
        # The twin of a page asks for the parts of a board that the page has.
        assert [pair for pair in parameters(href) if pair[0] != "include"] == chosen
    page.get_by_role("navigation", name="Rows").get_by_role("link", name="Every set-up").click()
    expect(page).to_have_url(re.compile("group=setup"))
    assert set(page.locator("table.ranking .chip.device").all_inner_texts()) == {"metal"}
    page.get_by_role("link", name="Clear").click()
    expect(page).to_have_url(f"{fleet.address}/?workload=mnist-cnn&group=setup")


@WITHOUT_SCRIPT
def test_find_my_machine_and_compare_it_with_two_others(page: Page, fleet: Fleet) -> None:
    page.goto(fleet.address)
    page.get_by_role("navigation", name="Workload").get_by_role("link", name="mnist-cnn").click()
    page.get_by_text("Filter and baseline").click()
    page.get_by_role("searchbox", name="Hardware").fill("m2 max")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="Apple M2 Max (30-core GPU)").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        re.compile(r"Apple M2 Max \(30-core GPU\) is \d+th of \d+ on mnist-cnn")
    )
    page.get_by_role("link", name="Compare with…").click()
    page.get_by_label("Find hardware").fill("rtx 40")
    page.locator("main").get_by_role("button", name="Find").click()
    page.get_by_label("NVIDIA GeForce RTX 4090").check()
    page.get_by_label("NVIDIA GeForce RTX 4080").check()
    page.get_by_label("Price of Apple M2 Max (30-core GPU)").fill("3000")
    page.get_by_role("button", name="Compare").click()
    columns = page.locator("table.comparison").first.locator("thead th")
    expect(columns).to_have_count(4)
    expect(page.locator("main")).to_contain_text("per unit of price")
    shared = page.context.new_page()
    shared.goto(page.url)
    expect(shared.locator("table.comparison").first).to_have_text(
        page.locator("table.comparison").first.inner_text(), use_inner_text=True
    )
    csv = page.get_by_role("link", name="These rows as CSV").get_attribute("href")
    rows = httpx.get(f"{fleet.address}{csv}", timeout=30).text.splitlines()
    assert len(rows) > 1 + page.locator("table.comparison").first.locator("tbody tr").count()
    shared.close()


@WITHOUT_SCRIPT
def test_what_is_shown_and_held_against_is_in_the_address(page: Page, fleet: Fleet) -> None:
    page.goto(f"{fleet.address}/?workload=mnist-cnn")
    page.get_by_role("navigation", name="Figure").get_by_role("link", name="Energy").click()
    assert "rank_by=energy" in page.url
    expect(page.locator("th.speed")).to_contain_text("Energy of an epoch")
    page.get_by_role("navigation", name="Energy of").get_by_role("link", name="Whole chip").click()
    expect(page.locator(".board-head")).to_contain_text("energy of the whole chip")
    assert set(page.locator("table.ranking .chip.device").all_inner_texts()) == {"metal"}
    page.get_by_role("navigation", name="Energy of").get_by_role("link", name="GPU alone").click()
    page.get_by_text("Filter and baseline").click()
    page.get_by_label("Speed-up against").select_option("nvidia-h200")
    page.get_by_role("button", name="Show").click()
    assert "baseline=nvidia-h200" in page.url
    assert "rank_by=energy" in page.url
    row = page.locator("table.ranking tbody tr", has_text="NVIDIA H200")
    expect(row.locator("[data-label=Speed-up] .figure")).to_have_text("1.00×")


def test_keyboard_alone_ticks_and_compares(page: Page, fleet: Fleet) -> None:
    page.goto(f"{fleet.address}/?workload=mnist-cnn&q=nvidia+geforce+rtx+40")
    ticked = 0
    for _ in range(120):
        page.keyboard.press("Tab")
        kind = page.evaluate("document.activeElement.type || ''")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        if kind == "checkbox" and ticked < 2:
            page.keyboard.press("Space")
            ticked += 1
        elif (
            ticked == 2 and page.evaluate("document.activeElement.innerText") == "Compare selected"
        ):
            page.keyboard.press("Enter")
            break
    page.wait_for_url("**/compare?ids=*")
    expect(page.locator("table.comparison").first.locator("thead th")).to_have_count(3)


def test_a_machine_shows_where_its_speed_changed_and_why(page: Page, fleet: Fleet) -> None:
    page.goto(f"{fleet.address}/machines/{fleet.machine}")
    changes = page.locator(".changes li")
    expect(changes).to_have_count(2)
    expect(changes.nth(0)).to_contain_text(
        re.compile(
            r"^1\.\d+ times as fast since 2026.* \(95\s% CI .*\), when tensorflow 2.18.0 became "
        )
    )
    expect(changes.nth(1)).to_contain_text(
        re.compile(r"^[56](\.\d)? % slower since .* \(95\s% CI .*\), when macOS 14.6 became 15.5")
    )
    colours = [
        page.locator(f"#content {place}").nth(n).evaluate(f"e => getComputedStyle(e).{name}")
        for place, name in ((".mark", "stroke"), (".changes strong", "color"))
        for n in (0, 1)
    ]
    faster, slower = colours[:2]
    assert colours == [faster, slower, faster, slower]
    reds = [int(colour.removeprefix("rgb(").split(",")[0]) for colour in (faster, slower)]
    assert reds[0] < 100 < reds[1]


def test_a_result_shows_its_receipt_and_telemetry(page: Page, fleet: Fleet) -> None:
    page.goto(f"{fleet.address}/results/{fleet.result}")
    answer = httpx.get(f"{fleet.address}/api/v1/results/{fleet.result}", timeout=30).json()
    sensors = answer["result"]["telemetry"]["columns"]
    expect(page.locator(".multiples figure")).to_have_count(len(sensors))
    receipt = httpx.get(f"{fleet.address}/api/v1/results/{fleet.result}/receipt", timeout=30).json()
    expect(page.get_by_label("Proof of inclusion")).to_have_text(receipt["proof"])


def test_pages_of_studies_say_what_their_twins_say(page: Page, fleet: Fleet) -> None:
    page.goto(f"{fleet.address}/cpu-vs-gpu")
    pair = httpx.get(f"{fleet.address}/api/v1/cpu-vs-gpu", timeout=30).json()
    expect(page.locator(".area circle")).to_have_count(len(pair["rows"]))
    ratios = [row["compared"]["speed_up"] for row in pair["rows"]]
    assert min(ratios) < 1 < max(ratios)
    expect(page.locator("h1")).to_contain_text(
        re.compile("looks faster than .+ from .+ per training step")
    )
    page.goto(f"{fleet.address}/frameworks")
    tables = httpx.get(f"{fleet.address}/api/v1/frameworks", timeout=30).json()["tables"]
    expect(page.locator("table.recipes")).to_have_count(len(tables))
    first = page.locator("table.recipes").first.locator("tbody th")
    expect(first).to_have_text([row["framework"] for row in tables[0]["rows"]])
    page.goto(f"{fleet.address}/batch-size")
    studies = httpx.get(f"{fleet.address}/api/v1/batch-size", timeout=30).json()["studies"]
    expect(page.locator(".stroke")).to_have_count(
        sum(len(line["figures"]) - 1 for study in studies for line in study["lines"])
    )
    page.goto(f"{fleet.address}/trends")
    versions = httpx.get(f"{fleet.address}/api/v1/trends", timeout=30).json()["versions"]
    expect(page.locator("table.recipes tbody th")).to_have_text([v["version"] for v in versions])


@WITHOUT_SCRIPT
def test_links_to_other_studies_keep_the_hardware(page: Page, fleet: Fleet) -> None:
    page.goto(f"{fleet.address}/frameworks?hardware=apple-m2-max-30-core-gpu")
    site = page.get_by_role("navigation", name="Site")
    for name in ("Batch size", "Trends", "CPU or GPU", "Frameworks"):
        site.get_by_role("link", name=name).click()
        assert page.url.endswith("?hardware=apple-m2-max-30-core-gpu")
        expect(page.locator("main")).to_contain_text("M2 Max (30-core GPU)")
        expect(site.locator("[aria-current=page]")).to_have_text(name)
