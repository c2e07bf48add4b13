"""The charts of a report as data: bars that compare, traces of blocks.

Compared cells differ only in the compared property: workload, batch size, precision and data are
always equal, framework and device too when recipes are compared.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.matrix import RECIPES, Cell
from bench_protocol.statistics.charts import BlockTrace, block_trace

from .figures import CellFigures, Report, at_one_batch, fastest, grouped, marked
from .remarks import comparison

Label = Callable[[CellFigures], str]
# A wide interval must not make all bars of a group short: the longest is this times the fastest.
MOST_OVER = 1.25


@dataclass(frozen=True)
class Bar:
    """One cell. ``share``, ``low`` and ``high`` are shares of the longest bar of its group;
    ``kind`` chooses the colour; ``note`` is the comparison with the group's first bar."""

    label: str
    value: str
    share: float
    low: float | None
    high: float | None
    kind: str
    note: str


@dataclass(frozen=True)
class BarGroup:
    """Bars that are comparable. ``cell``: that of the first; ``longest``: samples per second of a
    bar whose share is 1."""

    title: str
    bars: tuple[Bar, ...]
    cell: Cell
    longest: float


@dataclass(frozen=True)
class Trace:
    title: str
    subtitle: str
    range: str
    blocks: BlockTrace


@dataclass(frozen=True)
class Charts:
    """All charts of a report; comparisons that a run does not allow are empty."""

    fastest: tuple[BarGroup, ...]
    devices: tuple[BarGroup, ...]
    recipes: tuple[BarGroup, ...]
    frameworks: tuple[BarGroup, ...]
    traces: tuple[Trace, ...]


def charts_of(report: Report) -> Charts:
    cells = at_one_batch(report.cells)
    return Charts(
        fastest=_groups(
            cells,
            key=lambda c: c.task,
            title=lambda c: c.task_name,
            label=lambda c: f"{c.place}, {c.cell.recipe}",
            order=lambda c: -c.samples_per_second,
            compared=False,
        ),
        devices=_groups(
            fastest(cells, lambda c: (c.task, c.cell.device)),
            key=lambda c: c.task,
            title=lambda c: c.task_name,
            label=lambda c: f"{c.cell.device}: {c.cell.framework} {c.cell.recipe}",
            order=lambda c: (c.cell.device.kind != "cpu", str(c.cell.device)),
        ),
        recipes=_groups(
            cells,
            key=lambda c: (c.task, c.place),
            title=lambda c: f"{c.task_name}, {c.place}",
            label=lambda c: c.cell.recipe,
            order=lambda c: RECIPES.index(c.cell.recipe),
        ),
        frameworks=_groups(
            fastest(cells, lambda c: (c.task, c.place)),
            key=lambda c: (c.task, c.cell.device),
            title=lambda c: f"{c.task_name}, on {c.hardware}",
            label=lambda c: f"{c.cell.framework}, {c.cell.recipe}",
            order=lambda c: c.samples_per_second,
        ),
        traces=traces(report.cells),
    )


def _groups(
    cells: Iterable[CellFigures],
    *,
    key: Callable[[CellFigures], Any],
    title: Label,
    label: Label,
    order: Callable[[CellFigures], Any],
    compared: bool = True,
) -> tuple[BarGroup, ...]:
    """Bars by group. If ``compared``, each bar is compared with its group's first, and groups of
    one are left out."""
    groups = []
    for group in grouped(cells, key):
        if len(group) > 1 or not compared:
            ordered = sorted(group, key=order)
            base = ordered[0] if compared else None
            longest = _longest(ordered)
            bars = tuple(_bar(figures, longest, base, label) for figures in ordered)
            groups.append(BarGroup(title(ordered[0]), bars, ordered[0].cell, longest))
    return tuple(groups)


def _longest(group: list[CellFigures]) -> float:
    """The samples per second of the longest bar; a longer interval is cut at the edge."""
    rate = max(figures.samples_per_second for figures in group)
    return min(max(c.high or c.samples_per_second for c in group), MOST_OVER * rate)


def _bar(figures: CellFigures, longest: float, base: CellFigures | None, label: Label) -> Bar:
    note = ""
    if base and figures is not base and not (base.slowed or figures.slowed):
        note = marked(comparison(figures, base), figures, base)
    return Bar(
        label=label(figures),
        value=marked(
            speeds.among_samples(figures.samples_per_second, figures.cell.workload), figures
        ),
        share=figures.samples_per_second / longest,
        low=figures.low and figures.low / longest,
        high=figures.high and min(figures.high / longest, 1.0),
        kind=figures.cell.device.kind,
        note=note,
    )


def traces(cells: Iterable[CellFigures]) -> tuple[Trace, ...]:
    """The blocks of each cell's typical repeat, the unsteadiest first."""
    return tuple(map(_trace, sorted(cells, key=lambda figures: -figures.within_run_spread)))


def _trace(figures: CellFigures) -> Trace:
    blocks = figures.typical.blocks
    spread = people.percent(figures.within_run_spread)
    ended = {"settled": "ended steady", "budget": "time limit reached", "epochs": "whole epochs"}
    return Trace(
        title=figures.task_name,
        subtitle=f"{figures.place}, {figures.cell.recipe}: {len(blocks.durations_ns)} blocks, "
        f"spread {spread}, {ended[blocks.stop_reason]}",
        range=f"from {people.nanoseconds(min(blocks.durations_ns))} "
        f"to {people.nanoseconds(max(blocks.durations_ns))}, "
        f"median {people.nanoseconds(median(blocks.durations_ns))}",
        blocks=block_trace(blocks.durations_ns),
    )
