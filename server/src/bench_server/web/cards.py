"""How cards are drawn, and SVG badges. :mod:`.share_cards` fills the cards."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import resvg_py
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sqlmodel import Session

from bench_protocol.base import format as people

from ..answers import hardware, machines
from ..answers.cell_figures import CellFigure
from ..answers.types import CompareAnswer
from ..errors import NotFound
from .render import FOLDER

CARD_BARS = 6
# Approximate widths of letters in Verdana 11 px, the font of badges.
NARROW, WIDE = "fijlrtI.,:;'|!()[] ", "mwMW@%DGHNOQU&+=#<>~^"
# Width of a card's texts; the sizes of its title in pixels; bold letters beside those of a badge.
TEXT_WIDTH, LARGEST_TITLE, LEAST_TITLE, BOLD = 1080, 50, 28, 1.2


@dataclass(frozen=True)
class CardBar:
    """A bar of a card; ``share``: of the longest bar. ``kind``: its device, or ``baseline`` or
    ``other`` in a comparison. ``setup``: a second line: the set-up where
    the bars of a card are of several, the rank in a comparison.
    ``own``: the bar that the card is about."""

    label: str
    value: str
    share: float
    kind: str
    setup: str | None = None
    own: bool = False


@dataclass(frozen=True)
class Card:
    """A picture of 1200 by 630 for link previews: title, subtitle, bars."""

    title: str
    line: str
    bars: tuple[CardBar, ...]
    foot: str


def compare_card(answer: CompareAnswer, places: Mapping[str, str]) -> Card:
    """The geometric means of a comparison as bars.

    Args:
        places: the rank in words of the things that have one, by id.
    """
    speed_ups = [(thing, thing.speed_up) for thing in answer.things if thing.speed_up is not None]
    most = max((ratio for _, ratio in speed_ups), default=1.0)
    bars = tuple(
        CardBar(
            thing.name,
            people.ratio(ratio),
            ratio / most,
            "other" if number else "baseline",
            places.get(thing.id),
        )
        for number, (thing, ratio) in enumerate(speed_ups[:CARD_BARS])
    )
    title = " against ".join(thing.name for thing in answer.things[:2])
    more = len(answer.things) - 2
    line = f"geometric mean of {answer.common_cells} of {answer.all_cells} workloads and set-ups"
    alone = any(thing.scope == "machines" for thing in answer.things)
    foot = f"{answer.things[0].name} is 1×; more is faster"
    foot += "; one machine a side" if alone else ""
    return Card(title + (f" and {more} more" if more > 0 else ""), line, bars, foot)


def png(card: Card, site_name: str) -> bytes:
    """Draw a card as PNG."""
    svg = templates().get_template("card.svg").render(card=card, site_name=site_name)
    return bytes(resvg_py.svg_to_bytes(svg_string=svg))


def badge(label: str, value: str) -> str:
    """An SVG badge with two fields, 20 pixels high."""
    fields = {"label": label, "value": value}
    widths = {f"{name}_width": _text_width(text) + 12 for name, text in fields.items()}
    return templates().get_template("badge.svg").render(**fields, **widths)


def hardware_badge(session: Session, slug: str) -> str:
    """The badge of a hardware. Raises NotFound if it has no figures."""
    answer = hardware.hardware(session, slug)
    return badge("training speed", _badge_value(answer.place or next(iter(answer.figures), None)))


def machine_badge(session: Session, machine_id: str) -> str:
    """The badge of a machine. Raises NotFound if it has no figures."""
    shown = machines.shown_figure(machines.machine_figures(session, machine_id))
    return badge("training speed", _badge_value(shown))


def _badge_value(figure: CellFigure | None) -> str:
    """A figure as a board shows it; of another set-up only where the board has none."""
    if figure is None:
        raise NotFound("no figure of a workload that this server knows", field="slug")
    return f"{people.rate(figure.samples_per_second)}/s {figure.workload}"


def _text_width(text: str) -> int:
    return round(sum(_width(c) for c in text))


def _width(c: str) -> float:
    if not c.isascii():
        return 13
    return 4.5 if c in NARROW else 10 if c in WIDE else 7


def _title_size(title: str) -> int:
    """The largest size at which a title fits a card, within limits."""
    fits = int(TEXT_WIDTH * 11 / (BOLD * max(1, _text_width(title))))
    return max(LEAST_TITLE, min(LARGEST_TITLE, fits))


def _title(title: str) -> str:
    """A title that fits a card at its least size, shortened if need be."""
    if _text_width(title) * BOLD * LEAST_TITLE <= TEXT_WIDTH * 11:
        return title
    while _text_width(f"{title}…") * BOLD * LEAST_TITLE > TEXT_WIDTH * 11:
        title = title[:-1]
    return f"{title.rstrip()}…"


@cache
def templates() -> Environment:
    """Templates of XML documents: pictures and feeds."""

    def short(text: str, most: int) -> str:
        return text if len(text) <= most else text[: most - 1] + "…"

    env = Environment(
        loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined
    )
    env.filters.update(short=short, plain=_plain, title_size=_title_size, card_title=_title)
    return env


def _plain(text: Any) -> str:
    """Text without bidirectional controls and characters that XML forbids."""
    return "".join(c for c in str(text) if c.isprintable())
