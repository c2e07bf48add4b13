"""Charts of hardware: speed by price and speed by energy."""

from collections.abc import Iterable, Sequence

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import workload_named

from ...answers import leaderboard
from ...answers.filters import BoardFilters
from ...answers.hardware import HardwareAnswer
from ...answers.prices import Price, Prices
from ...answers.types.comparison import CompareAnswer
from ...answers.types.leaderboard import BoardRow
from ..render import scope_words
from ..scatter import Dot, Scatter, scatter
from .common import vendor

Charts = tuple[Scatter, ...]
MOST_ROWS = 500


def of_hardware(session: Session, answer: HardwareAnswer, prices: Prices) -> Charts:
    """The first board that this hardware is on, by price and by the energy of an epoch. A chart
    needs the hardware itself and another one."""
    if answer.place is None:
        return ()
    workload = workload_named(answer.place.workload)
    filters = BoardFilters.model_validate({"limit": MOST_ROWS})
    rows = leaderboard.board(session, workload, filters).rows
    mine = next((row for row in rows if row.hardware_slug == answer.slug), None)
    if mine is None:
        return ()
    return tuple(
        chart
        for chart in (_by_price(rows, mine, prices), _by_energy(rows, mine))
        if chart is not None
    )


def of_comparison(answer: CompareAnswer) -> Charts:
    """Compared things by price and by energy, relative to the first."""
    y_title = f"Times as fast as {answer.things[0].name}"
    priced = [(thing, thing.price) for thing in answer.things if thing.price]
    by_price = scatter(
        "Speed by price",
        price_words(price for _, price in priced),
        y_title,
        [
            Dot(
                price.amount,
                thing.speed_up,
                thing.name,
                vendor(thing.name),
                f"{thing.name}: {people.ratio(thing.speed_up)} at {people.money(price.amount)}",
            )
            for thing, price in priced
            if thing.speed_up
        ],
        _whole,
        people.ratio,
    )
    energies = [1.0, *(thing.relative_energy for thing in answer.things[1:])]
    by_energy = scatter(
        "Speed by energy",
        f"Energy of a sample, times that of {answer.things[0].name}",
        y_title,
        [
            Dot(
                energy,
                thing.speed_up,
                thing.name,
                vendor(thing.name),
                f"{thing.name}: {people.ratio(thing.speed_up)} with {people.ratio(energy)} the "
                "energy",
            )
            for thing, energy in zip(answer.things, energies, strict=True)
            if thing.speed_up and energy
        ],
        people.ratio,
        people.ratio,
    )
    return tuple(chart for chart in (by_price, by_energy) if chart is not None)


def price_words(prices: Iterable[Price]) -> str:
    """The title of an axis of prices: whose prices they are, in which currency, and of when."""
    found = list(prices)
    bases = dict.fromkeys(
        {
            "reader": "your price",
            "operator": f"price on {price.date}",
            "launch": "price at launch",
        }[price.basis]
        for price in found
    )
    currencies = sorted({price.currency for price in found if price.currency})
    words = " or ".join(bases)
    return f"{words[:1].upper()}{words[1:]}{f' in {currencies[0]}' if currencies else ''}"


def _by_price(rows: Sequence[BoardRow], mine: BoardRow, prices: Prices) -> Scatter | None:
    found = [
        (row, price)
        for row in rows
        if (price := prices.of(row.hardware_slug, row.hardware_slug, row.hardware))
    ]
    if mine not in [row for row, _ in found]:
        return None
    return scatter(
        f"Speed in {mine.workload} by price",
        price_words(price for _, price in found),
        "Samples per second, each hardware at its best",
        [_dot(row, price.amount, people.money(price.amount), mine) for row, price in found],
        _whole,
        people.rate,
    )


def _by_energy(rows: Sequence[BoardRow], mine: BoardRow) -> Scatter | None:
    if mine.joules_per_epoch is None or mine.energy_scope is None:
        return None
    return scatter(
        f"Speed in {mine.workload} by energy",
        f"Energy of an epoch, {scope_words(mine.energy_scope)}; less is better",
        "Samples per second, each hardware at its best",
        [
            _dot(row, row.joules_per_epoch, people.joules(row.joules_per_epoch), mine)
            for row in rows
            if row.joules_per_epoch and row.energy_scope == mine.energy_scope
        ],
        people.joules,
        people.rate,
    )


def _whole(price: float) -> str:
    """A price on an axis."""
    return f"{price:,.0f}" if price >= 10 else f"{price:g}"


def _dot(row: BoardRow, x: float, x_words: str, mine: BoardRow) -> Dot:
    return Dot(
        x,
        row.samples_per_second,
        row.hardware,
        vendor(row.hardware),
        f"{row.hardware}: {people.rate(row.samples_per_second)}/s, {x_words}",
        own=row is mine,
    )
