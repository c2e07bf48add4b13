"""Charts of hardware: speed by price and speed by energy."""

from collections.abc import Iterable

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import workload_named

from ...answers import leaderboard
from ...answers.filters import BoardFilters
from ...answers.hardware import HardwareAnswer
from ...answers.prices import Price, Prices
from ...answers.types.comparison import CompareAnswer
from ...answers.types.leaderboard import BoardRow
from ..plots import Plot, Point, Series, Words, plot
from ..render import scope_words

Charts = tuple[Plot, ...]
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
    priced = [
        (row, price)
        for row in rows
        if (price := prices.of(row.hardware_slug, row.hardware_slug, row.hardware))
    ]
    by_price = _chart(
        f"Speed in {mine.workload} by price: samples per second, each hardware at its best. "
        f"{price_words(price for _, price in priced)}",
        {row.hardware_slug: _point(row, price.amount, people.money) for row, price in priced},
        _whole,
        people.rate,
        mine,
    )
    by_energy = mine.joules_per_epoch and _chart(
        f"Speed in {mine.workload} by energy: samples per second, each hardware at its best. "
        f"Energy of an epoch, {scope_words(mine.energy_scope or '')}; less is better",
        {
            row.hardware_slug: _point(row, row.joules_per_epoch, people.joules)
            for row in rows
            if row.joules_per_epoch and row.energy_scope == mine.energy_scope
        },
        people.joules,
        people.rate,
        mine,
    )
    return tuple(chart for chart in (by_price, by_energy) if chart)


def of_comparison(answer: CompareAnswer) -> Charts:
    """Compared things by price and by energy, relative to the first."""
    first = answer.things[0]
    measured = [(thing, thing.speed_up) for thing in answer.things if thing.speed_up]
    priced = [(thing, speed_up, thing.price) for thing, speed_up in measured if thing.price]
    by_price = _chart(
        f"Speed by price: times as fast as {first.name}. "
        f"{price_words(price for *_, price in priced)}",
        {
            thing.id: _thing(thing.name, price.amount, speed_up, f"at {people.money(price.amount)}")
            for thing, speed_up, price in priced
        },
        _whole,
        people.ratio,
    )
    energies = {thing.id: thing.relative_energy for thing in answer.things} | {first.id: 1.0}
    by_energy = _chart(
        f"Speed by energy: times as fast as {first.name}. "
        f"Energy of a sample, times that of {first.name}",
        {
            thing.id: _thing(
                thing.name, energy, speed_up, f"with {people.ratio(energy)} the energy"
            )
            for thing, speed_up in measured
            if (energy := energies[thing.id])
        },
        people.ratio,
        people.ratio,
    )
    return tuple(chart for chart in (by_price, by_energy) if chart)


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


def _whole(price: float) -> str:
    """A price on an axis."""
    return f"{price:,.0f}" if price >= 10 else f"{price:g}"


def _point(row: BoardRow, x: float, words: Words) -> Point:
    rate = people.rate(row.samples_per_second)
    return Point(
        x, row.samples_per_second, f"{row.hardware}: {rate}/s, {words(x)}", label=row.hardware
    )


def _thing(name: str, x: float, speed_up: float, words: str) -> Point:
    return Point(x, speed_up, f"{name}: {people.ratio(speed_up)} {words}", label=name)


def _chart(
    title: str,
    points: dict[str, Point],
    x_words: Words,
    y_words: Words,
    own: BoardRow | None = None,
) -> Plot | None:
    """Points by the id of what they are of; None for fewer than two, which compare nothing.

    Args:
        own: the row that the chart is about; None without its point.
    """
    if len(points) < 2 or (own and own.hardware_slug not in points):
        return None
    series = [Series(own.hardware, (points.pop(own.hardware_slug),))] if own else []
    others = sorted(points.values(), key=lambda point: (-point.y, point.x))
    return plot(
        f"{title}, both axes logarithmic",
        [*series, Series("Other hardware", tuple(others))],
        x_words=x_words,
        y_words=y_words,
        x_log=True,
        y_log=True,
        joined=False,
    )
