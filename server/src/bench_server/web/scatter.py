"""Geometry of scatter plots with direct labels on logarithmic axes. Positions are percent; a label
takes pixels, so it is placed for the narrowest and for the usual width of the plot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .plots import Scale, Tick, Words, scale

LEFT, RIGHT, TOP, BOTTOM = 3.0, 97.0, 6.0, 94.0
# Pixels of a plot on a phone and on a screen (site.css), and of a label.
NARROW, WIDE = (270, 208), (440, 288)
FEW_TICKS = 3
CHARACTER, LINE, GAP, BOLD = 7.2, 15, 9, 1.1


# The share of a label that is left of its anchor.
BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}


class Label(NamedTuple):
    """Where a label is, in pixels from its dot: its anchor, and its baseline below the dot."""

    dx: int
    dy: int
    anchor: Literal["start", "middle", "end"]

    def box(self, x: float, y: float, length: float) -> "Box":
        """The label of a dot at x and y."""
        start = x + self.dx - length * BEFORE[self.anchor]
        return Box(start, y + self.dy - LINE + 4, start + length, y + self.dy + 4)


BESIDE = (Label(GAP, 4, "start"), Label(-GAP, 4, "end"))
# Places of a label, best first: beside the dot, else above or below it.
LABELS = (
    *BESIDE,
    *(Label(5, -11, "end"), Label(5, 20, "end"), Label(-5, -11, "start"), Label(-5, 20, "start")),
    *(Label(0, -11, "middle"), Label(0, 20, "middle")),
)


class Dot(NamedTuple):
    """A thing with two positive values. ``colour``: the name of its class; ``words``: what a
    pointer shows; ``own``: what the plot is about, labelled first."""

    x: float
    y: float
    label: str
    colour: str
    words: str
    own: bool = False


class PlacedDot(NamedTuple):
    """A dot with its position, and the place of its label in a narrow and in a wide plot; None
    where it would cover another."""

    dot: Dot
    x: float
    y: float
    narrow: Label | None
    wide: Label | None


@dataclass(frozen=True)
class Scatter:
    """Dots in a frame with two titled axes."""

    title: str
    x_title: str
    y_title: str
    dots: tuple[PlacedDot, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def scatter(
    title: str, x_title: str, y_title: str, dots: Sequence[Dot], x_words: Words, y_words: Words
) -> Scatter | None:
    """Lay out dots; None for fewer than two, which compare nothing."""
    if len(dots) < 2:
        return None
    x = scale([dot.x for dot in dots], LEFT, RIGHT, log=True)
    y = scale([dot.y for dot in dots], BOTTOM, TOP, log=True)
    # What the plot is about first, then from the fastest down.
    ordered = sorted(dots, key=lambda dot: (not dot.own, -dot.y, dot.x))
    places = [(x.at(dot.x), y.at(dot.y)) for dot in ordered]
    narrow, wide = (_labels(ordered, places, size) for size in (NARROW, WIDE))
    return Scatter(
        title,
        x_title,
        y_title,
        tuple(map(PlacedDot, ordered, *zip(*places, strict=True), narrow, wide)),
        _ticks(x, x_words),
        _ticks(y, y_words),
    )


def _ticks(axis: Scale, words: Words) -> tuple[Tick, ...]:
    """Round values in the range of an axis, evenly spaced ones where its powers of ten are few."""
    values = axis.ticks()
    if len(values) < FEW_TICKS:
        low, high = math.exp(axis.low), math.exp(axis.high)
        values = [value for value in scale([low, high], 0, 1, log=False).ticks() if value > 0]
    return tuple(Tick(axis.at(value), words(value)) for value in values)


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.bottom <= other.top or other.bottom <= self.top)


def _labels(
    dots: Sequence[Dot], places: Sequence[tuple[float, float]], size: tuple[int, int]
) -> list[Label | None]:
    """The label of each dot, the first dots first, so that none leaves the plot or covers a dot or
    another label. What the plot is about has one in any case: over others if it must, and beyond
    the plot only where it is too long for it."""
    width, height = size
    centres = [(x / 100 * width, y / 100 * height) for x, y in places]
    taken = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in centres]
    found: list[Label | None] = []
    for number, (dot, (x, y)) in enumerate(zip(dots, centres, strict=True)):
        length = CHARACTER * len(dot.label) * (BOLD if dot.own else 1)
        others = taken[:number] + taken[number + 1 :]
        beside = BESIDE[x > width / 2] if dot.own else None
        label = next(
            (
                one
                for covered in ((others, ()) if dot.own else (others,))
                for one in LABELS
                if _fits(one.box(x, y, length), covered, width, height)
            ),
            beside,
        )
        found.append(label)
        if label is not None:
            taken.append(label.box(x, y, length))
    return found


def _fits(box: Box, others: Sequence[Box], width: int, height: int) -> bool:
    inside = box.left >= 0 and box.right <= width and box.top >= -LINE and box.bottom <= height
    return inside and not any(map(box.meets, others))
