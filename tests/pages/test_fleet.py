"""Every page on a board of 47 hardware, in a real browser."""

import re
import zlib
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from tests.fakes.fleet import MARKUP
from tests.pages.looking import THREE, Fleet

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# What axe looks for, in each scheme.
AXE: dict[Literal["light", "dark"], dict[str, Any]] = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"resultTypes": ["violations"], "runOnly": ["color-contrast"]},
}
PAGES = (
    "/",
    "/?workload=mnist-cnn&rank_by=energy",
    "/?workload=mnist-cnn&group=setup&batch_size=any&q=m4+pro",
    "/workloads/mnist-cnn",
    "/hardware",
    "/machines?q=m2",
    "/results?workload=mnist-cnn",
    "/hardware/apple-m2-max-30-core-gpu",
    "/machines/{machine}",
    "/results/{result}",
    "/results/{failed}",
    "/compare",
    f"/compare?ids={THREE}",
    "/frameworks",
    "/cpu-vs-gpu",
    "/batch-size",
    "/trends",
    "/log",
    "/wanted",
    "/methodology",
    "/trust",
    "/documents/faults",
    "/submit",
    "/docs",
)


# The first few items of a loop, folded parts included.
FEW_AND_UNFOLDED = """() => {
    const later = 'tbody tr:nth-child(n+6), .board ~ .board ~ .board, .operation ~ .operation';
    document.querySelectorAll(later).forEach(part => part.remove());
    document.querySelectorAll('details').forEach(part => part.open = true);
}"""


# Numbers that a line break separates from their percent sign; of a heading, words with hyphens
# that are no longer than 20 characters, and "(30-core GPU)".
SPLIT = """() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) for (const match of walker.currentNode.data.matchAll(
            walker.currentNode.parentElement.closest('h1')
            ? /\\(\\d+-core \\w+\\)|(?<![\\w-])(?=[\\w-]{3,20}(?![\\w-]))\\w+(?:-\\w+)+/g
            : /\\d\\s%/g)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, match.index);
        range.setEnd(walker.currentNode, match.index + match[0].length);
        const lines = new Set([...range.getClientRects()].map(one => Math.round(one.top)));
        if (lines.size > 1) found.push(walker.currentNode.data);
    }
    return found;
}"""


def _addresses(fleet: Fleet) -> list[str]:
    ids = {"machine": fleet.machine, "result": fleet.result, "failed": fleet.failed}
    return [fleet.address + page.format(**ids) for page in PAGES]


@pytest.mark.parametrize("widths", [(1440,), (390, 800)])
def test_pages_fit_stay_still_and_ask_no_other_host(
    browser: Browser, fleet: Fleet, widths: tuple[int, ...]
) -> None:
    page = browser.new_page()
    _slow_down(page)
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    for address in _addresses(fleet):
        page.set_viewport_size({"width": widths[0], "height": 900})
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        assert _layout_shift(page) == 0, address
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            grounds = set()
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, address
                grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert len(grounds) == 2, address
            assert page.evaluate(SPLIT) == [], address
    page.close()
    assert said == []
    assert hosts == {urlsplit(fleet.address).netloc}


def _slow_down(page: Page) -> None:
    """100 kB/s, so that a page comes in parts."""
    pace = {"downloadThroughput": 100_000, "uploadThroughput": 100_000, "latency": 1}
    chromium = page.context.new_cdp_session(page)
    chromium.send("Network.emulateNetworkConditions", {"offline": False, **pace})


def _layout_shift(page: Page) -> float:
    shift: float = page.evaluate(
        """() => new Promise(done => {
            let sum = 0;
            new PerformanceObserver(list => list.getEntries().forEach(e => sum += e.value))
                .observe({type: 'layout-shift', buffered: true});
            requestAnimationFrame(() => requestAnimationFrame(() => done(sum)));
        })"""
    )
    return shift


def test_a_phones_first_screen_answers_the_question(browser: Browser, fleet: Fleet) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    for address, answer in (("/", ".dots li"), ("/?workload=mnist-cnn", ".ranking td.speed")):
        page.goto(f"{fleet.address}{address}")
        expect(page.locator(answer).first).to_be_in_viewport(ratio=1)
    page.close()


