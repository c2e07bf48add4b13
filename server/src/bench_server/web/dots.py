"""Geometry of dot plots with intervals: a row each, one logarithmic axis. Positions are percent."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench_protocol.base import format as people

from .plots import Scale, Tick, scale

# The right margin is small: it is stretched with the plot.
LEFT, RIGHT = 3.0, 99.0


class Value(NamedTuple):
    """A value on the axis with its bounds, if it has any. ``colour``: the name of its class;
    ``hollow``: it rests on little evidence; ``words``: what a pointer shows."""

    at: float
    low: float | None
    high: float | None
    colour: str
    words: str
    hollow: bool = False


class Row(NamedTuple):
    """A row: its name with an address, its values, the text at its end, and a note below the name.
    ``ringed``: it is what was searched for; ``pinned``: it is shown where rows are folded away."""

    label: str
    href: str
    values: tuple[Value, ...]
    text: str
    note: str = ""
    ringed: bool = False
    pinned: bool = False


class View(NamedTuple):
    """The plot while rows are folded away: its right end, stretched until the others fill it.
    ``width``: of the stretched plot, in percent; ``ticks``: of the end that is seen."""

    width: float
    ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class DotPlot:
    """Rows with the positions of their values. ``level``: the position of 1. ``first``: the number
    of rows that are not folded away; ``folded``: the view without the others, None if there are
    none."""

    title: str
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    level: float
    first: int
    folded: View | None


def dot_plot(title: str, rows: Sequence[Row], first: int | None = None) -> DotPlot | None:
    """Lay out rows of positive values on one logarithmic axis; None without a value.

    Args:
        first: rows after it are folded away, except pinned ones; None folds none away.
    """
    if not _numbers(rows):
        return None
    axis = _axis(rows)

    def at(number: float | None) -> float | None:
        return None if number is None else axis.at(number)

    first = len(rows) if first is None else first
    return DotPlot(
        title,
        tuple(
            row._replace(
                values=tuple(
                    value._replace(at=axis.at(value.at), low=at(value.low), high=at(value.high))
                    for value in row.values
                )
            )
            for row in rows
        ),
        _ticks(axis),
        axis.at(1.0),
        first,
        _folded(rows, first, axis) if first < len(rows) else None,
    )


def _folded(rows: Sequence[Row], first: int, axis: Scale) -> View:
    seen = _numbers([*rows[:first], *(row for row in rows[first:] if row.pinned)])
    low, high = min(*seen, 1.0), math.exp(axis.high)
    times = (100 - LEFT) / (100 - axis.at(low))
    end = scale([low, high], LEFT, 100 - times * (100 - RIGHT), log=True)
    return View(round(100 * times, 2), _ticks(end))


def _axis(rows: Sequence[Row]) -> Scale:
    """The axis of all values of the rows, and of 1."""
    return scale([*_numbers(rows), 1.0], LEFT, RIGHT, log=True)


def _numbers(rows: Sequence[Row]) -> list[float]:
    values = [value for row in rows for value in row.values]
    return [
        number
        for value in values
        for number in (value.at, value.low, value.high)
        if number is not None
    ]


def _ticks(axis: Scale) -> tuple[Tick, ...]:
    ticks = axis.ticks()
    return tuple(
        Tick(axis.at(tick), words)
        for tick, words in zip(ticks, people.round_ratios(ticks), strict=True)
    )
