"""Every page on a board of 47 hardware, in a real browser."""

import re
import zlib
from typing import Any, Literal
from urllib.parse import urlsplit
from xml.etree import ElementTree

import httpx
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, expect
from tests.fakes.fleet import MARKUP
from tests.pages.conftest import WITHOUT_SCRIPT
from tests.pages.looking import THREE, Fleet

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
FORCED: tuple[Literal["none", "active"], ...] = ("none", "active")
VIOLATIONS = "options => axe.run(options).then(found => found.violations)"
# What axe looks for at each width, in each scheme. A phone's letters are smaller, so they need
# more contrast.
FOUND: dict[str, Any] = {"resultTypes": ["violations"]}
AXE: tuple[tuple[int, Literal["light", "dark"], dict[str, Any]], ...] = (
    (1440, "light", FOUND),
    (390, "dark", FOUND),
    (390, "light", {**FOUND, "runOnly": ["color-contrast"]}),
)
# The most screens of a phone that a page fills.
MOST_SCREENS = {
    "/": 4,
    "/?workload=mnist-cnn": 4,
    "/results/{result}": 6,
    "/trust": 6,
}
# The height of the page of all boards, had it five boards.
FIVE_BOARDS = """() => {
    const boards = [...document.querySelectorAll('.board')].map(one => one.offsetHeight);
    const all = boards.reduce((sum, one) => sum + one);
    return document.documentElement.scrollHeight + (5 / boards.length - 1) * all;
}"""
# How many labels of an axis touch the one before.
TOUCHING = """() => [...document.querySelectorAll('.x-axis')].flatMap(axis => {
    const labels = [...axis.querySelectorAll('.tick')].map(one => one.getBoundingClientRect());
    const shown = labels.filter(box => box.width);
    return shown.filter((box, place) => place && box.left < shown[place - 1].right);
}).length"""
# Words of the heading that are on two lines.
BROKEN = """() => {
    const texts = document.createTreeWalker(document.querySelector('h1'), NodeFilter.SHOW_TEXT);
    const range = document.createRange(), broken = [];
    while (texts.nextNode())
        for (const word of texts.currentNode.data.matchAll(/\\S+/g)) {
            range.setStart(texts.currentNode, word.index);
            range.setEnd(texts.currentNode, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map(box => box.top)).size > 1)
                broken.push(word[0]);
        }
    return broken;
}"""
# The first few items of a loop, folded parts included.
FEW_AND_UNFOLDED = """() => {
    const later = 'tbody tr:nth-child(n+6), li:nth-child(n+8), .operation ~ .operation';
    document.querySelectorAll(later).forEach(part => part.remove());
    document.querySelectorAll('details').forEach(part => part.open = true);
}"""


@pytest.mark.parametrize("widths", [(1440,), (390, 800)])
def test_pages_fit_stay_still_and_ask_no_other_host(
    browser: Browser, fleet: Fleet, widths: tuple[int, ...]
) -> None:
    page = browser.new_page()  # whose first page has nothing in a cache
    _slow_down(page)
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    for address in fleet.addresses:
        page.set_viewport_size({"width": widths[0], "height": 900})
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        assert _layout_shift(page) == 0, address
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(TOUCHING) == 0, address
            assert page.evaluate(BROKEN) == [], address
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    page.close()
    assert said == []
    assert hosts == {urlsplit(fleet.address).netloc}


def _slow_down(page: Page) -> None:
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


def test_a_phones_first_screen_answers_the_question(page: Page, fleet: Fleet) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for address, answer in (("/", ".dots li"), ("/?workload=mnist-cnn", ".ranking td.speed")):
        page.goto(f"{fleet.address}{address}")
        expect(page.locator(answer).first).to_be_in_viewport(ratio=1)