def test_the_baseline_is_shown_where_slower_hardware_is_folded(
    browser: Browser, fleet: Fleet
) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(fleet.address)
    baseline = page.locator(".dots li", has_text="baseline").locator("visible=true")
    expect(baseline).to_have_count(1)
    expect(baseline.locator(".figure")).to_have_text("1.00×")
    page.locator(".dots summary").click()
    expect(baseline).to_have_count(1)
    page.close()


def test_axe_finds_nothing_serious(browser: Browser, fleet: Fleet) -> None:
    # The pages' policy forbids axe's injected script, so the context bypasses it. The schemes
    # differ only in colours, without transition if motion is reduced.
    context = browser.new_context(bypass_csp=True, reduced_motion="reduce")
    page = context.new_page()
    violations = []
    for address in _addresses(fleet):
        page.goto(address)
        page.evaluate(FEW_AND_UNFOLDED)
        for scheme, options in AXE.items():
            page.emulate_media(color_scheme=scheme)
            for violation in Axe().run(page, options=options).response["violations"]:
                if violation["impact"] in ("serious", "critical"):
                    where = [node["target"] for node in violation["nodes"][:3]]
                    violations.append((address, scheme, violation["id"], where))
    context.close()
    assert violations == []


def test_every_page_links_a_json_twin_that_answers(fleet: Fleet) -> None:
    with httpx.Client(base_url=fleet.address, timeout=30) as http:
        for address in _addresses(fleet):
            page = http.get(address).text
            twin = re.search(r'rel="alternate" type="application/json" href="([^"]+)"', page)
            if address.endswith("/compare"):  # nothing is chosen yet
                continue
            assert twin, address
            answer = http.get(twin[1].replace("&amp;", "&"))
            assert answer.status_code == 200, twin[1]
            assert answer.headers["content-type"].startswith("application/json")


def test_every_page_begins_with_its_question_or_its_finding(fleet: Fleet) -> None:
    with httpx.Client(timeout=30) as http:
        for address in _addresses(fleet):
            lead = re.search(
                r'<div class="lead">\s*<h1>.*?</h1>\s*<p>.*?</p>', http.get(address).text
            )
            assert lead, address
            words = "fastest of" if "/compare?" in address else "?"
            assert words in re.sub("<[^>]+>", "", lead[0]), address


def test_policy_lets_no_inline_script_or_style_in(fleet: Fleet) -> None:
    with httpx.Client(timeout=30) as http:
        for address in _addresses(fleet):
            answer = http.get(address)
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'")
            assert "unsafe" not in policy
            inline = re.search(r"<script(?![^>]*\ssrc=)|\sstyle=|\son[a-z]+=\"", answer.text)
            assert not inline, address


def test_leaderboard_is_light(fleet: Fleet) -> None:
    page = httpx.get(f"{fleet.address}/?workload=mnist-cnn", timeout=30)
    assert page.text.count('role="row"') >= 47
    assert len(zlib.compress(page.content)) < 60_000
    (script,) = re.findall(r'<script src="([^"]+)"', page.text)
    assert len(httpx.get(f"{fleet.address}{script}", timeout=30).content) < 60_000


def test_with_script_the_board_follows_what_is_typed(browser: Browser, fleet: Fleet) -> None:
    page = browser.new_page()
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
    page.close()


@pytest.mark.parametrize("script", [True, False])
def test_every_link_follows_the_filter(browser: Browser, fleet: Fleet, script: bool) -> None:
    page = browser.new_page(java_script_enabled=script)
    page.goto(f"{fleet.address}/?workload=mnist-cnn&where=cores%3E0&where=memory_bytes%3E0")
    page.get_by_label("Device").select_option("metal")
    page.get_by_label("Recipe").select_option("tuned")
    if not script:
        page.get_by_role("button", name="Show").click()
    query = "workload=mnist-cnn&device=metal&recipe=tuned&where=cores%3E0&where=memory_bytes%3E0"
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
    pill = page.get_by_role("navigation", name="Workload").get_by_role("link", name="fashion-mlp")
    assert ("device", "metal") in parameters(pill.get_attribute("href") or "")
    for name in ("This page as JSON", "All rows as CSV"):
        href = page.get_by_role("link", name=name).get_attribute("href") or ""
        assert parameters(href) == chosen
    page.get_by_role("navigation", name="Rows").get_by_role("link", name="Every set-up").click()
    expect(page).to_have_url(re.compile("group=setup"))
    assert set(page.locator("table.ranking .chip.device").all_inner_texts()) == {"metal"}
    page.get_by_role("link", name="Clear").click()
    expect(page).to_have_url(f"{fleet.address}/?workload=mnist-cnn&group=setup")
    page.close()


