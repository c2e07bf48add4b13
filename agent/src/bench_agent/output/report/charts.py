"""Which comparisons a run allows, as data: the formats draw them.

Only cells that differ in what is compared are put side by side: equal workload, batch size,
precision and data everywhere, and equal framework and device where recipes are compared.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench_protocol import format as people
from bench_protocol.catalogue import workload_named
from bench_protocol.charts import BlockTrace, block_trace
from bench_protocol.comparison import SpeedVerdict
from bench_protocol.matrix import Cell

from . import scaling
from .figures import CellFigures, Report, grouped, marked, speed_up


@dataclass(frozen=True)
class Bar:
    """One cell. ``share``, ``low`` and ``high`` are shares of the longest bar of its group;
    ``kind`` chooses the colour; ``note`` says how it compares with the group's first. A question
    mark ends what is ``in_doubt`` (:data:`.figures.MARK_WORDS`)."""

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
    """Bars that may be compared."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Trace:
    """The blocks of a cell's typical repeat."""

    title: str
    subtitle: str
    range: str
    blocks: BlockTrace


@dataclass(frozen=True)
class Charts:
    """All there is to draw; what a run does not allow is empty."""

    fastest: tuple[BarGroup, ...]
    devices: tuple[BarGroup, ...]
    recipes: tuple[BarGroup, ...]
    frameworks: tuple[BarGroup, ...]
    batches: tuple[scaling.LineGroup, ...]
    traces: tuple[Trace, ...]


def charts_of(report: Report) -> Charts:
    """Lay out every comparison the run allows."""
    cells = _at_one_batch(report.cells)
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


def places_of(report: Report) -> tuple[BarGroup, ...]:
    """Each framework and device in its fastest recipe, fastest first."""
    best = _best(_at_one_batch(report.cells), _task_place)
    return _groups(best, _task, _task_name, _place_recipe, _fastest_first, compared=False)


Key = Callable[[CellFigures], Any]
RECIPES = ("naive", "pipeline", "tuned")
MOST_OVER = 1.25


def _task(one: CellFigures) -> Any:
    cell = one.cell
    return cell.workload, cell.batch_size, cell.precision, cell.data


def _task_device(one: CellFigures) -> Any:
    return *_task(one), one.cell.device


def _task_place(one: CellFigures) -> Any:
    return *_task_device(one), one.cell.framework


def _task_name(one: CellFigures) -> str:
    cell = one.cell
    return f"{cell.workload}, batch {cell.batch_size:,}{unusual_precision(cell)}"


def unusual_precision(cell: Cell) -> str:
    """What follows a name where the precision is not the usual one."""
    return "" if cell.precision == "float32" else f", {cell.precision}"


def _task_place_name(one: CellFigures) -> str:
    return f"{_task_name(one)}, {one.place}"


def _place_recipe(one: CellFigures) -> str:
    return f"{one.place}, {one.cell.recipe}"


def _device_best(one: CellFigures) -> str:
    return f"{one.cell.device}: {one.cell.framework} {one.cell.recipe}"


def _rate(one: CellFigures) -> float:
    return one.samples_per_second


def _fastest_first(one: CellFigures) -> float:
    return -_rate(one)


def _slowest_first(one: CellFigures) -> float:
    return _rate(one)


def _unsteadiest_first(one: CellFigures) -> float:
    return -one.within_run_spread


def _cpu_first(one: CellFigures) -> Any:
    return one.cell.device.kind != "cpu", str(one.cell.device)


def _by_recipe(one: CellFigures) -> int:
    return RECIPES.index(one.cell.recipe)


def _at_one_batch(cells: Iterable[CellFigures]) -> list[CellFigures]:
    """The cells at their workload's own batch size; where it was not measured, at the least."""
    found = []
    for group in grouped(cells, lambda one: one.cell.workload):
        sizes = {one.cell.batch_size for one in group}
        own = workload_named(group[0].cell.workload).batch_size
        chosen = own if own in sizes else min(sizes)
        found += [one for one in group if one.cell.batch_size == chosen]
    return found


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
    """Bars group by group. Where they are ``compared``, each is held against its group's first, and
    a group of one is left out."""
    found = []
    for group in grouped(cells, key):
        if len(group) > 1 or not compared:
            ordered = sorted(group, key=order)
            base = ordered[0] if compared else None
            bars = tuple(_bar(one, ordered, base, label) for one in ordered)
            found.append(BarGroup(title(ordered[0]), bars))
    return tuple(found)


def _bar(
    one: CellFigures,
    group: list[CellFigures],
    base: CellFigures | None,
    label: Callable[[CellFigures], str],
) -> Bar:
    fastest = max(map(_rate, group))
    # A wide interval must not make all bars short: it ends at the edge.
    longest = min(max(other.high or _rate(other) for other in group), MOST_OVER * fastest)
    note = ""
    if base and one is not base:
        note = marked(comparison(speed_up(one, base), base_name(one, base)), one, base)
    return Bar(
        label=label(one),
        value=marked(people.rate(_rate(one)), one),
        share=_rate(one) / longest,
        low=one.low and one.low / longest,
        high=one.high and min(one.high / longest, 1.0),
        kind=one.cell.device.kind,
        note=note,
        in_doubt=one.in_doubt,
    )


def base_name(one: CellFigures, base: CellFigures) -> str:
    """What tells the base from the cell held against it."""
    own, other = one.cell, base.cell
    names = []
    if own.framework != other.framework:
        names.append(other.framework)
    if own.device != other.device:
        names.append(f"on {other.device}")
    if own.recipe != other.recipe:
        names.append(other.recipe)
    return " ".join(names)


def comparison(verdict: SpeedVerdict, base: str) -> str:
    """A speed-up for people, with its interval where there were enough runs for one."""
    if verdict.kind == "no_difference":
        return f"no credible difference from {base}"
    interval = ""
    if verdict.low and verdict.high:
        interval = f", 95 % CI {people.ratio(verdict.low)} to {people.ratio(verdict.high)}"
    return f"{people.ratio(verdict.speed_up)} {base}{interval}"


def _trace(one: CellFigures) -> Trace:
    blocks = one.typical.blocks
    spread = people.percent(one.within_run_spread)
    ended = {"settled": "settled", "budget": "budget spent", "epochs": "whole epochs"}
    return Trace(
        title=f"{_task_name(one)}",
        subtitle=f"{_place_recipe(one)}: {len(blocks.durations_ns)} blocks, spread {spread}, "
        f"{ended[blocks.stop_reason]}",
        range=f"from {people.nanoseconds(min(blocks.durations_ns))} "
        f"to {people.nanoseconds(max(blocks.durations_ns))}, "
        f"median {people.nanoseconds(median(blocks.durations_ns))}",
        blocks=block_trace(blocks.durations_ns),
    )
