"""Geometry of dot plots with intervals: a row each, one logarithmic axis. Positions are percent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench_protocol.base import format as people

from .plots import Tick, scale

LEFT, RIGHT = 3.0, 99.0


class Value(NamedTuple):
    """``colour``: a class; ``hollow``: little evidence; ``ringed``: what the page is about."""

    at: float
    low: float | None
    high: float | None
    colour: str
    words: str
    hollow: bool = False
    ringed: bool = False


class Row(NamedTuple):
    """``ringed``: searched for; ``pinned``: never folded away; ``item``: its id in a comparison."""

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
    """``level``: the position of 1. ``first``: the number of rows that are not folded away."""

    title: str
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    level: float
    first: int


def dot_plot(title: str, rows: Sequence[Row], first: int | None = None) -> DotPlot | None:
    """Rows of positive values on one logarithmic axis; None without a value."""
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
        tuple(Tick(axis.at(one), people.round_ratio(one)) for one in ticks),
        axis.at(1.0),
        len(rows) if first is None else first,
    )
