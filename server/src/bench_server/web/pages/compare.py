"""``/compare``: two to twenty items side by side."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session

from bench_protocol.base import format as people

from ...answers import comparison, query_names
from ...answers.prices import Prices
from ...answers.types.comparison import (
    Across,
    CompareAnswer,
    ComparedCell,
    ComparedRow,
    ComparedThing,
    Mode,
)
from ...ranking.held import WORDS as HELD
from ..dots import DotPlot, Row, Value, dot_plot
from ..plots import Plot
from . import worth
from .common import Choice, address

MOST_CHOICES = 60
COLOURS = 6
# Each of these ratios begins a stronger colour.
STRONGER = (1.25, 2.0, 4.0)
MODES: dict[Mode, str] = {"best": "Each at its best", "same_software": "Same software"}


@dataclass(frozen=True)
class Compared:
    """``modes``: ways to compare, none without a choice. ``lacking``: who has no figure in the rows
    that are not common. ``single``: in how many of the common rows one machine is on each side.
    ``heat``: a class for each cell of each row. ``per_price``: words for each thing. ``range``: of
    the speed-up in the heading."""

    answer: CompareAnswer
    csv_href: str
    image_href: str
    modes: tuple[Choice, ...]
    lacking: str
    single: int
    chart: DotPlot | None
    heat: tuple[tuple[str, ...], ...]
    charts: tuple[Plot, ...]
    per_price: tuple[str, ...]
    range: str


@dataclass(frozen=True)
class Chooser:
    """``hardware``: not yet picked, matching ``q``; ``prices`` and ``energy_price``: as entered."""

    picked: tuple[Choice, ...]
    hardware: tuple[Choice, ...]
    q: str
    prices: Mapping[str, str]
    energy_price: str


@dataclass(frozen=True)
class ComparePage:
    """``/compare``: which is faster, and how certain is that? ``compared`` is null before a choice;
    ``too_few``: less than two different items were chosen."""

    title: str
    heading: str
    json_href: str | None
    compared: Compared | None
    chooser: Chooser
    too_few: bool


def compare_page(
    session: Session,
    ids: tuple[str, ...],
    prices: Prices,
    across: Across | None,
    mode: Mode | None,
    q: str,
) -> ComparePage:
    """Fill the context. Raises NotFound if one of the ids is unknown."""
    hardware_names = query_names.ranked_hardware(session)
    wanted = q.lower().split()
    fitting = [pair for pair in hardware_names if all(word in pair[1].lower() for word in wanted)]
    others = tuple(Choice(slug, name, False) for slug, name in fitting if slug not in ids)
    others, names = others[:MOST_CHOICES], dict(hardware_names)
    if len(ids) < 2:
        picked = tuple(Choice(item, names.get(item, item), True) for item in ids)
        return ComparePage(
            title="Compare",
            heading="Compare GPUs, CPUs or machines",
            json_href=None,
            compared=None,
            chooser=Chooser(picked, others, q, {}, ""),
            too_few=bool(ids),
        )
    answer = comparison.compare(session, ids, prices, across, mode)
    entered = {item: f"{price:g}" for item, price in prices.of_reader.items()}
    energy_price = "" if prices.energy_per_kwh is None else f"{prices.energy_per_kwh:g}"
    parameters = {"ids": ",".join(ids)}
    parameters |= {f"price.{item}": price for item, price in entered.items()}
    parameters |= {"energy_price": energy_price} if energy_price else {}
    parameters |= {"across": across} if across else {}
    parameters |= {"mode": mode} if mode else {}
    picked = tuple(Choice(thing.id, thing.name, True) for thing in answer.things)
    return ComparePage(
        title=_title(answer),
        heading=heading(answer),
        json_href=address("/api/v1/compare", parameters),
        compared=Compared(
            answer=answer,
            csv_href=address("/api/v1/compare.csv", parameters),
            image_href=address("/compare/card.png", parameters),
            modes=_modes(answer, parameters),
            lacking=_lacking(answer.things, answer.rows[answer.common_cells :]),
            single=sum(
                any(cell and cell.scope == "machines" for cell in row.cells)
                for row in answer.rows[: answer.common_cells]
            ),
            chart=_chart(answer),
            heat=tuple(tuple(heat(cell) for cell in row.cells) for row in answer.rows),
            charts=worth.of_comparison(answer),
            per_price=worth.per_price(answer),
            range=_range(answer.things),
        ),
        chooser=Chooser(picked, others, q, entered, energy_price),
        too_few=False,
    )


def heading(answer: CompareAnswer) -> str:
    """``B trains 1.95 times as fast as A``: of more than two, the fastest against the first."""
    first, *others = answer.things
    compared = [thing for thing in others if thing.speed_up is not None]
    if not compared:
        held = [
            thing.name
            for place, thing in enumerate(answer.things)
            if any(row.held[place] for row in answer.rows)
            if not any(row.cells[place] for row in answer.rows)
        ]
        if held:
            return f"{held[0]} is {HELD}"
        return f"{_title(answer)} have no common workload"
    best = max(compared, key=lambda thing: thing.speed_up or 0)
    if len(others) > 1:
        ahead, behind = (best, first) if (best.speed_up or 0) > 1 else (first, best)
        if best.verdict_kind == "no_difference":
            among = f"the first of {len(answer.things)}"
            return f"{ahead.name} is {among}, not clearly ahead of {behind.name}"
        verb = "looks like" if best.verdict_kind == "too_few_runs" else "is"
        found = f"{ahead.name} {verb} the fastest of {len(answer.things)}"
        return found if ahead is first else f"{found}: it {_faster(best, first)}"
    if best.verdict_kind == "no_difference":
        return f"No clear difference between {first.name} and {best.name}"
    return (
        f"{best.name} {_faster(best, first)}"
        if (best.speed_up or 0) >= 1
        else (f"{first.name} {_faster(best, best)}")
    )


def _faster(thing: ComparedThing, than: ComparedThing) -> str:
    """``trains 1.95 times as fast as A``, by the ratio that is above one."""
    speed_up = thing.speed_up or 1.0
    times = people.times(max(speed_up, 1 / speed_up))
    about = "about " if thing.verdict_kind == "too_few_runs" else ""
    return f"trains {about}{times} times as fast as {than.name}"


def _range(things: Sequence[ComparedThing]) -> str:
    other = things[-1]
    low, high = other.speed_up_low, other.speed_up_high
    if len(things) > 2 or not (low and high and other.speed_up):
        return ""
    if other.speed_up < 1:
        low, high = 1 / high, 1 / low
    return people.interval(low, high, people.times)


def _title(answer: CompareAnswer) -> str:
    more = len(answer.things) - 2
    title = " and ".join(thing.name for thing in answer.things[:2])
    return f"{title} and {more} more" if more > 0 else title


def _lacking(things: Sequence[ComparedThing], rows: Sequence[ComparedRow]) -> str:
    """Who lacks a figure in these rows, and why: ``A has no ranked figure in 2 of them``."""
    words = []
    for place, thing in enumerate(things):
        held = sum(row.held[place] for row in rows)
        none = sum(row.cells[place] is None for row in rows) - held
        for times, what, why in (
            (held, "is held", " (it needs a second owner)"),
            (none, "has no ranked figure", ""),
        ):
            where = "there" if times == len(rows) else f"in {times} of them"
            words += [f"{thing.name} {what} {where}{why}"] if times else []
    return "; ".join(words)


def _modes(answer: CompareAnswer, parameters: Mapping[str, str]) -> tuple[Choice, ...]:
    if answer.mode is None or any(t.kind not in ("hardware", "machine") for t in answer.things):
        return ()
    return tuple(
        Choice(address("/compare", {**parameters, "mode": name}), words, answer.mode == name)
        for name, words in MODES.items()
    )


def _chart(answer: CompareAnswer) -> DotPlot | None:
    common = answer.rows[: answer.common_cells]
    groups: defaultdict[tuple[str | None, ...], list[ComparedRow]] = defaultdict(list)
    for row in common:
        groups[row.workload, row.framework, row.recipe].append(row)
    rows = [
        Row(
            label=row.workload,
            href=f"/workloads/{row.workload}",
            values=tuple(
                Value(
                    cell.speed_up,
                    cell.speed_up_low,
                    cell.speed_up_high,
                    f"c{place % COLOURS + 1}",
                    f"{thing.name}: {people.ratio(cell.speed_up)}",
                    hollow=cell.backing == "one",
                )
                for place, (thing, cell) in enumerate(zip(answer.things, row.cells, strict=True))
                if place and cell and cell.speed_up
            ),
            text=_text(row.cells),
            note=_note(row, groups[row.workload, row.framework, row.recipe]),
        )
        for row in common
    ]
    return dot_plot(f"Times as fast as {answer.things[0].name}", rows)


def _note(row: ComparedRow, alike: Sequence[ComparedRow]) -> str:
    further = {
        "batch_size": f"batch {row.batch_size:,}" if row.batch_size else "",
        "precision": row.precision.replace("_", " "),
    }
    words = [" ".join(word for word in (row.framework, row.recipe) if word)]
    words += [
        text for axis, text in further.items() if len({getattr(each, axis) for each in alike}) > 1
    ]
    return ", ".join(word for word in words if word)


def _text(cells: tuple[ComparedCell | None, ...]) -> str:
    second = cells[1] if len(cells) == 2 else None
    return people.ratio(second.speed_up) if second and second.speed_up else ""


def heat(cell: ComparedCell | None) -> str:
    """``up-1`` to ``up-4`` for faster, ``down-1`` to ``down-4`` for slower, else ``even``."""
    if cell is None or cell.speed_up is None or cell.verdict_kind not in ("faster", "slower"):
        return "even"
    away = max(cell.speed_up, 1 / cell.speed_up)
    step = 1 + sum(away >= ratio for ratio in STRONGER)
    return f"{'up' if cell.speed_up > 1 else 'down'}-{step}"
