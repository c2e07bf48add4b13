"""Charts of hardware: speed by price and speed by energy."""

from collections.abc import Iterable

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import workload_named

from ...answers import leaderboard
from ...answers.board_filters import BoardFilters
from ...answers.hardware import HardwareAnswer
from ...answers.prices import Price, Prices
from ...answers.types.comparison import CompareAnswer, ComparedThing
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
    filters = BoardFilters.model_validate({"workload": workload.name, "limit": MOST_ROWS})
    rows = leaderboard.leaderboard(session, filters).boards[0].rows
    mine = next((row for row in rows if row.hardware_slug == answer.slug), None)
    if mine is None:
        return ()
    priced = [
        (row, price)
        for row in rows
        if (price := prices.of(row.hardware_slug, row.hardware_slug, row.hardware))
    ]
    best = "Samples per second, each hardware at its best"
    by_price = _chart(
        f"Speed in {mine.workload} by price",
        (price_words(price for _, price in priced), best),
        _of_rows(mine, [(row, price.amount) for row, price in priced], people.money),
        _whole,
        people.rate,
    )
    energies = [
        (row, row.joules_per_epoch)
        for row in rows
        if row.joules_per_epoch and row.energy_scope == mine.energy_scope
    ]
    by_energy = _chart(
        f"Speed in {mine.workload} by energy",
        (f"Energy of an epoch, {scope_words(mine.energy_scope or '')}; less is better", best),
        _of_rows(mine, energies, people.joules),
        people.joules,
        people.rate,
    )
    return tuple(chart for chart in (by_price, by_energy) if chart)


def of_comparison(answer: CompareAnswer) -> Charts:
    """Compared things by price and by energy, relative to the first."""
    first = answer.things[0]
    times = f"Times as fast as {first.name}"
    by_price = _chart(
        "Speed by price",
        (price_words(one.price for one in answer.things if one.speed_up and one.price), times),
        [
            _of_thing(thing, thing.price.amount if thing.price else 0, "price", people.money)
            for thing in answer.things
        ],
        _whole,
        people.ratio,
    )
    by_energy = _chart(
        "Speed by energy",
        (f"Energy of a sample, times that of {first.name}", times),
        [
            _of_thing(thing, 1 if thing is first else thing.relative_energy, "energy", people.ratio)
            for thing in answer.things
        ],
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


def _of_rows(mine: BoardRow, found: list[tuple[BoardRow, float]], words: Words) -> list[Series]:
    """The row that a chart is about, then the others; none without it."""
    points = {
        row.hardware_slug: Point(
            x,
            row.samples_per_second,
            f"{row.hardware}: {people.rate(row.samples_per_second)}/s, {words(x)}",
            label=row.hardware,
        )
        for row, x in found
    }
    own = points.pop(mine.hardware_slug, None)
    others = tuple(sorted(points.values(), key=lambda point: (-point.y, point.x)))
    return [Series(mine.hardware, (own,)), Series("Other hardware", others)] if own else []


def _of_thing(thing: ComparedThing, x: float | None, what: str, words: Words) -> Series:
    """A thing as a series, which keeps its place, and so its colour, without a point too."""
    if not x or not thing.speed_up:
        return Series(thing.name, ())
    text = f"{thing.name}: speed {people.ratio(thing.speed_up)}, {what} {words(x)}"
    return Series(thing.name, (Point(x, thing.speed_up, text, label=thing.name),))


def _chart(
    title: str, axes: tuple[str, str], series: list[Series], x_words: Words, y_words: Words
) -> Plot | None:
    """Series below the titles of the x and of the y axis; None for fewer than two points, which
    compare nothing."""
    if sum(len(line.points) for line in series) < 2:
        return None
    return plot(
        f"{title}, both axes logarithmic",
        series,
        x_words=x_words,
        y_words=y_words,
        axes=axes,
        x_log=True,
        y_log=True,
        joined=False,
    )