@WITHOUT_SCRIPT
def test_a_phone_has_short_pages(page: Page, fleet: Fleet) -> None:
    """Heights are in screens of 844 pixels; folded parts do not count."""
    page.set_viewport_size({"width": 390, "height": 844})
    for path, screens in MOST_SCREENS.items():
        page.goto(f"{fleet.address}{path.format(result=fleet.result)}")
        height = page.evaluate("document.documentElement.scrollHeight")
        assert height < screens * 844, path
    for path in ("/?group=setup", "/?rank_by=energy"):
        page.goto(f"{fleet.address}{path}")
        assert page.evaluate(FIVE_BOARDS) <= 3500, path
    page.goto(f"{fleet.address}/?workload=mnist-cnn")
    rows = page.locator(".ranking tbody tr")
    expect(rows.locator("visible=true")).to_have_count(8)
    page.locator(".more summary").click()
    expect(rows.locator("visible=true")).to_have_count(rows.count())


# The page's ground, the ring's contrast with it (WCAG 2.2, relative luminance), and whether the
# ring is around a dot.
RING = """() => {
    const light = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(Number).map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, n) => sum + part * [0.2126, 0.7152, 0.0722][n], 0.05);
    const ring = document.querySelector('.dots circle.ring'), dot = ring.nextElementSibling;
    const two = [getComputedStyle(ring).stroke, getComputedStyle(document.body).backgroundColor];
    const [dark, bright] = two.map(light).sort((a, b) => a - b);
    return [two[1], bright / dark, ring.r.baseVal.value > dot.r.baseVal.value + 3];
}"""


def test_a_ring_is_around_the_machine_of_a_page(page: Page, fleet: Fleet) -> None:
    page.emulate_media(reduced_motion="reduce")  # colours change at once
    page.goto(f"{fleet.address}/machines/{fleet.machine}")
    expect(page.locator(".dots circle.ring")).to_have_count(1)
    assert page.locator(".dots circle:not(.ring)").count() > 2
    for forced in FORCED:
        grounds = set()
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, forced_colors=forced)
            ground, contrast, around = page.evaluate(RING)
            assert contrast >= 3, (scheme, forced)
            assert around
            grounds.add(ground)
        assert len(grounds) == 2, forced


@WITHOUT_SCRIPT
def test_the_baseline_is_shown_where_slower_hardware_is_folded(page: Page, fleet: Fleet) -> None:
    page.goto(fleet.address)
    baseline = page.locator(".dots li", has_text="baseline").locator("visible=true")
    expect(baseline).to_have_count(1)
    expect(baseline.locator(".figure")).to_have_text("1.00×")
    page.locator(".dots summary").click()
    expect(baseline).to_have_count(1)


# Words that a reader sees, but those of rows: hardware and its figures are what was asked for.
WORDS = """() => {
    document.querySelectorAll('.dots li, .skip, option, svg').forEach(part => part.remove());
    return document.body.innerText.split(/\\s+/).filter(word => /[a-z]/i.test(word)).length;
}"""
# The smallest text in pixels.
SMALLEST = """() => Math.min(...[...document.querySelectorAll('body *')]
    .filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
    .map(one => parseFloat(getComputedStyle(one).fontSize)))"""


@WITHOUT_SCRIPT
def test_home_has_few_words(page: Page, fleet: Fleet) -> None:
    page.goto(fleet.address)
    assert 60 < page.evaluate(WORDS) <= 150


def test_text_is_large_enough_and_few_stops_come_before_the_rows(page: Page, fleet: Fleet) -> None:
    for address in ("/", "/?workload=mnist-cnn", "/?workload=mnist-cnn&group=machine"):
        page.goto(f"{fleet.address}{address}")
        assert page.evaluate(SMALLEST) >= 13, address
        stops = 0
        while page.evaluate("document.activeElement.type") != "checkbox":
            page.keyboard.press("Tab")
            stops += 1
            assert stops < 70, address


