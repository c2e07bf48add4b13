"""Sizes of links, heads and cells, with fonts of other heights and widths."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page
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

BOXES_BEYOND_ROWS = """() => [...document.querySelectorAll('tr .pick label')].filter(one =>
    one.getBoundingClientRect().right >= one.closest('tr').getBoundingClientRect().right + 0.5)
    .map(one => one.outerHTML.slice(0, 120))"""

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

# Each page is searched for these faults at each width in pixels, in any font.
FAULTS = {
    1440: (SMALL, BOXES_BEYOND_ROWS, EMPTY_COLUMNS),
    390: (SMALL, BOXES_BEYOND_ROWS, WIDER, BESIDE_THE_SCREEN, UNSEEN, HINTS_CUT),
    320: (WIDER, BESIDE_THE_SCREEN, UNSEEN),
}
USE = """(fonts) => Object.entries(fonts).forEach(
    ([name, font]) => document.documentElement.style.setProperty(name, `'${font}'`))"""


@pytest.fixture
def page(page: Page) -> Page:
    for family in FONTS:
        if not page.evaluate(INSTALLED, family):
            pytest.skip(f"{family} is not installed: {set_up.fonts_command()}")
    return page


def in_each_font(page: Page) -> Iterator[str]:
    """Loading a page again for each font would take three times as long."""
    for family, code in FONTS.items():
        page.evaluate(USE, {"--sans": family, "--mono": code})
        yield family


def test_no_head_of_a_table_is_cut(fleet: Fleet, page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    boards = [f"{BOARD}&rank_by={metric}" for metric in METRICS]
    for address in (*boards, "/documents/faults"):
        page.goto(f"{fleet.address}{address}")
        for family in in_each_font(page):
            assert page.evaluate(CUT) == [], (address, family)


def test_cells_hold_their_text_and_what_can_be_pressed_is_large_enough(
    fleet: Fleet, page: Page
) -> None:
    for address in fleet.addresses:
        page.goto(address)
        for width, faults in FAULTS.items():
            page.set_viewport_size({"width": width, "height": 900})
            for family in in_each_font(page):
                found = [fault for script in faults for fault in page.evaluate(script)]
                assert found == [], (address, width, family)
