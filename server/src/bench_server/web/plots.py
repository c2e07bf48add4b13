"""Geometry of charts: numbers for SVG attributes, no markup. Positions are percent of the plot,
from the left and from the top, so that a drawing fits any width and its text keeps its size."""

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

TOP, BOTTOM, LEFT, RIGHT = 6.0, 94.0, 2.0, 98.0
TOP_BELOW_MARKS = 14.0  # labels of marks are above the points
# Pixels of the least plot on a phone and on a screen (site.css).
SIZES = {"narrow": (240, 208), "wide": (400, 288)}
# Pixels of a letter, of a line and from its top to its baseline, and from a point to a label beside
# it and to one above or below it.
LETTER, LINE, BASELINE, GAP, NEAR = 6.8, 15, 11.5, 9, 6
BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}  # the share of a label before its anchor
LEAST_TICKS, MOST_TICKS = 3, 6


class Point(NamedTuple):
    """``low`` and ``high`` bound ``y``; ``label`` is drawn near it where it covers nothing."""

    x: float
    y: float
    words: str
    low: float | None = None
    high: float | None = None
    label: str = ""


@dataclass(frozen=True)
class Series:
    """A labelled series of points, in order."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Tick:
    """A label on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A labelled vertical line; ``kind`` is its colour: faster, slower or none."""

    at: float
    label: str
    kind: str = ""


class Label(NamedTuple):
    """``dx`` and ``dy``: pixels from the point (``x``, ``y``) to the anchor of the first line."""

    lines: tuple[str, ...]
    x: float
    y: float
    dx: float
    dy: float
    anchor: str


@dataclass(frozen=True)
class Plot:
    """``labels`` by size of plot; ``level``: a horizontal line; ``notes``: what is not drawn."""

    title: str
    lines: tuple[Series, ...]
    labels: dict[str, tuple[Label, ...]]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    axes: tuple[str, str] = ("", "")
    joined: bool = True
    level: float | None = None
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def nameless(self) -> bool:
        """Whether a label is left out, on a phone or on a screen."""
        named = sum(bool(point.label) for line in self.lines for point in line.points)
        return any(len(labels) < named for labels in self.labels.values())


Words = Callable[[float], str]


def plot(
    title: str,
    series: Sequence[Series],
    *,
    x_words: Words,
    y_words: Words,
    axes: tuple[str, str] = ("", ""),
    x_log: bool = False,
    y_log: bool = False,
    y_zero: bool = False,
    x_ticks: Sequence[float] | None = None,
    joined: bool = True,
    level: float | None = None,
    marks: Sequence[Mark] = (),
) -> Plot:
    """``x_log``, ``y_log``: for positive values; ``x_ticks``: values labelled, None for round ones;
    ``level``: a value of y to draw as a line; ``marks`` at values of x. At least one point."""
    every = [point for line in series for point in line.points]
    high = [point.y for point in every] + ([] if level is None else [level])
    high += [bound for point in every for bound in (point.low, point.high) if bound is not None]
    top = TOP_BELOW_MARKS if marks else TOP
    x = scale([point.x for point in every], LEFT, RIGHT, log=x_log)
    y = scale([*high, *([0.0] if y_zero else [])], BOTTOM, top, log=y_log)
    lines = tuple(
        Series(line.label, tuple(_placed(point, x, y) for point in line.points)) for line in series
    )
    return Plot(
        title=title,
        lines=lines,
        labels={name: _labels(lines, *size) for name, size in SIZES.items()},
        x_ticks=tuple(Tick(x.at(v), x_words(v)) for v in _few(x_ticks or x.ticks())),
        y_ticks=tuple(Tick(y.at(v), y_words(v) if v else "0") for v in y.ticks()),
        axes=axes,
        joined=joined,
        level=None if level is None else y.at(level),
        marks=tuple(Mark(x.at(mark.at), mark.label, mark.kind) for mark in marks),
    )


def _placed(point: Point, x: "Scale", y: "Scale") -> Point:
    low, high = (None if bound is None else y.at(bound) for bound in (point.low, point.high))
    return point._replace(x=x.at(point.x), y=y.at(point.y), low=low, high=high)


def _labels(series: Sequence[Series], width: int, height: int) -> tuple[Label, ...]:
    """Each label is beside, above or below its point, or left out where it would leave the plot or
    cover a point or another label. The first point always has its label, where it covers the
    fewest of them."""
    labels: list[Label] = []
    points = [point for line in series for point in line.points]
    dots = [(point.x / 100 * width, point.y / 100 * height) for point in points]
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in dots]
    for point, (x, y) in zip(points, dots, strict=True):
        lines = tuple(textwrap.wrap(point.label, int(width / LETTER)))
        length, depth = LETTER * max(map(len, lines), default=0), LINE * len(lines)
        centre = round(min(max(x, length / 2), width - length / 2) - x, 1)
        aligned = ((-5, "start"), (5, "end"), (centre, "middle"))
        stacked = [(dx, dy, anchor) for dx, anchor in aligned for dy in (-NEAR - depth, NEAR)]
        beside = [(GAP, -depth / 2, "start"), (-GAP, -depth / 2, "end")]
        inside: list[tuple[Box, Label]] = []
        for dx, dy, anchor in [*beside, *stacked] if lines else []:
            left, top = x + dx - length * BEFORE[anchor], y + dy
            if left > -0.1 and top >= 0 and left + length < width + 0.1 and top + depth <= height:
                label = Label(lines, point.x, point.y, dx, dy + BASELINE, anchor)
                inside.append(((left, top, left + length, top + depth), label))
        covered = [sum(_overlap(box, other) for other in taken) for box, _ in inside]
        if inside and (0 in covered or not labels):
            box, label = inside[covered.index(min(covered))]
            labels.append(label)
            taken.append(box)
    return tuple(labels)


Box = tuple[float, float, float, float]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


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
        """Round values. On a logarithmic scale 1, 2 and 5 times powers of ten, or 1, 1.5, 2, 3, 5
        and 7 times, or evenly spaced values: the first of these sets with three values or more."""
        if not self.log:
            return _round_values(self.low, self.high)
        low, high = math.exp(self.low), math.exp(self.high)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factors in ((1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
            values = [factor * 10.0**power for power in powers for factor in factors]
            inside = [value for value in values if low * 0.999 <= value <= high * 1.001]
            if len(inside) >= LEAST_TICKS:
                tens = [v for v in inside if math.isclose(v, 10.0 ** round(math.log10(v)))]
                return inside if len(inside) <= MOST_TICKS else tens[:: -(-len(tens) // MOST_TICKS)]
        return [value for value in _round_values(low, high) if value > 0]


def scale(values: Sequence[float], start: float, end: float, *, log: bool) -> Scale:
    low, high = min(values), max(values)
    if log:
        low, high = math.log(low), math.log(high)
    if high - low < 1e-9 * max(abs(high), 1):
        margin = math.log(2) if log else max(abs(high) * 0.1, 0.5)
        low, high = low - margin, high + margin
    return Scale(low, high, start, end, log)


def _round_values(low: float, high: float) -> list[float]:
    least = (high - low) / (MOST_TICKS - 2)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [number * step for number in numbers]


def _few(values: Sequence[float]) -> Sequence[float]:
    return values[:: -(-len(values) // MOST_TICKS)] if len(values) > MOST_TICKS + 2 else values


def flops(value: float) -> str:
    """Work in SI multiples: ``4.2 GFLOP``."""
    for unit in ("", "k", "M", "G"):
        if value < 999.5:
            return f"{value:.3g} {unit}FLOP"
        value /= 1000
    return f"{value:.3g} TFLOP"