def test_axe_finds_nothing(browser: Browser, fleet: Fleet) -> None:
    # The pages' policy forbids axe's injected script, so the context bypasses it. The schemes
    # differ only in colours, without transition if motion is reduced.
    context = browser.new_context(bypass_csp=True, reduced_motion="reduce")
    page = context.new_page()
    violations = []
    for address in fleet.addresses:
        page.goto(address)
        page.evaluate(FEW_AND_UNFOLDED)
        page.evaluate(AXE_SCRIPT)
        for width, scheme, options in AXE:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            for violation in page.evaluate(VIOLATIONS, options):
                where = [node["target"] for node in violation["nodes"][:3]]
                violations.append((address, width, scheme, violation["id"], where))
    context.close()
    assert violations == []


@pytest.fixture(scope="module")
def texts(fleet: Fleet) -> dict[str, str]:
    with httpx.Client(timeout=30) as http:
        return {address: http.get(address).text for address in fleet.addresses}


def test_every_page_links_a_json_twin_that_answers(fleet: Fleet, texts: dict[str, str]) -> None:
    with httpx.Client(base_url=fleet.address, timeout=30) as http:
        for address, page in texts.items():
            twin = re.search(r'rel="alternate" type="application/json" href="([^"]+)"', page)
            if address.endswith("/compare"):  # nothing is chosen yet
                continue
            assert twin, address
            answer = http.get(twin[1].replace("&amp;", "&"))
            assert answer.status_code == 200, twin[1]
            assert answer.headers["content-type"].startswith("application/json")


def test_every_page_begins_with_its_question_or_its_finding(texts: dict[str, str]) -> None:
    """No heading begins with a program's name: frameworks have names for people."""
    for address, page in texts.items():
        lead = re.search(r'<div class="lead">\s*<h1>(.*?)</h1>\s*<p>.*?</p>', page)
        assert lead, address
        assert not re.match("(jax|mlx|tensorflow|torch) ", lead[1]), address
        words = re.sub("<[^>]+>", "", lead[0])
        finding = "fastest of" if "/compare?" in address else "mnist-cnn"
        finding = "How to check it" if "/results/" in address else finding
        finding = "In short" if "/documents/" in address else finding
        assert "?" in words or finding in words, address


def test_policy_lets_no_inline_script_or_style_in(texts: dict[str, str]) -> None:
    """tests/server/test_api.py has the policy itself."""
    for address, page in texts.items():
        assert not re.search(r"<script(?![^>]*\ssrc=)|\sstyle=|\son[a-z]+=\"", page), address


def test_leaderboard_is_light(fleet: Fleet) -> None:
    page = httpx.get(f"{fleet.address}/?workload=mnist-cnn", timeout=30)
    assert page.text.count('role="row"') >= 47
    assert len(zlib.compress(page.content)) < 60_000
    (script,) = re.findall(r'<script src="([^"]+)"', page.text)
    assert len(httpx.get(f"{fleet.address}{script}", timeout=30).content) < 60_000


def test_pictures_and_feed(fleet: Fleet) -> None:
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
        feed = ElementTree.fromstring(http.get("/feed.atom").content)
        atom = {"a": "http://www.w3.org/2005/Atom"}
        entries = feed.findall("a:entry", atom)
        assert len(entries) == 50
        link = entries[0].find("a:link", atom)
        assert link is not None
        assert http.get(link.attrib["href"]).status_code == 200


def test_each_row_of_a_comparison_has_its_own_name(fleet: Fleet) -> None:
    """Some set-ups of fashion-mlp differ in batch size alone."""
    pair = THREE.rpartition(",")[0]
    page = httpx.get(f"{fleet.address}/compare?ids={pair}&mode=same_software", timeout=30).text
    rows = re.findall(r'<span class="name">(.*?)</span>\s*<span class="lane">', page, re.DOTALL)
    names = [re.sub("<[^>]+>", "", row) for row in rows]
    assert any("batch 512" in name for name in names)
    assert len(set(names)) == len(names) > 5


def test_markup_in_names_is_text_in_pictures_feed_and_badges(fleet: Fleet) -> None:
    feed = httpx.get(f"{fleet.address}/feed.atom", timeout=30).text
    titles = [entry.text or "" for entry in ElementTree.fromstring(feed).iter() if entry.text]
    assert any(MARKUP in title for title in titles)
