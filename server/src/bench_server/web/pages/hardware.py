"""``/hardware/{slug}``: the figures of one hardware, what it is and what it costs."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlmodel import Session

from bench_protocol.base import format as people

from ...answers import hardware, leaderboard
from ...answers.board_filters import BoardFilters
from ...answers.prices import NO_PRICES, Prices
from ...answers.published import PublishedAnswer, published_figures
from ..plots import Plot
from . import worth
from .common import Page, WorkloadFigures, by_workload


@dataclass(frozen=True)
class SourcedFact:
    """A property in words, its source, and the source's address if it has one."""

    label: str
    value: str
    source: str
    url: str | None


@dataclass(frozen=True)
class HardwarePage(Page):
    """``/hardware/{slug}``: how fast does this hardware train, and in which set-up fastest?
    ``properties``: what it is and costs; ``charts``: its speed by price and by energy."""

    badge_href: str
    image_href: str
    feed_href: str
    answer: hardware.HardwareAnswer
    rank: str
    properties: tuple[SourcedFact, ...]
    charts: tuple[Plot, ...]
    price: str
    energy_price: str
    groups: tuple[WorkloadFigures, ...]
    sources: tuple[PublishedAnswer, ...]


def hardware_page(
    session: Session, slug: str, of_operator: str | None = None, prices: Prices = NO_PRICES
) -> HardwarePage:
    """Fill the context. Raises NotFound if this hardware has no figures."""
    answer = hardware.hardware(session, slug, of_operator, prices)
    own_price, own_energy_price = prices.of_reader.get(slug), prices.energy_per_kwh
    sources = published_figures(session) if answer.published else []
    return HardwarePage(
        title=answer.name,
        json_href=f"/api/v1/hardware/{slug}",
        badge_href=f"/hardware/{slug}/badge.svg",
        image_href=f"/hardware/{slug}/card.png",
        feed_href=f"/hardware/{slug}/feed.atom",
        answer=answer,
        rank=_rank(session, answer),
        properties=tuple(_properties(answer)),
        charts=worth.of_hardware(session, answer, prices),
        price="" if own_price is None else f"{own_price:g}",
        energy_price="" if own_energy_price is None else f"{own_energy_price:g}",
        groups=by_workload(answer.figures),
        sources=tuple(source for source in sources if source.hardware_slug == slug),
    )


def _rank(session: Session, answer: hardware.HardwareAnswer) -> str:
    """``15th of 47 on mnist-cnn``: its rank on the first board that it is on."""
    if answer.place is None or answer.published:
        return ""
    workload = answer.place.workload
    filters = BoardFilters.model_validate({"hardware": answer.slug, "workload": workload})
    board = leaderboard.leaderboard(session, filters).boards[0]
    rank = next((row.rank for row in board.rows if row.rank), None)
    return f"{people.ordinal(rank)} of {board.ranked_count} on {workload}" if rank else ""


def _properties(answer: hardware.HardwareAnswer) -> Iterator[SourcedFact]:
    on_cpu = bool(answer.figures) and answer.figures[0].device == "cpu"
    labels = {
        "memory_bytes": "Memory of its machines" if on_cpu else "Memory",
        "cores": "Cores",
        "power_limit_watts": "Thermal design power" if on_cpu else "Power limit",
        "year": "Year",
    }
    for one in answer.specifications:
        words = ", ".join(_value_words(one.property, value) for value in one.values)
        yield SourcedFact(labels[one.property], words, one.source, one.url)
    price = answer.price
    if price is not None:
        amount = f"{people.money(price.amount)} {price.currency or ''}".strip()
        sources = {
            "reader": "entered here",
            "operator": f"this server's operator, {price.date}",
            "launch": f"of the {price.part} alone, at launch, {price.date}; today's may differ",
        }
        yield SourcedFact("Price", amount, sources[price.basis], None)


def _value_words(property: str, value: float) -> str:
    if property == "memory_bytes":
        return people.size(int(value))
    return f"{value:g} W" if property == "power_limit_watts" else f"{value:g}"
