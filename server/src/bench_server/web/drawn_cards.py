"""Drawing of cards for link previews and of badges, as SVG and PNG."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import resvg_py

from . import short_names
from .render import xml_templates

# Approximate widths of letters in Verdana 11 px, the font of badges.
NARROW, WIDE = "fijlrtI.,:;'|!()[] ", "mwMW@%DGHNOQU&+=#<>~^"
# Width of a card's title in units of those letters, which are 1.2 times as wide in bold; the sizes
# of the title in pixels on one line and on two.
TITLE_WIDTH, ONE_LINE, TWO_LINES = 1080 * 11 / 1.2, (34, 50), (26, 38)


class Bar(NamedTuple):
    """``kind``: its device, or ``baseline`` or ``other``; ``own``: the card is about this bar."""

    label: str
    size: float
    value: str
    kind: str
    note: str | None
    own: bool = False


class Title(NamedTuple):
    """The lines of a title, one or two, and their size in pixels."""

    lines: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class Card:
    """A picture of 1200 by 630 for link previews: title, subtitle, bars."""

    title: str
    line: str
    bars: Sequence[Bar]
    foot: str


def png(card: Card, site_name: str, mark: str = "", log: str = "") -> bytes:
    return bytes(resvg_py.svg_to_bytes(svg_string=svg(card, site_name, mark, log)))


def svg(card: Card, site_name: str, mark: str = "", log: str = "") -> str:
    """``mark``: the address of its page, and the day; ``log``: the log entries that it rests on."""
    title = _title("".join(filter(str.isprintable, card.title)))
    template = xml_templates().get_template("card.svg")
    return template.render(card=card, site_name=site_name, title=title, mark=mark, log=log)


def badge(name: str, words: str) -> str:
    """An SVG badge with two fields, 20 pixels high: ``M4 Pro``, ``0.92× M2 Max``."""
    label, value = ((text, round(_width(text)) + 12) for text in (name, words))
    return xml_templates().get_template("badge.svg").render(label=label, value=value)


def _title(words: str) -> Title:
    """The largest size that fits: on one line, else on two, else without its last words."""
    least, largest = ONE_LINE
    if _width(words) * least <= TITLE_WIDTH:
        return Title((words,), min(largest, int(TITLE_WIDTH / max(1, _width(words)))))
    least, largest = TWO_LINES
    for most in range(len(words), 0, -1):
        shorter = short_names.text(words, most)
        # The two lines that are most alike; a single word is on one.
        halves: list[tuple[str, ...]]
        halves = [(shorter[:n], shorter[n + 1 :]) for n, c in enumerate(shorter) if c == " "]
        lines = min(halves, key=lambda pair: max(map(_width, pair)), default=(shorter,))
        size = int(TITLE_WIDTH / max(1, *map(_width, lines)))
        if size >= least:
            return Title(lines, min(largest, size))
    return Title(("…",), largest)


def _width(text: str) -> float:
    """The approximate width of a text at 11 px. Beyond Latin letters it is an upper bound."""
    return sum(
        13 if not c.isascii() else 4.5 if c in NARROW else 10 if c in WIDE else 7 for c in text
    )