def test_find_my_machine_and_compare_it_with_two_others(browser: Browser, fleet: Fleet) -> None:
    page = browser.new_page(java_script_enabled=False)
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
    page.get_by_role("button", name="Find").click()
    page.get_by_label("NVIDIA GeForce RTX 4090").check()
    page.get_by_label("NVIDIA GeForce RTX 4080").check()
    page.get_by_label("Price of Apple M2 Max (30-core GPU)").fill("3000")
    page.get_by_role("button", name="Compare").click()
    columns = page.locator("table.comparison").first.locator("thead th")
    expect(columns).to_have_count(4)
    expect(page.locator("main")).to_contain_text("per unit of price")
    shared = browser.new_page()
    shared.goto(page.url)
    expect(shared.locator("table.comparison").first).to_have_text(
        page.locator("table.comparison").first.inner_text(), use_inner_text=True
    )
    csv = page.get_by_role("link", name="These rows as CSV").get_attribute("href")
    rows = httpx.get(f"{fleet.address}{csv}", timeout=30).text.splitlines()
    assert len(rows) > 1 + page.locator("table.comparison").first.locator("tbody tr").count()
    shared.close()
    page.close()


def test_what_is_shown_and_held_against_is_in_the_address(browser: Browser, fleet: Fleet) -> None:
    page = browser.new_page(java_script_enabled=False)
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
    page.close()


def test_keyboard_alone_ticks_and_compares(browser: Browser, fleet: Fleet) -> None:
    page = browser.new_page()
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
    page.close()


