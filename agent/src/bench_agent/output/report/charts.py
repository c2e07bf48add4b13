"""The bar charts of a report as data: the comparisons that a run allows.

Compared cells differ only in the compared property: workload, batch size, precision and data are
always equal, framework and device too when recipes are compared.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import RECIPES, Cell
from bench_protocol.statistics.comparison import SpeedVerdict

from . import lines
from .figures import CellFigures, Report, at_one_batch, fastest, grouped, marked, speed_up

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
class Charts:
    """All charts of a report; comparisons that a run does not allow are empty."""

    fastest: tuple[BarGroup, ...]
    devices: tuple[BarGroup, ...]
    recipes: tuple[BarGroup, ...]
    frameworks: tuple[BarGroup, ...]
    batches: tuple[lines.LineGroup, ...]
    traces: tuple[lines.Trace, ...]


def charts_of(report: Report) -> Charts:
    """Lay out every comparison that the run allows."""
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
        batches=lines.line_groups(report.cells),
        traces=lines.traces(report.cells),
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
        note = marked(comparison(speed_up(figures, base), base_name(figures, base)), figures, base)
    return Bar(
        label=label(figures),
        value=marked(people.rate(figures.samples_per_second), figures),
        share=figures.samples_per_second / longest,
        low=figures.low and figures.low / longest,
        high=figures.high and min(figures.high / longest, 1.0),
        kind=figures.cell.device.kind,
        note=note,
    )


def base_name(figures: CellFigures, base: CellFigures) -> str:
    """The properties of the base that differ from the compared cell."""
    cell, base_cell = figures.cell, base.cell
    names = []
    if cell.framework != base_cell.framework:
        names.append(base_cell.framework)
    if cell.device != base_cell.device:
        names.append(f"on {base_cell.device}")
    if cell.recipe != base_cell.recipe:
        names.append(base_cell.recipe)
    return " ".join(names)


def comparison(verdict: SpeedVerdict, base: str) -> str:
    """A speed-up in words, with its interval within the run if there were enough processes."""
    interval = ""
    if verdict.low and verdict.high:
        low, high = (people.ratio(value).rstrip("×") for value in (verdict.low, verdict.high))
        interval = f" ({low} to {high} within this run)"
    return f"{people.ratio(verdict.speed_up).rstrip('×')} times as fast as {base}{interval}"
