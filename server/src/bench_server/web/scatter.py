"""Geometry of scatter plots with direct labels on logarithmic axes. Positions are percent; a label
takes pixels, so it is placed for the narrowest and for the usual width of the plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .plots import Tick, Words, scale

LEFT, RIGHT, TOP, BOTTOM = 3.0, 97.0, 6.0, 94.0
# Pixels of a plot on a phone and on a screen (site.css), and of a label.
NARROW, WIDE = (270, 208), (760, 288)
CHARACTER, LINE, GAP = 6.6, 15, 9

Side = Literal["right", "left"]


class Dot(NamedTuple):
    """A thing with two positive values. ``colour``: the name of its class; ``words``: what a
    pointer shows; ``own``: what the plot is about, labelled first."""

    x: float
    y: float
    label: str
    href: str
    colour: str
    words: str
    own: bool = False


class PlacedDot(NamedTuple):
    """A dot with its position, and the side of its label: on every width, or on wide ones alone;
    None where it would cover another."""

    dot: Dot
    x: float
    y: float
    side: Side | None
    wide_side: Side | None


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
    narrow, wide = (_sides(ordered, places, size) for size in (NARROW, WIDE))
    return Scatter(
        title,
        x_title,
        y_title,
        tuple(map(PlacedDot, ordered, *zip(*places, strict=True), narrow, wide)),
        tuple(Tick(x.at(value), x_words(value)) for value in x.ticks()),
        tuple(Tick(y.at(value), y_words(value)) for value in y.ticks()),
    )


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.bottom <= other.top or other.bottom <= self.top)


def _sides(
    dots: Sequence[Dot], places: Sequence[tuple[float, float]], size: tuple[int, int]
) -> list[Side | None]:
    """The side of each label, the first dots first, so that none leaves the plot or covers a dot or
    another label."""
    width, height = size
    centres = [(x / 100 * width, y / 100 * height) for x, y in places]
    taken = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in centres]
    sides: list[Side | None] = []
    for number, (dot, (x, y)) in enumerate(zip(dots, centres, strict=True)):
        length = CHARACTER * len(dot.label)
        boxes: dict[Side, Box] = {
            "right": Box(x + GAP, y - LINE / 2, x + GAP + length, y + LINE / 2),
            "left": Box(x - GAP - length, y - LINE / 2, x - GAP, y + LINE / 2),
        }
        others = taken[:number] + taken[number + 1 :]
        side = next(
            (
                side
                for side, box in boxes.items()
                if box.left >= 0 and box.right <= width and not any(map(box.meets, others))
            ),
            None,
        )
        sides.append(side)
        if side is not None:
            taken.append(boxes[side])
    return sides