def test_a_machine_shows_where_its_speed_changed_and_why(browser: Browser, fleet: Fleet) -> None:
    page = browser.new_page()
    page.goto(f"{fleet.address}/machines/{fleet.machine}")
    changes = page.locator(".changes li")
    expect(changes).to_have_count(2)
    expect(changes.nth(0)).to_contain_text(
        re.compile(
            r"^1\.\d+ times as fast since 2026.* \(95\s% CI .*\), when tensorflow 2.18.0 became "
        )
    )
    expect(changes.nth(1)).to_contain_text(
        re.compile(
            r"^Takes 1\.06\d times as long since .* \(95\s% CI .*\), when macOS 14.6 became 15.5"
        )
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
    page.close()


def test_a_result_shows_its_trace_receipt_and_telemetry(browser: Browser, fleet: Fleet) -> None:
    page = browser.new_page()
    page.goto(f"{fleet.address}/results/{fleet.result}")
    answer = httpx.get(f"{fleet.address}/api/v1/results/{fleet.result}", timeout=30).json()
    trace = answer["result"]["outcome"]["measurement"]["traces"][0]["losses"]
    shown = page.locator("section[aria-labelledby=conformance] table").first.locator("tbody tr")
    expect(shown).to_have_count(len(trace))
    expect(shown.first).to_contain_text(f"{trace[0]:.7f}")
    section = page.locator("section[aria-labelledby=conformance]")
    expect(section).to_contain_text("After the timing, the same step trains a small job")
    sensors = answer["result"]["telemetry"]["columns"]
    expect(page.locator(".multiples figure")).to_have_count(len(sensors))
    receipt = httpx.get(f"{fleet.address}/api/v1/results/{fleet.result}/receipt", timeout=30).json()
    expect(page.get_by_label("Proof of inclusion")).to_have_text(receipt["proof"])
    page.close()


def test_a_comparison_says_in_how_many_workloads_one_machine_meets_one(fleet: Fleet) -> None:
    ids = "nvidia-h200,apple-m2-max-30-core-gpu"
    with httpx.Client(base_url=fleet.address, timeout=30) as http:
        rows = http.get(f"/api/v1/compare?ids={ids}").json()["rows"]
        assert len(rows) == 2
        assert sum(row["cells"][1]["scope"] == "machines" for row in rows) == 1
        page = http.get(f"/compare?ids={ids}").text
    assert "In 1 of them there is one machine on each side" in page


def test_the_baseline_is_not_compared_with_itself(fleet: Fleet) -> None:
    page = httpx.get(f"{fleet.address}/hardware/apple-m2-max-30-core-gpu", timeout=30).text
    assert "it is the baseline of all scores</small>" in page
    assert "the speed of <bdi>Apple M2 Max (30-core GPU)" not in page


def test_a_failed_repeat_says_how_it_failed(fleet: Fleet) -> None:
    page = httpx.get(f"{fleet.address}/results/{fleet.failed}", timeout=30).text
    found = re.search("<h1>(.*?)</h1>", page)
    assert found
    assert " ran out of memory on " in re.sub("<[^>]+>", "", found[1])


def test_pages_of_studies_say_what_their_twins_say(browser: Browser, fleet: Fleet) -> None:
    page = browser.new_page()
    page.goto(f"{fleet.address}/cpu-vs-gpu")
    pair = httpx.get(f"{fleet.address}/api/v1/cpu-vs-gpu", timeout=30).json()
    expect(page.locator(".area circle")).to_have_count(len(pair["rows"]))
    ratios = [row["held"]["speed_up"] for row in pair["rows"]]
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
    page.close()


def test_links_to_other_studies_keep_the_hardware(browser: Browser, fleet: Fleet) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{fleet.address}/frameworks?hardware=apple-m2-max-30-core-gpu")
    site = page.get_by_role("navigation", name="Site")
    for name in ("Batch size", "Trends", "CPU or GPU", "Frameworks"):
        site.get_by_role("link", name=name).click()
        assert page.url.endswith("?hardware=apple-m2-max-30-core-gpu")
        expect(page.locator("main")).to_contain_text("M2 Max (30-core GPU)")
        expect(site.locator("[aria-current=page]")).to_have_text(name)
    page.close()


def test_pictures_badges_and_feed(fleet: Fleet) -> None:
    with httpx.Client(base_url=fleet.address, timeout=30) as http:
        for address in (
            "/",
            "/?workload=mnist-cnn&device=metal",
            "/workloads/mnist-cnn",
            "/hardware/apple-m2-max-30-core-gpu",
            f"/machines/{fleet.machine}",
            f"/results/{fleet.result}",
            f"/compare?ids={THREE}",
        ):
            page = http.get(address).text
            for name in ('name="description"', 'property="og:title"', 'property="og:description"'):
                assert re.search(rf'<meta {name} content="[^"]{{5,}}">', page), (address, name)
            match = re.search(r'property="og:image" content="([^"]+)"', page)
            assert match
            picture = http.get(match[1].replace("&amp;", "&"))
            assert picture.headers["content-type"] == "image/png"
            width, height = (int.from_bytes(picture.content[n : n + 4], "big") for n in (16, 20))
            assert (width, height) == (1200, 630)
        for place in ("/hardware/nvidia-h200", f"/machines/{fleet.machine}"):
            badge = ElementTree.fromstring(http.get(f"{place}/badge.svg").text)
            assert "/s mnist-cnn" in "".join(badge.itertext())
        feed = ElementTree.fromstring(http.get("/feed.atom").content)
        atom = {"a": "http://www.w3.org/2005/Atom"}
        entries = feed.findall("a:entry", atom)
        assert len(entries) == 50
        link = entries[0].find("a:link", atom)
        assert link is not None
        assert http.get(link.attrib["href"]).status_code == 200
        assert http.get("/results/0123456789abcdef/card.png").status_code == 404
        assert http.get("/compare/card.png?ids=nvidia-h200,nobody").status_code == 422


def test_markup_in_names_is_text_in_pictures_feed_and_badges(fleet: Fleet) -> None:
    feed = httpx.get(f"{fleet.address}/feed.atom", timeout=30).text
    titles = [entry.text or "" for entry in ElementTree.fromstring(feed).iter() if entry.text]
    name = MARKUP.replace("\u202e", "")
    assert any(name in title for title in titles)
    assert "\u202e" not in feed
