"""Sizes of links, heads and cells, with fonts of other heights and widths."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page
from tests import set_up
from tests.pages.looking import BOARD, EMPTY_COLUMNS, Fleet

from bench_server.web.pages.board_links import METRICS

# A system without other fonts has one of these: the text font, and that of code.
FONTS = {"Liberation Sans": "Liberation Mono", "DejaVu Sans": "DejaVu Sans Mono"}
# What can be pressed and is no link within a sentence, with its size in pixels.
SMALL = """() => [...document.querySelectorAll(
        'header a:not(.skip), main a, footer a, main button, main summary, main input')]
    .filter(one => one.checkVisibility({visibilityProperty: true}) && one.type !== 'hidden')
    .filter(one => !one.closest('p, .explain, .prose, .reason, [popover]'))
    .map(one => one.closest('label') ?? one)
    .filter(one => { const box = one.getBoundingClientRect();
                     return box.width < 24 || box.height < 24 - 0.01; })
    .map(one => one.outerHTML.slice(0, 120))"""

# Heads of a board that are wider than their column or higher than a line, and tables that scroll.
CUT = """() => [
    ...[...document.querySelectorAll('.ranking thead .head')].filter(one =>
        one.scrollWidth > one.parentElement.clientWidth || one.clientHeight > 30),
    ...[...document.querySelectorAll('.prose table')].filter(one =>
        one.scrollWidth > one.clientWidth)].map(one => one.innerText.slice(0, 60))"""

BOXES_WITHIN_ROWS = """() => [...document.querySelectorAll('tr .pick label')].every(one =>
    one.getBoundingClientRect().right < one.closest('tr').getBoundingClientRect().right + 0.5)"""

# Heads of a board that leave a phone's screen, or are in no line with the others.
BESIDE_THE_SCREEN = """() => [...document.querySelectorAll('.ranking thead *')]
    .filter(one => one.getBoundingClientRect().right > innerWidth)
    .map(one => one.outerHTML.slice(0, 100))"""

# What the keyboard reaches in heads that are there for screen readers alone.
UNSEEN = """() => [...document.querySelectorAll('thead')]
    .filter(head => head.getBoundingClientRect().width <= 1)
    .flatMap(head => [...head.querySelectorAll('a, button, input')])
    .filter(part => part.checkVisibility()).map(part => part.outerHTML.slice(0, 100))"""

# Text that is wider than its cell on a phone.
WIDER = """() => [...document.querySelectorAll('td, th, dt, dd')]
    .filter(cell => cell.clientWidth > 1 && cell.scrollWidth > cell.clientWidth + 1)
    .filter(cell => !cell.closest('thead, .scroll, .prose table'))
    .map(cell => cell.innerText)"""

# Whether a font is installed: no other font is used in its place.
INSTALLED = """name => {
    const canvas = document.createElement('canvas').getContext('2d');
    const widths = ['serif', 'monospace'].map(other => {
        canvas.font = `40px "${name}", ${other}`;
        return canvas.measureText('Illwm').width;
    });
    return widths[0] === widths[1];
}"""

# Hints in empty fields that are wider than their field.
HINTS_CUT = """() => [...document.querySelectorAll('[placeholder]')].filter(one => {
    const canvas = document.createElement('canvas').getContext('2d');
    const box = getComputedStyle(one), hint = getComputedStyle(one, '::placeholder');
    canvas.font = `${hint.fontSize} ${hint.fontFamily}`;
    const room = one.clientWidth - parseFloat(box.paddingLeft) - parseFloat(box.paddingRight);
    return one.checkVisibility() && canvas.measureText(one.placeholder).width > room;
}).map(one => one.placeholder)"""

Open = Callable[[str], Page]


@pytest.fixture(params=FONTS)
def look(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Open]:
    family = request.param
    context = browser.new_context(bypass_csp=True, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    if not page.evaluate(INSTALLED, family):
        pytest.skip(f"{family} is not installed: {set_up.fonts_command()}")
    style = f":root {{ --sans: '{family}'; --mono: '{FONTS[family]}'; }}"

    def opened(address: str) -> Page:
        page.goto(address)
        page.add_style_tag(content=style)
        return page

    yield opened
    context.close()


def test_no_head_of_a_table_is_cut(fleet: Fleet, look: Open) -> None:
    boards = [f"{BOARD}&rank_by={metric}" for metric in METRICS]
    for address in (*boards, "/documents/faults"):
        assert look(f"{fleet.address}{address}").evaluate(CUT) == [], address


def test_what_can_be_pressed_is_large_enough(fleet: Fleet, look: Open) -> None:
    for address in fleet.addresses:
        page = look(address)
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert not (found := page.evaluate(SMALL)), (address, "\n".join(found))
            assert page.evaluate(BOXES_WITHIN_ROWS), address


def test_every_cell_of_a_phone_holds_its_text(fleet: Fleet, look: Open) -> None:
    for address in fleet.addresses:
        page = look(address)
        assert page.evaluate(EMPTY_COLUMNS) == [], address
        for width in (390, 320):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(WIDER) == [], (address, width)
            assert page.evaluate(BESIDE_THE_SCREEN) == [], (address, width)
            assert page.evaluate(UNSEEN) == [], (address, width)
            assert width < 390 or page.evaluate(HINTS_CUT) == [], address
