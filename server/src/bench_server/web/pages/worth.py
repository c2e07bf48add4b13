"""Charts of hardware: speed by price and speed by energy."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
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
    """The first board that this hardware is on; none without the hardware and another one on it."""
    if answer.place is None:
        return ()
    workload = workload_named(answer.place.workload)
    filters = BoardFilters.model_validate({"workload": workload.name, "limit": MOST_ROWS})
    rows = leaderboard.leaderboard(session, filters).boards[0].rows
    mine = next((row for row in rows if row.hardware_slug == answer.slug), None)
    if mine is None:
        return ()
    all_prices = {
        row.hardware: prices.of(row.hardware_slug, row.hardware_slug, row.hardware)
        for row in (mine, *rows)
    }
    drawn, notes = comparable(all_prices)
    priced = [(row, drawn[row.hardware].amount) for row in rows if row.hardware in drawn]
    best = f"{speeds.unit(workload.name).title()}s per second, each hardware at its best"
    by_price = _chart(
        f"Speed in {mine.workload} by price",
        (price_words(drawn.values()), best),
        _of_rows(mine, priced, people.money),
        _whole,
        people.rate,
        notes if all_prices[mine.hardware] else (f"No price of {mine.hardware} is known.",),
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
    drawn, notes = comparable({one.name: one.price for one in answer.things if one.speed_up})
    amounts = {name: price.amount for name, price in drawn.items()}
    by_price = _chart(
        "Speed by price",
        (price_words(drawn.values()), times),
        [
            _of_thing(thing, amounts.get(thing.name), "price", people.money)
            for thing in answer.things
        ],
        _whole,
        people.round_ratio,
        notes,
    )
    by_energy = _chart(
        "Speed by energy",
        (f"Energy of the same work, times that of {first.name}", times),
        [
            _of_thing(thing, 1 if thing is first else thing.relative_energy, "energy", people.ratio)
            for thing in answer.things
        ],
        people.round_ratio,
        people.round_ratio,
    )
    return tuple(chart for chart in (by_price, by_energy) if chart)


def per_price(answer: CompareAnswer) -> tuple[str, ...]:
    """Each thing's speed per price beside that of the first, in words. Where a price is unknown,
    the price at which both are equally good; empty for the first and without a common figure."""
    first = answer.things[0]
    known, _ = comparable({one.name: one.price for one in answer.things if one.speed_up})
    base = known.get(first.name)
    words = []
    for thing in answer.things:
        own, speed = known.get(thing.name), thing.speed_up
        if thing is first or not speed:
            words.append("")
        elif base and own:
            price = own.amount / base.amount
            words.append(f"{people.ratio(speed / price)} the speed per price")
        elif base:
            amount = f"{people.money(speed * base.amount)} {base.currency or ''}".strip()
            words.append(f"equal speed per price at {amount}")
        else:
            words.append(f"equal speed per price at {people.times(speed)} times the price")
    return tuple(words)


def comparable(prices: Mapping[str, Price | None]) -> tuple[dict[str, Price], tuple[str, ...]]:
    """A price at launch is of a part: that of a processor is not drawn beside those of cards."""
    known = {name: price for name, price in prices.items() if price}
    part = next((price.part for price in known.values() if price.part), None)
    other = [name for name, price in known.items() if price.part not in (None, part)]
    notes = []
    if unknown := [name for name in prices if name not in known]:
        notes.append(f"Not drawn, because no price is known: {', '.join(unknown)}.")
    if other:
        are = f"their prices at launch are not of a {part}"
        notes.append(f"Not drawn, because {are}: {', '.join(other)}.")
    if part:
        notes.append(f"A price at launch is of the {part} alone, without the rest of a computer.")
    return {name: price for name, price in known.items() if name not in other}, tuple(notes)


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
    return f"{price:,.0f}" if price >= 10 else f"{price:g}"


def _of_rows(mine: BoardRow, found: list[tuple[BoardRow, float]], words: Words) -> list[Series]:
    """The row that a chart is about, then the others; none without it."""
    points = {
        row.hardware_slug: Point(
            x,
            speeds.per_second(row.samples_per_second, row.workload),
            f"{row.hardware}: {speeds.short(row.samples_per_second, row.workload)}, {words(x)}",
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
    title: str,
    axes: tuple[str, str],
    series: list[Series],
    x_words: Words,
    y_words: Words,
    notes: tuple[str, ...] = (),
) -> Plot | None:
    """None without points and notes; fewer than two points compare nothing: the notes alone."""
    if sum(len(line.points) for line in series) < 2:
        return Plot(title, (), {}, (), (), notes=notes) if notes else None
    drawn = plot(
        f"{title}, both axes logarithmic",
        series,
        x_words=x_words,
        y_words=y_words,
        axes=axes,
        x_log=True,
        y_log=True,
        joined=False,
    )
    return replace(drawn, notes=notes)
