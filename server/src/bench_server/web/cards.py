"""Cards, badges and feed for other sites: pictures of results and comparisons, SVG badges, Atom."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import resvg_py
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sqlmodel import Session

from bench_protocol import format as people
from bench_protocol.catalogue import CATALOGUE

from ..answers import hardware, leaderboard, queries
from ..answers.filters import BoardFilters, ResultPageFilters
from ..answers.types import CompareAnswer
from ..db.tables import Measurement
from ..errors import NotFound
from .render import FOLDER

CARD_BARS = 6
FEED_ENTRIES = 50
# Character widths of Verdana 11 px, the font of badges; others count as a digit.
NARROW, WIDE = "fijlrtI.,:;'|!()[] ", "mwMW@%"


@dataclass(frozen=True)
class CardBar:
    """A bar of a card; ``share``: of the longest bar. ``kind``: its device, or ``baseline`` or
    ``other`` in a comparison."""

    label: str
    value: str
    share: float
    kind: str


@dataclass(frozen=True)
class Card:
    """A picture of 1200 by 630 for link previews: title, subtitle, bars."""

    title: str
    line: str
    bars: tuple[CardBar, ...]
    foot: str


@dataclass(frozen=True)
class FeedEntry:
    """A new ranked result."""

    id: str
    title: str
    at: datetime


def result_card(session: Session, result_id: str) -> Card:
    """The result beside the fastest hardware of its board. Raises NotFound if there is no such
    result."""
    _, row = queries.result_with_id(session, result_id)
    line = f"{row.workload}, {row.framework} {row.recipe}, batch {row.batch_size:,}"
    if row.samples_per_second is None or row.status == "failed":
        return Card(row.hardware, line, (), row.unranked_reason or "no figure")
    value = f"{people.rate(row.samples_per_second)} samples/s"
    bars = [(row.hardware, row.samples_per_second, row.device), *_peers(session, row)]
    foot = f"{value}, epoch {people.nanoseconds(row.epoch_ns or 0)}, trust level {row.trust_level}"
    return Card(row.hardware, line, _bars(bars), foot)


def compare_card(answer: CompareAnswer) -> Card:
    """The geometric means of a comparison as bars."""
    speed_ups = [
        (thing.name, thing.speed_up) for thing in answer.things if thing.speed_up is not None
    ]
    most = max((ratio for _, ratio in speed_ups), default=1.0)
    bars = tuple(
        CardBar(name, people.ratio(ratio), ratio / most, "other" if place else "baseline")
        for place, (name, ratio) in enumerate(speed_ups[:CARD_BARS])
    )
    title = " against ".join(thing.name for thing in answer.things[:2])
    more = len(answer.things) - 2
    line = f"geometric mean of {answer.common_cells} of {answer.all_cells} cells"
    alone = any(thing.scope == "machines" for thing in answer.things)
    foot = f"{answer.things[0].name} is 1×; more is faster"
    foot += "; one machine a side" if alone else ""
    return Card(title + (f" and {more} more" if more > 0 else ""), line, bars, foot)


def png(card: Card, site_name: str) -> bytes:
    """Draw a card as PNG."""
    svg = _templates().get_template("card.svg").render(card=card, site_name=site_name)
    return bytes(resvg_py.svg_to_bytes(svg_string=svg))


def badge(label: str, value: str) -> str:
    """An SVG badge with two fields, 20 pixels high."""
    fields = {"label": label, "value": value}
    widths = {f"{name}_width": _text_width(text) + 12 for name, text in fields.items()}
    return _templates().get_template("badge.svg").render(**fields, **widths)


def hardware_badge(session: Session, slug: str) -> str:
    """The badge of a hardware. Raises NotFound if it has no figures."""
    answer = hardware.hardware(session, slug)
    return badge("training speed", _badge_value(answer.figures))


def machine_badge(session: Session, machine_id: str) -> str:
    """The badge of a machine. Raises NotFound if it has no figures."""
    return badge("training speed", _badge_value(hardware.machine(session, machine_id).figures))


def feed(session: Session) -> tuple[FeedEntry, ...]:
    """The newest ranked results, newest first."""
    filters = ResultPageFilters.model_validate({"ranked": True, "limit": FEED_ENTRIES})
    rows, _ = queries.results(session, filters)
    return tuple(FeedEntry(row.submission_id, _feed_title(row), row.received_at) for _, row in rows)


def atom(entries: tuple[FeedEntry, ...], origin: str, site_name: str) -> str:
    """The feed as Atom (RFC 4287)."""
    template = _templates().get_template("feed.atom")
    return template.render(entries=entries, origin=origin, site_name=site_name)


def _feed_title(row: Measurement) -> str:
    rate = people.rate(row.samples_per_second or 0)
    return f"{row.hardware}: {row.workload} at {rate} samples/s, {row.framework} {row.recipe}"


def _badge_value(figures: tuple[hardware.CellFigure, ...]) -> str:
    if not figures:
        raise NotFound("no figure of a workload that this server knows", field="slug")
    first = figures[0]
    return f"{people.rate(first.samples_per_second)}/s {first.workload}"


def _peers(session: Session, row: Measurement) -> list[tuple[str, float, str]]:
    """Some other hardware of the board, spread from first to last rank."""
    workload = next((w for w in CATALOGUE if w.digest == row.workload_digest), None)
    if workload is None:
        return []
    filters = BoardFilters.model_validate(
        {name: getattr(row, name) for name in ("batch_size", "precision", "data", "timing")}
    )
    rows = leaderboard.board(session, workload, filters).rows
    others = [other for other in rows if other.hardware_slug != row.hardware_slug]
    step = max(1, len(others) // (CARD_BARS - 1))
    return [(o.hardware, o.samples_per_second, o.device) for o in others[::step][: CARD_BARS - 1]]


def _bars(values: list[tuple[str, float, str]]) -> tuple[CardBar, ...]:
    ordered = sorted(values, key=lambda value: -value[1])
    return tuple(
        CardBar(name, f"{people.rate(rate)}/s", rate / ordered[0][1], device)
        for name, rate, device in ordered
    )


def _text_width(text: str) -> int:
    return round(sum(4 if c in NARROW else 10 if c in WIDE else 7 for c in text))


@cache
def _templates() -> Environment:
    def short(text: str, most: int) -> str:
        return text if len(text) <= most else text[: most - 1] + "…"

    env = Environment(
        loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined
    )
    env.filters.update(short=short, plain=_plain)
    return env


def _plain(text: Any) -> str:
    """Text without bidirectional controls and characters that XML forbids."""
    return "".join(c for c in str(text) if c.isprintable())
