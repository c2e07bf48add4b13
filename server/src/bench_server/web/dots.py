"""Geometry of dot plots with intervals: a row each, one logarithmic axis. Positions are percent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench_protocol.base import format as people

from .plots import Tick, scale

LEFT, RIGHT = 3.0, 99.0


class Value(NamedTuple):
    """A value on the axis with its bounds, if it has any. ``colour``: the name of its class;
    ``hollow``: it rests on little evidence; ``ringed``: it is the one that the page is about;
    ``words``: what a pointer shows."""

    at: float
    low: float | None
    high: float | None
    colour: str
    words: str
    hollow: bool = False
    ringed: bool = False


class Row(NamedTuple):
    """A row: its name with an address, its values, the text at its end, and a note below the name.
    ``ringed``: it is what was searched for; ``pinned``: it is shown where rows are folded away;
    ``item``: its id in a comparison, where rows can be ticked."""

    label: str
    href: str
    values: tuple[Value, ...]
    text: str
    note: str = ""
    ringed: bool = False
    pinned: bool = False
    item: str = ""


@dataclass(frozen=True)
class DotPlot:
    """Rows with the positions of their values. ``level``: the position of 1. ``first``: the number
    of rows that are not folded away."""

    title: str
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    level: float
    first: int


def dot_plot(title: str, rows: Sequence[Row], first: int | None = None) -> DotPlot | None:
    """Lay out rows of positive values on one logarithmic axis; None without a value.

    Args:
        first: rows after it are folded away, except pinned ones; None folds none away.
    """
    numbers = [
        number
        for row in rows
        for value in row.values
        for number in (value.at, value.low, value.high)
        if number is not None
    ]
    if not numbers:
        return None
    axis = scale([*numbers, 1.0], LEFT, RIGHT, log=True)
    ticks = axis.ticks()

    def placed(value: Value) -> Value:
        low, high = (None if one is None else axis.at(one) for one in (value.low, value.high))
        return value._replace(at=axis.at(value.at), low=low, high=high)

    return DotPlot(
        title,
        tuple(row._replace(values=tuple(map(placed, row.values))) for row in rows),
        tuple(map(Tick, map(axis.at, ticks), people.round_ratios(ticks))),
        axis.at(1.0),
        len(rows) if first is None else first,
    )
