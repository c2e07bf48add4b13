"""Geometry of dot plots with intervals: a row each, one logarithmic axis. Positions are percent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .plots import Tick, scale

LEFT, RIGHT = 3.0, 97.0


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


@dataclass(frozen=True)
class DotPlot:
    """Rows with the positions of their values. ``level``: the position of 1."""

    title: str
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    level: float


def dot_plot(title: str, rows: Sequence[Row]) -> DotPlot | None:
    """Lay out rows of positive values on one logarithmic axis; None without a value."""
    every = [
        number
        for row in rows
        for value in row.values
        for number in (value.at, value.low, value.high)
        if number is not None
    ]
    if not every:
        return None
    axis = scale([*every, 1.0], LEFT, RIGHT, log=True)

    def at(number: float | None) -> float | None:
        return None if number is None else axis.at(number)

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
        tuple(Tick(axis.at(tick), f"{tick:g}×") for tick in axis.ticks()),
        axis.at(1.0),
    )
