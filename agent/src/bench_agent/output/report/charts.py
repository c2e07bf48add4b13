"""The charts of a report as data: comparisons that a run allows. The formats draw them.

Compared cells differ only in the compared property: workload, batch size, precision and data are
always equal, framework and device too when recipes are compared.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import RECIPES, Cell
from bench_protocol.statistics.charts import BlockTrace, block_trace
from bench_protocol.statistics.comparison import SpeedVerdict

from ..names import unusual
from . import scaling
from .figures import CellFigures, Report, grouped, marked, speed_up


@dataclass(frozen=True)
class Bar:
    """One cell. ``share``, ``low`` and ``high`` are shares of the longest bar of its group;
    ``kind`` chooses the colour; ``note`` is the comparison with the group's first bar. A question
    mark follows a figure ``in_doubt`` (:data:`.figures.MARK_WORDS`)."""

    label: str
    value: str
    share: float
    low: float | None
    high: float | None
    kind: str
    note: str
    in_doubt: bool


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
    """The blocks of a cell's typical repeat."""

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
    batches: tuple[scaling.LineGroup, ...]
    traces: tuple[Trace, ...]


def charts_of(report: Report) -> Charts:
    """Lay out every comparison that the run allows."""
    cells = at_one_batch(report.cells)
    return Charts(
        fastest=_groups(cells, _task, _task_name, _place_recipe, _fastest_first, compared=False),
        devices=_groups(_best(cells, _task_device), _task, _task_name, _device_best, _cpu_first),
        recipes=_groups(cells, _task_place, _task_place_name, lambda c: c.cell.recipe, _by_recipe),
        frameworks=_groups(
            _best(cells, _task_place),
            _task_device,
            lambda c: f"{_task_name(c)}, on {c.hardware}",
            lambda c: f"{c.cell.framework}, {c.cell.recipe}",
            _slowest_first,
        ),
        batches=scaling.line_groups(report.cells),
        traces=tuple(_trace(cell) for cell in sorted(report.cells, key=_unsteadiest_first)),
    )


Key = Callable[[CellFigures], Any]
MOST_OVER = 1.25


def _task(figures: CellFigures) -> Any:
    cell = figures.cell
    return cell.workload, cell.batch_size, cell.precision, cell.data


def _task_device(figures: CellFigures) -> Any:
    return *_task(figures), figures.cell.device


def _task_place(figures: CellFigures) -> Any:
    return *_task_device(figures), figures.cell.framework


def _task_name(figures: CellFigures) -> str:
    cell = figures.cell
    return f"{cell.workload}, batch {cell.batch_size:,}{unusual(cell)}"


def _task_place_name(figures: CellFigures) -> str:
    return f"{_task_name(figures)}, {figures.place}"


def _place_recipe(figures: CellFigures) -> str:
    return f"{figures.place}, {figures.cell.recipe}"


def _device_best(figures: CellFigures) -> str:
    return f"{figures.cell.device}: {figures.cell.framework} {figures.cell.recipe}"


def _rate(figures: CellFigures) -> float:
    return figures.samples_per_second


def _fastest_first(figures: CellFigures) -> float:
    return -_rate(figures)


def _slowest_first(figures: CellFigures) -> float:
    return _rate(figures)


def _unsteadiest_first(figures: CellFigures) -> float:
    return -figures.within_run_spread


def _cpu_first(figures: CellFigures) -> Any:
    return figures.cell.device.kind != "cpu", str(figures.cell.device)


def _by_recipe(figures: CellFigures) -> int:
    return RECIPES.index(figures.cell.recipe)


def at_one_batch(cells: Iterable[CellFigures]) -> list[CellFigures]:
    """The cells at their workload's default batch size, or the smallest measured if that is
    missing."""
    selected = []
    for group in grouped(cells, lambda figures: figures.cell.workload):
        sizes = {figures.cell.batch_size for figures in group}
        standard = workload_named(group[0].cell.workload).batch_size
        chosen = standard if standard in sizes else min(sizes)
        selected += [figures for figures in group if figures.cell.batch_size == chosen]
    return selected


def fastest_of_each(cells: Iterable[CellFigures]) -> list[CellFigures]:
    """The fastest cell of each workload, in the order of measurement."""
    return _best(cells, lambda figures: figures.cell.workload)


def _best(cells: Iterable[CellFigures], key: Key) -> list[CellFigures]:
    """The fastest cell of each key."""
    return [max(group, key=_rate) for group in grouped(cells, key)]


def _groups(
    cells: Iterable[CellFigures],
    key: Key,
    title: Callable[[CellFigures], str],
    label: Callable[[CellFigures], str],
    order: Key,
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
    """The samples per second of the longest bar. A wide interval must not make all bars short: it
    is cut at the edge."""
    fastest = max(map(_rate, group))
    return min(max(figures.high or _rate(figures) for figures in group), MOST_OVER * fastest)


def _bar(
    figures: CellFigures,
    longest: float,
    base: CellFigures | None,
    label: Callable[[CellFigures], str],
) -> Bar:
    note = ""
    if base and figures is not base and not (base.slowed or figures.slowed):
        note = marked(comparison(speed_up(figures, base), base_name(figures, base)), figures, base)
    return Bar(
        label=label(figures),
        value=marked(people.rate(_rate(figures)), figures),
        share=_rate(figures) / longest,
        low=figures.low and figures.low / longest,
        high=figures.high and min(figures.high / longest, 1.0),
        kind=figures.cell.device.kind,
        note=note,
        in_doubt=figures.in_doubt,
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


def _trace(figures: CellFigures) -> Trace:
    blocks = figures.typical.blocks
    spread = people.percent(figures.within_run_spread)
    ended = {"settled": "ended steady", "budget": "ended by the clock", "epochs": "whole epochs"}
    return Trace(
        title=f"{_task_name(figures)}",
        subtitle=f"{_place_recipe(figures)}: {len(blocks.durations_ns)} blocks, spread {spread}, "
        f"{ended[blocks.stop_reason]}",
        range=f"from {people.nanoseconds(min(blocks.durations_ns))} "
        f"to {people.nanoseconds(max(blocks.durations_ns))}, "
        f"median {people.nanoseconds(median(blocks.durations_ns))}",
        blocks=block_trace(blocks.durations_ns),
    )
