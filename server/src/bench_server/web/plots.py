"""Geometry of line charts: numbers for SVG attributes, no markup. Positions are percent of the
plot, from the left and from the top, so that a drawing fits any width and its text keeps its size.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

TOP, BOTTOM, LEFT, RIGHT = 6.0, 94.0, 2.0, 98.0
TOP_BELOW_MARKS = 14.0  # labels of marks are above the points
LABEL_WIDTH, LABEL_HEIGHT = 24.0, 7.0  # of a phone's plot
MOST_TICKS = 6
COLOURS = 6


class Point(NamedTuple):
    """A point with its text. ``low`` and ``high`` bound ``y``; ``label`` is drawn beside it."""

    x: float
    y: float
    words: str
    low: float | None = None
    high: float | None = None
    label: str = ""


@dataclass(frozen=True)
class Series:
    """A labelled series of points, in order. A ``thin`` one is joined and has no key."""

    label: str
    points: tuple[Point, ...]
    thin: bool = False


@dataclass(frozen=True)
class PlotLine:
    """A series with its geometry; ``colour`` counts from 1."""

    label: str
    colour: int
    points: tuple[Point, ...]
    thin: bool = False


@dataclass(frozen=True)
class Tick:
    """A label on an axis, or of a mark. ``colour``: ``faster``, ``slower`` or none."""

    at: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A labelled vertical line; ``kind`` is its colour: faster, slower or none."""

    at: float
    label: str
    kind: str = ""


@dataclass(frozen=True)
class Plot:
    """Lines in a frame, or points if not ``joined``. ``level``: a horizontal reference line;
    ``marks``: vertical lines with labels."""

    title: str
    lines: tuple[PlotLine, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    joined: bool = True
    level: float | None = None
    marks: tuple[Mark, ...] = ()


Words = Callable[[float], str]


def plot(
    title: str,
    series: Sequence[Series],
    *,
    x_words: Words,
    y_words: Words,
    x_log: bool = False,
    y_log: bool = False,
    y_zero: bool = False,
    x_ticks: Sequence[float] | None = None,
    joined: bool = True,
    level: float | None = None,
    marks: Sequence[Mark] = (),
) -> Plot:
    """Lay out one or more series with at least one point among them.

    Args:
        x_log, y_log: logarithmic axes, for positive values.
        y_zero: the axis begins at zero.
        x_ticks: values labelled on the x axis; None labels round values.
        joined: connect the points of a series.
        level: a value of y to draw as a line.
        marks: lines to draw, at values of x.
    """
    every = [point for line in series for point in line.points]
    high = [point.y for point in every] + ([] if level is None else [level])
    high += [bound for point in every for bound in (point.low, point.high) if bound is not None]
    top = TOP_BELOW_MARKS if marks else TOP
    x = scale([point.x for point in every], LEFT, RIGHT, log=x_log)
    y = scale([*high, *([0.0] if y_zero else [])], BOTTOM, top, log=y_log)
    return Plot(
        title=title,
        lines=tuple(
            PlotLine(
                line.label,
                number % COLOURS + 1,
                _placed(line.points, x, y),
                line.thin,
            )
            for number, line in enumerate(series)
        ),
        x_ticks=tuple(Tick(x.at(v), x_words(v)) for v in _few(x_ticks or x.ticks())),
        y_ticks=tuple(Tick(y.at(v), y_words(v) if v else "0") for v in y.ticks()),
        joined=joined,
        level=None if level is None else y.at(level),
        marks=tuple(Mark(x.at(mark.at), mark.label, mark.kind) for mark in marks),
    )


def _placed(points: Sequence[Point], x: "Scale", y: "Scale") -> tuple[Point, ...]:
    """The points at their positions. A label that would touch one before it is left out."""
    placed: list[Point] = []
    for point in points:
        at_x, at_y = x.at(point.x), y.at(point.y)
        near = (abs(p.x - at_x) < LABEL_WIDTH and abs(p.y - at_y) < LABEL_HEIGHT for p in placed)
        label = "" if any(near) else point.label
        low, high = (None if bound is None else y.at(bound) for bound in (point.low, point.high))
        placed.append(Point(at_x, at_y, point.words, low, high, label))
    return tuple(placed)


class Scale(NamedTuple):
    """A scale from values to positions."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        moved = math.log(value) if self.log else value
        share = (moved - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 2)

    def ticks(self) -> list[float]:
        """Round values in the range of the scale: 1, 2 and 5 times powers of ten, or 1, 1.5, 2, 3,
        5 and 7 times them where the former are fewer than three."""
        if self.log:
            inside = self._round_values((1, 2, 5))
            if len(inside) < 3:
                inside = self._round_values((1, 1.5, 2, 3, 5, 7))
            tens = [v for v in inside if math.isclose(v, 10.0 ** round(math.log10(v)))]
            return inside if len(inside) <= MOST_TICKS else tens[:: -(-len(tens) // MOST_TICKS)]
        step = _round_step((self.high - self.low) / (MOST_TICKS - 2))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _round_values(self, factors: Sequence[float]) -> list[float]:
        low, high = math.exp(self.low), math.exp(self.high)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = [factor * 10.0**power for power in powers for factor in factors]
        return [value for value in steps if low * 0.999 <= value <= high * 1.001]


def scale(values: Sequence[float], start: float, end: float, *, log: bool) -> Scale:
    low, high = min(values), max(values)
    if log:
        low, high = math.log(low), math.log(high)
    if high - low < 1e-9 * max(abs(high), 1):
        margin = math.log(2) if log else max(abs(high) * 0.1, 0.5)
        low, high = low - margin, high + margin
    return Scale(low, high, start, end, log)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)


def _few(values: Sequence[float]) -> Sequence[float]:
    return values[:: -(-len(values) // MOST_TICKS)] if len(values) > MOST_TICKS + 2 else values


def flops(value: float) -> str:
    """Work in SI multiples: ``4.2 GFLOP``."""
    for unit in ("", "k", "M", "G"):
        if value < 999.5:
            return f"{value:.3g} {unit}FLOP"
        value /= 1000
    return f"{value:.3g} TFLOP"
