"""Geometry of bar charts and block traces: numbers for SVG attributes, no markup."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

WIDTH, HEIGHT = 1000.0, 200.0
MOST_POINTS = 1000
LEAST_REACH = 0.2


@dataclass(frozen=True)
class BlockTrace:
    """Block times in their order. Points in a box of 1000 x 200, time upwards.

    ``low_ns`` and ``high_ns`` are the edges of the box; ``median_y``: the height of the median.
    """

    points: tuple[tuple[float, float], ...]
    count: int
    low_ns: float
    high_ns: float
    median_ns: float
    median_y: float


@dataclass(frozen=True)
class Segment:
    """A segment of a bar: it begins at ``start`` and is ``share`` wide, in percent of the whole."""

    label: str
    nanoseconds: int
    start: float
    share: float


def block_trace(durations_ns: Sequence[int]) -> BlockTrace:
    """Lay out block times; for very many, the slowest and fastest of each interval. The box spans
    at least a fifth of the median to either side, so that steady times look flat.
    """
    middle = median(durations_ns)
    margin = (max(durations_ns) - min(durations_ns)) * 0.12
    low = max(min(min(durations_ns) - margin, middle * (1 - LEAST_REACH)), 0.0)
    high = max(max(durations_ns) + margin, middle * (1 + LEAST_REACH))

    def y(value: float) -> float:
        return round(HEIGHT * (1 - (value - low) / (high - low)), 1)

    last = max(len(durations_ns) - 1, 1)
    chosen = _thinned(durations_ns)
    points = tuple((round(WIDTH * place / last, 1), y(durations_ns[place])) for place in chosen)
    if len(points) == 1:
        points = ((WIDTH / 2, points[0][1]),)
    return BlockTrace(points, len(durations_ns), low, high, middle, y(middle))


def segments(values: Sequence[tuple[str, int]]) -> tuple[Segment, ...]:
    whole, start, pieces = sum(value for _, value in values), 0.0, []
    for label, value in values:
        share = 100 * value / whole
        pieces.append(Segment(label, value, round(start, 3), round(share, 3)))
        start += share
    return tuple(pieces)


def _thinned(values: Sequence[int]) -> list[int]:
    if len(values) <= MOST_POINTS:
        return list(range(len(values)))
    stretch = -(-len(values) * 2 // MOST_POINTS)
    keep: set[int] = {0, len(values) - 1}
    for start in range(0, len(values), stretch):
        places = range(start, min(start + stretch, len(values)))
        keep |= {min(places, key=values.__getitem__), max(places, key=values.__getitem__)}
    return sorted(keep)
