"""Line charts: samples per second over batch size, and the block times of each cell."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from statistics import median

from bench_protocol.base import format as people
from bench_protocol.statistics.charts import BlockTrace, block_trace

from .figures import CellFigures, grouped

BOX_WIDTH, BOX_HEIGHT = 1000.0, 300.0
COLOURS = 6


@dataclass(frozen=True)
class Line:
    """Samples per second over batch sizes; points in a box of 1000 x 300, rate upwards."""

    label: str
    kind: int
    points: tuple[tuple[float, float], ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class LineGroup:
    """Lines on one pair of axes, both logarithmic."""

    title: str
    batches: tuple[tuple[float, str], ...]
    low: str
    high: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Trace:
    """The blocks of a cell's typical repeat."""

    title: str
    subtitle: str
    range: str
    blocks: BlockTrace


def line_groups(cells: Iterable[CellFigures]) -> tuple[LineGroup, ...]:
    """One group per workload, one line per framework and device with at least two batch sizes. Only
    the recipe of the fastest point is drawn: a line for each recipe would be too many."""
    groups = []
    for group in grouped(cells, lambda c: (c.cell.workload, c.cell.precision, c.cell.data)):
        lines = grouped(group, lambda c: (c.cell.framework, c.cell.device, c.cell.recipe))
        best = grouped((line for line in lines if len(line) > 1), lambda line: line[0].place)
        lines = [max(recipes, key=_fastest) for recipes in best]
        if lines:
            groups.append(_line_group(lines))
    return tuple(groups)


def _fastest(line: list[CellFigures]) -> float:
    return max(figures.samples_per_second for figures in line)


def _line_group(lines: list[list[CellFigures]]) -> LineGroup:
    lines = [sorted(line, key=lambda figures: figures.cell.batch_size) for line in lines]
    points = [figures for line in lines for figures in line]
    sizes = sorted({figures.cell.batch_size for figures in points})
    rates = [figures.samples_per_second for figures in points]
    low, high = min(rates) / 1.15, max(rates) * 1.15

    def x(one_size: float) -> float:
        return round(BOX_WIDTH * _log_share(one_size, sizes[0], sizes[-1]), 1)

    def y(rate: float) -> float:
        return round(BOX_HEIGHT * (1 - _log_share(rate, low, high)), 1)

    first = lines[0][0].cell
    unusual = "" if first.precision == "float32" else f", {first.precision}"
    return LineGroup(
        title=f"{first.workload}{unusual}",
        batches=tuple((x(size), f"{size:,}") for size in sizes),
        low=people.rate(low),
        high=people.rate(high),
        lines=tuple(
            Line(
                label=f"{line[0].place}, {line[0].cell.recipe}",
                kind=number % COLOURS + 1,
                points=tuple(
                    (x(figures.cell.batch_size), y(figures.samples_per_second)) for figures in line
                ),
                values=tuple(
                    f"{figures.cell.batch_size:,}: {people.rate(figures.samples_per_second)}"
                    for figures in line
                ),
            )
            for number, line in enumerate(lines)
        ),
    )


def _log_share(value: float, low: float, high: float) -> float:
    return log(value / low) / log(high / low)


def traces(cells: Iterable[CellFigures]) -> tuple[Trace, ...]:
    """The blocks of each cell's typical repeat, the unsteadiest first."""
    return tuple(map(_trace, sorted(cells, key=lambda figures: -figures.within_run_spread)))


def _trace(figures: CellFigures) -> Trace:
    blocks = figures.typical.blocks
    spread = people.percent(figures.within_run_spread)
    ended = {"settled": "ended steady", "budget": "ended by the clock", "epochs": "whole epochs"}
    return Trace(
        title=figures.task_name,
        subtitle=f"{figures.place}, {figures.cell.recipe}: {len(blocks.durations_ns)} blocks, "
        f"spread {spread}, {ended[blocks.stop_reason]}",
        range=f"from {people.nanoseconds(min(blocks.durations_ns))} "
        f"to {people.nanoseconds(max(blocks.durations_ns))}, "
        f"median {people.nanoseconds(median(blocks.durations_ns))}",
        blocks=block_trace(blocks.durations_ns),
    )
